import type { SchemaInput, SchemaOutput, StandardSchema } from "../core/schema.ts";
import { withStructure } from "../core/structure.ts";
import { type Workflow, type WorkflowOptions, workflow } from "../core/workflow.ts";
import { graphOf, shapeOfMachine } from "./machine-graph.ts";
import { type Escalation, type MachinePlan, planOf } from "./machine-plan.ts";
import { MachineRun } from "./machine-run.ts";
import { type MachineStep, STEPS, type Steps } from "./machine-step.ts";
import type { MergeRules } from "./patch.ts";

/** Options of a machine, beside those of every workflow. */
export interface MachineOptions<I, S> extends WorkflowOptions<I> {
  /** The first state of a run. Its fields are all that patches may change. A pure function. */
  state(input: I): S;
  /** What the state must be after every patch. Default: not checked. */
  readonly schema?: StandardSchema;
  /** How a patch of a field joins what is there: "replace", "append", "merge", "max", { by } or a function. */
  readonly merge?: MergeRules<S>;
  /** Who is asked when a step escalates: `{ approvers, timeout, … }` as of `ctx.approve`. Default: nobody. */
  readonly escalation?: Escalation;
}

/** The steps of a machine and where it starts. */
export interface MachineDefinition<M> {
  readonly start: keyof M & string;
  readonly steps: M;
}

/** Steps whose next steps are all among them. */
type Closed<M> = { readonly [K in keyof M]: MachineStep<keyof M & string> };

/** What the steps of a machine complete with. */
export type MachineOutput<M> = {
  [K in keyof M]: M[K] extends MachineStep<string, infer O> ? O : never;
}[keyof M];

/**
 * Defines a machine: named steps that return a transition, over a typed state. The current step is always explicit, and a step can do nothing that its
 * definition does not allow.
 *
 * ```ts
 * const publish = machine(
 *   { name: "publish", state: (text: string) => ({ text, words: 0 }) },
 *   ({ step }) => ({
 *     start: "count",
 *     steps: {
 *       count: step({ next: ["print"], run: ({ text }) => ({ transition: "continue", next: "print", patch: { words: text.split(" ").length } }) }),
 *       print: step({ can: ["complete"], run: ({ words }) => ({ transition: "complete", output: words }) }),
 *     },
 *   }),
 * );
 * ```
 */
export function machine<I extends StandardSchema, S extends object, M extends Closed<M>>(
  options: MachineOptions<SchemaOutput<I>, S> & { readonly input: I },
  define: (make: Steps<S>) => MachineDefinition<M>,
): Workflow<SchemaInput<I>, MachineOutput<M>>;
export function machine<I, S extends object, M extends Closed<M>>(
  options: MachineOptions<I, S>,
  define: (make: Steps<S>) => MachineDefinition<M>,
): Workflow<I, MachineOutput<M>>;
export function machine(
  options: MachineOptions<never, object>,
  define: (make: never) => MachineDefinition<unknown>,
): Workflow {
  const { state, schema, merge = {}, escalation = null, ...rest } = options;
  const base = {
    name: rest.name,
    rules: merge as MachinePlan["rules"],
    schema,
    escalation,
    initial: state as MachinePlan["initial"],
  };
  const plan = planOf(base, define(STEPS as never));
  const plain = workflow<never, unknown>(rest, (ctx, input) => new MachineRun(ctx, plan).play(input)) as Workflow;
  const made = withStructure(plain, shapeOfMachine(plan));
  // The plan is for those who compare two definitions.
  const workflowOfPlan = { ...made, definition: { ...made.definition, graph: graphOf(plan) }, plan };
  return workflowOfPlan;
}
