// The file store
// One JSON document per run in a directory that one process at a time works on. It answers as the memory store does, whose tables it keeps; what a
// call has changed is written before its promise resolves. The rules are in `directory.ts`.
import { join, resolve } from "node:path";
import { type Clock, systemClock } from "../../base/clock.ts";
import { PawlError } from "../../base/errors.ts";
import { rateLimit } from "../../core/flow-control.ts";
import {
  type ClaimedRun,
  type ClaimRequest,
  type Delivery,
  type Hint,
  LONG_DEAD_MS,
  type Message,
  type OrphanRow,
  type RunCommit,
  type Store,
  type WorkerRow,
} from "../../core/store.ts";
import { checkMessage } from "../commit-fault.ts";
import { concernsOthers } from "../concerns-others.ts";
import { claim, dueRuns, mailOf, nextWake, takeOne } from "../memory/claim.ts";
import { holderOf } from "../memory/commit.ts";
import { deliver } from "../memory/deliver.ts";
import { adopt, orphans } from "../memory/orphans.ts";
import {
  countRuns,
  listCounters,
  listRuns,
  listState,
  listUnclaimed,
  listWaits,
  readJournal,
} from "../memory/queries.ts";
import { hasUnseenCancel, type MemoryRun, unreadOf } from "../memory/tables.ts";
import {
  fence,
  heartbeat,
  listOwners,
  listWorkers,
  type Moment,
  ownedBy,
  register,
  retire,
} from "../memory/workers.ts";
import { checkQuery } from "../operator-fault.ts";
import { assertStorable } from "../storable-text.ts";
import type { Batch } from "./batch.ts";
import { blockedError } from "./blocked.ts";
import { commit } from "./commit.ts";
import { Directory } from "./directory.ts";
import type { Durability, FaultPoint } from "./disk.ts";
import {
  acceptDocument,
  type Decider,
  type HeldDocument,
  heldDocuments,
  rebuildDocument,
  setAside,
  yieldKeys,
} from "./held-documents.ts";
import { Hints } from "./hints.ts";
import { blockedRun, type Holdings, shareOf, unreadableRun, viewOf } from "./holdings.ts";
import { backup, inspect } from "./inspect.ts";
import { OperatorFiles } from "./operator-files.ts";
import { operatorMethods } from "./operator-methods.ts";
import { purge } from "./purge.ts";
import { StreamFiles } from "./stream-files.ts";

export interface FileStoreOptions {
  /** Store time. */
  readonly clock?: Clock;
  /** What leases are counted on. */
  readonly leaseClock?: Clock;
  /** `"power"` (the default): what was acknowledged survives power loss. `"process"`: the last moments may be lost then. */
  readonly durability?: Durability;
  /** What becomes of runs that are past their retention: `"archive"` (the default) moves their folders to `archive/`. */
  readonly onPurge?: "archive" | "delete";
  /** Throws the errors of a broken disk where it is accessed, for tests. */
  readonly fault?: (point: FaultPoint, path: string) => void;
}

export interface FileStore extends Store {
  /** The directory. */
  readonly path: string;
  /** The folder of a run: its document, and whatever else belongs to it. */
  folderOf(run: string): string;
  /** Documents that somebody has changed by hand, and those that are damaged. Their runs are held. */
  heldDocuments(): Promise<HeldDocument[]>;
  /**
   * Takes an edited document over, if its journal is whole, and lets its run go on: as it stands, or with what `write` makes of the run, in the same
   * write. Returns it as it was found.
   */
  accept(run: string, who: Decider, write?: (run: ClaimedRun) => RunCommit): Promise<HeldDocument>;
  /** Writes the readable fields again from the journal, if that is whole; what stood there is in `quarantine/`. */
  rebuild(run: string, who: Decider): Promise<void>;
  /** Lets another run, which takes the place of one that is held, have its keys; until the documents are read again. */
  yieldKeys(run: string, who: Decider): Promise<void>;
  /** Moves the folder of a run that is held to `archive/`, as it is. */
  setAside(run: string, who: Decider): Promise<void>;
}

/** A store of JSON documents in a directory, one per run; it is created. One process at a time may write to it, any may read. */
export function fileStore(path: string, options: FileStoreOptions = {}): FileStore {
  if (path === "") throw noDirectory(path);
  const { clock = systemClock, durability = "power", fault } = options;
  const disk = { durability, ...(fault !== undefined && { fault }) };
  return storeOver(new Directory(resolve(path), disk, () => clock.now()), options);
}

/** A store over this directory. */
export function storeOver(directory: Directory, options: FileStoreOptions): FileStore {
  const { clock = systemClock, leaseClock = systemClock, onPurge = "archive" } = options;
  const hints = new Hints(() => directory.lock.isHeld && !directory.mail.isEmpty, leaseClock);
  const streams = new StreamFiles(directory);
  const operators = new OperatorFiles(directory);
  let users = 0;
  let boot: string | null = null;
  const moment = (): Moment => ({ now: clock.now(), monotonic: leaseClock.monotonic() });

  return {
    kind: "file",
    path: directory.path,
    clock,
    leaseClock,
    lanes: 1,
    files: { outputs: (run) => join(directory.folderOf(run), "outputs") },

    async open() {
      directory.check();
      users += 1;
    },
    async close() {
      users = Math.max(0, users - 1);
      if (users > 0) return;
      hints.stop();
      streams.close();
      directory.close();
    },

    async register(worker) {
      await directory.patience();
      directory.own(`Worker ${worker.name}`);
      boot = worker.process.boot;
      register(directory, worker, moment());
      directory.showWorkers();
    },
    async heartbeat(worker) {
      return heartbeat(directory, worker, leaseClock.monotonic());
    },
    async workers() {
      return directory.lock.isHeld ? listWorkers(directory, leaseClock.monotonic(), boot) : workersOfOwner(directory);
    },
    async owners() {
      return listOwners(directory.view());
    },
    async fence(request) {
      boot = request.successor?.process.boot ?? boot;
      const reply = directory.write("Fencing a worker", ({ tables }, batch) => {
        const runs = request.workers.flatMap((worker) => ownedBy(tables, worker));
        const answer = fence(tables, request, moment(), boot);
        putAll(batch, runs);
        return answer;
      });
      directory.showWorkers();
      hints.tellSoon();
      return reply;
    },
    async retire(worker) {
      if (!directory.lock.isHeld) return;
      directory.write("Retiring a worker", ({ tables }, batch) => {
        const runs = ownedBy(tables, worker);
        retire(tables, worker, clock.now());
        putAll(batch, runs);
      });
      directory.showWorkers();
      hints.tellSoon();
    },

    async claim(request) {
      const now = clock.now();
      return directory.write("A claim", (holdings, batch) => {
        const rates = ratesOf(holdings);
        const due = dueRuns(holdings.tables, now);
        const claimed = claim(holdings.tables, request, now);
        for (const { run } of claimed) noteStart(holdings, run, rates.get(run) ?? null, request, now);
        for (const { row } of [...due, ...claimed]) batch.later(row.id);
        return claimed;
      });
    },
    async nextWake() {
      return nextWake(directory.look().tables, clock.now());
    },
    async take(worker, run, { slotless } = {}) {
      assertStorable(worker, run);
      return directory.write("Taking a run", ({ tables }, batch) => {
        const before = tables.runs.get(run)?.row.owner;
        const taken = takeOne(tables, worker, run, slotless);
        if (taken !== null && before !== worker) batch.put(run);
        return taken;
      });
    },
    async owned(worker, { news }) {
      const { tables } = directory.own("Looking for mail");
      return ownedBy(tables, worker)
        .filter((run) => !news || hasNews(run))
        .map(mailOf);
    },

    async commit(request) {
      if (!directory.lock.isHeld) await directory.patience();
      const started = request.runs.find(({ create }) => create !== undefined)?.run;
      const what = started === undefined ? "A commit" : `The start of run ${started}`;
      const verdicts = directory.write(what, (holdings, batch) => commit(holdings, batch, request, clock.now()));
      if (request.runs.some(concernsOthers)) hints.tellSoon();
      return verdicts;
    },
    async deliver(message) {
      checkMessage(message);
      const now = clock.now();
      const isOurs = directory.tryToOwn();
      const holdings = isOurs ? directory.own("A message") : directory.look(message.to);
      const found = blockedRun(holdings, message.to);
      if (found !== null) throw blockedError(found);
      if (!isOurs) return leaveLetter(directory, holdings, message, now);
      const delivery = directory.write("A message", ({ tables }, batch) => {
        const answer = deliver(tables, message, now);
        if (answer === "delivered") batch.put(message.to);
        return answer;
      });
      hints.tellSoon();
      return delivery;
    },

    async emit(chunks) {
      streams.add(chunks);
    },
    async chunks(run, query) {
      assertStorable(run);
      return streams.read(run, query);
    },

    async run(id) {
      assertStorable(id);
      const holdings = directory.look(id);
      const found = blockedRun(holdings, id);
      if (found?.kind === "damaged") throw found.error;
      return viewOf(holdings).runs.get(id)?.row ?? null;
    },
    async runs(query) {
      checkQuery(query);
      return listRuns(directory.view(), query);
    },
    async counts(filter, bound) {
      checkQuery(filter);
      return countRuns(directory.view(), filter, bound);
    },
    async journal(run, { from, limit } = {}) {
      assertStorable(run);
      return readJournal(directory.view(run), run, from, limit);
    },
    async inbox(run) {
      assertStorable(run);
      const found = directory.view(run).runs.get(run);
      return found === undefined ? [] : unreadOf(found);
    },
    async waits(query) {
      if (query.run !== undefined) assertStorable(query.run);
      return listWaits(directory.view(query.run), query);
    },
    async state(run) {
      assertStorable(run);
      return listState(directory.view(run), run);
    },
    async key(space, key) {
      assertStorable(space, key);
      return holderOf(directory.look().tables, { space, key });
    },
    async counters(prefix) {
      assertStorable(prefix);
      return listCounters(directory.look().tables, prefix);
    },

    async unclaimed(query) {
      assertStorable(...(query.workflows ?? []));
      return listUnclaimed(directory.view(), query);
    },
    async orphans() {
      return orphansOf(directory);
    },
    async adopt(runs) {
      const adopted = directory.write("Adopting runs", ({ tables }, batch) => {
        const lost = new Set(orphans(tables).map(({ run }) => run));
        const count = adopt(tables, runs, clock.now());
        for (const run of runs) if (lost.has(run)) batch.put(run);
        return count;
      });
      hints.tellSoon();
      return adopted;
    },
    purge(request) {
      const options = { now: clock.now(), isKept: onPurge === "archive", holds: () => operators.allHolds() };
      return operators.alone(() => purge(directory, request, options));
    },

    ...operatorMethods(operators, directory, clock),

    hints: (listener: (hint: Hint) => void) => hints.listen(listener),
    async inspect({ quick = false } = {}) {
      return inspect(directory, quick);
    },
    backup: (copy) => operators.alone(() => backup(directory, resolve(copy))),

    folderOf: (run) => directory.folderOf(run),
    async heldDocuments() {
      return heldDocuments(directory);
    },
    async accept(run, who, write) {
      assertStorable(run);
      const accepted = acceptDocument(directory, run, who, clock.now(), write);
      settleMended(directory, hints);
      return accepted;
    },
    async rebuild(run, who) {
      assertStorable(run);
      rebuildDocument(directory, run, who, clock.now());
      settleMended(directory, hints);
    },
    async yieldKeys(run, who) {
      assertStorable(run);
      yieldKeys(directory, run, who);
    },
    async setAside(run, who) {
      assertStorable(run);
      setAside(directory, run, who);
      settleMended(directory, hints);
    },
  };
}

/** Everything is read again: whoever has something for the run can deliver it now. */
function settleMended(directory: Directory, hints: Hints): void {
  directory.own("Mending a document");
  hints.tellSoon();
}

function hasNews(run: MemoryRun): boolean {
  return unreadOf(run).length > 0 || hasUnseenCancel(run);
}

function putAll(batch: Batch, runs: readonly MemoryRun[]): void {
  for (const { row } of runs) batch.put(row.id);
}

/** The process that has the directory is there, or it is not: nobody else can tell how much is left of a lease. */
function workersOfOwner(directory: Directory): WorkerRow[] {
  const found = directory.owner();
  if (found === null) return [];
  return found.owner.workers.map((worker) => ({
    ...worker,
    leaseLeftMs: found.isThere ? worker.leaseMs : LONG_DEAD_MS,
  }));
}

/** What a process may do that does not have the directory: look, and leave a letter. */
function leaveLetter(directory: Directory, { tables }: Holdings, message: Message, now: number): Delivery {
  // The tables were read for this call alone: what it comes to is tried on them.
  const answer = deliver(tables, message, now);
  if (answer === "delivered") directory.mail.post(message, now);
  return answer;
}

// Rates

function ratesOf({ tables }: Holdings): ReadonlyMap<string, string> {
  const waiting = [...tables.runs.values()].filter(({ row }) => row.rate !== null && row.owner === null);
  return new Map(waiting.map(({ row }) => [row.id, row.rate as string]));
}

/** Its start counts for its rate, also after a restart. */
function noteStart(holdings: Holdings, run: string, rate: string | null, { handles }: ClaimRequest, now: number): void {
  const limit = rate === null ? null : rateLimit(handles, rate);
  if (rate === null || limit == null) return;
  const share = shareOf(holdings, run);
  share.begun = [...share.begun.filter(({ until }) => until > now), { rate, at: now, until: now + limit.perMs }];
}

/** A run whose document is held is nobody's orphan, and whoever waits for it is none either (H3). */
function orphansOf(directory: Directory): OrphanRow[] {
  const holdings = directory.look();
  const tables = viewOf(holdings);
  const runs = new Map(tables.runs);
  for (const found of holdings.blocked.values())
    if (found.kind === "damaged") runs.set(found.run, unreadableRun(found.run));
  return orphans({ ...tables, runs }).filter(({ run }) => blockedRun(holdings, run) === null);
}

function noDirectory(path: string): PawlError {
  return new PawlError("invalid_argument", `"${path}" is no path of a directory. Give one, such as "runs".`, {
    fields: { path },
  });
}
