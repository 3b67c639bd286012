// The plan of a run
// What becomes of an unfinished run when this code is deployed. It is asked of the run's own journal, which the code is replayed against: no
// step is run, nothing is claimed and nothing is written.
import { messageOf } from "../../base/errors.ts";
import type { ExportedRun } from "../../client/export.ts";
import type { Entry, Parked, RunStarted } from "../../core/journal.ts";
import { isOutline, OUTLINE } from "../../core/outline.ts";
import { structureIn } from "../../core/pins.ts";
import type { Workflow } from "../../core/workflow.ts";
import { type ReplayResult, replay } from "../../testing/replay.ts";
import type { Registry } from "../../worker/registry.ts";
import { diffLines } from "../replay-diff.ts";
import type { Recorded } from "./difference.ts";

export type Cause =
  /** No definition that is here may go on with it. */
  | "version"
  /** The definition has its version and another structure. */
  | "structure"
  /** The code takes another way than its journal. */
  | "drift"
  /** It waits for a person already, whatever is deployed. */
  | "parked"
  /** Its journal cannot be read. */
  | "unreadable";

export interface RunPlan {
  readonly run: string;
  readonly workflow: string;
  readonly version: string;
  /** It goes on with this code; it finishes under its own version, which is here beside a newer one; somebody has to decide. */
  readonly plan: "resumes" | "pinned" | "decision";
  /** Why somebody has to decide. */
  readonly cause: Cause | null;
  /** The version of the code that goes on with it. */
  readonly with: string | null;
  /** Without the run's id: what is said of many is said once. */
  readonly why: string;
  /** Whether `migrations` lead from its version to one that is here. */
  readonly canMigrate: boolean;
  /** With cause "drift": what is recorded, and what the code does instead. */
  readonly diff?: readonly string[];
  readonly recorded: Recorded;
}

/** Reasons that a worker looks at again by itself, once it has other code. */
const ABOUT_VERSIONS: ReadonlySet<string> = new Set(["version_mismatch", "definition_changed", "migration_pending"]);

export async function planOf(exported: ExportedRun, registry: Registry): Promise<RunPlan> {
  const { id: run, workflow, version } = exported.run;
  const recorded = recordedOf(exported);
  const code = registry.forRun(workflow, version);
  const canMigrate = registry.migrationFrom(workflow, version) !== null;
  const base = { run, workflow, version, with: code?.version ?? null, canMigrate, recorded };
  const park = parkIn(exported);
  if (park !== null && !ABOUT_VERSIONS.has(park.reason))
    return { ...base, plan: "decision", cause: "parked", why: `it was parked before (${park.reason})` };
  if (code === undefined)
    return { ...base, plan: "decision", cause: "version", why: versionText(registry, workflow, version, canMigrate) };
  if (isChanged(code, version, recorded.structure))
    return { ...base, plan: "decision", cause: "structure", why: "definition changed, version did not" };
  const result = await followed(code, exported);
  if ("error" in result) return { ...base, plan: "decision", cause: "unreadable", why: result.error };
  if (!result.ok) {
    const diff = result.diff === undefined ? {} : { diff: diffLines(exported, result.diff, result.line) };
    return { ...base, plan: "decision", cause: "drift", why: problemIn(result.message, run), ...diff };
  }
  return { ...base, cause: null, ...goesOn(registry, code, version) };
}

function goesOn(registry: Registry, code: Workflow, version: string): Pick<RunPlan, "plan" | "why"> {
  const newest = registry.newest(code.name)?.version ?? code.version;
  if (newest !== code.version)
    return { plan: "pinned", why: `finishes under ${code.version}; new runs are of ${newest}` };
  const why = code.version === version ? "goes on" : `goes on, and is of ${code.version} from then on`;
  return { plan: "resumes", why };
}

function versionText(registry: Registry, workflow: string, version: string, canMigrate: boolean): string {
  const newest = registry.newest(workflow)?.version;
  if (newest === undefined) return `the workflow is not here any more: keep ${version} until its runs are over`;
  const way = canMigrate ? "a migration leads there: `pawl resolve RUN migrate`" : "no migration leads there";
  return `${newest} may not go on with it, and ${version} is not here; ${way}`;
}

/** As a worker that claims the run sees it. */
function isChanged({ version, definition }: Workflow, runs: string, saved: string | null): boolean {
  if (saved === null || version !== runs || definition.versionPolicy === "ignore") return false;
  return saved !== definition.structure;
}

async function followed(code: Workflow, exported: ExportedRun): Promise<ReplayResult | { readonly error: string }> {
  try {
    return await replay(code, exported);
  } catch (error) {
    return { error: messageOf(error) };
  }
}

function problemIn(message: string, run: string): string {
  return message.replace(`The code does not reproduce run ${run}. `, "").replaceAll(run, "RUN");
}

/** Names, hashes and outlines are the same in tagged JSON as they are. */
function entriesOf({ entries }: ExportedRun): Entry[] {
  return entries.map(({ value, ...entry }) => ({ ...entry, payload: value }));
}

function recordedOf(exported: ExportedRun): Recorded {
  const entries = entriesOf(exported);
  const begun = entries.findLast(({ type }) => type === "run.started" || type === "run.continued");
  const noted = entries.findLast(({ type, key }) => type === "state.patched" && key === OUTLINE);
  const outline = (noted?.payload as { readonly value?: unknown } | undefined)?.value;
  return {
    structure: structureIn(entries),
    uses: (begun?.payload as Partial<RunStarted> | null)?.uses ?? null,
    outline: isOutline(outline) ? outline : null,
  };
}

function parkIn(exported: ExportedRun): Parked | null {
  if (exported.run.state !== "parked") return null;
  const mark = exported.entries.findLast(({ type }) => type === "run.parked");
  return (mark?.value as Parked | undefined) ?? null;
}
