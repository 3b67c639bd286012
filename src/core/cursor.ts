// Replay cursor
// Walks a run's recorded entries while its body re-executes. It never writes: appending is the draft's job.
//
//   R1. Entries are passed in seq order, each at most once.
//   R2. Marks and notes are not calls: they never stop the walk.
//   R3. Past the last entry the cursor is at its end for good.
import { type Entry, entryKind, type NoteType } from "./journal.ts";

export class Cursor {
  readonly #entries: readonly Entry[];
  readonly #reader: { mark(entry: Entry): void };
  #next = 0;
  #windowFrom = 0;
  #window: { readonly notes: Map<string, Entry[]>; readonly isLast: boolean } | null = null;
  #past: Set<string> | null = null;

  constructor(entries: readonly Entry[], reader: { mark(entry: Entry): void }) {
    this.#entries = entries;
    this.#reader = reader;
  }

  /** The next recorded call or outcome, or `null` at the end. Marks before it are reported and passed. */
  peek(): { readonly kind: "call" | "outcome" | "end"; readonly entry: Entry } | null {
    for (;;) {
      const entry = this.#entries[this.#next];
      if (entry === undefined) return null;
      const kind = entryKind(entry);
      if (kind === "mark") this.#reader.mark(entry);
      else if (kind !== "note") return { kind, entry };
      this.#next++;
    }
  }

  /** Whether such an entry lies ahead. */
  has(isIt: (entry: Entry) => boolean): boolean {
    for (let i = this.#next; i < this.#entries.length; i++) if (isIt(this.#entries[i] as Entry)) return true;
    return false;
  }

  /** Passes the entry that `peek` has shown. */
  pass(): void {
    this.#next++;
  }

  /** A turn begins after the entry just passed: notes are matched within it (P9). */
  openWindow(): void {
    this.#windowFrom = this.#next;
    this.#window = null;
    this.#past = null;
  }

  /** The next recorded note of this type in the current turn, if the body made one here before; with an id, the one of that id. */
  takeNote(type: NoteType, id: string | null): Entry | undefined {
    const notes = this.#currentWindow().notes.get(type);
    const index = id === null ? 0 : (notes?.findIndex((note) => note.key === id) ?? -1);
    return index < 0 ? undefined : notes?.splice(index, 1)[0];
  }

  /**
   * Whether something is recorded behind the place of this patch, a note as well, or was behind an earlier one of its id in this turn: a
   * marker of the later one would be the earlier one's in replay.
   */
  isPast(patch: string): boolean {
    if (this.#isAtEnd) return this.#past?.has(patch) ?? false;
    this.#past ??= new Set();
    this.#past.add(patch);
    return true;
  }

  get #isAtEnd(): boolean {
    return this.peek() === null && [...this.#currentWindow().notes.values()].every((left) => left.length === 0);
  }

  /** Only the last recorded turn may be incomplete. */
  get isLastTurn(): boolean {
    return this.#currentWindow().isLast;
  }

  #currentWindow(): { readonly notes: Map<string, Entry[]>; readonly isLast: boolean } {
    if (this.#window !== null) return this.#window;
    const notes = new Map<string, Entry[]>();
    for (let i = this.#windowFrom; i < this.#entries.length; i++) {
      const entry = this.#entries[i] as Entry;
      const kind = entryKind(entry);
      if (kind === "outcome") {
        this.#window = { notes, isLast: false };
        return this.#window;
      }
      if (kind === "note") notes.set(entry.type, [...(notes.get(entry.type) ?? []), entry]);
    }
    this.#window = { notes, isLast: true };
    return this.#window;
  }
}
