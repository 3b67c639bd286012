// What steps save
// A checkpoint joins while its attempt is under way (CP1), is in the store when its step is told so (CP2), and the next attempt is given the newest
// one of its own step, no older one and nobody else's (CP3).
import type { StepInfo } from "../../core/context.ts";
import type { Checkpoint } from "../../core/journal.ts";
import type { Situation } from "./situations.ts";

/** What the steps of simulated programs save. */
export interface SavedPart {
  /** The idempotency key of the step. */
  readonly key: string;
  /** How many parts are done. */
  readonly n: number;
}

export interface SavePorts {
  violated(invariant: string, what: string): void;
  sometimes(what: Situation): void;
}

export class SaveChecks {
  readonly #ports: SavePorts;
  /** How many parts the newest checkpoint in the journal has, by run and the key of its step: a fork has the keys of its source. */
  readonly #newest = new Map<string, number>();

  constructor(ports: SavePorts) {
    this.#ports = ports;
  }

  /** A checkpoint of a step was applied; `current` is the attempt that is under way, 0 for none. */
  took(run: string, step: string, { attempt, value }: Checkpoint, current: number): void {
    const { key, n } = value as SavedPart;
    if (attempt !== current)
      this.#violated("CP1", `attempt ${attempt} of step ${step} saved, and attempt ${current} is under way`);
    if (key !== step) this.#violated("CP1", `what step ${key} saved is recorded for step ${step}`);
    this.#newest.set(`${run} ${step}`, n);
  }

  /** Where an attempt goes on. */
  resumed(run: string, { key, attempt, saved }: StepInfo): number {
    const part = saved as SavedPart | undefined;
    const newest = this.#newest.get(`${run} ${key}`);
    if (part?.n !== newest || (part !== undefined && part.key !== key))
      this.#violated(
        "CP3",
        `attempt ${attempt} of step ${key} goes on from ${JSON.stringify(part)}, its newest checkpoint has ${newest}`,
      );
    if (part !== undefined) this.#ports.sometimes("a step went on from what it had saved");
    return part?.n ?? 0;
  }

  /** A step was told that it is durable. */
  acknowledged(run: string, { key, attempt }: StepInfo, n: number): void {
    const newest = this.#newest.get(`${run} ${key}`) ?? 0;
    if (newest < n)
      this.#violated(
        "CP2",
        `attempt ${attempt} of step ${key} was told that part ${n} is saved, the store has ${newest}`,
      );
  }

  /** A power cut took acknowledged writes. */
  forget(): void {
    this.#newest.clear();
  }

  #violated(invariant: string, what: string): void {
    this.#ports.violated(invariant, what);
  }
}
