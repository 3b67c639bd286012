// The keeper of alerts
// All alerts of a store are in one run without a body. Whoever has claimed it takes the reports in that have come, and lets it go again, in one
// commit with the notifications that follow.
//
//   AK1. What is known is run state: the book, and the index of actions in parts, of which those are written that have changed. The journal does not grow.
//   AK2. A commit counts only while this worker owns the run: of two workers with the same report, one fires.
//   AK3. The inbox remembers every message until its run ends. So after a number of them the run ends, and its commit creates the next one, which
//        begins with all that this one knew.
//   AK4. A run that cannot be kept here is left as it is, and tried again later: it is never parked.
import type { Codec } from "../base/envelope.ts";
import { messageOf } from "../base/errors.ts";
import { ALERTS_WORKFLOW, type Alert, type AlertRules, type Report } from "../core/alert.ts";
import { AlertBook, type AlertBookState, EMPTY_BOOK, type KnownEffect } from "../core/alert-book.ts";
import type { Log } from "../core/context.ts";
import { Draft } from "../core/draft.ts";
import { endBodiless } from "../core/endings.ts";
import type { Host } from "../core/host.ts";
import type { RunStarted, StoredEntry } from "../core/journal.ts";
import { LIMITS } from "../core/limits.ts";
import { notifyAlert } from "../core/notification.ts";
import type { ClaimedRun, InboxRow, NewChild, NewRun, RunCommit, StateRow, Store } from "../core/store.ts";
import { openEntry, openValue, sealValue } from "../core/values.ts";
import type { Tending } from "./schedule-keeper.ts";

export interface AlertKeeperPorts {
  readonly store: Store;
  readonly codec: Codec;
  readonly host: Host;
  readonly log: Log;
  readonly rules: AlertRules;
  /** Whether this worker sends notifications. */
  readonly notifies: boolean;
  mailed(): void;
}

/** The signal by which reports come. */
export const REPORTS = "reports";
const BOOK = "book";
const EFFECTS = "effects:";
export const ALERTS_VERSION = "1.0.0";

/** What a run of alerts knows, with how many messages it has taken. */
export interface KeptAlerts {
  readonly book: AlertBookState;
  readonly effects: Readonly<Record<string, readonly KnownEffect[]>>;
  readonly taken: number;
}

/** What such a run begins with. */
export interface AlertsInput {
  readonly number: number;
  readonly kept: KeptAlerts;
}

export const NO_ALERTS: KeptAlerts = { book: EMPTY_BOOK, effects: {}, taken: 0 };

export class AlertKeeper {
  readonly #ports: AlertKeeperPorts;

  constructor(ports: AlertKeeperPorts) {
    this.#ports = ports;
  }

  /** Decides what becomes of the run of the alerts, which this worker has claimed. Rejects only if the store cannot be read. */
  async tend(claimed: ClaimedRun, draft: Draft): Promise<Tending> {
    const { store } = this.#ports;
    const rows = await store.state(claimed.run);
    try {
      return this.#take(claimed, draft, rows);
    } catch (error) {
      const message = `The alerts could not be looked after, and that is tried again in half a minute. ${messageOf(error)}`;
      const again = new Draft(claimed.run, draft.chain, this.#ports.host, this.#ports.codec);
      const commit = letGo(claimed, again, store.clock.now() + LIMITS.scheduleRetryMs);
      return { commit, tell: () => this.#ports.log.error(message, { run: claimed.run }) };
    }
  }

  #take(claimed: ClaimedRun, draft: Draft, rows: readonly StateRow[]): Tending {
    const { store, codec, rules, host, notifies, mailed } = this.#ports;
    const now = store.clock.now();
    const kept = openAlerts(codec, claimed.run, rows, claimed.journal[0]);
    const book = bookOf(kept, rules, (text) => host.digest(text));
    const mail = claimed.inbox.filter(({ kind }) => kind === "signal");
    for (const row of mail) for (const report of openReports(codec, claimed.run, row)) book.take(report);
    book.settle(now);
    for (const { id } of mail) draft.consume(id);
    const told = book.fired.filter(({ kind }) => kind !== "compensation_incomplete");
    const ports = { clock: store.clock, codec, host, notifies, mailed };
    if (notifies) for (const alert of told) notifyAlert({ draft, row: claimed.row, ports }, alert);
    const next = { ...keptIn(book, kept), taken: kept.taken + mail.length };
    const tell = () => {
      for (const alert of book.moved) this.#log(alert);
      if (book.fired.length > 0) mailed();
    };
    if (next.taken >= LIMITS.alertMessages) return { commit: this.#handOn(claimed, draft, next, now), tell };
    for (const row of sealAlerts(codec, claimed.run, next, book.touched)) draft.state(row);
    draft.wait({ open: { key: `signal:${REPORTS}`, kind: "signal", name: REPORTS, due: null, detail: null } });
    return { commit: letGo(claimed, draft, book.wakeAt(now)), tell };
  }

  /** Ends the run; the next one begins with what it knew (AK3). */
  #handOn(claimed: ClaimedRun, draft: Draft, kept: KeptAlerts, now: number): RunCommit {
    const { codec, host, store } = this.#ports;
    const started = openEntry(codec, claimed.run, claimed.journal[0] as StoredEntry).payload as RunStarted;
    const { number } = started.input as AlertsInput;
    draft.child(newAlertsRun({ codec, host }, { number: number + 1, kept: { ...kept, taken: 0 } }, now));
    endBodiless(draft, claimed.row, { clock: store.clock, codec });
    return draft.take().commit;
  }

  /** Where nobody is notified, the log is where people find it. */
  #log({ id, kind, status, summary, owner, runs, workflow, level, isRepeat }: Alert): void {
    const fields = { event: `alert.${status}`, alert: id, kind, workflow, owner, runs, level };
    if (status !== "firing") return this.#ports.log.info(`Alert ${id} (${kind}) is ${status}.`, fields);
    const text = `Alert ${kind}: ${summary}. \`pawl alerts\` tells more.`;
    if (this.#ports.notifies || isRepeat) this.#ports.log.info(text, fields);
    else this.#ports.log.warn(text, fields);
  }
}

export function bookOf(kept: KeptAlerts, rules: AlertRules, digest: (text: string) => string): AlertBook {
  return new AlertBook(kept.book, new Map(Object.entries(kept.effects)), rules, digest);
}

function keptIn(book: AlertBook, before: KeptAlerts): Omit<KeptAlerts, "taken"> {
  const touched = [...book.touched].map((bucket) => [bucket, book.effectsIn(bucket)] as const);
  return { book: book.state, effects: { ...before.effects, ...Object.fromEntries(touched) } };
}

/** What the run knows: by its state, or else by what it began with. */
export function openAlerts(
  codec: Codec,
  run: string,
  rows: readonly StateRow[],
  first: StoredEntry | undefined,
): KeptAlerts {
  const open = (row: StateRow) => openValue(codec, row.data, { run, seq: -1, field: `state:${row.key}` });
  const started = first === undefined ? null : (openEntry(codec, run, first).payload as RunStarted);
  const begun = (started?.input as AlertsInput | undefined)?.kept ?? NO_ALERTS;
  const own = rows.find(({ key }) => key === BOOK);
  const state = own === undefined ? begun : (open(own) as Pick<KeptAlerts, "book" | "taken">);
  const parts = rows.filter(({ key }) => key.startsWith(EFFECTS));
  const effects = parts.map((row) => [row.key.slice(EFFECTS.length), open(row) as KnownEffect[]] as const);
  return { book: state.book, taken: state.taken, effects: { ...begun.effects, ...Object.fromEntries(effects) } };
}

function sealAlerts(
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

/** None for a signal that did not come from here: anybody can send one to a run. */
export function openReports(codec: Codec, run: string, { id, name, data }: InboxRow): Report[] {
  if (name !== REPORTS) return [];
  const reports = openValue(codec, data, { run, seq: -1, field: `inbox:${id}` });
  return Array.isArray(reports) ? reports.filter(isReport) : [];
}

const KINDS: ReadonlySet<unknown> = new Set<Report["kind"]>([
  "seen",
  "over",
  "retries",
  "effect",
  "duplicates",
  "acknowledge",
  "resolve",
]);

function isReport(value: Partial<Report> | null): value is Report {
  return KINDS.has(value?.kind) && Number.isFinite(value?.at);
}

/** The id of the run of the alerts with this number: there can only be one. */
export function alertsRun(number: number): string {
  return `${ALERTS_WORKFLOW}.${number}`;
}

export function newAlertsRun(
  { codec, host }: Pick<AlertKeeperPorts, "codec" | "host">,
  input: AlertsInput,
  now: number,
): NewChild {
  const run = alertsRun(input.number);
  const draft = new Draft(run, { head: 0, hash: run, at: 0 }, host, codec);
  const [workflow, version] = [ALERTS_WORKFLOW, ALERTS_VERSION];
  draft.append(now, "run.started", null, { workflow, version, input, seed: run, deadline: null } satisfies RunStarted);
  const [entry] = draft.take().commit.entries;
  if (entry === undefined) throw new Error("a draft gives back what was appended");
  const create: NewRun = {
    workflow,
    version,
    traceId: run,
    key: null,
    tags: [],
    priority: 0,
    parent: null,
    origin: null,
    deadline: null,
    claimed: false,
    readyAt: now,
    codec: codec.id,
  };
  return { run, create, entry };
}

function letGo({ wake }: ClaimedRun, draft: Draft, wakeAt: number | null): RunCommit {
  const row = { state: "waiting", release: true, readyAt: null, wakeAt, claims: 0 } as const;
  return draft.take({ ifWake: wake, row }).commit;
}
