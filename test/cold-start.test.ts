import { expect, it } from "vitest";
import { Pawl } from "../src/client/pawl.ts";
import { workflow } from "../src/core/workflow.ts";
import { memoryStore } from "../src/index.ts";
import { openWorld } from "./behaviour/harness.ts";
import { replayAll, withoutColdStart } from "./cold-start.ts";

const shaky = () => {
  let passes = 0;
  return workflow("shaky", async (ctx) => ctx.step(++passes === 1 ? "first" : "later", () => passes));
};

it("I5 a run that its code does not reproduce is found once its engine has closed, and its test is named", async () => {
  const flow = shaky();
  const pawl = await Pawl.open(memoryStore(), { workflows: [flow], handleSignals: false });
  await pawl.run(flow);
  await pawl.close();
  await expect(replayAll()).rejects.toThrow(
    /1 runs .*\nin "I5 a run that .* has step "first"; the code issued step "later"/,
  );
});

it("I5 the runs of a killed engine are found when another one closes on its store", async () => {
  const world = await openWorld("memory");
  const flow = shaky();
  const killed = await world.open([flow]);
  await killed.run(flow);
  const next = await world.restart([]);
  await next.close();
  await expect(replayAll()).rejects.toThrow("1 runs are not reproduced");
});

it("I5 a test that opts out is left out", async () => {
  withoutColdStart("its body counts its passes on purpose");
  const flow = shaky();
  const pawl = await Pawl.open(memoryStore(), { workflows: [flow], handleSignals: false });
  await pawl.run(flow);
  await pawl.close();
  await replayAll();
});
