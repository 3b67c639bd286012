// The keeper of alerts
// All alerts of a store are in one run without a body. Whoever has claimed it takes the reports in that have come, and lets it go again, in one
// commit with the notifications that follow.
//
//   AK1. What is known is run state: the book, and the index of actions in parts, of which those are written that have changed. The journal does not grow.
//   AK2. A commit counts only while this worker owns the run: of two workers with the same report, one fires.
//   AK3. The inbox remembers every message until its run ends. So after a number of them the run ends, and its commit creates the next one, which
//        begins with what of it is alive: the book, and the newest actions.
//   AK4. What is damaged is given up, and the log says so: the rest goes on. What is sealed with a key that is not here is left as it is and tried
//        again later, until nobody has written it for so long that nobody can have the key. A message that cannot be read is used up.
import type { Codec } from "../base/envelope.ts";
import { hasCode, messageOf } from "../base/errors.ts";
import { ALERTS_WORKFLOW, type Alert, type AlertRules } from "../core/alert.ts";
import { newestEffects } from "../core/alert-book.ts";
import type { Log } from "../core/context.ts";
import { Draft } from "../core/draft.ts";
import { endBodiless } from "../core/endings.ts";
import type { Host } from "../core/host.ts";
import type { RunStarted } from "../core/journal.ts";
import { LIMITS } from "../core/limits.ts";
import { notifyAlert } from "../core/notification.ts";
import type { ClaimedRun, NewChild, NewRun, RunCommit, StateRow, Store } from "../core/store.ts";
import {
  bookOf,
  type KeptAlerts,
  keptIn,
  type Opened,
  openAlerts,
  openReports,
  REPORTS,
  sealAlerts,
} from "./alert-records.ts";
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

export const ALERTS_VERSION = "1.0.0";

/** What such a run begins with. */
interface AlertsInput {
  readonly number: number;
  readonly kept: KeptAlerts;
}

export class AlertKeeper {
  readonly #ports: AlertKeeperPorts;
  /** Run state that this worker has no key for, and since when on the lease clock. */
  #sealed: { readonly digest: string; readonly since: number } | null = null;
  /** The trouble that was told of last. */
  #told: string | null = null;

  constructor(ports: AlertKeeperPorts) {
    this.#ports = ports;
  }

  /** Decides what becomes of the run of the alerts, which this worker has claimed. Rejects only if the store cannot be read. */
  async tend(claimed: ClaimedRun, draft: Draft): Promise<Tending> {
    const { store, codec } = this.#ports;
    const rows = await store.state(claimed.run);
    const known = openAlerts(codec, claimed.run, rows, claimed.journal[0]);
    const keyless = known.faults.find((fault) => hasCode(fault, "key_missing"));
    if (keyless !== undefined && this.#mayBeRead(rows)) return this.#postponed(claimed, draft, keyless);
    try {
      const tending = this.#take(claimed, draft, known);
      this.#told = null;
      return tending;
    } catch (error) {
      return this.#postponed(claimed, draft, error);
    }
  }

  /** By somebody else: that it was not written for long says that nobody can (AK4). */
  #mayBeRead(rows: readonly StateRow[]): boolean {
    const { host, store } = this.#ports;
    const digest = host.digest(rows.map(({ key, data }) => `${key} ${String(data)}`).join("\n"));
    const now = store.leaseClock.monotonic();
    if (this.#sealed?.digest !== digest) this.#sealed = { digest, since: now };
    return now - this.#sealed.since < LIMITS.alertPatienceMs;
  }

  #postponed(claimed: ClaimedRun, { chain }: Draft, error: unknown): Tending {
    const { store, host, codec, log } = this.#ports;
    const message = `The alerts could not be looked after, and that is tried again in half a minute. ${messageOf(error)}`;
    const again = new Draft(claimed.run, chain, host, codec);
    const commit = letGo(claimed, again, store.clock.now() + LIMITS.scheduleRetryMs);
    const isNews = message !== this.#told;
    this.#told = message;
    return { commit, tell: () => void (isNews && log.error(message, { run: claimed.run })) };
  }

  #take(claimed: ClaimedRun, draft: Draft, { value: kept, faults }: Opened<KeptAlerts>): Tending {
    const { store, codec, rules, host, notifies, mailed } = this.#ports;
    const now = store.clock.now();
    const book = bookOf(kept, rules, (text) => host.digest(text));
    const mail = claimed.inbox.filter(({ kind }) => kind === "signal");
    const reports = openReports(codec, claimed.run, mail);
    for (const report of reports.value) book.take(report);
    book.settle(now);
    for (const { id } of mail) draft.consume(id);
    const told = book.fired.filter(({ kind }) => kind !== "compensation_incomplete");
    const ports = { clock: store.clock, codec, host, notifies, mailed };
    if (notifies) for (const alert of told) notifyAlert({ draft, row: claimed.row, ports }, alert);
    const next = { ...keptIn(book, kept), taken: kept.taken + mail.length };
    const tell = () => {
      this.#logLost(claimed.run, "What the alerts knew", faults);
      this.#logLost(claimed.run, "Messages for the alerts", reports.faults);
      for (const alert of book.moved) this.#log(alert);
      if (book.fired.length > 0) mailed();
    };
    if (next.taken >= LIMITS.alertMessages) return { commit: this.#handOn(claimed, draft, next, now), tell };
    // All of it where something of it was damaged: what is given up is gone.
    const changed = faults.length === 0 ? book.touched : new Set(Object.keys(next.effects));
    for (const row of sealAlerts(codec, claimed.run, next, changed)) draft.state(row);
    draft.wait({ open: { key: `signal:${REPORTS}`, kind: "signal", name: REPORTS, due: null, detail: null } });
    return { commit: letGo(claimed, draft, book.wakeAt(now)), tell };
  }

  /** Ends the run; the next one begins with what it knew (AK3). */
  #handOn(claimed: ClaimedRun, draft: Draft, kept: KeptAlerts, now: number): RunCommit {
    const { codec, host, store } = this.#ports;
    draft.child(newAlertsRun({ codec, host }, numberOf(claimed.run) + 1, kept, now));
    endBodiless(draft, claimed.row, { clock: store.clock, codec });
    return draft.take().commit;
  }

  #logLost(run: string, what: string, [first, ...more]: readonly unknown[]): void {
    if (first === undefined) return;
    const others = more.length === 0 ? "" : ` And ${more.length} more.`;
    this.#ports.log.warn(`${what} could not be read in part, and that part is given up. ${messageOf(first)}${others}`, {
      run,
      lost: more.length + 1,
    });
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

/** The id of the run of the alerts with this number: there can only be one. */
export function alertsRun(number: number): string {
  return `${ALERTS_WORKFLOW}.${number}`;
}

export function numberOf(run: string): number {
  const number = Number(run.slice(alertsRun(0).length - 1));
  return Number.isSafeInteger(number) ? number : 0;
}

/** The run with this number, which goes on with what another one knew. */
export function newAlertsRun(
  { codec, host }: Pick<AlertKeeperPorts, "codec" | "host">,
  number: number,
  { book, effects }: KeptAlerts,
  now: number,
): NewChild {
  const run = alertsRun(number);
  const draft = new Draft(run, { head: 0, hash: run, at: 0 }, host, codec);
  const [workflow, version] = [ALERTS_WORKFLOW, ALERTS_VERSION];
  const input: AlertsInput = { number, kept: { book, effects: newestEffects(effects), taken: 0 } };
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
