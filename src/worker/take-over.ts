// Take-overs
// Writes to runs that nobody works on, without their body: takes one, writes once, and lets it go with the same commit (P18, P19).
import type { ClaimedRun, RunCommit, Store, Verdict } from "../core/store.ts";
import { isTerminal } from "../core/transition.ts";
import type { Committer } from "./committer.ts";
import type { Lease } from "./lease.ts";

export interface TakeOverParts {
  readonly store: Store;
  readonly lease: Lease;
  readonly committer: Committer;
  /** Registers with the store, if that has not been done, and looks for owners that are dead. */
  ready(): Promise<void>;
  /** Also a run that needs a slot: nothing of it will run. */
  take(worker: string, run: string): Promise<ClaimedRun | null>;
  /** Keeps the run from being loaded here meanwhile. */
  hold<T>(run: string, body: () => Promise<T>): Promise<T>;
  /** Nothing was done with it: whoever claims it finds out what has come meanwhile, and lets it wait again. */
  giveBack(claimed: ClaimedRun): Promise<void>;
  changed(run: string): void;
}

/** What became of it: written, or why not. */
export type TakenOver =
  | { readonly kind: "written" }
  | { readonly kind: "missing" | "ended" | "cancelled" }
  /** Somebody works on it, or it cannot be had for another reason. */
  | { readonly kind: "busy"; readonly owner: string | null };

/** What is to be written to a run; `null`: nothing after all. */
type Build = (claimed: ClaimedRun) => RunCommit | null;

export class TakeOver {
  readonly #parts: TakeOverParts;

  constructor(parts: TakeOverParts) {
    this.#parts = parts;
  }

  /** Writes what `build` makes of the run; if it throws, the run is given back as it was. */
  async write(run: string, build: Build): Promise<TakenOver> {
    await this.#parts.ready();
    return this.writeNow(run, build);
  }

  /** The same, in a worker that has looked for dead owners not long ago. */
  async writeNow(run: string, build: Build): Promise<TakenOver> {
    const { store, lease, take, hold } = this.#parts;
    const row = await store.run(run);
    if (row === null) return { kind: "missing" };
    if (isTerminal(row.state)) return { kind: "ended" };
    const worker = lease.id;
    if (worker === null || row.owner !== null) return { kind: "busy", owner: row.owner };
    return hold(run, async () => {
      const claimed = await take(worker, run);
      if (claimed === null) return { kind: "busy", owner: (await store.run(run))?.owner ?? null };
      return this.writeTo(claimed, build);
    });
  }

  /** The same, to one that was taken. */
  async writeTo(claimed: ClaimedRun, build: Build): Promise<TakenOver> {
    let verdict: Verdict | null = null;
    try {
      const commit = claimed.cancel === null ? build(claimed) : null;
      if (commit !== null) verdict = await this.#parts.committer.write({ ...commit, ifNotCancelled: true });
    } catch (error) {
      await this.#parts.giveBack(claimed);
      throw error;
    }
    this.#parts.changed(claimed.run);
    if (verdict?.kind === "applied") return { kind: "written" };
    await this.#parts.giveBack(claimed);
    const isOvertaken = verdict?.kind === "refused" && verdict.why === "cancel";
    return claimed.cancel !== null || isOvertaken ? { kind: "cancelled" } : { kind: "busy", owner: null };
  }
}
