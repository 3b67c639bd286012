// The records of alerts
// What a run of the alerts is kept as: the book and the index of actions, in run state; and reports, in messages.
//
//   AR1. What cannot be read is left out and named, never thrown: one odd value must not stop all alerts.
import type { Codec } from "../base/envelope.ts";
import { PawlError } from "../base/errors.ts";
import type { AlertRules, Report } from "../core/alert.ts";
import { AlertBook, type AlertBookState, EMPTY_BOOK, type KnownEffect } from "../core/alert-book.ts";
import { isReport, type Sound, soundBook, soundEffects } from "../core/alert-shapes.ts";
import type { RunStarted, StoredEntry } from "../core/journal.ts";
import { isPlainRecord } from "../core/stable-digest.ts";
import type { InboxRow, StateRow } from "../core/store.ts";
import { openEntry, openValue, sealValue } from "../core/values.ts";

/** The signal by which reports come. */
export const REPORTS = "reports";
const BOOK = "book";
const EFFECTS = "effects:";

/** What a run of alerts knows, with how many messages it has taken. */
export interface KeptAlerts {
  readonly book: AlertBookState;
  readonly effects: Readonly<Record<string, readonly KnownEffect[]>>;
  readonly taken: number;
}

export const NO_ALERTS: KeptAlerts = { book: EMPTY_BOOK, effects: {}, taken: 0 };

/** What was read, and why the rest was not. */
export interface Opened<T> {
  readonly value: T;
  readonly faults: readonly unknown[];
}

export function bookOf(kept: KeptAlerts, rules: AlertRules, digest: (text: string) => string): AlertBook {
  return new AlertBook(kept.book, new Map(Object.entries(kept.effects)), rules, digest);
}

/** What is known by the book now. */
export function keptIn(book: AlertBook, before: KeptAlerts): KeptAlerts {
  const touched = [...book.touched].map((bucket) => [bucket, book.effectsIn(bucket)] as const);
  return { ...before, book: book.state, effects: { ...before.effects, ...Object.fromEntries(touched) } };
}

/** What the run knows: by its state, or else by what it began with. */
export function openAlerts(
  codec: Codec,
  run: string,
  rows: readonly StateRow[],
  first: StoredEntry | undefined,
): Opened<KeptAlerts> {
  const reading = new Reading(run);
  const open = (row: StateRow) => () => openValue(codec, row.data, { run, seq: -1, field: `state:${row.key}` });
  const own = rows.find(({ key }) => key === BOOK);
  const begun = reading.kept(() => (first === undefined ? null : (openEntry(codec, run, first).payload as RunStarted)));
  const state = own === undefined ? begun : reading.book(open(own));
  const parts = rows.filter(({ key }) => key.startsWith(EFFECTS));
  const effects = parts.map((row) => [row.key.slice(EFFECTS.length), reading.effects(row.key, open(row))] as const);
  const value = { ...state, effects: { ...begun.effects, ...Object.fromEntries(effects) } };
  return { value, faults: reading.faults };
}

/** Reads one thing after the other, and gathers what is wrong with them (AR1). */
class Reading {
  readonly faults: unknown[] = [];
  readonly #run: string;

  constructor(run: string) {
    this.#run = run;
  }

  /** What the run began with. */
  kept(open: () => RunStarted | null): KeptAlerts {
    const input = this.#try(() => open()?.input ?? null);
    const kept = isPlainRecord(input) ? input["kept"] : null;
    if (!isPlainRecord(kept)) return NO_ALERTS;
    const parts = isPlainRecord(kept["effects"]) ? Object.entries(kept["effects"]) : [];
    const effects = parts.map(([part, list]) => [part, this.effects(part, () => list)] as const);
    return { ...this.book(() => kept), effects: Object.fromEntries(effects) };
  }

  book(open: () => unknown): Pick<KeptAlerts, "book" | "taken"> {
    const value = this.#try(open);
    const { book, taken } = isPlainRecord(value) ? value : {};
    return {
      book: value === undefined ? EMPTY_BOOK : this.#sound("book", soundBook(book)),
      taken: typeof taken === "number" ? taken : 0,
    };
  }

  effects(key: string, open: () => unknown): KnownEffect[] {
    const value = this.#try(open);
    return value === undefined ? [] : this.#sound(key, soundEffects(value));
  }

  /** `undefined`, which no value is, for what cannot be read. */
  #try<T>(open: () => T): T | undefined {
    try {
      return open();
    } catch (error) {
      this.faults.push(error);
      return undefined;
    }
  }

  #sound<T>(field: string, { value, isWhole }: Sound<T>): T {
    const message = `In run ${this.#run}, "${field}" holds what no version of Pawl has written there.`;
    if (!isWhole) this.faults.push(new PawlError("corrupt_value", message, { fields: { run: this.#run, field } }));
    return value;
  }
}

export function sealAlerts(
  codec: Codec,
  run: string,
  { book, taken, effects }: KeptAlerts,
  touched: ReadonlySet<string>,
): StateRow[] {
  const seal = (key: string, value: unknown): StateRow => ({
    key,
    data: sealValue(codec, value, { run, seq: -1, field: `state:${key}` }, `${key} of the alerts`),
  });
  return [
    seal(BOOK, { book, taken }),
    ...[...touched].map((bucket) => seal(`${EFFECTS}${bucket}`, effects[bucket] ?? [])),
  ];
}

/** The reports in some messages. What is no report is left out: anybody who reaches the store can leave a message. */
export function openReports(codec: Codec, run: string, mail: readonly InboxRow[]): Opened<Report[]> {
  const faults: unknown[] = [];
  const value = mail.flatMap(({ id, kind, name, data }) => {
    if (kind !== "signal" || name !== REPORTS) return [];
    try {
      const reports = openValue(codec, data, { run, seq: -1, field: `inbox:${id}` });
      return Array.isArray(reports) ? reports.filter(isReport) : [];
    } catch (error) {
      faults.push(error);
      return [];
    }
  });
  return { value, faults };
}
