// The bare limit
// Records what Pawl hands to its store, and writes the same rows again in a plain loop: same schema, same driver and settings, same
// commit boundaries, values already encoded, numbers of runs known in advance. It reads nothing and decides nothing.
//
//   B1. Only what was applied is written, and all of it: a change that this file does not know is an error, never left out.
//   B2. `assertSameRows` proves it: after both, the two databases hold the same rows.
//   B3. Compiling, opening and preparing happen before the clock starts, and both write the rows of a warm-up first: collecting garbage
//       between rounds throws compiled code away.
import { deepStrictEqual } from "node:assert/strict";
import { sqliteStore } from "pawl";
import { SYNCHRONOUS } from "../dist/stores/sqlite/connection.js";
import { loadDriver } from "../dist/stores/sqlite/driver.js";

const INSERT_ENTRY = "insert into journal (run, seq, at, type, key, data, hash) values (?, ?, ?, ?, ?, ?, ?)";
const INSERT_RUN = `insert into runs (n, id, workflow, version, line, patch, state, trace_id, key, tags, priority, created_at,
  deadline, head, head_hash, owner, claims, claimed_head, codec)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const OPEN_WAIT = "insert or replace into waits (run, key, kind, name, due, detail) values (?, ?, ?, ?, ?, ?)";
const CLOSE_WAIT = "delete from waits where run = ? and key = ?";

const COLUMNS = {
  state: "state",
  head: "head",
  headHash: "head_hash",
  readyAt: "ready_at",
  wakeAt: "wake_at",
  claims: "claims",
  endedAt: "ended_at",
  stopReason: "stop_reason",
};
const KNOWN_PARTS = new Set(["run", "head", "entries", "create", "row", "waits", "ifWake", "ifNotCancelled"]);
const KNOWN_FIELDS = new Set([...Object.keys(COLUMNS), "release", "ended"]);

/** A SQLite store and the list of what was committed to it, in order, as far as it was applied. */
export function recordingStore(file, options) {
  const store = sqliteStore(file, options);
  const commits = [];
  const commit = async (request) => {
    const verdicts = await store.commit(request);
    const runs = request.runs.filter((_, i) => verdicts[i].kind === "applied");
    if (runs.length > 0) commits.push({ worker: request.worker, runs });
    return verdicts;
  };
  return { store: { ...store, commit }, commits };
}

/**
 * Turns commits into row operations. `numbers` holds the runs that the database has already. With a `copy` number the same rows become
 * other runs, for bulk that is too large to be recorded.
 */
export function compileCommits(commits, numbers = new Map(), copy = 0) {
  const known = new Map(numbers);
  return commits.map(({ worker, runs }) => runs.flatMap((part) => compilePart(part, worker, known, copy)));
}

function compilePart(part, worker, known, copy) {
  refuseUnknown(Object.keys(part), KNOWN_PARTS);
  const isNew = part.create !== undefined;
  if (isNew) known.set(part.run, known.size + 1);
  const n = known.get(part.run) + copy * COPY_STRIDE;
  return [
    ...(isNew ? [insertRun(n, part, worker, copy)] : []),
    ...part.entries.map(({ seq, at, type, key, data, hash }) => [INSERT_ENTRY, [n, seq, at, type, key, data, hash]]),
    ...(part.waits ?? []).map((change) => changeWait(n, change)),
    ...(part.row === undefined ? [] : [updateRun(n, part.row)]),
  ];
}

const COPY_STRIDE = 1_000_000;

function insertRun(n, { run, create, entries }, worker, copy) {
  const { workflow, version, traceId, key, tags, priority, parent, origin, deadline, claimed, codec } = create;
  if (parent !== null || origin !== null || tags.length > 0 || !claimed)
    throw new Error("bare: only plain runs are known");
  const [major, minor, patch] = version.split(".").map(Number);
  const id = copy === 0 ? run : `${run.slice(0, -8)}${String(copy).padStart(8, "0")}`;
  const fixed = [id, workflow, version, `${major}.${minor}`, patch, "running", traceId, key, "[]", priority];
  const { at, hash } = entries.at(-1);
  return [INSERT_RUN, [n, ...fixed, at, deadline, entries.length, hash, worker, 1, entries.length, codec]];
}

function changeWait(n, change) {
  if (change.open === undefined) {
    if (change.close === undefined) throw new Error("bare: only waits that are opened or closed are known");
    return [CLOSE_WAIT, [n, change.close]];
  }
  const { key, kind, name, due, detail } = change.open;
  return [OPEN_WAIT, [n, key, kind, name, due, detail]];
}

function updateRun(n, row) {
  refuseUnknown(Object.keys(row), KNOWN_FIELDS);
  const fields = Object.keys(COLUMNS).filter((field) => row[field] !== undefined);
  const columns = fields.map((field) => `${COLUMNS[field]} = ?`);
  if (row.release || row.ended) columns.push("owner = null");
  return [`update runs set ${columns.join(", ")} where n = ?`, [...fields.map((field) => row[field]), n]];
}

function refuseUnknown(names, known) {
  const unknown = names.filter((name) => !known.has(name));
  if (unknown.length > 0) throw new Error(`bare: cannot write ${unknown.join(", ")}; teach bench/bare.mjs`);
}

/** A database that Pawl's own store has made, open with the settings of its durability "power". */
export async function openBare(file) {
  const store = sqliteStore(file);
  await store.open();
  await store.close();
  const db = loadDriver().open(file);
  for (const setting of ["busy_timeout = 0", `synchronous = ${SYNCHRONOUS.power}`, "mmap_size = 0"])
    db.exec(`pragma ${setting}`);
  return db;
}

/** Prepares everything; the function it returns writes one compiled commit. */
export function bareWriter(db, compiled) {
  const statements = new Map();
  for (const commit of compiled) {
    for (const [sql] of commit) if (!statements.has(sql)) statements.set(sql, db.prepare(sql));
  }
  const begin = db.prepare("begin immediate");
  const end = db.prepare("commit");
  return (commit) => {
    begin.run();
    for (const [sql, values] of commit) statements.get(sql).run(...values);
    end.run();
  };
}

/** Writes compiled commits into a fresh database; returns how long each took of those that follow the first `warmUp`. */
export async function timeBare(file, compiled, warmUp = 0) {
  const db = await openBare(file);
  const write = bareWriter(db, compiled);
  for (let i = 0; i < warmUp; i++) write(compiled[i]);
  const samples = new Float64Array(compiled.length);
  let last = performance.now();
  for (let i = warmUp; i < compiled.length; i++) {
    write(compiled[i]);
    const now = performance.now();
    samples[i] = now - last;
    last = now;
  }
  db.close();
  return samples.subarray(warmUp);
}

export function sum(samples) {
  return samples.reduce((total, sample) => total + sample, 0);
}

// `created_at` is the store's clock at its commit; no commit carries it.
const SAME = [
  "select * from journal order by run, seq",
  "select * from waits order by run, key",
  `select n, id, workflow, version, line, patch, state, trace_id, key, tags, priority, ended_at, deadline, head, head_hash, owner, ready_at,
    wake_at, wake, unread, claims, claimed_head, stop_reason, codec from runs order by n`,
];

/** Both databases must be closed, and Pawl's must have been left as it was committed. */
export function assertSameRows(pawlFile, bareFile) {
  const [pawl, bare] = [pawlFile, bareFile].map((file) => loadDriver().open(file));
  for (const sql of SAME) deepStrictEqual(rowsOf(bare, sql), rowsOf(pawl, sql), "the bare loop writes what Pawl wrote");
  pawl.close();
  bare.close();
}

export function rowsOf(db, sql, ...values) {
  return db
    .prepare(sql)
    .all(...values)
    .map((row) => ({ ...row }));
}

/** The number that the database gave to each of its runs. */
export function runNumbers(file) {
  const db = loadDriver().open(file);
  const numbers = new Map(rowsOf(db, "select id, n from runs").map(({ id, n }) => [id, n]));
  db.close();
  return numbers;
}
