// The SQLite store
// One file, any number of processes on one machine. Every method is one transaction on the one connection of this process.
import { dirname, join, resolve } from "node:path";
import { type Clock, systemClock } from "../../base/clock.ts";
import { PawlError } from "../../base/errors.ts";
import type { Store } from "../../core/store.ts";
import { folderName } from "../../files/folder-name.ts";
import { checkMessage } from "../commit-fault.ts";
import { checkAudit, checkFacts, checkHold, checkQuery } from "../operator-fault.ts";
import { OwnedRuns } from "../owned-runs.ts";
import { claim, nextWake, take } from "./claim.ts";
import { commit } from "./commit.ts";
import { holderOf } from "./conditions.ts";
import { Connection, type Durability, type FaultPoint } from "./connection.ts";
import { deliver } from "./deliver.ts";
import { Hints } from "./hints.ts";
import { backup, inspect } from "./inspect.ts";
import { Lines } from "./lines.ts";
import { addAudit, addFacts, addHold, auditHead, listAudits, listFacts, listHolds, removeHold } from "./operators.ts";
import { adopt, orphans } from "./orphans.ts";
import { Presence } from "./presence.ts";
import { purge } from "./purge.ts";
import { listCounters, listStateRows, listWaits, readInbox, readJournal, readRun } from "./queries.ts";
import { countRuns, listRuns } from "./run-queries.ts";
import { emit, readChunks } from "./streams.ts";
import { enlist, transact } from "./transact.ts";
import { listUnclaimed } from "./unclaimed.ts";
import { mailOfOwned, newsOf } from "./workers.ts";

export interface SqliteStoreOptions {
  readonly clock?: Clock;
  readonly leaseClock?: Clock;
  /** `"power"` (the default): what was acknowledged survives power loss. `"process"`: the last moments may be lost then. */
  readonly durability?: Durability;
  /** How long the file is left to other processes after each commit, while there are any (default 1 ms); 0 for tests that choose who is next. */
  readonly courtesyMs?: number;
  /** Throws the errors of a broken disk at the driver's boundary, for tests. */
  readonly fault?: (point: FaultPoint) => void;
}

/** A store in one SQLite file; its folder is created. Engines of one process may share it: the last one closes it. */
export function sqliteStore(file: string, options: SqliteStoreOptions = {}): Store {
  if (file === "" || file === ":memory:") throw noFile(file);
  const { clock = systemClock, leaseClock = systemClock, durability = "power", courtesyMs, fault } = options;
  const owned = new OwnedRuns();
  const connectionOptions = {
    durability,
    ...(courtesyMs !== undefined && { courtesyMs }),
    ...(fault !== undefined && { fault }),
  };
  const db = new Connection(resolve(file), connectionOptions, () => owned.forgetAll());
  const hints = new Hints(db, leaseClock);
  const presence = new Presence(db, owned, clock, leaseClock);
  const lines = new Lines(db);
  let users = 0;

  return {
    kind: "sqlite",
    clock,
    leaseClock,
    lanes: 1,
    files: { outputs: (run) => join(dirname(resolve(file)), "outputs", folderName(run)) },

    async open() {
      await db.open();
      users += 1;
    },
    async close() {
      users = Math.max(0, users - 1);
      if (users > 0) return;
      hints.stop();
      await presence.stopPulses();
      db.close();
    },

    register: (worker) => presence.register(worker),
    heartbeat: (worker) => presence.heartbeat(worker),
    ...(presence.hasPulse && {
      pulse: (worker: string, everyMs: number, stallMs: number) => presence.pulse(worker, everyMs, stallMs),
    }),
    workers: () => presence.workers(),
    owners: () => presence.owners(),
    fence: (request) => presence.fence(request),
    retire: (worker) => presence.retire(worker),

    claim: (request) => claim(db, owned, lines, request, clock),
    nextWake: () => db.read(() => nextWake(db, lines, clock.now())),
    take: (worker, run, { slotless } = {}) => take(db, owned, worker, run, slotless),
    owned: (worker, { news }) => db.snapshot(() => (news ? newsOf(db, worker) : mailOfOwned(db, worker))),

    commit: (request) => commit(db, owned, request, clock),
    async deliver(message) {
      checkMessage(message);
      return db.write(() => deliver(db, message, clock.now()));
    },

    emit: (chunks) => emit(db, chunks),
    chunks: (run, query) => db.snapshot(() => readChunks(db, run, query)),

    transactions: "synchronous",
    transact: (_request, work) => transact({ db, owned, clock, announce: () => hints.tell() }, work),
    enlist: (transaction, part) => enlist(db, transaction, part),

    run: (id) => db.read(() => readRun(db, id)),
    runs: (query) => db.snapshot(() => listRuns(db, query)),
    async counts(filter, bound) {
      checkQuery(filter);
      return db.snapshot(() => countRuns(db, filter, bound));
    },
    journal: (run, { from, limit } = {}) => db.read(() => readJournal(db, run, from, limit)),
    inbox: (run) => db.snapshot(() => readInbox(db, run)),
    waits: (query) => db.read(() => listWaits(db, query)),
    state: (run) => db.read(() => listStateRows(db, run)),
    key: (space, key) => db.read(() => holderOf(db, space, key)),
    counters: (prefix) => db.read(() => listCounters(db, prefix)),

    unclaimed: (query) => db.snapshot(() => listUnclaimed(db, query)),
    orphans: () => orphans(db),
    adopt: (runs) => db.write(() => adopt(db, runs, clock.now())),
    purge: (request) => db.write(() => purge(db, request, clock.now())),

    async hold(run, hold) {
      checkHold(run, hold);
      return db.write(() => addHold(db, run, hold, clock.now()));
    },
    releaseHold: (run) => db.write(() => removeHold(db, run)),
    holds: (query) => db.read(() => listHolds(db, query)),
    async record(entry) {
      checkAudit(entry);
      return db.write(() => addAudit(db, entry, clock.now()));
    },
    audits: (query) => db.read(() => listAudits(db, query)),
    auditHead: () => db.read(() => auditHead(db)),
    async describe(workflows) {
      checkFacts(workflows);
      await db.write(() => addFacts(db, workflows, clock.now()));
    },
    workflows: () => db.read(() => listFacts(db)),

    hints: (listener) => hints.listen(listener),
    inspect: ({ quick = false } = {}) => db.snapshot(() => inspect(db, quick)),
    backup: (copy) => backup(db, resolve(copy)),
  };
}

function noFile(path: string): PawlError {
  return new PawlError(
    "invalid_argument",
    `"${path}" is no path of a file. Give one, such as ".pawl/pawl.db"; a store without a file is memoryStore().`,
    { fields: { path } },
  );
}
