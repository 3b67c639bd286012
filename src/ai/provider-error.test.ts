import { expect, it } from "vitest";
import { retriesOf, withoutRequest } from "./provider-error.ts";

const apiError = (fields: object = {}) =>
  Object.assign(new Error("busy"), { name: "AI_APICallError", isRetryable: true, statusCode: 429, ...fields });

it("X-20 nothing of a request is left in an error, however deep it is", () => {
  const secret = { requestBodyValues: { prompt: "secret" }, data: "secret", responseHeaders: { a: "secret" } };
  const wrapped = new Error("gateway", { cause: new Error("inner", { cause: apiError(secret) }) });
  const reduced = withoutRequest(wrapped) as Error & { cause: Error & { cause: object } };
  expect(JSON.stringify(reduced, Object.getOwnPropertyNames(reduced))).not.toContain("secret");
  expect(reduced.cause.cause).toMatchObject({ name: "AI_APICallError", statusCode: 429, isRetryable: true });
  expect(JSON.stringify(reduced.cause.cause)).not.toContain("secret");
  expect(withoutRequest(apiError({ responseBody: "x".repeat(5000) }))).toMatchObject({
    responseBody: `${"x".repeat(2000)}…`,
  });
});

it("errors of others stay as they are", () => {
  for (const error of [new TypeError("mine"), "text", null, undefined]) expect(withoutRequest(error)).toBe(error);
});

it("says when to come again in the engine's words", () => {
  const after = (responseHeaders: object) => withoutRequest(apiError({ responseHeaders }));
  expect(after({ "retry-after-ms": "250", "retry-after": "9" })).toMatchObject({ retryAfter: 250 });
  expect(after({ "retry-after": "9" })).toMatchObject({ headers: { "retry-after": "9" } });
  expect(after({})).not.toHaveProperty("retryAfter");
});

it("the provider's word decides about another call, then the engine's rule, and a rule of the user's before both", () => {
  const isAgain = (retry: Parameters<typeof retriesOf>[0], error: unknown, isGivenUp = false) =>
    (retriesOf(retry, () => isGivenUp).on as (error: unknown) => boolean)(error);
  expect(isAgain(undefined, apiError())).toBe(true);
  expect(isAgain(2, apiError(), true)).toBe(false);
  expect(isAgain(undefined, { isRetryable: false, statusCode: 503 })).toBe(false);
  expect(isAgain(undefined, { statusCode: 503 })).toBe(true);
  expect(isAgain(undefined, { statusCode: 400 })).toBe(false);
  expect(isAgain({ on: () => true }, { statusCode: 400 })).toBe(true);
  expect([retriesOf(false, () => false).max, retriesOf(4, () => false).max]).toEqual([0, 4]);
});
