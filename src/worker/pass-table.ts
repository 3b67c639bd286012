import type { Batch } from "../core/draft.ts";
import type { Pass } from "../core/pass.ts";
import type { Mail, Verdict } from "../core/store.ts";
import type { CommitSource } from "./committer.ts";
import { leaseLost } from "./lease.ts";

export interface PassTableEvents {
  /** The store's answer to a pass's batch. */
  verdict(pass: Pass, verdict: Verdict, startRefused: (error: unknown) => void): void;
}

/** The runs that are in memory here, each as a source of commits. */
export class PassTable {
  readonly #events: PassTableEvents;
  readonly #passes = new Map<string, Pass>();
  readonly #sources = new Map<Pass, CommitSource>();

  constructor(events: PassTableEvents) {
    this.#events = events;
  }

  get size(): number {
    return this.#passes.size;
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

  hold(pass: Pass, startRefused: (error: unknown) => void = tellNobody): void {
    this.#passes.set(pass.id, pass);
    this.#sources.set(pass, new PassSource(pass, this, this.#events, startRefused));
  }

  /** Lets go of a pass that is over. */
  forget(pass: Pass): void {
    if (this.#passes.get(pass.id) === pass) this.#passes.delete(pass.id);
    this.#sources.delete(pass);
  }

  /** Lets go of a pass whose run this worker has lost. */
  drop(pass: Pass): void {
    pass.drop(leaseLost(pass.id));
    this.forget(pass);
  }

  /** After an unknown outcome: each pass goes on, offers its batch again, or is dropped, by what the store says now (P17). */
  settle(moved: ReadonlyMap<string, Mail>, readAt: number): void {
    for (const pass of this.all()) {
      const mail = moved.get(pass.id);
      const batch = pass.inFlight;
      const start = pass.durableHead;
      const end = start + (batch?.commit.entries.length ?? 0);
      const wasNeverCreated = mail === undefined && batch?.commit.create !== undefined;
      if (mail !== undefined && mail.head === end && end > start) pass.applied();
      else if (mail?.head === start || wasNeverCreated) pass.offerAgain();
      else this.drop(pass);
      if (mail !== undefined && !pass.isOver) pass.mail(mail, readAt);
    }
  }
}

function tellNobody(): void {}

class PassSource implements CommitSource {
  readonly id: string;
  readonly #pass: Pass;
  readonly #table: PassTable;
  readonly #events: PassTableEvents;
  readonly #startRefused: (error: unknown) => void;

  constructor(pass: Pass, table: PassTable, events: PassTableEvents, startRefused: (error: unknown) => void) {
    this.id = pass.id;
    this.#pass = pass;
    this.#table = table;
    this.#events = events;
    this.#startRefused = startRefused;
  }

  take(): Batch | null {
    return this.#pass.take();
  }

  verdict(verdict: Verdict): void {
    this.#events.verdict(this.#pass, verdict, this.#startRefused);
  }

  offerAgain(): void {
    this.#pass.offerAgain();
  }

  /** A run that was never accepted has a caller who can be told; all others wait for the store to come back. */
  givesUp(error: unknown): boolean {
    if (this.#pass.inFlight?.commit.create === undefined) return false;
    this.#table.drop(this.#pass);
    this.#startRefused(error);
    return true;
  }
}
