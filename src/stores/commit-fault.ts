// What no store can apply, found before anything is written: a run's part that is refused here ends as `failed` in every
// store alike, and its neighbours do not notice (P16). The rest of a commit is checked against what is stored.
import { PawlError } from "../base/errors.ts";
import type { Message, Needs, NewChild, NewRun, RunCommit } from "../core/store.ts";
import { isStorable, unstorable } from "./storable-text.ts";
import { versionLine } from "./version-line.ts";

type Text = string | Uint8Array | null;

/** The reason why a run's part cannot be stored, whatever the store holds; `null` if there is none. */
export function commitFault(part: RunCommit): PawlError | null {
  try {
    checkEntries(part);
    checkText(part.run);
    if (part.create !== undefined) checkCreate(part, part.create);
    part.children?.forEach(checkChild);
    part.messages?.forEach(checkMessage);
    if (!isPlain(part)) checkTexts(textsOf(part));
    checkCounters(part);
    return null;
  } catch (error) {
    if (error instanceof PawlError) return error;
    throw error;
  }
}

/** Entries and nothing else: most parts of most commits. */
function isPlain({ row, waits, state, keys }: RunCommit): boolean {
  return row === undefined && waits === undefined && state === undefined && keys === undefined;
}

function checkEntries(part: RunCommit): void {
  let seq = part.head;
  for (const entry of part.entries) {
    if (entry.seq !== seq) throw broken(part.run, `entry ${entry.seq} stands where ${seq} was expected`);
    checkText(entry.key);
    checkText(entry.data);
    seq += 1;
  }
}

function checkCreate(part: RunCommit, create: NewRun): void {
  if (part.head !== 0) throw broken(part.run, `a new run cannot begin at ${part.head}`);
  checkNewRun(create);
}

function checkChild(child: NewChild): void {
  if (child.entry.seq !== 0) throw broken(child.run, `a new run cannot begin at ${child.entry.seq}`);
  checkTexts([child.run, child.entry.key, child.entry.data]);
  checkNewRun(child.create);
}

/** Refuses a message that no store could give back as it was. */
export function checkMessage({ to, id, name, data }: Message): void {
  checkTexts([to, id, name, data]);
}

function checkNewRun(create: NewRun): void {
  versionLine(create.version);
  checkTexts([create.workflow, create.traceId, create.key, create.origin, create.codec, ...create.tags]);
  checkTexts([create.parent?.run ?? null, create.parent?.key ?? null]);
  if (create.needs != null) checkNeeds(create.needs);
  if (create.needs != null && create.claimed)
    throw new PawlError(
      "invalid_argument",
      "A run that needs a slot cannot be claimed on the spot: others may wait for it.",
    );
}

/** Stores keep an absent one as an empty text. */
function checkNeeds({ slot, rate }: Needs): void {
  checkTexts([slot, rate]);
  if (slot === "" || rate === "") throw new PawlError("invalid_argument", "A slot or a rate needs a name.");
}

function textsOf(part: RunCommit): Text[] {
  const texts: Text[] = [];
  for (const row of part.state ?? []) texts.push(row.key, row.data);
  for (const key of part.keys ?? []) texts.push(key.space, key.key, key.digest);
  for (const change of part.waits ?? []) {
    if ("open" in change) texts.push(change.open.key, change.open.name, change.open.detail);
  }
  const row = part.row;
  if (row !== undefined) texts.push(row.progress ?? null, row.cost ?? null, row.stopReason ?? null);
  if (row?.version !== undefined) versionLine(row.version);
  if (row?.needs !== undefined) checkNeeds(row.needs);
  return texts;
}

function checkCounters(part: RunCommit): void {
  for (const { key, by } of part.counters ?? []) {
    checkText(key);
    if (!Number.isFinite(by)) throw broken(part.run, `counter "${key}" cannot change by ${by}`);
  }
}

function checkTexts(texts: readonly Text[]): void {
  for (const text of texts) checkText(text);
}

function checkText(text: Text): void {
  if (typeof text === "string" && !isStorable(text)) throw unstorable(text);
}

function broken(run: string, what: string): PawlError {
  return new PawlError("invalid_argument", `The commit of run ${run} cannot be applied: ${what}.`, {
    fields: { run },
  });
}
