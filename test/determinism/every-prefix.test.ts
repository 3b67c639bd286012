// P2, I5: whatever a crash leaves of a journal, the body goes the same way through it and on from there.
import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { type Entry, entryKind } from "../../src/core/journal.ts";
import { programs, schedules } from "./program-arbitrary.ts";
import { readHistory } from "./legal-history.ts";
import { resume, runProgram, type Story, stateOf } from "./rig.ts";

const PROGRAMS = Number(process.env["N"] ?? 1100);
const counts = { programs: 0, prefixes: 0, entries: 0 };

it("P2, P3, P9, I3, I5, B26, B57, B58, B59, T-18: random programs follow every prefix of their journal", async () => {
  await fc.assert(
    fc.asyncProperty(programs({ maxCalls: 9 }), schedules, async (program, seed) => {
      const story = await runProgram(program, { seed });
      await expectLegal(story);
      expectStartedOnce(story);
      for (let length = 1; length < story.journal.length; length++) await followPrefix(story, length, seed);
      counts.programs++;
    }),
    { numRuns: PROGRAMS, interruptAfterTimeLimit: 110_000, markInterruptAsFailure: true },
  );
}, 120_000);

afterAll(() => {
  console.log(counts);
});

async function followPrefix(story: Story, length: number, seed: number): Promise<Story> {
  const kept = story.journal.slice(0, length);
  const resumed = await resume(story.program, story, kept, seed ^ (length * 7919));
  expect(resumed.journal.slice(0, length)).toEqual(kept);
  await expectLegal(resumed);
  expectNoWorkRepeated(resumed, length);
  if (length === story.journal.length - 1) expect(endOf(resumed)).toEqual(endOf(story));
  counts.prefixes++;
  counts.entries += length;
  return resumed;
}

/** The whole journal, notes included, is a history of the program, and what else the store tells of the run agrees with it. */
async function expectLegal(story: Story): Promise<void> {
  expect(await readHistory(story.program, story.entries, { strict: true })).toMatchObject({ isLegal: true });
  expect(story.row.state).toBe(story.entries.at(-1)?.type === "run.succeeded" ? "succeeded" : "failed");
  expect(story.row.head).toBe(story.journal.length);
  expect(story.errors).toEqual([]);
  expect(new Map(Object.entries(story.state))).toEqual(stateOf(story.row.id, story.journal));
}

/** B26: in peace every recorded attempt is one start, at most: what had not begun when the run ended never does (P12). */
function expectStartedOnce(story: Story): void {
  expectNoWorkRepeated(story, 0);
}

/**
 * Functions start only for attempts that were recorded after the prefix, once each: with an outcome in the prefix, never. Whatever has its
 * outcome after the prefix was started for each of its attempts there; the rest may have been overtaken by the end.
 */
function expectNoWorkRepeated(story: Story, length: number): void {
  const suffix = story.entries.slice(length);
  const attempts = new Map<string, number>();
  for (const entry of suffix) {
    if (entry.type === "step.started") attempts.set(workOf(entry), (attempts.get(workOf(entry)) ?? 0) + 1);
  }
  for (const [work, starts] of story.starts)
    expect(starts, `starts of ${work}`).toBeLessThanOrEqual(attempts.get(work) ?? 0);
  const settled = suffix.filter((entry) => entry.type.startsWith("step.") && entryKind(entry) === "outcome");
  for (const work of settled.map(workOf).filter((one) => one !== "apply"))
    expect(story.starts.get(work), `starts of ${work}`).toBe(attempts.get(work));
}

/** Functions with arguments are not told their key: they are counted together. */
function workOf({ key }: Entry): string {
  return /(^|\/)apply(#\d+)?$/.test(key ?? "") ? "apply" : (key ?? "");
}

function endOf(story: Story): unknown {
  const end = story.entries.at(-1);
  return [end?.type, end?.payload];
}
