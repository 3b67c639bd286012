// P4: a body may await something that is not ours where nothing else of it is pending. Anywhere else the order of its calls could not be
// replayed, so the call that betrays it is refused, with its line of code. Whatever ends within a turn is nobody's business.
import fc from "fast-check";
import { expect, it } from "vitest";
import { hasCode } from "../../src/base/errors.ts";
import type { Context } from "../../src/core/context.ts";
import type { Parked } from "../../src/core/journal.ts";
import { expectLegal, expectNoWorkRepeated, followEveryPrefix } from "./crash-prefix.ts";
import type { ForeignAwait, Node, World } from "./program.ts";
import { foreignPrograms, programs, propertyOptions, schedules, sequentialPrograms } from "./program-arbitrary.ts";
import { resume, runProgram, type Story } from "./rig.ts";

const KINDS: readonly ForeignAwait[] = ["setImmediate", "readFile", "messageChannel"];
const NOTHING: Node = { op: "seq", of: [] };

it("P4, I5: foreign awaits in sequential code work live and at every prefix", async () => {
  let prefixes = 0;
  await fc.assert(
    fc.asyncProperty(sequentialPrograms(), schedules, async (program, seed) => {
      const story = await runProgram(program, { seed });
      await expectLegal(story);
      expectNoWorkRepeated(story, 0);
      prefixes += await followEveryPrefix(story, seed);
    }),
    propertyOptions(120),
  );
  expect(prefixes).toBeGreaterThan(500);
}, 120_000);

it("P4: microtasks, nextTick, thenables and async generators in the body raise no false alarm", async () => {
  let ran = 0;
  await fc.assert(
    fc.asyncProperty(programs({ maxCalls: 6, microtasks: true }), schedules, async (program, seed) => {
      const story = await runProgram(program, { seed });
      await expectLegal(story);
      await followEveryPrefix(story, seed);
      ran++;
    }),
    propertyOptions(220),
  );
  expect(ran).toBeGreaterThanOrEqual(200);
}, 120_000);

it.each(KINDS)(
  "P4: after %s in a parallel branch the next call is refused, and the run parked with its line",
  async (kind) => {
    let line = 0;
    let refusal: unknown;
    const handler = async (ctx: Context, world: World) => {
      const late = async () => {
        await world.foreign(kind);
        line = lineOf(new Error()) + 1;
        await ctx.step("late", () => "never");
      };
      const branch = late().catch((error: unknown) => {
        refusal = error;
      });
      await Promise.all([branch, ctx.step("slow", world.work(1, "scheduled", "ok"))]);
    };
    const story = await runProgram(NOTHING, { seed: 7, handler, order: ["nobody"] });
    expect(parkOf(story)).toMatchObject({ reason: "foreign_await", detail: { call: 'step "late"' } });
    expect(parkOf(story)?.message).toContain(`foreign-awaits.test.ts:${line}:`);
    expect(parkOf(story)?.message).toContain('step "slow"');
    expect(hasCode(refusal, "foreign_await")).toBe(true);
    expect(story.entries.map((entry) => entry.key)).not.toContain("late");
  },
);

it("P4: random programs with foreign awaits anywhere are refused at the call, or follow every prefix without drift", async () => {
  const seen = { refused: 0, finished: 0, prefixes: 0 };
  await fc.assert(
    fc.asyncProperty(foreignPrograms(), schedules, async (program, seed) => {
      const story = await runProgram(program, { seed });
      expectRefusedOrDone(story);
      if (parkOf(story) === undefined) seen.finished++;
      else seen.refused++;
      const whole = story.journal.length - 1;
      for (let length = 1; length <= whole; length++) {
        const resumed = await resume(story, story.journal.slice(0, length), seed ^ length);
        expectRefusedOrDone(resumed);
        expectNoWorkRepeated(resumed, length);
        seen.prefixes++;
      }
    }),
    propertyOptions(250),
  );
  expect(seen.refused).toBeGreaterThan(20);
  expect(seen.finished).toBeGreaterThan(20);
  expect(seen.prefixes).toBeGreaterThan(1000);
}, 120_000);

// The loser's outcome has its turn while the body awaits, so live nothing is pending when both calls are made. In replay they come before that
// turn and are held: they are still one burst, and both or neither may pass.
it("P4: calls made together after a foreign await stay together in replay, wherever the journal was cut", async () => {
  const handler = async (ctx: Context, world: World) => {
    await Promise.race([ctx.step("a", () => 1), ctx.step("b", () => 2)]);
    for (let i = 0; i < 8; i++) await world.foreign("setImmediate");
    return Promise.all([ctx.step("c", () => 3), ctx.step("d", () => 4)]);
  };
  const story = await runProgram(NOTHING, { seed: 1, handler });
  expect(parkOf(story)).toBeUndefined();
  const decided = story.entries.findIndex((entry) => entry.type === "step.completed" && entry.key === "b") + 1;
  for (let length = decided; length < story.journal.length; length++) {
    const resumed = await resume(story, story.journal.slice(0, length), 1, { handler: faster(handler) });
    expect([length, parkOf(resumed)]).toEqual([length, undefined]);
    expect(resumed.entries.at(-1)?.payload).toEqual([3, 4]);
  }
});

/** The same body on a day when foreign things answer at once. */
function faster(handler: (ctx: Context, world: World) => Promise<unknown>) {
  return (ctx: Context, world: World) => {
    let awaits = 0;
    return handler(ctx, { ...world, foreign: async (kind) => (awaits++ === 0 ? world.foreign(kind) : undefined) });
  };
}

function expectRefusedOrDone(story: Story): void {
  const park = parkOf(story);
  if (park === undefined) expect(["succeeded", "failed"]).toContain(story.row.state);
  else expect(park).toMatchObject({ reason: "foreign_await", detail: { site: expect.stringContaining("program.ts") } });
}

function parkOf(story: Story): Parked | undefined {
  const last = story.entries.at(-1);
  return last?.type === "run.parked" ? (last.payload as Parked) : undefined;
}

function lineOf(error: Error): number {
  return Number(/foreign-awaits\.test\.ts:(\d+)/.exec(error.stack ?? "")?.[1]);
}
