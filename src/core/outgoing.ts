import type { Batch, Draft } from "./draft.ts";
import type { Pass } from "./pass.ts";
import type { CounterChange } from "./store.ts";

/** The way of a run's batches to the store: at most one in flight, a refused one offered again before anything newer (P15). */
export class Outgoing {
  readonly #draft: Draft;
  #inFlight: Batch | null = null;
  #offer: Batch | null = null;
  #wasOffered = false;

  constructor(draft: Draft) {
    this.#draft = draft;
  }

  get inFlight(): Batch | null {
    return this.#inFlight;
  }

  /** The batch that was taken last had been offered before: what its source has asked for since was not looked at. */
  get wasOffered(): boolean {
    return this.#wasOffered;
  }

  get isEmpty(): boolean {
    return this.#inFlight === null && this.#offer === null && this.#draft.isEmpty;
  }

  /** Where the journal ends in the store, as far as it was acknowledged. */
  get durableHead(): number {
    return (this.#inFlight ?? this.#offer)?.from.head ?? this.#draft.from.head;
  }

  /** A batch is on its way, or has to go again. */
  get isBusy(): boolean {
    return this.#inFlight !== null || this.#offer !== null;
  }

  /** What is in flight rests on what the inbox did not have: if more has come since, that has to be looked at first. */
  get restsOnMail(): boolean {
    const batch = this.#inFlight;
    return batch !== null && (batch.withoutSuspension ?? batch.commit).ifWake !== undefined;
  }

  /** The batch of a transaction goes by itself. */
  send(batch: Batch): void {
    this.#inFlight = batch;
  }

  /** The next batch, unless one is in flight. */
  take(source: { nextBatch(): Batch | null }): Batch | null {
    if (this.#inFlight !== null || this.#draft.isHeld) return null;
    this.#wasOffered = this.#offer !== null;
    this.#inFlight = this.#offer ?? source.nextBatch();
    this.#offer = null;
    return this.#inFlight;
  }

  /** The store has answered: the batch is no longer in flight. */
  land(): Batch | null {
    const batch = this.#inFlight;
    this.#inFlight = null;
    if (batch?.isTransaction) this.#draft.release();
    return batch;
  }

  /** The same bytes again; those of a transaction that was rolled back without its outcome. */
  offerAgain(): void {
    if (!this.#inFlight?.isTransaction) {
      this.#offer = this.land() ?? this.#offer;
      return;
    }
    this.#draft.reopen(this.#inFlight);
    this.land();
  }

  /** Takes back a batch that counters have refused, without these changes; the outcome of a transaction was rolled back with it. */
  takeBack(isDropped: (change: CounterChange) => boolean): void {
    const batch = this.#inFlight;
    if (batch === null) return;
    if (batch.isTransaction) this.#draft.reopen(batch);
    else this.#draft.putBack(batch);
    this.#draft.dropCounters(isDropped);
    this.land();
  }

  /** Takes back what was overtaken: the end of a run by a cancel, a suspension by mail. False if nothing was in flight. */
  overtaken(why: "wake" | "cancel"): boolean {
    const batch = this.land();
    if (batch === null) return false;
    if (why === "cancel") this.#draft.reopen(batch);
    else if (batch.withoutSuspension !== null)
      this.#offer = { ...batch, commit: batch.withoutSuspension, withoutSuspension: null };
    return true;
  }
}

/** Whether a refused batch can go another way: a suspension stays, an end is taken back. What rests on mail has to be thought out anew. */
export function isOvertaken({ outgoing, isParking }: Pass, why: string): why is "wake" | "cancel" {
  return why === "wake" ? !outgoing.restsOnMail : why === "cancel" && !isParking;
}
