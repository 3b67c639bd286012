// What must hold for a run of a program, and for every prefix of its journal that a crash can leave.
import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";
import { type Entry, entryKind } from "../../src/core/journal.ts";
import { readHistory } from "./legal-history.ts";
import { resume, type Story, stateOf } from "./rig.ts";

/** Cuts a finished run's journal at every entry and has a new engine go on from each cut. Returns how many cuts there were. */
export async function followEveryPrefix(story: Story, seed: number): Promise<number> {
  for (let length = 1; length < story.journal.length; length++)
    await followPrefix(story, length, seed ^ (length * 7919));
  return story.journal.length - 1;
}

/** Goes on from the first `length` entries of a finished run, as after a crash. */
export async function followPrefix(story: Story, length: number, seed: number): Promise<Story> {
  const kept = story.journal.slice(0, length);
  const resumed = await resume(story, kept, seed);
  expectSame(resumed.journal.slice(0, length), kept);
  await expectLegal(resumed);
  expectNoWorkRepeated(resumed, length);
  if (length === story.journal.length - 1) expect(endOf(resumed)).toEqual(endOf(story));
  return resumed;
}

/** The whole journal, notes included, is a history of the program, and what else the store tells of the run agrees with it. */
export async function expectLegal(story: Story): Promise<void> {
  if (story.errors.length > 0) expect(story.errors).toEqual([]);
  const history = await readHistory(story.program, story.entries, { strict: true });
  if (history.isLegal !== true) expect(history).toMatchObject({ isLegal: true });
  expect(story.row.state).toBe(story.entries.at(-1)?.type === "run.succeeded" ? "succeeded" : "failed");
  expect(story.row.head).toBe(story.journal.length);
  expectSame(new Map(Object.entries(story.state)), stateOf(story.row.id, story.journal));
}

/** Compared here, and told by `expect` where they differ: thousands of crashes are, and it takes several times as long. */
export function expectSame(actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toEqual(expected);
}

/**
 * Functions start only for attempts that were recorded after the prefix, once each: with an outcome in the prefix, never. Whatever has its
 * outcome after the prefix was started for each of its attempts there; the rest may have been overtaken by the end (P12).
 */
export function expectNoWorkRepeated(story: Story, length: number): void {
  const suffix = story.entries.slice(length);
  const attempts = new Map<string, number>();
  for (const entry of suffix) {
    if (entry.type === "step.started") attempts.set(workOf(entry), (attempts.get(workOf(entry)) ?? 0) + 1);
  }
  for (const [work, starts] of story.starts) {
    const recorded = attempts.get(work) ?? 0;
    if (!(starts <= recorded)) expect(starts, `starts of ${work}`).toBeLessThanOrEqual(recorded);
  }
  const settled = suffix.filter((entry) => entry.type.startsWith("step.") && entryKind(entry) === "outcome");
  for (const work of settled.map(workOf).filter((one) => one !== "apply"))
    if (story.starts.get(work) !== attempts.get(work))
      expect(story.starts.get(work), `starts of ${work}`).toBe(attempts.get(work));
}

/** Functions with arguments are not told their key: they are counted together. */
function workOf({ key }: Entry): string {
  return /(^|\/)apply(#\d+)?$/.test(key ?? "") ? "apply" : (key ?? "");
}

export function endOf(story: Story): unknown {
  const end = story.entries.at(-1);
  return [end?.type, end?.payload];
}
