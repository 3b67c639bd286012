// Lists that stay up to date
// Looks at the first page of a list again whenever something may have changed, and tells what is new or different on it.
import type { Clock } from "../base/clock.ts";
import { patiently } from "../client/patiently.ts";
import type { Pawl } from "../client/pawl.ts";
import { type RunSummary, summaryOf } from "../client/run.ts";
import type { RunQuery } from "../client/run-list.ts";

/** How often a list is looked at: at most, when much happens, and at least, when nobody says that something does. */
const AT_MOST_MS = 250;
const AT_LEAST_MS = 1000;

/**
 * What has changed, each time something has. The first time it is the whole page. Runs that have left the page because they no longer fit are told
 * once more, as they are now.
 */
export async function* changesOf(
  pawl: Pawl,
  query: RunQuery,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<readonly RunSummary[], void, void> {
  const bell = new Bell(clock, signal);
  const forget = pawl.store.hints(() => bell.ring());
  let known = new Map<string, string>();
  try {
    for (let isFirst = true; !signal.aborted; ) {
      const page = await patiently(pawl.list(query));
      if (page === null) {
        await bell.next();
        continue;
      }
      const { runs } = page;
      const listed = new Set(runs.map(({ id }) => id));
      const left = await Promise.all([...known.keys()].filter((id) => !listed.has(id)).map((id) => pawl.store.run(id)));
      const seen = [...runs, ...left.flatMap((row) => (row === null ? [] : [summaryOf(row)]))];
      const changed = seen.filter((run) => known.get(run.id) !== JSON.stringify(run));
      known = new Map(runs.map((run) => [run.id, JSON.stringify(run)]));
      if (isFirst || changed.length > 0) yield changed;
      isFirst = false;
      await bell.next();
    }
  } finally {
    forget();
  }
}

/** Rings are gathered for a moment; without any it rings by itself. */
class Bell {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  #hasRung = false;
  #wake: () => void = () => {};

  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#wake());
  }

  ring(): void {
    this.#hasRung = true;
    this.#wake();
  }

  async next(): Promise<void> {
    await this.#wait(AT_MOST_MS, false);
    if (!this.#hasRung) await this.#wait(AT_LEAST_MS - AT_MOST_MS, true);
    this.#hasRung = false;
  }

  #wait(ms: number, isWoken: boolean): Promise<void> {
    return new Promise((resolve) => {
      if (this.#signal.aborted) return resolve();
      const forget = this.#clock.after(ms, () => resolve());
      this.#wake = () => {
        if (!isWoken && !this.#signal.aborted) return;
        forget();
        resolve();
      };
    });
  }
}
