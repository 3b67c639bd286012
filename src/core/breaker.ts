// Circuit breakers
// Keep calls away from something that fails again and again, so that it can come back and nobody waits for it in vain. What a breaker has seen is
// kept in the memory of one process, for all runs there: others, and the next process, see for themselves.
//
//   CB1. It opens when so many attempts have failed within the window. Errors that are the caller's own fault do not count.
//   CB2. While it is open no attempt begins. After the cooldown one is let through: its success closes the breaker, its failure opens it again.
import { type Duration, toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import type { StepCall } from "./call.ts";
import { ERROR_CATEGORIES, errorCategory } from "./error-category.ts";
import type { Pass } from "./pass.ts";
import type { PassPorts } from "./pass-ports.ts";

/** When a circuit breaker opens, and for how long. */
export interface BreakerOptions {
  /** Failures within the window that open it. Default 5. */
  readonly failures?: number;
  /** How far back failures count. Default 60 s. */
  readonly window?: Duration;
  /** How long nothing is let through. Default 30 s. */
  readonly cooldown?: Duration;
}

interface BreakerPolicy {
  readonly failures: number;
  readonly windowMs: number;
  readonly cooldownMs: number;
}

/** Policies by the name of the breaker. */
export type Breakers = ReadonlyMap<string, BreakerPolicy>;

export const DEFAULT_BREAKER: BreakerPolicy = {
  failures: 5,
  windowMs: 60_000,
  cooldownMs: 30_000,
};

export function breakerPolicies(workflow: string, options: Readonly<Record<string, BreakerOptions>>): Breakers {
  return new Map(Object.entries(options).map(([name, given]) => [name, policyOf(workflow, name, given)]));
}

function policyOf(
  workflow: string,
  name: string,
  { failures = DEFAULT_BREAKER.failures, window, cooldown }: BreakerOptions,
) {
  assertName(`breaker of workflow "${workflow}"`, name);
  if (!Number.isSafeInteger(failures) || failures < 1)
    throw new PawlError(
      "invalid_argument",
      `Workflow "${workflow}": failures of breaker "${name}" is ${failures}. Give a whole number of at least 1.`,
      { fields: { workflow, breaker: name } },
    );
  return {
    failures,
    windowMs: window === undefined ? DEFAULT_BREAKER.windowMs : toMs(window, `window of breaker "${name}"`),
    cooldownMs: cooldown === undefined ? DEFAULT_BREAKER.cooldownMs : toMs(cooldown, `cooldown of breaker "${name}"`),
  };
}

/** What one breaker has seen. */
interface Seen {
  /** Times of failures, within the window. */
  failures: number[];
  openUntil: number | null;
  /** The call whose attempt was let through to find out, and until when others wait for what it finds: its process may have lost it. */
  trial: StepCall | null;
  trialUntil: number;
}

// By the worker whose runs share it: of several engines in a process each sees for itself.
const seenBy = new WeakMap<PassPorts, Map<string, Seen>>();

function seenOf({ ports }: Pass, name: string): Seen {
  const all = seenBy.get(ports) ?? new Map<string, Seen>();
  seenBy.set(ports, all);
  const seen = all.get(name) ?? { failures: [], openUntil: null, trial: null, trialUntil: 0 };
  all.set(name, seen);
  return seen;
}

function policyIn({ workflow }: Pass, name: string): BreakerPolicy {
  return workflow.definition.breakers?.get(name) ?? DEFAULT_BREAKER;
}

/** Why an attempt of this call is not begun now; `null`: it is. */
export function whyOpen(pass: Pass, call: StepCall): PawlError | null {
  const name = call.policy.breaker as string;
  const seen = seenOf(pass, name);
  if (seen.openUntil === null) return null;
  const now = pass.ports.clock.now();
  const left = seen.openUntil - now;
  const isTried = seen.trial?.open === true && seen.trial !== call && now < seen.trialUntil;
  if (left <= 0 && !isTried) {
    Object.assign(seen, { trial: call, trialUntil: now + policyIn(pass, name).cooldownMs });
    return null;
  }
  return circuitOpen(pass.id, call, name, Math.max(left, isTried ? 1000 : 1));
}

/** An attempt has ended: with this error, or well. */
export function tellBreaker(pass: Pass, call: StepCall, error: unknown): void {
  const name = call.policy.breaker as string;
  const seen = seenOf(pass, name);
  const isTrial = seen.trial === call;
  if (isTrial) seen.trial = null;
  if (error === null) {
    // A success of an attempt that began before says nothing about now.
    if (isTrial) Object.assign(seen, { failures: [], openUntil: null });
    return;
  }
  if (isOwn(error)) {
    // Whatever the caller did wrong, there was somebody to say so.
    if (isTrial) Object.assign(seen, { failures: [], openUntil: null });
    return;
  }
  const policy = policyIn(pass, name);
  const now = pass.ports.clock.now();
  seen.failures = [...seen.failures.filter((at) => now - at < policy.windowMs), now];
  if (isTrial || (seen.openUntil === null && seen.failures.length >= policy.failures))
    seen.openUntil = now + policy.cooldownMs;
}

/** Not a failure of what is called: the breaker's own refusal, or an error that would come from any system that works. */
function isOwn(error: unknown): boolean {
  if (error instanceof PawlError && error.code === "circuit_open") return true;
  return !ERROR_CATEGORIES[errorCategory(error)].retry;
}

function circuitOpen(run: string, call: StepCall, breaker: string, retryAfter: number): PawlError {
  const message =
    `Step "${call.key}" of run ${run} was not begun: the circuit breaker "${breaker}" is open after repeated failures. ` +
    `It lets an attempt through in ${Math.ceil(retryAfter / 1000)} s.`;
  const error = new PawlError("circuit_open", message, { fields: { run, step: call.key, breaker, retryAfter } });
  return Object.assign(error, { retryAfter });
}
