// The documents that one call has to write, in order.
import type { NewContent } from "./disk.ts";
import { type Holdings, keptRun } from "./holdings.ts";
import { documentText, receiverOf } from "./run-document.ts";

export class Batch {
  readonly #holdings: Holdings;
  readonly #fileOf: (run: string) => string;
  readonly #contents: NewContent[] = [];
  readonly #later = new Set<string>();
  /** Of each run: whom the outbox names that is being written. */
  readonly #mentions = new Map<string, ReadonlySet<string>>();
  readonly #after: (() => void)[] = [];

  constructor(holdings: Holdings, fileOf: (run: string) => string) {
    this.#holdings = holdings;
    this.#fileOf = fileOf;
  }

  /** Writes the run's document as it is now, after those that were put before. */
  put(run: string): void {
    const kept = keptRun(this.#holdings, run);
    if (kept === null) return;
    this.#contents.push({ path: this.#fileOf(run), text: documentText(kept) });
    this.#mentions.set(run, new Set(kept.share.outbox.map(receiverOf)));
  }

  /** Writes the run's document after all that were put, as it is then. */
  later(run: string): void {
    this.#later.add(run);
  }

  /** Calls back when everything is written. */
  after(done: () => void): void {
    this.#after.push(done);
  }

  contents(): readonly NewContent[] {
    for (const run of this.#later) this.put(run);
    this.#later.clear();
    return this.#contents;
  }

  published(): void {
    for (const [run, mentions] of this.#mentions) {
      const share = this.#holdings.shares.get(run);
      if (share !== undefined) share.mentions = mentions;
    }
    for (const done of this.#after) done();
  }
}
