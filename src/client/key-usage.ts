// Which keys a store still needs
// A key may go when nothing that is kept names it any more. What is kept says so itself, so everything is looked through: for people, not for workers.
import { keyOf } from "../base/sealed-text.ts";
import type { AuditRecord } from "../core/audit.ts";
import type { RunRow, Store } from "../core/store.ts";
import { isTerminal } from "../core/transition.ts";
import { plainStoreOf } from "./sealed-store.ts";

export interface KeyUse {
  readonly key: string;
  /** Runs that have something sealed with it. */
  readonly runs: number;
  /** Those of them that have not ended. */
  readonly unfinished: number;
  /** Records of the audit log that say something sealed with it. They stay for good. */
  readonly audits: number;
}

export interface KeyUsage {
  readonly keys: readonly KeyUse[];
  /** Runs with values that are not sealed at all. */
  readonly plainRuns: number;
}

const PAGE = 100;

type Uses = Map<string, { runs: number; unfinished: number; audits: number }>;

export async function keysInUse(given: Store): Promise<KeyUsage> {
  const store = plainStoreOf(given);
  const uses: Uses = new Map();
  let plainRuns = 0;
  for await (const row of allRuns(store)) {
    const found = await keysOfRun(store, row);
    if (found.has(null)) plainRuns += 1;
    for (const key of found) if (key !== null) countRun(useOf(uses, key), row);
  }
  for await (const { payload, detail } of allAudits(store))
    for (const key of new Set([keyOf(payload), keyOf(detail)])) if (key !== null) useOf(uses, key).audits += 1;
  const keys = [...uses].map(([key, use]) => ({ key, ...use })).sort((a, b) => (a.key < b.key ? -1 : 1));
  return { keys, plainRuns };
}

async function* allRuns(store: Store): AsyncGenerator<RunRow> {
  for (let before: string | undefined; ; ) {
    const page = await store.runs({ limit: PAGE, ...(before !== undefined && { before }) });
    yield* page;
    before = page.at(-1)?.id;
    if (before === undefined || page.length < PAGE) return;
  }
}

async function* allAudits(store: Store): AsyncGenerator<AuditRecord> {
  for (let after = 0; ; ) {
    const page = await store.audits({ after, limit: PAGE });
    yield* page;
    after = page.at(-1)?.n ?? after;
    if (page.length < PAGE) return;
  }
}

function useOf(uses: Uses, key: string): { runs: number; unfinished: number; audits: number } {
  const use = uses.get(key) ?? { runs: 0, unfinished: 0, audits: 0 };
  uses.set(key, use);
  return use;
}

function countRun(use: { runs: number; unfinished: number }, { state }: RunRow): void {
  use.runs += 1;
  if (!isTerminal(state)) use.unfinished += 1;
}

/** `null` is among them if a value of the run is not sealed. Chunks of streams have the key of the entry that their attempt began with. */
async function keysOfRun(store: Store, row: RunRow): Promise<Set<string | null>> {
  const [journal, inbox, state, waits, holds] = await Promise.all([
    store.journal(row.id),
    store.inbox(row.id),
    store.state(row.id),
    store.waits({ run: row.id }),
    store.holds({ run: row.id, limit: 1 }),
  ]);
  const values = [...journal, ...inbox, ...state].map(({ data }) => data);
  const fields = [
    row.progress,
    row.cost,
    row.cancel,
    ...waits.map(({ detail }) => detail),
    ...holds.map(({ why }) => why),
  ];
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
