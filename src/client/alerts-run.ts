// The run of the alerts, from outside
// Where it is, what it knows, and how reports come to it. It is made by whoever has the first report.
import type { Codec } from "../base/envelope.ts";
import { PawlError } from "../base/errors.ts";
import type { Ids } from "../base/ids.ts";
import { ALERTS_WORKFLOW, type AlertRules, type Report } from "../core/alert.ts";
import type { Host } from "../core/host.ts";
import { LIMITS } from "../core/limits.ts";
import type { RunRow, Store } from "../core/store.ts";
import { isTerminal } from "../core/transition.ts";
import { sealValue } from "../core/values.ts";
import { type Workflow, workflow } from "../core/workflow.ts";
import {
  ALERTS_VERSION,
  alertsRun,
  bookOf,
  type KeptAlerts,
  NO_ALERTS,
  newAlertsRun,
  openAlerts,
  openReports,
  REPORTS,
} from "../worker/alert-keeper.ts";

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
  /** A message has been sent. */
  sent(): void;
}

/** The newest one; `null`: there was none, or none any more. */
export async function findAlertsRun(store: Store): Promise<RunRow | null> {
  const [newest = null] = await store.runs({ workflow: ALERTS_WORKFLOW, limit: 1 });
  return newest;
}

/** What it knows, with the reports that it has not read yet. */
export async function readAlerts({ store, codec, host, rules }: Omit<AlertsRunPorts, "ids" | "sent">): Promise<{
  readonly run: string | null;
  readonly kept: KeptAlerts;
}> {
  const row = await findAlertsRun(store);
  if (row === null) return { run: null, kept: NO_ALERTS };
  const { id } = row;
  const [state, inbox, [first]] = await Promise.all([
    store.state(id),
    store.inbox(id),
    store.journal(id, { limit: 1 }),
  ]);
  const kept = openAlerts(codec, id, state, first);
  const book = bookOf(kept, rules, (text) => host.digest(text));
  for (const mail of inbox) for (const report of openReports(codec, id, mail)) book.take(report);
  book.settle(store.clock.now());
  return { run: id, kept: { ...kept, book: book.state } };
}

/** Tells the run of the alerts; makes one if there is none. */
export async function sendReports(ports: AlertsRunPorts, reports: readonly Report[]): Promise<void> {
  for (let from = 0; from < reports.length; from += LIMITS.reportsPerMessage)
    await send(ports, reports.slice(from, from + LIMITS.reportsPerMessage));
  if (reports.length > 0) ports.sent();
}

/** One that has ended meanwhile has a successor; whoever finds none makes it. */
async function send(ports: AlertsRunPorts, reports: readonly Report[]): Promise<void> {
  const { store, codec, ids } = ports;
  const id = ids.next();
  for (;;) {
    const row = await findAlertsRun(store);
    if (row === null || isTerminal(row.state)) {
      await create(ports, row);
      continue;
    }
    const data = sealValue(codec, reports, { run: row.id, seq: -1, field: `inbox:${id}` }, "reports");
    const delivery = await store.deliver({ to: row.id, id, kind: "signal", name: REPORTS, data });
    if (delivery === "delivered" || delivery === "duplicate") return;
  }
}

/** Nobody owns it: whoever is about to close can still make it. */
async function create({ codec, host, store }: AlertsRunPorts, last: RunRow | null): Promise<void> {
  const number = last === null ? 1 : numberOf(last.id) + 1;
  const { run, create: made, entry } = newAlertsRun({ codec, host }, { number, kept: NO_ALERTS }, store.clock.now());
  const [verdict] = await store.commit({ worker: null, runs: [{ run, head: 0, entries: [entry], create: made }] });
  if (verdict?.kind === "applied" || (verdict?.kind === "refused" && verdict.why === "exists")) return;
  throw new PawlError("storage_unavailable", `The store answered ${verdict?.kind} to the first alert. Try again.`, {
    fields: { verdict: verdict?.kind },
  });
}

function numberOf(run: string): number {
  const number = Number(run.slice(alertsRun(0).length - 1));
  return Number.isSafeInteger(number) ? number : 0;
}
