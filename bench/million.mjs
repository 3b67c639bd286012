// Lists, counts and searches over a million runs, as people who look ask for them.
//
//   node bench/million.mjs [--runs 1000000] [--store sqlite,postgres] [--limit 1000]
//
// The runs are made in SQL, which takes a minute or two. Each question is asked three times, and the slowest counts; it must take less than a
// second (--limit, in milliseconds). Nine of ten runs have succeeded, one in 33 waits, one in 20 has failed; 20 workflows, of which one has half of
// all runs; every other run has a key; each has a tag that all have and one that a thousandth has.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Pawl, postgresStore, sqliteStore } from "pawl";
import { openPostgres } from "../scripts/postgres-server.mjs";

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "1000000" },
    store: { type: "string", default: "sqlite,postgres" },
    limit: { type: "string", default: "1000" },
  },
});
const [runs, limitMs] = [Number(values.runs), Number(values.limit)];

const WORKFLOW = "'w' || case when i % 2 = 0 then 0 else i % 20 end";
const STATE = `case when i % 20 = 7 then 'failed' when i % 33 = 5 then 'waiting' when i % 100 = 3 then 'running'
  when i % 100 = 9 then 'cancelled' when i % 1000 = 11 then 'parked' else 'succeeded' end`;
const ENDED = `case when (${STATE}) in ('succeeded', 'failed', 'cancelled') then 1e12 + i end`;
const COLUMNS = `n, id, workflow, version, line, patch, state, trace_id, key, tags, priority, created_at, ended_at, head, head_hash,
  wake_at, claims, claimed_head, codec`;
const row = (
  id,
  tags,
) => `i, ${id}, ${WORKFLOW}, '1.0.0', '1.0', 0, ${STATE}, 't' || i, case when i % 2 = 0 then 'order-' || i end, ${tags},
  0, 1e12 + i, ${ENDED}, 3, 'h', case when (${STATE}) = 'waiting' then 9e15 end, 0, 3, 'json'`;

const QUESTIONS = {
  "first page": (pawl) => pawl.list(),
  "page by workflow": (pawl) => pawl.list({ workflow: "w7" }),
  "page by status": (pawl) => pawl.list({ status: "failed" }),
  "page by workflow and status": (pawl) => pawl.list({ workflow: "w0", status: "cancelled" }),
  "page by a rare tag": (pawl) => pawl.list({ tag: "t17" }),
  "page by a tag of all": (pawl) => pawl.list({ tag: "all" }),
  "counts of all": (pawl) => pawl.operations.count(),
  "counts of a workflow": (pawl) => pawl.operations.count({ workflow: "w3" }),
  "counts of half of all": (pawl) => pawl.operations.count({ workflow: "w0" }),
  "counts of a rare tag": (pawl) => pawl.operations.count({ tag: "t17" }),
  "search: one id": (pawl) => pawl.list({ search: "00000000000000000000000000065432" }),
  "search: a key": (pawl) => pawl.list({ search: "order-9998" }),
  "search: keys of half of all": (pawl) => pawl.list({ search: "order-" }),
  "search: a workflow": (pawl) => pawl.list({ search: "w1" }),
  "search: ids of all": (pawl) => pawl.list({ search: "0" }),
  "search: a tag": (pawl) => pawl.list({ search: "t99" }),
  "search: nothing": (pawl) => pawl.list({ search: "zzz" }),
  "search with a status": (pawl) => pawl.list({ search: "order-1", status: "waiting" }),
  "search, counted": (pawl) => pawl.operations.count({ search: "order-12" }),
};

async function sqlite() {
  const folder = mkdtempSync(join(tmpdir(), "pawl-million-"));
  const file = join(folder, "pawl.db");
  await (await Pawl.open(sqliteStore(file))).close();
  const { DatabaseSync } = await import("node:sqlite").catch(() => import("@photostructure/sqlite"));
  const db = new DatabaseSync(file);
  db.exec("pragma synchronous = off");
  const series = `with recursive s(i) as (select 1 union all select i + 1 from s where i < ${runs})`;
  db.exec(`begin; insert into runs (${COLUMNS}) ${series}
    select ${row("printf('%032d', i)", `'["all","t' || (i % 1000) || '"]'`)} from s;
    insert into tags (tag, run) ${series} select 'all', i from s;
    insert into tags (tag, run) ${series} select 't' || (i % 1000), i from s; commit`);
  db.close();
  return { store: sqliteStore(file), leave: async () => rmSync(folder, { recursive: true, force: true }) };
}

async function postgres() {
  const server = await openPostgres();
  await (await Pawl.open(postgresStore(server.url))).close();
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  const tags = `array['all', 't' || (i % 1000)]`;
  await client.query(`insert into pawl.runs (${COLUMNS}) select ${row("lpad(i::text, 32, '0')", tags)} from generate_series(1, ${runs}) as i;
    insert into pawl.tags (tag, run) select unnest(tags), n from pawl.runs`);
  await client.query("vacuum analyze");
  await client.end();
  return { store: postgresStore(server.url), leave: () => server.stop() };
}

const OPEN = { sqlite, postgres };
let isSlow = false;
for (const name of values.store.split(",")) {
  const { store, leave } = await OPEN[name]();
  const pawl = await Pawl.open(store);
  console.log(`${name}, ${runs} runs`);
  try {
    for (const [question, ask] of Object.entries(QUESTIONS)) {
      const times = [];
      for (let i = 0; i < 3; i++) {
        const began = performance.now();
        await ask(pawl);
        times.push(performance.now() - began);
      }
      const slowest = Math.max(...times);
      isSlow ||= slowest > limitMs;
      console.log(
        `  ${question.padEnd(30)} ${slowest.toFixed(0).padStart(6)} ms${slowest > limitMs ? "  too slow" : ""}`,
      );
    }
  } finally {
    await pawl.close();
    await leave();
  }
}
process.exit(isSlow ? 1 : 0);
