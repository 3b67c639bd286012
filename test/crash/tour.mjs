// One of everything that a context offers, in two generations, for processes that are killed wherever they are.
import { TerminalError, workflow } from "pawl";
import { book } from "./book.mjs";

/** Books what a step of this tree of runs does. */
const mark = (action, root, info, what) => book(action, info, { about: root, what });

export const leaf = workflow("leaf", async (ctx, { root, n }) => {
  return ctx.step("double", (info) => mark("double", root, info) ?? n * 2);
});

export const stray = workflow("stray", async (ctx, { root }) => {
  await ctx.step("wander", (info) => mark("wander", root, info));
});

/** Its arguments are recorded, and compared in every replay: a number that was not the same again would park the run. */
function draw(root, number, uuid) {
  mark("draw", root, { key: `${root}/draw`, attempt: 1 }, [number, uuid]);
  return { number, uuid };
}

async function firstRound(ctx) {
  ctx.log.info("tour: the first round begins");
  const before = ctx.now();
  await ctx.sleep(20);
  await ctx.sleepUntil(ctx.now() + 20);
  const slept = ctx.now() - before >= 40;
  const drawn = [ctx.random(), ctx.uuid()];
  const { number, uuid } = await ctx.step(draw, ctx.run.id, ...drawn);
  ctx.set("place", "harbour");
  ctx.note("half way");
  ctx.cost({ usd: 0.5 });
  const doubled = await ctx.call(leaf, { root: ctx.run.id, n: 21 });
  ctx.log.info("tour: the first round ends");
  return { slept, isSame: number === drawn[0] && uuid === drawn[1], doubled };
}

async function secondRound(ctx) {
  ctx.log.info("tour: the second round begins");
  const root = ctx.run.id;
  await ctx.spawn(stray, { root });
  const visits = await ctx.map(
    ["tower", "ruin", "bridge"],
    (place) =>
      ctx.step("visit", (info) => {
        mark("visit", root, info, place);
        if (place === "ruin") throw new TerminalError("it is closed");
        return place;
      }),
    { concurrency: 2, partial: true },
  );
  ctx.cost({ usd: 0.25, tickets: 2 });
  const answer = await ctx.waitFor("guide", { timeout: 30, default: "nobody came" });
  ctx.set("answer", answer);
  ctx.log.info("tour: the second round ends");
  return { visits: visits.map(({ value, reason }) => value ?? reason.message), answer, place: ctx.get("place") };
}

export const tour = workflow("tour", async (ctx, { first }) => {
  const isPatched = ctx.patched("with-guide");
  if (first === undefined) return ctx.continueAs({ first: await firstRound(ctx) });
  return { first, second: await secondRound(ctx), isPatched };
});

/** A step that must never begin twice, between two that may. */
export const careful = workflow("careful", async (ctx) => {
  await ctx.step("prepare", (info) => book("prepare", info));
  await ctx.step("launch", (info) => book("launch", info), { recovery: "fail" });
  await ctx.step("report", (info) => book("report", info));
  return "launched";
});
