import { type ObservedRun, observedNew } from "../core/observer.ts";
import type { PassEnd } from "../core/pass-ports.ts";
import type { RunCommit } from "../core/store.ts";
import type { CommitSize } from "./committer.ts";

/** What others may want to know of a worker and its runs; of runs always after it is durable. */
export interface WorkerEvents {
  /** Something about this run has changed. */
  changed(run: string): void;
  /** The run is no longer in memory here; with `end`, because it has ended. */
  left(run: string, end: Extract<PassEnd, { kind: "ended" }> | null): void;
  /** This was written of a run here. */
  committed(run: ObservedRun, commit: RunCommit): void;
  /** An action outside that others may do as well is recorded as done. */
  executed(run: ObservedRun, effect: string, action: string): void;
  /** These had nothing that would have woken them. */
  orphaned(runs: readonly string[]): void;
  /** Other workers were found dead: what they had seen and not told is lost with them. */
  died(): void;
  took(size: CommitSize): void;
  claimed(runs: number): void;
  /** It has taken a new incarnation. */
  renewed(): void;
}

/** Tells what a commit has of a run, and of those that it creates. */
export function observeCommit(events: WorkerEvents, run: ObservedRun | null, commit: RunCommit): void {
  const { create, entries, children } = commit;
  const own = run ?? (create === undefined ? null : observedNew(commit.run, create, entries[0]?.at ?? 0));
  if (own !== null) events.committed(own, commit);
  if (children === undefined) return;
  for (const { run: id, create: child, entry } of children)
    events.committed(observedNew(id, child, entry.at), { run: id, head: 0, entries: [entry] });
}
