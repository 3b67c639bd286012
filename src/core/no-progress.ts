// No progress
// A loop that makes the same call again and again, and gets the same answer, will not get another one. What is compared are digests of recorded
// values, so replay refuses where the run was refused.
import { PawlError } from "../base/errors.ts";
import { encodePayload } from "./draft.ts";
import type { Host } from "./host.ts";

export interface NoProgress {
  /** How many equal results in a row are enough: the next call is refused with `no_progress`. */
  readonly repeats: number;
  /** What the call is about. Another value begins anew. */
  readonly args?: unknown;
}

interface Streak {
  readonly args: string;
  result: string | null;
  length: number;
}

export class Streaks {
  readonly #run: string;
  readonly #host: Host;
  readonly #streaks = new Map<string, Streak>();

  constructor(run: string, host: Host) {
    this.#run = run;
    this.#host = host;
  }

  /** Makes the call, unless its last results have all been the same. */
  watch(name: string, { repeats, args }: NoProgress, call: () => Promise<unknown>): Promise<unknown> {
    if (!Number.isSafeInteger(repeats) || repeats < 1)
      throw new PawlError(
        "invalid_argument",
        `noProgress.repeats of step "${name}" is ${repeats}. Give a whole number of at least 1.`,
        { fields: { step: name } },
      );
    const streak = this.#streakOf(name, this.#host.digest(encodePayload(args, `noProgress.args of step "${name}"`)));
    if (streak.length >= repeats) return Promise.reject(noProgress(this.#run, name, streak.length));
    return call().then(
      (result) => {
        this.#extend(streak, this.#host.digest(encodePayload(result, `result of step "${name}"`)));
        return result;
      },
      (error: unknown) => {
        // A failure is no result: whoever calls again may hope for one.
        streak.length = 0;
        throw error;
      },
    );
  }

  #streakOf(name: string, args: string): Streak {
    const known = this.#streaks.get(name);
    if (known?.args === args) return known;
    const streak: Streak = { args, result: null, length: 0 };
    this.#streaks.set(name, streak);
    return streak;
  }

  #extend(streak: Streak, result: string): void {
    streak.length = streak.result === result ? streak.length + 1 : 1;
    streak.result = result;
  }
}

function noProgress(run: string, step: string, repeats: number): PawlError {
  const message =
    `Step "${step}" of run ${run} gave the same result ${repeats} times in a row for the same arguments: going on makes no progress. ` +
    "Catch this error to do something else, or let the run fail.";
  return new PawlError("no_progress", message, { fields: { run, step, repeats } });
}
