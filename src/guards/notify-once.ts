import type { StepInfo } from "../core/context.ts";
import type { EffectSpec } from "../core/effect.ts";
import { asDetected, lookFirst } from "./look-first.ts";

export interface NotifyOnceOptions<T> {
  /** What was sent under this key, as `send` returned it; `undefined`, `null` or `false`: nothing. Must not write. */
  readonly sent: (key: string, info: StepInfo) => T | null | undefined | false | Promise<T | null | undefined | false>;
  /** Sends the message so that `sent` finds it by this key from then on, and returns a receipt. */
  readonly send: (key: string, info: StepInfo) => T | Promise<T>;
}

/**
 * Sends a message once for its run and step.
 *
 * ```ts
 * const mail = { sent: (key) => outbox.get(key), send: (key) => outbox.send({ key, to, subject }) };
 * await ctx.effect("thank", notifyOnce(mail));
 * ```
 */
export function notifyOnce<T>({ sent, send }: NotifyOnceOptions<T>): EffectSpec<T> {
  return lookFirst<T>({
    detect: async (info) => asDetected(await sent(info.key, info)),
    act: (info) => send(info.key, info),
  });
}
