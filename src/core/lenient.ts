// Lenient replay
// For journals that were edited or trimmed on purpose (`onMissing: "execute"`): calls are looked up by kind and key wherever they stand, what is
// recorded is delivered in journal order, and what is missing runs afresh. It gives up what strict replay protects: order.
import type { Call } from "./call.ts";
import { matches } from "./issue.ts";
import { type Entry, entryKind, type NoteType } from "./journal.ts";
import { type CallOutcome, callTypeOf } from "./outcomes.ts";

export interface RecordedCall {
  readonly call: Entry;
  /** Later attempts and failures that were to be retried. */
  readonly marks: readonly Entry[];
  readonly outcome: Entry | null;
}

export class LenientJournal {
  readonly #calls = new Map<string, { call: Entry; marks: Entry[]; outcome: Entry | null }>();
  readonly #notes = new Map<NoteType, number>();

  constructor(entries: readonly Entry[]) {
    for (const entry of entries) this.#add(entry);
  }

  /** What the journal has of this call; each is found once. */
  take(call: Call): RecordedCall | undefined {
    const id = `${call.type} ${call.key}`;
    const recorded = this.#calls.get(id);
    if (recorded === undefined || !matches(recorded.call, call)) return undefined;
    this.#calls.delete(id);
    return recorded;
  }

  /** Whether the body made this note before. */
  takeNote(type: NoteType): boolean {
    const left = this.#notes.get(type) ?? 0;
    if (left > 0) this.#notes.set(type, left - 1);
    return left > 0;
  }

  /** A key comes twice only where the entry between two generations was trimmed: the body begins in the first one. */
  #addCall(call: Entry): void {
    const id = `${call.type} ${call.key}`;
    if (!this.#calls.has(id)) this.#calls.set(id, { call, marks: [], outcome: null });
  }

  #add(entry: Entry): void {
    const kind = entryKind(entry);
    if (kind === "call") this.#addCall(entry);
    else if (kind === "note")
      this.#notes.set(entry.type as NoteType, (this.#notes.get(entry.type as NoteType) ?? 0) + 1);
    else {
      const type = kind === "outcome" ? callTypeOf(entry.type as CallOutcome, entry.payload) : "step.started";
      const recorded = this.#calls.get(`${type} ${entry.key}`);
      if (recorded === undefined) return;
      if (kind === "mark") recorded.marks.push(entry);
      else if (kind === "outcome") recorded.outcome ??= entry;
    }
  }
}
