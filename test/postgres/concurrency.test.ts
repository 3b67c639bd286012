// What only happens between transactions: locks that are waited for, snapshots that are older than what was waited for, orders that cross.
import { afterAll, afterEach, beforeEach, expect, inject, it } from "vitest";
import { Pawl } from "../../src/client/pawl.ts";
import type { RunCommit, Store, Verdict } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { loadDriver, type PgClient } from "../../src/stores/postgres/driver.ts";
import { postgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { appending, apply, creation, newWorker, signal, suspending } from "../../src/testing/store-cases/case.ts";

const SCHEMA = `races_${process.pid}`;
const ROUNDS = 40;

let store: Store;
let other: Store;
let admin: PgClient;
const clients: PgClient[] = [];

beforeEach(async () => {
  [store, other] = [open(), open()];
  for (const one of [store, other]) await one.open();
  admin = await connect();
  await admin.query({ text: TABLES.map((table) => `delete from ${SCHEMA}.${table}`).join(";") });
  await store.register(newWorker("w1"));
  await other.register(newWorker("w2"));
});

const TABLES = "runs journal inbox waits keys counters holds workers fences".split(" ");

afterEach(async () => {
  for (const client of clients.splice(0)) await client.end();
  for (const one of [store, other]) await one.close();
});

afterAll(async () => {
  admin = await connect();
  await admin.query({ text: `drop schema ${SCHEMA} cascade` });
  await admin.end();
});

function open(): Store {
  return postgresStore(inject("postgresUrl"), { schema: SCHEMA });
}

async function connect(): Promise<PgClient> {
  const client = (await loadDriver()).client({ connectionString: inject("postgresUrl") });
  await client.connect();
  clients.push(client);
  return client;
}

/** Resolves when so many statements of stores wait for a lock. */
async function untilWaiting(count: number): Promise<void> {
  const text = `select count(*)::int as n from pg_stat_activity where application_name = 'pawl' and wait_event_type = 'Lock'
    and query like '%${SCHEMA}%'`;
  await expect.poll(async () => (await admin.query({ text })).rows[0]?.["n"], { timeout: 10_000 }).toBe(count);
}

async function deadlocks(): Promise<unknown> {
  const text = "select deadlocks::int as n from pg_stat_database where datname = current_database()";
  return (await admin.query({ text })).rows[0]?.["n"];
}

async function one(from: Store, worker: string, part: RunCommit): Promise<Verdict> {
  const [verdict] = await from.commit({ worker, runs: [part] });
  return verdict as Verdict;
}

it("P20 P21 I8 a fence waits for the commit under way, and what that has done is seen by the release", async () => {
  await apply(store, creation("r", { claimed: true }));
  const holder = await connect();
  await holder.query({ text: `begin; select 1 from ${SCHEMA}.runs where id = 'r' for update` });
  const committed = one(store, "w1", suspending("r", 1));
  await untilWaiting(1);
  const fenced = other.fence({ workers: ["w1"] });
  await untilWaiting(2);
  await holder.query({ text: "commit" });
  expect(await committed).toEqual({ run: "r", kind: "applied" });
  // It had let go of the run by itself: nothing was left to release.
  expect(await fenced).toEqual({ moved: [], released: 0 });
  expect(await store.journal("r")).toHaveLength(1);
  expect(await one(store, "w1", appending("r", 1))).toMatchObject({ why: "fenced" });
});

it("P20 I10 what the commit under way has created is released as well", async () => {
  await apply(store, creation("busy"));
  const holder = await connect();
  await holder.query({ text: `begin; select 1 from ${SCHEMA}.runs where id = 'busy' for update` });
  const created = one(store, "w1", { ...creation("new", { claimed: true }), messages: [signal("busy", "m")] });
  await untilWaiting(1);
  const fenced = other.fence({ workers: ["w1"] });
  await untilWaiting(2);
  await holder.query({ text: "commit" });
  expect(await created).toEqual({ run: "new", kind: "applied" });
  expect(await fenced).toEqual({ moved: [], released: 1 });
  expect(await other.run("new")).toMatchObject({ owner: null, readyAt: expect.any(Number) });
});

it("P21 I8 ST1 a commit waits for the fence under way, and writes nothing then", async () => {
  await apply(store, creation("r", { claimed: true }));
  const fencing = await connect();
  await fencing.query({ text: `begin; delete from ${SCHEMA}.fences where worker = 'w1'` });
  const committed = one(store, "w1", appending("r", 1));
  await untilWaiting(1);
  await fencing.query({ text: "commit" });
  expect(await committed).toEqual({ run: "r", kind: "refused", why: "fenced" });
  expect(await store.journal("r")).toHaveLength(1);
});

it("P21 I8 a claim waits for the fence under way, and takes nothing then", async () => {
  await apply(store, creation("r"));
  const fencing = await connect();
  await fencing.query({ text: `begin; delete from ${SCHEMA}.fences where worker = 'w1'` });
  const handles = [{ workflow: "order", version: "1.0.0" }];
  const claimed = store.claim({ worker: "w1", handles, limit: 1, suspect: true });
  await untilWaiting(1);
  await fencing.query({ text: "commit" });
  expect(await claimed).toEqual([]);
  expect(await store.run("r")).toMatchObject({ owner: null, claims: 0 });
});

it("P21 heartbeats do not wait for commits, nor commits for heartbeats", async () => {
  const holder = await connect();
  await holder.query({ text: `begin; select 1 from ${SCHEMA}.fences where worker = 'w1' for key share` });
  expect(await store.heartbeat("w1")).toMatchObject({ alive: true });
  await holder.query({ text: `update ${SCHEMA}.workers set renewed_at = renewed_at where id = 'w1'` });
  await apply(store, creation("r", { claimed: true }));
  await holder.query({ text: "rollback" });
});

it("P22 a fence that cannot have its rows gives up, and is tried again", async () => {
  const holder = await connect();
  await holder.query({ text: `begin; select 1 from ${SCHEMA}.fences where worker = 'w1' for key share` });
  await expect(other.fence({ workers: ["w1"] })).rejects.toMatchObject({ code: "storage_unavailable" });
  await holder.query({ text: "rollback" });
  await other.fence({ workers: ["w1"] });
  expect((await other.workers()).map(({ id }) => id)).toEqual(["w2"]);
});

it("P15 I8 a worker that was registered on another server writes, claims and renews nothing", async () => {
  await apply(store, creation("r", { claimed: true }), creation("free"));
  await admin.query({ text: `update ${SCHEMA}.fences set server = server - interval '1 second' where worker = 'w1'` });
  expect(await one(store, "w1", appending("r", 1))).toMatchObject({ why: "fenced" });
  expect(await store.heartbeat("w1")).toMatchObject({ alive: false });
  const handles = [{ workflow: "order", version: "1.0.0" }];
  expect(await store.claim({ worker: "w1", handles, limit: 9, suspect: true })).toEqual([]);
  expect(await store.take("w1", "r")).toBe(null);
  // Fencing itself is how it comes back, with its runs.
  const { moved } = await store.fence({ workers: ["w1"], successor: newWorker("w1b") });
  expect(moved.map(({ run, head }) => [run, head])).toEqual([["r", 1]]);
  expect(await one(store, "w1b", appending("r", 1))).toMatchObject({ kind: "applied" });
});

it("P15 P16 P17 I3 a position that was written through another connection conflicts, also in a run known here, and hurts no neighbour", async () => {
  await apply(store, creation("r", { claimed: true }), creation("neighbour", { claimed: true }));
  await apply(other, appending("r", 1));
  const [first] = await store.journal("r", { from: 1 });
  const runs = [appending("r", 1, 2), appending("neighbour", 1)];
  expect(await store.commit({ worker: "w1", runs })).toEqual([
    { run: "r", kind: "conflict", head: 2 },
    { run: "neighbour", kind: "applied" },
  ]);
  expect(await store.journal("r", { from: 1 })).toEqual([first]);
});

it("P29 what had to wait carries the time at which it was done, not that at which it was asked for", async () => {
  const fencing = await connect();
  await fencing.query({ text: `begin; select 1 from ${SCHEMA}.fences where worker = 'w1' for update` });
  const created = one(store, "w1", creation("r"));
  await untilWaiting(1);
  const text = "select floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now from pg_sleep(0.005)";
  const meanwhile = (await admin.query({ text })).rows[0]?.["now"];
  await fencing.query({ text: "rollback" });
  expect(await created).toMatchObject({ kind: "applied" });
  expect((await store.run("r"))?.createdAt).toBeGreaterThanOrEqual(meanwhile as number);
});

it("I7 TX1 the last statement of a transaction is refused in any other one", async () => {
  const rest = Array.from({ length: 18 }, () => "null").join(", ");
  const last = (token: string) => admin.query({ text: `select ${SCHEMA}.transact_1('${token}', ${rest})` });
  await admin.query({ text: "begin; select set_config('pawl.transaction', 'mine', true)" });
  await expect(last("another")).rejects.toMatchObject({ code: "PAWL3" });
  await admin.query({ text: "rollback" });
  await expect(last("mine")).rejects.toMatchObject({ code: "PAWL3" });
});

it("P18 I10 I11 a message that races with a suspension is never slept through", async () => {
  for (let i = 0; i < ROUNDS; i++) {
    await apply(store, creation(`r${i}`, { claimed: true }));
    const wait = { open: { key: "signal:s", kind: "signal" as const, name: "s", due: null, detail: null } };
    const [verdict] = await Promise.all([
      one(store, "w1", suspending(`r${i}`, 1, { ifWake: 0, waits: [wait] })),
      other.deliver(signal(`r${i}`, "m")),
    ]);
    const row = await store.run(`r${i}`);
    if (verdict.kind === "applied") expect(row).toMatchObject({ owner: null, readyAt: expect.any(Number), wake: 1 });
    else expect([verdict, row]).toMatchObject([{ why: "wake" }, { owner: "w1", wake: 1 }]);
  }
});

it("P24 messages between runs of two workers, in crossing orders, wait for each other and never stop each other", async () => {
  const ids = Array.from({ length: 6 }, (_, i) => i);
  await apply(store, ...ids.map((i) => creation(`a${i}`, { claimed: true })));
  const before = await deadlocks();
  await other.commit({ worker: "w2", runs: ids.map((i) => creation(`b${i}`, { claimed: true })) });
  const batch = (own: string, their: string, round: number): RunCommit[] =>
    ids.map((i) => ({
      ...appending(`${own}${i}`, 1 + round),
      messages: [signal(`${their}${5 - i}`, `m${round}-${i}`), signal(`${their}${i}`, `n${round}-${i}`)],
    }));
  for (let round = 0; round < ROUNDS; round++) {
    const verdicts = await Promise.all([
      store.commit({ worker: "w1", runs: batch("a", "b", round) }),
      other.commit({ worker: "w2", runs: batch("b", "a", round) }),
    ]);
    expect(new Set(verdicts.flat().map(({ kind }) => kind))).toEqual(new Set(["applied"]));
  }
  expect(await deadlocks()).toBe(before);
  for (const i of ids) expect(await store.inbox(`a${i}`)).toHaveLength(2 * ROUNDS);
});

it("I8 I17 B2 claims of two workers at once share what there is, and nothing goes to both", async () => {
  await apply(store, ...Array.from({ length: 60 }, (_, i) => creation(`r${i}`)));
  const handles = [{ workflow: "order", version: "1.0.0" }];
  const claimed = await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      i % 2 === 0
        ? store.claim({ worker: "w1", handles, limit: 5, suspect: true })
        : other.claim({ worker: "w2", handles, limit: 5, suspect: true }),
    ),
  );
  const ids = claimed.flat().map(({ run }) => run);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toHaveLength(60);
});

it("I17 B27 B29 of many starts with one key at once one is made, and all others are told which", async () => {
  const starts = Array.from({ length: 30 }, (_, i) => ({
    ...creation(`s${i}`),
    keys: [{ space: "start", key: "once", digest: "d" }],
  }));
  const verdicts = await Promise.all(
    starts.map((part, i) => (i % 2 === 0 ? store : other).commit({ worker: null, runs: [part] })),
  );
  const applied = verdicts.flat().filter(({ kind }) => kind === "applied");
  expect(applied).toHaveLength(1);
  const holder = { run: applied[0]?.run, digest: "d" };
  for (const verdict of verdicts.flat())
    if (verdict.kind !== "applied") expect(verdict).toMatchObject({ why: "key", holder });
  expect(await store.runs({ limit: 99 })).toHaveLength(1);
});

it("I18 a counter never passes its limit, however many ask at once", async () => {
  await apply(store, ...Array.from({ length: 20 }, (_, i) => creation(`r${i}`, { claimed: true })));
  const counters = [{ key: "slots", by: 1, max: 5, held: true }];
  const verdicts = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      one(i % 2 === 0 ? store : other, "w1", appending(`r${i}`, 1, 1, { counters })),
    ),
  );
  expect(verdicts.filter(({ kind }) => kind === "applied")).toHaveLength(5);
  expect(await store.counters("")).toEqual([{ key: "slots", value: 5 }]);
});

it("P15 P21 C1 runs, children and signals spread over four lanes end as over one", async () => {
  const child = workflow("child", async (ctx, value: number) => ctx.step("double", () => 2 * value));
  const parent = workflow("parent", async (ctx, value: number) => {
    const doubled = await ctx.call(child, value);
    const word = await ctx.waitFor<string>("go");
    return `${word} ${doubled}`;
  });
  const lanes = postgresStore(inject("postgresUrl"), { schema: SCHEMA, lanes: 4 });
  const pawl = await Pawl.open(lanes, { workflows: [parent, child], handleSignals: false });
  const runs = await Promise.all(Array.from({ length: 40 }, (_, i) => pawl.start(parent, i)));
  await Promise.all(runs.map((run, i) => run.signal("go", `run ${i}`)));
  const results = await Promise.all(runs.map((run) => run.result()));
  expect(results).toEqual(runs.map((_, i) => `run ${i} ${2 * i}`));
  expect(await store.orphans()).toEqual([]);
  await pawl.close();
});

it("P24 commits that change the same counters in another order wait for each other and do not deadlock", async () => {
  const change = (key: string) => ({ key, of: "r", by: 1, max: null, held: false });
  const inOrder = ["a", "b", "c", "d"].map(change);
  await apply(store, { ...creation("r", { claimed: true }), counters: inOrder }, creation("s", { claimed: true }));
  const before = await deadlocks();
  const holder = await connect();
  await holder.query({
    text: `begin; select 1 from ${SCHEMA}.counters where key in ('of/r/b', 'of/r/c') for update`,
  });
  const first = one(store, "w1", appending("r", 1, 1, { counters: inOrder }));
  await untilWaiting(1);
  const second = one(other, "w1", appending("s", 1, 1, { counters: inOrder.toReversed() }));
  await untilWaiting(2);
  await holder.query({ text: "commit" });
  expect([await first, await second].map(({ kind }) => kind)).toEqual(["applied", "applied"]);
  expect((await store.counters("of/r/")).map(({ value }) => value)).toEqual([3, 3, 3, 3]);
  expect(await deadlocks()).toBe(before);
});
