// The store that all simulated processes share
// The memory store is the model: serialisable, and visible to the checks. Every write is kept with its time, so that a power cut can take the
// last ones back: the rest is applied again to empty tables.
import type { Clock } from "../../base/clock.ts";
import type { Store } from "../../core/store.ts";
import { storeOver } from "../../stores/memory/memory-store.ts";
import { emptyTables, type Tables } from "../../stores/memory/tables.ts";
import type { VirtualTime } from "./virtual-time.ts";

export type Method = Exclude<
  keyof Store,
  "kind" | "clock" | "leaseClock" | "lanes" | "open" | "close" | "pulse" | "hints" | "inspect" | "backup"
>;

/** The methods that simulated processes call, and whether they write. */
export const METHODS: Readonly<Record<Method, boolean>> = {
  register: true,
  heartbeat: true,
  workers: false,
  fence: true,
  retire: true,
  claim: true,
  nextWake: false,
  take: true,
  owned: false,
  commit: true,
  deliver: true,
  run: false,
  runs: false,
  journal: false,
  inbox: false,
  waits: false,
  state: false,
  key: false,
  counters: false,
  orphans: false,
  adopt: true,
  purge: true,
};

interface Write {
  readonly method: Method;
  readonly args: readonly unknown[];
  readonly at: number;
  readonly wall: number;
}

/** What the monotonic clock of the simulated machine says at the start. */
const BOOTED_MS = 1_000_000;

export class Disk {
  tables: Tables = emptyTables();
  readonly #time: VirtualTime;
  readonly #hinted: () => void;
  #writes: Write[] = [];
  #store: Store;
  /** Set while writes are applied again: they happen when they happened. */
  #then: Write | null = null;

  constructor(time: VirtualTime, hinted: () => void) {
    this.#time = time;
    this.#hinted = hinted;
    this.#store = this.#open();
  }

  /** Lease time as the store sees it. */
  monotonic(): number {
    return BOOTED_MS + (this.#then?.at ?? this.#time.now);
  }

  apply(method: Method, args: readonly unknown[]): Promise<unknown> {
    if (METHODS[method]) this.#writes.push({ method, args, at: this.#time.now, wall: this.#time.wall() });
    return call(this.#store, method, args);
  }

  /** Takes the last writes back. Returns how many those were. */
  lose(count: number): number {
    const kept = Math.max(0, this.#writes.length - count);
    const lost = this.#writes.length - kept;
    if (lost === 0) return 0;
    this.#writes.length = kept;
    this.tables = emptyTables();
    this.#store = this.#open();
    for (const write of this.#writes) {
      this.#then = write;
      call(this.#store, write.method, write.args).catch(() => {});
    }
    this.#then = null;
    return lost;
  }

  #open(): Store {
    const clock: Clock = {
      now: () => this.#then?.wall ?? this.#time.wall(),
      monotonic: () => this.monotonic(),
      at: noTimer,
      after: noTimer,
    };
    const store = storeOver(this.tables, { clock, leaseClock: clock });
    store.hints(() => {
      if (store === this.#store) this.#hinted();
    });
    return store;
  }
}

function call(store: Store, method: Method, args: readonly unknown[]): Promise<unknown> {
  return (store[method] as (...args: readonly unknown[]) => Promise<unknown>)(...args);
}

function noTimer(): never {
  throw new Error("a store sets no timers");
}
