// The plan of a machine
// A definition that has been checked: every step that is named exists and can be reached, every gate is one. What is wrong is told when the machine is
// made, not in a run.
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import type { ApproveOptions } from "../core/approval.ts";
import type { StandardSchema } from "../core/schema.ts";
import { isPlainRecord } from "../core/stable-digest.ts";
import type { AnyStep } from "./machine-step.ts";
import { WORDS } from "./machine-transition.ts";
import type { AnyRules, State } from "./patch.ts";

/** Who is asked when a step escalates, and how long they have. */
export type Escalation = Omit<
  ApproveOptions,
  "action" | "kind" | "evidence" | "onDenied" | "onExpired" | "onChanges" | "maxDenials"
>;

/** A way out of a step. */
export interface Route {
  readonly to: string;
  /** What has to happen for it, where that is not the step's own choice. */
  readonly label?: string;
}

export interface PlannedStep {
  readonly name: string;
  readonly step: AnyStep;
  readonly routes: readonly Route[];
  readonly next: ReadonlySet<string>;
  /** The transitions that it may return. */
  readonly can: ReadonlySet<string>;
}

export interface MachinePlan {
  readonly name: string;
  readonly start: string;
  readonly steps: ReadonlyMap<string, PlannedStep>;
  readonly rules: AnyRules;
  readonly schema: StandardSchema | undefined;
  readonly escalation: Escalation | null;
  initial(input: unknown): State;
}

/** Checks a definition and makes a plan of it. */
export function planOf(
  base: Omit<MachinePlan, "start" | "steps">,
  definition: { readonly start: string; readonly steps: unknown },
): MachinePlan {
  const { name } = base;
  if (!isPlainRecord(definition?.steps)) throw invalid(name, "steps", "has no steps. Return { start, steps: { … } }.");
  const steps = new Map<string, PlannedStep>();
  for (const [step, given] of Object.entries(definition.steps)) steps.set(step, plannedStep(name, step, given));
  const plan: MachinePlan = { ...base, start: definition.start, steps };
  if (!steps.has(plan.start))
    throw invalid(name, "start", `starts with "${plan.start}", which is none of its steps: ${namesOf(steps)}.`);
  for (const one of steps.values()) assertStep(plan, one);
  assertReachable(plan);
  return plan;
}

function plannedStep(machine: string, name: string, given: unknown): PlannedStep {
  assertName(`step of machine "${machine}"`, name);
  const step = given as AnyStep;
  if (!isPlainRecord(given) || !isPlainRecord(step.spec))
    throw invalid(
      machine,
      `steps.${name}`,
      `: step "${name}" is made by none of its functions, such as step({ run }).`,
    );
  const routes = routesOf(step);
  const { can: able = [] } = step.spec as { readonly can?: readonly string[] };
  const can = new Set<string>(["fail", ...(routes.length > 0 ? ["continue"] : []), ...able]);
  return { name, step, routes, next: new Set(routes.map(({ to }) => to)), can };
}

function routesOf({ kind, spec }: AnyStep): readonly Route[] {
  switch (kind) {
    case "approval":
      return [
        { to: spec.approved, label: "approved" },
        ...(spec.denied === undefined ? [] : [{ to: spec.denied, label: "denied" }]),
        ...(spec.expired === undefined ? [] : [{ to: spec.expired, label: "expired" }]),
        ...(spec.changes === undefined ? [] : [{ to: spec.changes, label: "changes" }]),
      ];
    case "parallel":
      return (spec.branches ?? []).map((to) => ({ to }));
    default:
      return (spec.next ?? []).map((to) => ({ to }));
  }
}

function assertStep(plan: MachinePlan, planned: PlannedStep): void {
  const { name, step, next, can } = planned;
  for (const one of next)
    if (!plan.steps.has(one))
      throw invalid(
        plan.name,
        `steps.${name}`,
        `: step "${name}" goes on to "${one}", which is none of its steps: ${namesOf(plan.steps)}.`,
      );
  assertWords(plan, planned);
  for (const [field, why] of functionsOf(step))
    if (typeof (step.spec as unknown as Record<string, unknown>)[field] !== "function")
      throw invalid(
        plan.name,
        `steps.${name}.${field}`,
        `: step "${name}" needs a function \`${field}\`, which ${why}.`,
      );
  if (step.kind === "parallel") assertBranches(plan, name, step.spec);
  if (step.kind === "effect" && step.spec.needs !== undefined) assertGate(plan, name, "needs", step.spec.needs);
  if (can.has("escalate") && plan.escalation === null)
    throw invalid(
      plan.name,
      "escalation",
      `: step "${name}" can escalate, and nobody is named who would be asked. Give \`escalation: { approvers }\`.`,
    );
}

function assertWords(plan: MachinePlan, { name, step, next, can }: PlannedStep): void {
  const allowed: readonly string[] =
    step.kind === "effect" || step.kind === "agent" ? WORDS.filter((word) => word !== "retry") : WORDS;
  for (const word of can)
    if (word !== "fail" && word !== "continue" && !allowed.includes(word))
      throw invalid(
        plan.name,
        `steps.${name}.can`,
        `: step "${name}" of kind ${step.kind} cannot "${word}". Give some of: ${allowed.join(", ")}.`,
      );
  if (can.has("wait_for_approval") && ![...next].some((one) => plan.steps.get(one)?.step.kind === "approval"))
    throw invalid(
      plan.name,
      `steps.${name}.next`,
      `: step "${name}" can wait for an approval, and no step of its \`next\` asks for one.`,
    );
  const proposals = step.kind === "agent" ? (step.spec.proposals ?? 1) : 1;
  if (!Number.isInteger(proposals) || proposals < 1)
    throw invalid(
      plan.name,
      `steps.${name}.proposals`,
      `: \`proposals\` of step "${name}" is ${proposals}. Give a whole number, at least 1.`,
    );
}

function functionsOf({ kind }: AnyStep): readonly (readonly [field: string, why: string])[] {
  switch (kind) {
    case "step":
    case "evaluator":
      return [["run", "does the work and returns a transition"]];
    case "effect":
      return [
        ["do", "does it"],
        ["decide", "decides what follows"],
      ];
    case "agent":
      return [
        ["run", "works and says what it came to"],
        ["decide", "decides what follows"],
      ];
    case "approval":
      return [["action", "says what is to be approved"]];
    case "parallel":
      return [];
  }
}

/** A branch does one thing and comes back: where else it could go, nobody would be waiting. */
function assertBranches(
  plan: MachinePlan,
  name: string,
  { branches, next }: { branches: readonly string[]; next: string },
): void {
  if (branches.length < 2 || new Set(branches).size < branches.length)
    throw invalid(
      plan.name,
      `steps.${name}.branches`,
      `: step "${name}" needs at least two branches, each another step.`,
    );
  if (!plan.steps.has(next))
    throw invalid(
      plan.name,
      `steps.${name}.next`,
      `: step "${name}" goes on to "${next}", which is none of its steps: ${namesOf(plan.steps)}.`,
    );
  for (const branch of branches) {
    const { step, next: ways, can } = plan.steps.get(branch)!;
    const comesBack = step.kind !== "parallel" && ways.size === 1 && ways.has(next);
    const isPlain = [...can].every((word) => word === "continue" || word === "retry" || word === "fail");
    if (!comesBack || !isPlain)
      throw invalid(
        plan.name,
        `steps.${branch}`,
        `: step "${branch}" is a branch of "${name}". It may go on to "${next}", retry or fail, and nothing else.`,
      );
  }
}

function assertGate(plan: MachinePlan, name: string, field: string, gate: string): void {
  if (plan.steps.get(gate)?.step.kind === "approval") return;
  throw invalid(
    plan.name,
    `steps.${name}.${field}`,
    `: \`${field}\` of step "${name}" is "${gate}", which is no step that asks for an approval.`,
  );
}

/** A step that no way leads to is a mistake in a name. */
function assertReachable(plan: MachinePlan): void {
  const reached = new Set<string>();
  const queue = [plan.start];
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (reached.has(name)) continue;
    reached.add(name);
    const { step, next } = plan.steps.get(name)!;
    queue.push(...next, ...(step.kind === "parallel" ? [step.spec.next] : []));
  }
  const lost = [...plan.steps.keys()].filter((name) => !reached.has(name));
  if (lost.length === 0) return;
  throw invalid(
    plan.name,
    "steps",
    `has steps that nothing leads to: ${lost.join(", ")}. Name them in the \`next\` of another step, or leave them out.`,
  );
}

function namesOf(steps: ReadonlyMap<string, unknown>): string {
  return [...steps.keys()].join(", ");
}

function invalid(machine: string, field: string, what: string): PawlError {
  const text = what.startsWith(":") ? what : ` ${what}`;
  return new PawlError("invalid_argument", `Machine "${machine}"${text}`, { fields: { machine, field } });
}
