// Alerts, for people
// What somebody should look at, and what they say to it. Nothing here decides: what is said is a report like any other, and the keeper takes it in.
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import type { Alert, Report } from "../core/alert.ts";
import { isActive } from "../core/alert-book.ts";
import type { AlertState } from "../core/state-machines.ts";
import { type AlertsRunPorts, sendReports } from "./alerts-run.ts";
import type { Observation } from "./observation.ts";

export interface AlertQuery {
  /** Default: those that are not resolved. "all": those as well that are, as far as they are kept. */
  readonly status?: AlertState | "all";
}

/** An alert, as people and programs see it. */
export interface AlertSummary extends Omit<Alert, "firedAt" | "lastAt" | "acknowledgedAt" | "resolvedAt"> {
  readonly firedAt: Date;
  readonly lastAt: Date;
  readonly acknowledgedAt: Date | null;
  readonly resolvedAt: Date | null;
}

const STATES: readonly AlertQuery["status"][] = ["firing", "acknowledged", "resolved", "all"];

export class Alerts {
  readonly #observation: Observation;
  readonly #ports: AlertsRunPorts;
  readonly #assertOpen: () => void;

  constructor(observation: Observation, { assertOpen }: { assertOpen(): void }) {
    this.#observation = observation;
    this.#ports = { ...observation.ports, rules: observation.rules };
    this.#assertOpen = assertOpen;
  }

  /** Newest first. */
  async list({ status }: AlertQuery = {}): Promise<AlertSummary[]> {
    this.#assertOpen();
    if (status !== undefined && !STATES.includes(status))
      throw new PawlError("invalid_argument", `\`status\` is "${status}". Give one of: ${STATES.join(", ")}.`, {
        fields: { field: "status" },
      });
    const { book } = await this.#observation.reader.read();
    const isMeant = (alert: Alert) =>
      status === "all" || (status === undefined ? isActive(alert) : alert.status === status);
    return book.alerts.filter(isMeant).map(summaryOf).reverse();
  }

  /** Somebody has it: it stays quiet until it is over. */
  acknowledge(id: string, { by }: { readonly by: string }): Promise<AlertSummary> {
    return this.#say("acknowledge", id, by);
  }

  /** Somebody has seen to it. What has not gone away comes again. */
  resolve(id: string, { by }: { readonly by: string }): Promise<AlertSummary> {
    return this.#say("resolve", id, by);
  }

  /** Looks now, instead of with the next round, and resolves when what was found is recorded. */
  async check(): Promise<void> {
    this.#assertOpen();
    await this.#observation.watch?.look();
  }

  async #say(kind: "acknowledge" | "resolve", id: string, by: string): Promise<AlertSummary> {
    this.#assertOpen();
    assertName("alert id", id);
    assertName("name of who says so (`by`)", by);
    const found = (await this.list({ status: "all" })).find((alert) => alert.id === id);
    if (found === undefined) throw notFound(id);
    if (found.status === "resolved") throw isOver(found);
    const report: Report = { kind, at: this.#ports.store.clock.now(), id, by };
    if (kind === "resolve" || found.status === "firing") await sendReports(this.#ports, [report]);
    return (await this.list({ status: "all" })).find((alert) => alert.id === id) ?? found;
  }
}

function summaryOf(alert: Alert): AlertSummary {
  const { firedAt, lastAt, acknowledgedAt, resolvedAt } = alert;
  return {
    ...alert,
    firedAt: new Date(firedAt),
    lastAt: new Date(lastAt),
    acknowledgedAt: acknowledgedAt === null ? null : new Date(acknowledgedAt),
    resolvedAt: resolvedAt === null ? null : new Date(resolvedAt),
  };
}

function notFound(id: string): PawlError {
  return new PawlError("alert_not_found", `There is no alert ${id} in this store. \`pawl alerts --all\` lists them.`, {
    fields: { alert: id },
  });
}

function isOver({ id, kind, resolvedAt }: AlertSummary): PawlError {
  return new PawlError(
    "alert_resolved",
    `Alert ${id} (${kind}) was resolved at ${resolvedAt?.toISOString()}. There is nothing left to say to it.`,
    { fields: { alert: id } },
  );
}
