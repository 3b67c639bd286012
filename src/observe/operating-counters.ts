// Counters of a process
// What this process has done since it was opened, counted as it happens and at no more cost than that.
import type { StoredEntry } from "../core/journal.ts";

/** Upper bounds in seconds: from a step that is over at once to one that takes an hour. */
export const STEP_SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 3600] as const;
export const COMMIT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5] as const;
export const COMMIT_ENTRIES = [1, 2, 5, 10, 50, 100, 500, 1000, 8192] as const;

export interface HistogramValue {
  /** Each with how many were at most so large; the last bound is missing: `count`. */
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
  readonly sum: number;
  readonly count: number;
}

class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  add(value: number): void {
    this.#sum += value;
    this.#count++;
    for (let i = this.#bounds.length - 1; i >= 0 && value <= (this.#bounds[i] as number); i--)
      this.#counts[i] = (this.#counts[i] ?? 0) + 1;
  }

  get value(): HistogramValue {
    return {
      buckets: this.#bounds.map((le, i) => ({ le, count: this.#counts[i] ?? 0 })),
      sum: this.#sum,
      count: this.#count,
    };
  }
}

/** What a process has done since it was opened. */
export interface ProcessMetrics {
  /** By how they ended: completed, failed, retried, unknown. */
  readonly steps: Readonly<Record<StepOutcome, number>>;
  /** Of attempts that began and ended here. */
  readonly stepSeconds: HistogramValue;
  readonly commitSeconds: HistogramValue;
  readonly commitEntries: HistogramValue;
  readonly claims: number;
  /** How often it had to take a new incarnation: its lease was over, or the outcome of a commit was unknown. */
  readonly leaseMisses: number;
  /** Starts and signals that had come before. */
  readonly duplicates: number;
}

export type StepOutcome = "completed" | "failed" | "retried" | "unknown";

/** Runs whose attempts under way are remembered; of more than that, those that came first are not measured. */
const MOST_OPEN = 10_000;

interface OpenAttempt {
  readonly key: string | null;
  readonly at: number;
}

export class OperatingCounters {
  readonly #steps: Record<StepOutcome, number> = { completed: 0, failed: 0, retried: 0, unknown: 0 };
  readonly #stepSeconds = new Histogram(STEP_SECONDS);
  readonly #commitSeconds = new Histogram(COMMIT_SECONDS);
  readonly #commitEntries = new Histogram(COMMIT_ENTRIES);
  /** When attempts began, by run, oldest first. Most runs have one at a time, for which a map, or a text of run and step, would cost more than the step. */
  readonly #begun = new Map<string, OpenAttempt | Map<string | null, number>>();
  #claims = 0;
  #leaseMisses = 0;
  #duplicates = 0;

  committed(run: string, entries: readonly StoredEntry[], isRetry: (entry: StoredEntry) => boolean): void {
    for (const entry of entries) {
      switch (entry.type) {
        case "step.started":
        case "effect.planned":
          this.#begin(run, entry);
          break;
        case "step.completed":
        case "effect.executed":
        case "effect.compensated":
          this.#end(run, entry, "completed");
          break;
        case "step.failed":
          this.#end(run, entry, isRetry(entry) ? "retried" : "failed");
          break;
        case "effect.unknown":
          this.#end(run, entry, "unknown");
      }
    }
  }

  took(entries: number, ms: number): void {
    this.#commitSeconds.add(ms / 1000);
    this.#commitEntries.add(entries);
  }

  claimed(runs: number): void {
    this.#claims += runs;
  }

  missedLease(): void {
    this.#leaseMisses++;
  }

  duplicate(): void {
    this.#duplicates++;
  }

  get value(): ProcessMetrics {
    return {
      steps: { ...this.#steps },
      stepSeconds: this.#stepSeconds.value,
      commitSeconds: this.#commitSeconds.value,
      commitEntries: this.#commitEntries.value,
      claims: this.#claims,
      leaseMisses: this.#leaseMisses,
      duplicates: this.#duplicates,
    };
  }

  #begin(run: string, { key, at }: StoredEntry): void {
    const others = this.#begun.get(run);
    if (others instanceof Map) return void others.set(key, at);
    if (others !== undefined) return void this.#begun.set(run, new Map([[others.key, others.at]]).set(key, at));
    if (this.#begun.size >= MOST_OPEN) this.#begun.delete(this.#begun.keys().next().value as string);
    this.#begun.set(run, { key, at });
  }

  #end(run: string, { key, at }: StoredEntry, outcome: StepOutcome): void {
    this.#steps[outcome]++;
    const begunAt = this.#takeBegun(run, key);
    if (begunAt !== undefined) this.#stepSeconds.add((at - begunAt) / 1000);
  }

  #takeBegun(run: string, key: string | null): number | undefined {
    const open = this.#begun.get(run);
    if (!(open instanceof Map)) {
      if (open?.key !== key) return undefined;
      this.#begun.delete(run);
      return open.at;
    }
    const at = open.get(key);
    open.delete(key);
    if (open.size === 0) this.#begun.delete(run);
    return at;
  }
}
