// Structure
// What of a definition decides whether a run that was begun with it may go on with another one, as one hash: a change that its version does not
// tell of is found by it (S0-48). Plain functions have nothing to show but what they use; replay watches over the rest.
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import { textHash } from "../base/random.ts";
import type { Uses } from "./journal.ts";
import { stableDigest } from "./stable-digest.ts";
import type { Workflow } from "./workflow.ts";

/** The same workflow, whose structure is this plain value: phases, steps, routing, gates and their options. Functions are no part of it. */
export function withStructure<I, O>(workflow: Workflow<I, O>, shape: unknown): Workflow<I, O> {
  const { definition } = workflow;
  return { ...workflow, definition: { ...definition, structure: structureOf(shape, definition.uses), shape } };
}

/** `null` where there is nothing to compare. */
export function structureOf(shape: unknown, uses: Uses | null): string | null {
  return shape === null && uses === null ? null : stableDigest(textHash, { shape, uses });
}

/** Versions by kind and name, as somebody has given them. */
export function usesOf(given: unknown, workflow: string): Uses | null {
  if (given === undefined) return null;
  const where = `uses of workflow "${workflow}"`;
  const kinds = Object.entries(recordAt(given, where, "uses"));
  return Object.fromEntries(
    kinds.map(([kind, versions]) => {
      assertName(`kind in ${where}`, kind);
      const named = Object.entries(recordAt(versions, where, `uses.${kind}`));
      for (const [name, version] of named) assertVersion(version, where, `uses.${kind}.${name}`);
      return [kind, Object.fromEntries(named)];
    }),
  ) as Uses;
}

function recordAt(value: unknown, where: string, field: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw invalid(where, field, 'an object such as { prompts: { review: "3" } }');
}

function assertVersion(value: unknown, where: string, field: string): void {
  if (typeof value !== "string" || value === "") throw invalid(where, field, 'a version as text, such as "3"');
}

function invalid(where: string, field: string, wanted: string): PawlError {
  return new PawlError("invalid_argument", `The ${where}: \`${field}\` must be ${wanted}.`, { fields: { field } });
}
