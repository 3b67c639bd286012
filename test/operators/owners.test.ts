// Owners: who has to see to a run, by what is the matter with it.
import { expect, it } from "vitest";
import { why } from "../../src/client/why.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, openWorld } from "../behaviour/harness.ts";

const OWNERS = { stuck: "ops", waiting: "desk", failed: "dev", compensating: "finance" };

const bodies = {
  fails: async () => Promise.reject(new Error("no")),
  ends: async () => 1,
};

async function openOwned() {
  const world = await openWorld("memory");
  const waits = workflow({ name: "waits", owner: OWNERS }, async (ctx) => ctx.waitFor("go"));
  const fails = workflow({ name: "fails", owner: OWNERS, retry: { max: 0 } }, bodies.fails);
  const ends = workflow({ name: "ends", owner: "dev" }, bodies.ends);
  const nobody = workflow({ name: "nobody" }, bodies.fails);
  const pawl = await world.open([waits, fails, ends, nobody]);
  await pawl.start(waits, undefined, { id: "w1" });
  for (const one of [fails, ends, nobody]) await pawl.start(one, undefined, { id: one.name });
  await world.settle();
  return { world, pawl };
}

it("S2-107 lists, a run's status and `why` name who has to see to it, also where no worker is left", async () => {
  const { world, pawl } = await openOwned();
  await pawl.close();
  const client = await world.open();
  const owners = (await client.list()).runs.map(({ id, responsible }) => [id, responsible]);
  expect(Object.fromEntries(owners)).toEqual({ w1: "desk", fails: "dev", ends: undefined, nobody: undefined });
  expect(await client.get("w1").status()).toMatchObject({ responsible: "desk" });
  expect((await why(client, "w1")).present).toContain("Its owner is desk.");
  expect((await why(client, "fails")).present).toContain("Its owner is dev.");
  expect(await client.get("nobody").status()).not.toHaveProperty("responsible");
});

it("S2-107 runs are listed and counted by their owner", async () => {
  const { pawl } = await openOwned();
  const ids = async (owner: string) => (await pawl.list({ owner })).runs.map(({ id }) => id);
  expect(await ids("desk")).toEqual(["w1"]);
  expect(await ids("dev")).toEqual(["fails"]);
  expect(await ids("ops")).toEqual([]);
  expect((await pawl.operations.count({ owner: "dev" })).counts).toMatchObject({ failed: 1, waiting: 0 });
  expect(await pawl.operations.count()).toEqual({
    counts: { running: 0, waiting: 1, parked: 0, succeeded: 1, failed: 2, cancelled: 0 },
    atLeast: false,
  });
  expect(await pawl.operations.count({}, { bound: 1 })).toMatchObject({ counts: { failed: 1 }, atLeast: true });
});

it("S2-107 what cannot be undone is the business of the owner of compensating runs", async () => {
  const world = await openWorld("memory");
  const flow = workflow({ name: "order", owner: OWNERS, retry: { max: 0 } }, async (ctx) => {
    await ctx.step("charge", () => 1, {
      undo: () => {
        throw new Error("closed");
      },
    });
    throw new Error("no stock");
  });
  const pawl = await world.open([flow]);
  const run = await pawl.start(flow, undefined);
  await world.advance(3_600_000);
  expect(await errorOf(run.result())).toMatchObject({ code: "compensation_incomplete", fields: { owner: "finance" } });
});

it("S2-107 an owner is a name on one line, for what may be the matter", () => {
  const define = (owner: unknown) => () => workflow({ name: "w", owner: owner as string }, async () => 1);
  for (const owner of ["", "a\nb", "x".repeat(201), 7, null, { stuck: "" }, { late: "ann" }])
    expect(define(owner)).toThrow(/`owner/);
  expect(define({ stuck: "ann" })().definition.owners).toEqual({
    stuck: "ann",
    waiting: null,
    failed: null,
    compensating: null,
  });
});
