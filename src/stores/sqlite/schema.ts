// The schema and its history
// A migration is never edited once released: it is what some file out there has been through. Each runs in one transaction.
//
// Runs are keyed by a small integer `n` that never leaves the store; the journal is stored in (run, seq) order, so appending
// to a run and reading it are both one walk (P36). The indexes over runs are partial: a finished run is in none of the
// hot ones. A table says what it holds; the port says what it means.
import { PawlError } from "../../base/errors.ts";
import type { Database } from "./driver.ts";

/** "PAWL", where SQLite files carry the mark of their application. */
export const APPLICATION_ID = 0x5041574c;

export interface Migration {
  readonly version: number;
  readonly sql: string;
}

export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    sql: `
      create table runs (
        n integer primary key,
        id text not null unique,
        workflow text not null,
        version text not null,
        line text not null,
        patch integer not null,
        state text not null,
        trace_id text not null,
        key text,
        tags text not null,
        priority real not null,
        parent text,
        parent_key text,
        parent_generation integer,
        detached integer,
        origin text,
        created_at real not null,
        ended_at real,
        deadline real,
        head integer not null,
        head_hash text not null,
        owner text,
        ready_at real,
        wake_at real,
        wake integer not null default 0,
        cancel any,
        cancelling integer not null default 0,
        unread integer not null default 0,
        claims integer not null,
        claimed_head integer not null,
        stop_reason text,
        progress any,
        cost any,
        codec text not null
      ) strict;
      create index runs_ready on runs (priority desc, ready_at) where ready_at is not null and claims < 2;
      create index runs_suspect on runs (priority desc, ready_at) where ready_at is not null and claims >= 2;
      create index runs_wake on runs (wake_at) where wake_at is not null;
      create index runs_owner on runs (owner) where owner is not null;
      create index runs_news on runs (owner)
        where owner is not null and (unread > 0 or (cancel is not null and cancelling = 0));
      create index runs_unarmed on runs (n)
        where owner is null and ready_at is null and wake_at is null
        and state not in ('parked', 'succeeded', 'failed', 'cancelled');
      create index runs_workflow on runs (workflow);
      create index runs_state on runs (state) where state <> 'succeeded';
      create index runs_parent on runs (parent, parent_key) where parent is not null;
      create index runs_ended on runs (ended_at) where ended_at is not null;

      create table journal (
        run integer not null,
        seq integer not null,
        at real not null,
        type text not null,
        key text,
        data any,
        hash text not null,
        primary key (run, seq)
      ) strict, without rowid;

      create table inbox (
        run integer not null,
        n integer not null,
        id text not null,
        kind text not null,
        name text not null,
        data any,
        at real not null,
        consumed integer not null default 0,
        primary key (run, n),
        unique (run, id)
      ) strict, without rowid;
      create index inbox_unread on inbox (run, n) where consumed = 0;

      create table waits (
        run integer not null,
        key text not null,
        kind text not null,
        name text not null,
        due real,
        detail any,
        primary key (run, key)
      ) strict, without rowid;
      create index waits_asked on waits (kind) where kind in ('approval', 'decision');

      create table state (
        run integer not null,
        key text not null,
        data any not null,
        primary key (run, key)
      ) strict, without rowid;

      create table tags (
        tag text not null,
        run integer not null,
        primary key (tag, run)
      ) strict, without rowid;

      create table keys (
        space text not null,
        key text not null,
        run integer not null,
        digest text not null,
        primary key (space, key)
      ) strict, without rowid;
      create index keys_run on keys (run);

      create table counters (
        key text primary key,
        value real not null
      ) strict, without rowid;

      create table holds (
        run integer not null,
        key text not null,
        amount real not null,
        primary key (run, key)
      ) strict, without rowid;

      create table workers (
        id text primary key,
        name text not null,
        pid integer not null,
        process_started text,
        boot text not null,
        pid_namespace text,
        handles text not null,
        started_at real not null,
        lease_ms real not null,
        renewed_at real not null
      ) strict, without rowid;
    `,
  },
  {
    // Slots and rates. A run that needs a slot is in none of the indexes of the others; both columns are empty where nothing is needed.
    version: 2,
    sql: `
      alter table runs add column slot text not null default '';
      alter table runs add column rate text not null default '';
      drop index runs_ready;
      drop index runs_suspect;
      create index runs_ready on runs (priority desc, ready_at) where ready_at is not null and claims < 2 and slot = '';
      create index runs_suspect on runs (priority desc, ready_at) where ready_at is not null and claims >= 2 and slot = '';
      create index runs_lines on runs (slot, rate, priority desc, ready_at) where ready_at is not null and slot <> '';
      create index runs_lined_suspects on runs (slot, rate, priority desc, ready_at)
        where ready_at is not null and slot <> '' and claims >= 2;
      create index runs_slots on runs (slot) where owner is not null and slot <> '';

      create table starts (
        rate text not null,
        until real not null,
        run integer not null,
        at real not null,
        primary key (rate, until, run)
      ) strict, without rowid;
      create index starts_until on starts (until);
    `,
  },
  {
    // Which versions runs have that nobody owns. Those that are claimed on the spot and end without a wait are never in it.
    version: 3,
    sql: `
      create index runs_unclaimed on runs (workflow, line, patch)
        where owner is null and state not in ('parked', 'succeeded', 'failed', 'cancelled');
    `,
  },
  {
    // What steps emit: chunks by the entry that began their attempt. One without data closes its stream.
    version: 4,
    sql: `
      create table chunks (
        run integer not null,
        start text not null,
        n integer not null,
        data any,
        primary key (run, start, n)
      ) strict, without rowid;
    `,
  },
  {
    // For operators: runs that retention leaves alone, the audit log with how far it has come, what workers say of workflows,
    // searches by key, and counts, which must not read rows.
    version: 5,
    sql: `
      create table kept (
        run integer primary key,
        who text not null,
        why text not null,
        at real not null
      ) strict;

      create table audits (
        n integer primary key,
        at real not null,
        who text not null,
        action text not null,
        subject text,
        origin text,
        outcome text not null,
        payload text,
        detail text,
        hash text not null
      ) strict;
      create table audit_head (
        one integer primary key check (one = 1),
        n integer not null,
        hash text not null
      ) strict;
      insert into audit_head (one, n, hash) values (1, 0, '');

      create table workflows (
        name text not null,
        version text not null,
        facts text not null,
        at real not null,
        primary key (name, version)
      ) strict, without rowid;

      create index runs_key on runs (key) where key is not null;
      create index runs_counted on runs (workflow, state);
    `,
  },
  {
    // A process of an older release that has had the file open goes on, and its purges do not look at holds: what is held does not go with them, and all
    // else does. Nothing but a purge deletes from these tables, except counters that have come down to nothing.
    version: 6,
    sql: `
      create trigger kept_runs before delete on runs when exists (select 1 from kept where run = old.n)
        begin select raise(ignore); end;
      create trigger kept_journal before delete on journal when exists (select 1 from kept where run = old.run)
        begin select raise(ignore); end;
      create trigger kept_state before delete on state when exists (select 1 from kept where run = old.run)
        begin select raise(ignore); end;
      create trigger kept_keys before delete on keys when exists (select 1 from kept where run = old.run)
        begin select raise(ignore); end;
      create trigger kept_tags before delete on tags when exists (select 1 from kept where run = old.run)
        begin select raise(ignore); end;
      create trigger kept_chunks before delete on chunks when exists (select 1 from kept where run = old.run)
        begin select raise(ignore); end;
      create trigger kept_counters before delete on counters when old.value <> 0 and old.key glob 'of/*' and exists (
          select 1 from runs join kept on kept.run = runs.n where runs.id = substr(old.key, 4, instr(substr(old.key, 4), '/') - 1))
        begin select raise(ignore); end;
    `,
  },
];

export const LATEST_SCHEMA: number = MIGRATIONS.at(-1)?.version ?? 0;

/** Refuses a file that belongs to something else, before anything in it is changed. An empty one may become ours. */
export function checkFile(db: Database, path: string): void {
  if (mayBeOurs(db)) return;
  throw new PawlError(
    "not_a_store",
    `${path} is a SQLite database, but not one of Pawl. Give Pawl a path of its own; nothing was changed.`,
    { fields: { path } },
  );
}

// In one snapshot: another process may be making it ours at this very moment.
function mayBeOurs(db: Database): boolean {
  db.exec("begin");
  try {
    const application = numberOf(db, "pragma application_id");
    if (application === APPLICATION_ID) return true;
    const isEmpty = numberOf(db, "select count(*) from sqlite_schema") === 0;
    return isEmpty && application === 0 && numberOf(db, "pragma user_version") === 0;
  } finally {
    if (db.isTransaction) db.exec("rollback");
  }
}

/** Brings the file up to the newest schema, one transaction per step, or refuses one that is newer than this Pawl. */
export function migrate(db: Database, path: string, migrations: readonly Migration[] = MIGRATIONS): void {
  const latest = migrations.at(-1)?.version ?? 0;
  const found = schemaVersion(db);
  if (found > latest) throw newerSchema(path, found, latest);
  for (const migration of migrations) if (migration.version > found) step(db, migration);
}

// Another process may have taken the step since we looked, so the version is read again under the lock.
function step(db: Database, { version, sql }: Migration): void {
  db.exec("begin immediate");
  try {
    if (schemaVersion(db) < version) {
      db.exec(`pragma application_id = ${APPLICATION_ID}`);
      db.exec("create table if not exists meta (key text primary key, value text not null) strict, without rowid");
      db.exec(sql);
      db.prepare("insert or replace into meta (key, value) values ('schema_version', ?)").run(String(version));
    }
    db.exec("commit");
  } catch (error) {
    if (db.isTransaction) db.exec("rollback");
    throw error;
  }
}

export function schemaVersion(db: Database): number {
  const isThere = numberOf(db, "select count(*) from sqlite_schema where type = 'table' and name = 'meta'") === 1;
  return isThere ? numberOf(db, "select cast(value as integer) from meta where key = 'schema_version'") : 0;
}

function newerSchema(path: string, found: number, latest: number): PawlError {
  return new PawlError(
    "newer_schema",
    `The database ${path} has schema ${found}, written by a newer Pawl; this one knows schema ${latest}. Upgrade Pawl here. Nothing was changed.`,
    { fields: { path, found, known: latest } },
  );
}

function numberOf(db: Database, sql: string): number {
  return Number(Object.values(db.prepare(sql).get() ?? {})[0] ?? 0);
}
