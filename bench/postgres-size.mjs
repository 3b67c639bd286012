// What runs take of a PostgreSQL database, and what idle workers ask of it: the figures of docs/scaling.md.
//
//   node bench/postgres-size.mjs [--runs 2000] [--value 100] [--workers 4] [--seconds 30]
//
// Two kinds of runs, with 1 step and with 11, give what a run takes and what a step adds: bytes of tables and indexes, rows,
// and bytes of the write-ahead log. Then so many idle workers stand by, and the transactions that they cause are counted.
// Sizes hardly depend on how busy the machine is, nor does what is counted.

import { Pawl, postgresStore, workflow } from "pawl";
import { openPostgres } from "../scripts/postgres-server.mjs";
import { readOptions } from "../scripts/read-options.mjs";

const values = readOptions(import.meta.url, {
  runs: { type: "string", default: "2000" },
  value: { type: "string", default: "100" },
  workers: { type: "string", default: "4" },
  seconds: { type: "string", default: "30" },
});
const [runs, valueBytes, workers, seconds] = ["runs", "value", "workers", "seconds"].map((name) =>
  Number(values[name]),
);

const result = "x".repeat(valueBytes);
const job = workflow("job", async (ctx, steps) => {
  for (let i = 0; i < steps; i++) await ctx.step("work", () => result);
  return result;
});

const { default: pg } = await import("pg");
const server = await openPostgres();
const client = new pg.Client({ connectionString: server.url });
await client.connect();
const ask = async (text) => (await client.query(text)).rows[0];

/** Bytes of a schema's tables with their indexes, rows of its tables, and where the log stands. */
async function look(schema) {
  await client.query(`vacuum analyze`);
  const { rows } = await client.query(
    `select regexp_replace(relname, '^journal_.*', 'journal') as name, sum(pg_table_size(c.oid))::float8 as heap,
       sum(pg_indexes_size(c.oid))::float8 as indexes, sum(greatest(reltuples, 0))::float8 as rows
     from pg_class c join pg_namespace n on n.oid = relnamespace where nspname = '${schema}' and relkind = 'r' group by 1 order by 1`,
  );
  return new Map(rows.map(({ name, ...facts }) => [name, facts]));
}

async function measure(steps) {
  const schema = `size_${steps}`;
  const pawl = await Pawl.open(postgresStore(server.url, { schema }), { workflows: [job] });
  const before = await look(schema);
  const { lsn } = await ask("select pg_current_wal_lsn() as lsn");
  const inFlight = 128;
  let next = 0;
  const one = async () => {
    while (next++ < runs) await pawl.run(job, steps);
  };
  await Promise.all(Array.from({ length: inFlight }, one));
  const { wal } = await ask(`select pg_wal_lsn_diff(pg_current_wal_lsn(), '${lsn}')::float8 as wal`);
  await pawl.close();
  const after = await look(schema);
  const tables = [...after].map(([name, { heap, indexes, rows }]) => {
    const was = before.get(name);
    return {
      name,
      heap: (heap - was.heap) / runs,
      indexes: (indexes - was.indexes) / runs,
      rows: (rows - was.rows) / runs,
    };
  });
  // Tables that got no rows only differ by what vacuum has made of them.
  const grown = tables.filter(({ rows }) => rows > 0.1);
  return { tables: new Map(grown.map(({ name, ...facts }) => [name, facts])), wal: wal / runs };
}

function report(small, large) {
  const line = (name, cells) => console.log(`${name.padEnd(28)}${cells.map((cell) => cell.padStart(10)).join("")}`);
  const row = (name, pick) => {
    const [one, eleven] = [pick(small), pick(large)];
    if (one === 0 && eleven === 0) return;
    line(
      name,
      [one, eleven, (eleven - one) / 10].map((figure) => figure.toFixed(figure < 10 ? 1 : 0)),
    );
  };
  line("per run", ["1 step", "11 steps", "a step"]);
  for (const name of large.tables.keys()) {
    row(`${name}: rows`, ({ tables }) => tables.get(name).rows);
    row(`${name}: table, bytes`, ({ tables }) => tables.get(name).heap);
    row(`${name}: indexes, bytes`, ({ tables }) => tables.get(name).indexes);
  }
  const total = ({ tables }) => [...tables.values()].reduce((sum, { heap, indexes }) => sum + heap + indexes, 0);
  row("all tables, bytes", total);
  row("write-ahead log, bytes", ({ wal }) => wal);
}

/** Transactions a second that idle workers cause, with nothing to do and nobody to hint. */
async function idle() {
  // A database of its own: what the sessions before have done may be counted late.
  await client.query("create database idle");
  const url = new URL(server.url);
  url.pathname = "/idle";
  const engines = [];
  for (let i = 0; i < workers; i++) engines.push(await Pawl.open(postgresStore(url.href), { workflows: [job] }));
  const count = async () => {
    // A session reports what it has done at most once a second.
    await new Promise((resolve) => setTimeout(resolve, 2000));
    return ask(
      `select xact_commit::float8 as transactions, (select count(*)::int from pg_stat_activity where datname = 'idle' and application_name = 'pawl') as connections,
         pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as wal, extract(epoch from clock_timestamp())::float8 as at
       from pg_stat_database where datname = 'idle'`,
    );
  };
  const before = await count();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const after = await count();
  const rate = (after.transactions - before.transactions) / (after.at - before.at) / workers;
  console.log(
    `\n${workers} idle workers: ${rate.toFixed(2)} transactions/s, ${((after.wal - before.wal) / (after.at - before.at) / workers).toFixed(0)} bytes/s of log ` +
      `and ${(after.connections / workers).toFixed(1)} connections each`,
  );
  await Promise.all(engines.map((engine) => engine.close()));
}

try {
  console.log(`${(await ask("select version()")).version}\n${runs} runs of each kind, values of ${valueBytes} bytes\n`);
  report(await measure(1), await measure(11));
  await idle();
} finally {
  await client.end();
  await server.stop();
}
process.exit();
