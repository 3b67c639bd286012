// One life of a simulated process
// It has a clock, chance and ids of its own, and an engine that knows nothing of the simulation. When it dies its promises stay open for ever;
// while it is frozen nothing happens to it, and all of that happens late.
import type { Clock } from "../../base/clock.ts";
import { jsonCodec } from "../../base/envelope.ts";
import { type SeededRandom, seededRandom } from "../../base/random.ts";
import { type Machine, onMachine } from "../../client/machine.ts";
import { Pawl } from "../../client/pawl.ts";
import type { Log } from "../../core/context.ts";
import type { Host } from "../../core/host.ts";
import { ANYTHING, type Hint, type Store } from "../../core/store.ts";
import { type Workflow, workflow } from "../../core/workflow.ts";
import { nodeHost } from "../../worker/node-host.ts";
import { type Outside, type ProgramInput, runProgram } from "./program.ts";
import type { ProcessPlan, Settings } from "./scenario.ts";
import type { Actor, Scheduler } from "./scheduler.ts";
import { METHODS, type Method } from "./store-call.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** Timers of the wall clock look again after this long: the clock may have been set. */
const LEG_MS = 60_000;

export interface LifePorts {
  readonly time: VirtualTime;
  readonly scheduler: Scheduler;
  readonly settings: Settings;
  call(life: Life, method: Method, args: readonly unknown[]): Promise<unknown>;
  outside(life: Life): Outside;
  /** The engine said so. */
  logged(life: Life, level: "warn" | "error", message: string): void;
  /** A turn of the event loop was asked for, or is over. */
  turns(by: 1 | -1): void;
}

export class Life implements Actor {
  readonly name: string;
  readonly slot: number;
  readonly pid: number;
  readonly plan: ProcessPlan;
  /** Changes with every start of the machine. */
  readonly boot: string;
  readonly clock: Clock;
  readonly workflow: Workflow<ProgramInput, unknown> | null;
  /** Set once it is open. */
  pawl: Pawl | null = null;
  isDead = false;
  isFrozen = false;
  skewMs: number;
  readonly #ports: LifePorts;
  readonly #hinted = new Set<(hint: Hint) => void>();
  #isHinted = false;
  /** Turns of the event loop that came up while it was frozen. */
  #held: (() => void)[] = [];

  constructor(slot: number, nth: number, plan: ProcessPlan, boot: string, ports: LifePorts) {
    this.slot = slot;
    this.name = `${plan.version === null ? "client" : "worker"}${slot}.${nth}`;
    this.pid = slot * 1000 + nth;
    this.plan = plan;
    this.boot = boot;
    this.skewMs = plan.skewMs;
    this.#ports = ports;
    this.clock = this.#clock();
    this.workflow = this.#workflow();
  }

  get isMoving(): boolean {
    return !this.isDead && !this.isFrozen;
  }

  open(): Promise<Pawl> {
    const { leaseMs, pollMs, concurrency } = this.#ports.settings;
    const options = {
      workflows: this.workflow === null ? [] : [this.workflow],
      lease: leaseMs,
      poll: pollMs,
      concurrency,
      codec: jsonCodec,
      retention: false as const,
      alerts: false as const,
      handleSignals: false,
      name: this.name,
    };
    return Pawl.open(this.#store(), onMachine(options, this.#machine()));
  }

  die(): void {
    this.isDead = true;
    this.#hinted.clear();
    this.#held = [];
  }

  thaw(): void {
    this.isFrozen = false;
    for (const fn of this.#held.splice(0)) this.#turn(fn);
  }

  /** Something may have changed in the store; several hints at once are one. */
  hint(): void {
    if (this.isDead || this.#isHinted || this.#hinted.size === 0) return;
    this.#isHinted = true;
    this.later("hint", () => {
      this.#isHinted = false;
      for (const listener of [...this.#hinted]) listener(ANYTHING);
    });
  }

  /** Has something happen in this life, unless it is over by then. */
  later(what: string, happen: () => void): void {
    if (!this.isDead) this.#ports.scheduler.add({ actor: this, label: `${this.name} ${what}`, happen });
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve));
  }

  #clock(): Clock {
    const { time } = this.#ports;
    const now = () => time.wall() + this.skewMs;
    const after = (ms: number, fire: () => void) => this.#timer(ms, fire);
    return {
      now,
      monotonic: () => time.now,
      after,
      at: (due, fire) => {
        let forget: () => void;
        const walk = () => {
          const left = due - now();
          if (left <= 0) fire();
          else forget = after(Math.min(left, LEG_MS), walk);
        };
        forget = after(Math.max(0, Math.min(due - now(), LEG_MS)), walk);
        return () => forget();
      },
    };
  }

  #timer(ms: number, fire: () => void): () => void {
    let isForgotten = false;
    const forget = this.#ports.time.after(ms, () =>
      this.later("timer", () => {
        if (!isForgotten) fire();
      }),
    );
    return () => {
      isForgotten = true;
      forget();
    };
  }

  #store(): Store {
    const methods: Record<string, unknown> = {};
    for (const method of Object.keys(METHODS) as Method[])
      methods[method] = (...args: readonly unknown[]) => this.#ports.call(this, method, args);
    const rest: Omit<Store, Method> = {
      kind: "simulated",
      clock: this.clock,
      leaseClock: this.clock,
      lanes: this.#ports.settings.lanes,
      open: async () => {},
      close: async () => {},
      hints: (listener) => {
        this.#hinted.add(listener);
        return () => void this.#hinted.delete(listener);
      },
      inspect: async () => ({ store: "simulated", version: "", schema: 1, settings: {}, faults: [] }),
    };
    return Object.assign(methods, rest) as unknown as Store;
  }

  #machine(): Machine {
    const chance = seededRandom(this.name);
    const bytes = seededRandom(`${this.name} ids`);
    let identities = 0;
    const host: Host = { ...nodeHost, immediate: (fn) => this.#turn(fn) };
    return {
      host,
      log: this.#log(),
      sliceRuns: this.#ports.settings.sliceRuns,
      random: chance.next,
      randomBytes: (count) => bytesOf(bytes, count),
      // Each incarnation has a namespace of its own: whether it is dead, only its lease tells.
      identity: () => ({
        pid: this.pid,
        startedAt: null,
        boot: this.boot,
        pidNamespace: `${this.name}/${identities++}`,
      }),
      // The simulation watches over the whole isolate.
      protect: () => () => {},
    };
  }

  #turn(fn: () => void): void {
    this.#ports.turns(1);
    nodeHost.immediate(() => {
      this.#ports.turns(-1);
      if (this.isDead) return;
      if (this.isFrozen) this.#held.push(fn);
      else fn();
    });
  }

  #workflow(): Workflow<ProgramInput, unknown> | null {
    const { version } = this.plan;
    if (version === null) return null;
    const outside = this.#ports.outside(this);
    const { slots } = this.#ports.settings;
    const made: Workflow<ProgramInput, unknown> = workflow<ProgramInput, unknown>(
      {
        name: "program",
        version,
        guard: "off",
        retry: { base: 20, jitter: false },
        ...(slots !== undefined && { concurrency: slots }),
      },
      (ctx, input) => runProgram(ctx, input, { isPatched: version !== "1.0.0", workflow: () => made, outside }),
    );
    return made;
  }

  #log(): Log {
    const { logged } = this.#ports;
    return {
      debug: () => {},
      info: () => {},
      warn: (message) => logged(this, "warn", message),
      error: (message) => logged(this, "error", message),
    };
  }
}

/** Six bytes of each number: ids ask for many at once. */
function bytesOf(random: SeededRandom, count: number): Uint8Array {
  const bytes = new Uint8Array(count);
  for (let i = 0; i < count; i += 6) {
    let rest = random.next() * 2 ** 48;
    for (let j = i; j < i + 6 && j < count; j++) {
      bytes[j] = rest % 256;
      rest = Math.floor(rest / 256);
    }
  }
  return bytes;
}
