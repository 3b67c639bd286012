// A world
// One store, two clocks, and the engines of one history. Time stands still while anything can happen without it, and then moves to the next
// moment at which something is due.
//
//   WO1. Wall time, which sleeps, timeouts and deadlines follow, never moves because of a crash: what a run sees of it is the same in every
//        history. Leases, polls and watchdogs follow a clock of their own.

import { type ManualClock, manualClock } from "../../base/clock.ts";
import { seededRandom } from "../../base/random.ts";
import { type EncryptionOptions, Keyring } from "../../client/keyring.ts";
import { sealedStore } from "../../client/sealed-store.ts";
import type { Log } from "../../core/context.ts";
import type { Frame } from "../../core/host.ts";
import type { StoredEntry } from "../../core/journal.ts";
import type { Store } from "../../core/store.ts";
import { storeOver } from "../../stores/memory/memory-store.ts";
import { emptyTables, saveTables, type Tables } from "../../stores/memory/tables.ts";
import type { Effect, RecordBook } from "../recorder.ts";
import type { CrashMode, CrashPoint, PointKind } from "./crash-point.ts";
import type { BodyWorlds } from "./hazards.ts";
import { type BodyStart, MortalEngine } from "./mortal-engine.ts";
import { roundsUntil, type Stillness } from "./stillness.ts";
import { type LateCall, type Workflows, watchedWorkflows } from "./watched-workflow.ts";

const START = Date.UTC(2026, 0, 1);
/** A run of 10,000 steps has less than half of them. */
const MOST_POINTS = 100_000;
/** A place is looked at whenever so many entries were added: to find out what is there takes longer than a step. */
const SECTION = 4;
/** Before anything has happened. */
export const NOTHING: Moment = { tables: emptyTables, now: START, commits: 0, points: 0, starts: 0, ends: 0 };

/** What a world was like at a point: enough to go on from there without what led to it. */
export interface Moment {
  tables(): Tables;
  readonly now: number;
  readonly commits: number;
  readonly points: number;
  readonly starts: number;
  readonly ends: number;
}

/** A line that reads what no journal records. */
export interface Hazard {
  readonly what: string;
  readonly line: string;
}

export interface BodyEnd {
  readonly body: BodyStart;
  /** `null`: it threw. */
  readonly outcome: { readonly value: unknown } | null;
}

/** A point that a history comes to. */
interface Passed {
  readonly n: number;
  readonly kind: PointKind;
  /** The end of a function that has come to it without waiting for anything. */
  readonly isSync: boolean;
  label(): string;
}

export interface WorldSetup {
  readonly workflows: Workflows;
  readonly encryption?: EncryptionOptions | undefined;
  readonly stillness: Stillness;
  readonly bodies: BodyWorlds;
  /** Where effects show that steps make. */
  readonly book: RecordBook | null;
  /** Tells histories apart: what engines after the first one draw differs between them. */
  readonly history: number;
  /** Called at each point; answers what goes wrong there. */
  inject(point: Passed, world: World): CrashMode | null;
  readonly from?: { readonly moment: Moment; readonly starts: readonly BodyStart[]; readonly ends: readonly BodyEnd[] };
  /** More points than that, and the run is taken for one that never ends. */
  readonly mostPoints?: number;
  /** A store that outlives this process, and the time at which this part of its history begins. Default: one in memory. */
  readonly elsewhere?: { readonly now: number; open(clocks: { clock: ManualClock; leaseClock: ManualClock }): Store };
}

export interface Struck {
  readonly point: CrashPoint;
  readonly mode: CrashMode;
  /** `null`: this history begins after it. */
  readonly engine: MortalEngine | null;
}

export class World {
  readonly clock: ManualClock;
  readonly leaseClock: ManualClock;
  readonly store: Store;
  readonly engines: MortalEngine[] = [];
  readonly starts: BodyStart[];
  readonly ends: BodyEnd[];
  readonly strikes: Struck[] = [];
  readonly late: LateCall[] = [];
  readonly hazards: Map<string, Hazard> = new Map();
  /** Functions that began in an engine that no longer owned their run. */
  readonly stale: BodyStart[] = [];
  /** What engines have said that only a fault of theirs can lead to. */
  readonly reports: string[] = [];
  /** Steps, as `run step`, about which somebody was asked who had no right answer: they had acted, and had not come to their end. */
  readonly halfDone: Set<string> = new Set();
  readonly #setup: WorldSetup;
  readonly #tables: Tables;
  /** What engines see of the store: values as they are kept. */
  readonly #kept: Store;
  readonly #keyring: Keyring | null;
  readonly #inFlight = new Set<BodyStart>();
  /** By run: how long its journal was when its body began. */
  readonly #begun = new Map<string, number>();
  #commits: number;
  #points: number;
  #section = 0;
  #isLeft = false;
  /** The function that has made the last effect. */
  actor: BodyStart | null = null;

  constructor(setup: WorldSetup) {
    this.#setup = setup;
    const { from, elsewhere } = setup;
    this.clock = manualClock(from?.moment.now ?? elsewhere?.now ?? START);
    this.leaseClock = manualClock(START);
    this.#tables = from?.moment.tables() ?? emptyTables();
    const clocks = { clock: this.clock, leaseClock: this.leaseClock };
    this.#kept = elsewhere?.open(clocks) ?? storeOver(this.#tables, clocks);
    this.#keyring = setup.encryption === undefined ? null : new Keyring(setup.encryption);
    this.store = this.#keyring === null ? this.#kept : sealedStore(this.#kept, this.#keyring);
    this.starts = from?.starts.slice(0, from.moment.starts) ?? [];
    this.ends = from?.ends.slice(0, from.moment.ends) ?? [];
    this.#commits = from?.moment.commits ?? 0;
    this.#points = from?.moment.points ?? 0;
    if (setup.book !== null) setup.book.onEffect = (effect) => this.#acted(effect);
  }

  get points(): number {
    return this.#points;
  }

  /** Whether the run goes on and on. */
  get isEndless(): boolean {
    return this.#points > (this.#setup.mostPoints ?? MOST_POINTS);
  }

  get commits(): number {
    return this.#commits;
  }

  /** What is there now. */
  moment(): Moment {
    return {
      tables: saveTables(this.#tables),
      now: this.clock.now(),
      commits: this.#commits,
      points: this.#points,
      starts: this.starts.length,
      ends: this.ends.length,
    };
  }

  /** Whether this history is not played any further. */
  get isLeft(): boolean {
    return this.#isLeft;
  }

  /** Nothing happens here any more. */
  leave(): void {
    this.#isLeft = true;
    for (const engine of this.engines) engine.die();
  }

  /** It goes on as the undisturbed history would from there. */
  renew({ points, commits }: { readonly points: number; readonly commits: number }): void {
    this.strikes.length = 0;
    this.#points = points;
    this.#commits = commits;
  }

  /** Whether enough has happened since this was last so. */
  isNextSection(): boolean {
    let entries = 0;
    for (const { journal } of this.#tables.runs.values()) entries += journal.length;
    const section = Math.floor(entries / SECTION);
    if (section === this.#section) return false;
    this.#section = section;
    return true;
  }

  /** Where its runs are: equal in worlds that have the same before them. `null`: something is in flight. */
  place(): string | null {
    if (this.#inFlight.size > 0 || this.engines.some(({ state }) => state === "frozen")) return null;
    const runs = [...this.#tables.runs.values()].map(({ row, journal, inbox, waits }) => {
      const { id, state, cancel } = row;
      return [id, state, cancel, journal.length, journal.at(-1)?.hash, inbox, [...waits.values()], this.#begun.get(id)];
    });
    return JSON.stringify([this.clock.now(), runs, [...this.#tables.counters]]);
  }

  /** A run's entries, not copied unless they are sealed. */
  journal(run: string): readonly StoredEntry[] {
    const journal = this.#tables.runs.get(run)?.journal ?? [];
    const keyring = this.#keyring;
    if (keyring === null) return journal;
    return journal.map((entry) => {
      const { data, seq } = entry;
      return data === null ? entry : { ...entry, data: keyring.open(data, { run, seq, field: "data" }) };
    });
  }

  /** This run alone, as a fenced worker would have left it just before its last entry. */
  withoutEnd(id: string): Moment {
    const { runs } = saveTables(this.#tables)();
    const run = runs.get(id);
    if (run === undefined) return NOTHING;
    const journal = run.journal.slice(0, -1);
    const last = journal.at(-1);
    const now = Math.max(START, last?.at ?? START);
    const row = { ...run.row, state: "accepted", endedAt: null, stopReason: null, head: journal.length, readyAt: now };
    const kept = { ...run, journal, row: { ...row, headHash: last?.hash ?? "", owner: null } as typeof run.row };
    return { ...NOTHING, now, tables: () => ({ ...emptyTables(), runs: new Map([[id, kept]]), created: kept.n }) };
  }

  get alive(): MortalEngine | undefined {
    return this.engines.findLast((engine) => engine.state === "alive");
  }

  hasWorker(id: string): boolean {
    return this.#tables.workers.has(id);
  }

  /** Adds an engine; it is not open yet. */
  addEngine(): MortalEngine {
    const number = this.engines.length + (this.#setup.from === undefined ? 0 : 1);
    const engine = new MortalEngine(
      {
        store: this.#kept,
        encryption: this.#setup.encryption,
        workflows: watchedWorkflows(this.#setup.workflows, (call) => void this.late.push(call)),
        number,
        seed: number === 0 ? "first" : `history ${this.#setup.history}`,
        commitNumber: () => ++this.#commits,
      },
      {
        point: (acting, kind, label, isSync) => this.#point(acting, kind, label, isSync),
        started: (acting, body) => this.#started(acting, body),
        ended: (body, outcome) => this.#ended(body, outcome),
        body: (acting, frame) => this.#watch(acting, frame),
        log: this.#log(),
      },
    );
    this.engines.push(engine);
    return engine;
  }

  /** Everything that needs no time happens. */
  settle(isInterrupted: () => boolean = () => false): Promise<void> {
    const { stillness } = this.#setup;
    return roundsUntil(() => isInterrupted() || (!this.engines.some(isBusy) && stillness.isStill()));
  }

  #point(engine: MortalEngine, kind: PointKind, label: () => string, isSync = false): CrashMode | null {
    const n = ++this.#points;
    const mode = this.#setup.inject({ n, kind, label, isSync }, this);
    if (mode !== null) this.strikes.push({ point: { n, kind, label: label() }, mode, engine });
    return mode;
  }

  /** A function that is under way has done something, and perhaps not all of it. What goes on in a dead process is not part of this history. */
  #acted({ run, step, name }: Effect): void {
    const body = [...this.#inFlight].find((one) => one.run === run && one.step === step);
    const engine = this.engines.find(({ number, state }) => number === body?.engine && state === "alive");
    if (body === undefined || engine === undefined) return;
    this.actor = body;
    this.#point(engine, "effect", () => `effect "${name}" in step "${step}"`);
  }

  /** Somebody is asked whether this step has taken effect. */
  asked(run: string, step: string): void {
    const isOf = (one: Pick<Effect, "run" | "step">) => one.run === run && one.step === step;
    const ends = this.ends.filter(({ body }) => isOf(body)).length;
    // What has begun in a process before this one is not known here.
    const isCutOff = ends < Math.max(1, this.starts.filter(isOf).length);
    if (isCutOff && this.#setup.book?.save()().some(isOf) === true) this.halfDone.add(`${run} ${step}`);
  }

  #started(engine: MortalEngine, body: BodyStart): void {
    this.starts.push(body);
    this.#inFlight.add(body);
    const owner = this.#tables.runs.get(body.run)?.row.owner ?? null;
    if (owner === null || !engine.workers.includes(owner)) this.stale.push(body);
  }

  #ended(body: BodyStart, outcome: BodyEnd["outcome"]): void {
    this.ends.push({ body, outcome });
    this.#inFlight.delete(body);
  }

  #watch({ number }: MortalEngine, { pass, run }: Frame): void {
    const { bodies, history } = this.#setup;
    if (bodies.has(pass)) return;
    this.#begun.set(run, this.journal(run).length);
    const chance = seededRandom(number === 0 ? "body" : `body ${history} ${number}`);
    // Half a turn further in every second engine: a branch at one half always takes the other way there.
    const turn = (number % 2) / 2;
    bodies.set(pass, {
      now: () => this.clock.now() + number * 86_461_357,
      random: () => (chance.next() / 2 + turn) % 1,
      noted: (what, line) => void this.hazards.set(`${what} ${line}`, { what, line }),
    });
  }

  #log(): Log {
    const error: Log["error"] = (message, fields) => {
      if (fields?.["event"] === "run.orphaned") this.reports.push(message);
    };
    return { debug: () => {}, info: () => {}, warn: () => {}, error };
  }
}

function isBusy(engine: MortalEngine): boolean {
  return engine.isBusy;
}
