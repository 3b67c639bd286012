// The items of a map, summed up
// A few items are told one by one. Of many, nobody reads the lines: they are counted, and the count is told while the map goes on and
// when it is over.
import { type Entry, entryKind, type StepFailed } from "../core/journal.ts";
import type { Output, Progress } from "./output.ts";
import { countOf } from "./printable.ts";

/** So many lines of one map are shown. */
const LINES = 10;

/** The outermost map that a call belongs to; `null` for all others. */
export function mapOf(key: string): string | null {
  return /^(map(?:#\d+)?)\/\d+\//.exec(key)?.[1] ?? null;
}

export class MapItems {
  readonly #name: string;
  readonly #out: Output;
  readonly #open = new Set<string>();
  #lines = 0;
  #done = 0;
  #failed = 0;
  #progress: Progress | null = null;

  constructor(name: string, out: Output) {
    this.#name = name;
    this.#out = out;
  }

  /** There are so many that they are counted from now on. */
  get areMany(): boolean {
    return this.#lines >= LINES;
  }

  get isAtRest(): boolean {
    return this.#open.size === 0;
  }

  shown(): void {
    this.#lines += 1;
  }

  /** Takes in an entry of an item; one that `isNews` counts if it is not shown. */
  take(entry: Entry, isNews: boolean): void {
    const { type, key, payload } = entry;
    const isFailure = type === "step.failed";
    const goesOn = isFailure && (payload as StepFailed).retryAt !== null;
    // What a step saves or spends on its way neither begins nor ends it.
    if (entryKind(entry) === "mark" && !goesOn && !CALLS.has(type)) return;
    if (CALLS.has(type) || goesOn) this.#open.add(key ?? "");
    else this.#open.delete(key ?? "");
    if (!isNews || !this.areMany) return;
    if (type === "step.completed") this.#done += 1;
    if (isFailure && !goesOn) this.#failed += 1;
    this.#progress ??= this.#out.progress(`  ${this.#name}`);
    this.#progress.update(`${this.#count()}, ${this.#open.size.toLocaleString("en")} under way`);
  }

  /** Says in one line what was counted since the last time. */
  sumUp(): void {
    this.#progress?.done();
    this.#progress = null;
    if (this.#done + this.#failed === 0) return;
    const { green, yellow, dim } = this.#out.noteColor;
    this.#out.note(`  ${this.#failed === 0 ? green("✓") : yellow("✗")} ${this.#name}  ${dim(this.#count())}`);
    this.#done = 0;
    this.#failed = 0;
  }

  #count(): string {
    const failed = this.#failed === 0 ? "" : `, ${this.#failed.toLocaleString("en")} failed`;
    return `${countOf(this.#done, "more step")} done${failed}`;
  }
}

const CALLS: ReadonlySet<string> = new Set([
  "step.started",
  "timer.set",
  "signal.awaited",
  "child.started",
  "approval.requested",
  "callback.opened",
]);
