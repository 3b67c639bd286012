// A store whose commits go wrong on demand
// It stands between an engine and a real store and does, at the n-th commit, what disks, networks and process deaths do. The plan is data, so
// that an explorer can walk all of them and a failing one can be written down.
import { PawlError } from "../base/errors.ts";
import type { Commit, Store, Verdict } from "../core/store.ts";

/**
 * What happens at a commit:
 * - `fail`: nothing is applied, and the store says so (`storage_unavailable`);
 * - `lose-answer`: it is applied, but the answer is an error that says nothing (`unknown_outcome`);
 * - `hang`: it is applied, and no answer ever comes;
 * - `kill-before`, `kill-after`: the process dies before or after it is applied, by the plan's `kill`; no answer comes.
 */
export type CommitFault = "fail" | "lose-answer" | "hang" | "kill-before" | "kill-after";

export interface FaultPlan {
  /** The fault of the n-th commit, counted from 1. */
  readonly commits?: Readonly<Record<number, CommitFault>>;
  /** Ends the process under test, or whatever stands for it. */
  readonly kill?: () => void;
}

export interface RecordedCommit {
  readonly number: number;
  readonly commit: Commit;
  readonly fault: CommitFault | null;
  /** What the store itself answered; `null` if it was not asked or did not answer. */
  readonly verdicts: readonly Verdict[] | null;
}

export interface FaultStore extends Store {
  /** Every commit so far, in order. */
  readonly commits: readonly RecordedCommit[];
}

/** Wraps a store so that its commits fail as planned. All other methods pass through. */
export function faultStore(store: Store, plan: FaultPlan): FaultStore {
  const commits: RecordedCommit[] = [];

  const record = async (number: number, commit: Commit, fault: CommitFault | null): Promise<Verdict[]> => {
    const index = commits.push({ number, commit, fault, verdicts: null }) - 1;
    const verdicts = isApplied(fault) ? await store.commit(commit) : null;
    commits[index] = { number, commit, fault, verdicts };
    return verdicts ?? [];
  };

  return {
    ...store,
    commits,
    async commit(commit) {
      const number = commits.length + 1;
      const fault = plan.commits?.[number] ?? null;
      const verdicts = await record(number, commit, fault);
      switch (fault) {
        case null:
          return verdicts;
        case "fail":
          throw new PawlError(
            "storage_unavailable",
            `Commit ${number} was refused by the fault plan; nothing of it was applied.`,
          );
        case "lose-answer":
          throw new PawlError("unknown_outcome", `The answer to commit ${number} was lost by the fault plan.`);
        case "hang":
          return never();
        case "kill-before":
        case "kill-after":
          plan.kill?.();
          return never();
      }
    },
  };
}

function isApplied(fault: CommitFault | null): boolean {
  return fault !== "fail" && fault !== "kill-before";
}

function never<T>(): Promise<T> {
  return new Promise(() => {});
}
