// Who has to see to runs that need somebody, by what is the matter with them.
import { PawlError } from "../base/errors.ts";
import type { RunState } from "./transition.ts";

/** `null`: nobody by name. */
export interface Owners {
  /** Runs that will not move until a person decides, and runs that no worker has. */
  readonly stuck: string | null;
  /** Runs that wait: for people, signals, time. */
  readonly waiting: string | null;
  readonly failed: string | null;
  /** Runs that undo what they have done, and what could not be undone. */
  readonly compensating: string | null;
}

/** One for all, or one for each of what may be the matter. */
export type OwnerOption = string | { readonly [Matter in keyof Owners]?: string };

export const MATTERS: readonly (keyof Owners)[] = ["stuck", "waiting", "failed", "compensating"];

const NOBODY: Owners = { stuck: null, waiting: null, failed: null, compensating: null };
const OWNER_LENGTH = 200;

export function ownersOf(workflow: string, owner: OwnerOption | undefined): Owners {
  if (owner === undefined) return NOBODY;
  if (typeof owner !== "object" || owner === null) {
    const one = named(workflow, "owner", owner);
    return { stuck: one, waiting: one, failed: one, compensating: one };
  }
  const known: readonly string[] = MATTERS;
  const unknown = Object.keys(owner).find((matter) => !known.includes(matter));
  if (unknown !== undefined)
    throw new PawlError(
      "invalid_argument",
      `\`owner.${unknown}\` of workflow "${workflow}" is not known. Give some of: ${MATTERS.join(", ")}.`,
      { fields: { field: `owner.${unknown}` } },
    );
  const given = MATTERS.filter((matter) => owner[matter] !== undefined);
  const names = given.map((matter) => [matter, named(workflow, `owner.${matter}`, owner[matter])]);
  return { ...NOBODY, ...Object.fromEntries(names) };
}

/** It is shown on one line. */
function named(workflow: string, field: string, owner: unknown): string {
  if (typeof owner === "string" && /^[^\p{Cc}\p{Zl}\p{Zp}]+$/u.test(owner) && owner.length <= OWNER_LENGTH)
    return owner;
  throw new PawlError(
    "invalid_argument",
    `\`${field}\` of workflow "${workflow}" is ${JSON.stringify(owner)}. Give a name or an address of up to ${OWNER_LENGTH} characters, on one line.`,
    { fields: { field } },
  );
}

const MATTER_OF: Readonly<Partial<Record<RunState, keyof Owners>>> = {
  parked: "stuck",
  waiting: "waiting",
  failed: "failed",
  compensating: "compensating",
};

/** Who has to see to a run in this state; `null`: nobody has to, or nobody is named. */
export function ownerIn(owners: Owners | undefined, state: RunState): string | null {
  const matter = MATTER_OF[state];
  return matter === undefined || owners === undefined ? null : owners[matter];
}

/** The states in which somebody has to see to a run. */
export const OWNED_STATES: readonly RunState[] = Object.keys(MATTER_OF) as RunState[];
