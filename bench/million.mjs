// Lists, counts and searches over a million runs, as people who look ask for them.
//
//   node bench/million.mjs [--runs 1000000] [--store sqlite,postgres] [--limit 1000] [--keep folder]
//
// The runs are made in SQL, which takes a minute or two. With --keep they stay: SQLite's file in that folder, and PostgreSQL's schema
// `pawl_million` on the server of TEST_PG_URL. The next one with --keep finds them there. Each question is asked three times, and the slowest counts; it must take less than a
// second (--limit, in milliseconds). Nine of ten runs have succeeded, one in 33 waits, one in 20 has failed; 20 workflows, of which one has half of
// all runs; every other run has a key; each has a tag that all have and one that a thousandth has. Three runs have a workflow and a tag of their own.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pawl, postgresStore, sqliteStore } from "pawl";
import { openPostgres } from "../scripts/postgres-server.mjs";
import { readOptions } from "../scripts/read-options.mjs";

const values = readOptions(import.meta.url, {
  runs: { type: "string", default: "1000000" },
  store: { type: "string", default: "sqlite,postgres" },
  limit: { type: "string", default: "1000" },
  keep: { type: "string" },
});
const [runs, limitMs] = [Number(values.runs), Number(values.limit)];

const RARE = [3, Math.floor(runs / 2), runs - 1].join(", ");
const WORKFLOW = `case when i in (${RARE}) then 'rare' else 'w' || case when i % 2 = 0 then 0 else i % 20 end end`;
const TAG = `case when i in (${RARE}) then 'rare' else 't' || (i % 1000) end`;
const idOf = (i) => String(i).padStart(32, "0");
/** When a run began, as it is made here. */
const at = (i) => new Date(1e12 + i);
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

const count = (selection) => (pawl) => pawl.operations.count(selection);
const list = (query) => (pawl) => pawl.list(query);
const LAST = idOf(60);
const OLD = { after: at(runs * 0.1), before: at(runs * 0.1 + 1000) };

const QUESTIONS = {
  "first page": list({}),
  "page by workflow": list({ workflow: "w7" }),
  "page by status": list({ status: "failed" }),
  "page by workflow and status": list({ workflow: "w0", status: "cancelled" }),
  "page by a workflow without such a status": list({ workflow: "w1", status: "failed" }),
  "page by a rare workflow": list({ workflow: "rare" }),
  "page by a rare tag": list({ tag: "t17" }),
  "page by a tag of three": list({ tag: "rare" }),
  "page by a tag of all": list({ tag: "all" }),
  "page by a tag of all and a rare state": list({ tag: "all", state: "parked" }),
  "page by a tag and a workflow without it": list({ tag: "t17", workflow: "w0" }),
  "page by a tag of all and a rare workflow": list({ tag: "all", workflow: "rare" }),
  "page of a time long ago": list(OLD),
  "page of a time long ago, by status": list({ ...OLD, status: "failed" }),
  "last page": list({ cursor: LAST }),
  "last page by status": list({ status: "failed", cursor: LAST }),
  "last page of a tag of all": list({ tag: "all", cursor: LAST }),
  "last page of a search": list({ search: "order-", cursor: LAST }),
  "counts of all": count({}),
  "counts of a workflow": count({ workflow: "w3" }),
  "counts of half of all": count({ workflow: "w0" }),
  "counts of a rare tag": count({ tag: "t17" }),
  "counts of a tag of all": count({ tag: "all" }),
  "counts of a tag of all, by workflow": count({ tag: "all", workflow: "w3" }),
  "counts of a time long ago": count(OLD),
  "counts of most of the time": count({ after: at(runs * 0.1) }),
  "search: one id": list({ search: idOf(Math.floor(runs * 0.065432)) }),
  "search: a key": list({ search: "order-9998" }),
  "search: keys of half of all": list({ search: "order-" }),
  "search: a workflow": list({ search: "w1" }),
  "search: a workflow of three": list({ search: "rar" }),
  "search: ids of all": list({ search: "0" }),
  "search: a tag": list({ search: "t99" }),
  "search: nothing": list({ search: "zzz" }),
  "search: nothing, with a status": list({ search: "zzz", status: "failed" }),
  "search with a status": list({ search: "order-1", status: "waiting" }),
  "search of all with a rare state": list({ search: "0", state: "parked" }),
  "search with a workflow without it": list({ search: "order-", workflow: "w7" }),
  "search with a tag without it": list({ search: "order-", tag: "t17" }),
  "search with a status without it": list({ search: "order-", status: "failed" }),
  "search of old runs, succeeded": list({ search: "order-1", status: "succeeded" }),
  "search of a time long ago": list({ search: "0", ...OLD }),
  "search, counted": count({ search: "order-12" }),
  "search of half of all, counted": count({ search: "order-" }),
  "search of all, counted": count({ search: "0" }),
  "search with a status, counted": count({ search: "order-1", status: "waiting" }),
  "search without a match, counted": count({ search: "order-", status: "failed" }),
  "search with a workflow, counted": count({ search: "order-", workflow: "w7" }),
};

async function sqlite() {
  const folder = values.keep ?? mkdtempSync(join(tmpdir(), "pawl-million-"));
  const leave = async () => values.keep === undefined && rmSync(folder, { recursive: true, force: true });
  const file = join(folder, `pawl-${runs}.db`);
  const store = sqliteStore(file);
  if (existsSync(file)) return { store, leave };
  mkdirSync(folder, { recursive: true });
  await (await Pawl.open(sqliteStore(file))).close();
  const { DatabaseSync } = await import("node:sqlite").catch(() => import("@photostructure/sqlite"));
  const db = new DatabaseSync(file);
  db.exec("pragma synchronous = off");
  const series = `with recursive s(i) as (select 1 union all select i + 1 from s where i < ${runs})`;
  db.exec(`begin; insert into runs (${COLUMNS}) ${series}
    select ${row("printf('%032d', i)", `'["all","' || (${TAG}) || '"]'`)} from s;
    insert into tags (tag, run) ${series} select 'all', i from s;
    insert into tags (tag, run) ${series} select ${TAG}, i from s; commit`);
  db.close();
  return { store, leave };
}

async function postgres() {
  const server = await openPostgres();
  const schema = "pawl_million";
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  const store = postgresStore(server.url, { schema });
  const leave = async () => {
    if (values.keep === undefined) await client.query(`drop schema ${schema} cascade`);
    await client.end();
    await server.stop();
  };
  const { rows } = await client.query("select 1 from pg_namespace where nspname = $1", [schema]);
  if (rows.length > 0 && values.keep !== undefined) return { store, leave };
  await (await Pawl.open(postgresStore(server.url, { schema }))).close();
  await client.query(`insert into ${schema}.runs (${COLUMNS})
      select ${row("lpad(i::text, 32, '0')", `array['all', ${TAG}]`)} from generate_series(1, ${runs}) as i;
    insert into ${schema}.tags (tag, run) select unnest(tags), n from ${schema}.runs`);
  await client.query("vacuum analyze");
  return { store, leave };
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
      const [fastest, slowest] = [Math.min(...times), Math.max(...times)];
      isSlow ||= slowest > limitMs;
      const spread = `${fastest.toFixed(0).padStart(6)} to ${slowest.toFixed(0).padStart(6)} ms`;
      console.log(`  ${question.padEnd(40)} ${spread}${slowest > limitMs ? "  too slow" : ""}`);
    }
  } finally {
    await pawl.close();
    await leave();
  }
}
process.exit(isSlow ? 1 : 0);
