// The oracle of I4, for any store: what a run's rows must say is a fold of its journal.
import { expect } from "vitest";
import { decode } from "../../src/base/codec.ts";
import { jsonCodec } from "../../src/base/envelope.ts";
import type { Continued, StoredEntry } from "../../src/core/journal.ts";
import { isOwnWorkflow } from "../../src/core/own-workflows.ts";
import type { Commit, Store } from "../../src/core/store.ts";
import { openValue } from "../../src/core/values.ts";
import { FoldedRun, type StoredRows } from "../../src/testing/simulator/folded-run.ts";

/** Compares a run's row, waits and state with its journal. */
export async function expectFold(store: Store, run: string): Promise<void> {
  const [row, journal, waits, state] = await Promise.all([
    store.run(run),
    store.journal(run),
    store.waits({ run }),
    store.state(run),
  ]);
  if (row === null) throw new Error(`run ${run} is gone`);
  // The one that keeps alerts has no body, and no journal of what it waits for.
  if (isOwnWorkflow(row.workflow)) return;
  const folded = fold(run, journal);
  const after = `${run} after ${journal.at(-1)?.type} at ${journal.length}`;
  const rows: StoredRows = { row, journal, waits: byKey(waits), state: byKey(state) };
  expect(folded.faultOf(rows), after).toBe(null);
  for (const wait of waits) expect(wait.key === wait.kind || wait.key.startsWith(`${wait.kind}:`)).toBe(true);
  const opened = (key: string, data: string | Uint8Array) =>
    openValue(jsonCodec, data, { run, seq: -1, field: `state:${key}` });
  expect(new Map(state.map(({ key, data }) => [key, opened(key, data)])), `state of ${after}`).toEqual(folded.state);
  const cost = row.cost === null ? {} : (decode(row.cost) as Record<string, number>);
  expect(new Map(Object.entries(cost)), `cost of ${after}`).toEqual(folded.cost);
}

function fold(run: string, journal: readonly StoredEntry[]): FoldedRun {
  const folded = new FoldedRun(run);
  for (const stored of journal) {
    const { type, payload } = folded.take(stored);
    if (type !== "run.continued") continue;
    expect(new Map(Object.entries((payload as Continued).state))).toEqual(folded.state);
    expect(new Map(Object.entries((payload as Continued).cost))).toEqual(folded.cost);
  }
  return folded;
}

function byKey<T extends { readonly key: string }>(rows: readonly T[]): Map<string, T> {
  return new Map(rows.map((row) => [row.key, row]));
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
