// Retry policy
// Which errors deserve another attempt, and when. Only errors that mark themselves transient are retried by default.
import { backoffMs } from "../base/backoff.ts";
import { toMs } from "../base/duration.ts";
import { PawlError, readProperty } from "../base/errors.ts";

/** A duration: milliseconds, or text such as "90s", "3 days". */
export type Duration = number | string;

export interface RetryOptions {
  /** Attempts after the first one. Default 3. */
  readonly max?: number;
  /** Wait before the first retry. Default 1 s. */
  readonly base?: Duration;
  /** How much longer each wait is than the one before. Default 2. */
  readonly factor?: number;
  /** The longest wait. Default 60 s, or `base` where that is longer. */
  readonly cap?: Duration;
  /** Spread waits over 0..delay, so that many runs do not come back at once. Default true. */
  readonly jitter?: boolean;
  /** "transient" (default): errors that mark themselves so. "any": all but TerminalError. Or decide yourself. */
  readonly on?: "transient" | "any" | ((error: unknown) => boolean);
}

/** `false` or 0 turns retries off; a number is `max`. */
export type Retry = RetryOptions | number | false;

export interface RetryPolicy {
  readonly max: number;
  readonly baseMs: number;
  readonly factor: number;
  readonly capMs: number;
  readonly jitter: boolean;
  readonly on: "transient" | "any" | ((error: unknown) => boolean);
}

export const DEFAULT_RETRY: RetryPolicy = {
  max: 3,
  baseMs: 1000,
  factor: 2,
  capMs: 60_000,
  jitter: true,
  on: "transient",
};

export function retryPolicy(retry: Retry | undefined, base: RetryPolicy = DEFAULT_RETRY): RetryPolicy {
  if (retry === undefined) return base;
  if (retry === false) return { ...base, max: 0 };
  if (typeof retry === "number") return { ...base, max: wholeNumber(retry) };
  const baseMs = retry.base === undefined ? base.baseMs : toMs(retry.base);
  return {
    max: retry.max === undefined ? base.max : wholeNumber(retry.max),
    baseMs,
    factor: retry.factor ?? base.factor,
    // Whoever asks for an hour before the first retry did not mean the minute that is the default's longest wait.
    capMs: retry.cap === undefined ? Math.max(base.capMs, baseMs) : toMs(retry.cap),
    jitter: retry.jitter ?? base.jitter,
    on: retry.on ?? base.on,
  };
}

function wholeNumber(max: number): number {
  if (Number.isInteger(max) && max >= 0) return max;
  throw new PawlError("invalid_argument", `retry.max is ${max}. Give a whole number of retries, 0 for none.`, {
    fields: { max },
  });
}

/** Milliseconds until the next attempt, or `null` if the error ends the step. `failures` counts this one. */
export function retryDelayMs(
  policy: RetryPolicy,
  failures: number,
  error: unknown,
  { random, now }: { random(): number; now(): number },
): number | null {
  if (failures > policy.max || !isRetryable(policy, error)) return null;
  return retryAfterMs(error, now) ?? backoffMs(failures, policy, random);
}

export function isRetryable(policy: RetryPolicy, error: unknown): boolean {
  const facts = factsOf(error);
  if (facts.name === "TerminalError") return false;
  if (typeof policy.on === "function") return asked(policy.on, error);
  if (policy.on === "any") return !NEVER.has(facts.code);
  return isTransient(facts);
}

/** Whether an attempt that failed so may have taken effect all the same. */
export function mayHaveHappened(error: unknown): boolean {
  const facts = factsOf(error);
  if (NOT_TRIED_AGAIN.has(facts.code)) return mayHaveHappened(facts.cause);
  // A breaker kept it from beginning.
  if (facts.code === "circuit_open") return false;
  return HAS_HAPPENED.has(facts.code) || isGivenUp(error) || isTransient(facts);
}

/** Whoever called has stopped waiting for the answer, by an AbortController of its own: what was asked for may be done all the same. */
export function isGivenUp(error: unknown): boolean {
  const { name, code } = factsOf(error);
  return name === "AbortError" || code === "ERR_CANCELED" || code === "UND_ERR_ABORTED";
}

/** Why a failure was the last one: what the attempt came to is the cause. */
const NOT_TRIED_AGAIN: ReadonlySet<unknown> = new Set([
  "max_retries_exceeded",
  "retry_budget_exceeded",
  "unsafe_retry",
]);

/** Nobody knows how it ended, or it has ended well and its result cannot be recorded. */
const HAS_HAPPENED: ReadonlySet<unknown> = new Set(["step_interrupted", "not_serializable", "too_large"]);

/** A rule that breaks decides nothing: the error it was asked about surfaces. */
function asked(on: (error: unknown) => boolean, error: unknown): boolean {
  try {
    return on(error);
  } catch {
    return false;
  }
}

/** Errors of the program, not of the moment: another attempt would end the same way. */
const NEVER: ReadonlySet<unknown> = new Set([
  "not_serializable",
  "too_large",
  "call_in_step",
  "cancelled",
  "illegal_transition",
  "invalid_transition",
]);

export const NETWORK_CODES: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EAI_AGAIN",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENETDOWN",
  "ENOTFOUND",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_SOCKET",
  "ERR_STREAM_PREMATURE_CLOSE",
]);

/** A database could not bring this transaction into line with others, and has undone it: serialization failure and deadlock. */
const CONFLICT_CODES: ReadonlySet<unknown> = new Set(["40001", "40P01"]);

export interface ErrorFacts {
  readonly name: unknown;
  readonly code: unknown;
  readonly status: unknown;
  readonly cause: unknown;
}

/** Somebody else's object: a getter or proxy that throws tells nothing, and the error counts without that fact (B66). */
export function factsOf(error: unknown): ErrorFacts {
  const read = (key: string) => readProperty(error, key);
  const status = read("status") ?? read("statusCode") ?? readProperty(read("response"), "status");
  return { name: read("name"), code: read("code"), status, cause: read("cause") };
}

export function isTransient(facts: ErrorFacts): boolean {
  if (facts.name === "RetryableError" || facts.name === "TimeoutError") return true;
  if (facts.code === "step_timeout" || facts.code === "circuit_open") return true;
  if (NETWORK_CODES.has(facts.code) || isTransientStatus(facts.status)) return true;
  // fetch reports a refused connection as TypeError("fetch failed") with the network error as its cause; query builders do the like.
  const causeCode = readProperty(facts.cause, "code");
  return NETWORK_CODES.has(causeCode) || CONFLICT_CODES.has(facts.code) || CONFLICT_CODES.has(causeCode);
}

function isTransientStatus(status: unknown): boolean {
  return (
    typeof status === "number" &&
    (status === 408 || status === 425 || status === 429 || (status >= 500 && status <= 599))
  );
}

/** What the error itself asks for: `retryAfter` of RetryableError, or a Retry-After header, in seconds or as a date. */
function retryAfterMs(error: unknown, now: () => number): number | null {
  const retryAfter = readProperty(error, "retryAfter");
  if (typeof retryAfter === "number" || typeof retryAfter === "string") return readableMs(retryAfter);
  const response = readProperty(error, "response");
  const header = headerOf(readProperty(error, "headers")) ?? headerOf(readProperty(response, "headers"));
  if (header === null || header.trim() === "") return null;
  const seconds = Number(header);
  return readableMs(Number.isNaN(seconds) ? Math.max(0, Date.parse(header) - now()) : seconds * 1000);
}

/** Somebody else's text: what cannot be read is as good as not said. */
function readableMs(duration: Duration): number | null {
  try {
    return toMs(duration);
  } catch {
    return null;
  }
}

function headerOf(headers: unknown): string | null {
  const get = readProperty(headers, "get");
  const value = typeof get === "function" ? called(get, headers) : readProperty(headers, "retry-after");
  return typeof value === "string" || typeof value === "number" ? String(value) : null;
}

function called(get: { call(self: unknown, name: string): unknown }, headers: unknown): unknown {
  try {
    return get.call(headers, "retry-after");
  } catch {
    return null;
  }
}
