// The oracle of I4: what a run's rows must say is a fold of its journal, written to be obviously right.
import { expect } from "vitest";
import { decode } from "../../src/base/codec.ts";
import { jsonCodec } from "../../src/base/envelope.ts";
import type {
  ChildStarted,
  Continued,
  Entry,
  SignalAwaited,
  StatePatched,
  StepFailed,
  StepStarted,
  TimerSet,
} from "../../src/core/journal.ts";
import type { Commit, RunRow, Store, WaitRow } from "../../src/core/store.ts";
import { isTerminal } from "../../src/core/transition.ts";
import { openEntry, openValue } from "../../src/core/values.ts";

interface Folded {
  /** Due times of the open waits, by their keys. */
  readonly waits: Map<string, number | null>;
  readonly state: Map<string, unknown>;
  readonly cost: Map<string, number>;
  end: string | null;
  isParked: boolean;
}

function fold(entries: readonly Entry[]): Folded {
  const folded: Folded = { waits: new Map(), state: new Map(), cost: new Map(), end: null, isParked: false };
  for (const entry of entries) take(folded, entry);
  return folded;
}

function take(folded: Folded, { type, key, payload }: Entry): void {
  const { waits, state, cost } = folded;
  switch (type) {
    case "timer.set":
      return void waits.set(`timer:${key}`, (payload as TimerSet).due);
    case "signal.awaited":
      return void waits.set(`signal:${key}`, (payload as SignalAwaited).due);
    case "child.started":
      return (payload as ChildStarted).detached ? undefined : void waits.set(`child:${key}`, null);
    case "timer.fired":
      return void waits.delete(`${payload === null ? "timer" : "signal"}:${key}`);
    case "signal.received":
      return void waits.delete(`signal:${key}`);
    case "child.ended":
      return void waits.delete(`child:${key}`);
    case "step.started":
      return ((payload as StepStarted)?.attempt ?? 1) > 1 ? void waits.delete(`retry:${key}`) : undefined;
    case "step.failed": {
      const { retryAt } = payload as StepFailed;
      return void (retryAt === null ? waits.delete(`retry:${key}`) : waits.set(`retry:${key}`, retryAt));
    }
    case "step.completed":
      return void waits.delete(`retry:${key}`);
    case "run.parked":
      folded.isParked = true;
      return void waits.set("decision", null);
    case "run.resolved":
      folded.isParked = false;
      return void waits.delete("decision");
    case "state.patched":
      return void state.set(key as string, (payload as StatePatched).value);
    case "cost":
      for (const [unit, by] of Object.entries(payload as Record<string, number>))
        cost.set(unit, (cost.get(unit) ?? 0) + by);
      return;
    case "run.continued":
      expect(new Map(Object.entries((payload as Continued).state))).toEqual(state);
      expect(new Map(Object.entries((payload as Continued).cost))).toEqual(cost);
      return waits.clear();
    case "run.cancelling":
      return waits.clear();
    case "run.succeeded":
    case "run.failed":
    case "run.cancelled":
      folded.end = type.slice("run.".length);
      return waits.clear();
    default:
  }
}

/** Compares a run's row, waits and state with its journal. */
export async function expectFold(store: Store, run: string): Promise<void> {
  const [row, journal, waits, state] = await Promise.all([
    store.run(run),
    store.journal(run),
    store.waits({ run }),
    store.state(run),
  ]);
  if (row === null) throw new Error(`run ${run} is gone`);
  const folded = fold(journal.map((entry) => openEntry(jsonCodec, run, entry)));
  const after = `${run} after ${journal.at(-1)?.type} at ${journal.length}`;
  const opened = (key: string, data: string | Uint8Array) =>
    openValue(jsonCodec, data, { run, seq: -1, field: `state:${key}` });
  expect(new Map(waits.map(({ key, due }) => [key, due])), `waits of ${after}`).toEqual(folded.waits);
  for (const wait of waits) expect(wait.key === wait.kind || wait.key.startsWith(`${wait.kind}:`)).toBe(true);
  expect(new Map(state.map(({ key, data }) => [key, opened(key, data)])), `state of ${after}`).toEqual(folded.state);
  const cost = row.cost === null ? {} : (decode(row.cost) as Record<string, number>);
  expect(new Map(Object.entries(cost)), `cost of ${after}`).toEqual(folded.cost);
  expect(row.head, `head of ${after}`).toBeLessThanOrEqual(journal.length);
  expect(row.headHash, `head of ${after}`).toBe(journal[row.head - 1]?.hash);
  expect([after, row.state]).toEqual([after, expect.stringMatching(stateWords(row, folded, waits))]);
  expectAlarm(row, folded, after);
}

/** The words that fit. Only an owner may be between two of them. */
function stateWords(row: RunRow, { end, isParked }: Folded, waits: readonly WaitRow[]): RegExp {
  if (end !== null) return new RegExp(`^${end}$`);
  if (row.owner !== null) return /^(running|parked)$/;
  if (isParked) return /^parked$/;
  // Handed back or not yet begun, it is claimable and says what it was.
  if (row.readyAt !== null) return /^(accepted|running|waiting|retrying)$/;
  if (row.wakeAt !== null && waits.length === 0) return /^accepted$/;
  return waits.some(({ kind }) => kind !== "retry") ? /^waiting$/ : /^retrying$/;
}

/** Who sleeps has an alarm at the first moment that something of it falls due, and whoever let go has left its head behind. */
function expectAlarm(row: RunRow, { waits }: Folded, after: string): void {
  if (row.owner !== null || row.readyAt !== null || isTerminal(row.state)) return;
  if (row.state === "parked") return expect(row.wakeAt, `alarm of ${after}`).toBe(null);
  if (row.state === "accepted") return;
  const due = [row.deadline, ...waits.values()].filter((time) => time !== null);
  expect(row.wakeAt, `alarm of ${after}`).toBe(due.length === 0 ? null : Math.min(...due));
}

export interface FoldingStore {
  readonly store: Store;
  readonly checks: () => number;
  /** What did not agree: thrown inside a commit it would only look like a broken store. */
  readonly failures: readonly unknown[];
}

/** A store that compares every run that a commit has touched, and counts how often. */
export function foldingStore(store: Store): FoldingStore {
  const failures: unknown[] = [];
  let checks = 0;
  const commit = async (request: Commit) => {
    const verdicts = await store.commit(request);
    const applied = request.runs.filter((_, i) => verdicts[i]?.kind === "applied");
    for (const run of new Set(applied.flatMap((part) => [part.run, ...(part.children ?? []).map((one) => one.run)]))) {
      await expectFold(store, run).catch((error) => failures.push(error));
      checks++;
    }
    return verdicts;
  };
  return { store: { ...store, commit }, checks: () => checks, failures };
}
