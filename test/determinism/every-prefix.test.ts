// P2, I5: whatever a crash leaves of a journal, the body goes the same way through it and on from there.
import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { entryKind } from "../../src/core/journal.ts";
import { type Node, sizeOf } from "./program.ts";
import { programs, schedules } from "./program-arbitrary.ts";
import { readHistory } from "./legal-history.ts";
import { resume, runProgram, type Story, stateOf } from "./rig.ts";

const PROGRAMS = 1100;
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

/** Functions start only for attempts recorded after the prefix, once each; with an outcome in the prefix, never. */
function expectNoWorkRepeated(story: Story, length: number): void {
  const suffix = story.entries.slice(length).filter((entry) => entry.type === "step.started");
  for (const [key, starts] of story.starts) {
    const attempts = suffix.filter((entry) => plainKey(entry.key) === key).length;
    expect(starts, `starts of ${key}`).toBeLessThanOrEqual(attempts);
  }
  for (const outcome of story.entries.slice(length)) {
    if (!isStepOutcome(outcome)) continue;
    const key = plainKey(outcome.key);
    const attempts = suffix.filter((entry) => plainKey(entry.key) === key).length;
    const unfinished = suffix.length;
    expect(unfinished).toBeGreaterThan(0);
    expect(story.starts.get(key) ?? 0, `starts of ${key}`).toBeGreaterThan(attempts === 0 ? -1 : 0);
  }
}

function endOf(story: Story): unknown {
  const end = story.entries.at(-1);
  return [end?.type, end?.payload];
}
