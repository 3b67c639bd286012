// Which streams there are
// A fold of the journal for readers of streams: which attempts are under way, and what an entry does to what they have emitted.
//
//   SR1. Of the attempts of a step the newest counts. What others have emitted is void.
//   SR2. An attempt that leads to its own outcome ends with it. Where a run parks, is stopped, is undone, goes on with another generation or ends,
//        attempts under way are given up: whatever is recorded for their steps later, they have not led to it.
import type { Entry, EntryType, StepFailed, StepStarted } from "./journal.ts";

/** What an attempt emits, as a reader sees it. */
export interface ReadStream {
  readonly key: string;
  readonly attempt: number;
  /** The entry that began it, and its checksum. */
  readonly seq: number;
  readonly start: string;
  /** The next chunk to be read. */
  next: number;
  /** All of it was read: the mark that closes it was found. */
  isClosed: boolean;
  /** Nothing of it counts any more. */
  isVoid: boolean;
}

/** An entry with the checksum that it is stored with. */
export interface ChainedEntry extends Entry {
  readonly hash: string;
}

/** What an entry does. */
export type StreamChange =
  /** An attempt begins, and takes the place of another one. */
  | { readonly kind: "begins"; readonly stream: ReadStream; readonly replaces: ReadStream | null }
  /** A step has its outcome. */
  | { readonly kind: "ends"; readonly stream: ReadStream; readonly ok: boolean }
  /** These are given up. */
  | { readonly kind: "voids"; readonly streams: readonly ReadStream[] };

const BEGINS: ReadonlySet<string> = new Set<EntryType>(["step.started", "effect.planned", "step.reserved"]);
const SUCCEEDS: ReadonlySet<string> = new Set<EntryType>(["step.completed", "effect.executed", "effect.compensated"]);
const GIVES_UP: ReadonlySet<string> = new Set<EntryType>([
  "run.parked",
  "run.cancelling",
  "run.compensating",
  "run.continued",
  "run.succeeded",
  "run.failed",
  "run.cancelled",
]);

/** Whether the fold looks into an entry's payload. */
export function isLookedInto(type: EntryType): boolean {
  return type === "step.started" || type === "step.failed";
}

export class StreamFold {
  readonly #open = new Map<string, ReadStream>();

  /** Those without an outcome, oldest first. */
  get open(): ReadStream[] {
    return [...this.#open.values()];
  }

  /** What the entry will do; nothing has changed yet. */
  look(entry: ChainedEntry): StreamChange | null {
    const { type, key } = entry;
    if (GIVES_UP.has(type)) return { kind: "voids", streams: this.open.filter(({ isVoid }) => !isVoid) };
    if (key === null) return null;
    const stream = this.#open.get(key);
    if (BEGINS.has(type)) return { kind: "begins", stream: streamOf(entry, key, stream), replaces: stream ?? null };
    if (stream === undefined) return null;
    if (SUCCEEDS.has(type)) return { kind: "ends", stream, ok: true };
    if (type !== "step.failed") return null;
    return (entry.payload as StepFailed).retryAt === null
      ? { kind: "ends", stream, ok: false }
      : { kind: "voids", streams: stream.isVoid ? [] : [stream] };
  }

  apply(change: StreamChange | null): void {
    // Out of its place first: they stand in the order in which they have begun.
    if (change?.kind === "begins" || change?.kind === "ends") this.#open.delete(change.stream.key);
    if (change?.kind === "begins") this.#open.set(change.stream.key, change.stream);
    if (change?.kind === "voids") for (const stream of change.streams) stream.isVoid = true;
  }
}

function streamOf({ type, seq, hash, payload }: ChainedEntry, key: string, before: ReadStream | undefined): ReadStream {
  // A call that was refused before begins with what it was planned as.
  const planned = type === "step.reserved" ? (before?.attempt ?? 1) : 1;
  const attempt = type === "step.started" ? ((payload as StepStarted)?.attempt ?? 1) : planned;
  return { key, attempt, seq, start: hash, next: 0, isClosed: false, isVoid: false };
}
