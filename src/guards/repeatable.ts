import type { StepInfo } from "../core/context.ts";
import type { EffectSpec } from "../core/effect.ts";

/**
 * Something that may be done twice as well as once, by its nature or because the outside knows the key: it is simply done again after a crash.
 *
 * ```ts
 * await ctx.effect("ask ada", repeatable(() => review.addReviewer("ada")));
 * ```
 */
export function repeatable<T>(fn: (info: StepInfo) => T | Promise<T>): EffectSpec<T> {
  return { do: fn, class: "write", idempotent: true };
}
