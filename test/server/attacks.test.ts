// What hostile senders try, each refused with its status and without a trace in the store.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Store } from "../../src/core/store.ts";
import type { Route } from "../../src/server/route.ts";
import { ALL_ROUTES } from "../../src/server/routes/all.ts";
import { emptyPostgresStore } from "../postgres-schemas.ts";
import { dumpOf, keyOf, plant, requestOf, SAMPLE_WORKFLOWS } from "./samples.ts";
import { HOST, serverWorld } from "./world.ts";

const engine = { workflows: SAMPLE_WORKFLOWS };
const WRITES = ALL_ROUTES.filter(({ spec }) => spec.method !== "GET" && spec.role !== "own" && spec.role !== "public");
const NEEDS_BODY = WRITES.filter(({ spec }) => spec.body !== undefined);

it("Q2 forms and pages of others change nothing, with the cookie of somebody who has signed in", async () => {
  const world = await serverWorld({ engine });
  const ids = await plant(world.pawl);
  const signedIn = await world.ask("POST /api/session", { as: "nobody", body: { token: world.token("admin") } });
  const cookie = (signedIn.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const { csrf } = (await signedIn.json()) as { csrf: string };
  const own = { cookie, origin: `http://${HOST}`, "x-pawl-csrf": csrf };
  const before = await dumpOf(world.pawl);
  const foreign: readonly (readonly [string, Record<string, string>, number])[] = [
    ["a page of another site", { ...own, origin: "https://evil.test" }, 403],
    ["a site whose name begins alike", { ...own, origin: `http://${HOST}.evil.test` }, 403],
    ["another port of this machine", { ...own, origin: "http://127.0.0.1:9999" }, 403],
    ["a sandboxed frame", { ...own, origin: "null", "sec-fetch-site": "cross-site" }, 403],
    ["a page without origin", { cookie, "x-pawl-csrf": csrf }, 403],
    ["the cookie alone", { cookie, origin: `http://${HOST}` }, 403],
    ["another session's token", { ...own, "x-pawl-csrf": "A".repeat(43) }, 403],
    ["the same site, not the same origin", { ...own, "sec-fetch-site": "same-site" }, 403],
  ];
  for (const route of WRITES) {
    const { what, body } = requestOf(route, ids);
    for (const [who, headers, status] of foreign) {
      const answer = await world.ask(what, { as: "nobody", headers, ...(body !== undefined && { body }) });
      expect(answer.status, `${who}: ${what}`).toBe(status);
    }
  }
  for (const route of NEEDS_BODY)
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/jsonp",
      "",
    ]) {
      const { what, body } = requestOf(route, ids);
      const headers = { ...own, "content-type": type };
      const answer = await world.ask(what, { as: "nobody", headers, body });
      expect(answer.status, `${type}: ${what}`).toBe(415);
    }
  expect(
    (await world.ask("GET /api/runs", { headers: { origin: "https://evil.test" } })).headers.get(
      "access-control-allow-origin",
    ),
  ).toBe(null);
  expect((await world.ask("OPTIONS /api/runs", { as: "nobody" })).status).toBe(401);
  expect(await dumpOf(world.pawl)).toEqual(before);
});

/** Bodies that no route takes, and what is said to them. */
const BODIES: readonly (readonly [string, string, number])[] = [
  ["too deep", `${"[".repeat(70)}${"]".repeat(70)}`, 400],
  ["deep inside a value", `{"workflow":"order","input":${'{"a":'.repeat(65)}1${"}".repeat(65)}}`, 400],
  ["too large", JSON.stringify({ workflow: "order", input: "x".repeat(1_048_577) }), 413],
  ["no JSON", "{", 400],
  ["not an object", "[]", 400],
  ["a number", "1", 400],
  ["nothing that is known", '{"__proto__":{"isAdmin":true}}', 400],
  ["a constructor", '{"constructor":{"prototype":{"isAdmin":true}}}', 400],
  ["what is known, and more", '{"workflow":"order","by":"mallory"}', 400],
];

it("Q8 Q16 bodies that are too large, too deep or not what they should be are refused, and pollute nothing", async () => {
  const world = await serverWorld({ engine });
  const ids = await plant(world.pawl);
  const before = await dumpOf(world.pawl);
  for (const route of NEEDS_BODY)
    for (const [name, body, status] of BODIES) {
      const answer = await world.ask(requestOf(route, ids).what, { body });
      const text = await answer.text();
      expect(answer.status, `${name}: ${keyOf(route)} ${text}`).toBe(status);
      // Before it is parsed, not by what comes behind.
      if (name.includes("deep")) expect(text).toContain("nested deeper than 64 levels");
    }
  expect(await dumpOf(world.pawl)).toEqual(before);
  // In a value that belongs to the user such keys are data, all the way to the store and back.
  const input = '{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"x":1}},"toString":"text"}';
  const { id } = await world.json<{ id: string }>("POST /api/runs", { body: `{"workflow":"order","input":${input}}` });
  const read = await (await world.ask(`GET /api/runs/${id}`)).text();
  expect(read).toContain(`"input":${input}`);
  expect(({} as { isAdmin?: boolean }).isAdmin).toBe(undefined);
  expect(Object.getOwnPropertyNames(Object.prototype)).not.toContain("isAdmin");
});

it("Q9 a workflow is looked up by name, whatever the name is", async () => {
  const world = await serverWorld({ engine });
  for (const workflow of ["__proto__", "constructor", "toString", "hasOwnProperty", "pawl.schedule"]) {
    const answer = await world.ask("POST /api/runs", { body: { workflow, input: 1 } });
    expect([400, 404], `${workflow}: ${await answer.text()}`).toContain(answer.status);
  }
  expect((await world.pawl.list()).runs).toEqual([]);
});

const PATHS = [
  "../../../etc/passwd",
  "..%2f..%2f..%2fetc%2fpasswd",
  "%2e%2e%2f%2e%2e%2fpackage.json",
  "..\\..\\package.json",
  "%00",
  "CON",
  "a%0d%0aset-cookie:%20x=1",
  "x".repeat(4096),
  "%ff",
  "%",
];

it("Q7 paths and ids that are none lead nowhere", async () => {
  const world = await serverWorld({ engine });
  const before = await dumpOf(world.pawl);
  for (const path of PATHS)
    for (const where of ["/", "/assets/", "/api/", "/api/runs/", "/api/approvals/", "/api/schedules/"]) {
      const answer = await world.ask(`GET ${where}${path}`);
      expect([400, 404], `${where}${path}: ${answer.status}`).toContain(answer.status);
      expect(answer.headers.get("set-cookie")).toBe(null);
    }
  for (const path of PATHS) {
    const answer = await world.ask(`POST /api/runs/${path}/signal`, { body: { name: "go" } });
    expect([400, 404], `${path}: ${answer.status}`).toContain(answer.status);
  }
  expect(await dumpOf(world.pawl)).toEqual(before);
});

const SQL = ["' or '1'='1", "'; drop table runs; --", "x' union select null, null --", "%", "\\", "$1"];

async function sqliteFile(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-server-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  return join(folder, "pawl.db");
}

async function postgres(): Promise<Store> {
  const { store, leave } = await emptyPostgresStore({});
  onTestFinished(() => leave());
  return store;
}

describe.each([
  ["SQLite", sqliteFile],
  ["PostgreSQL", postgres],
] as const)("on %s", (_, open) => {
  it("Q10 SQL in filters, cursors, ids and names is text and nothing else", async () => {
    const world = await serverWorld({ engine, stores: { default: await open() } });
    const ids = await plant(world.pawl);
    const before = await dumpOf(world.pawl);
    const ask = async (what: string, known: string, body?: unknown) => {
      const answer = await world.ask(what, body === undefined ? {} : { body });
      const text = answer.headers.get("content-type")?.startsWith("application/json") ? await answer.text() : "";
      if (text === "") await answer.body?.cancel();
      expect([200, 400, 404], `${what}: ${answer.status} ${text}`).toContain(answer.status);
      for (const id of Object.values(ids)) if (!known.includes(id)) expect(text, what).not.toContain(id);
      expect(text, what).not.toMatch(/syntax error|SQLITE|relation/i);
    };
    const filters = ALL_ROUTES.filter(
      ({ spec }) => spec.method === "GET" && spec.role === "viewer" && spec.query !== undefined,
    );
    for (const route of filters) {
      const { what } = requestOf(route, ids);
      for (const field of Object.keys(route.spec.query ?? {}))
        for (const text of SQL) await ask(`${what}?${field}=${encodeURIComponent(text)}`, what);
    }
    for (const text of SQL) {
      const id = encodeURIComponent(text);
      await ask(`GET /api/runs/${id}`, "");
      await ask(`GET /api/approvals/${id}`, "");
      await ask(`POST /api/runs/${id}/cancel`, "", {});
      await ask("POST /api/runs/bulk", "", { action: "cancel", filter: { tag: text }, dryRun: false });
      await ask(`DELETE /api/schedules/${id}`, "");
    }
    for (const field of ["id' or 1=1 --", "order by", "constructor", "__proto__"])
      expect((await world.ask(`GET /api/runs?${encodeURIComponent(field)}=1`)).status, field).toBe(400);
    expect(await dumpOf(world.pawl)).toEqual(before);
  });
});

const XSS = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'`{{7*7}}";

it("Q17 what is stored comes back as data, and no answer can be taken for a page", async () => {
  const world = await serverWorld({ engine, workflows: SAMPLE_WORKFLOWS });
  const ids = await plant(world.pawl);
  const { id } = await world.json<{ id: string }>("POST /api/runs", {
    body: { workflow: "order", input: { [XSS]: XSS }, options: { tags: ["<b>"], key: "<script>alert(1)<script>" } },
  });
  await world.pawl.idle();
  const look = async (route: Route, about: string) => {
    const { what } = requestOf(route, { ...ids, waiting: about });
    const answer = await world.ask(what);
    const type = answer.headers.get("content-type") ?? "";
    if (type.startsWith("text/event-stream")) await answer.body?.cancel();
    expect(type, what).toMatch(/^(application\/json|text\/event-stream|text\/plain)/);
    expect(answer.headers.get("x-content-type-options"), what).toBe("nosniff");
    expect(answer.headers.get("content-security-policy"), what).toMatch(
      /default-src 'none'.*script-src 'self';.*frame-ancestors 'none'/,
    );
    expect(answer.headers.get("content-security-policy"), what).not.toContain("unsafe");
    expect(answer.headers.get("referrer-policy"), what).toBe("no-referrer");
    expect(answer.headers.get("cache-control"), what).toBe("no-store");
    return answer;
  };
  for (const route of ALL_ROUTES.filter(({ spec }) => spec.method === "GET" && spec.role !== "own"))
    for (const about of [id, ids.failed]) await look(route, about);
  expect(await world.json(`GET /api/runs/${id}`)).toMatchObject({ input: { [XSS]: XSS } });
  const file = await world.ask(`GET /api/runs/${id}/export`);
  expect(file.headers.get("content-disposition")).toBe(`attachment; filename="run.json"; filename*=UTF-8''${id}.json`);
  const error = await world.ask(`GET /api/runs/${encodeURIComponent("<script>alert(1)<")}`, {
    headers: { accept: "text/html" },
  });
  expect(error.headers.get("content-type")).toMatch(/^application\/json/);
});
