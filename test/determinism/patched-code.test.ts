// P9, I5: newer code asks `ctx.patched` where older code did not. It takes over whatever a crash has left of the older code's journal, and every
// later pass is told the same at the same places.
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Context } from "../../src/core/context.ts";
import { endOf, expectNoWorkRepeated, expectSame } from "./crash-prefix.ts";
import { type Body, type Combinator, interpret, type Node, type World } from "./program.ts";
import { programs, propertyOptions, schedules } from "./program-arbitrary.ts";
import { resume, runProgram, type Story } from "./rig.ts";

const PROGRAMS = 15;

it("P9 I5 newer code takes over every prefix of what older code recorded, and patched answers the same in every pass after that", async () => {
  const seen = { yes: 0, no: 0 };
  await fc.assert(
    fc.asyncProperty(changedPrograms(), schedules, fc.nat(), async (program, seed, cut) => {
      const old = await runProgram(program, { seed, handler: (ctx, world) => interpret(program, older(ctx), world) });
      for (let length = 1; length < old.journal.length; length++) {
        const taken = await followPatched(old, length, seed ^ length);
        for (const isYes of taken.answers) seen[isYes ? "yes" : "no"]++;
        const { journal } = taken.story;
        await followPatched(taken.story, length + (cut % (journal.length - length)), seed ^ (length * 7919));
        const again = await followPatched(taken.story, journal.length - 1, seed);
        expectSame(again.answers, taken.answers);
        expectSame(endOf(again.story), endOf(taken.story));
      }
    }),
    propertyOptions(PROGRAMS),
  );
  expect(seen.yes).toBeGreaterThan(PROGRAMS);
  expect(seen.no).toBeGreaterThan(PROGRAMS);
}, 600_000);

/** Goes on from a prefix with the newer code. Gives what its last pass was told as well. */
async function followPatched(story: Story, length: number, seed: number) {
  let answers: boolean[] = [];
  const handler = (ctx: Context, world: World) => {
    answers = [];
    return interpret(story.program, newer(ctx, answers), world);
  };
  const kept = story.journal.slice(0, length);
  const resumed = await resume(story, kept, seed, { handler });
  expectSame(resumed.journal.slice(0, length), kept);
  if (resumed.row.state === "parked") expect(resumed.entries.at(-1)).toMatchObject({ type: "run.succeeded" });
  expectSame(resumed.errors, []);
  expectNoWorkRepeated(resumed, length);
  return { story: resumed, answers };
}

/** What a program asks chance or the clock is a place that was changed: newer code asks for its patch there. */
function newer(ctx: Context, answers: boolean[]): Body {
  const ask = (id: string) => {
    const isPatched = ctx.patched(id);
    answers.push(isPatched);
    return isPatched ? 0 : 1;
  };
  return bodyOf(ctx, { random: () => ask("chance"), now: () => ask("clock") });
}

function older(ctx: Context): Body {
  return bodyOf(ctx, { random: () => 1, now: () => 1 });
}

function bodyOf(ctx: Context, own: Pick<Body, "random" | "now">): Body {
  return new Proxy(ctx as Body, {
    get: (_, name: keyof Body) => (name === "random" || name === "now" ? own[name] : ctx[name].bind(ctx)),
  });
}

/** Programs with several changed places, beside each other or one after the other. */
function changedPrograms(): fc.Arbitrary<Node> {
  const way = programs({ maxCalls: 2 });
  const on = fc.constantFrom("random" as const, "random" as const, "now" as const);
  const place = fc.record({ op: fc.constant("branch" as const), on, yes: way, no: way });
  const several = fc.array(fc.oneof<fc.Arbitrary<Node>[]>(place, place, way), { minLength: 2, maxLength: 3 });
  const how = fc.constantFrom<Combinator>("all", "race", "settled");
  return fc.oneof(
    several.map((of): Node => ({ op: "seq", of })),
    fc.tuple(how, several).map(([kind, of]): Node => ({ op: "join", how: kind, of })),
    place.map((of): Node => ({ op: "loop", times: 3, of })),
    place.map((of): Node => ({ op: "map", items: 3, concurrency: 2, partial: true, of })),
  );
}
