// A lane
// One commit after the other, and who is told of it when: the answers of a commit are handed on a slice at a time.
//
//   LA1. What has to be told at once is: that a start is durable, and the answers that nobody but their caller waits for.
//   LA2. A run counts as in flight until it was told: what it has to write by then waits.
//   LA3. Whoever was told and is not written yet is ahead; there are never more of them than a slice. What takes its time is not waited for.
import type { Host } from "../core/host.ts";
import type { Verdict } from "../core/store.ts";
import type { CommitSource } from "./commit-source.ts";

export interface Answer {
  readonly source: CommitSource;
  readonly verdict: Verdict;
}

/** Called when a commit is over, with what has to come again and the answers to the rest. */
export type Done = (again: readonly CommitSource[], answers: readonly Answer[]) => void;

interface Untold {
  readonly verdict: Verdict;
  /** Its source has more to write. */
  isDirty: boolean;
}

export interface LaneOwner {
  commit(sources: Iterable<CommitSource>, done: Done): void;
  isPaused(): boolean;
  /** More is about to come; `turnsClosed` is called when it has. */
  isGathering(): boolean;
  areTurnsWanted(): boolean;
  /** A source could not take its answer. */
  broken(error: unknown, source: CommitSource): void;
}

export class Lane {
  readonly #host: Host;
  readonly #owner: LaneOwner;
  readonly #sliceRuns: number;
  #dirty = new Set<CommitSource>();
  /** Answers that were not handed on yet, in their order (C5). */
  readonly #untold = new Map<CommitSource, Untold>();
  #isCommitting = false;
  #isScheduled = false;
  #isTellingSoon = false;
  readonly #ahead = new Ahead();
  #epoch = 0;

  constructor(host: Host, owner: LaneOwner, sliceRuns: number) {
    this.#host = host;
    this.#owner = owner;
    this.#sliceRuns = sliceRuns;
  }

  get isBusy(): boolean {
    return this.#isCommitting || this.#dirty.size > 0 || this.#untold.size > 0;
  }

  add(source: CommitSource): void {
    const answer = this.#untold.get(source);
    if (answer !== undefined) {
      answer.isDirty = true;
      return;
    }
    this.#dirty.add(source);
    this.wake();
  }

  wake(): void {
    if (this.#isScheduled || this.#owner.isGathering() || !this.#isReady) return;
    this.#isScheduled = true;
    this.#host.immediate(() => {
      this.#isScheduled = false;
      this.flush();
    });
  }

  get #isReady(): boolean {
    return this.#dirty.size > 0 && !this.#isCommitting && !this.#owner.isPaused();
  }

  /** After a pause: a commit that never answered is no longer waited for. */
  restart(): void {
    this.#epoch++;
    this.#isCommitting = false;
    this.wake();
  }

  turnsClosed(): void {
    this.#ahead.turnsClosed();
    this.flush();
    this.#tellSoon();
  }

  flush(): void {
    if (!this.#isReady) return;
    this.#isCommitting = true;
    const epoch = this.#epoch;
    const sources = this.#dirty;
    this.#dirty = new Set();
    if (!this.#owner.areTurnsWanted()) this.#ahead.turnsClosed();
    this.#ahead.commitBegins();
    this.#owner.commit(sources, (again, answers) => {
      for (const source of again) this.#dirty.add(source);
      if (epoch === this.#epoch) {
        this.#isCommitting = false;
        this.#ahead.commitEnds(again.length === 0);
      }
      this.#sort(answers);
      this.#tell();
      this.wake();
    });
  }

  /** Hands on what cannot wait. */
  #sort(answers: readonly Answer[]): void {
    const urgent: Answer[] = [];
    for (const answer of answers) {
      if (answer.verdict.kind === "applied") answer.source.acknowledge();
      answer.source.isPatient ? this.#keep(answer) : urgent.push(answer);
    }
    // Only now: one of them may find that the lease is over, and then none of the others counts any more (C4).
    for (const answer of urgent) this.#hand(answer);
  }

  /** Only runs have answers that were not handed on, and all of them are compared with the store now. */
  forgetAnswers(): void {
    for (const [source, { isDirty }] of this.#untold) if (isDirty) this.#dirty.add(source);
    this.#untold.clear();
  }

  /** What the source has to write by now waits for its answer: until then it counts as in flight. */
  #keep({ source, verdict }: Answer): void {
    this.#untold.set(source, { verdict, isDirty: this.#dirty.delete(source) });
  }

  /** Hands on answers, as far as the slice has room (C5). Nobody goes on in the middle of somebody else's turn: its own is still to come. */
  #tell(): void {
    for (const [source, { verdict, isDirty }] of this.#untold) {
      if (this.#ahead.size >= this.#sliceRuns || this.#owner.isGathering()) return this.#tellSoon();
      this.#untold.delete(source);
      this.#hand({ source, verdict });
      if (!source.isOver) this.#ahead.goesOn();
      if (isDirty) this.add(source);
    }
  }

  #hand({ source, verdict }: Answer): void {
    try {
      source.verdict(verdict);
    } catch (error) {
      this.#owner.broken(error, source);
    }
  }

  /** The others wait for turns and a commit, if there are any: otherwise what was begun takes its time, and nobody waits for it. */
  #tellSoon(): void {
    if (this.#untold.size === 0 || this.#isTellingSoon) return;
    this.#isTellingSoon = true;
    this.#host.immediate(() => {
      this.#isTellingSoon = false;
      if (this.#isCommitting || this.#dirty.size > 0 || this.#owner.areTurnsWanted()) return;
      this.#ahead.forget();
      this.#tell();
    });
  }
}

/** How many runs have gone on while what they do is not written. What is quick asks for its turn at once, and is there when that has closed. */
class Ahead {
  #beforeTurn = 0;
  #unwritten = 0;
  #underWay = 0;

  get size(): number {
    return this.#beforeTurn + this.#unwritten + this.#underWay;
  }

  goesOn(): void {
    this.#beforeTurn++;
  }

  turnsClosed(): void {
    this.#unwritten += this.#beforeTurn;
    this.#beforeTurn = 0;
  }

  commitBegins(): void {
    this.#underWay += this.#unwritten;
    this.#unwritten = 0;
  }

  commitEnds(isWritten: boolean): void {
    if (!isWritten) this.#unwritten += this.#underWay;
    this.#underWay = 0;
  }

  forget(): void {
    this.#beforeTurn = 0;
    this.#unwritten = 0;
    this.#underWay = 0;
  }
}
