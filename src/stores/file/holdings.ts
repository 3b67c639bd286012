// What documents come to
// The memory store's tables, rebuilt from nothing but the documents, and each run's share in what belongs to all. Keys, counters and rates have no
// file of their own: a key is in the document of its holder, a counter is the sum of what runs have added, a rate the runs that have begun.
//
//   H1. What the tables say follows from the documents: it can be thrown away and read again at any time.
//   H2. A run's effect on another one is in its outbox until it surely is in the other's document, and has an effect only once: a child is
//       created if it is not there, a message has an id (P31).
//   H3. A run whose document cannot be believed is in no table that is worked on. What others have for it stays in their outboxes.
import type { KeyRow, Message, RunRow, WaitRow } from "../../core/store.ts";
import { folderName } from "../../files/folder-name.ts";
import { deliver } from "../memory/deliver.ts";
import { emptyTables, insertRun, isOver, type MemoryRun, type MemoryWorker, type Tables } from "../memory/tables.ts";
import { release } from "../memory/workers.ts";
import { endOf } from "./journal-fault.ts";
import { emptyLeftovers, type Leftovers } from "./leftovers.ts";
import type { DamagedDocument, EditedDocument, FoundDocument } from "./read-document.ts";
import { emptyShare, type KeptRun, type OutboxItem, receiverOf, type Share } from "./run-document.ts";

export interface Holdings {
  readonly tables: Tables;
  readonly shares: Map<string, Share>;
  /** Runs whose documents were edited or are damaged. */
  readonly blocked: Map<string, EditedDocument | DamagedDocument>;
  leftovers: Leftovers;
  /** Runs whose documents still claim what is no longer theirs: a key that has moved, a counter of a run that is gone. */
  readonly outdated: Set<string>;
  /** The last number that was given to a key. */
  keyNumber: number;
}

export function holdingsOf(
  documents: Iterable<FoundDocument>,
  leftovers: Leftovers = emptyLeftovers(),
  workers: Map<string, MemoryWorker> = new Map(),
): Holdings {
  const tables: Tables = { ...emptyTables(), workers };
  const holdings: Holdings = {
    tables,
    shares: new Map(),
    blocked: new Map(),
    leftovers,
    outdated: new Set(),
    keyNumber: 0,
  };
  const sound: KeptRun[] = [];
  for (const found of documents) {
    if (found.kind === "sound") sound.push(found.kept);
    else holdings.blocked.set(found.run, found);
  }
  for (const { run, share } of sound.sort((a, b) => a.run.n - b.run.n)) {
    // A document that was put back by hand may have a number that was given again.
    const n = Math.max(run.n, tables.created + 1);
    tables.created = n;
    tables.runs.set(run.row.id, n === run.n ? run : { ...run, n });
    holdings.shares.set(run.row.id, share);
  }
  addKeys(holdings);
  addCounters(holdings);
  addStarts(holdings);
  return holdings;
}

/** The highest number holds a key; whoever had it before no longer does. Those of runs that cannot be read are nobody else's. */
function addKeys(holdings: Holdings): void {
  const { tables, shares, outdated, blocked } = holdings;
  const claims = [...shares].flatMap(([run, { keys }]) => [...keys].map(([name, held]) => ({ run, name, ...held })));
  for (const { run, name, space, key, digest, number } of claims.sort((a, b) => a.number - b.number)) {
    const before = tables.keys.get(space)?.get(key)?.run;
    if (before !== undefined) {
      shares.get(before)?.keys.delete(name);
      outdated.add(before);
    }
    setKey(tables, space, key, { run, digest });
    holdings.keyNumber = number;
  }
  for (const found of blocked.values()) {
    const keys = found.kind === "damaged" ? found.keys : found.kept.share.keys.values();
    if (found.kind === "edited")
      for (const { number } of found.kept.share.keys.values())
        holdings.keyNumber = Math.max(holdings.keyNumber, number);
    for (const { space, key, digest } of keys)
      if (tables.keys.get(space)?.has(key) !== true) setKey(tables, space, key, { run: found.run, digest });
  }
}

function setKey({ keys }: Tables, space: string, key: string, row: KeyRow): void {
  const held = keys.get(space) ?? new Map<string, KeyRow>();
  keys.set(space, held.set(key, Object.freeze(row)));
}

function addCounters(holdings: Holdings): void {
  const { tables, shares, blocked, leftovers, outdated } = holdings;
  for (const run of forgetCounters(holdings, (of) => !tables.runs.has(of) && !blocked.has(of))) outdated.add(run);
  const edited = [...blocked.values()].flatMap((found) => (found.kind === "edited" ? [found.kept.share] : []));
  for (const { counters } of [leftovers, ...shares.values(), ...edited]) {
    for (const [key, by] of counters) tables.counters.set(key, (tables.counters.get(key) ?? 0) + by);
  }
  for (const [key, value] of tables.counters) if (value <= 0) tables.counters.delete(key);
}

/** Drops what runs have added to counters of runs that are gone; returns whose documents still have it. */
export function forgetCounters({ shares, leftovers }: Holdings, isGone: (run: string) => boolean): string[] {
  const isForgotten = (key: string) => {
    const of = ownerOfCounter(key);
    return of !== null && isGone(of);
  };
  for (const key of [...leftovers.counters.keys()].filter(isForgotten)) leftovers.counters.delete(key);
  return [...shares].flatMap(([run, { counters }]) => {
    const gone = [...counters.keys()].filter(isForgotten);
    for (const key of gone) counters.delete(key);
    return gone.length > 0 ? [run] : [];
  });
}

/** The run that a counter belongs to. */
export function ownerOfCounter(key: string): string | null {
  return /^of\/([^/]+)\//.exec(key)?.[1] ?? null;
}

function addStarts({ tables, shares, leftovers }: Holdings): void {
  const begun = [...leftovers.starts, ...[...shares.values()].flatMap((share) => share.begun)];
  for (const { rate, at, until } of begun) tables.starts.set(rate, [...(tables.starts.get(rate) ?? []), { at, until }]);
}

/** The document that keeps this run from going on; one that does not say whose it is, is known by its folder. */
export function blockedRun({ blocked }: Holdings, run: string): EditedDocument | DamagedDocument | null {
  if (blocked.size === 0) return null;
  return blocked.get(run) ?? blocked.get(folderName(run)) ?? null;
}

export function shareOf({ shares }: Holdings, run: string): Share {
  const known = shares.get(run);
  if (known !== undefined) return known;
  const share = emptyShare();
  shares.set(run, share);
  return share;
}

export function keptRun({ tables, shares }: Holdings, run: string): KeptRun | null {
  const found = tables.runs.get(run);
  const share = shares.get(run);
  return found === undefined || share === undefined ? null : { run: found, share };
}

/** Gives up what workers hold who are not there any more: whoever has the directory now has fenced them (P20). Returns which runs. */
export function releaseAbandoned({ tables }: Holdings, now: number): string[] {
  const runs = [...tables.runs.values()].filter(({ row }) => row.owner !== null && !tables.workers.has(row.owner));
  const held = runs.filter((run) => !isOver(run));
  release(held, now);
  return held.map(({ row }) => row.id);
}

/**
 * Delivers what is in the outboxes; returns who has got something. `settle` empties the outboxes, and returns whose: not before what the receivers
 * have got is on the disk.
 */
export function deliverOutboxes(holdings: Holdings): { readonly receivers: string[]; settle(): string[] } {
  const waiting = [...holdings.shares].filter(([, { outbox }]) => outbox.length > 0);
  const isDue = (item: OutboxItem) => blockedRun(holdings, receiverOf(item)) === null;
  const due = waiting.flatMap(([, { outbox }]) => outbox.filter(isDue));
  const receivers = due.filter((item) => deliverItem(holdings, item, null)).map(receiverOf);
  const settle = () =>
    waiting.flatMap(([sender, share]) => {
      const left = share.outbox.filter((item) => !isDue(item));
      if (left.length === share.outbox.length) return [];
      share.outbox = left;
      return [sender];
    });
  return { receivers, settle };
}

/** Whether it had an effect: it may have been delivered before, or nobody is there any more. */
export function deliverItem(holdings: Holdings, { at, child, message }: OutboxItem, worker: string | null): boolean {
  const { tables, shares } = holdings;
  if (child === undefined) return deliver(tables, message as Message, at) === "delivered";
  if (tables.runs.has(child.run)) return false;
  insertRun(tables, child.run, child.create, worker, [child.entry], at);
  shares.set(child.run, emptyShare());
  return true;
}

/** The tables as people see them: also runs whose documents were edited, as parked until somebody decides. */
export function viewOf({ tables, blocked }: Holdings): Tables {
  if (blocked.size === 0) return tables;
  const runs = new Map(tables.runs);
  for (const found of blocked.values()) if (found.kind === "edited") runs.set(found.run, parkedView(found));
  return { ...tables, runs };
}

/** Stands for a run of which nothing can be read. */
export function unreadableRun(id: string): MemoryRun {
  const create = { workflow: "", version: "0.0.0", traceId: "", key: null, tags: [], priority: 0, parent: null };
  const rest = { origin: null, deadline: null, claimed: false, readyAt: 0, codec: "" };
  return insertRun(emptyTables(), id, { ...create, ...rest }, null, [], 0);
}

function parkedView({ kept: { run }, run: id, file }: EditedDocument): MemoryRun {
  // A row that has ended where its journal has not is a part of what somebody has to decide about.
  if (isOver(run) && endOf(run.journal) !== null) return run;
  const row: RunRow = Object.freeze({ ...run.row, state: "parked", owner: null, readyAt: null, wakeAt: null });
  const parked = { reason: "invalid_state_document", message: editedMessage(id, file), choices: [] };
  const wait: WaitRow = {
    run: id,
    workflow: row.workflow,
    key: "decision:document",
    kind: "decision",
    name: parked.reason,
    due: null,
    detail: JSON.stringify(parked),
  };
  return { ...run, row, waits: new Map([...run.waits, [wait.key, Object.freeze(wait)]]) };
}

export function editedMessage(run: string, file: string): string {
  return (
    `The document ${file} of run ${run} does not match its checksum: it was edited by hand, or damaged. The run is held until somebody decides. ` +
    `To take the document over as it is: pawl state accept ${run} --reason <text> --by <name>. To have it written again from its journal: pawl state ` +
    `rebuild ${run}. Otherwise put a good copy in its place.`
  );
}
