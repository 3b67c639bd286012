import { PawlError } from "../base/errors.ts";
import type { Batch } from "../core/draft.ts";
import type { Pass } from "../core/pass.ts";
import type { Mail, Verdict } from "../core/store.ts";
import type { CommitSource } from "./commit-source.ts";
import { leaseLost } from "./lease.ts";

export interface PassTableEvents {
  /** The store's answer to a pass's batch. */
  verdict(pass: Pass, verdict: Verdict, started: Started): void;
  /** A pass whose run is lost to this worker is gone. */
  dropped(pass: Pass): void;
}

/** Tells whoever has started a run why it was not accepted; `null`: it was. Only the first word counts. */
export type Started = (refusal: unknown) => void;

/** The runs that are in memory here, each as a source of commits. */
export class PassTable {
  readonly #events: PassTableEvents;
  readonly #passes = new Map<string, Pass>();
  readonly #sources = new Map<Pass, PassSource>();
  #taken = 0;

  constructor(events: PassTableEvents) {
    this.#events = events;
  }

  get size(): number {
    return this.#passes.size;
  }

  /** How many were ever held. */
  get taken(): number {
    return this.#taken;
  }

  has(run: string): boolean {
    return this.#passes.has(run);
  }

  get(run: string): Pass | undefined {
    return this.#passes.get(run);
  }

  all(): Pass[] {
    return [...this.#passes.values()];
  }

  sourceOf(pass: Pass): CommitSource | undefined {
    return this.#sources.get(pass);
  }

  owns(source: CommitSource): boolean {
    const pass = this.#passes.get(source.id);
    return pass !== undefined && this.#sources.get(pass) === source;
  }

  hold(pass: Pass, started: Started = tellNobody): void {
    this.#taken++;
    this.#passes.set(pass.id, pass);
    this.#sources.set(pass, new PassSource(pass, this, this.#events, started));
  }

  /** Lets go of a pass that is over. */
  forget(pass: Pass): void {
    if (this.#passes.get(pass.id) === pass) this.#passes.delete(pass.id);
    this.#sources.delete(pass);
  }

  /** Lets go of a pass whose run this worker has lost. */
  drop(pass: Pass): void {
    pass.drop(leaseLost(pass.id));
    this.#sources.get(pass)?.lose();
    this.forget(pass);
    this.#events.dropped(pass);
  }

  /** After an unknown outcome: each pass goes on, offers its batch again, or is dropped, by what the store says now (P17). */
  settle(moved: ReadonlyMap<string, Mail>, readAt: number): void {
    for (const pass of this.all()) {
      const mail = moved.get(pass.id);
      const batch = pass.outgoing.inFlight;
      const start = pass.durableHead;
      const end = start + (batch?.commit.entries.length ?? 0);
      // Nothing of it was ever acknowledged. If it is there all the same, the store will say so.
      const wasNeverCreated = mail === undefined && start === 0;
      if (wasNeverCreated && batch !== null) this.#sources.get(pass)?.doubt();
      if (mail !== undefined && mail.head === end && end > start) this.#landed(pass);
      else if (mail?.head === start || wasNeverCreated) pass.offerAgain();
      else this.drop(pass);
      if (mail !== undefined && !pass.isOver) pass.mail(mail, readAt);
    }
  }

  #landed(pass: Pass): void {
    this.#sources.get(pass)?.acknowledge();
    pass.applied();
  }
}

function tellNobody(): void {}

class PassSource implements CommitSource {
  readonly id: string;
  readonly isPatient = true;
  readonly #pass: Pass;
  readonly #table: PassTable;
  readonly #events: PassTableEvents;
  readonly #started: Started;
  #isInDoubt = false;

  constructor(pass: Pass, table: PassTable, events: PassTableEvents, started: Started) {
    this.id = pass.id;
    this.#pass = pass;
    this.#table = table;
    this.#events = events;
    this.#started = started;
  }

  get #isCreating(): boolean {
    return this.#pass.outgoing.inFlight?.commit.create !== undefined;
  }

  get isOver(): boolean {
    return this.#pass.isOver;
  }

  take(): Batch | null {
    return this.#pass.take();
  }

  /** Whoever has started the run waits for its first batch, not for the run to go on. */
  acknowledge(): void {
    if (this.#isCreating) this.#started(null);
  }

  verdict(verdict: Verdict): void {
    this.#events.verdict(this.#pass, verdict, this.#started);
  }

  offerAgain(): void {
    this.#pass.offerAgain();
  }

  /** Its start may have been applied: nobody may be told any more that it was not (I2). */
  doubt(): void {
    this.#isInDoubt = true;
  }

  /** A run that was surely never accepted has a caller who can be told; all others wait for the store to come back. */
  givesUp(error: unknown): boolean {
    if (this.#isInDoubt || !this.#isCreating) return false;
    this.#started(error);
    this.#table.drop(this.#pass);
    return true;
  }

  lose(): void {
    if (this.#started === tellNobody) return;
    const message = `Run ${this.id} may or may not have been started: this process lost it before the store had answered. Look for it before you start it again.`;
    this.#started(new PawlError("unknown_outcome", message, { fields: { run: this.id } }));
  }
}
