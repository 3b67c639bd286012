// Writing checkpoints
// One execution's way to its store. Writes are made one after the other, in the order of what they hold.
//
//   CW1. A milestone that cannot be saved is a warning: the work goes on, and a later one may succeed (S1-62).
//   CW2. What guards an effect, and the final answer, is the floor: the storage is tried again, and then the work stops (C-8). Nothing switches it off.
//   CW3. Floor writes that wait share one write. Each holds everything of the session at the moment it is made.
//   CW4. Asynchronous milestones keep their order and are written before any floor after them, and before the end.
import type { Clock } from "../base/clock.ts";
import { messageOf, PawlError } from "../base/errors.ts";
import type { Log } from "../core/context.ts";
import type { EventBus } from "./bus.ts";
import type { CheckpointStore, SaveOptions } from "./checkpoint-store.ts";
import { CheckpointSaved, type CheckpointSavedPayload } from "./recovery-events.ts";
import type { Session } from "./session.ts";
import { snapshotText } from "./snapshot.ts";

export interface CheckpointOptions extends SaveOptions {
  /** Milestones are written in the background: a kill loses those that were not written yet. Default false. */
  readonly async?: boolean;
  /** What happens if a milestone cannot be saved. Default `"warn"`. */
  readonly onFailure?: "warn" | "stop";
}

export interface WriterOptions {
  readonly store: CheckpointStore;
  readonly execution: string;
  readonly attempt: number;
  /** Of the checkpoint that it goes on from; 0: none. */
  readonly sequence: number;
  readonly deadline: number | null;
  readonly clock: Clock;
  readonly log: Log;
  readonly bus: EventBus;
  readonly checkpoint: CheckpointOptions;
}

type Cause = CheckpointSavedPayload["cause"];

/** How often the floor is tried, and what lies between. */
const FLOOR_WAITS_MS: readonly number[] = [100, 500, 2000];
/** Milestones that wait in memory before the work waits for them. */
const MOST_WAITING = 16;

export class CheckpointWriter {
  readonly #options: WriterOptions;
  #sequence: number;
  #queue: Promise<void> = Promise.resolve();
  #floor: Promise<void> | null = null;
  #waiting = 0;
  #milestones = 0;
  #failures = 0;
  #stop: unknown = null;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#sequence = options.sequence;
  }

  /** Milestones that were saved. */
  get milestones(): number {
    return this.#milestones;
  }

  /** Milestones that were not. */
  get failures(): number {
    return this.#failures;
  }

  /** The number of the last checkpoint. */
  get sequence(): number {
    return this.#sequence;
  }

  /** A milestone. Resolves when it is saved, or has failed to; at once where writing is asynchronous. */
  async save(session: Session): Promise<void> {
    const text = snapshotText(session.snapshot());
    this.#waiting += 1;
    const saved = this.#next(() => this.#milestone(session, text)).finally(() => {
      this.#waiting -= 1;
    });
    if (this.#options.checkpoint.async !== true || this.#waiting > MOST_WAITING) await saved;
  }

  /** Throws what stops the work: a milestone that had to be saved, and was not. */
  throwIfStopped(): void {
    if (this.#stop !== null) throw this.#stop;
  }

  /** What an effect must not begin, or be believed, without. */
  floor(session: Session): Promise<void> {
    this.#floor ??= this.#next(() => {
      this.#floor = null;
      return this.#persist(session, "effect");
    });
    return this.#floor;
  }

  /** The final answer. */
  finish(session: Session, value: unknown): Promise<void> {
    return this.#next(() => this.#persist(session, "final", { value }));
  }

  /** Resolves when everything was written. */
  flush(): Promise<void> {
    return this.#queue;
  }

  #next(work: () => Promise<void>): Promise<void> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {});
    return done;
  }

  async #milestone(session: Session, text: string): Promise<void> {
    try {
      await this.#write(session, text, "milestone");
      this.#milestones += 1;
    } catch (error) {
      this.#failures += 1;
      const { log, store, checkpoint } = this.#options;
      log.warn(
        `A checkpoint could not be saved to ${store.place}: ${messageOf(error)} The work goes on, and is resumed from the one before.`,
      );
      if (checkpoint.onFailure === "stop") this.#stop ??= error;
    }
  }

  async #persist(session: Session, cause: Cause, result?: { readonly value: unknown }): Promise<void> {
    const { store, log, clock } = this.#options;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#write(session, snapshotText(session.snapshot()), cause, result);
      } catch (error) {
        const waitMs = FLOOR_WAITS_MS[attempt];
        if (waitMs === undefined || !isOfStorage(error)) throw stopped(store.place, error);
        log.warn(`What must be saved could not be, to ${store.place}: ${messageOf(error)} It is tried again.`);
        await new Promise<void>((resolve) => void clock.after(waitMs, resolve));
      }
    }
  }

  async #write(session: Session, snapshot: string, cause: Cause, result?: { readonly value: unknown }): Promise<void> {
    const { store, execution, attempt, deadline, clock, bus, checkpoint } = this.#options;
    const sequence = this.#sequence + 1;
    const savedAt = clock.now();
    const saved = { execution, attempt, sequence, savedAt, deadline, snapshot };
    await store.saveCheckpoint(result === undefined ? saved : { ...saved, result }, checkpoint);
    this.#sequence = sequence;
    await bus.publish(CheckpointSaved({ session, execution, attempt, sequence, cause }));
  }
}

/** Of the disk or the server: another try may succeed. */
function isOfStorage(error: unknown): boolean {
  return !(error instanceof PawlError) || error.code === "storage_unavailable" || error.code === "unknown_outcome";
}

function stopped(place: string, error: unknown): unknown {
  if (!isOfStorage(error)) return error;
  return new PawlError(
    "storage_unavailable",
    `The work was stopped, since what guards its effects cannot be saved to ${place}: ${messageOf(error)} Start it again when the storage works: it goes on from its last checkpoint.`,
    { fields: { place }, cause: error },
  );
}
