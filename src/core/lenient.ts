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
  readonly #notes = new Map<string, number>();

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

  /** Whether this call is there to be taken. */
  has(call: Call): boolean {
    const recorded = this.#calls.get(`${call.type} ${call.key}`);
    return recorded !== undefined && matches(recorded.call, call);
  }

  /** Whether such a call is there to be taken. */
  holds(isIt: (call: Entry) => boolean): boolean {
    return [...this.#calls.values()].some(({ call }) => isIt(call));
  }

  /** Whether the body made this note before; with an id, the one of that id. */
  takeNote(type: NoteType, id: string | null): boolean {
    const note = noteOf(type, id);
    const left = this.#notes.get(note) ?? 0;
    if (left > 0) this.#notes.set(note, left - 1);
    return left > 0;
  }

  /** A key comes twice only where the entry between two generations was trimmed: the body begins in the first one. */
  #addCall(call: Entry): void {
    const id = `${call.type === "effect.planned" ? "step.started" : call.type} ${call.key}`;
    if (!this.#calls.has(id)) this.#calls.set(id, { call, marks: [], outcome: null });
  }

  #add(entry: Entry): void {
    const kind = entryKind(entry);
    if (kind === "call") this.#addCall(entry);
    else if (kind === "note") {
      const note = noteOf(entry.type as NoteType, entry.type === "patched" ? entry.key : null);
      this.#notes.set(note, (this.#notes.get(note) ?? 0) + 1);
    } else {
      // An outcome of the run as a whole belongs to no call.
      const type = kind === "outcome" ? callTypeOf(entry.type as CallOutcome, entry.payload) : markedCall(entry);
      const recorded = this.#calls.get(`${type} ${entry.key}`);
      if (recorded === undefined) return;
      if (kind === "mark") recorded.marks.push(entry);
      else if (kind === "outcome") recorded.outcome ??= entry;
    }
  }
}

/** The type of the call that a mark belongs to. */
function markedCall({ type }: Entry): string {
  return type === "approval.escalated" ? "approval.requested" : "step.started";
}

function noteOf(type: NoteType, id: string | null): string {
  return id === null ? type : `${type} ${id}`;
}
