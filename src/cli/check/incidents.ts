// The file of incidents: what went wrong in production, and which case keeps it from coming back.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { PawlError } from "../../base/errors.ts";

export interface Incident {
  readonly id: string;
  /** `null`: it is about no workflow by name. */
  readonly workflow: string | null;
  /** The regression case: its file, beside this one, or its id. */
  readonly case: string | null;
  /** Whether a file that it names is there. */
  readonly isThere: boolean;
}

/** Where it is looked for. */
export const INCIDENTS_FILE = "evals/incidents.json";

/** `null`: there is no such file, and none was asked for. */
export function readIncidents(given: string | undefined): Incident[] | null {
  const file = given ?? INCIDENTS_FILE;
  if (!existsSync(file)) {
    if (given === undefined) return null;
    throw unreadable(file, "there is no such file");
  }
  const found = parse(file);
  const list = Array.isArray(found) ? found : (found as { incidents?: unknown } | null)?.incidents;
  if (!Array.isArray(list)) throw unreadable(file, "it is no list of incidents");
  return list.map((one, at) => incidentOf(one as Record<string, unknown> | null, at, file));
}

function incidentOf(one: Record<string, unknown> | null, at: number, file: string): Incident {
  const id = one?.["id"] ?? one?.["incident_id"];
  if (typeof id !== "string") throw unreadable(file, `incident ${at + 1} has no \`id\``);
  const linked = one?.["case"] ?? one?.["case_id"] ?? null;
  const workflow = one?.["workflow"];
  const isFile = typeof linked === "string" && linked.endsWith(".json");
  return {
    id,
    workflow: typeof workflow === "string" ? workflow : null,
    case: typeof linked === "string" && linked !== "" ? linked : null,
    isThere: !isFile || [dirname(file), "."].some((folder) => existsSync(join(folder, linked))),
  };
}

export function withoutCase(incidents: readonly Incident[]): Incident[] {
  return incidents.filter((one) => one.case === null || !one.isThere);
}

function parse(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw unreadable(file, (cause as Error).message, cause);
  }
}

function unreadable(file: string, why: string, cause?: unknown): PawlError {
  return new PawlError("invalid_argument", `The incidents in ${file} cannot be read: ${why}. Correct it.`, {
    fields: { file },
    cause,
  });
}
