// Applying a commit to documents
// The parts are applied in memory one after the other, as in the memory store. A document is put into words right after its own part, so it never has
// what a later part sends; what the part has for other runs is in its outbox. The receivers' documents come after all senders'.
import type { PawlError } from "../../base/errors.ts";
import { counterKey } from "../../core/counters.ts";
import type { Commit, NewKey, RunCommit, Verdict } from "../../core/store.ts";
import { commitFault } from "../commit-fault.ts";
import { commitRun, holderOf } from "../memory/commit.ts";
import type { Batch } from "./batch.ts";
import { blockedError } from "./blocked.ts";
import { blockedRun, deliverItem, type Holdings, shareOf } from "./holdings.ts";
import { keyName, type OutboxItem, receiverOf, type Share } from "./run-document.ts";

export function commit(holdings: Holdings, batch: Batch, { worker, runs }: Commit, now: number): Verdict[] {
  const isFenced = worker !== null && !holdings.tables.workers.has(worker);
  return runs.map((part) =>
    isFenced ? { run: part.run, kind: "refused", why: "fenced" } : commitPart(holdings, batch, worker, part, now),
  );
}

function commitPart(holdings: Holdings, batch: Batch, worker: string | null, part: RunCommit, now: number): Verdict {
  const fault = commitFault(part) ?? whyBlocked(holdings, part);
  if (fault !== null) return { run: part.run, kind: "failed", error: fault };
  const { children, messages, ...own } = part;
  const counters = countersBefore(holdings, part);
  const holders = (part.keys ?? []).map((key) => holderOf(holdings.tables, key)?.run ?? null);
  const verdict = commitRun(holdings.tables, worker, own, now);
  if (verdict.kind !== "applied") return verdict;
  const share = shareOf(holdings, part.run);
  shareKeys(holdings, batch, part, holders);
  shareCounters(holdings, share, counters);
  const items = itemsOf(part, now);
  send(holdings, batch, worker, part.run, items);
  batch.put(part.run);
  return verdict;
}

/** Nothing may take the place of a document that cannot be believed (F4). */
function whyBlocked(holdings: Holdings, { run }: RunCommit): PawlError | null {
  const found = blockedRun(holdings, run);
  return found === null ? null : blockedError(found);
}

// Keys and counters

function shareKeys(
  holdings: Holdings,
  batch: Batch,
  { run, keys = [] }: RunCommit,
  holders: readonly (string | null)[],
): void {
  for (const [index, key] of keys.entries()) {
    const before = holders[index] ?? null;
    if (before !== null && before !== run) {
      holdings.shares.get(before)?.keys.delete(keyName(key));
      batch.later(before);
    }
    shareOf(holdings, run).keys.set(keyName(key), heldKey(holdings, key));
  }
}

function heldKey(holdings: Holdings, { space, key, digest }: NewKey) {
  return { space, key, digest, number: ++holdings.keyNumber };
}

/** What may change: counters that the part names, and those that the run gives back if this ends it. */
function countersBefore({ tables }: Holdings, part: RunCommit): ReadonlyMap<string, number> {
  const holds = part.row?.ended === true ? (tables.runs.get(part.run)?.holds.keys() ?? []) : [];
  const keys = [...(part.counters ?? []).map(counterKey), ...holds];
  return new Map(keys.map((key) => [key, tables.counters.get(key) ?? 0]));
}

function shareCounters({ tables }: Holdings, share: Share, before: ReadonlyMap<string, number>): void {
  for (const [key, value] of before) {
    const by = (share.counters.get(key) ?? 0) + (tables.counters.get(key) ?? 0) - value;
    if (by === 0) share.counters.delete(key);
    else share.counters.set(key, by);
  }
}

// Other runs

function itemsOf({ children = [], messages = [] }: RunCommit, at: number): OutboxItem[] {
  return [...children.map((child) => ({ at, child })), ...messages.map((message) => ({ at, message }))];
}

/** Delivers at once, and keeps in the outbox what had an effect until that is on the disk; what cannot be delivered yet stays there. */
function send(
  holdings: Holdings,
  batch: Batch,
  worker: string | null,
  sender: string,
  items: readonly OutboxItem[],
): void {
  const share = shareOf(holdings, sender);
  for (const item of items) {
    const receiver = receiverOf(item);
    const isBlocked = blockedRun(holdings, receiver) !== null;
    if (!isBlocked && !deliverItem(holdings, item, worker)) continue;
    // What a run has for itself is in the same document.
    if (receiver === sender) continue;
    share.outbox.push(item);
    if (isBlocked) continue;
    batch.later(receiver);
    batch.after(() => {
      share.outbox = share.outbox.filter((one) => one !== item);
    });
  }
}
