// Migrations
// How the state of a run is brought from one version of its workflow to another. A migration is a plain function of what was saved: it runs once,
// outside of any body, and what it gives is recorded as the run's next generation.
import { PawlError } from "../base/errors.ts";
import { isVersion, parseVersion } from "../base/semver.ts";
import { generationOf } from "./generation.ts";
import { type Entry, isStepSuccess, type StepFailed } from "./journal.ts";
import { isPlainRecord } from "./stable-digest.ts";
import type { Workflow } from "./workflow.ts";

/** A step of the run as it was saved. */
export interface SavedStep {
  readonly status: "in_progress" | "done" | "failed";
  /** What it gave, if it is done. */
  readonly output?: unknown;
}

/** What is known of a run under the version that it has. */
export interface SavedRun {
  readonly version: string;
  readonly input: unknown;
  /** Its run state, as `ctx.set` has left it. */
  readonly state: Readonly<Record<string, unknown>>;
  /** What was done before its generation began, if that was said: the phases of a state document. */
  readonly phases: Readonly<Record<string, unknown>>;
  /** Steps and effects of its generation, by their keys. */
  readonly steps: Readonly<Record<string, SavedStep>>;
  readonly adopted: unknown;
}

/** What the run is to go on from. What is absent stays as it was. */
export interface MigratedRun {
  readonly input?: unknown;
  readonly state?: Readonly<Record<string, unknown>>;
  /** Seen by the body as `ctx.run.adopted.phases`. */
  readonly phases?: Readonly<Record<string, unknown>>;
  /** All of `ctx.run.adopted`, instead of `phases`. */
  readonly adopted?: unknown;
}

export interface Migration {
  /** Which runs it takes: "1.3" stands for all versions 1.3.x. */
  readonly from: string;
  /** The version that its result is for. */
  readonly to: string;
  /** A plain function of what was saved: it runs once, and what it gives is recorded. */
  migrate(saved: SavedRun): MigratedRun;
}

/** The functions that lead from a version to that of a workflow, in their order. */
export interface MigrationPlan {
  readonly workflow: Workflow;
  readonly steps: readonly Migration[];
}

const LINE = /^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})$/;

/** Checked when the workflow is defined. */
export function migrationsOf(given: readonly Migration[] | undefined, workflow: string): readonly Migration[] {
  if (given === undefined) return [];
  if (!Array.isArray(given)) throw invalid(workflow, "migrations", "a list");
  for (const [index, one] of (given as readonly Partial<Migration>[]).entries()) {
    const at = `migrations[${index}]`;
    const { from, to } = one ?? {};
    if (!(typeof from === "string" && (LINE.test(from) || isVersion(from))))
      throw invalid(workflow, `${at}.from`, 'a version or the beginning of one, such as "1.3"');
    if (!isVersion(to)) throw invalid(workflow, `${at}.to`, 'a version, such as "2.0.0"');
    if (typeof one.migrate !== "function") throw invalid(workflow, `${at}.migrate`, "a function");
  }
  return given;
}

function invalid(workflow: string, field: string, wanted: string): PawlError {
  return new PawlError("invalid_argument", `\`${field}\` of workflow "${workflow}" must be ${wanted}.`, {
    fields: { field },
  });
}

/** The way from a version to this workflow's own, if its migrations lead there. */
export function planFrom(workflow: Workflow, version: string): MigrationPlan | null {
  const { migrations } = workflow.definition;
  const steps: Migration[] = [];
  for (let at = version; lineOf(at) !== lineOf(workflow.version); ) {
    const next = migrations.find(({ from }) => from === at) ?? migrations.find(({ from }) => from === lineOf(at));
    // Whoever goes round in circles comes to no end.
    if (next === undefined || steps.includes(next)) return null;
    steps.push(next);
    at = next.to;
  }
  return steps.length === 0 ? null : { workflow, steps };
}

function lineOf(version: string): string {
  const { major, minor } = parseVersion(version);
  return `${major}.${minor}`;
}

/** What is saved of a run, as its journal has it. */
export function savedRun(run: string, version: string, entries: readonly Entry[]): SavedRun {
  const { input, state, adopted } = generationOf(run, entries);
  return { version, input, state, adopted, phases: phasesIn(adopted), steps: stepsOf(entries) };
}

function phasesIn(adopted: unknown): Readonly<Record<string, unknown>> {
  const phases = isPlainRecord(adopted) ? adopted["phases"] : undefined;
  return isPlainRecord(phases) ? phases : {};
}

function stepsOf(entries: readonly Entry[]): Record<string, SavedStep> {
  const steps = new Map<string, SavedStep>();
  for (const { type, key, payload } of entries) {
    if (type === "run.continued") steps.clear();
    if (key === null) continue;
    if (type === "step.started" || type === "effect.planned") steps.set(key, { status: "in_progress" });
    if (isStepSuccess(type)) steps.set(key, { status: "done", output: payload });
    if (type === "step.failed" && (payload as StepFailed).retryAt === null) steps.set(key, { status: "failed" });
  }
  return Object.fromEntries(steps);
}

/** Runs the functions one after the other; refuses what they give with its path. */
export function migrate({ workflow, steps }: MigrationPlan, saved: SavedRun): MigratedRun {
  let result: MigratedRun = {};
  let current = saved;
  for (const step of steps) {
    const given: unknown = step.migrate(current);
    const where = `What the migration of workflow "${workflow.name}" from ${step.from} to ${step.to} gives`;
    if (!isPlainRecord(given)) throw mismatch(where, "", "must be an object (no promise): { input, state, phases }");
    for (const field of ["state", "phases"])
      if (given[field] !== undefined && !isPlainRecord(given[field])) throw mismatch(where, field, "must be an object");
    result = { ...result, ...given };
    current = afterStep(current, step.to, given as MigratedRun);
  }
  return result;
}

function afterStep(saved: SavedRun, version: string, given: MigratedRun): SavedRun {
  const adopted = adoptedOf(given) ?? saved.adopted;
  return {
    ...saved,
    version,
    input: "input" in given ? given.input : saved.input,
    state: given.state ?? saved.state,
    adopted,
    phases: phasesIn(adopted),
  };
}

/** What the body will see of it as adopted; `undefined` if it says nothing about that. */
export function adoptedOf({ adopted, phases }: MigratedRun): unknown {
  return adopted ?? (phases === undefined ? undefined : { phases });
}

function mismatch(where: string, path: string, what: string): PawlError {
  return new PawlError("schema_mismatch", `${where}${path === "" ? "" : `: \`${path}\``} ${what}.`, {
    fields: { path },
  });
}
