// Seeds
// What chance and idempotency keys of a run are derived from. Parts are joined by "#" and "/", which no name may hold, so that two runs,
// generations or steps never draw from the same stream (P6, P10).
import { type SeededRandom, seededRandom } from "../base/random.ts";
import type { Replay } from "./replay.ts";

/** A later generation is another run to the world outside: a provider must not swallow a real second charge (P10). */
export function generationSeed(run: string, generation: number): string {
  return `${run}#${generation}`;
}

/** What outside systems may use to recognise a repeated attempt of a step. */
export function idempotencyKey(seed: string, key: string): string {
  return `${seed}/${key}`;
}

/** The seed of one attempt's own stream (P7). No attempt holds an "@", so the last one separates. */
export function attemptSeed(idempotencyKey: string, attempt: number): string {
  return `${idempotencyKey}@${attempt}`;
}

/** The seed of a run at the place in the journal that its body has reached. */
export class Seeds {
  #seed: string;
  #chance: SeededRandom | null = null;

  constructor(run: string) {
    this.#seed = run;
  }

  /** What follows draws from another seed: a start, a generation, or a fork point. */
  reseed(seed: string): void {
    this.#seed = seed;
    this.#chance = null;
  }

  /** What keys are derived from at this point: a fork has its own from its fork point on. */
  seed(replay: Replay): string {
    replay.cursor.peek();
    return replay.forkSeed ?? this.#seed;
  }

  chance(replay: Replay): SeededRandom {
    replay.cursor.peek();
    this.#chance ??= seededRandom(this.#seed);
    return this.#chance;
  }
}
