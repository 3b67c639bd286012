// What this process knows of the runs its own workers hold
// It spares the hot path one look-up per run and commit. It may only ever say "yes, go on"; every doubt is settled by the
// database. That a yes cannot be wrong stands on three facts:
//
//   O1. The commit has found its worker's row in the same transaction. While that row exists nobody else takes the worker's
//       runs: ownership leaves a live incarnation by its own commit only (P20), which passes through here, as does retiring,
//       or by fencing, which deletes the row first.
//   O2. (run, seq) is unique, so a position that is taken cannot be written twice, and no entry of an unfinished run is ever
//       deleted, so a head that was right once is never too high.
//   O3. After any error, fencing or broken connection everything is forgotten.
import type { RunCommit } from "../core/store.ts";

export interface OwnedRun {
  readonly n: number;
  readonly owner: string;
  readonly head: number;
  /** Made here, and nothing was ever written for it but its row and its journal: no waits, no counters, no times. */
  readonly isBare: boolean;
}

export class OwnedRuns {
  readonly #runs = new Map<string, OwnedRun>();

  /** The run, if `worker` surely holds it and its journal surely ends at `head`. */
  find(run: string, worker: string | null, head: number): OwnedRun | null {
    const known = this.#runs.get(run);
    return known !== undefined && known.owner === worker && known.head === head ? known : null;
  }

  remember(run: string, known: OwnedRun): void {
    this.#runs.set(run, known);
  }

  forget(run: string): void {
    this.#runs.delete(run);
  }

  forgetAll(): void {
    this.#runs.clear();
  }
}

/** Whether it leaves nothing behind that the end of the run would have to take away. */
export function staysBare({ waits, counters, row }: RunCommit): boolean {
  const hasTimes = (row?.readyAt ?? row?.wakeAt ?? null) !== null;
  return waits === undefined && counters === undefined && !hasTimes;
}
