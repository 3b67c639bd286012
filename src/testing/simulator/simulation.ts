// One simulation
// Many processes and a store in one isolate. A seeded scheduler lets one event happen at a time; between two of them all microtasks drain and
// the event loop goes round once. When nothing can happen, time moves to what is due next.
//
//   SIM1. Everything follows from the scenario: the same one gives the same trace, byte for byte.
//   SIM2. Every fault is over after a while; from then on everything must finish within a bound.
//   SIM3. A crash happens between events. So a process dies with calls unsent, sent or answered, never in the middle of a microtask.
import { hasCode, messageOf } from "../../base/errors.ts";
import type { StepInfo } from "../../core/context.ts";
import { shieldRejections } from "../../worker/rejections.ts";
import { Checks } from "./checks.ts";
import { Choices } from "./choices.ts";
import { coldStart } from "./cold-start.ts";
import { Disk } from "./disk.ts";
import { Driver } from "./driver.ts";
import { Life } from "./life.ts";
import { Network } from "./network.ts";
import { Ledger } from "./outside.ts";
import type { Outside } from "./program.ts";
import type { Fault, Scenario } from "./scenario.ts";
import { Scheduler } from "./scheduler.ts";
import type { Situation } from "./situations.ts";
import { VirtualTime } from "./virtual-time.ts";

/** What became of a simulation. */
export interface SimulationReport {
  readonly scenario: Scenario;
  /** The first thing that must not happen; `null` if nothing did. */
  readonly violation: Violation | null;
  readonly events: number;
  /** How much virtual time went by. */
  readonly simulatedMs: number;
  /** How often each rare situation came up. */
  readonly sometimes: ReadonlyMap<Situation, number>;
  /** Every event in its order, one line each. */
  readonly trace: readonly string[];
  /** Every choice that was made: `scenario.choices` for the same simulation. */
  readonly choices: readonly number[];
}

/** Something that must not happen. */
export interface Violation {
  readonly invariant: string;
  readonly what: string;
  /** The event after which it was seen. */
  readonly event: number;
}

// Captured at load: an engine elsewhere in this process may wrap it.
const { setImmediate: startImmediate } = globalThis;

const MAX_EVENTS = 60_000;
/** What an event takes. Nothing can spin for ever without time going by. */
const EVENT_MS = 1 / 16;
/** How long everything may take once the last fault is over. */
const RECOVERY_MS = 240_000;
/** How long a supervisor waits before it starts a process again that could not open its store. */
const RESTART_MS = 300;

/** Runs a scenario to its end, or to the first violation. */
export function simulate(scenario: Scenario): Promise<SimulationReport> {
  return new Simulation(scenario).run();
}

class Simulation {
  readonly #scenario: Scenario;
  readonly #time = new VirtualTime();
  readonly #choices: Choices;
  readonly #scheduler: Scheduler;
  readonly #disk: Disk;
  readonly #network: Network;
  readonly #ledger = new Ledger();
  readonly #checks: Checks;
  readonly #driver: Driver;
  readonly #lives: (Life | null)[];
  readonly #sometimes = new Map<Situation, number>();
  readonly #trace: string[] = [];
  #faults: readonly Fault[];
  #violation: Violation | null = null;
  #events = 0;
  #turns = 0;
  #started = 0;
  #boots = 0;
  #lastFaultOver = 0;

  constructor(scenario: Scenario) {
    const { settings } = scenario;
    this.#scenario = scenario;
    this.#faults = scenario.faults;
    this.#choices = new Choices(`schedule ${scenario.seed}`, scenario.choices ?? null);
    this.#scheduler = new Scheduler(this.#choices, settings.order, () => this.#lives[0] ?? null);
    this.#disk = new Disk({
      time: this.#time,
      hasTwin: settings.store === "sqlite",
      hinted: () => this.#hint(),
      differs: (what) => this.#violated("I22", what),
    });
    const common = {
      time: this.#time,
      choices: this.#choices,
      disk: this.#disk,
      sometimes: (what: Situation) => this.#count(what),
      violated: (invariant: string, what: string) => this.#violated(invariant, what),
    };
    this.#checks = new Checks({
      ...common,
      ledger: this.#ledger,
      areClocksRight:
        scenario.processes.every((plan) => plan.skewMs === 0) &&
        scenario.faults.every((fault) => fault.kind !== "clock-step"),
      slots: settings.slots ?? null,
      parked: (run) => this.#driver.people.parked(run),
      asked: (run, request) => this.#driver.people.asked(run, request),
      forked: (run) => this.#driver.operators.forked(run),
      burst: (run, of) => this.#driver.bursts.created(run, of),
    });
    this.#network = new Network({
      ...common,
      scheduler: this.#scheduler,
      slowness: settings.slowness,
      applying: (life, method, args) => this.#checks.applying(life, method, args),
      applied: (life, method, args, result) => this.#checks.applied(life, method, args, result),
    });
    this.#driver = new Driver(scenario, { ...common, checks: this.#checks, lifeFor: (slot) => this.#lifeFor(slot) });
    this.#lives = scenario.processes.map(() => null);
  }

  async run(): Promise<SimulationReport> {
    const unshield = shieldRejections();
    try {
      for (const slot of this.#lives.keys()) this.#start(slot);
      await new Promise<void>((resolve) => this.#pump(resolve));
      for (const life of this.#lives) life?.die();
      if (this.#violation === null) this.#checks.atEnd();
      if (this.#violation === null) await this.#disk.compareAll();
      if (this.#violation === null) await this.#startCold();
    } finally {
      for (const life of this.#lives) life?.die();
      unshield();
      await this.#disk.close();
    }
    return {
      scenario: this.#scenario,
      violation: this.#violation,
      events: this.#events,
      simulatedMs: this.#time.now,
      sometimes: this.#sometimes,
      trace: this.#trace,
      choices: this.#choices.taken,
    };
  }

  async #startCold(): Promise<void> {
    const { runs } = this.#disk.tables;
    const fault = await coldStart(runs, this.#scenario.settings, (run) => this.#checks.mayHaveEndedWithoutBody(run));
    if (fault !== null) this.#violated("I5", fault);
  }

  #pump(done: () => void): void {
    const go = () => {
      if (this.#isOver) return done();
      this.#step();
      startImmediate(go);
    };
    startImmediate(go);
  }

  get #isOver(): boolean {
    if (this.#violation !== null) return true;
    if (this.#driver.isDone && this.#checks.unfinished === 0) return true;
    const limit = this.#lastFaultOver + RECOVERY_MS;
    if (this.#events < MAX_EVENTS && this.#time.now < limit) return false;
    this.#violated(
      "I11",
      `after ${this.#events} events and ${Math.floor(this.#time.now)} ms it is not over: ${this.#left()}`,
    );
    return true;
  }

  #left(): string {
    const runs = this.#checks.ids().filter((id) => this.#checks.endOf(id) === null);
    const rows = runs.map((id) => {
      const row = this.#disk.tables.runs.get(id)?.row;
      return `${id} (${row?.state}, owner ${row?.owner ?? "none"}, ready ${row?.readyAt}, wake ${row?.wakeAt})`;
    });
    return [...rows, ...this.#driver.open()].join("; ");
  }

  /** Lets one thing happen, or time go by. */
  #step(): void {
    this.#inject();
    this.#time.advance(EVENT_MS);
    const event = this.#scheduler.next();
    if (event !== null) {
      this.#events++;
      this.#trace.push(`${this.#time.now} ${event.label}`);
      return event.happen();
    }
    if (this.#turns > 0) return;
    if (!this.#time.skip()) this.#violated("I10", `nothing will ever happen again: ${this.#left()}`);
  }

  // Faults

  #inject(): void {
    for (let fault = this.#faults[0]; fault !== undefined && fault.at <= this.#events; fault = this.#faults[0]) {
      this.#faults = this.#faults.slice(1);
      this.#trace.push(`${this.#time.now} fault ${JSON.stringify(fault)}`);
      this.#happen(fault);
    }
  }

  #happen(fault: Fault): void {
    switch (fault.kind) {
      case "crash":
        this.#overAfter(fault.backAfterMs);
        return this.#crash(fault.process, fault.backAfterMs);
      case "freeze":
        this.#overAfter(fault.ms);
        return this.#freeze(fault.process, fault.ms);
      case "partition":
        this.#overAfter(fault.ms);
        return this.#network.cutOff(fault);
      case "outage":
        this.#overAfter(fault.ms);
        return this.#network.outage(fault.ms);
      case "disk-full":
        this.#overAfter(fault.ms);
        return this.#network.fillDisk(fault.ms);
      case "delay":
        this.#overAfter(fault.ms);
        return this.#network.arm(fault);
      case "refuse":
      case "lose-answer":
        return this.#network.arm(fault);
      case "power-cut":
        this.#overAfter(fault.backAfterMs);
        return this.#cutPower(fault.lost, fault.backAfterMs);
      case "clock-step": {
        const life = fault.process === null ? null : this.#lives[fault.process];
        if (fault.process === null) this.#time.stepMs += fault.ms;
        else if (life != null) life.skewMs += fault.ms;
        this.#count(fault.ms < 0 ? "a clock was set back" : "a clock was set forward");
        return;
      }
    }
  }

  #overAfter(ms: number): void {
    this.#lastFaultOver = Math.max(this.#lastFaultOver, this.#time.now + ms);
  }

  #crash(slot: number, backAfterMs: number): void {
    const life = this.#lives[slot];
    if (life == null) return;
    this.#count(life.isFrozen ? "a frozen process died" : "a process died");
    this.#end(life);
    this.#time.after(backAfterMs, () => this.#start(slot));
  }

  #end(life: Life): void {
    life.die();
    this.#lives[life.slot] = null;
    this.#scheduler.forget(life);
    this.#network.died(life);
    this.#driver.died(life);
  }

  #freeze(slot: number, ms: number): void {
    const life = this.#lives[slot];
    if (life == null || life.isFrozen) return;
    life.isFrozen = true;
    this.#time.after(ms, () => {
      if (life.isDead) return;
      this.#count(ms > this.#scenario.settings.leaseMs ? "a process slept through its lease" : "a process stood still");
      life.thaw();
    });
  }

  #cutPower(lost: number, backAfterMs: number): void {
    for (const life of this.#lives) if (life !== null) this.#crash(life.slot, backAfterMs);
    // Whoever was on the way was on the same machine.
    this.#network.dropAll();
    this.#boots++;
    if (this.#scenario.settings.durability === "power" || this.#disk.lose(lost) === 0)
      return this.#count("the power failed");
    this.#count("the power failed and took writes with it");
    this.#checks.forgetLost();
    this.#driver.lost();
  }

  // Processes

  #start(slot: number): void {
    if (this.#lives[slot] != null) return;
    const plan = this.#scenario.processes[slot];
    if (plan === undefined) return;
    const life = new Life(slot, ++this.#started, plan, `boot ${this.#boots}`, {
      time: this.#time,
      scheduler: this.#scheduler,
      settings: this.#scenario.settings,
      call: (one, method, args) => this.#network.call(one, method, args),
      outside: (one) => this.#outside(one),
      logged: (one, level, message) => this.#logged(one, level, message),
      turns: (by) => {
        this.#turns += by;
      },
    });
    this.#lives[slot] = life;
    life.later("start", () => {
      life.open().then(
        (pawl) => {
          life.pawl = pawl;
        },
        (error: unknown) => this.#notOpened(life, error),
      );
    });
  }

  #notOpened(life: Life, error: unknown): void {
    if (!hasCode(error, "storage_unavailable") && !hasCode(error, "unknown_outcome"))
      this.#violated("I2", `${life.name} could not be opened: ${messageOf(error)}`);
    this.#count("a process could not open its store");
    this.#end(life);
    this.#time.after(RESTART_MS, () => this.#start(life.slot));
  }

  #lifeFor(slot: number): Life | null {
    const lives = this.#lives;
    const isReady = (life: Life | null | undefined): life is Life =>
      life != null && life.pawl !== null && life.isMoving;
    const wanted = lives[slot % lives.length];
    return isReady(wanted) ? wanted : (lives.find(isReady) ?? null);
  }

  #hint(): void {
    for (const life of this.#lives) {
      if (life === null) continue;
      if (this.#choices.chance(this.#scenario.settings.hintLoss)) this.#count("a hint was lost");
      else life.hint();
    }
  }

  #outside(life: Life): Outside {
    return {
      began: (run: string, info: StepInfo) => {
        this.#trace.push(`${this.#time.now} ${life.name} begins ${info.key} attempt ${info.attempt}`);
        this.#ledger.began(life, info);
        this.#checks.began(life, run, info);
      },
      acted: (info, counter, by) => this.#ledger.acted(info, counter, by),
      ended: (info) => this.#ledger.ended(info),
      pause: (ms) => life.pause(ms),
      resumed: (run, info) => this.#checks.deeds.saves.resumed(run, info),
      saved: (run, info, n) => this.#checks.deeds.saves.acknowledged(run, info, n),
      isMended: () => this.#driver.operators.isMended,
      book: (run, info, deal, leave) => this.#checks.deeds.bank.book(run, info, deal, leave),
      look: (key) => this.#checks.deeds.bank.look(key),
      takeBack: (_run, key, value) => this.#checks.deeds.bank.takeBack(key, value),
      spent: (_run, info, usd) => this.#checks.deeds.spent(info, usd),
      sometimes: (what) => this.#count(what),
    };
  }

  #logged(life: Life, level: "warn" | "error", message: string): void {
    this.#trace.push(`${this.#time.now} ${life.name} ${level}: ${message}`);
    if (message.includes("Please report this")) this.#violated("I10", `${life.name} says: ${message}`);
  }

  #count(what: Situation): void {
    this.#sometimes.set(what, (this.#sometimes.get(what) ?? 0) + 1);
  }

  #violated(invariant: string, what: string): void {
    this.#violation ??= { invariant, what, event: this.#events };
  }
}
