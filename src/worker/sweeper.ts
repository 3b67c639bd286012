// The sweeper
// Finds workers that died and runs that nothing will wake, and puts them back to work.
import { messageOf } from "../base/errors.ts";
import type { Log } from "../core/context.ts";
import { type KeptFor, purgesFor } from "../core/retention.ts";
import { LONG_DEAD_MS, type ProcessIdentity, type Store, type WorkerRow } from "../core/store.ts";
import { readFacts } from "../core/workflow-facts.ts";
import type { Lease } from "./lease.ts";
import { Loop } from "./loop.ts";
import { isPlainlyDead } from "./process-identity.ts";

const NO_FACTS: ReturnType<typeof readFacts> = new Map();
/** How many runs leave at once. */
const PURGE_LIMIT = 500;

export interface SweeperOptions {
  readonly leaseMs: number;
  readonly sweepMs: number;
  readonly housekeepingMs: number;
  readonly retention: KeptFor | null;
  readonly log: Log;
  identity(): ProcessIdentity;
}

/** What else is done when it has looked. */
export interface SweeperDuties {
  /** Runs may be claimed that nobody could have claimed before. */
  released(): void;
  /** These had nothing that would have woken them, and are claimed again. */
  orphaned(runs: readonly string[]): void;
  /** Some workers are dead, and fenced. */
  died(): void;
  swept(): Promise<void>;
}

export class Sweeper {
  readonly #store: Store;
  readonly #lease: Lease;
  readonly #options: SweeperOptions;
  readonly #duties: SweeperDuties;
  readonly #sweep: Loop;
  readonly #housekeeping: Loop;

  constructor(store: Store, lease: Lease, options: SweeperOptions, duties: SweeperDuties) {
    this.#store = store;
    this.#lease = lease;
    this.#options = options;
    this.#duties = duties;
    const { sweepMs, housekeepingMs, leaseMs } = options;
    this.#sweep = new Loop(store.leaseClock, Math.min(sweepMs, leaseMs), () => this.#guarded(() => this.#round()));
    this.#housekeeping = new Loop(store.leaseClock, housekeepingMs, () => this.#guarded(() => this.#keepHouse()));
  }

  async start(): Promise<void> {
    this.#sweep.start();
    this.#housekeeping.start();
    await this.#sweep.tick();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#sweep.stop(), this.#housekeeping.stop()]);
  }

  async #round(): Promise<void> {
    await this.sweep();
    await this.#duties.swept();
  }

  /** Fences the dead and releases their runs. */
  async sweep(): Promise<void> {
    const mine = this.#options.identity();
    const others = (await this.#store.workers()).filter((worker) => worker.id !== this.#lease.id);
    const gone = others.filter((worker) => isPlainlyDead(worker.process, mine));
    const silent = others.filter((worker) => !gone.includes(worker) && this.#isSilent(worker));
    const released = (await this.#fence(gone, false)) + (await this.#fence(silent, true));
    if (released > 0) this.#duties.released();
  }

  /** One that was found silent may have been heard of since: then it stays. */
  async #fence(workers: readonly WorkerRow[], ifExpired: boolean): Promise<number> {
    if (workers.length === 0) return 0;
    const { released } = await this.#store.fence({ workers: workers.map((worker) => worker.id), ifExpired });
    const left = new Set((await this.#store.workers()).map(({ id }) => id));
    const dead = workers.filter(({ id }) => !left.has(id));
    for (const { id, name } of dead)
      this.#options.log.info(`Worker ${id} (${name}) is dead; its runs are taken over.`, {
        event: "worker.dead",
        worker: id,
      });
    if (dead.length > 0) this.#duties.died();
    return released;
  }

  /** Its lease ran out while ours held for a whole one (P25), or its machine has restarted since (P29). */
  #isSilent({ leaseLeftMs }: WorkerRow): boolean {
    if (leaseLeftMs <= LONG_DEAD_MS) return true;
    return leaseLeftMs < 0 && this.#lease.heldForMs >= this.#options.leaseMs;
  }

  async #keepHouse(): Promise<void> {
    const runs = (await this.#store.orphans()).map(({ run }) => run);
    if (runs.length > 0) {
      const some = runs.slice(0, 5);
      this.#options.log.error(
        `${runs.length} runs had nothing that would wake them and are claimed again: ${some.join(", ")}. Please report this.`,
        { event: "run.orphaned", runs: some },
      );
      await this.#store.adopt(runs);
      this.#duties.orphaned(runs);
      this.#duties.released();
    }
    await this.#purge();
  }

  async #purge(): Promise<void> {
    const { retention } = this.#options;
    const facts = retention === null ? NO_FACTS : readFacts(await this.#store.workflows());
    // Bounded: a store with a long backlog is cleaned over several rounds, in between others get their turn.
    for (const request of purgesFor(retention, facts, this.#store.clock.now()))
      for (let round = 0; round < 20; round++)
        if ((await this.#store.purge({ ...request, limit: PURGE_LIMIT })) < PURGE_LIMIT) break;
  }

  async #guarded(body: () => Promise<void>): Promise<void> {
    try {
      await body();
    } catch (error) {
      this.#options.log.warn(`Housekeeping failed and is tried again: ${messageOf(error)}`);
    }
  }
}
