// The memory store
// The port in its plainest form: it is the model that the other stores are compared with (I22), so it is written to be obviously
// right rather than fast. Every method is synchronous inside, hence atomic. Several engines of one process may share one object:
// what it holds lives as long as the object, whoever opens and closes it.
import { type Clock, systemClock } from "../../base/clock.ts";
import { ANYTHING, type Hint, type Store } from "../../core/store.ts";
import { checkMessage } from "../commit-fault.ts";
import { concernsOthers } from "../concerns-others.ts";
import { checkAudit, checkFacts, checkHold, checkQuery } from "../operator-fault.ts";
import { assertStorable } from "../storable-text.ts";
import { claim, mailOf, nextWake, takeOne } from "./claim.ts";
import { commit, holderOf } from "./commit.ts";
import { deliver } from "./deliver.ts";
import {
  addAudit,
  addFacts,
  addHold,
  headOfAudits,
  listAudits,
  listFacts,
  listHolds,
  removeHold,
} from "./operators.ts";
import { adopt, orphans } from "./orphans.ts";
import {
  countRuns,
  listCounters,
  listRuns,
  listState,
  listUnclaimed,
  listWaits,
  purge,
  readJournal,
} from "./queries.ts";
import { addChunks, readChunks } from "./streams.ts";
import { emptyTables, hasUnseenCancel, type Tables, unreadOf } from "./tables.ts";
import { fence, heartbeat, listOwners, listWorkers, type Moment, ownedBy, register, retire } from "./workers.ts";

export interface MemoryStoreOptions {
  readonly clock?: Clock;
  readonly leaseClock?: Clock;
}

/** A store that lives in this process and ends with it: for tests. */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  return storeOver(emptyTables(), options);
}

/** A store that goes on from these tables, and changes them. */
export function storeOver(tables: Tables, options: MemoryStoreOptions): Store {
  const { clock = systemClock, leaseClock = systemClock } = options;
  const { operators } = tables;
  const listeners = new Set<(hint: Hint) => void>();
  let boot: string | null = null;
  const moment = (): Moment => ({ now: clock.now(), monotonic: leaseClock.monotonic() });
  // Only what may give another engine something to do is worth a hint; a claim never is, or two engines would wake each other for ever.
  const hint = () => {
    for (const listener of listeners) queueMicrotask(() => listener(ANYTHING));
  };

  return {
    kind: "memory",
    clock,
    leaseClock,
    lanes: 1,
    async open() {},
    async close() {},

    async register(worker) {
      boot = worker.process.boot;
      register(tables, worker, moment());
    },
    async heartbeat(worker) {
      return heartbeat(tables, worker, leaseClock.monotonic());
    },
    async workers() {
      return listWorkers(tables, leaseClock.monotonic(), boot);
    },
    async owners() {
      return listOwners(tables);
    },
    async fence(request) {
      boot = request.successor?.process.boot ?? boot;
      const reply = fence(tables, request, moment(), boot);
      hint();
      return reply;
    },
    async retire(worker) {
      retire(tables, worker, clock.now());
      hint();
    },

    async claim(request) {
      return claim(tables, request, clock.now());
    },
    async nextWake() {
      return nextWake(tables, clock.now());
    },
    async take(worker, run, { slotless } = {}) {
      assertStorable(worker, run);
      return takeOne(tables, worker, run, slotless);
    },
    async owned(worker, { news }) {
      const hasNews = (run: Parameters<typeof unreadOf>[0]) => unreadOf(run).length > 0 || hasUnseenCancel(run);
      return ownedBy(tables, worker)
        .filter((run) => !news || hasNews(run))
        .map(mailOf);
    },

    async commit(request) {
      const verdicts = commit(tables, request, clock.now());
      if (request.runs.some(concernsOthers)) hint();
      return verdicts;
    },
    async deliver(message) {
      checkMessage(message);
      const delivery = deliver(tables, message, clock.now());
      hint();
      return delivery;
    },

    async emit(chunks) {
      addChunks(tables, chunks);
      const runs = [...new Set(chunks.map(({ run }) => run))];
      for (const listener of listeners) queueMicrotask(() => listener({ isWork: false, runs }));
    },
    async chunks(run, query) {
      assertStorable(run);
      return readChunks(tables.streams.get(run), query);
    },

    async run(id) {
      assertStorable(id);
      return tables.runs.get(id)?.row ?? null;
    },
    async runs(query) {
      checkQuery(query);
      return listRuns(tables, query);
    },
    async counts(filter, bound) {
      checkQuery(filter);
      return countRuns(tables, filter, bound);
    },
    async journal(run, { from, limit } = {}) {
      assertStorable(run);
      return readJournal(tables, run, from, limit);
    },
    async inbox(run) {
      assertStorable(run);
      const found = tables.runs.get(run);
      return found === undefined ? [] : unreadOf(found);
    },
    async waits(query) {
      if (query.run !== undefined) assertStorable(query.run);
      return listWaits(tables, query);
    },
    async state(run) {
      assertStorable(run);
      return listState(tables, run);
    },
    async key(space, key) {
      assertStorable(space, key);
      return holderOf(tables, { space, key });
    },
    async counters(prefix) {
      assertStorable(prefix);
      return listCounters(tables, prefix);
    },

    async unclaimed(query) {
      assertStorable(...(query.workflows ?? []));
      return listUnclaimed(tables, query);
    },
    async orphans() {
      return orphans(tables);
    },
    async adopt(runs) {
      const adopted = adopt(tables, runs, clock.now());
      hint();
      return adopted;
    },
    async purge(request) {
      return purge(tables, request, clock.now());
    },

    async hold(run, hold) {
      checkHold(run, hold);
      return tables.runs.has(run) ? addHold(operators.holds, run, hold, clock.now()) : null;
    },
    async releaseHold(run) {
      assertStorable(run);
      return removeHold(operators.holds, run);
    },
    async holds(query) {
      return listHolds(operators.holds, query);
    },
    async record(entry) {
      checkAudit(entry);
      return addAudit(operators.audits, entry, clock.now());
    },
    async audits(query) {
      return listAudits(operators.audits, query);
    },
    async auditHead() {
      return headOfAudits(operators.audits);
    },
    async describe(workflows) {
      checkFacts(workflows);
      addFacts(operators.workflows, workflows, clock.now());
    },
    async workflows() {
      return listFacts(operators.workflows);
    },

    hints(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async inspect() {
      return { store: "memory", version: process.version, schema: 1, settings: { runs: tables.runs.size }, faults: [] };
    },
  };
}
