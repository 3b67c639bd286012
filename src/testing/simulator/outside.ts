// The world outside the workflow
// Counts what steps do there. A counter takes each idempotency key once, as a good provider does; the ledger counts every start of a function.
import type { StepInfo } from "../../core/context.ts";
import type { Life } from "./life.ts";

export interface Start {
  readonly life: Life;
  readonly run: string;
  readonly key: string;
  readonly attempt: number;
}

export class Ledger {
  /** Every start of a step's function, by idempotency key. */
  readonly starts: Map<string, Start[]> = new Map();
  readonly counters: Map<string, number> = new Map();
  readonly #applied = new Set<string>();

  began(life: Life, run: string, { key, attempt }: StepInfo): Start {
    const start = { life, run, key, attempt };
    const starts = this.starts.get(key);
    if (starts === undefined) this.starts.set(key, [start]);
    else starts.push(start);
    return start;
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
