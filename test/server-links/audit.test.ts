// Who did what, over HTTP and with commands: recorded before it is done, and found out if somebody edits the record.
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { describe, expect, inject, it } from "vitest";
import { consoleLog } from "../../src/client/console-log.ts";
import type { AuditRecord } from "../../src/core/audit.ts";
import type { Log } from "../../src/core/context.ts";
import { workflow } from "../../src/core/workflow.ts";
import { loadDriver } from "../../src/stores/postgres/driver.ts";
import { pawl as command, json, project } from "../fixtures/cli/command.ts";
import { seed } from "../fixtures/cli/seed.ts";
import { serverWorld, type World } from "../server/world.ts";
import { asking } from "./approval-run.ts";

interface Sqlite {
  readonly DatabaseSync: new (path: string) => { exec(sql: string): void; close(): void };
}

const waiting = workflow("waiting", (ctx) => ctx.waitFor("go"));

async function world(logger: Log = consoleLog): Promise<World> {
  const made = await serverWorld({ logger, engine: { workflows: [waiting, asking()] }, others: ["acme"] });
  await made.pawl.start(waiting, undefined, { id: "w" });
  await made.pawl.start("report", undefined, { id: "r" });
  await made.pawl.idle();
  return made;
}

const logOf = ({ pawl }: Pick<World, "pawl">): Promise<AuditRecord[]> => pawl.store.audits({ after: 0, limit: 1000 });

/** Who, what, to what, and what became of it. */
const lines = (records: readonly AuditRecord[]) =>
  records.map(({ who, action, subject, outcome }) => [who, action, subject, outcome]);

describe("the audit log of the server", () => {
  it("Q20 has every request that changes something: who, what, to what, from where, the hash of what was given, before and after", async () => {
    const made = await world();
    const body = JSON.stringify({ name: "go", payload: { secret: "swordfish" } });
    const headers = { "content-type": "application/json", "user-agent": "curl" };
    expect((await made.ask("POST /api/runs/w/signal", { as: "operator", body, headers })).status).toBe(200);
    await made.ask("GET /api/runs/w", { as: "operator" });
    const records = await logOf(made);
    expect(lines(records)).toEqual([
      ["operator-of-default", "POST /api/runs/:id/signal", "w", "begun"],
      ["operator-of-default", "POST /api/runs/:id/signal", "w", "done"],
    ]);
    const payload = createHash("sha256").update(body).digest("hex");
    for (const record of records)
      expect(record).toMatchObject({ payload, from: "unknown, curl", at: expect.any(Number) });
    expect(records.map(({ detail }) => JSON.parse(detail ?? ""))).toEqual([
      { roles: ["operator"] },
      { roles: ["operator"], begun: 1 },
    ]);
    expect(JSON.stringify(records)).not.toContain("swordfish");
  });

  it("Q20 has what was refused: a role that is missing, a token that is not known, a body that does not fit, a decision that comes too late", async () => {
    const made = await world();
    const { pawl, ask } = made;
    const decide = (as: "approver" | "viewer", body: object) => {
      const [id] = asked;
      return ask(`POST /api/approvals/${id}/decide`, { as, body });
    };
    const asked = (await pawl.approvals.list()).approvals.map(({ id }) => id);
    const [{ hash = "" } = {}] = (await pawl.approvals.list()).approvals;
    const statuses = [
      await decide("viewer", { decision: "approved", hash }),
      await ask("POST /api/runs/w/cancel", { as: "nobody", body: {} }),
      await ask("POST /api/runs/w/cancel", { as: "nobody", body: {}, headers: { authorization: "Bearer wrong" } }),
      await decide("approver", { decision: "sold", hash }),
      await decide("approver", { decision: "approved", hash: "of something else" }),
      await decide("approver", { decision: "approved", hash }),
      await ask("POST /api/session", { as: "nobody", body: { token: "wrong" } }),
    ].map(({ status }) => status);
    expect(statuses).toEqual([403, 401, 401, 400, 409, 200, 401]);
    const [id] = asked;
    const path = "POST /api/approvals/:id/decide";
    expect(lines(await logOf(made))).toEqual([
      ["viewer-of-default", path, id, "refused"],
      ["nobody", "POST /api/runs/:id/cancel", "w", "refused"],
      ["nobody", "POST /api/runs/:id/cancel", "w", "refused"],
      ["approver-of-default", path, id, "refused"],
      ["approver-of-default", path, id, "begun"],
      ["approver-of-default", path, id, "refused"],
      ["approver-of-default", path, id, "begun"],
      ["approver-of-default", path, id, "done"],
      ["nobody", "POST /api/session", null, "refused"],
    ]);
    const [first] = await logOf(made);
    expect(JSON.parse(first?.detail ?? "")).toMatchObject({
      code: "forbidden",
      error: expect.stringContaining("role"),
    });
  });

  it("Q4 Q20 is that of the store whose credential it is, and for its admins alone", async () => {
    const made = await world();
    await made.ask("POST /api/runs/w/cancel", { as: "admin@acme", body: {} });
    expect(await logOf(made)).toEqual([]);
    expect((await made.ask("GET /api/audit", { as: "operator" })).status).toBe(403);
    const page = await made.json<{ records: object[]; cursor: number | null }>("GET /api/audit?limit=1", {
      as: "admin@acme",
    });
    expect(page).toMatchObject({ records: [{ n: 1, who: "admin-of-acme", outcome: "begun" }], cursor: 1 });
    const next = await made.json("GET /api/audit?cursor=1", { as: "admin@acme" });
    expect(next).toMatchObject({
      records: [{ n: 2, outcome: "refused", detail: { code: "run_not_found" } }],
      cursor: null,
    });
    expect(await made.json("GET /api/audit/check", { as: "admin@acme" })).toEqual({ records: 2, fault: null });
  });

  it("Q5 Q20 has who signed in, and who used which link: for whom, from where, or why not; and no token of either", async () => {
    const made = await world();
    const { pawl, ask } = made;
    const token = made.token("viewer");
    expect((await ask("POST /api/session", { as: "nobody", body: { token } })).status).toBe(200);
    const [approval] = (await pawl.approvals.list()).approvals;
    const link = await pawl.links.create(approval?.id ?? "", { for: "ann" });
    const path = `/approve/${link.token}`;
    const page = await (await ask(`GET ${path}`, { as: "nobody" })).text();
    const [, nonce = ""] = /name="nonce" value="([^"]+)"/.exec(page) ?? [];
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const post = (fields: Record<string, string>) =>
      ask(`POST ${path}`, { as: "nobody", headers, body: new URLSearchParams(fields).toString() });
    const statuses = [
      (await post({ nonce: "a.b", decision: "approved" })).status,
      (await post({ nonce, decision: "approved" })).status,
      (await post({ nonce, decision: "approved" })).status,
    ];
    expect(statuses).toEqual([403, 200, 409]);
    const records = await logOf(made);
    expect(lines(records)).toEqual([
      ["viewer-of-default", "sign in", null, "begun"],
      ["viewer-of-default", "sign in", null, "done"],
      ["nobody", "POST /approve/:token", null, "refused"],
      ["ann", "POST /approve/:token", approval?.id, "begun"],
      ["ann", "POST /approve/:token", approval?.id, "done"],
      ["nobody", "POST /approve/:token", approval?.id, "refused"],
    ]);
    expect(JSON.parse(records[3]?.detail ?? "")).toEqual({ run: "r", link: link.id, for: "ann", decision: "approved" });
    for (const secret of [token, link.token]) expect(JSON.stringify(records)).not.toContain(secret);
  });

  it("Q20 what cannot be recorded is not done; what was begun and cannot be ended is told to the log", async () => {
    const told: string[] = [];
    const tell = (message: string) => void told.push(message);
    const made = await world({ debug: tell, info: tell, warn: tell, error: tell });
    const { pawl, ask } = made;
    const { store } = pawl;
    const { record } = store;
    let left = 0;
    store.record = (entry) => (left-- > 0 ? record.call(store, entry) : Promise.reject(new Error("the disk is full")));
    const [approval] = (await pawl.approvals.list()).approvals;
    const link = await pawl.links.create(approval?.id ?? "", { for: "ann" });
    const requests = [
      ask("POST /api/runs/w/cancel", { body: {} }),
      ask("POST /api/runs", { body: { workflow: "waiting" } }),
      ask("POST /api/session", { as: "nobody", body: { token: made.token("viewer") } }),
    ];
    for (const request of requests) expect((await request).status).toBe(503);
    await expect(pawl.links.open(link.token)).resolves.toMatchObject({ by: "ann" });
    expect((await pawl.list()).runs.map(({ id, state }) => [id, state])).toEqual([
      ["r", "waiting"],
      ["w", "waiting"],
    ]);
    left = 1;
    expect((await ask("POST /api/runs/w/signal", { body: { name: "go" } })).status).toBe(200);
    store.record = record;
    expect(told.at(-1)).toContain("Record 1 of the audit log has no end");
    expect(lines(await logOf(made)).map(([, , subject, outcome]) => [subject, outcome])).toEqual([["w", "begun"]]);
  });
});

describe("the audit log in PostgreSQL", () => {
  it("Q20 Q15 a record that somebody has edited is found and named, and so is one that was taken away", async () => {
    const url = new URL(inject("postgresUrl"));
    const schema = `${inject("postgresSchemas")}${process.pid}_audit`;
    url.searchParams.set("schema", schema);
    const made = await serverWorld({ engine: { workflows: [waiting] }, stores: { default: url.href } });
    for (const id of ["a", "b"]) await made.ask(`POST /api/runs/${id}/cancel`, { body: {} });
    const check = () => made.json("GET /api/audit/check");
    expect(await check()).toEqual({ records: 4, fault: null });
    const client = (await loadDriver()).client({ connectionString: inject("postgresUrl") });
    await client.connect();
    try {
      await client.query({ text: `update ${schema}.audits set subject = 'c' where n = 2` });
      expect(await check()).toEqual({ records: 1, fault: { n: 2, what: "edited" } });
      await client.query({ text: `delete from ${schema}.audits where n = 2` });
      expect(await check()).toEqual({ records: 1, fault: { n: 2, what: "missing" } });
    } finally {
      await client.end();
    }
  });
});

describe("the audit log of commands", () => {
  it("Q20 X-17 has what people did on this machine, and pawl audit --check names the record that somebody has edited", async () => {
    const folder = project();
    await seed(folder, { o1: ["approve"], o2: ["approve"] });
    expect((await command(folder, "signal", "o1", "approved", '{"by":"Ada"}')).code).toBe(0);
    expect((await command(folder, "cancel", "o2", "--reason", "ordered twice")).code).toBe(0);
    expect((await command(folder, "retry", "o1")).code).not.toBe(0);
    const { records } = await json<{ records: AuditRecord[] }>(folder, "audit");
    expect(records.map(({ action, subject, outcome }) => [action, subject, outcome])).toEqual([
      ["pawl signal", "o1", "begun"],
      ["pawl signal", "o1", "done"],
      ["pawl cancel", "o2", "begun"],
      ["pawl cancel", "o2", "done"],
      ["pawl retry", "o1", "begun"],
      ["pawl retry", "o1", "refused"],
    ]);
    expect(records[0]).toMatchObject({
      who: expect.stringMatching(/./),
      from: expect.stringContaining("pawl signal on "),
    });
    expect((await command(folder, "audit", "--check")).code).toBe(0);
    const { DatabaseSync } = createRequire(import.meta.url)("@photostructure/sqlite") as Sqlite;
    const db = new DatabaseSync(`${folder}/.pawl/pawl.db`);
    db.exec("update audits set who = 'somebody else' where n = 3");
    db.close();
    const checked = await command(folder, "audit", "--check", "--json");
    expect([checked.code, JSON.parse(checked.stdout)]).toEqual([1, { records: 2, fault: { n: 3, what: "edited" } }]);
  });
});
