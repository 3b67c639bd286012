// The state of a run, for people who read it and edit it
// What a run would go on from, as plain JSON: values stand in it as the tagged JSON of the codec. What is written back is checked field by field
// before anything is changed.
import { decode, encode } from "../base/codec.ts";
import { messageOf, PawlError } from "../base/errors.ts";
import { isVersion } from "../base/semver.ts";
import { generationOf } from "../core/generation.ts";
import { savedRun } from "../core/migration.ts";
import { isPlainRecord } from "../core/stable-digest.ts";
import type { Pawl } from "./pawl.ts";
import type { RewriteOptions } from "./rewrite.ts";
import { rowOf } from "./run.ts";

/** A run's state as JSON. Edit `input`, `state`, `phases`, `adopted` or `version`; the rest says what the edit is about. */
export interface StateText {
  readonly run: string;
  readonly workflow: string;
  readonly version: string;
  /** How many entries its journal had. */
  readonly entries: number;
  readonly input: unknown;
  readonly state: unknown;
  /** What was done before its generation began, as phases; `adopted` where it is something else. */
  readonly phases?: unknown;
  readonly adopted?: unknown;
}

type Source = Pick<Pawl, "get" | "store">;

export async function readState(pawl: Source, id: string): Promise<StateText> {
  const { workflow, version } = await rowOf(id, pawl.store);
  const journal = await pawl.get(id).journal();
  const { input, state, adopted } = generationOf(id, journal);
  const { phases } = savedRun(id, version, journal);
  const hasPhases = Object.keys(phases).length > 0;
  return {
    run: id,
    workflow,
    version,
    entries: journal.length,
    input: plain(input),
    state: plain(state),
    ...(hasPhases && { phases: plain(phases) }),
    ...(!hasPhases && adopted !== undefined && { adopted: plain(adopted) }),
  };
}

function plain(value: unknown): unknown {
  return JSON.parse(encode(value));
}

const FIELDS = ["run", "workflow", "version", "entries", "input", "state", "phases", "adopted"];

/** What an edited text asks for, compared with how the run stands; refuses what is wrong, with its path. */
export function editOf(edited: unknown, now: StateText): Omit<RewriteOptions, "cause" | "by" | "reason"> {
  if (!isPlainRecord(edited)) throw wrong("", "must be an object, as `pawl state show` prints it");
  for (const field of Object.keys(edited))
    if (!FIELDS.includes(field)) throw wrong(field, `is no part of a run's state. It has: ${FIELDS.join(", ")}`);
  for (const field of ["run", "workflow"] as const)
    if (field in edited && edited[field] !== now[field])
      throw wrong(field, `is that of another run: this is ${now[field]}`);
  if ("entries" in edited && edited["entries"] !== now.entries)
    throw wrong("entries", `is not ${now.entries}: the run has gone on since this was shown. Show it again`);
  if ("version" in edited && !isVersion(edited["version"]))
    throw wrong("version", 'must be a version, such as "2.0.0"');
  if ("state" in edited && !isPlainRecord(edited["state"])) throw wrong("state", "must be an object: values by key");
  if ("phases" in edited) assertPhases(edited["phases"]);
  const { version } = edited;
  return {
    ...("input" in edited && { input: opened(edited["input"], "input") }),
    ...("state" in edited && { state: opened(edited["state"], "state") as Record<string, unknown> }),
    ...("adopted" in edited && { adopted: opened(edited["adopted"], "adopted") }),
    ...("phases" in edited && { adopted: { phases: opened(edited["phases"], "phases") } }),
    ...(typeof version === "string" && version !== now.version && { version }),
  };
}

const STATUSES: readonly unknown[] = ["pending", "in_progress", "done", "failed"];

function assertPhases(phases: unknown, path = "phases"): void {
  if (!isPlainRecord(phases)) throw wrong(path, "must be an object: phases by name");
  for (const [name, phase] of Object.entries(phases)) {
    const at = `${path}.${name}`;
    if (!isPlainRecord(phase)) throw wrong(at, "must be an object with a status");
    if (!STATUSES.includes(phase["status"])) throw wrong(`${at}.status`, `must be one of ${STATUSES.join(", ")}`);
    if ("steps" in phase) assertPhases(phase["steps"], `${at}.steps`);
  }
}

/** A value that stands in a text as the tagged JSON of the codec. */
export function opened(json: unknown, path: string): unknown {
  try {
    return decode(JSON.stringify(json));
  } catch (error) {
    throw wrong(path, `cannot be read: ${messageOf(error)}`);
  }
}

function wrong(path: string, what: string): PawlError {
  return new PawlError(
    "schema_mismatch",
    `The edited state is refused: ${path === "" ? "it" : `\`${path}\``} ${what}. Nothing was changed.`,
    {
      fields: { path },
    },
  );
}
