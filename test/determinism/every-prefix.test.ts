// P2, I5: whatever a crash leaves of a journal, the body goes the same way through it and on from there. The committer may flush anywhere,
// so every cut between two entries is a crash that can happen.
import fc from "fast-check";
import { expect, it } from "vitest";
import { expectLegal, expectNoWorkRepeated, followEveryPrefix, followPrefix } from "./crash-prefix.ts";
import { programs, propertyOptions, schedules } from "./program-arbitrary.ts";
import { runProgram } from "./rig.ts";

const PROGRAMS = 250;

it("P1 P2 P3 P9 P12 I3 I5 I6 B26 B57 B58 B59 B60 T-18 S3-12 random programs follow every prefix of their journal", async () => {
  let ran = 0;
  let prefixes = 0;
  await fc.assert(
    fc.asyncProperty(programs({ maxCalls: 7 }), schedules, async (program, seed) => {
      const story = await runProgram(program, { seed });
      await expectLegal(story);
      expectNoWorkRepeated(story, 0);
      prefixes += await followEveryPrefix(story, seed);
      ran++;
    }),
    propertyOptions(PROGRAMS),
  );
  expect(ran).toBeGreaterThanOrEqual(PROGRAMS);
  expect(prefixes).toBeGreaterThan(5 * ran);
}, 600_000);

it("P1 P2 P28 I5 a run that crashes twice follows what both crashes left, the marks of reruns included", async () => {
  await fc.assert(
    fc.asyncProperty(programs({ maxCalls: 7 }), schedules, fc.nat(), fc.nat(), async (program, seed, first, second) => {
      const story = await runProgram(program, { seed });
      const once = 1 + (first % (story.journal.length - 1));
      const resumed = await followPrefix(story, once, seed ^ 1);
      const twice = once + (second % (resumed.journal.length - once));
      await followPrefix(resumed, twice, seed ^ 2);
    }),
    propertyOptions(125),
  );
}, 600_000);
