// What can be said about the file itself, and a copy of it.
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { PawlError } from "../../base/errors.ts";
import type { StoreReport } from "../../core/store.ts";
import { RUN_STATES } from "../../core/transition.ts";
import type { Connection } from "./connection.ts";
import { type LockHolder, lockHolders } from "./lock-holder.ts";
import { readHandles } from "./rows.ts";
import { isDamage } from "./storage-error.ts";

const SETTINGS = ["journal_mode", "synchronous", "mmap_size", "page_size", "page_count", "freelist_count"];
const SCHEMA = "select cast(value as integer) as version from meta where key = 'schema_version'";

const INTEGERS = ["n", "parent_generation", "head", "wake", "claims", "claimed_head"];
const REALS = ["priority", "created_at", "ended_at", "deadline", "ready_at", "wake_at"];
const BAD_TAGS = `(tags <> '[]' and case when json_valid(tags)
    then json_type(tags) <> 'array' or exists (select 1 from json_each(tags) where type <> 'text') else true end)`;
const DAMAGED_ROWS = `select id from runs where state not in (${RUN_STATES.map((state) => `'${state}'`).join(", ")})
  or ${BAD_TAGS} or version <> line || '.' || patch
  or unread <> (select count(*) from inbox where inbox.run = runs.n and consumed = 0)
  or (parent is not null and (parent_key is null or parent_generation is null))
  or ${INTEGERS.map((column) => `abs(cast(${column} as real)) > ${Number.MAX_SAFE_INTEGER}`).join(" or ")}
  or ${REALS.map((column) => `abs(${column}) > ${Number.MAX_VALUE}`).join(" or ")} limit 10`;
const WORKER_HANDLES = "select id, handles from workers order by id";

/** Must run inside one snapshot. Unless it is `quick`, it reads every page and takes its time on a large file. */
export function inspect(db: Connection, quick = false): StoreReport {
  const pragmas = SETTINGS.map((name) => [name, Object.values(db.get(`pragma ${name}`) ?? {})[0] as string | number]);
  const holders = lockHolders(db.path);
  const holder = holders.find(({ pid }) => pid !== process.pid);
  return {
    store: "sqlite",
    version: db.sqliteVersion,
    schema: db.get(SCHEMA)?.version as number,
    settings: {
      path: db.path,
      bytes: sizeOf(db.path),
      wal_bytes: sizeOf(`${db.path}-wal`),
      ...Object.fromEntries(pragmas),
      ...(holder === undefined ? {} : { write_lock_held_by: holder.pid }),
    },
    faults: [
      ...(quick ? [] : [...structuralFaults(db), ...rowFaults(db)]),
      ...workerFaults(db),
      ...lockFaults(holders),
    ],
  };
}

function structuralFaults(db: Connection): string[] {
  const found = damageOr(() => db.all("pragma quick_check(20)").map((row) => String(Object.values(row)[0])));
  return found.filter((line) => line !== "ok").map((line) => `The file is damaged: ${line}. Restore a backup.`);
}

/** What a check finds, or the damage that it stumbled over. */
function damageOr(check: () => string[]): string[] {
  try {
    return check();
  } catch (error) {
    if (!isDamage(error)) throw error;
    return [(error as Error).message];
  }
}

function rowFaults(db: Connection): string[] {
  return damageOr(() =>
    db.all(DAMAGED_ROWS).map((row) => `The row of run ${row.id} is damaged and will not be claimed. Restore a backup.`),
  );
}

function workerFaults(db: Connection): string[] {
  const damaged = db.all(WORKER_HANDLES).filter(({ handles }) => readHandles(handles) === null);
  return damaged.map(
    ({ id }) =>
      `The row of worker ${id} is damaged: it does not say which workflows it has. Restart that worker; its runs are safe.`,
  );
}

function lockFaults(holders: readonly LockHolder[]): string[] {
  return holders
    .filter(({ isStopped }) => isStopped)
    .map(
      ({ pid }) =>
        `Process ${pid} is stopped and holds the write lock: nobody can write. Continue it (kill -CONT ${pid}) or end it.`,
    );
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Writes a consistent copy while others go on working. It gets its name only when it is whole and on the disk: SQLite
 * syncs nothing here, and a copy that a crash cut short must not look like a backup.
 */
export async function backup(db: Connection, file: string): Promise<void> {
  if (existsSync(file)) {
    throw new PawlError(
      "invalid_argument",
      `The backup ${file} exists already. Give a new name; nothing was written.`,
      { fields: { file } },
    );
  }
  const unfinished = `${file}.unfinished`;
  mkdirSync(dirname(file), { recursive: true });
  rmSync(unfinished, { force: true });
  try {
    await db.read(() => db.run("vacuum into ?", unfinished));
    sync(unfinished);
    renameSync(unfinished, file);
    sync(dirname(file));
  } finally {
    rmSync(unfinished, { force: true });
  }
}

function sync(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
