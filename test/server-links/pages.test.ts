// The pages of links, as browsers, mail scanners and other people's programs ask for them.
import { describe, expect, it } from "vitest";
import type { ApprovalSummary } from "../../src/client/approvals.ts";
import type { ApproveOptions } from "../../src/core/approval.ts";
import type { Workflow } from "../../src/core/workflow.ts";
import { HOST, serverWorld, type World } from "../server/world.ts";
import { asking } from "./approval-run.ts";

interface Asked extends World {
  readonly approval: ApprovalSummary;
}

async function askedWorld(options: Partial<ApproveOptions> = {}, others: readonly string[] = []): Promise<Asked> {
  const world = await serverWorld({ engine: { workflows: [asking(options) as Workflow<never>] }, others });
  await world.pawl.start("report", undefined, { id: "r" });
  await world.pawl.idle();
  const [approval] = (await world.pawl.approvals.list()).approvals;
  if (approval === undefined) throw new Error("the run asks for an approval");
  return { ...world, approval };
}

/** A link without sign-in for somebody. */
async function linkFor({ pawl, approval }: Asked, person = "ann") {
  const { id, token } = await pawl.links.create(approval.id, { for: person });
  return { id, token, path: `/approve/${token}` };
}

const get = (world: World, path: string, headers: Record<string, string> = {}) =>
  world.ask(`GET ${path}`, { as: "nobody", headers });

/** Posts a form, as a browser does from the page itself. */
function post(world: World, path: string, fields: Record<string, string>, headers: Record<string, string> = {}) {
  return world.ask(`POST ${path}`, {
    as: "nobody",
    body: new URLSearchParams(fields).toString(),
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      origin: "null",
      "sec-fetch-site": "same-origin",
      "user-agent": "Mozilla",
      ...headers,
    },
  });
}

/** The fields that are hidden in the form of a page. */
function hidden(page: string): Record<string, string> {
  const fields = [...page.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)];
  return Object.fromEntries(fields.map(([, name = "", value = ""]) => [name, value]));
}

async function formOf(world: World, path: string, headers: Record<string, string> = {}) {
  return hidden(await (await get(world, path, headers)).text());
}

/** All that the store has of the runs of a test. */
async function dump({ pawl: { store } }: World): Promise<string> {
  const rows = await store.runs({ limit: 100 });
  const parts = rows.map(async (row) => [row, await store.journal(row.id), await store.inbox(row.id)]);
  return JSON.stringify(await Promise.all(parts));
}

/** The status of an answer, and what its page says first of all. */
async function said(response: Promise<Response>): Promise<readonly [number, string]> {
  const answer = await response;
  const [, text = ""] = /<p role="alert">([^<]*)</.exec(await answer.text()) ?? [];
  return [answer.status, text];
}

describe("the page of a link", () => {
  it("Q5 Q17 shows exactly what is approved, as text, without a script, and nobody may frame or keep it", async () => {
    const world = await askedWorld({
      action: {
        tool: "mail.send",
        arguments: { to: "<script>alert(1)</script>", cents: 7n, note: "a\u202eb\u{e0101}c\u3164" },
      },
      evidence: '"><img src=x onerror=alert(1)>',
    });
    const answer = await get(world, (await linkFor(world)).path);
    const page = await answer.text();
    expect(answer.status).toBe(200);
    expect(page).toContain("<code>mail.send</code>");
    expect(page).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(page).not.toMatch(/<script|<img|\u202e/);
    expect(page).toContain("a\\u{202e}b\\u{e0101}c\\u{3164}");
    // What is not JSON is told apart from what looks like it.
    expect(page).not.toMatch(/&quot;cents&quot;: (7|&quot;7&quot;)/);
    expect(page).toContain(world.approval.hash);
    const headers = Object.fromEntries(answer.headers);
    expect(headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      "x-frame-options": "DENY",
    });
    expect(headers["content-security-policy"]).toContain("default-src 'none'");
    expect((await get(world, "/approve.css")).headers.get("content-type")).toContain("text/css");
  });

  it("Q5 Q13 the token of a link is in no log, also when the store fails while its page is asked for", async () => {
    const lines: string[] = [];
    const note = (message: string, fields?: object) => void lines.push(message, JSON.stringify(fields ?? {}));
    const logger = { debug: note, info: note, warn: note, error: note };
    const engine = { workflows: [asking({}) as Workflow<never>], logger };
    const world = await serverWorld({ engine, logger });
    await world.pawl.start("report", undefined, { id: "r" });
    await world.pawl.idle();
    const [approval] = (await world.pawl.approvals.list()).approvals;
    const { token } = await world.pawl.links.create(approval?.id ?? "", { for: "ann" });
    world.pawl.store.key = () => Promise.reject(new Error("the database is down"));
    expect((await get(world, `/approve/${token}`)).status).toBe(500);
    expect(lines.join("\n")).toContain("GET /approve/:token failed: the database is down");
    expect(lines.join("\n")).not.toContain(token);
  });

  it("B54 Q5 a mail scanner that looks at every link three times, with HEAD and prefetch headers, and follows all links of the page decides nothing", async () => {
    const world = await askedWorld();
    const { path } = await linkFor(world);
    await world.pawl.idle();
    const before = await dump(world);
    const asScanner = [
      {},
      { purpose: "prefetch", "sec-purpose": "prefetch" },
      { "x-moz": "prefetch", "user-agent": "scanner" },
    ];
    for (const headers of asScanner) {
      expect((await world.ask(`HEAD ${path}`, { as: "nobody", headers })).status).toBe(200);
      const page = await (await get(world, path, headers)).text();
      const addresses = [...page.matchAll(/(?:href|src|action)="([^"]+)"/g)].map(([, to = ""]) => to);
      expect(addresses).toEqual(["/approve.css"]);
      for (const to of addresses) await get(world, to, headers);
      for (const word of ["approved", "denied"]) await get(world, `${path}?decision=${word}`, headers);
    }
    for (const method of ["PUT", "DELETE", "OPTIONS", "PATCH"]) await world.ask(`${method} ${path}`, { as: "nobody" });
    expect(await dump(world)).toBe(before);
    expect((await post(world, path, { ...(await formOf(world, path)), decision: "approved" })).status).toBe(200);
  });

  it("Q5 a post of the page's own form decides, once, and records by which link, for whom and from where", async () => {
    const world = await askedWorld();
    const { id, path } = await linkFor(world);
    const form = await formOf(world, path);
    const twice = await Promise.all(
      ["approved", "denied"].map((decision) => post(world, path, { ...form, decision, reason: "" })),
    );
    expect(twice.map(({ status }) => status).sort()).toEqual([200, 409]);
    const result = (await world.pawl.get("r").result()) as { readonly decision: string };
    expect(result).toMatchObject({
      by: "ann",
      from: "unknown, Mozilla",
      votes: [{ by: "ann", link: { id, for: "ann" } }],
    });
    expect(await said(post(world, path, { ...form, decision: result.decision }))).toEqual([
      409,
      expect.stringContaining("counts once"),
    ]);
    expect(await said(get(world, path))).toEqual([409, expect.stringContaining("counts once")]);
  });

  it("Q2 Q5 a post that no page of this link has made decides nothing", async () => {
    const world = await askedWorld({ approvers: ["ann", "bob"] });
    const [ann, bob] = [await linkFor(world), await linkFor(world, "bob")];
    await world.pawl.idle();
    const before = await dump(world);
    const own = await formOf(world, ann.path);
    const theirs = await formOf(world, bob.path);
    const decision = "approved";
    const refusals: [Promise<Response>, number][] = [
      [post(world, ann.path, { decision }), 400],
      [post(world, ann.path, { nonce: "a.b", decision }), 403],
      [post(world, ann.path, { nonce: ".", decision }), 403],
      [post(world, ann.path, { ...theirs, decision }), 403],
      [post(world, ann.path, { ...own, hash: "of something else", decision }), 409],
      [post(world, ann.path, own), 400],
      [post(world, ann.path, { ...own, decision: "sold" }), 400],
      [post(world, ann.path, { ...own, decision: "changes_requested", reason: " " }), 400],
      [post(world, ann.path, { ...own, decision }, { "sec-fetch-site": "cross-site" }), 403],
      [post(world, ann.path, { ...own, decision }, { origin: "https://evil.example" }), 403],
      [post(world, ann.path, { ...own, decision }, { "content-type": "text/plain" }), 415],
      [post(world, ann.path, { ...own, decision }, { host: "evil.example" }), 403],
    ];
    for (const [answer, status] of refusals) expect((await answer).status).toBe(status);
    expect(await dump(world)).toBe(before);
  });

  it("Q5 says in plain words why a link is of no use: unknown, revoked, expired, decided by others, no longer asked", async () => {
    const world = await askedWorld({ approvers: ["ann", "bob", "cleo"] });
    const link = await linkFor(world);
    expect(await said(get(world, `/approve/${link.token}x`))).toEqual([404, expect.stringContaining("no such link")]);
    await world.pawl.links.revoke(link.id);
    for (const answer of [get(world, link.path), post(world, link.path, { nonce: "a.b", decision: "approved" })])
      expect(await said(answer)).toEqual([410, expect.stringContaining("revoked")]);
    const short = await world.pawl.links.create(world.approval.id, { for: "ann", expires: 1 });
    await expect
      .poll(async () => said(get(world, `/approve/${short.token}`)))
      .toEqual([410, expect.stringContaining("expired")]);
    const cleo = await linkFor(world, "cleo");
    await world.pawl.approvals.decide(world.approval.id, { decision: "denied", by: "bob" });
    const page = await (await get(world, cleo.path)).text();
    expect(page).toContain("Somebody else has decided");
    expect(page).toContain("It was denied by bob");
    await world.pawl.start("report", undefined, { id: "r2" });
    await world.pawl.idle();
    const [second] = (await world.pawl.approvals.list()).approvals;
    const other = await linkFor({ ...world, approval: second as ApprovalSummary });
    await world.pawl.cancel("r2");
    expect(await said(get(world, other.path))).toEqual([410, expect.stringContaining("no longer waits")]);
  });

  it("Q5 a forwarded link with sign-in asks who it is, shows nothing before, and refuses whoever it was not made for", async () => {
    const world = await askedWorld({}, ["other"]);
    const made = await world.json<{ id: string; url: string }>(`POST /api/approvals/${world.approval.id}/links`, {
      as: "operator",
      body: { for: "role:physician" },
    });
    const path = made.url.replace(`http://${HOST}`, "");
    const asked = await get(world, path);
    const page = await asked.text();
    expect([asked.status, page.includes("reports.deliver"), page.includes("Sign in")]).toEqual([401, false, true]);
    const signIn = async (accessToken: string) => {
      const answer = await post(world, path, { ...(await formOf(world, path)), accessToken });
      return { answer, cookie: (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "" };
    };
    expect((await signIn("wrong")).answer.status).toBe(403);
    const { answer, cookie } = await signIn(world.token("viewer"));
    expect([answer.status, answer.headers.get("location")]).toEqual([303, path]);
    expect(answer.headers.get("set-cookie")).toMatch(/HttpOnly; SameSite=Strict/);
    // Somebody of another store is somebody else, whatever they are there.
    const foreign = await signIn(world.token("admin@other"));
    expect((await get(world, path, { cookie: foreign.cookie })).status).toBe(401);
    const form = await formOf(world, path, { cookie });
    const decision = "approved";
    expect((await post(world, path, { ...form, decision })).status).toBe(401);
    expect((await post(world, path, { ...form, decision }, { cookie: foreign.cookie })).status).toBe(401);
    expect((await post(world, path, { ...form, decision }, { cookie })).status).toBe(200);
    expect(await world.pawl.get("r").result()).toMatchObject({
      by: "viewer-of-default",
      votes: [{ roles: ["physician"], link: { id: made.id, for: "role:physician" } }],
    });
  });

  it("Q5 refuses a signed-in person whom the link was not made for", async () => {
    const world = await askedWorld();
    const { token } = await world.pawl.links.create(world.approval.id, { for: "ann", signIn: true });
    const headers = { authorization: `Bearer ${world.token("admin")}` };
    expect(await said(get(world, `/approve/${token}`, headers))).toEqual([
      403,
      expect.stringContaining("somebody else"),
    ]);
  });
});

describe("links over the API", () => {
  it("Q5 operators make links with sign-in only; admins others as well; both list and revoke them, and none sees a token again", async () => {
    const world = await askedWorld();
    const at = `/api/approvals/${world.approval.id}/links`;
    const make = (as: "operator" | "admin" | "approver" | "viewer", body: object) =>
      world.ask(`POST ${at}`, { as, body });
    expect((await make("viewer", { for: "ann" })).status).toBe(403);
    expect((await make("approver", { for: "ann" })).status).toBe(403);
    expect((await make("operator", { for: "ann", signIn: false })).status).toBe(403);
    expect((await make("operator", { for: "eve" })).status).toBe(409);
    expect((await make("operator", { for: "ann", expires: "soon" })).status).toBe(400);
    const first = await make("operator", { for: "ann", expires: "1h" });
    expect(first.status).toBe(201);
    const second = (await (await make("admin", { for: "ann", signIn: false })).json()) as { url: string; id: string };
    expect(second.url).toMatch(new RegExp(`^http://${HOST}/approve/[\\w-]{43}$`));
    const { links } = await world.json<{ links: Record<string, unknown>[] }>(`GET ${at}`, { as: "operator" });
    expect(links).toMatchObject([
      { for: "ann", signIn: false, by: "admin-of-default", status: "open" },
      { for: "ann", signIn: true, by: "operator-of-default", status: "open" },
    ]);
    expect(JSON.stringify(links)).not.toContain(second.url.slice(-43));
    expect((await world.ask(`DELETE ${at}/r`, { as: "operator" })).status).toBe(404);
    expect((await world.ask(`DELETE ${at}/${second.id}`, { as: "operator" })).status).toBe(200);
    expect((await get(world, second.url.replace(`http://${HOST}`, ""))).status).toBe(410);
  });
});
