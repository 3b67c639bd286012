// Which keys a store still needs
// A key may go when nothing that is kept names it any more. What is kept says so itself, so everything is looked through: for people, not for workers.
import { keyOf } from "../base/sealed-text.ts";
import type { RunRow, Store } from "../core/store.ts";
import { isTerminal } from "../core/transition.ts";
import { plainStoreOf } from "./sealed-store.ts";

export interface KeyUse {
  readonly key: string;
  /** Runs that have something sealed with it. */
  readonly runs: number;
  /** Those of them that have not ended. */
  readonly unfinished: number;
}

export interface KeyUsage {
  readonly keys: readonly KeyUse[];
  /** Runs with values that are not sealed at all. */
  readonly plainRuns: number;
}

const PAGE = 100;

export async function keysInUse(given: Store): Promise<KeyUsage> {
  const store = plainStoreOf(given);
  const uses = new Map<string, { runs: number; unfinished: number }>();
  let plainRuns = 0;
  for (let before: string | undefined; ; ) {
    const page = await store.runs({ limit: PAGE, ...(before !== undefined && { before }) });
    for (const row of page) {
      const found = await keysOfRun(store, row);
      if (found.has(null)) plainRuns += 1;
      for (const key of found) if (key !== null) count(uses, key, row);
    }
    before = page.at(-1)?.id;
    if (before === undefined || page.length < PAGE) break;
  }
  const keys = [...uses].map(([key, use]) => ({ key, ...use })).sort((a, b) => (a.key < b.key ? -1 : 1));
  return { keys, plainRuns };
}

function count(uses: Map<string, { runs: number; unfinished: number }>, key: string, { state }: RunRow): void {
  const use = uses.get(key) ?? { runs: 0, unfinished: 0 };
  use.runs += 1;
  if (!isTerminal(state)) use.unfinished += 1;
  uses.set(key, use);
}

/** `null` is among them if a value of the run is not sealed. Chunks of streams have the key of the entry that their attempt began with. */
async function keysOfRun(store: Store, row: RunRow): Promise<Set<string | null>> {
  const [journal, inbox, state, waits] = await Promise.all([
    store.journal(row.id),
    store.inbox(row.id),
    store.state(row.id),
    store.waits({ run: row.id }),
  ]);
  const values = [...journal, ...inbox, ...state].map(({ data }) => data);
  const fields = [row.progress, row.cost, row.cancel, ...waits.map(({ detail }) => detail)];
  const names = [
    row.key,
    row.stopReason,
    ...row.tags,
    ...journal.map(({ key }) => key),
    ...state.map(({ key }) => key),
  ];
  const found = new Set<string | null>();
  for (const value of [...values, ...fields]) if (value !== null) found.add(keyOf(value));
  for (const name of names) {
    const key = keyOf(name);
    if (key !== null) found.add(key);
  }
  return found;
}
