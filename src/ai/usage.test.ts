import { expect, it } from "vitest";
import { leastSpend, spentBy } from "./usage.ts";

it("X-13 a call's price is made of what its provider tells, and of nothing where it tells nothing", () => {
  const usage = { inputTokens: { total: 100, cacheRead: 40 }, outputTokens: { total: 7 } };
  const price = ({ inputTokens, cachedInputTokens, outputTokens }: Record<string, number>) => ({
    usd: Number(inputTokens) - Number(cachedInputTokens) + 10 * Number(outputTokens),
  });
  expect(spentBy(usage, price as never)).toEqual({ tokens: 107, usd: 130 });
  expect(spentBy({ inputTokens: { total: undefined }, outputTokens: {} }, undefined)).toEqual({ tokens: 0 });
  expect(spentBy({ inputTokens: { total: Number.POSITIVE_INFINITY } }, undefined)).toEqual({ tokens: 0 });
  expect(spentBy(undefined, () => ({ usd: 0.5 }))).toEqual({ tokens: 0, usd: 0.5 });
});

it("X-13 at least a trace of each unit is reserved, so that nothing begins behind a limit", () => {
  expect(leastSpend(undefined)).toEqual({ tokens: 1 });
  expect(leastSpend(() => ({ usd: 0 }))).toEqual({ tokens: 1, usd: 1e-6 });
});
