import { workflow } from "pawl";

/** A run of tiny steps, one after the other: the input says how many. */
export const steps = workflow("steps", async (ctx, count) => {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += await ctx.step("add", async () => i);
  return sum;
});

export const sleeper = workflow({ name: "sleeper", deadline: "90 days" }, async (ctx) => {
  await ctx.sleep("30 days");
});

/** Steps, then a signal, then one more step that tells when it ran. */
export const resumed = workflow("resumed", async (ctx, count) => {
  for (let i = 0; i < count; i++) await ctx.step("add", async () => i);
  await ctx.waitFor("go");
  return ctx.step("live", async () => performance.now());
});
