// Errors of providers
// What of them is recorded, and which deserve another call.
import { messageOf, readProperty } from "../base/errors.ts";
import { factsOf, isTransient, type Retry, type RetryOptions } from "../core/retry.ts";

const MOST_CHARS = 2000;
const MOST_CAUSES = 4;

/**
 * The error as it is recorded. Those of the AI SDK carry the request, which is the whole conversation, and the answer: they are reduced to what helps a
 * reader and decides about another attempt. Others stay as they are.
 */
export function withoutRequest(error: unknown): unknown {
  return isOfProvider(error, 0) ? reduced(error, 0) : error;
}

function isOfProvider(error: unknown, depth: number): boolean {
  if (typeof error !== "object" || error === null || depth > MOST_CAUSES) return false;
  const isMarked = typeof readProperty(error, "isRetryable") === "boolean";
  const hasName = String(readProperty(error, "name")).startsWith("AI_");
  return isMarked || hasName || isOfProvider(readProperty(error, "cause"), depth + 1);
}

function reduced(error: unknown, depth: number): Error {
  const cause = readProperty(error, "cause");
  const kept = cause === undefined || cause === null || depth >= MOST_CAUSES;
  const plain = new Error(shortened(messageOf(error)), kept ? undefined : { cause: reduced(cause, depth + 1) });
  plain.name = String(readProperty(error, "name") ?? "Error");
  for (const field of ["code", "status", "statusCode", "isRetryable", "url", "responseBody"]) {
    const value = readProperty(error, field);
    if (typeof value === "string") Object.assign(plain, { [field]: shortened(value) });
    if (typeof value === "number" || typeof value === "boolean") Object.assign(plain, { [field]: value });
  }
  return Object.assign(plain, whenAgain(error));
}

/** When the provider wants to be asked again, in the words that the engine knows. */
function whenAgain(error: unknown): { readonly retryAfter?: number; readonly headers?: object } {
  const headers =
    readProperty(error, "responseHeaders") ?? readProperty(readProperty(error, "cause"), "responseHeaders");
  const ms = Number.parseFloat(String(readProperty(headers, "retry-after-ms")));
  if (ms >= 0) return { retryAfter: ms };
  const after = readProperty(headers, "retry-after");
  return typeof after === "string" ? { headers: { "retry-after": after } } : {};
}

function shortened(text: string): string {
  return text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)}…` : text;
}

/** The retries of a model call: the provider's word decides, where it has one, unless somebody has given a rule of their own. */
export function retriesOf(retry: Retry | undefined, isGivenUp: () => boolean): RetryOptions {
  const given = retry === false ? { max: 0 } : typeof retry === "number" ? { max: retry } : retry;
  return { on: (error) => !isGivenUp() && isWorthAnotherCall(error), ...given };
}

function isWorthAnotherCall(error: unknown): boolean {
  const isRetryable = readProperty(error, "isRetryable");
  return typeof isRetryable === "boolean" ? isRetryable : isTransient(factsOf(error));
}
