// The run of the alerts, from outside
// Where it is, what it knows, and how reports come to it. It is made by whoever has the first report.
//
//   AO1. One that has ended, is parked or has a damaged row has a successor, which goes on with what of it can be read; whoever finds none makes it.
//   AO2. What cannot be read counts as not there, and the log says so: nobody who asks for alerts or metrics is turned away for it.
import { cancelText } from "../base/cancel-text.ts";
import type { Codec } from "../base/envelope.ts";
import { hasCode, messageOf, PawlError, readProperty } from "../base/errors.ts";
import type { Ids } from "../base/ids.ts";
import { ALERTS_WORKFLOW, type AlertRules, type Report } from "../core/alert.ts";
import type { Log } from "../core/context.ts";
import type { Host } from "../core/host.ts";
import { LIMITS } from "../core/limits.ts";
import type { Store } from "../core/store.ts";
import { isTerminal } from "../core/transition.ts";
import { sealValue } from "../core/values.ts";
import { type Workflow, workflow } from "../core/workflow.ts";
import { ALERTS_VERSION, newAlertsRun, numberOf } from "../worker/alert-keeper.ts";
import {
  bookOf,
  type KeptAlerts,
  keptIn,
  NO_ALERTS,
  type Opened,
  openAlerts,
  openReports,
  REPORTS,
} from "../worker/alert-records.ts";

/** Every worker that looks for alerts has it: it takes the run of the alerts. */
export const alertsWorkflow: Workflow = workflow({ name: ALERTS_WORKFLOW, version: ALERTS_VERSION }, async () => {
  throw new PawlError("invalid_argument", "Alerts are no workflow. Use pawl.alerts.");
}) as Workflow;

export interface AlertsRunPorts {
  readonly store: Store;
  readonly codec: Codec;
  readonly host: Host;
  readonly ids: Ids;
  readonly rules: AlertRules;
  readonly log: Log;
  /** A message has been sent. */
  sent(): void;
}

interface FoundRun {
  readonly id: string;
  readonly state: "kept" | "ended" | "parked" | "damaged";
}

/** The newest one; `null`: there was none, or none any more. */
async function findAlertsRun(store: Store): Promise<FoundRun | null> {
  try {
    const [newest] = await store.runs({ workflow: ALERTS_WORKFLOW, limit: 1 });
    if (newest === undefined) return null;
    const { id, state } = newest;
    return { id, state: isTerminal(state) ? "ended" : state === "parked" ? "parked" : "kept" };
  } catch (error) {
    const run = readProperty(readProperty(error, "fields"), "run");
    if (typeof run !== "string" || !hasCode(error, "corrupted_journal")) throw error;
    return { id: run, state: "damaged" };
  }
}

/** What a run knows by its state. */
async function openKept({ store, codec }: Pick<AlertsRunPorts, "store" | "codec">, id: string) {
  const [state, [first]] = await Promise.all([store.state(id), store.journal(id, { limit: 1 })]);
  return openAlerts(codec, id, state, first);
}

export class AlertReader {
  readonly #ports: Omit<AlertsRunPorts, "ids" | "sent">;
  /** The trouble that was told of last. */
  #told: string | null = null;

  constructor(ports: Omit<AlertsRunPorts, "ids" | "sent">) {
    this.#ports = ports;
  }

  /** What the newest run knows, with the reports that it has not taken in yet (AO2). */
  async read(): Promise<KeptAlerts> {
    const { store, codec, host, rules } = this.#ports;
    const found = await findAlertsRun(store);
    if (found === null) return NO_ALERTS;
    const [{ value, faults }, inbox] = await Promise.all([openKept(this.#ports, found.id), store.inbox(found.id)]);
    const reports = openReports(codec, found.id, inbox);
    const book = bookOf(value, rules, (text) => host.digest(text));
    for (const report of reports.value) book.take(report);
    book.settle(store.clock.now());
    this.#tell([...faults, ...reports.faults]);
    return keptIn(book, value);
  }

  #tell(faults: readonly unknown[]): void {
    const [first] = faults;
    const trouble = first === undefined ? null : messageOf(first);
    if (trouble !== null && trouble !== this.#told)
      this.#ports.log.warn(`Some of the alerts cannot be read, and are not shown or counted. ${trouble}`);
    this.#told = trouble;
  }
}

/** Tells the run of the alerts; makes one if there is none. */
export async function sendReports(ports: AlertsRunPorts, reports: readonly Report[]): Promise<void> {
  for (let from = 0; from < reports.length; from += LIMITS.reportsPerMessage)
    await send(ports, reports.slice(from, from + LIMITS.reportsPerMessage));
  if (reports.length > 0) ports.sent();
}

async function send(ports: AlertsRunPorts, reports: readonly Report[]): Promise<void> {
  const { store, codec, ids } = ports;
  const id = ids.next();
  for (let tried = 0; ; ) {
    const found = await findAlertsRun(store);
    if (found?.state !== "kept") {
      // Never the same one twice: its name may be that of another run.
      tried = Math.max(tried, found === null ? 0 : numberOf(found.id)) + 1;
      await succeed(ports, found, tried);
      continue;
    }
    const data = sealValue(codec, reports, { run: found.id, seq: -1, field: `inbox:${id}` }, "reports");
    const delivery = await store.deliver({ to: found.id, id, kind: "signal", name: REPORTS, data });
    if (delivery === "delivered" || delivery === "duplicate") return;
  }
}

/** Makes the next run (AO1). Nobody owns it: whoever is about to close can still do so. */
async function succeed(ports: AlertsRunPorts, last: FoundRun | null, number: number): Promise<void> {
  const { codec, host, store, log } = ports;
  const known = last === null ? { value: NO_ALERTS, faults: [] } : await readable(ports, last.id);
  const { run, create, entry } = newAlertsRun({ codec, host }, number, known.value, store.clock.now());
  const [verdict] = await store.commit({ worker: null, runs: [{ run, head: 0, entries: [entry], create }] });
  const isThere = verdict?.kind === "refused" && verdict.why === "exists";
  if (verdict?.kind !== "applied" && !isThere)
    throw new PawlError("storage_unavailable", `The store answered ${verdict?.kind} to the first alert. Try again.`, {
      fields: { verdict: verdict?.kind },
    });
  if (isThere || last === null) return;
  const lost = known.faults.length === 0 ? "" : ` Some of it is lost. ${messageOf(known.faults[0])}`;
  log.warn(`Run ${last.id} of the alerts is ${last.state}; run ${run} goes on with what it knew.${lost}`, { run });
  if (last.state === "parked") await end(ports, last.id);
}

async function readable(ports: AlertsRunPorts, run: string): Promise<Opened<KeptAlerts>> {
  try {
    return await openKept(ports, run);
  } catch (error) {
    if (hasCode(error, "storage_unavailable")) throw error;
    return { value: NO_ALERTS, faults: [error] };
  }
}

/** Nobody has to decide about it any more, and retention can take it. */
async function end({ store, ids }: AlertsRunPorts, run: string): Promise<void> {
  const data = cancelText({ reason: "Another run keeps the alerts.", compensate: false });
  await store.deliver({ to: run, id: ids.next(), kind: "cancel", name: "", data });
}
