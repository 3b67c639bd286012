// Pawl on SQLite, from this repository's dist.
import { join } from "node:path";
import { Pawl, workflow } from "pawl";

export async function open({ place, body }) {
  const steps = workflow("steps", async (ctx, input) => {
    let sum = 0;
    for (let i = 0; i < input.steps; i++) sum += await ctx.step("add", () => body(input, i));
    return sum;
  });
  const sleeper = workflow({ name: "sleeper", deadline: "90 days" }, async (ctx, input) => {
    await ctx.step("add", () => body(input, 0));
    await ctx.sleep("30 days");
  });
  const workflows = { steps, sleeper };
  const pawl = await Pawl.open(join(place.folder, "pawl.db"), {
    workflows: Object.values(workflows),
    concurrency: 4096,
  });
  return {
    run: (input) => pawl.run(steps, input),
    start: async (name, input) => (await pawl.start(workflows[name], input)).id,
    result: (id) => pawl.get(id).result(),
    close: () => pawl.close(),
  };
}
