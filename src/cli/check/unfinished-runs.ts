// The unfinished runs of a store, or of a folder of exports, each with its plan. Only read: it may be asked beside workers that are at work.
import { hasCode, messageOf } from "../../base/errors.ts";
import { type ExportedRun, exportRun } from "../../client/export.ts";
import type { Pawl } from "../../client/pawl.ts";
import type { RunRow } from "../../core/store.ts";
import { isTerminal, RUN_STATES } from "../../core/transition.ts";
import type { Registry } from "../../worker/registry.ts";
import { listExports, readExportFile } from "../export-files.ts";
import { planOf, type RunPlan } from "./run-plan.ts";

/** Runs that are looked at together: one whose code goes quiet holds up only itself. */
const AT_ONCE = 32;
const PAGE = 500;

const UNFINISHED = RUN_STATES.filter((state) => !isTerminal(state));

/** Plans for the unfinished runs of these workflows. */
export async function plansInStore(
  pawl: Pawl,
  workflows: readonly string[],
  registry: Registry,
  progress: (text: string) => void,
): Promise<RunPlan[]> {
  const plans: RunPlan[] = [];
  for (const workflow of workflows)
    for (let before: string | undefined; ; ) {
      const query = { workflow, states: UNFINISHED, limit: PAGE, ...(before !== undefined && { before }) };
      const rows = await pawl.store.runs(query);
      plans.push(...(await inGroups(rows, (row) => planInStore(pawl, row, registry))));
      progress(`${plans.length} runs`);
      before = rows.at(-1)?.id;
      if (rows.length < PAGE) break;
    }
  return plans;
}

/** The same for what `pawl export` has written; ended runs, and those of other workflows, are left out. */
export async function plansInFolder(
  folder: string,
  workflows: readonly string[],
  registry: Registry,
): Promise<RunPlan[]> {
  return inGroups(listExports(folder).flatMap(readExportFile), async (exported) => {
    const { state, workflow } = exported.run;
    return isTerminal(state) || !workflows.includes(workflow) ? null : planOf(exported, registry);
  });
}

async function planInStore(pawl: Pawl, row: RunRow, registry: Registry): Promise<RunPlan | null> {
  let exported: ExportedRun;
  try {
    exported = await exportRun(pawl, row.id);
  } catch (error) {
    if (hasCode(error, "run_not_found")) return null;
    return unreadable(row, messageOf(error));
  }
  return isTerminal(exported.run.state) ? null : planOf(exported, registry);
}

function unreadable({ id, workflow, version }: RunRow, why: string): RunPlan {
  const recorded = { structure: null, uses: null, outline: null };
  const facts = { run: id, workflow, version, with: null, canMigrate: false, recorded };
  return { ...facts, plan: "decision", cause: "unreadable", why: why.replaceAll(id, "RUN") };
}

async function inGroups<T, R>(items: readonly T[], work: (item: T) => Promise<R | null>): Promise<R[]> {
  const done: (R | null)[] = [];
  for (let at = 0; at < items.length; at += AT_ONCE)
    done.push(...(await Promise.all(items.slice(at, at + AT_ONCE).map(work))));
  return done.filter((one) => one !== null);
}

/** Runs of which the same is said. */
export interface PlanGroup extends Omit<RunPlan, "run" | "recorded"> {
  readonly runs: readonly string[];
}

export function groupsOf(plans: readonly RunPlan[]): PlanGroup[] {
  const groups = new Map<string, PlanGroup & { readonly runs: string[] }>();
  for (const { run, recorded: _, ...said } of plans) {
    const { workflow, version, plan, cause, why } = said;
    const name = JSON.stringify([workflow, version, plan, cause, said.with, why]);
    const known = groups.get(name);
    if (known === undefined) groups.set(name, { ...said, runs: [run] });
    else known.runs.push(run);
  }
  return [...groups.values()];
}
