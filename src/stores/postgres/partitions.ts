import type { Link } from "./link.ts";
import { RUNS_PER_PARTITION } from "./tables.ts";

/**
 * Keeps the journal's partitions ahead of the runs. There are always two more than are in use, so it is enough that somebody notices some time
 * within a million runs: whoever creates the first one in a new partition does.
 */
export class Partitions {
  readonly #schema: string;
  readonly #link: () => Link;
  #seen = -1;

  constructor(schema: string, link: () => Link) {
    this.#schema = schema;
    this.#link = link;
  }

  /** A run with this number was created. */
  created(n: number): void {
    const partition = Math.floor(n / RUNS_PER_PARTITION);
    if (partition <= this.#seen) return;
    const before = this.#seen;
    this.#seen = partition;
    this.#link()
      .query(`select ${this.#schema}.partition_1()`)
      .catch(() => {
        // The next one tries again.
        this.#seen = Math.min(this.#seen, before);
      });
  }
}
