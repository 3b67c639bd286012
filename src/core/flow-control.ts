// Flow control
// How many runs of a workflow, or of one key of it, may be under way at a time, and how many may begin in a while. What a run needs is said
// once, when it is created, as two names; the numbers come from the worker that claims, so that newer code changes the limits of all.
import { type Duration, toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import type { Handle, Needs } from "./store.ts";

/** At most so many runs under way at a time, over all workers of the store. */
export interface ConcurrencyLimit<I = unknown> {
  /** Runs under way at a time; those that wait for a timer, a signal or a child do not count. */
  readonly limit: number;
  /** Counts the runs of each key by themselves: one customer, one account. Default: all runs of the workflow together. */
  readonly key?: (input: I) => string;
}

/** At most so many runs begin in any span of this length, over all workers of the store. */
export interface RateLimit<I = unknown> {
  /** Runs that may begin in any span of `per`; the others wait. */
  readonly limit: number;
  /** The length of the span: "1m". */
  readonly per: Duration;
  /** Counts the runs of each key by themselves. Default: all runs of the workflow together. */
  readonly key?: (input: I) => string;
}

export interface FlowOptions<I> {
  readonly concurrency?: number | ConcurrencyLimit<I>;
  readonly rate?: RateLimit<I>;
}

type KeyOf = ((input: unknown) => string) | null;

/** Limits with their defaults filled in. */
export interface FlowControl {
  readonly concurrency: { readonly limit: number; readonly key: KeyOf } | null;
  readonly rate: { readonly limit: number; readonly perMs: number; readonly key: KeyOf } | null;
}

/** `null` for a workflow without limits. */
export function flowControl(workflow: string, { concurrency, rate }: FlowOptions<never>): FlowControl | null {
  if (concurrency === undefined && rate === undefined) return null;
  const slots = typeof concurrency === "number" ? { limit: concurrency } : concurrency;
  if (slots !== undefined) check(workflow, "concurrency", slots);
  if (rate !== undefined) check(workflow, "rate", rate);
  return {
    concurrency: slots === undefined ? null : { limit: slots.limit, key: keyOf(slots) },
    rate: rate === undefined ? null : { limit: rate.limit, perMs: spanOf(workflow, rate), key: keyOf(rate) },
  };
}

function keyOf({ key }: ConcurrencyLimit<never>): KeyOf {
  return (key as KeyOf | undefined) ?? null;
}

function check(workflow: string, what: string, given: ConcurrencyLimit<never>): void {
  const { limit, key } = given ?? {};
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw refusal(workflow, `${what}.limit is ${limit}`, "Give a whole number of at least 1.");
  if (key !== undefined && typeof key !== "function")
    throw refusal(
      workflow,
      `${what}.key is ${typeof key}`,
      "Give a function of the input, such as (order) => order.customer.",
    );
}

function spanOf(workflow: string, { per }: RateLimit<never>): number {
  const perMs = toMs(per, "rate.per");
  if (perMs > 0) return perMs;
  throw refusal(workflow, `rate.per is ${per}`, 'Give a duration above zero, such as "1m".');
}

function refusal(workflow: string, what: string, advice: string): PawlError {
  return new PawlError("invalid_argument", `Workflow "${workflow}": ${what}. ${advice}`, { fields: { workflow } });
}

interface Limited {
  readonly name: string;
  readonly definition: { readonly flow: FlowControl | null };
}

/** What a run with this input needs before it may begin; `null` for a workflow without limits. */
export function needsOf({ name, definition: { flow } }: Limited, input: unknown): Needs | null {
  if (flow === null) return null;
  return {
    // A run that only has a rate stands in the line of its workflow as well, which nothing limits then.
    slot: nameOf(name, flow.concurrency?.key ?? null, input, "concurrency key"),
    rate: flow.rate === null ? null : nameOf(name, flow.rate.key, input, "rate key"),
  };
}

/** Names have no slash, so a key of one workflow is never that of another. */
function nameOf(workflow: string, key: KeyOf, input: unknown, what: string): string {
  if (key === null) return workflow;
  const value = key(input);
  assertName(`${what} of workflow "${workflow}"`, value);
  return `${workflow}/${value}`;
}

/** The workflow whose limits hold for a slot or a rate. */
function workflowOf(need: string): string {
  const end = need.indexOf("/");
  return end < 0 ? need : need.slice(0, end);
}

/** How many may hold this slot, by what a worker says of its workflow; `null`: any number. */
export function slotLimit(handles: readonly Handle[], slot: string): number | null {
  return handleOf(handles, slot)?.concurrency ?? null;
}

/** How many may begin in how long; `null`: any number. */
export function rateLimit(handles: readonly Handle[], rate: string): Handle["rate"] | null {
  return handleOf(handles, rate)?.rate ?? null;
}

// Of several versions of a workflow the newest comes last, and its limits hold for all.
function handleOf(handles: readonly Handle[], need: string): Handle | undefined {
  const workflow = workflowOf(need);
  return handles.findLast((handle) => handle.workflow === workflow);
}
