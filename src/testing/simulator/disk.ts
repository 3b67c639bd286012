// The store that all simulated processes share
// The memory store is the model: serialisable, and visible to the checks. Every write is kept with its time, so that a power cut can take the
// last ones back: the rest is applied again to empty tables. In some scenarios a SQLite file gets every call as well (twin.ts).
import type { Clock } from "../../base/clock.ts";
import type { Store } from "../../core/store.ts";
import { storeOver } from "../../stores/memory/memory-store.ts";
import { emptyTables, type Tables } from "../../stores/memory/tables.ts";
import { callStore, METHODS, type Method, noTimer, type StoreCall } from "./store-call.ts";
import { Twin } from "./twin.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** What the monotonic clock of the simulated machine says at the start. */
const BOOTED_MS = 1_000_000;

export interface DiskPorts {
  readonly time: VirtualTime;
  /** Whether SQLite gets every call as well. */
  readonly hasTwin: boolean;
  /** Something may have changed. */
  hinted(): void;
  /** The model and SQLite disagree (I22). */
  differs(what: string): void;
}

export class Disk {
  tables: Tables = emptyTables();
  readonly #ports: DiskPorts;
  readonly #clock: Clock;
  readonly #twin: Twin | null;
  /** What each process sees of the tables. */
  readonly #stores = new Map<number, Store>();
  #writes: StoreCall[] = [];
  /** Set while writes are applied again: they happen when they happened. */
  #then: StoreCall | null = null;

  constructor(ports: DiskPorts) {
    this.#ports = ports;
    this.#clock = {
      now: () => this.#then?.wall ?? ports.time.wall(),
      monotonic: () => this.monotonic(),
      at: noTimer,
      after: noTimer,
    };
    this.#twin = ports.hasTwin ? new Twin(ports.differs) : null;
  }

  /** What the store's clock says. */
  now(): number {
    return this.#clock.now();
  }

  /** Lease time as the store sees it. */
  monotonic(): number {
    return this.#then?.monotonic ?? BOOTED_MS + this.#ports.time.now;
  }

  apply(pid: number, method: Method, args: readonly unknown[]): Promise<unknown> {
    const made = { pid, method, args, wall: this.#clock.now(), monotonic: this.monotonic() };
    if (METHODS[method]) this.#writes.push(made);
    return this.#call(made);
  }

  /** Takes the last writes back. Returns how many those were. */
  lose(count: number): number {
    const kept = Math.max(0, this.#writes.length - count);
    const lost = this.#writes.length - kept;
    if (lost === 0) return 0;
    this.#writes.length = kept;
    this.tables = emptyTables();
    this.#stores.clear();
    this.#twin?.startOver();
    for (const write of this.#writes) {
      this.#then = write;
      this.#call(write).catch(() => {});
    }
    this.#then = null;
    return lost;
  }

  /** At the end: SQLite has what the model has. */
  async compareAll(): Promise<void> {
    await this.#twin?.compareAll(this.#storeOf(0));
  }

  async close(): Promise<void> {
    await this.#twin?.close();
  }

  #call(made: StoreCall): Promise<unknown> {
    const answer = callStore(this.#storeOf(made.pid), made.method, made.args);
    this.#twin?.follow(made, answer);
    return answer;
  }

  #storeOf(pid: number): Store {
    const known = this.#stores.get(pid);
    if (known !== undefined) return known;
    const store = storeOver(this.tables, { clock: this.#clock, leaseClock: this.#clock });
    store.hints(() => {
      if (this.#stores.get(pid) === store) this.#ports.hinted();
    });
    this.#stores.set(pid, store);
    return store;
  }
}
