import { expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { workflow } from "../../src/core/workflow.ts";
import { openWorld } from "../behaviour/harness.ts";
import { openOn, rounds, stateOf } from "./rig.ts";

it("I12 with every hint lost, children, signals, results, events and cancels come by polling", async () => {
  const leaseClock = manualClock();
  const world = await openWorld("memory", { leaseClock });
  const child = workflow("child", async (ctx) => ctx.waitFor("go"));
  const parent = workflow("parent", async (ctx) => ctx.call(child));
  const hints = () => () => {};
  await openOn(world.store, { hints }, [parent]);
  await openOn(world.store, { hints }, [child]);
  const client = await openOn(world.store, { hints }, []);
  const run = await client.start(parent);
  const tick = async (n: number) => {
    for (let i = 0; i < n; i++) {
      leaseClock.advance(1000);
      await rounds(60);
    }
  };
  await tick(3);
  const [kid] = (await client.list({ parent: run.id })).runs;
  const result = run.result();
  const events = (async () => {
    let seen = 0;
    for await (const _ of client.get(run.id).events()) seen++;
    return seen;
  })();
  await client.signal(kid?.id ?? "", "go", 5);
  await tick(4);
  expect(await stateOf(result)).toBe("resolved");
  expect(await stateOf(events)).toBe("resolved");
  const second = await client.start(parent);
  await tick(3);
  const cancelled = second.cancel();
  await tick(4);
  expect(await stateOf(cancelled)).toBe("resolved");
  await tick(3);
  expect((await client.list({ status: "cancelled" })).runs).toHaveLength(2);
});

it("I2 closing tells every start that the store has not answered", async () => {
  const world = await openWorld("memory");
  const any = workflow("any", async () => 1);
  const pawl = await openOn(world.store, { commit: () => new Promise(() => {}) }, [any]);
  const start = pawl.start(any);
  const keyed = pawl.start(any, undefined, { key: "k" });
  const settled = Promise.allSettled([start, keyed]);
  await rounds(10);
  await pawl.close({ drain: 5 });
  expect(await settled).toMatchObject([
    { status: "rejected", reason: { code: "unknown_outcome" } },
    { status: "rejected", reason: { code: "unknown_outcome" } },
  ]);
});
