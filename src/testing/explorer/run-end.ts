// How a run ended, as far as it must be the same whatever happened on the way
import { inspect, isDeepStrictEqual } from "node:util";
import { jsonCodec } from "../../base/envelope.ts";
import { messageOf, readProperty } from "../../base/errors.ts";
import { ENDS, type Ended, type StoredEntry } from "../../core/journal.ts";
import { openEntry } from "../../core/values.ts";

export interface End {
  readonly type: string;
  /** The output, or the error. */
  readonly value: unknown;
}

/** `null`: the run has not ended. */
export function endOf(run: string, journal: readonly StoredEntry[]): End | null {
  const last = journal.at(-1);
  if (last === undefined || !(ENDS as readonly string[]).includes(last.type)) return null;
  const { payload } = openEntry(jsonCodec, run, last);
  return { type: last.type, value: last.type === "run.succeeded" ? payload : (payload as Ended).error };
}

/** Errors of the engine are the same if their code is: their texts tell attempts, which a crash adds to. */
export function isSameEnd(a: End, b: End | null): boolean {
  if (b === null || a.type !== b.type) return false;
  if (a.type === "run.succeeded") return isDeepStrictEqual(a.value, b.value);
  return isDeepStrictEqual(errorFacts(a.value), errorFacts(b.value));
}

/** What of an error must be the same for it to be the same one. */
export function errorFacts(error: unknown): readonly unknown[] {
  const name = readProperty(error, "name");
  const code = readProperty(error, "code");
  return name === "PawlError" ? [name, code] : [name, code, messageOf(error)];
}

/** For people: `succeeded with { paid: true }`. */
export function describeEnd(end: End | null): string {
  if (end === null) return "did not end";
  const word = end.type.slice("run.".length);
  if (end.type !== "run.succeeded") return `${word} with "${messageOf(end.value)}"`;
  return end.value === undefined ? word : `${word} with ${show(end.value)}`;
}

/** A value on one line, cut where it gets long. */
export function show(value: unknown): string {
  const text = inspect(value, { breakLength: Number.POSITIVE_INFINITY, depth: 6, compact: true });
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
