// What an agent has spent
// Kept in its session, so that a limit holds over restarts where no engine keeps budgets.
import { PawlError } from "../base/errors.ts";
import type { Amounts } from "../core/budget.ts";
import type { SpendingLimits } from "./adapter.ts";
import type { Price, Usage } from "./model.ts";
import type { Session } from "./session.ts";
import { type Slice, slice } from "./slice.ts";

/** What all model calls of a session have spent so far: one item. */
export const spentSlice: Slice<Amounts> = slice<Amounts>("spent");

/** What a call spends, in the units of budgets. */
export function amountsOf(usage: Usage, price: Price | undefined): Amounts {
  const { inputTokens, outputTokens } = usage;
  return { tokens: inputTokens + outputTokens, inputTokens, outputTokens, ...price?.(usage) };
}

export function addSpent(session: Session, amounts: Amounts): void {
  const sum: Record<string, number> = { ...session.query(spentSlice).latest() };
  for (const [unit, amount] of Object.entries({ ...amounts, calls: 1 })) sum[unit] = (sum[unit] ?? 0) + amount;
  session.dispatch(spentSlice.initialised([sum]));
}

/** Throws `budget_exceeded` if a limit is reached: the call that would pass it is not made. */
export function assertWithin(session: Session, limits: SpendingLimits): void {
  const spent = session.query(spentSlice).latest() ?? {};
  for (const [unit, limit] of Object.entries(limits)) {
    const used = spent[unit] ?? 0;
    if (limit === undefined || used < limit) continue;
    throw new PawlError(
      "budget_exceeded",
      `Session ${session.id} has spent ${used} of ${limit} ${unit}: no call is made any more. Raise the \`budget\` to go on where it was.`,
      { fields: { session: session.id, unit, limit, used } },
    );
  }
}

export function sumOf(a: Usage, b: Usage): Usage {
  const both = (of: (usage: Usage) => number | undefined) => (of(a) ?? 0) + (of(b) ?? 0);
  const cached = both(({ cachedTokens }) => cachedTokens);
  const reasoning = both(({ reasoningTokens }) => reasoningTokens);
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    ...(cached > 0 && { cachedTokens: cached }),
    ...(reasoning > 0 && { reasoningTokens: reasoning }),
  };
}
