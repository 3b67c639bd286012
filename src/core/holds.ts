import { PawlError } from "../base/errors.ts";
import { keyOf } from "../base/sealed-text.ts";

/** Runs that retention must leave alone, whatever their age. */
export interface HoldKeeper {
  /** Keeps a run; one that is kept already stays kept as it is. Answers the hold that stands, or `null` if there is no such run. */
  hold(run: string, hold: NewHold): Promise<HoldRow | null>;
  /** Answers the hold that has ended, or `null` if there was none. */
  releaseHold(run: string): Promise<HoldRow | null>;
  /** By the ids of their runs. */
  holds(query: HoldQuery): Promise<HoldRow[]>;
}

export interface NewHold {
  readonly who: string;
  readonly why: string;
}

export interface HoldRow extends NewHold {
  readonly run: string;
  readonly at: number;
}

export interface HoldQuery {
  readonly run?: string;
  /** Only those behind this run's id. */
  readonly after?: string;
  readonly limit: number;
}

const LONGEST_TEXT = 1000;

/** Refuses a hold that does not say whose it is, or why. */
export function assertHold(hold: NewHold): void {
  for (const field of ["who", "why"] as const) {
    const text = hold[field];
    if (typeof text === "string" && text.trim() !== "" && text.length <= LONGEST_TEXT) continue;
    // What is sealed was looked at before, and is longer for it.
    if (field === "why" && typeof text === "string" && keyOf(text) !== null) continue;
    throw new PawlError(
      "invalid_argument",
      `\`${field}\` of a hold is ${JSON.stringify(text)}. Give a text of 1 to ${LONGEST_TEXT} characters.`,
      { fields: { field } },
    );
  }
}
