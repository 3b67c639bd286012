import { readProperty } from "../base/errors.ts";
import type { Amounts } from "../core/budget.ts";

/** What one call of a model used. What the provider does not tell is 0. */
export interface ModelUsage {
  /** All tokens of the prompt, cached ones among them. */
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
}

/** What a call of a model costs: `({ inputTokens, outputTokens }) => ({ usd: … })`. A pure function. */
export type Price = (usage: ModelUsage) => Amounts;

const NO_USAGE: ModelUsage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, totalTokens: 0 };

/** So little that no limit notices, and enough to be refused where a limit is used up: a millionth is the smallest amount that budgets know. */
const A_TRACE = 1e-6;

/** What a call has spent. */
export function spentBy(usage: unknown, price: Price | undefined): Amounts {
  const used = usageOf(usage);
  return { tokens: used.totalTokens, ...price?.(used) };
}

/** What a call reserves where nobody says how much it may take: a trace of each unit, so that it does not begin once a budget is used up. */
export function leastSpend(price: Price | undefined): Amounts {
  const units = Object.keys(spentBy(NO_USAGE, price));
  return Object.fromEntries(units.map((unit) => [unit, unit === "tokens" ? 1 : A_TRACE]));
}

function usageOf(usage: unknown): ModelUsage {
  const inputTokens = countOf(usage, "inputTokens", "total");
  const outputTokens = countOf(usage, "outputTokens", "total");
  const cachedInputTokens = countOf(usage, "inputTokens", "cacheRead");
  return { inputTokens, cachedInputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
}

function countOf(usage: unknown, side: string, part: string): number {
  const count = readProperty(readProperty(usage, side), part);
  return typeof count === "number" && count >= 0 && count < Number.POSITIVE_INFINITY ? count : 0;
}
