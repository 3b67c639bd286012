// Self-fencing
// Whoever was cut off from the store takes a new incarnation first, and only then looks at what became of its runs (P17).
//
//   F1. While it is under way nothing is committed, claimed or begun; answers to the old incarnation no longer count.
//   F2. It is tried until it works: everything that this process holds depends on it.
import { messageOf } from "../base/errors.ts";
import type { Log } from "../core/context.ts";
import type { Store } from "../core/store.ts";
import type { CommitSource } from "./commit-source.ts";
import type { Committer } from "./committer.ts";
import type { Lease } from "./lease.ts";
import type { PassTable } from "./pass-table.ts";

export interface SelfFenceParts {
  readonly store: Store;
  readonly lease: Lease;
  readonly committer: Committer;
  readonly passes: PassTable;
  readonly log: Log;
  isStopping(): boolean;
  /** Resolves when the store may be asked again. */
  unavailable(error: unknown, failures: number): Promise<void>;
  /** The new incarnation is at work. */
  renewed(): void;
}

export class SelfFence {
  readonly #parts: SelfFenceParts;
  #underWay: Promise<void> | null = null;
  #waiting: (() => void)[] = [];

  constructor(parts: SelfFenceParts) {
    this.#parts = parts;
  }

  get isUnderWay(): boolean {
    return this.#underWay !== null;
  }

  /** Resolves when none is under way. */
  async done(): Promise<void> {
    await this.#underWay;
  }

  /** The store has answered that this worker is fenced (`null`), or nobody knows what it has done. */
  cutOff(error: unknown, sources: readonly CommitSource[]): void {
    const why = error === null ? "it was fenced" : `the outcome of a commit is unknown (${messageOf(error)})`;
    this.begin(why, sources);
  }

  /** Calls back when a lease surely runs again. */
  whenSafe(fn: () => void): void {
    this.#waiting.push(fn);
    this.begin("its lease ran out before a step began");
  }

  begin(why: string, unsettled: readonly CommitSource[] = []): void {
    this.#underWay ??= this.#takeNewIncarnation(why, unsettled).finally(() => {
      this.#underWay = null;
      for (const fn of this.#waiting.splice(0)) fn();
      this.#parts.renewed();
    });
  }

  async #takeNewIncarnation(why: string, unsettled: readonly CommitSource[]): Promise<void> {
    const { store, lease, committer, passes, log } = this.#parts;
    // Whatever is still under way belongs to the old incarnation: its answer no longer counts (P17).
    const cutOff = [...unsettled, ...committer.pause()];
    log.warn(`Worker ${lease.id} takes a new incarnation: ${why}.`, { event: "worker.fenced", worker: lease.id, why });
    for (let failures = 1; ; failures++) {
      try {
        const readAt = store.clock.now();
        const { moved } = await lease.renew();
        passes.settle(new Map(moved.map((mail) => [mail.run, mail])), readAt);
        this.#settleWrites(cutOff);
        break;
      } catch (error) {
        if (this.#parts.isStopping() && failures > 3) return;
        await this.#parts.unavailable(error, failures);
      }
    }
    committer.worker = lease.id;
    committer.resume();
  }

  /** Single writes have no pass: offered again, they meet their own traces if they were applied (ST2). */
  #settleWrites(unsettled: readonly CommitSource[]): void {
    const { committer, passes } = this.#parts;
    for (const source of new Set(unsettled)) {
      if (passes.owns(source)) continue;
      source.offerAgain();
      committer.dirty(source);
    }
  }
}
