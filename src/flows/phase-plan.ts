// The plan of a workflow made of phases: its definition, checked once, and what is compared to tell whether it has changed.
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import type { Outline, OutlinedPhase, OutlinedStep } from "../core/outline.ts";
import { stepKey } from "../core/outline.ts";
import type { Phase, PhaseStep, StepDeeds } from "./phase-spec.ts";

export const DEEDS = ["run", "effect", "approve", "manual", "sleep", "waitFor", "call"] as const;
export type Deed = (typeof DEEDS)[number];

type AnyStep = PhaseStep<never, never>;

/** One step, with its place in the workflow. */
export interface Unit {
  /** `phase.step`, or the phase that is the step. */
  readonly at: string;
  readonly phase: string;
  /** `null`: the phase itself. */
  readonly step: string | null;
  readonly deed: Deed;
  readonly spec: AnyStep;
}

export interface PlannedPhase {
  readonly name: string;
  readonly when: Phase<never, never>["when"];
  readonly hasSteps: boolean;
  readonly units: readonly Unit[];
}

/** What of a definition its runs depend on, as plain data. */
export interface PhaseShape {
  readonly name: string;
  /** Whether something decides if it is on the way. */
  readonly when: boolean;
  readonly steps: readonly StepShape[];
}

export interface StepShape {
  readonly name: string;
  readonly does: Deed;
  readonly kind: string | null;
  readonly output: string | null;
  readonly satisfied: boolean;
  /** The options of a gate, the signal, the child, the files of manual work. */
  readonly options: unknown;
}

export interface PhasePlan {
  readonly workflow: string;
  readonly phases: readonly PlannedPhase[];
  readonly shape: readonly PhaseShape[];
  readonly outline: Outline;
}

/** Checks a list of phases. Throws `invalid_argument` that names the phase and the field. */
export function planOf(workflow: string, list: readonly Phase<never, never>[], correlation: string | null): PhasePlan {
  if (!Array.isArray(list) || list.length === 0)
    throw wrong(workflow, "", "phases", "needs at least one phase: phases({ name }, [{ name, run }]).");
  const phases = list.map((phase) => plannedPhase(workflow, phase));
  assertUnique(workflow, phases);
  const shape = phases.map(shapeOf);
  const outline: Outline = { correlation, phases: phases.map(outlinedPhase) };
  return { workflow, phases, shape, outline };
}

function plannedPhase(workflow: string, phase: Phase<never, never>): PlannedPhase {
  assertPlain(workflow, phase?.name, "phase");
  const { name, when, steps } = phase;
  if (when !== undefined && typeof when !== "function") throw wrong(workflow, name, "when", "`when` is a function.");
  if (steps === undefined) return { name, when, hasSteps: false, units: [unitOf(workflow, name, null, phase)] };
  if (!Array.isArray(steps) || steps.length === 0)
    throw wrong(workflow, name, "steps", "`steps` is a list of at least one step.");
  const own = [...DEEDS, "output", "satisfied", "retry", "timeout", "kind"].find((field) => field in phase);
  if (own !== undefined) throw wrong(workflow, name, own, `has \`steps\`, so \`${own}\` belongs to one of them.`);
  return { name, when, hasSteps: true, units: steps.map((step) => stepUnit(workflow, name, step)) };
}

function stepUnit(workflow: string, phase: string, step: AnyStep): Unit {
  assertPlain(workflow, step?.name, `step of phase "${phase}"`);
  return unitOf(workflow, phase, step.name, step);
}

function unitOf(workflow: string, phase: string, step: string | null, spec: AnyStep): Unit {
  const at = stepKey(phase, step ?? undefined);
  const given = DEEDS.filter((deed) => spec[deed] !== undefined);
  const [deed] = given;
  if (deed === undefined || given.length > 1) {
    const found = given.length === 0 ? "nothing to do" : `${given.join(" and ")}`;
    throw wrong(workflow, at, "run", `has ${found}. Give exactly one of ${DEEDS.join(", ")}.`);
  }
  assertDeed(workflow, at, deed, spec[deed]);
  assertOptions(workflow, at, deed, spec);
  return { at, phase, step, deed, spec };
}

function assertDeed(workflow: string, at: string, deed: Deed, value: StepDeeds<never, never>[Deed]): void {
  const fail = (what: string) => wrong(workflow, at, deed, what);
  switch (deed) {
    case "run":
      if (typeof value !== "function") throw fail("`run` is a function.");
      return;
    case "effect":
    case "approve":
      if (typeof value !== "function" && (typeof value !== "object" || value === null))
        throw fail(`\`${deed}\` is an object, or a function that makes one.`);
      return;
    case "manual":
      return assertManual(value as { instructions?: unknown; outputs?: unknown }, fail);
    case "sleep":
      if (typeof value !== "string" && typeof value !== "number") throw fail('`sleep` is a duration such as "2h".');
      return;
    case "waitFor": {
      const signal = typeof value === "object" && value !== null && "signal" in value ? value.signal : value;
      if (typeof signal !== "string") throw fail("`waitFor` is the name of a signal, or { signal, timeout, … }.");
      return assertName("signal name", signal);
    }
    case "call":
      if (typeof (value as { definition?: { handler?: unknown } })?.definition?.handler !== "function")
        throw fail("`call` is a workflow.");
  }
}

function assertManual(
  value: { instructions?: unknown; outputs?: unknown } | null,
  fail: (what: string) => Error,
): void {
  if (typeof value?.instructions !== "string" || value.instructions === "")
    throw fail("`manual` needs `instructions`: what is to be done, as text.");
  const { outputs = [] } = value;
  if (!Array.isArray(outputs) || !outputs.every(isFileName))
    throw fail("`outputs` of `manual` is a list of relative file names.");
}

/** Only work that is executed here has a result that can be written, or can be repeated. */
function assertOptions(workflow: string, at: string, deed: Deed, spec: AnyStep): void {
  const { output, satisfied, input } = spec;
  if (output !== undefined && !isFileName(output))
    throw wrong(workflow, at, "output", '`output` is a relative file name, such as "report.json".');
  if (output !== undefined && deed !== "run")
    throw wrong(workflow, at, "output", `\`output\` goes with \`run\`, not with \`${deed}\`.`);
  if (satisfied !== undefined && typeof satisfied !== "function")
    throw wrong(workflow, at, "satisfied", "`satisfied` is a function.");
  if (input !== undefined && deed !== "call")
    throw wrong(workflow, at, "input", `\`input\` goes with \`call\`, not with \`${deed}\`.`);
  for (const field of ["kind", "timeout", "retry", "recovery", "spend", "breaker"] as const)
    if (spec[field] !== undefined && deed !== "run" && deed !== "effect")
      throw wrong(workflow, at, field, `\`${field}\` goes with \`run\` and \`effect\`, not with \`${deed}\`.`);
}

/** A place inside the run's folder: no way out of it, and the same on every system. */
export function isFileName(name: unknown): name is string {
  if (typeof name !== "string" || name === "" || name.length > 200 || /[\\:*?"<>|\p{Cc}]/u.test(name)) return false;
  return name.split("/").every((part) => part !== "" && part !== "." && part !== ".." && part.trim() === part);
}

function assertUnique(workflow: string, phases: readonly PlannedPhase[]): void {
  const units = phases.flatMap((phase) => phase.units);
  const places = [...phases.filter((phase) => phase.hasSteps).map((phase) => phase.name), ...units.map(({ at }) => at)];
  const twice = places.find((at, index) => places.indexOf(at) < index);
  if (twice !== undefined) throw wrong(workflow, twice, "name", "is there twice: give each its own name.");
  const files = units.flatMap(({ at, spec }) => filesOf(spec).map((file) => ({ at, file: file.toLowerCase() })));
  const shared = files.find(({ file }, index) => files.findIndex((one) => one.file === file) < index);
  if (shared !== undefined)
    throw wrong(workflow, shared.at, "output", `writes ${shared.file}, as another one does: give each its own file.`);
}

function filesOf({ output, manual }: AnyStep): readonly string[] {
  return [...(output === undefined ? [] : [output]), ...(manual?.outputs ?? [])];
}

/** A dot separates phase and step; other marks have a meaning in keys. */
function assertPlain(workflow: string, name: unknown, what: string): void {
  if (isPlainName(name)) return;
  throw wrong(workflow, String(name), "name", `cannot be the name of a ${what}: use letters, digits, "_" and "-".`);
}

/** May name a phase or a step: it stands in keys, and is a field of the state document. */
export function isPlainName(name: unknown): name is string {
  // As a field, this one means something else to JavaScript.
  return typeof name === "string" && /^[\p{L}\p{N}_-]{1,80}$/u.test(name) && name !== "__proto__";
}

function wrong(workflow: string, at: string, field: string, what: string): PawlError {
  const where = at === "" ? `Workflow "${workflow}"` : `"${at}" of workflow "${workflow}"`;
  return new PawlError("invalid_argument", `${where} ${what}`, { fields: { workflow, at, field } });
}

// What is compared

function shapeOf({ name, when, units }: PlannedPhase): PhaseShape {
  return { name, when: when !== undefined, steps: units.map(stepShape) };
}

function stepShape({ step, phase, deed, spec }: Unit): StepShape {
  return {
    name: step ?? phase,
    does: deed,
    kind: spec.kind ?? null,
    output: spec.output ?? null,
    satisfied: spec.satisfied !== undefined,
    options: optionsOf(deed, spec),
  };
}

/** What a definition says in advance. Times and retries are configuration: a run goes on with others. */
function optionsOf(deed: Deed, { approve, manual, waitFor, call }: AnyStep): unknown {
  switch (deed) {
    case "approve":
      return typeof approve === "function" ? "decided by a function" : gateShape(approve ?? {});
    case "manual":
      return { outputs: manual?.outputs ?? [] };
    case "waitFor":
      return { signal: typeof waitFor === "string" ? waitFor : waitFor?.signal };
    case "call":
      return { workflow: call?.name };
    default:
      return null;
  }
}

function gateShape(gate: object): unknown {
  const fields = Object.entries(gate).filter(([, value]) => typeof value !== "function" && value !== undefined);
  return Object.fromEntries(fields.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function outlinedPhase({ name, hasSteps, units }: PlannedPhase): OutlinedPhase {
  const [first] = units;
  if (!hasSteps && first !== undefined) return { name, ...outputOf(first) };
  return { name, steps: units.map((unit): OutlinedStep => ({ name: unit.step ?? name, ...outputOf(unit) })) };
}

function outputOf({ spec }: Unit): Pick<OutlinedStep, "output"> {
  const output = spec.output ?? spec.manual?.outputs?.[0];
  return output === undefined ? {} : { output };
}
