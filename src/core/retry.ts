// Retry policy
// Which errors deserve another attempt, and when. Only errors that mark themselves transient are retried by default.
import { backoffMs } from "../base/backoff.ts";
import { toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";

/** A duration: milliseconds, or text such as "90s", "3 days". */
export type Duration = number | string;

export interface RetryOptions {
  /** Attempts after the first one. Default 3. */
  readonly max?: number;
  /** Wait before the first retry. Default 1 s. */
  readonly base?: Duration;
  /** How much longer each wait is than the one before. Default 2. */
  readonly factor?: number;
  /** The longest wait. Default 60 s. */
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
  return {
    max: retry.max === undefined ? base.max : wholeNumber(retry.max),
    baseMs: retry.base === undefined ? base.baseMs : toMs(retry.base),
    factor: retry.factor ?? base.factor,
    capMs: retry.cap === undefined ? base.capMs : toMs(retry.cap),
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
  random: () => number,
): number | null {
  if (failures > policy.max || !isRetryable(policy, error)) return null;
  return retryAfterMs(error) ?? backoffMs(failures, policy, random);
}

export function isRetryable(policy: RetryPolicy, error: unknown): boolean {
  const facts = factsOf(error);
  if (facts.name === "TerminalError") return false;
  if (typeof policy.on === "function") return asked(policy.on, error);
  if (policy.on === "any") return !NEVER.has(String(facts.code));
  return isTransient(facts);
}

/** A rule that breaks decides nothing: the error it was asked about surfaces. */
function asked(on: (error: unknown) => boolean, error: unknown): boolean {
  try {
    return on(error);
  } catch {
    return false;
  }
}

/** Errors of the program, not of the moment: another attempt would end the same way. */
const NEVER = new Set(["not_serializable", "too_large", "call_in_step", "cancelled"]);

const NETWORK_CODES = new Set([
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
]);

interface ErrorFacts {
  readonly name: unknown;
  readonly code: unknown;
  readonly status: unknown;
  readonly cause: unknown;
}

function factsOf(error: unknown): ErrorFacts {
  if (typeof error !== "object" || error === null) return { name: null, code: null, status: null, cause: null };
  const { name, code, status, statusCode, response, cause } = error as Record<string, unknown>;
  const nested =
    typeof response === "object" && response !== null ? (response as { status?: unknown }).status : undefined;
  return { name, code, status: status ?? statusCode ?? nested, cause };
}

function isTransient(facts: ErrorFacts): boolean {
  if (facts.name === "RetryableError" || facts.name === "TimeoutError" || facts.code === "step_timeout") return true;
  if (NETWORK_CODES.has(String(facts.code)) || isTransientStatus(facts.status)) return true;
  // fetch reports a refused connection as TypeError("fetch failed") with the network error as its cause.
  return (
    typeof facts.cause === "object" &&
    facts.cause !== null &&
    NETWORK_CODES.has(String((facts.cause as { code?: unknown }).code))
  );
}

function isTransientStatus(status: unknown): boolean {
  return (
    typeof status === "number" &&
    (status === 408 || status === 425 || status === 429 || (status >= 500 && status <= 599))
  );
}

/** What the error itself asks for: `retryAfter` of RetryableError, or a Retry-After header in seconds. */
function retryAfterMs(error: unknown): number | null {
  if (typeof error !== "object" || error === null) return null;
  const { retryAfter, headers, response } = error as Record<string, unknown>;
  if (typeof retryAfter === "number" || typeof retryAfter === "string") return readableMs(retryAfter);
  const header = headerOf(headers) ?? headerOf((response as { headers?: unknown } | undefined)?.headers);
  const seconds = Number(header);
  return header !== null && Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null;
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
  if (typeof headers !== "object" || headers === null) return null;
  const get = (headers as { get?: unknown }).get;
  const value: unknown =
    typeof get === "function" ? get.call(headers, "retry-after") : (headers as Record<string, unknown>)["retry-after"];
  return typeof value === "string" || typeof value === "number" ? String(value) : null;
}
