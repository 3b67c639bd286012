// This process among the workers of the file: what it registered, who else is there, and the threads that keep its leases.
import { type Clock, systemClock } from "../../base/clock.ts";
import type { FenceReply, FenceRequest, NewWorker, OwnerRow, Pulse, WorkerRow } from "../../core/store.ts";
import { leaseLeftMs } from "../lease.ts";
import { ownFile } from "../own-file.ts";
import type { OwnedRuns } from "../owned-runs.ts";
import { type CountingPulse, startPulse } from "../pulse/pulse.ts";
import type { PulseSignals } from "../pulse/pulse-signals.ts";
import { type Connection, SYNCHRONOUS } from "./connection.ts";
import { countOthers, fence, heartbeat, listOwners, listWorkers, type Moment, register, retire } from "./workers.ts";

export class Presence {
  readonly #db: Connection;
  readonly #owned: OwnedRuns;
  readonly #clock: Clock;
  readonly #leaseClock: Clock;
  readonly #pulses = new Set<CountingPulse>();
  /** When the last confirmed registration of each worker was sent. */
  readonly #registered = new Map<string, number>();
  #boot: string | null = null;
  #others = 0;

  constructor(db: Connection, owned: OwnedRuns, clock: Clock, leaseClock: Clock) {
    this.#db = db;
    this.#owned = owned;
    this.#clock = clock;
    this.#leaseClock = leaseClock;
    db.others = () => this.others();
  }

  /** How many other workers write to the file, as far as this process has heard. */
  others(): number {
    let others = this.#others;
    for (const pulse of this.#pulses) others = Math.max(others, pulse.others());
    return others;
  }

  /** Whatever is known of this worker's runs is forgotten: an id that was fenced before no longer owns them. */
  async register(worker: NewWorker): Promise<void> {
    const moment = this.#moment();
    this.#owned.forgetAll();
    this.#others = await this.#db.write(() => {
      register(this.#db, worker, moment);
      return countOthers(this.#db, worker.id);
    });
    this.#remember(worker, moment);
  }

  async heartbeat(worker: string): Promise<{ alive: boolean; others: number }> {
    const { monotonic } = this.#moment();
    const reply = await this.#db.write(() => heartbeat(this.#db, worker, monotonic));
    this.#others = reply.others;
    return reply;
  }

  workers(): Promise<WorkerRow[]> {
    return this.#db.read(() => listWorkers(this.#db, () => this.#leaseClock.monotonic(), this.#boot));
  }

  owners(): Promise<OwnerRow[]> {
    return this.#db.read(() => listOwners(this.#db));
  }

  async fence(request: FenceRequest): Promise<FenceReply> {
    const moment = this.#moment();
    this.#owned.forgetAll();
    const reply = await this.#db.write(() =>
      fence(this.#db, request, moment, (lease) => leaseLeftMs(lease, this.#leaseClock.monotonic(), this.#boot) < 0),
    );
    for (const worker of request.workers) this.#registered.delete(worker);
    if (request.successor !== undefined) this.#remember(request.successor, moment);
    return reply;
  }

  async retire(worker: string): Promise<void> {
    this.#owned.forgetAll();
    await this.#db.write(() => retire(this.#db, worker, this.#clock.now()));
    this.#registered.delete(worker);
  }

  /** A thread can only follow the machine's own clock. */
  get hasPulse(): boolean {
    return this.#leaseClock === systemClock;
  }

  pulse(worker: string, everyMs: number, stallMs: number): Pulse {
    const { path, durability } = this.#db;
    const task = { path, worker, everyMs, stallMs, synchronous: SYNCHRONOUS[durability] };
    const confirmedAt = this.#registered.get(worker) ?? 0;
    const pulse = startPulse(task, {
      confirmedAt,
      beatHere: (signals) => void this.#beat(worker, signals),
      file: () => ownFile("#pulse"),
    });
    this.#pulses.add(pulse);
    return {
      confirmedAt: () => pulse.confirmedAt(),
      beat: () => pulse.beat(),
      stop: async () => {
        this.#pulses.delete(pulse);
        await pulse.stop();
      },
    };
  }

  /** Threads whose worker was never stopped would go on writing to the file. */
  async stopPulses(): Promise<void> {
    await Promise.all([...this.#pulses].map((pulse) => pulse.stop()));
    this.#pulses.clear();
  }

  // An error is no answer: the lease runs on, or out, and the next beat tries again.
  async #beat(worker: string, signals: PulseSignals): Promise<void> {
    const sentAt = this.#leaseClock.monotonic();
    try {
      const { alive, others } = await this.heartbeat(worker);
      if (alive) signals.confirm(sentAt, others);
      else signals.fenced();
    } catch {}
  }

  #remember(worker: NewWorker, { monotonic }: Moment): void {
    this.#boot = worker.process.boot;
    this.#registered.set(worker.id, monotonic);
  }

  #moment(): Moment {
    return { now: this.#clock.now(), monotonic: this.#leaseClock.monotonic() };
  }
}
