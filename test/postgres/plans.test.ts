// What runs often is found by an index, however many runs there are. The server itself says how it goes about it (auto_explain).
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { loadDriver, type PgClient, type PgValue } from "../../src/stores/postgres/driver.ts";
import { postgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { mailQuery } from "../../src/stores/postgres/rows.ts";
import { ownersQuery } from "../../src/stores/postgres/workers.ts";

const S = `plans_${process.pid}`;
const SLEEPING = 20_000;
const FINISHED = 20_000;
const READY = 500;

let client: PgClient;
const plans: string[] = [];

beforeAll(async () => {
  const url = inject("postgresUrl");
  const store = postgresStore(url, { schema: S });
  await store.open();
  await store.close();
  client = (await loadDriver()).client({ connectionString: url });
  client.on("notice", ({ message }) => plans.push(message));
  await client.connect();
  await client.query({ text: seed() });
  await client.query({
    text: `load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on;
      set client_min_messages = log`,
  });
}, 120_000);

afterAll(async () => {
  await client.query({ text: `set client_min_messages = error; drop schema ${S} cascade` });
  await client.end();
});

function seed(): string {
  const columns = `id, workflow, version, line, patch, state, trace_id, tags, priority, created_at, ended_at, head, head_hash, owner, ready_at,
    wake_at, claims, claimed_head, codec, parent, parent_key, parent_generation, detached`;
  const insert = (
    prefix: string,
    count: number,
    state: string,
    ended: string,
    owner: string,
    ready: string,
    wake: string,
  ) =>
    `insert into ${S}.runs (${columns}) select '${prefix}' || i, 'w' || i % 20, '1.0.0', '1.0', 0, '${state}', 't', '{}', 0, i, ${ended}, 3, 'h',
      ${owner}, ${ready}, ${wake}, 0, 0, 'json', 'p' || i, 'k', 0, false from generate_series(1, ${count}) as i;`;
  return `
    ${insert("asleep", SLEEPING, "waiting", "null", "null", "null", "1e13 + i")}
    ${insert("done", FINISHED, "succeeded", "i", "null", "null", "null")}
    ${insert("ready", READY, "accepted", "null", "null", "i", "null")}
    ${insert("owned", READY, "running", "null", "'w' || i % 5", "null", "null")}
    ${insert("lined", SLEEPING, "accepted", "null", "null", "i", "null")}
    update ${S}.runs set workflow = 'limited', slot = 'limited', rate = 'limited/r' || n % 3 where id like 'lined%';
    update ${S}.runs set owner = 'w0', state = 'running', ready_at = null where id = 'lined7';
    insert into ${S}.starts (rate, until, run, at) select 'limited/r' || i % 500, 1e6 + i, i, i from generate_series(1, 5000) as i;
    insert into ${S}.journal (run, seq, at, type, hash) select n, seq, 0, 'note', 'h' from ${S}.runs, generate_series(0, 2) as seq;
    insert into ${S}.inbox (run, n, id, kind, name, at) select n, i, 'm' || i, 'signal', 's', 0 from ${S}.runs, generate_series(1, 8) as i
      where ended_at is null;
    update ${S}.runs set unread = 1 where state = 'running' and n % 50 = 0;
    insert into ${S}.waits (run, key, kind, name) select n, 'signal:s', 'signal', 's' from ${S}.runs where state = 'waiting';
    insert into ${S}.state (run, key, data) select n, 'k', '1' from ${S}.runs;
    insert into ${S}.keys (space, key, run, digest) select 'start', id, n, 'd' from ${S}.runs;
    insert into ${S}.tags (tag, run) select 't' || n % 100, n from ${S}.runs;
    insert into ${S}.counters (key, value) select 'c' || i, 1 from generate_series(1, 5000) as i;
    insert into ${S}.holds (run, key, amount) select n, 'c1', 1 from ${S}.runs where state = 'waiting';
    insert into ${S}.workers (id, name, process, handles, started_at, lease_ms, renewed_at) select 'w' || i, 'n', '{}', '[]', 0, 1e15, 0
      from generate_series(0, 4) as i;
    insert into ${S}.fences (worker, lane, server) select 'w' || i, lane, pg_postmaster_start_time() from generate_series(0, 4) as i,
      generate_series(-1, 0) as lane;
    analyze;`;
}

/** The plans of everything that this statement did. */
async function plansOf(text: string, values: readonly PgValue[] = []): Promise<string> {
  plans.length = 0;
  await client.query({ text: "begin" });
  await client.query({ text, values });
  await client.query({ text: "rollback" });
  return plans.join("\n");
}

/** A claim of a worker that has these workflows, of which at most so many runs may be under way and begin. */
function claimAt(now: string, workflows: readonly string[], limit = "null"): string {
  const each = (value: string) => `array[${workflows.map(() => value).join(", ")}]`;
  const handles = `array[${workflows.map((name) => `'${name}'`).join(", ")}], ${each("'1.0'")}, ${each("0")}::bigint[]`;
  const limits = `${each(limit)}::float8[], ${each(limit)}::float8[], ${each("1000")}::float8[]`;
  return `select ${S}.claim_2('w1', ${now}, ${handles}, 10, true, ${limits}, '', '')`;
}

const document = (part: object) => JSON.stringify([part]);

const HOT: readonly (readonly [what: string, text: string, values: readonly PgValue[]])[] = [
  ["a claim", claimAt("0", ["w1", "w2"]), []],
  ["a claim that finds nothing", claimAt("0", ["nobody"]), []],
  ["a claim behind a slot that is full", claimAt("0", ["limited"], "1"), []],
  ["a claim of a line", claimAt("0", ["limited"], "2"), []],
  ["timers that are due", claimAt("1e13 + 100", ["w1"]), []],
  ["the next timer", `select ${S}.next_wake_1(0)`, []],
  ["a take", `select ${S}.take_2('w1', 'asleep77', false)`, []],
  ["the versions of runs that nobody owns", `select * from ${S}.unclaimed_1('{w1,w2,nobody}', 100)`, []],
  ["a delivery", `select ${S}.deliver_1('asleep9', 'new', 'signal', 's', '1', null, 0)`, []],
  ["a cancel", `select ${S}.deliver_1('asleep9', 'new', 'cancel', 's', '1', null, 0)`, []],
  [
    "the news of a worker",
    mailQuery(S, "owner = $1 and owner is not null and (unread > 0 or (cancel is not null and not cancelling))"),
    ["w1"],
  ],
  ["the runs of a worker", mailQuery(S, "owner = $1"), ["w1"]],
  [
    "an append",
    `select * from ${S}.commit_1('w1', 0, 0, array[(select n from ${S}.runs where id = 'owned1')], '{1}', '{3}', '{0}', '{note}', '{null}', '{1}',
      null, '{h}', null, null, null, null, null, null)`,
    [],
  ],
  [
    "an end",
    `select * from ${S}.commit_1('w1', 0, 0, array[(select n from ${S}.runs where id = 'owned6')], '{1}', '{3}', '{0}', '{note}', '{null}', '{1}',
      null, '{h}', null, json_build_array(json_build_object('part', 1, 'n', (select n from ${S}.runs where id = 'owned6'), 'state', 'succeeded',
      'head', 4, 'head_hash', 'h', 'claims', 0, 'ended_at', 1, 'stop_reason', 'completed'))::jsonb, null, null, null, null)`,
    [],
  ],
  [
    "a part of everything",
    `select * from ${S}.commit_1('w1', 0, 0, '{null}', '{1}', '{3}', '{0}', '{note}', '{null}', '{1}', null, '{h}', null, null, $1, null, '{1,1}', null)`,
    [
      document({
        part: 1,
        run: "owned11",
        head: 3,
        ifWake: 0,
        consumes: ["m1"],
        row: { state: "waiting", release: true, wakeAt: 5 },
        waits: [{ close: "x" }, { open: { key: "y", kind: "timer", name: "t", due: 5, detail: null } }],
        state: [{ key: "k", value: 1 }],
        keys: [{ space: "start", key: "fresh", digest: "d" }],
        counters: [
          { key: "c7", stored: "c7", by: 1, max: 9, held: true },
          { key: "c8", stored: "c8", by: 1, max: 0, held: false, of: "owned11", maxFrom: "c9", atLeast: true },
        ],
        locks: ["c7", "c8"],
        messages: [{ to: "asleep11", id: "child:x", kind: "child", name: "k", value: 2 }],
      }),
    ],
  ],
  [
    "an end with all that belongs to it",
    `select * from ${S}.commit_1('w1', 0, 0, '{null}', '{1}', '{3}', '{0}', '{note}', '{null}', '{1}', null, '{h}', null, null, $1, null, '{1}', null)`,
    [document({ part: 1, run: "owned16", head: 3, row: { state: "succeeded", ended: true } })],
  ],
  ["a run by its id", `select * from ${S}.runs where id = $1`, ["done5"]],
  [
    "a journal",
    `select * from ${S}.journal where run = (select n from ${S}.runs where id = $1) and seq >= 0 order by seq`,
    ["done5"],
  ],
  [
    "a key",
    `select runs.id from ${S}.keys join ${S}.runs on runs.n = keys.run where space = 'start' and keys.key = $1`,
    ["done5"],
  ],
  ["who owns how many", ownersQuery(S), []],
  ["what a dead worker leaves", `select ${S}.fence_1(array['w2'], true, null, 1, 0, 2e15)`, []],
];

// After five calls of a function PostgreSQL may keep a plan that fits any values, made without knowing them.
const KINDS = ["custom", "generic"] as const;

for (const [[what, text, values], kind] of HOT.flatMap((one) => KINDS.map((kind) => [one, kind] as const))) {
  it(`P36 I19 ${what} walks no table, with a ${kind} plan`, async () => {
    await client.query({ text: `set plan_cache_mode = force_${kind}_plan` });
    const told = await plansOf(text, values);
    expect(told).toContain("Index");
    // The partitions that are still empty are in a plan, but are never read.
    expect(
      told.match(/Seq Scan on (?:journal_0|runs|inbox|waits|state|keys|tags|counters|holds|starts).*/g) ?? [],
    ).toEqual([]);
  });
}
