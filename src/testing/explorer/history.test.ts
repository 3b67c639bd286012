import { workflow } from "pawl";
import { expect, it } from "vitest";
import type { Workflow } from "../../core/workflow.ts";
import { History, RUN_ID } from "./history.ts";
import { Stillness } from "./stillness.ts";
import { faultsOf } from "./verdict.ts";
import { type Moment, World, type WorldSetup } from "./world.ts";

const patient = workflow("patient", async (ctx) => {
  ctx.log.error("Nobody was at the desk. Please report this.");
  await ctx.step("before", () => 1);
  await ctx.sleep("1h");
  await ctx.step("after", () => 2);
}) as unknown as Workflow<never, unknown>;
const scene = { workflow: patient, input: undefined, script: undefined };

function worldOf(setup: Pick<WorldSetup, "inject" | "from">): World {
  return new World({
    workflows: [patient],
    stillness: new Stillness(),
    book: null,
    bodies: new WeakMap(),
    history: 0,
    ...setup,
  });
}

/** As it was while the run slept, but nothing would ever wake it. */
function forgotten(asleep: Moment): Moment {
  const tables = asleep.tables();
  const run = tables.runs.get(RUN_ID);
  if (run === undefined) throw new Error("There is no run.");
  run.row = { ...run.row, owner: null, readyAt: null, wakeAt: null };
  tables.workers.clear();
  return { ...asleep, tables: () => tables };
}

it("I10 a run that an engine has found forgotten is a fault, though it goes on and comes to its end", async () => {
  const moments: Moment[] = [];
  const inject: WorldSetup["inject"] = ({ kind, label }, world) => {
    if (kind === "after-commit" && label().includes("sleep")) moments.push(world.moment());
    return null;
  };
  const whole = await new History(worldOf({ inject }), scene).play();
  expect(whole.world.reports).toEqual([]);

  const [asleep] = moments;
  if (asleep === undefined) throw new Error("It has not slept.");
  const from = { moment: forgotten(asleep), starts: [], ends: [] };
  const ending = await new History(worldOf({ inject: () => null, from }), scene).watch();
  expect(ending.rows).toMatchObject([{ id: RUN_ID, state: "succeeded" }]);
  expect(ending.orphans).toEqual([]);
  const outcome = { ending, journals: new Map(), ends: new Map(), requests: [], observed: undefined, otherEnds: [] };
  expect(faultsOf(outcome)).toMatchObject([{ kind: "orphan", message: expect.stringContaining(RUN_ID) }]);
});
