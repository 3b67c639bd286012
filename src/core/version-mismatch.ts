// Version mismatches
// What people are told when a run and the code that is there do not belong together, and what they may choose. New logic is never applied to old
// state without somebody's word (S0-49).
import { PawlError } from "../base/errors.ts";
import type { Parked } from "./journal.ts";

/** Resume under the old definition, start afresh under the new one, migrate; or give the run up. */
export const VERSION_CHOICES: readonly string[] = ["old", "fresh", "migrate", "cancel"];

export interface Mismatch {
  readonly run: string;
  readonly workflow: string;
  /** `null`: it does not say. */
  readonly saved: string | null;
  /** The newest that is there. */
  readonly current: string;
}

/** Names both versions and the choices. */
function mismatchText({ run, workflow, saved, current }: Mismatch): string {
  const [began, old] =
    saved === null
      ? ["does not say which version it began with", "that it began with"]
      : [`began with version ${saved}`, `${saved}, or a later patch of it`];
  return [
    `Run ${run} of workflow "${workflow}" ${began}; what is here is ${current}, which must not go on with it. Choose one:`,
    `1. "old": go on under the old definition, as soon as a worker has ${old}.`,
    `2. "fresh": start afresh under ${current} with the same input; this run is cancelled and kept.`,
    `3. "migrate": bring its state to ${current}, with a function in \`migrations\` of the workflow, or by hand with \`pawl state edit\`.`,
    `Or "cancel" it.`,
  ].join("\n");
}

export function versionMismatch(mismatch: Mismatch): PawlError {
  return new PawlError("version_mismatch", mismatchText(mismatch), {
    fields: { ...mismatch, choices: VERSION_CHOICES },
  });
}

export function parkedMismatch(mismatch: Mismatch): Parked {
  const { saved, current } = mismatch;
  return {
    reason: "version_mismatch",
    message: mismatchText(mismatch),
    choices: VERSION_CHOICES,
    detail: { saved, current, choices: VERSION_CHOICES },
  };
}

/** Somebody wants it migrated, and this process has no function for that: one that has does it. */
export function pendingMigration({ run, saved, current }: Mismatch, by: string): Parked {
  return {
    reason: "migration_pending",
    message: `Run ${run} is to be migrated from version ${saved} to ${current}. A worker that has the migration does it by itself; if none comes, choose again.`,
    choices: VERSION_CHOICES,
    detail: { saved, current, choices: VERSION_CHOICES, by },
  };
}

export interface Change {
  readonly run: string;
  readonly workflow: string;
  readonly version: string;
  /** Structural hashes: what the run began with, and what is here. */
  readonly saved: string;
  readonly current: string | null;
}

/** The code says that it is what the run began with, and is not. */
export function parkedChange({ run, workflow, version, saved, current }: Change): Parked {
  return {
    reason: "definition_changed",
    message: [
      `Run ${run} cannot go on: definition changed, version did not. Workflow "${workflow}" ${version} had structure ${saved} when the run began and has ${current ?? "none"} here. Choose one:`,
      `1. "retry": after the old definition is back under ${version} (then it goes on by itself), or the new one has a version of its own.`,
      `2. "fresh": start afresh under the new definition with the same input; this run is cancelled and kept.`,
      `Or "cancel" it.`,
    ].join("\n"),
    choices: ["retry", "fresh", "cancel"],
    detail: { version, saved, current },
  };
}
