// Guards look before they act, in `do` as well: so they hold wherever it is called from, also in a plain step.
import type { StepInfo } from "../core/context.ts";
import type { EffectSpec } from "../core/effect.ts";
import type { Detected } from "../core/undoable-call.ts";

export interface Looking<T> {
  detect(info: StepInfo): Promise<Detected<T>>;
  act(info: StepInfo): T | Promise<T>;
}

export function lookFirst<T>({ detect, act }: Looking<T>): EffectSpec<T> {
  return {
    async do(info) {
      const known = await detect(info);
      if (known.found) return known.value;
      // Whoever has lost the run while it looked leaves the rest to its successor.
      info.signal.throwIfAborted();
      return act(info);
    },
    class: "write",
    detect,
  };
}

/** What a search came to: nothing is `undefined` or `null`, or `false` for those who only say whether. */
export function asDetected<T>(found: T | null | undefined | false): Detected<T> {
  return found === undefined || found === null || found === false ? { found: false } : { found: true, value: found };
}
