// The rules of forks and retries (S2-59, X-17, I6, I17)
// What a fork begins with is what its source had recorded, up to its point: worked out here once more, entry by entry. That nothing of the source
// changes by it, the checks of every journal say.
import { encode } from "../../base/codec.ts";
import { jsonCodec } from "../../base/envelope.ts";
import type { ApprovalRequested } from "../../core/approval-request.ts";
import { counterKey } from "../../core/counters.ts";
import {
  type ChildStarted,
  type Continued,
  type Entry,
  entryKind,
  type Forked,
  type RunStarted,
  type SignalAwaited,
  type StepFailed,
  type StoredEntry,
} from "../../core/journal.ts";
import { generationSeed } from "../../core/seeds.ts";
import type { RunCommit } from "../../core/store.ts";
import { openEntry } from "../../core/values.ts";
import type { Disk } from "./disk.ts";
import type { Situation } from "./situations.ts";

export interface ForkPorts {
  readonly disk: Disk;
  journalOf(run: string): readonly StoredEntry[];
  endOf(run: string): string | null;
  violated(invariant: string, what: string): void;
  sometimes(what: Situation): void;
}

const START_SPACE = "start:program";

/** How many entries at the start of a journal come from another run: all up to where it was forked last, with that mark. */
export function inheritedIn(entries: readonly Pick<StoredEntry, "type">[]): number {
  return entries.findLastIndex(({ type }) => type === "run.forked") + 1;
}

export class ForkChecks {
  readonly #ports: ForkPorts;
  /** Which run must have each start key. */
  readonly #holders = new Map<string, string>();
  #hasLost = false;

  constructor(ports: ForkPorts) {
    this.#ports = ports;
  }

  /** A power cut took acknowledged writes. */
  forget(): void {
    this.#hasLost = true;
  }

  /** A commit was applied that has created a run. */
  created(part: RunCommit): void {
    const origin = part.create?.origin ?? null;
    const key = part.keys?.find(({ space }) => space === START_SPACE)?.key;
    if (origin === null && key !== undefined) this.#holders.set(key, part.run);
    if (origin !== null) this.#forked(part, origin);
  }

  #forked(part: RunCommit, source: string): void {
    const retried = part.counters?.find(({ key }) => key === "retried");
    const count = inheritedIn(part.entries);
    const entries = part.entries.slice(0, count).map((entry) => openEntry(jsonCodec, part.run, entry));
    const mark = entries.pop();
    if (mark === undefined) return this.#violated("S2-59", `run ${part.run} comes from ${source} and does not say so`);
    const { at, from, seed } = mark.payload as Forked;
    if (from !== source || seed !== part.run)
      this.#violated("P10", `run ${part.run} was forked from ${source}; its mark says from ${from} with seed ${seed}`);
    if (retried !== undefined) this.#retried(part, source, counterKey(retried));
    else
      this.#ports.sometimes(
        `a run was forked ${this.#ports.endOf(source) === null ? "while it ran" : "after its end"}`,
      );
    this.#inherited(part.run, source, entries, at, retried !== undefined);
    if ((part.children ?? []).length > 0) this.#ports.sometimes("a fork started a child again");
    if (entries.some(({ type }) => type === "run.forked")) this.#ports.sometimes("a fork was forked");
    if (entries.some(({ type }) => type === "run.continued")) this.#ports.sometimes("a later generation was forked");
    if (hasStepUnderWay(entries)) this.#ports.sometimes("a fork began a step again that its source had begun");
  }

  /**
   * only what has ended without success is retried. I17: its start key goes to its retry, from whoever has it: the run itself, or one that has
   * taken its place and ended in vain.
   */
  #retried({ run, keys, create }: RunCommit, source: string, counter: string): void {
    const end = this.#ports.endOf(source);
    if (!isInVain(end)) return this.#violated("X-17", `run ${source} was retried and is ${end ?? "under way"}`);
    this.#ports.sometimes(`a ${end} run was retried`);
    if ((this.#ports.disk.tables.counters.get(counter) ?? 0) > 1) this.#ports.sometimes("two retries of one run");
    const key = this.#ports.disk.tables.runs.get(source)?.row.key ?? null;
    const holder = key === null ? undefined : this.#holders.get(key);
    const moved = keys?.find(({ space }) => space === START_SPACE);
    if (moved?.from !== holder && !this.#hasLost)
      this.#violated("I17", `start key ${key} is held by ${holder}, a retry of ${source} takes it from ${moved?.from}`);
    if (moved === undefined) return;
    if (holder !== undefined && !isInVain(this.#ports.endOf(holder)) && !this.#hasLost)
      this.#violated("I17", `run ${holder} has start key ${key} and does its work, and a retry of ${source} takes it`);
    if (create?.key !== moved.key)
      this.#violated("I17", `run ${run} has key ${moved.key}, its row says ${create?.key}`);
    this.#holders.set(moved.key, run);
    this.#ports.sometimes("a start key moved to a retry");
  }

  /** I6: what is inherited is what was recorded, and nothing of it is lost or made up. */
  #inherited(run: string, source: string, entries: readonly Entry[], at: number, isRetry: boolean): void {
    const prefix = this.#ports
      .journalOf(source)
      .slice(0, at)
      .map((entry) => openEntry(jsonCodec, source, entry));
    if (prefix.length < at) this.#violated("S2-59", `run ${run} inherits ${at} entries of ${prefix.length}`);
    const answered = prefix.findLastIndex(({ type }) => type === "run.resolved");
    const asked = openRequests(prefix);
    // What nobody has answered is the source's alone, and so is what fell due while an approval waited.
    const isLeft = ({ type, key }: Entry, i: number) =>
      (type === "run.parked" && i > answered) ||
      (type === "approval.escalated" && i > (asked.get(key) ?? prefix.length));
    const expected = prefix.filter((entry, i) => !isLeft(entry, i));
    const last = entries.at(-1);
    const isTriedAgain = isRetry && (last?.payload as Partial<StepFailed> | null)?.isRetried === true;
    if (isTriedAgain) this.#ports.sometimes("a retry tried a failed step again");
    for (let i = 0; i < Math.max(expected.length, entries.length); i++) {
      const [was, is] = [expected[i], entries[i]];
      const fault =
        was === undefined || is === undefined ? "its number" : faultOf(was, is, source, isTriedAgain && is === last);
      if (fault === null) continue;
      const of = `entry ${i}, ${was?.type} ${was?.key ?? ""},`;
      return this.#violated("S2-59", `${of} of run ${source} is another in run ${run}: ${fault}`);
    }
  }

  /** At the end: whoever asks by a start key gets the run that has the last word. */
  atEnd(): void {
    if (this.#hasLost) return;
    for (const [key, run] of this.#holders) {
      const holder = this.#ports.disk.tables.keys.get(START_SPACE)?.get(key)?.run;
      if (holder !== run)
        this.#violated("I17", `start key ${key} is that of run ${holder}, and must be that of ${run}`);
    }
  }

  #violated(invariant: string, what: string): void {
    this.#ports.violated(invariant, what);
  }
}

/** How an inherited entry differs from the one that was recorded, but for what a fork has of its own. */
function faultOf(was: Entry, is: Entry, source: string, isTriedAgain: boolean): string | null {
  if (was.type !== is.type || was.key !== is.key || was.at !== is.at) return `it is ${is.type} ${is.key ?? ""}`;
  if (entryKind(was) === "end" || was.type === "run.cancelling" || was.type === "run.compensating")
    return "no fork inherits an end";
  if (isTriedAgain)
    return was.type === "step.failed" && (was.payload as StepFailed).retryAt === null ? null : "it did not fail";
  return encode(comparable(was, source)) === encode(comparable(is, source)) ? null : "it says something else";
}

function comparable({ type, payload }: Entry, source: string): unknown {
  if (type === "run.started") return { ...(payload as RunStarted), deadline: null, budgets: null };
  if (type === "approval.requested") return { action: (payload as ApprovalRequested).action };
  // One that is open waits anew.
  if (type === "signal.awaited") return (payload as SignalAwaited).due === null;
  if (type === "child.started") return { ...(payload as ChildStarted), child: null };
  if (type !== "run.continued") return payload;
  const continued = payload as Continued;
  return { ...continued, seed: continued.seed ?? generationSeed(source, continued.generation), budgets: null };
}

/** Where approvals were asked for that nobody has decided about, by their keys in the last generation. */
function openRequests(entries: readonly Entry[]): Map<string | null, number> {
  const open = new Map<string | null, number>();
  for (const [i, { type, key }] of entries.entries()) {
    if (type === "run.continued") open.clear();
    if (type === "approval.requested") open.set(key, i);
    if (type === "approval.decided") open.delete(key);
  }
  return open;
}

function hasStepUnderWay(entries: readonly Entry[]): boolean {
  const open = new Set<string | null>();
  for (const { type, key } of entries) {
    if (type === "run.continued") open.clear();
    if (type === "step.started") open.add(key);
    else if (type.startsWith("step.")) open.delete(key);
  }
  return open.size > 0;
}

function isInVain<T extends string>(end: T | null): end is Extract<T, "failed" | "cancelled"> {
  return end === "failed" || end === "cancelled";
}
