// A vote whose transaction is slow: it has its time before the expiry, and is visible to others only after the worker has looked for votes.
import { afterAll, expect, inject, it, onTestFinished } from "vitest";
import { Pawl } from "../../src/client/pawl.ts";
import { workflow } from "../../src/core/workflow.ts";
import { loadDriver, type PgClient } from "../../src/stores/postgres/driver.ts";
import { postgresStore } from "../../src/stores/postgres/postgres-store.ts";

const SCHEMA = `late_vote_${process.pid}`;

async function connect(): Promise<PgClient> {
  const client = (await loadDriver()).client({ connectionString: inject("postgresUrl") });
  await client.connect();
  onTestFinished(async () => {
    await client.end();
  });
  return client;
}

afterAll(async () => {
  const client = (await loadDriver()).client({ connectionString: inject("postgresUrl") });
  await client.connect();
  await client.query({ text: `drop schema ${SCHEMA} cascade` });
  await client.end();
});

it("I15 S4-37 a vote that has its time before the expiry and is committed while that is written decides", async () => {
  const flow = workflow("asking", async (ctx) => {
    const action = { tool: "refunds.issue", arguments: { cents: 4200 } };
    // Short enough for the run to stay in memory: one that sleeps cannot be claimed while the vote is being written.
    const { by, at } = await ctx.approve("refund", { action, approvers: ["ann"], timeout: 900 });
    return { by, at };
  });
  const store = postgresStore(inject("postgresUrl"), { schema: SCHEMA });
  const [voter, observer] = [await connect(), await connect()];
  const pawl = await Pawl.open(store, { workflows: [flow], handleSignals: false });
  onTestFinished(() => pawl.close());
  const run = await pawl.start(flow, undefined, { id: "r" });
  const asked = async () => (await pawl.approvals.list()).approvals[0];
  await expect.poll(asked).toBeDefined();
  const { id = "", hash = "", due } = (await asked()) ?? {};

  const vote = JSON.stringify({ approval: id, hash, decision: "approved", by: "ann", roles: [] });
  await voter.query({ text: "begin" });
  const values = [`approval:${id}`, id, vote];
  const text = `select ${SCHEMA}.deliver_1('r', $1, 'approval', $2, $3, null, ${SCHEMA}.time_1(null)) as delivery`;
  expect((await voter.query({ text, values })).rows).toEqual([{ delivery: "delivered" }]);
  // The worker has found no vote, and its commit waits for the run.
  const waiting = `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and query like '%${SCHEMA}%commit%'`;
  await expect.poll(async () => (await observer.query({ text: waiting })).rows[0]?.["n"], { timeout: 10_000 }).toBe(1);
  expect(store.clock.now()).toBeGreaterThanOrEqual(due?.getTime() ?? Number.POSITIVE_INFINITY);
  await voter.query({ text: "commit" });
  const decided = await run.result();
  expect(decided.by).toBe("ann");
  expect(decided.at).toBeLessThanOrEqual(due?.getTime() ?? 0);
});
