// The commit: the hot path
// One transaction for all runs of a commit. A run's part is checked, then written; the parts follow each other, so a run that
// receives a message from one before it in the same commit is refused its suspension, and one that receives it after
// having let go becomes claimable (P24).
//
//   K1. The worker's row is looked for once, inside the transaction: no row, no write (ST1).
//   K2. An error that only one run can have caused must not hurt its neighbours (P16). A savepoint for each run would cost every
//       commit; instead the whole is rolled back and done again with savepoints, and the culprit's verdict carries the error.
import type { Clock } from "../../base/clock.ts";
import type { Commit, NewChild, NewRun, RowPatch, RunCommit, Verdict } from "../../core/store.ts";
import { commitFault } from "../commit-fault.ts";
import { type OwnedRun, type OwnedRuns, staysBare } from "../owned-runs.ts";
import {
  appendEntries,
  applyTables,
  consume,
  endRun,
  endUntouched,
  insertChild,
  insertRun,
  patchRow,
  sendMessages,
} from "./apply.ts";
import { findRun, readWake, whyNotConsumed, whyNotCounters, whyNotHere, whyNotKeys, whyNotNow } from "./conditions.ts";
import type { Connection } from "./connection.ts";
import { EntryRows } from "./entry-rows.ts";
import { isStorageFault, storageError } from "./storage-error.ts";

interface Batch {
  readonly db: Connection;
  readonly rows: EntryRows;
  readonly owned: OwnedRuns;
  readonly worker: string | null;
  readonly now: number;
  /** Looks before it writes, where the first attempt relies on the schema to refuse what is there already. */
  readonly isCareful: boolean;
}

/** One run's part broke the transaction: do it again with a savepoint for each. */
class BrokenPart extends Error {}

export function commit(db: Connection, owned: OwnedRuns, request: Commit, clock: Clock): Promise<Verdict[]> {
  const write = (commitPart: typeof commitRun, isCareful: boolean) => () => {
    const { worker, runs } = request;
    const batch = { db, rows: new EntryRows(db), owned, worker, now: clock.now(), isCareful };
    return commitParts(batch, runs, commitPart);
  };
  return db.write(write(commitOrBreak, false), (error) => {
    if (error instanceof BrokenPart) return write(commitOrFail, true);
    throw error;
  });
}

/** Commits one run's part inside a transaction that is open already. */
export function commitNow(
  db: Connection,
  owned: OwnedRuns,
  worker: string | null,
  part: RunCommit,
  clock: Clock,
): Verdict {
  const batch = { db, rows: new EntryRows(db), owned, worker, now: clock.now(), isCareful: true };
  const [verdict] = commitParts(batch, [part], commitOrFail);
  return verdict as Verdict;
}

function commitParts(batch: Batch, runs: readonly RunCommit[], commitPart: typeof commitRun): Verdict[] {
  const { db, owned, worker } = batch;
  if (worker !== null && !isRegistered(db, worker)) {
    owned.forgetAll();
    return runs.map(({ run }) => ({ run, kind: "refused", why: "fenced" }));
  }
  const verdicts = runs.map((part) => commitPart(batch, part));
  try {
    batch.rows.flush();
  } catch (error) {
    throw broken(error);
  }
  return verdicts;
}

const IS_REGISTERED = "select 1 from workers where id = ?";

export function isRegistered(db: Connection, worker: string): boolean {
  return db.statement(IS_REGISTERED).get(worker) !== undefined;
}

function commitOrBreak(batch: Batch, part: RunCommit): Verdict {
  try {
    return commitRun(batch, part);
  } catch (error) {
    throw broken(error);
  }
}

function broken(error: unknown): unknown {
  return isStorageFault(error) ? error : new BrokenPart("A run's part broke the transaction.", { cause: error });
}

function commitOrFail(batch: Batch, part: RunCommit): Verdict {
  const { db, owned } = batch;
  db.run("savepoint part");
  try {
    const verdict = commitRun(batch, part);
    batch.rows.flush();
    db.run("release part");
    return verdict;
  } catch (error) {
    if (isStorageFault(error)) throw error;
    owned.forgetAll();
    batch.rows.forget();
    db.run("rollback to part");
    db.run("release part");
    return { run: part.run, kind: "failed", error: storageError(error, db.path) };
  }
}

function commitRun(batch: Batch, part: RunCommit): Verdict {
  const fault = commitFault(part);
  if (fault !== null) return { run: part.run, kind: "failed", error: fault };
  const known = isPlain(part) ? batch.owned.find(part.run, batch.worker, part.head) : null;
  return known === null ? commitUnknown(batch, part) : commitKnown(batch, part, known);
}

/** Entries for an existing run. */
function isPlain({ entries, create }: RunCommit): boolean {
  return entries.length > 0 && create === undefined;
}

/** A run of ours whose head we know: of its row, only what may have come from outside needs to be read. */
function commitKnown(batch: Batch, part: RunCommit, known: OwnedRun): Verdict {
  const { db, rows, owned } = batch;
  if (known.isBare && isPlainEnd(part) && endUntouched(db, known.n, part.row as RowPatch)) {
    appendEntries(db, rows, known.n, part.entries);
    owned.forget(part.run);
    return { run: part.run, kind: "applied" };
  }
  const isConditional = part.ifNotCancelled === true || part.ifWake !== undefined || part.row?.ended === true;
  const now = isConditional ? readWake(db, known.n) : null;
  const refusal = (now === null ? null : whyNotNow(part, now)) ?? whyNotTables(db, part, known.n);
  if (refusal !== null) return refusal;
  const isBare = known.isBare && staysBare(part);
  apply(batch, part, { n: known.n, mayHaveMail: (now?.wake ?? 1) > 0, isBare });
  return { run: part.run, kind: "applied" };
}

/** An end that says nothing to anybody: most runs have one. */
function isPlainEnd(part: RunCommit): boolean {
  if (part.row?.ended !== true || part.ifWake !== undefined || part.waits !== undefined) return false;
  if (part.messages !== undefined || part.state !== undefined || part.children !== undefined) return false;
  return part.consumes === undefined && part.keys === undefined && part.counters === undefined;
}

function commitUnknown(batch: Batch, part: RunCommit): Verdict {
  const { db, rows, worker, isCareful } = batch;
  const mustLook = isCareful || !isPlainCreation(part);
  // A part before this one may have been the same run's.
  if (mustLook) rows.flush();
  const found = mustLook ? findRun(db, part.run) : null;
  const refusal =
    whyNotHere(db, worker, part, found) ?? whyNotNow(part, found) ?? whyNotTables(db, part, found?.n ?? null);
  if (refusal !== null) return refusal;
  const isBare = found === null && staysBare(part);
  apply(batch, part, { n: found?.n ?? null, mayHaveMail: (found?.wake ?? 0) > 0, isBare });
  return { run: part.run, kind: "applied" };
}

/** Whether nothing but an existing run of that id could speak against it: the schema finds that out by itself. */
function isPlainCreation({ create, keys, counters, consumes, ifWake, ifNotCancelled }: RunCommit): boolean {
  const isConditional = keys !== undefined || counters !== undefined || consumes !== undefined;
  return create !== undefined && !isConditional && ifWake === undefined && ifNotCancelled === undefined;
}

function whyNotTables(db: Connection, part: RunCommit, n: number | null): Verdict | null {
  if (part.consumes === undefined && part.keys === undefined && part.counters === undefined) return null;
  return whyNotConsumed(db, part, n) ?? whyNotKeys(db, part) ?? whyNotCounters(db, part, n);
}

interface Target {
  /** `null` for a run that this part creates. */
  readonly n: number | null;
  readonly mayHaveMail: boolean;
  readonly isBare: boolean;
}

function apply(batch: Batch, part: RunCommit, target: Target): void {
  const { db, rows, now, worker } = batch;
  const n = target.n ?? insertRun(db, rows, part.run, part.create as NewRun, worker, part.entries, now);
  if (target.n !== null) appendEntries(db, rows, n, part.entries);
  consume(db, n, part.consumes);
  applyTables(db, n, part);
  if (part.children !== undefined) for (const child of part.children) applyChild(batch, child);
  if (part.row !== undefined) patchRow(db, n, part.row, now);
  if (part.row?.ended === true && !(target.isBare && !target.mayHaveMail)) endRun(db, n, target.mayHaveMail);
  remember(batch, part, n, target.isBare);
  sendMessages(db, part, now);
}

function applyChild({ db, rows, owned, worker, now }: Batch, child: NewChild): void {
  const n = insertChild(db, rows, child, worker, now);
  if (n === null || !child.create.claimed || worker === null) return;
  owned.remember(child.run, { n, owner: worker, head: 1, isBare: true });
}

function remember({ owned, worker }: Batch, part: RunCommit, n: number, isBare: boolean): void {
  const isKept = part.create?.claimed !== false && part.row?.release !== true && part.row?.ended !== true;
  if (isKept && worker !== null) {
    owned.remember(part.run, { n, owner: worker, head: part.head + part.entries.length, isBare });
  } else owned.forget(part.run);
}
