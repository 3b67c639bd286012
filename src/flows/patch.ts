// Patches
// How what a step changes comes into the state: by the rule of each field. Without a rule a patch replaces the value, and two parallel steps that
// patch the same field are in conflict, so that none of them loses what it has found.
import { PawlError } from "../base/errors.ts";
import { isPlainRecord } from "../core/stable-digest.ts";

export type State = Readonly<Record<string, unknown>>;

/**
 * How a patch of a field joins what is there. "replace": the last one wins. "append": its items are added. "merge": its properties are. "max": the
 * greater number stays. `{ by }`: items with the same value of that property take each other's place, others are added. Or a function.
 */
export type MergeRule<V> =
  | "replace"
  | (V extends readonly unknown[] ? "append" | { readonly by: string } : never)
  | (V extends readonly unknown[] ? never : V extends object ? "merge" : never)
  | (V extends number ? "max" : never)
  | ((current: V, patched: V) => V);

export type MergeRules<S> = { readonly [K in keyof S]?: MergeRule<S[K]> };

/** A rule, whatever the type of its field. */
type AnyRule =
  | "replace"
  | "append"
  | "merge"
  | "max"
  | { readonly by: string }
  | ((current: unknown, patched: unknown) => unknown);

export type AnyRules = Readonly<Record<string, AnyRule | undefined>>;

/** A patch, and the step that has made it. */
export interface StepPatch {
  readonly step: string;
  readonly patch: State;
}

/** What the fields become that the patches name, each patch after the other. */
export function patched(state: State, patches: readonly StepPatch[], rules: AnyRules): State {
  assertNoConflict(patches, rules);
  const changed: Record<string, unknown> = {};
  for (const { step, patch } of patches)
    for (const [field, value] of Object.entries(patch)) {
      const current = Object.hasOwn(changed, field) ? changed[field] : state[field];
      changed[field] = merged(rules[field] ?? "replace", current, value, step, field);
    }
  return changed;
}

function assertNoConflict(patches: readonly StepPatch[], rules: AnyRules): void {
  const owners = new Map<string, string>();
  for (const { step, patch } of patches)
    for (const field of Object.keys(patch)) {
      const other = owners.get(field);
      owners.set(field, step);
      if (other === undefined || rules[field] !== undefined) continue;
      throw new PawlError(
        "patch_conflict",
        `The parallel steps "${other}" and "${step}" both change "${field}", and nothing says how that is merged. Give the machine a rule: merge: { ${field}: "append" }, or "replace", "merge", "max", { by } or a function.`,
        { fields: { field, steps: [other, step] } },
      );
    }
}

function merged(rule: AnyRule, current: unknown, value: unknown, step: string, field: string): unknown {
  if (typeof rule === "function") return rule(current, value);
  if (rule === "replace") return value;
  if (rule === "max") {
    if (typeof current === "number" && typeof value === "number") return Math.max(current, value);
    throw unfit(step, field, '"max" needs numbers');
  }
  if (rule === "merge") {
    if (isPlainRecord(current) && isPlainRecord(value)) return { ...current, ...value };
    throw unfit(step, field, '"merge" needs plain objects');
  }
  if (!Array.isArray(current) || !Array.isArray(value))
    throw unfit(step, field, `${rule === "append" ? '"append"' : "{ by }"} needs lists`);
  return rule === "append" ? [...current, ...value] : upserted(current, value, rule.by);
}

function upserted(current: readonly unknown[], items: readonly unknown[], by: string): unknown[] {
  const keyOf = (item: unknown) => (item as Record<string, unknown> | null)?.[by];
  const kept = current.map((item) => items.findLast((one) => keyOf(one) === keyOf(item)) ?? item);
  const added = items.filter(
    (item, i) =>
      !current.some((one) => keyOf(one) === keyOf(item)) &&
      !items.slice(i + 1).some((one) => keyOf(one) === keyOf(item)),
  );
  return [...kept, ...added];
}

function unfit(step: string, field: string, what: string): PawlError {
  return new PawlError(
    "invalid_transition",
    `Step "${step}" patches "${field}" with something that its rule cannot merge: ${what}. Correct the patch or the rule.`,
    { fields: { step, field } },
  );
}
