// Observers
// Whoever watches what the runs of a process do: logs, counters, traces. They are told of what is durable, once, in its order, and never in replay;
// what they throw stops nobody.
import type { Entry, StoredEntry } from "./journal.ts";
import type { NewRun, RunRow } from "./store.ts";

/** What is known of a run while it is watched. */
export type ObservedRun = Pick<
  RunRow,
  "id" | "workflow" | "version" | "traceId" | "parent" | "origin" | "tags" | "createdAt"
>;

/** Entries that became durable together. */
export interface Committed {
  readonly run: ObservedRun;
  readonly entries: readonly StoredEntry[];
  /** An entry with its payload. */
  open(entry: StoredEntry): Entry;
}

/** An entry with its payload and its checksum, by which an attempt that it began is known. */
export type ObservedEntry = Entry & Pick<StoredEntry, "hash">;

/** An attempt of a step whose function is about to be called. */
export interface ObservedAttempt {
  readonly run: ObservedRun;
  readonly step: string;
  readonly attempt: number;
  /** The checksum of the entry that began it: the same to whoever reads the journal later. */
  readonly start: string;
}

/** What an observer may ask of the engine that it watches. */
export interface ObservedEngine {
  /** All entries of a run so far. */
  journal(run: string): Promise<readonly ObservedEntry[]>;
}

/** Watches an engine: `Pawl.open({ observers: [otel()] })`. */
export interface Observer {
  /** Comes first, when the engine is opened. */
  watch?(engine: ObservedEngine): void;
  /** Entries of a run became durable here. */
  committed?(commit: Committed): void;
  /** Calls the function of an attempt, say with a context around it. */
  around?<T>(attempt: ObservedAttempt, call: () => T): T;
  /** Resolves when everything it was told is where it belongs. */
  flush?(): Promise<void>;
}

/** What observers are told of a run that was created just now. */
export function observedNew(id: string, create: NewRun, createdAt: number): ObservedRun {
  const { workflow, version, traceId, parent, origin, tags } = create;
  return { id, workflow, version, traceId, parent, origin, tags, createdAt };
}
