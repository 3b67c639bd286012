// Incidents
// What went wrong in production, and the eval case that keeps it from coming back. They are a JSON file beside the cases: both are reviewed,
// versioned and shipped together with the code that they are about, and a store of runs may be gone when somebody asks.
import { createHash } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { messageOf, PawlError } from "../base/errors.ts";

export const INCIDENT_STATUSES = ["draft", "active", "retired"] as const;

/** Draft: its case says what must not be, and nobody has looked at it. Active: its case guards releases. Retired: nobody needs it any more. */
export type IncidentStatus = (typeof INCIDENT_STATUSES)[number];

export interface Incident {
  readonly id: string;
  readonly title: string;
  readonly run: string;
  readonly workflow: string;
  readonly status: IncidentStatus;
  readonly openedAt: string;
  /** Who sees to it. */
  readonly owner: string | null;
  /** The day after which somebody should look at it again. */
  readonly expires: string | null;
  /** The file of its case, in the same folder; `null`: it has none. */
  readonly case: string | null;
  /** Tells incidents of one kind: workflow, stop reason and what the error says, without its numbers. */
  readonly fingerprint: string;
  /** An earlier incident of the same kind that had a case. */
  readonly recurrenceOf: string | null;
}

export const INCIDENTS_FILE = "incidents.json";

/** The incidents of a folder of cases; none if it has no such file. */
export function readIncidents(folder: string): Incident[] {
  const file = join(folder, INCIDENTS_FILE);
  if (!existsSync(file)) return [];
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw damaged(file, `it is no JSON (${messageOf(cause)})`, cause);
  }
  const { incidents } = (value ?? {}) as { readonly incidents?: unknown };
  if (!Array.isArray(incidents)) throw damaged(file, "incidents is no list");
  for (const [index, one] of incidents.entries()) assertIncident(file, index, one);
  return incidents as Incident[];
}

/** What a change makes of them, and what it answers. */
export interface ChangedIncidents<T> {
  readonly incidents: readonly Incident[];
  readonly answer: T;
}

/** Changes the incidents of a folder while nobody else does: of two at once, neither is lost. */
export async function changeIncidents<T>(
  folder: string,
  change: (incidents: readonly Incident[]) => ChangedIncidents<T>,
): Promise<T> {
  mkdirSync(folder, { recursive: true });
  const release = await lockIncidents(join(folder, `${INCIDENTS_FILE}.lock`));
  try {
    const known = readIncidents(folder);
    const { incidents, answer } = change(known);
    if (incidents !== known) writeIncidents(folder, incidents);
    return answer;
  } finally {
    release();
  }
}

const LOCK_TRIES = 100;
const LOCK_TRY_MS = 50;

/** It is held for as long as a file takes to be written. One that stays is of a process that has died. */
async function lockIncidents(lock: string): Promise<() => void> {
  for (let left = LOCK_TRIES; ; left--) {
    try {
      closeSync(openSync(lock, "wx"));
      return () => rmSync(lock, { force: true });
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause;
      if (left === 1) throw locked(lock, cause);
      await pause(LOCK_TRY_MS);
    }
  }
}

function locked(lock: string, cause: unknown): PawlError {
  return new PawlError(
    "storage_unavailable",
    `${lock} is there: another \`pawl incident\` changes the incidents of this folder. If none does, one has died: delete that file, and give the command again.`,
    { fields: { file: lock }, cause },
  );
}

/** Writes them, whole: a file that is cut short would lose all. */
function writeIncidents(folder: string, incidents: readonly Incident[]): void {
  const file = join(folder, INCIDENTS_FILE);
  const draft = `${file}.${process.pid}.tmp`;
  writeFileSync(draft, `${JSON.stringify({ incidents }, null, 2)}\n`);
  renameSync(draft, file);
}

/** Behind the last: an id of an incident that was taken away before it is not given to another. */
export function nextIncidentId(incidents: readonly Incident[]): string {
  const numbers = incidents.map(({ id }) => Number(/^incident-(\d+)$/.exec(id)?.[1] ?? 0));
  return `incident-${Math.max(0, ...numbers) + 1}`;
}

const TEXTS = ["id", "title", "run", "workflow", "openedAt", "fingerprint"] as const;

function assertIncident(file: string, index: number, one: Partial<Incident> | null): void {
  const path = `incidents[${index}]`;
  if (typeof one !== "object" || one === null) throw damaged(file, `${path} is no object`);
  for (const name of TEXTS) if (typeof one[name] !== "string") throw damaged(file, `${path}.${name} is no text`);
  if (!INCIDENT_STATUSES.includes(one.status as IncidentStatus))
    throw damaged(file, `${path}.status is "${one.status}", and must be one of ${INCIDENT_STATUSES.join(", ")}`);
}

function damaged(file: string, problem: string, cause?: unknown): PawlError {
  return new PawlError("invalid_argument", `${file} cannot be read: ${problem}. Correct it, or restore it.`, {
    fields: { file },
    cause,
  });
}

/** What incidents of one kind have in common. */
export function fingerprintOf(facts: {
  readonly workflow: string;
  readonly stopReason: string | null;
  readonly error: string;
}): string {
  const error = facts.error.toLowerCase().replace(/[0-9a-f]{8}-[0-9a-f-]{27}|\d+/g, "#");
  return createHash("sha256")
    .update(JSON.stringify([facts.workflow, facts.stopReason, error]))
    .digest("hex")
    .slice(0, 16);
}

/** The earlier incident of this kind that had a case, if there is one. */
export function recurrenceIn(incidents: readonly Incident[], fingerprint: string): string | null {
  return incidents.find((one) => one.fingerprint === fingerprint && one.case !== null)?.id ?? null;
}

/** Of all incidents, those whose regression case had existed before (S2-94). */
export function recurrenceOf(incidents: readonly Incident[]): { readonly recurred: number; readonly of: number } {
  return { recurred: incidents.filter((one) => one.recurrenceOf !== null).length, of: incidents.length };
}

/** As the metrics of an engine take them: each with the time since when a case for its kind had been there. */
export function knownIncidents(
  incidents: readonly Incident[],
): { readonly run: string; readonly openedAt: Date; readonly caseSince: Date | null }[] {
  const openings = new Map(incidents.map(({ id, openedAt }) => [id, new Date(openedAt)]));
  return incidents.map(({ run, openedAt, recurrenceOf: earlier }) => ({
    run,
    openedAt: new Date(openedAt),
    caseSince: earlier === null ? null : (openings.get(earlier) ?? null),
  }));
}

/** Those that no case in the folder keeps from coming back (S2-105). */
export function withoutCase(folder: string, incidents: readonly Incident[]): Incident[] {
  return incidents.filter(
    (one) => one.status !== "retired" && (one.case === null || !existsSync(join(folder, one.case))),
  );
}
