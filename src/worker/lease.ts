// The lease
// This process as the store knows it: one incarnation at a time, renewed by heartbeats, replaced as soon as anything about it is in doubt.
//
//   L1. Every incarnation has a random id of its own; a fenced one never comes back (B15, B20).
//   L2. A step starts only while the lease surely runs, counted locally from when the last confirmed heartbeat was sent (P37).
//   L3. Whoever was cut off takes a new incarnation first and looks second (P17).
import { formatMs } from "../base/duration.ts";
import { messageOf, PawlError } from "../base/errors.ts";
import type { Log } from "../core/context.ts";
import type { FenceReply, Handle, NewWorker, ProcessIdentity, Pulse, Store } from "../core/store.ts";
import { Loop } from "./loop.ts";

export interface LeaseOptions {
  readonly name: string;
  readonly leaseMs: number;
  readonly stallMs: number;
  readonly handles: readonly Handle[];
  readonly log: Log;
  newId(): string;
  identity(): ProcessIdentity;
  /** The store says that this incarnation is over. */
  lost(): void;
  /** A heartbeat went through. */
  beat(): Promise<void>;
}

export class Lease {
  readonly #store: Store;
  readonly #options: LeaseOptions;
  readonly #loop: Loop;
  readonly #former: string[] = [];
  #worker: NewWorker | null = null;
  #pulse: Pulse | null = null;
  #confirmedAt = Number.NEGATIVE_INFINITY;
  #heldSince = 0;
  /** When the loop was last seen to wait for the next beat. */
  #waitsSince = 0;

  constructor(store: Store, options: LeaseOptions) {
    this.#store = store;
    this.#options = options;
    this.#loop = new Loop(store.leaseClock, this.#everyMs, () => this.#beat());
  }

  get #everyMs(): number {
    return Math.max(1, this.#options.leaseMs / 3);
  }

  get id(): string | null {
    return this.#worker?.id ?? null;
  }

  /** How long heartbeats have gone through without a break (P25). */
  get heldForMs(): number {
    return this.isSure ? this.#store.leaseClock.monotonic() - this.#heldSince : 0;
  }

  /** Whether nobody can have taken this worker's runs (P37). */
  get isSure(): boolean {
    const confirmed = this.#pulse?.confirmedAt() ?? Number.NEGATIVE_INFINITY;
    return this.#store.leaseClock.monotonic() - Math.max(confirmed, this.#confirmedAt) < this.#options.leaseMs;
  }

  async start(): Promise<string> {
    const worker = this.#newWorker();
    const sentAt = this.#store.leaseClock.monotonic();
    await this.#store.register(worker);
    this.#hold(worker, sentAt);
    this.#waitsSince = this.#store.leaseClock.monotonic();
    this.#loop.start();
    return worker.id;
  }

  /** Replaces this incarnation, and whatever earlier ones are left of it, by a new one that takes over their runs. */
  async renew(): Promise<FenceReply> {
    const former = this.#worker;
    if (former !== null) this.#former.push(former.id);
    await this.#stopPulse();
    this.#confirmedAt = Number.NEGATIVE_INFINITY;
    const worker = this.#newWorker();
    const sentAt = this.#store.leaseClock.monotonic();
    const workers = [...new Set(this.#former)];
    // If the answer is lost, this one may be registered all the same, and own everything.
    this.#former.push(worker.id);
    const reply = await this.#store.fence({ workers, successor: worker });
    this.#former.length = 0;
    this.#hold(worker, sentAt);
    return reply;
  }

  /** Hands everything back, or if the store cannot be written to leaves it to those who find this process gone. */
  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.#stopPulse();
    const worker = this.#worker;
    this.#worker = null;
    this.#confirmedAt = Number.NEGATIVE_INFINITY;
    if (worker === null) return;
    try {
      await this.#store.retire(worker.id);
    } catch (error) {
      this.#options.log.warn(
        `Worker ${worker.id} could not hand its runs back; others take them over when its lease is over.`,
        {
          error: messageOf(error),
        },
      );
    }
  }

  #newWorker(): NewWorker {
    const { name, leaseMs, handles, newId, identity } = this.#options;
    return { id: newId(), name, leaseMs, process: identity(), handles };
  }

  #hold(worker: NewWorker, sentAt: number): void {
    this.#worker = worker;
    this.#confirmedAt = sentAt;
    this.#heldSince = sentAt;
    this.#pulse = this.#store.pulse?.(worker.id, this.#options.leaseMs / 3, this.#options.stallMs) ?? null;
  }

  async #stopPulse(): Promise<void> {
    const pulse = this.#pulse;
    this.#pulse = null;
    await pulse?.stop();
  }

  async #beat(): Promise<void> {
    const worker = this.#worker;
    if (worker === null) return;
    this.#tellOfStall(worker.id);
    try {
      if (await this.#isAlive(worker.id)) return await this.#options.beat();
      if (this.#worker === worker) this.#options.lost();
    } catch (error) {
      this.#options.log.warn(`The heartbeat of worker ${worker.id} failed; it is tried again.`, {
        error: messageOf(error),
      });
    } finally {
      this.#waitsSince = this.#store.leaseClock.monotonic();
    }
  }

  /** A beat that comes later than the one after it was due: nothing in this process has moved for so long (I27). */
  #tellOfStall(worker: string): void {
    const stalledMs = Math.floor(this.#store.leaseClock.monotonic() - this.#waitsSince - this.#everyMs);
    if (stalledMs < this.#everyMs) return;
    this.#options.log.warn(
      `The event loop of worker ${worker} stood still for ${formatMs(stalledMs)} or longer. Meanwhile no other run in this process went on. ` +
        "Look for synchronous work in a step, and move it to a worker thread or a child process.",
      { stalledMs },
    );
  }

  async #isAlive(worker: string): Promise<boolean> {
    const sentAt = this.#store.leaseClock.monotonic();
    if (!this.isSure) this.#heldSince = sentAt;
    if (this.#pulse !== null) {
      this.#pulse.beat();
      return this.#pulse.confirmedAt() !== Number.NEGATIVE_INFINITY;
    }
    const { alive } = await this.#store.heartbeat(worker);
    if (alive) this.#confirmedAt = sentAt;
    return alive;
  }
}

export function leaseLost(run: string): PawlError {
  return new PawlError(
    "lease_lost",
    `This process no longer owns run ${run}; another one goes on with it. Whatever this attempt still does is not recorded.`,
    {
      fields: { run },
    },
  );
}
