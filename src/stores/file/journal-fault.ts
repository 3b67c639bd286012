import { hash } from "node:crypto";
import { PawlError } from "../../base/errors.ts";
import { checksum } from "../../core/checksum.ts";
import { ENDS, type StoredEntry } from "../../core/journal.ts";
import type { RunRow } from "../../core/store.ts";
import { isTerminal } from "../../core/transition.ts";
import type { MemoryRun } from "../memory/tables.ts";

const digest = (data: string | Uint8Array): string => hash("sha256", data, "base64url").slice(0, 22);

/** Entries are never taken over from a person: nobody could tell any more what has happened. */
export function assertWhole(run: MemoryRun, file: string): void {
  const fault = faultOf(run, file);
  if (fault !== null) throw fault;
}

/** What is wrong with the journal of a document: an entry that is not what was written, a missing end, a row that says something else. */
export function faultOf({ row, journal }: MemoryRun, file: string): PawlError | null {
  let previous = row.id;
  for (const [index, entry] of journal.entries()) {
    if (checksum({ digest }, previous, entry) !== entry.hash) return broken(row.id, file, entry, index);
    previous = entry.hash;
  }
  const isCut = journal.length < row.head;
  const last = journal[row.head - 1];
  const isWhole = !isCut && (row.headHash === "" || last?.hash === row.headHash);
  if (!isWhole) return broken(row.id, file, last, row.head - 1);
  return endOf(journal) === (isTerminal(row.state) ? row.state : null) ? null : otherEnd(row, file);
}

/** How the journal says that the run has ended; `null`: it has not. */
export function endOf(journal: readonly StoredEntry[]): string | null {
  const type = journal.at(-1)?.type;
  return ENDS.find((end) => end === type)?.slice("run.".length) ?? null;
}

function otherEnd({ id, state }: RunRow, file: string): PawlError {
  const path = "engine.row.state";
  return new PawlError(
    "corrupted_journal",
    `The document ${file} cannot be accepted: ${path} is "${state}", and the journal says otherwise. Put back what stood there; to end a run, cancel it.`,
    { fields: { run: id, file, path } },
  );
}

function broken(run: string, file: string, entry: StoredEntry | undefined, index: number): PawlError {
  const what = entry === undefined ? "is missing" : `(${entry.type}) does not match its checksum`;
  return new PawlError(
    "corrupted_journal",
    `The document ${file} cannot be accepted: engine.journal[${index}] ${what}. Entries of a journal cannot be changed by hand. Put a good copy in its place, and change statuses above "engine" instead; or start afresh: pawl state fresh ${run}.`,
    { fields: { run, file, path: `engine.journal[${index}]`, seq: index } },
  );
}
