// The world outside the workflow
// Counts what steps do there. A counter takes each idempotency key once, as a good provider does.
import type { StepInfo } from "../../core/context.ts";
import type { Life } from "./life.ts";

export class Ledger {
  /** Attempts whose function is under way, and where. */
  readonly #running = new Map<string, Life>();
  readonly counters: Map<string, number> = new Map();
  readonly #applied = new Set<string>();

  began(life: Life, { key, attempt }: StepInfo): void {
    this.#running.set(`${key}@${attempt}`, life);
  }

  ended({ key, attempt }: StepInfo): void {
    this.#running.delete(`${key}@${attempt}`);
  }

  /** Whether this process is alive and in the middle of a step. */
  isBusy(pid: number): boolean {
    for (const life of this.#running.values()) if (life.pid === pid && !life.isDead) return true;
    return false;
  }

  acted({ key }: StepInfo, counter: string, by: number): void {
    if (this.#applied.has(key)) return;
    this.#applied.add(key);
    this.counters.set(counter, (this.counters.get(counter) ?? 0) + by);
  }

  hasActed(key: string): boolean {
    return this.#applied.has(key);
  }
}
