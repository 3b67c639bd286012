// Transactions of the runs in this process
// Hands the work of a pass to the store, and what the store says of it back to the pass: as with the committer's batches, an answer counts
// only while this incarnation lasts, and an unknown outcome ends it (C4, P17).
import { hasCode } from "../base/errors.ts";
import type { TransactionCall } from "../core/call.ts";
import type { Batch } from "../core/draft.ts";
import type { Pass } from "../core/pass.ts";
import type { Sql } from "../core/sql.ts";
import type { Sealed, Store, Verdict } from "../core/store.ts";
import type { Undone } from "../core/transactions.ts";
import type { Committer } from "./committer.ts";
import type { SelfFence } from "./self-fence.ts";

export interface TransactorParts {
  readonly store: Store;
  readonly committer: Committer;
  readonly selfFence: SelfFence;
  readonly leaseMs: number;
  /** Resolves when the store may be asked again. */
  unavailable(error: unknown, failures: number): Promise<void>;
  verdict(pass: Pass, verdict: Verdict): void;
}

const AGAIN: Undone = { isAgain: true };
const DECIDED: Undone = {};

/** What the store has said. */
type Answer = { readonly verdict: Verdict } | { readonly error: unknown };

export class Transactor {
  readonly #parts: TransactorParts;
  #failures = 0;

  constructor(parts: TransactorParts) {
    this.#parts = parts;
  }

  async run(pass: Pass, call: TransactionCall, work: (sql: Sql) => Batch | Promise<Batch>): Promise<Undone> {
    const { committer } = this.#parts;
    let sealed: Batch | null = null;
    let hasThrown = false;
    const threw = (error: unknown): never => {
      hasThrown = true;
      throw error;
    };
    const seal = (batch: Batch): Sealed => {
      sealed = batch;
      return { worker: committer.worker as string, commit: batch.commit };
    };
    const answer = await this.#ask(pass, call, (sql) => {
      try {
        const batch = work(sql);
        return batch instanceof Promise ? batch.then(seal, threw) : seal(batch);
      } catch (error) {
        return threw(error);
      }
    });
    if (sealed === null) return this.#rolledBack(answer, hasThrown);
    return this.#decide(pass, sealed, answer);
  }

  async #ask(pass: Pass, call: TransactionCall, work: (sql: Sql) => Sealed | Promise<Sealed>): Promise<Answer> {
    const { store, committer, leaseMs } = this.#parts;
    const request = {
      lane: committer.laneOf(pass.id),
      isolation: call.isolation,
      timeoutMs: call.policy.timeoutMs,
      idleMs: Math.ceil((leaseMs * 2) / 3),
    };
    try {
      const verdict = await store.transact?.(request, work);
      if (verdict === undefined) throw new Error("A store that has no transactions is not asked for one.");
      this.#failures = 0;
      return { verdict };
    } catch (error) {
      return { error };
    }
  }

  /** It never came to its last statement. */
  async #rolledBack(answer: Answer, hasThrown: boolean): Promise<Undone> {
    if (!("error" in answer) || (hasThrown && !hasCode(answer.error, "storage_unavailable"))) return DECIDED;
    await this.#parts.unavailable(answer.error, ++this.#failures);
    return AGAIN;
  }

  async #decide(pass: Pass, sealed: Batch, answer: Answer): Promise<Undone> {
    const { selfFence } = this.#parts;
    // The old incarnation's answers no longer count: its successor reads what became of the batch.
    if (selfFence.isUnderWay) await selfFence.done();
    if (pass.isOver || pass.outgoing.inFlight !== sealed) return DECIDED;
    if ("error" in answer && !hasCode(answer.error, "storage_unavailable")) return this.#cutOff(answer.error);
    if ("verdict" in answer && isFenced(answer.verdict)) return this.#cutOff(null);
    if ("verdict" in answer && answer.verdict.kind !== "failed") {
      this.#parts.verdict(pass, answer.verdict);
      return DECIDED;
    }
    pass.offerAgain();
    if (!("error" in answer)) return answer.verdict.kind === "failed" ? { error: answer.verdict.error } : DECIDED;
    await this.#parts.unavailable(answer.error, ++this.#failures);
    return AGAIN;
  }

  /** Resolves when a new incarnation has read what became of the batch. */
  async #cutOff(error: unknown): Promise<Undone> {
    const { selfFence } = this.#parts;
    selfFence.cutOff(error, []);
    await selfFence.done();
    return DECIDED;
  }
}

function isFenced(verdict: Verdict): boolean {
  return verdict.kind === "refused" && verdict.why === "fenced";
}
