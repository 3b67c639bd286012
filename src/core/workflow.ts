import { toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import { parseVersion } from "../base/semver.ts";
import { type BreakerOptions, type Breakers, breakerPolicies } from "./breaker.ts";
import { type BudgetOptions, type BudgetPlan, budgetPlan } from "./budget.ts";
import type { StepPolicy } from "./call.ts";
import type { Context } from "./context.ts";
import { type ConcurrencyLimit, type FlowControl, flowControl, type RateLimit } from "./flow-control.ts";
import type { Graph } from "./graph.ts";
import type { Uses } from "./journal.ts";
import { DEFAULTS, STEP_TIMEOUTS_MS } from "./limits.ts";
import { type Migration, migrationsOf } from "./migration.ts";
import { type OwnerOption, type Owners, ownersOf } from "./owners.ts";
import { type Redaction, redactionsOf } from "./redactor.ts";
import type { RetentionMs } from "./retention.ts";
import { type Duration, type Retry, retryPolicy } from "./retry.ts";
import { type RetryBudget, type RetryBudgetOptions, retryBudget } from "./retry-budget.ts";
import type { SchemaInput, SchemaOutput, StandardSchema } from "./schema.ts";
import { structureOf, usesOf } from "./structure.ts";
import { type Trigger, triggersOf } from "./trigger.ts";

/** What a body may do about clocks, randomness and timers of its own: tell, refuse, or nothing. */
export type Guard = "warn" | "error" | "off";

export interface WorkflowOptions<I = unknown> {
  /** Unique among the workflows of a store. */
  readonly name: string;
  /** Semver. A run keeps the version it started with; only patches may pick it up again. Default "1.0.0". */
  readonly version?: string;
  /** Checked before a run is accepted. Any Standard Schema: zod, valibot, arktype. */
  readonly input?: StandardSchema;
  /** Checked before the result is recorded. */
  readonly output?: StandardSchema;
  /** Default for the steps of this workflow. */
  readonly retry?: Retry;
  /** Default for the steps of this workflow; otherwise it follows each step's kind. */
  readonly timeout?: Duration;
  /** How long a run may take in all, waits included. Default 14 days. */
  readonly deadline?: Duration;
  /** What happens when the body reads the clock or rolls dice outside a step. Default "warn". */
  readonly guard?: Guard;
  /** "park" (default): a journal that the code does not follow parks the run. "execute": what is missing is run afresh. */
  readonly onMissing?: "park" | "execute";
  /**
   * Who has to see to its runs, by a name or an address: one for all, or `{ stuck, waiting, failed, compensating }`. What a run leaves behind that
   * cannot be undone is the business of `compensating`. Default: nobody by name.
   */
  readonly owner?: OwnerOption;
  /**
   * How long finished runs of this workflow are kept: `{ succeeded: "7 days", failed: "365 days" }`, or `false` for ever. All workers of the store keep to
   * what its newest version says. Default: what each worker's `retention` says.
   */
  readonly retention?: { readonly succeeded?: Duration; readonly failed?: Duration } | false;
  /** How many runs may be under way at a time, over all workers: a number, or `{ limit, key }` for each key. Runs that wait do not count. */
  readonly concurrency?: number | ConcurrencyLimit<I>;
  /** What a run and all runs below it may spend: `{ usd: 1, tokens: 50_000, calls: 100, time: "2h" }`. Default: no limit. */
  readonly budget?: BudgetOptions;
  /** How many retries its steps may make in any span of time, in one process: `{ max: 100, per: "1m" }`. Default: no limit. */
  readonly retryBudget?: RetryBudgetOptions;
  /** How the circuit breakers that its steps name behave, by their names. */
  readonly breakers?: Readonly<Record<string, BreakerOptions>>;
  /** How many runs may begin in any span of time, over all workers: `{ limit: 100, per: "1m" }`, with `key` for each key. */
  readonly rate?: RateLimit<I>;
  /** What is taken out of values of its runs before they are recorded, beside what the process says. Default: nothing. */
  readonly redact?: Redaction | readonly Redaction[];
  /**
   * The versions of what it uses besides its own code, by kind and name: `{ prompts: { review: "3" }, models: { writer: "m-2" } }`. A run keeps those
   * that it was started with: `ctx.run.uses`. Default: none.
   */
  readonly uses?: Uses;
  /**
   * Which runs this version may go on with: "semver" (default), those of the same major.minor whose patch is not newer; "exact", those of this very
   * version; "ignore", any.
   */
  readonly versionPolicy?: VersionPolicy;
  /** Functions that bring the state of runs from other versions to this one. They run only if somebody decides so. Default: none. */
  readonly migrations?: readonly Migration[];
  /** Events that start a run of it: `{ event: "order.paid", where: { "customer.country": "NO" } }`. Default: none. */
  readonly on?: Trigger | readonly Trigger[];
}

export type VersionPolicy = "semver" | "exact" | "ignore";

export type Handler<I, O> = (ctx: Context, input: I) => Promise<O> | O;

declare const types: unique symbol;

/** A workflow: start runs of it with `pawl.start`, call it from another one with `ctx.call`. */
export interface Workflow<I = unknown, O = unknown> {
  readonly name: string;
  readonly version: string;
  readonly definition: Definition;
  /** Carries the types of input and output; there is nothing at run time. */
  readonly [types]?: { readonly input: (input: I) => void; readonly output: O };
}

export interface NewRunFacts {
  /** The start key, if there is one. */
  readonly key: string | null;
  readonly input: unknown;
  /** Store time. */
  readonly now: number;
}

/** A definition with its defaults filled in; what the engine runs. */
export interface Definition {
  readonly handler: Handler<unknown, unknown>;
  readonly input: StandardSchema | undefined;
  readonly output: StandardSchema | undefined;
  /** Of steps that say nothing else. */
  readonly stepPolicy: StepPolicy;
  readonly timeoutMs: number | null;
  readonly deadlineMs: number;
  readonly guard: Guard;
  readonly onMissing: "park" | "execute";
  readonly owners: Owners;
  readonly retention: RetentionMs | null;
  readonly flow: FlowControl | null;
  readonly budget: BudgetPlan | null;
  readonly retryBudget: RetryBudget | null;
  readonly breakers: Breakers | null;
  readonly uses: Uses | null;
  readonly redact: readonly Redaction[] | null;
  /** Makes the ids of runs, where they are made of what they are about; `null` from it: one as for any run. */
  readonly runId: ((facts: NewRunFacts) => string | null) | null;
  readonly versionPolicy: VersionPolicy;
  readonly migrations: readonly Migration[];
  readonly triggers: readonly Trigger[];
  /** What a run that was begun with it may be compared by; `null` where there is nothing but code. */
  readonly structure: string | null;
  /** What the structure is the hash of, as plain data, where a workflow is made of named parts. */
  readonly shape?: unknown;
  /** False: its author gave no version, and "1.0.0" says nothing. */
  readonly isVersioned: boolean;
  /** The ways that a run may take, where they are known without one. */
  readonly graph?: Graph;
}

/**
 * Defines a workflow: an ordinary async function whose steps survive any crash.
 *
 * ```ts
 * const checkout = workflow("checkout", async (ctx, order: { id: string; cents: number }) => {
 *   const payment = await ctx.step("charge", ({ key }) => bank.charge(order.cents, { idempotencyKey: key }));
 *   await ctx.step("receipt", () => mail.send(order.id, payment.id));
 *   return payment.id;
 * });
 * ```
 */
export function workflow<S extends StandardSchema, O>(
  options: WorkflowOptions<SchemaOutput<S>> & { readonly input: S },
  handler: Handler<SchemaOutput<S>, O>,
): Workflow<SchemaInput<S>, O>;
export function workflow<I, O>(nameOrOptions: string | WorkflowOptions<I>, handler: Handler<I, O>): Workflow<I, O>;
export function workflow(nameOrOptions: string | WorkflowOptions<never>, handler: Handler<never, unknown>): Workflow {
  const options: WorkflowOptions<never> = typeof nameOrOptions === "string" ? { name: nameOrOptions } : nameOrOptions;
  assertName("workflow name", options.name);
  const version = options.version ?? "1.0.0";
  parseVersion(version, `version of workflow "${options.name}"`);
  if (typeof handler !== "function") {
    throw new PawlError(
      "invalid_argument",
      `Workflow "${options.name}" has no handler. Pass an async function (ctx, input) => … as second argument.`,
    );
  }
  return { name: options.name, version, definition: definitionOf(options, handler as Handler<unknown, unknown>) };
}

function definitionOf(options: WorkflowOptions<never>, handler: Handler<unknown, unknown>): Definition {
  const timeoutMs = options.timeout === undefined ? null : toMs(options.timeout, "timeout");
  const uses = usesOf(options.uses, options.name);
  return {
    handler,
    input: options.input,
    output: options.output,
    stepPolicy: {
      timeoutMs: timeoutMs ?? STEP_TIMEOUTS_MS.code,
      retry: retryPolicy(options.retry),
      recovery: "rerun",
    },
    timeoutMs,
    deadlineMs: options.deadline === undefined ? DEFAULTS.runDeadlineMs : toMs(options.deadline),
    guard: options.guard ?? "warn",
    onMissing: options.onMissing ?? "park",
    owners: ownersOf(options.name, options.owner),
    retention: retentionOf(options),
    flow: flowControl(options.name, options),
    budget: budgetPlan(options.budget, `workflow "${options.name}"`) ?? null,
    retryBudget: options.retryBudget === undefined ? null : retryBudget(options.name, options.retryBudget),
    breakers: options.breakers === undefined ? null : breakerPolicies(options.name, options.breakers),
    uses,
    redact: options.redact === undefined ? null : redactionsOf(options.redact, `redact of workflow "${options.name}"`),
    versionPolicy: versionPolicyOf(options),
    migrations: migrationsOf(options.migrations, options.name),
    triggers: triggersOf(options.on, `workflow "${options.name}"`),
    structure: structureOf(null, uses),
    isVersioned: options.version !== undefined,
    runId: null,
  };
}

const VERSION_POLICIES: readonly VersionPolicy[] = ["semver", "exact", "ignore"];

function versionPolicyOf({ name, versionPolicy = "semver" }: WorkflowOptions<never>): VersionPolicy {
  if (VERSION_POLICIES.includes(versionPolicy)) return versionPolicy;
  throw new PawlError(
    "invalid_argument",
    `\`versionPolicy\` of workflow "${name}" is ${JSON.stringify(versionPolicy)}. Give one of ${VERSION_POLICIES.map((one) => `"${one}"`).join(", ")}.`,
    { fields: { field: "versionPolicy" } },
  );
}

/** `null`: as those of any other workflow. */
function retentionOf({ retention }: WorkflowOptions<never>): RetentionMs | null {
  if (retention === undefined || retention === false) return retention ?? null;
  const { succeeded, failed } = retention;
  return {
    succeededMs: succeeded === undefined ? DEFAULTS.retention.succeededMs : toMs(succeeded, "retention.succeeded"),
    failedMs: failed === undefined ? DEFAULTS.retention.failedMs : toMs(failed, "retention.failed"),
  };
}
