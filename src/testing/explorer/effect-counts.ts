// What effects are told apart by, and how often each has happened.
import { inspect } from "node:util";
import { type Effect, isFlat } from "../recorder.ts";

/** Gives effects that count as one thing the same text; `null`: this one is not counted. */
export type Identify = (effect: Effect) => string | null;

export function countEffects(requests: readonly Effect[], identify: Identify): Map<string, number> {
  const counts = new Map<string, number>();
  for (const effect of requests) {
    const identity = effect.did ? identify(effect) : null;
    if (identity !== null) counts.set(identity, (counts.get(identity) ?? 0) + 1);
  }
  return counts;
}

/** Whether plainly the same has happened in the same order, as in most histories: then nothing needs to be counted. */
export function hasSameEffects(first: readonly Effect[], second: readonly Effect[]): boolean {
  let at = 0;
  for (const effect of first) {
    if (!effect.did) continue;
    while (second[at]?.did === false) at++;
    const other = second[at++];
    if (other === undefined || !isSameEffect(effect, other)) return false;
  }
  return !second.slice(at).some(({ did }) => did);
}

/** Whether one step has asked for the same in the same way, with the same answer. */
export function isSameRequest(a: Effect, b: Effect | undefined): boolean {
  if (a === b) return true;
  if (b === undefined || a.key !== b.key || a.did !== b.did || a.isAfterCancel !== b.isAfterCancel) return false;
  return a.run === b.run && a.step === b.step && a.line === b.line && isSameEffect(a, b);
}

function isSameEffect(a: Effect, b: Effect): boolean {
  if (a === b) return true;
  if (a.name !== b.name || !isFlat(a.details) || !isFlat(b.details)) return false;
  if (Object.is(a.details, b.details)) return true;
  return isObject(a.details) && isObject(b.details) && hasSameFields(a.details, b.details);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function hasSameFields(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  for (const name in a) if (!Object.hasOwn(b, name) || !Object.is(a[name], b[name])) return false;
  for (const name in b) if (!Object.hasOwn(a, name)) return false;
  return true;
}

/** A history begins with the effects of another one, the very same objects: their texts are made once. */
const identities = new WeakMap<Effect, string>();

export function byDetails(effect: Effect): string {
  const known = identities.get(effect);
  if (known !== undefined) return known;
  const identity = detailed(effect);
  identities.set(effect, identity);
  return identity;
}

export function byKey({ name, key }: Effect): string {
  return key === null ? `"${name}"` : `"${name}" with key ${key}`;
}

export function byName({ name }: Effect): string {
  return `"${name}"`;
}

/** An effect that has not happened equally often in two histories. */
export interface UnequalEffect {
  readonly effect: Effect;
  readonly identity: string;
  readonly counts: readonly [number, number];
}

/** Effects of the first that are counted otherwise in the second, or the other way round. */
export function unequalEffects(
  first: readonly Effect[],
  second: readonly Effect[],
  identify: Identify,
): readonly UnequalEffect[] {
  const [one, two] = [countEffects(first, identify), countEffects(second, identify)];
  const unequal = new Map<string, Effect>();
  for (const effect of [...first, ...second]) {
    const identity = effect.did ? identify(effect) : null;
    if (identity === null || one.get(identity) === two.get(identity) || unequal.has(identity)) continue;
    unequal.set(identity, effect);
  }
  return [...unequal].map(([identity, effect]) => ({
    effect,
    identity,
    counts: [one.get(identity) ?? 0, two.get(identity) ?? 0],
  }));
}

function detailed({ name, details }: Effect): string {
  if (details === undefined) return `"${name}"`;
  if (isFlat(details)) return `"${name}" ${flatText(details)}`;
  return `"${name}" ${inspect(details, { depth: null, sorted: true, breakLength: Number.POSITIVE_INFINITY })}`;
}

function flatText(details: unknown): string {
  if (typeof details !== "object" || details === null) return JSON.stringify(details) ?? String(details);
  const fields = Object.entries(details).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return `{ ${fields.sort().join(", ")} }`;
}
