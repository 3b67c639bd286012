import { decode } from "../base/codec.ts";
import type { Codec } from "../base/envelope.ts";
import { PawlError } from "../base/errors.ts";
import type { BudgetStatus } from "../core/budget.ts";
import type { Ended, Entry, Parked, StoredEntry } from "../core/journal.ts";
import { type EffectRecord, ledgerOf } from "../core/ledger.ts";
import { BLOCKED, type Block, isOwnKey } from "../core/outline.ts";
import { OWNED_STATES, ownerIn } from "../core/owners.ts";
import { type StateDocument, stateDocument } from "../core/state-document.ts";
import type { RunRow, Store, WaitKind } from "../core/store.ts";
import { isTerminal, type PublicStatus, publicStatus, type RunState } from "../core/transition.ts";
import { assertSound, openEntry, openValue } from "../core/values.ts";
import { type Facts, readFacts } from "../core/workflow-facts.ts";
import { nodeHost } from "../worker/node-host.ts";
import { parkOfBlock } from "./block-text.ts";
import { budgetOf } from "./budgets.ts";
import type { Changes, RunEnd } from "./changes.ts";
import { lineOf } from "./line.ts";
import { patiently } from "./patiently.ts";
import { type EventsOptions, eventsOf } from "./run-events.ts";
import { type StreamEvent, type StreamOptions, streamOf } from "./stream.ts";

/** A line of a list of runs. */
export interface RunSummary {
  readonly id: string;
  readonly workflow: string;
  readonly version: string;
  readonly status: PublicStatus;
  readonly state: RunState;
  readonly createdAt: Date;
  readonly endedAt: Date | null;
  readonly key: string | null;
  readonly tags: readonly string[];
  readonly parent: string | null;
  readonly stopReason: string | null;
  /** Who has to see to it, as its workflow says; absent where nobody has to, or nobody is named. */
  readonly responsible?: string;
}

export interface RunWait {
  readonly kind: WaitKind;
  readonly key: string;
  readonly name: string;
  readonly due: Date | null;
}

/** Everything about a run but its journal. */
export interface RunStatus extends RunSummary {
  readonly waits: readonly RunWait[];
  /** Why it waits for a person, and what that person may choose. */
  readonly parked?: Parked;
  readonly output?: unknown;
  readonly error?: unknown;
  readonly progress?: unknown;
  readonly cost?: Readonly<Record<string, number>>;
  /** How the nearest budget stands that holds for the run: its own, or that of a run above it. */
  readonly budget?: BudgetStatus;
  /** What the run has made readable with `ctx.set`. */
  readonly data: Readonly<Record<string, unknown>>;
  readonly traceId: string;
  readonly deadline: Date | null;
  readonly owner: string | null;
  /** The run it was retried or forked from. */
  readonly origin: string | null;
}

export type RunEvent = Entry;

export interface CancelOptions {
  readonly reason?: string;
  /** Undo what the run has done, as far as it says how. Default false. */
  readonly compensate?: boolean;
  /** Stops waiting for the record; the run is cancelled all the same. */
  readonly signal?: AbortSignal;
}

/** What was recorded: that the run is stopping, or how it had ended before. */
export interface CancelOutcome {
  readonly outcome: "cancelling" | "cancelled" | "succeeded" | "failed";
}

export interface SignalOptions {
  /** A signal with the same id is delivered once, however often it is sent. */
  readonly id?: string;
}

export interface JournalRange {
  /** The first position. Default 0. */
  readonly from?: number;
  /** At most so many. Default: all. */
  readonly limit?: number;
}

/** A handle on a run. Making one does no I/O. */
export interface Run<O = unknown> {
  readonly id: string;
  /** Waits for the end: the output, or the error that ended it. */
  result(): Promise<O>;
  status(): Promise<RunStatus>;
  signal(name: string, payload?: unknown, options?: SignalOptions): Promise<void>;
  cancel(options?: CancelOptions): Promise<CancelOutcome>;
  /** Its entries: all of them, or so many from a position on. */
  journal(range?: JournalRange): Promise<Entry[]>;
  /** What it has done outside, and what became of that: its ledger. */
  effects(): Promise<EffectRecord[]>;
  /** Where it stands, phase by phase and step by step: its state document, as JSON. */
  document(): Promise<StateDocument>;
  /** Everything recorded so far, or behind a position, then what follows, until the run ends. */
  events(options?: EventsOptions): AsyncIterable<RunEvent>;
  /** What its steps emit while they run: of each what its newest attempt has emitted, then what follows, until the run ends. */
  stream(options?: StreamOptions): AsyncIterable<StreamEvent>;
}

/** What handles need from the engine they belong to. */
export interface RunSource {
  readonly store: Store;
  readonly codec: Codec;
  readonly changes: Changes;
  signal(id: string, name: string, payload?: unknown, options?: SignalOptions): Promise<void>;
  cancel(id: string, options?: CancelOptions): Promise<CancelOutcome>;
  /** Whether the run is in this process's memory right now. */
  isHere(id: string): boolean;
  assertOpen(): void;
}

export class RunHandle<O> implements Run<O> {
  readonly id: string;
  readonly #source: RunSource;

  constructor(id: string, source: RunSource) {
    this.id = id;
    this.#source = source;
  }

  result(): Promise<O> {
    return resultOf(() => this.id, this.#source);
  }

  status(): Promise<RunStatus> {
    return statusOf(this.id, this.#source);
  }

  signal(name: string, payload?: unknown, options?: SignalOptions): Promise<void> {
    return this.#source.signal(this.id, name, payload, options);
  }

  cancel(options?: CancelOptions): Promise<CancelOutcome> {
    return this.#source.cancel(this.id, options);
  }

  journal(range?: JournalRange): Promise<Entry[]> {
    return journalOf(this.id, this.#source, range);
  }

  async effects(): Promise<EffectRecord[]> {
    return ledgerOf(await this.journal());
  }

  document(): Promise<StateDocument> {
    return documentOf(this.id, this.#source);
  }

  events(options?: EventsOptions): AsyncIterable<RunEvent> {
    return eventsOf(this.#source, this.id, () => rowOf(this.id, this.#source.store), options);
  }

  stream(options?: StreamOptions): AsyncIterable<StreamEvent> {
    return streamOf(this.#source, this.id, () => rowOf(this.id, this.#source.store), options);
  }
}

/** The output of the run that `find` gives, or its error thrown. */
export async function resultOf<O>(find: () => string | Promise<string>, source: RunSource): Promise<O> {
  const found = find();
  // Whoever has an id listens at once: a close that follows lets running steps finish, and with them the run.
  const id = typeof found === "string" ? found : await found;
  const listener = source.changes.listenForEnd(id);
  try {
    for (;;) {
      source.assertOpen();
      // A run that is in memory here cannot have ended: its end is told, and when it leaves as well.
      const isHere = source.isHere(id);
      const end =
        (isHere ? null : await patiently(recordedEnd(id, source))) ?? (await listener.next({ polls: !isHere }));
      if (end !== null) return openEnd(end) as O;
    }
  } finally {
    listener.stop();
  }
}

function openEnd({ ok, text }: RunEnd): unknown {
  const value = decode(text);
  if (ok) return value;
  throw (value as Ended).error;
}

/** Between the two reads the run may be deleted, or its end lost by a failover: only what is missing again and again is damage. */
const LOOKS_FOR_END = 3;

async function recordedEnd(id: string, { store, codec }: RunSource): Promise<RunEnd | null> {
  for (let looks = 0; looks < LOOKS_FOR_END; looks++) {
    const row = await rowOf(id, store);
    if (!isTerminal(row.state)) return null;
    const [before, last] = await lastTwo(store, row);
    if (last === undefined || last.data === null) continue;
    assertSound(nodeHost, row, last, before?.hash ?? null);
    return {
      ok: last.type === "run.succeeded",
      text: codec.unseal(last.data, { run: id, seq: last.seq, field: "data" }),
    };
  }
  throw missingEnd(id);
}

/** The end of a journal, and what its checksum stands on; that may have been trimmed. */
async function lastTwo(store: Store, { id, head }: RunRow): Promise<readonly (StoredEntry | undefined)[]> {
  const found = await store.journal(id, { from: Math.max(0, head - 2), limit: 2 });
  const at = (seq: number) => found.find((entry) => entry.seq === seq);
  return [at(head - 2), at(head - 1)];
}

function missingEnd(id: string): PawlError {
  return new PawlError(
    "corrupted_journal",
    `Run ${id} has ended, but its last journal entry is missing. Restore the store from a backup.`,
    { fields: { run: id } },
  );
}

export async function rowOf(id: string, store: Store): Promise<RunRow> {
  const row = await store.run(id);
  if (row === null) throw runNotFound(id);
  return row;
}

export function runNotFound(id: string): PawlError {
  return new PawlError(
    "run_not_found",
    `There is no run ${id} in this store. \`pawl ls\` lists the runs; finished ones are kept for as long as the retention says.`,
    {
      fields: { run: id },
    },
  );
}

export function runHasEnded(id: string, what: string): PawlError {
  return new PawlError(
    "run_ended",
    `Run ${id} has ended; ${what} was not delivered. \`pawl show ${id}\` tells how it ended.`,
    { fields: { run: id } },
  );
}

/** With what the catalogue says of workflows, for those who have to see to runs. */
export function summaryOf(row: RunRow, facts?: ReadonlyMap<string, Facts>): RunSummary {
  const responsible = ownerIn(facts?.get(row.workflow)?.owners, row.state);
  return {
    id: row.id,
    workflow: row.workflow,
    version: row.version,
    status: publicStatus(row.state),
    state: row.state,
    createdAt: new Date(row.createdAt),
    endedAt: row.endedAt === null ? null : new Date(row.endedAt),
    key: row.key,
    tags: row.tags,
    parent: row.parent?.run ?? null,
    stopReason: row.stopReason,
    ...(responsible !== null && { responsible }),
  };
}

async function statusOf(id: string, source: RunSource): Promise<RunStatus> {
  const { store, codec } = source;
  const row = await rowOf(id, store);
  const [waits, state, line, budget, facts] = await Promise.all([
    store.waits({ run: id }),
    store.state(id),
    lineOf(store, row),
    budgetOf(source, row),
    OWNED_STATES.includes(row.state) ? store.workflows() : [],
  ]);
  const park = waits.find((wait) => wait.kind === "decision")?.detail ?? null;
  const data = state.map(
    ({ key, data }) => [key, openValue(codec, data, { run: id, seq: -1, field: `state:${key}` })] as const,
  );
  return {
    ...summaryOf(line === null ? row : { ...row, state: "waiting" }, readFacts(facts)),
    waits: [
      ...(line === null ? [] : [{ kind: line.kind, key: line.kind, name: line.name, due: null }]),
      ...waits.map(({ kind, key, name, due }) => ({ kind, key, name, due: due === null ? null : new Date(due) })),
    ],
    ...(park === null ? blockFields(row, data) : { parked: parkOf(id, park) }),
    ...(await endFields(id, row, source)),
    ...(row.progress === null ? {} : { progress: progressOf(id, row.progress) }),
    ...(row.cost === null ? {} : { cost: costOf(id, row.cost) }),
    ...(budget === null ? {} : { budget }),
    data: Object.fromEntries(data.filter(([key]) => !isOwnKey(key))),
    traceId: row.traceId,
    deadline: row.deadline === null ? null : new Date(row.deadline),
    owner: row.owner,
    origin: row.origin,
  };
}

/** A run that waits for a decision of its own making is shown like one that was parked. */
function blockFields(row: RunRow, data: readonly (readonly [string, unknown])[]): Pick<RunStatus, "parked"> {
  const block = data.find(([key]) => key === BLOCKED)?.[1] as Block | null | undefined;
  return block == null || isTerminal(row.state) ? {} : { parked: parkOfBlock(row.id, block) };
}

/** What the store keeps beside the journal, for people: why a run is parked. */
export function parkOf(run: string, detail: string): Parked {
  return readField(run, "the reason why it is parked", detail, parseJson, isPark);
}

function costOf(run: string, cost: string): Record<string, number> {
  return readField(run, "its cost", cost, parseJson, isCost);
}

function progressOf(run: string, progress: string): unknown {
  return readField(run, "its progress", progress, decode, (_value): _value is unknown => true);
}

/** Reads a column that is written by no one but the engine; whoever damaged it, the run itself can still be put away. */
function readField<T>(
  run: string,
  what: string,
  text: string,
  read: (text: string) => unknown,
  isSound: (value: unknown) => value is T,
): T {
  let value: unknown;
  try {
    value = read(text);
    if (isSound(value)) return value;
  } catch {
    // Named below.
  }
  throw new PawlError(
    "corrupt_value",
    `The row of run ${run} is damaged: ${what} cannot be read. Restore the store from a backup, or cancel the run; its journal is not touched by this.`,
    { fields: { run, what } },
  );
}

function parseJson(text: string): unknown {
  return JSON.parse(text);
}

function isPark(value: unknown): value is Parked {
  if (typeof value !== "object" || value === null) return false;
  const { reason, message, choices } = value as Record<string, unknown>;
  return typeof reason === "string" && typeof message === "string" && Array.isArray(choices);
}

function isCost(value: unknown): value is Record<string, number> {
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).every((amount) => typeof amount === "number");
}

async function endFields(id: string, row: RunRow, source: RunSource): Promise<{ output?: unknown; error?: unknown }> {
  if (!isTerminal(row.state)) return {};
  const end = await recordedEnd(id, source);
  if (end === null) return {};
  const value = decode(end.text);
  return end.ok ? { output: value } : { error: (value as Ended).error };
}

async function journalOf(id: string, { store, codec }: RunSource, range?: JournalRange): Promise<Entry[]> {
  await rowOf(id, store);
  return (await store.journal(id, range)).map((stored) => openEntry(codec, id, stored));
}

/** A run that is being worked on moves between two reads: the row is never older than the entries, but it may be newer. */
export async function documentOf(id: string, source: RunSource): Promise<StateDocument> {
  const entries = await journalOf(id, source);
  return stateDocument(await rowOf(id, source.store), entries);
}
