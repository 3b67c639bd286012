import type { StepInfo } from "../core/context.ts";
import type { EffectSpec } from "../core/effect.ts";
import { withFileLock } from "./file-lock.ts";
import { asDetected, lookFirst } from "./look-first.ts";

export interface CreateIfAbsentOptions<T> {
  /** The item that is to exist, or nothing (`undefined` or `null`). Must not write. */
  readonly find: (info: StepInfo) => T | null | undefined | Promise<T | null | undefined>;
  /** Creates it. If it fails and the item is there all the same, because another was faster or the answer was lost, that is the one. */
  readonly create: (info: StepInfo) => T | Promise<T>;
  /** A file that is held as a lock from `find` to `create`: for executions on one machine that begin together. Default: none, for an outside that refuses a second item of the name. */
  readonly lock?: string;
}

/**
 * Creates something that may exist once by its name, whoever has made it: a scheduled job, a bucket, a label.
 *
 * ```ts
 * const job = { find: () => jobs.find("nightly"), create: () => jobs.create("nightly", "0 3 * * *") };
 * await ctx.effect("schedule", createIfAbsent(job));
 * ```
 */
export function createIfAbsent<T>({ find, create, lock }: CreateIfAbsentOptions<T>): EffectSpec<T> {
  const detect = async (info: StepInfo) => asDetected(await find(info));
  const act = async (info: StepInfo) => {
    try {
      return await create(info);
    } catch (error) {
      const made = await detect(info).catch(() => ({ found: false }) as const);
      if (made.found) return made.value;
      throw error;
    }
  };
  const spec = lookFirst<T>({ detect, act });
  if (lock === undefined) return spec;
  return { ...spec, do: (info) => withFileLock(lock, info.signal, async () => spec.do(info)) };
}
