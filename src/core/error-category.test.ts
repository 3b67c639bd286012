import { describe, expect, it } from "vitest";
import { PawlError, RetryableError, TerminalError } from "../base/errors.ts";
import { ERROR_CATEGORIES, type ErrorCategory, errorCategory } from "./error-category.ts";
import { DEFAULT_RETRY, isRetryable } from "./retry.ts";

const withStatus = (status: number) => Object.assign(new Error("answered"), { status });
const withCode = (code: string) => Object.assign(new Error("failed"), { code });

const SAMPLES: readonly (readonly [ErrorCategory, string, unknown])[] = [
  ["transient", "RetryableError", new RetryableError("again")],
  ["transient", "a step that timed out", new PawlError("step_timeout", "late")],
  ["transient", "429", withStatus(429)],
  ["transient", "408", withStatus(408)],
  ["transient", "a serialization failure", withCode("40001")],
  ["dependency", "a refused connection", withCode("ECONNREFUSED")],
  ["dependency", "fetch that failed", new TypeError("fetch failed", { cause: withCode("ENOTFOUND") })],
  ["dependency", "503", withStatus(503)],
  ["dependency", "an open circuit breaker", new PawlError("circuit_open", "open")],
  ["resource", "a full disk", withCode("ENOSPC")],
  ["resource", "a budget", new PawlError("budget_exceeded", "used up")],
  ["resource", "a large value", new PawlError("too_large", "large")],
  ["validation", "400", withStatus(400)],
  ["validation", "404", withStatus(404)],
  ["validation", "a schema", new PawlError("schema_mismatch", "wrong")],
  ["logic", "TypeError", new TypeError("x is not a function")],
  ["logic", "TerminalError, whatever it holds", Object.assign(new TerminalError("no"), { status: 503 })],
  ["logic", "no error at all", "just text"],
];

describe("categories of errors", () => {
  it.each(SAMPLES)("X-26 %s: %s", (category, _what, error) => {
    expect(errorCategory(error)).toBe(category);
  });

  it("X-26 the table says what the retry policy does by default", () => {
    for (const [category, , error] of SAMPLES)
      expect(isRetryable(DEFAULT_RETRY, error)).toBe(ERROR_CATEGORIES[category].retry);
  });

  it("X-26 every category says when effects are undone, and what it means", () => {
    for (const { compensate, means, retry } of Object.values(ERROR_CATEGORIES)) {
      expect(compensate).toBe(retry ? "when retries are used up" : "at once");
      expect(means.length).toBeGreaterThan(10);
    }
  });
});
