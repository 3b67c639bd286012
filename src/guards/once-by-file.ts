import type { StepInfo } from "../core/context.ts";
import type { EffectSpec } from "../core/effect.ts";
import { lookFirst } from "./look-first.ts";
import { readPassed, writeResult } from "./result-file.ts";

/**
 * Runs `fn` once for this result file: while it is there and says `"passed": true`, its `value` is the result, in other runs, too. Put the
 * run's id into the path for once in a run. A process that dies inside `fn`, before the file is written, runs it again.
 *
 * ```ts
 * await ctx.effect("train", onceByFile("out/model.result.json", () => train("out/model.bin")));
 * ```
 */
export function onceByFile<T>(path: string, fn: (info: StepInfo) => T | Promise<T>): EffectSpec<T> {
  return lookFirst<T>({
    async detect() {
      const result = await readPassed(path);
      return result === null ? { found: false } : { found: true, value: result["value"] as T };
    },
    async act(info) {
      const value = await fn(info);
      await writeResult(path, { passed: true, value }, info);
      return value;
    },
  });
}
