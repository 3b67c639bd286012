import { expect, it } from "vitest";
import { workflow } from "../../src/core/workflow.ts";
import { plant, SAMPLE_WORKFLOWS } from "./samples.ts";
import { serverWorld } from "./world.ts";

interface Failed {
  readonly error: { readonly code: string; readonly message: string };
}

const engine = { workflows: SAMPLE_WORKFLOWS };

it("X-17 S2-66 what is sent again after a lost answer is done once", async () => {
  const { ask, json, pawl } = await serverWorld({ engine });
  const ids = await plant(pawl);
  const start = (input: unknown) =>
    ask("POST /api/runs", { body: { workflow: "order", input, options: { key: "k-1" } } });
  const first = await start({ n: 1 });
  expect(first.status).toBe(201);
  const started = await first.json();
  expect(await (await start({ n: 1 })).json()).toEqual(started);
  const other = await start({ n: 2 });
  expect([other.status, ((await other.json()) as Failed).error.code]).toEqual([409, "idempotency_conflict"]);
  const signal = () => ask(`POST /api/runs/${ids.waiting}/signal`, { body: { name: "go", id: "s-1" } });
  expect((await signal()).status).toBe(200);
  await pawl.idle();
  const late = await signal();
  expect([late.status, ((await late.json()) as Failed).error.code]).toEqual([409, "run_ended"]);
  const received = (await pawl.get(ids.waiting).journal()).filter(({ type }) => type === "signal.received");
  expect(received).toHaveLength(1);
  const cancel = () => json(`POST /api/runs/${ids.manual}/cancel`, { body: { reason: "twice" } });
  expect(["cancelling", "cancelled"]).toContain((await cancel())["outcome"]);
  await pawl.idle();
  expect(await cancel()).toEqual({ run: ids.manual, outcome: "cancelled" });
  const retried = await json<{ id: string }>(`POST /api/runs/${ids.failed}/retry`, { body: { from: "fine" } });
  expect(await json(`GET /api/runs/${retried.id}`)).toMatchObject({ origin: ids.failed });
});

it("Q3 S2-66 who decides, and as what, comes from the credential; the hash is that of what was shown", async () => {
  const { ask, json, pawl } = await serverWorld({ engine });
  const { approval, hash, asking } = await plant(pawl);
  const decide = (body: object) => ask(`POST /api/approvals/${approval}/decide`, { as: "approver", body });
  const code = async (answer: Promise<Response>) => {
    const response = await answer;
    return [response.status, ((await response.json()) as Failed).error.code];
  };
  const yes = { decision: "approved", reason: "fine", hash };
  expect(await code(decide({ ...yes, by: "boss" }))).toEqual([400, "invalid_argument"]);
  expect(await code(decide({ ...yes, roles: ["physician"] }))).toEqual([400, "invalid_argument"]);
  expect(await code(decide({ decision: "approved" }))).toEqual([400, "invalid_argument"]);
  expect(await code(decide({ ...yes, hash: "f".repeat(64) }))).toEqual([409, "approval_mismatch"]);
  expect(await json("GET /api/approvals?mine=true", { as: "approver" })).toMatchObject({
    approvals: [{ id: approval }],
  });
  expect((await decide(yes)).status).toBe(200);
  expect((await decide(yes)).status).toBe(200);
  expect(await code(decide({ ...yes, decision: "denied" }))).toEqual([409, "approval_decided"]);
  await pawl.idle();
  const { decision } = await pawl.approvals.get(approval);
  expect(decision).toMatchObject({ decision: "approved", by: "approver-of-default", reason: "fine" });
  expect(await json(`GET /api/runs/${asking}`)).toMatchObject({ status: "succeeded" });
});

it("S2-66 a run is advanced phase by phase, and what a choice or a file would do on the server's disk is refused", async () => {
  const { ask, json, pawl } = await serverWorld({ engine });
  const { paced, blocked, manual } = await plant(pawl);
  const advance = () => json(`POST /api/runs/${paced}/advance`, { body: {} });
  expect(await advance()).toMatchObject({ phase: "first", isEnded: false });
  expect(await advance()).toMatchObject({ phase: "second", isEnded: true });
  expect(await json(`GET /api/runs/${blocked}`)).toMatchObject({
    parked: { choices: expect.arrayContaining(["retry"]) },
  });
  expect((await ask(`POST /api/runs/${blocked}/resolve`, { body: { choice: "dance" } })).status).toBe(400);
  const outputs = { step: "tidy", action: "done", outputs: { "a.txt": "/etc/passwd" } };
  expect((await ask(`POST /api/runs/${manual}/report`, { body: outputs })).status).toBe(400);
  for (const action of ["begin", "done"]) {
    expect((await ask(`POST /api/runs/${manual}/report`, { body: { step: "tidy", action } })).status).toBe(200);
    await pawl.idle();
  }
  expect(await json(`GET /api/runs/${manual}`)).toMatchObject({ status: "succeeded" });
});

it("S2-66 counts, searches, holds and bulk are there for those who look after many runs", async () => {
  const { json, pawl } = await serverWorld({ engine });
  const ids = await plant(pawl);
  expect(await json("GET /api/runs/counts?workflow=failing")).toEqual({
    counts: { running: 0, waiting: 0, parked: 0, succeeded: 0, failed: 1, cancelled: 0 },
    atLeast: false,
  });
  expect(await json("GET /api/runs?q=vi")).toMatchObject({ runs: [{ id: ids.waiting }] });
  expect(await json(`POST /api/runs/${ids.failed}/hold`, { body: { reason: "audit" } })).toMatchObject({
    by: "admin-of-default",
    reason: "audit",
  });
  expect(await json(`GET /api/runs/${ids.failed}`)).toMatchObject({ hold: { reason: "audit" } });
  const bulk = (dryRun: boolean) =>
    json("POST /api/runs/bulk", { body: { action: "retry", filter: { workflow: "failing" }, dryRun } });
  expect(await bulk(true)).toEqual({ matched: 1, done: 0, already: 0, failed: [], dryRun: true });
  expect(await bulk(false)).toMatchObject({ matched: 1, done: 1, failed: [] });
});

it("Q16 a question about the headers of an event stream leaves none open; a fault says nothing of the inside", async () => {
  const logged: string[] = [];
  const log = (message: string) => void logged.push(message);
  const odd = workflow("odd", async () => {});
  const { app, ask, pawl } = await serverWorld({
    engine: { workflows: [odd] },
    logger: { debug: log, info: log, warn: log, error: log },
  });
  const run = await pawl.start(odd, undefined);
  expect((await ask(`HEAD /api/runs/${run.id}/events`)).status).toBe(200);
  expect(app.parts.streams.count).toBe(0);
  Object.defineProperty(pawl, "schedules", { value: () => Promise.reject(new Error("secret path")) });
  const failed = await ask("GET /api/schedules");
  expect(failed.status).toBe(500);
  expect(await failed.text()).not.toContain("secret path");
  expect(logged.join()).toContain("secret path");
});

it("Q3 Q5 I15 a signal cannot take the place of a vote, nor can anybody start what sends notifications", async () => {
  const { ask, pawl } = await serverWorld({ engine });
  const { approval, hash, asking } = await plant(pawl);
  const refused = async (what: string, body: object) => {
    const response = await ask(what, { as: "operator", body });
    return [response.status, ((await response.json()) as Failed).error.code];
  };
  const ids = [`approval:${approval}`, `callback:${asking}`, `child:${asking}`, "decision-3", "pawl.x"];
  ids.push("advance-1-9", "block-1-9", "manual-1-9-end");
  for (const id of ids)
    expect(await refused(`POST /api/runs/${asking}/signal`, { name: "noise", id })).toEqual([400, "invalid_name"]);
  expect(await refused("POST /api/runs", { workflow: "pawl.notify", input: { summary: "lunch" } })).toEqual([
    400,
    "invalid_argument",
  ]);
  const daily = { workflow: "pawl.notify", every: "1d" };
  expect(await refused("PUT /api/schedules/daily", daily)).toEqual([400, "invalid_argument"]);
  const decided = await ask(`POST /api/approvals/${approval}/decide`, {
    as: "approver",
    body: { decision: "denied", reason: "no", hash },
  });
  expect(decided.status).toBe(200);
  await pawl.idle();
  expect((await pawl.approvals.get(approval)).decision).toMatchObject({ decision: "denied" });
});
