// A small world for each test: one store, one clock that stands still, and engines that can be killed.
//
//   H1. Nothing a killed engine still does reaches the store: its calls never return, its timers and hints never fire.
//   H2. Every world ends with the same questions: no orphan, no broken chain, at most one end per run.
//   H3. What its runs did outside has moved by the table of effects (M-1).
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { type Clock, type ManualClock, manualClock, systemClock } from "../../src/base/clock.ts";
import { jsonCodec } from "../../src/base/envelope.ts";
import { Pawl } from "../../src/client/pawl.ts";
import type { PawlOptions } from "../../src/client/pawl-options.ts";
import type { Run } from "../../src/client/run.ts";
import { checksum } from "../../src/core/checksum.ts";
import type { Log } from "../../src/core/context.ts";
import { ENDS, type Entry, type StoredEntry } from "../../src/core/journal.ts";
import { ledgerOf } from "../../src/core/ledger.ts";
import { move } from "../../src/core/state-machine.ts";
import { EFFECT, type EffectState } from "../../src/core/state-machines.ts";
import type { FenceRequest, Hint, NewWorker, RunRow, Store } from "../../src/core/store.ts";
import { isTerminal } from "../../src/core/transition.ts";
import { openEntry } from "../../src/core/values.ts";
import type { Workflow } from "../../src/core/workflow.ts";
import { fileStore } from "../../src/stores/file/file-store.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";
import { sqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { nodeHost } from "../../src/worker/node-host.ts";
import { type Calls, emptyPostgresStore, serverOf } from "../postgres-schemas.ts";

export const STORES = ["memory", "sqlite", "file", "postgres"] as const;
export type StoreKind = (typeof STORES)[number];
/** Those that answer before the event loop goes round: for tests in which a clock that stands still says when a worker looks again. */
export const STORES_AT_ONCE: readonly StoreKind[] = ["memory", "sqlite", "file"];
export type Workflows = readonly Workflow<never, unknown>[];

const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

// Captured before any guard wraps it.
const { setImmediate: startImmediate } = globalThis;
/** So many rounds of the event loop without a call to the store mean that nothing more comes by itself. A replay takes a few per turn. */
const STILL_ROUNDS = 120;

interface WorldOptions {
  /** A clock of its own for leases and housekeeping, moved by hand. */
  readonly leaseClock?: ManualClock;
  /** Keep the store's heartbeat thread, where it has one. */
  readonly pulse?: boolean;
}

/** Opens a fresh store; it is checked and closed when the test ends. */
export async function openWorld(kind: StoreKind, options: WorldOptions = {}): Promise<World> {
  const clock = steppedClock();
  const leaseClock = options.leaseClock ?? systemClock;
  const { store, leave, folder } = await emptyStore(kind, clock, leaseClock);
  await store.open();
  const world = new World(store, clock, options.pulse === true, folder);
  onTestFinished(async () => {
    try {
      await world.finish();
    } finally {
      await store.close();
      leave();
    }
  });
  return world;
}

async function emptyStore(
  kind: StoreKind,
  clock: Clock,
  leaseClock: Clock,
): Promise<{ readonly store: Store; readonly folder?: string; leave(): void }> {
  if (kind === "memory") return { store: memoryStore({ clock, leaseClock }), leave: () => {} };
  if (kind === "postgres") return emptyPostgresStore({ clock, leaseClock });
  const folder = mkdtempSync(join(tmpdir(), "pawl-behaviour-"));
  const options = { clock, leaseClock, durability: "process" } as const;
  const leave = () => rmSync(folder, { recursive: true, force: true });
  if (kind === "file") return { store: fileStore(join(folder, "state"), options), folder, leave };
  const file = join(folder, "pawl.db");
  writeFileSync(file, await emptySqlite());
  return { store: sqliteStore(file, options), folder, leave };
}

let emptyBytes: Promise<Buffer> | null = null;

/** What an empty SQLite store is when it has been closed. Its schema takes longer to make, step by step, than most tests: once for each process. */
export function emptySqlite(): Promise<Buffer> {
  emptyBytes ??= makeEmptySqlite();
  return emptyBytes;
}

async function makeEmptySqlite(): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-empty-"));
  try {
    const file = join(folder, "pawl.db");
    const store = sqliteStore(file, { durability: "process" });
    await store.open();
    await store.close();
    return readFileSync(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export class World {
  readonly store: Store;
  readonly clock: SteppedClock;
  readonly lines: LogLine[] = [];
  readonly #engines = new Map<Pawl, Mortal>();
  /** Those that are being opened as well: they may be at work before anybody has them in hand. */
  readonly #mortals: Mortal[] = [];
  readonly #hasPulse: boolean;
  /** Where it is kept, for a store in files. */
  readonly folder: string | null;

  constructor(store: Store, clock: SteppedClock, hasPulse: boolean, folder: string | null = null) {
    this.store = store;
    this.folder = folder;
    this.clock = clock;
    this.#hasPulse = hasPulse;
  }

  async open(workflows: Workflows = [], options: PawlOptions = {}): Promise<Pawl> {
    const mortal = new Mortal(this.store, this.#hasPulse);
    this.#mortals.push(mortal);
    const logger = logTo(this.lines);
    const pawl = await Pawl.open(mortal.store, { workflows, logger, handleSignals: false, ...options });
    this.#engines.set(pawl, mortal);
    return pawl;
  }

  /** The process of this engine is gone, at this very instant. Its worker row stays behind, as after a real crash. */
  kill(pawl: Pawl): void {
    this.#engines.get(pawl)?.die();
  }

  killAll(): void {
    for (const mortal of this.#mortals) mortal.die();
  }

  /** Fences what killed engines have left, as the sweeper of another worker does. */
  async fence(): Promise<void> {
    const dead = this.#mortals.filter((one) => one.isDead);
    const workers = dead.flatMap((one) => [...one.workers.splice(0)]);
    if (workers.length > 0) await this.store.fence({ workers });
  }

  /** Kills every engine and opens a new one on the same store. */
  async restart(workflows: Workflows, options: PawlOptions = {}): Promise<Pawl> {
    this.killAll();
    await this.fence();
    return this.open(workflows, options);
  }

  /** Resolves when the engines do nothing more by themselves. Unlike `idle`, it does not wait for steps that hang. */
  settle(): Promise<void> {
    const server = serverOf(this.store);
    // Tests go round the event loop millions of times here, so a round costs no promise and no list.
    return new Promise((resolve) => {
      let still = 0;
      let before = Number.NaN;
      const look = () => {
        const now = this.#callsOfIdle();
        still = now === before && !isAsked(server) ? still + 1 : 0;
        before = now;
        if (still < STILL_ROUNDS) goRound();
        else resolve();
      };
      const goRound = () => void (isAsked(server) ? server.answered().then(look) : startImmediate(look));
      goRound();
    });
  }

  /** How many calls its living engines have made, each engine told from none; not a number while any is under way. */
  #callsOfIdle(): number {
    let made = 0;
    for (const { isDead, pending, calls } of this.#engines.values()) {
      if (isDead) continue;
      if (pending > 0) return Number.NaN;
      // A half for the engine itself: one that comes or goes is a change, too.
      made += calls + 0.5;
    }
    return made;
  }

  /** Moves the clock, stopping at every due moment until all engines are still. */
  async advance(ms: number): Promise<void> {
    await this.settle();
    const end = this.clock.now() + ms;
    for (let stops = 0; this.clock.nextDue() <= end; stops++) {
      if (stops > 10_000) throw new Error("the clock does not get past a moment that is due again and again");
      this.clock.advance(Math.max(0, this.clock.nextDue() - this.clock.now()));
      await this.settle();
    }
    this.clock.advance(end - this.clock.now());
    await this.settle();
  }

  /** The journal, one word or two per entry: `step.started a`. */
  async journal(run: Run | string): Promise<string[]> {
    const entries = await this.store.journal(typeof run === "string" ? run : run.id);
    return entries.map((entry) => (entry.key === null ? entry.type : `${entry.type} ${entry.key}`));
  }

  async finish(): Promise<void> {
    await this.settle();
    for (const [pawl, mortal] of this.#engines) if (!mortal.isDead) await pawl.close({ drain: 1 });
    await this.fence();
    expect(await this.store.orphans()).toEqual([]);
    for (const row of await this.store.runs({ limit: 1000 })) await this.#checkJournal(row);
  }

  async #checkJournal(row: RunRow): Promise<void> {
    const { id: run, state } = row;
    const entries = await this.store.journal(run);
    let previous = run;
    // Compared here, and told by `expect` where they differ: it takes longer than all else.
    for (const [position, entry] of entries.entries()) {
      const { seq, type, hash } = entry;
      const found = checksum(nodeHost, previous, entry);
      if (seq !== position) expect(seq, `position in the journal of ${run}`).toBe(position);
      if (hash !== found) expect(hash, `checksum of entry ${seq} (${type}) of ${run}`).toBe(found);
      previous = hash;
    }
    checkEffects(run, entries);
    const ends = entries.filter((entry) => (ENDS as readonly string[]).includes(entry.type));
    expect(ends.map((entry) => entry.type)).toEqual(isTerminal(state) ? [`run.${state}`] : []);
    if (!isTerminal(state)) return;
    expect(entries.at(-1)).toBe(ends[0]);
    // How it ended, why, and what its journal must be to be replayed (S2-18).
    expect(ends[0]?.data, `the result of ${run}`).not.toBeNull();
    expect(row, `the end of ${run}`).toMatchObject({
      stopReason: expect.stringMatching(/./),
      endedAt: expect.any(Number),
      head: entries.length,
      headHash: previous,
    });
  }
}

/** Longer journals say nothing that shorter ones do not. */
const SHORT_JOURNAL = 200;

/** Each effect of the ledger, as the journal grew (H3). */
function checkEffects(run: string, stored: readonly StoredEntry[]): void {
  if (stored.length > SHORT_JOURNAL || !stored.some(({ type }) => type === "effect.planned")) return;
  const entries = readable(run, stored);
  const before = new Map<number, EffectState>();
  for (let length = 1; length <= entries.length; length++)
    for (const [i, { effect, status }] of ledgerOf(entries.slice(0, length)).entries()) {
      const from = before.get(i) ?? EFFECT.initial;
      if (status !== from) before.set(i, move(EFFECT, effect, from, status));
    }
}

/** None, if they are sealed or damaged: tests of that ask other questions. */
function readable(run: string, stored: readonly StoredEntry[]): Entry[] {
  try {
    return stored.map((entry) => openEntry(jsonCodec, run, entry));
  } catch {
    return [];
  }
}

function isAsked(server: Calls | null): server is Calls {
  return server !== null && server.pending > 0;
}

export function nextRound(): Promise<void> {
  return new Promise((resolve) => startImmediate(resolve));
}

/** One engine's view of the store, until it dies (H1). */
class Mortal {
  readonly store: Store;
  readonly workers: string[] = [];
  isDead = false;
  /** Calls made so far, and those under way. */
  calls = 0;
  pending = 0;

  constructor(store: Store, hasPulse: boolean) {
    const own: Partial<Record<keyof Store, unknown>> = {
      clock: this.#mortalClock(store.clock),
      leaseClock: this.#mortalClock(store.leaseClock),
      open: async () => {},
      close: async () => {},
      hints: (listener: (hint: Hint) => void) => store.hints((hint) => this.#ifAlive(() => listener(hint))),
      register: this.#mortalCall((worker: NewWorker) => {
        this.workers.push(worker.id);
        return store.register(worker);
      }),
      fence: this.#mortalCall((request: FenceRequest) => {
        if (request.successor !== undefined) this.workers.push(request.successor.id);
        return store.fence(request);
      }),
      pulse: hasPulse ? store.pulse?.bind(store) : undefined,
    };
    this.store = new Proxy(store, {
      get: (target, name: keyof Store) => {
        if (name in own) return own[name];
        const value = target[name];
        return typeof value === "function" ? this.#mortalCall(value.bind(target) as AnyCall) : value;
      },
    });
  }

  die(): void {
    this.isDead = true;
  }

  #ifAlive(fn: () => void): void {
    if (!this.isDead) fn();
  }

  #mortalCall<A extends readonly never[]>(call: (...args: A) => Promise<unknown>) {
    return async (...args: A): Promise<unknown> => {
      if (this.isDead) return never();
      this.calls++;
      this.pending++;
      try {
        return await call(...args);
      } finally {
        this.pending--;
        if (this.isDead) await never();
      }
    };
  }

  #mortalClock(clock: Clock): Clock {
    return {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      at: (time, fire) => clock.at(time, () => this.#ifAlive(fire)),
      after: (ms, fire) => clock.after(ms, () => this.#ifAlive(fire)),
    };
  }
}

type AnyCall = (...args: never[]) => Promise<unknown>;

/** What a dead process is told. */
function never(): Promise<never> {
  return new Promise(() => {});
}

export interface SteppedClock extends ManualClock {
  /** The first moment at which something is due; Infinity if nothing is. */
  nextDue(): number;
}

function steppedClock(): SteppedClock {
  const clock = manualClock();
  const dues = new Map<object, number>();
  const track = (due: number, fire: () => void, set: (own: () => void) => () => void) => {
    const alarm = {};
    dues.set(alarm, due);
    const forget = set(() => {
      dues.delete(alarm);
      fire();
    });
    return () => {
      dues.delete(alarm);
      forget();
    };
  };
  return {
    ...clock,
    at: (time, fire) => track(time, fire, (own) => clock.at(time, own)),
    after: (ms, fire) => track(clock.now() + ms, fire, (own) => clock.after(ms, own)),
    nextDue: () => Math.min(...dues.values()),
  };
}

export interface LogLine {
  readonly level: keyof Log;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** What the engine tells of every run in passing (`observe/run-log.ts`) is left out: tests of that have loggers of their own. */
function logTo(lines: LogLine[]): Log {
  const write =
    (level: keyof Log) =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}) => {
      const isOfRun = "event" in fields && !String(fields["event"]).startsWith("worker.");
      const isInPassing = isOfRun && (level === "debug" || level === "info");
      if (!isInPassing) lines.push({ level, message, fields });
    };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

/** A promise that the test settles. */
export interface Gate<T> {
  readonly passed: Promise<T>;
  open(value: T): void;
  fail(error: unknown): void;
}

export function gate<T = void>(): Gate<T> {
  let open!: (value: T) => void;
  let fail!: (error: unknown) => void;
  const passed = new Promise<T>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  passed.catch(() => {});
  return { passed, open, fail };
}

/** What a promise rejects with; fails if it does not. */
export async function errorOf(promise: Promise<unknown>): Promise<Error & Record<string, unknown>> {
  try {
    await promise;
  } catch (error) {
    return error as Error & Record<string, unknown>;
  }
  throw new Error("it did not reject");
}
