// The workflows whose journals are frozen beside this file. They may never change: what runs today must be replayed by every later release.
import { RetryableError, type Workflow, workflow } from "pawl";

const child = workflow("golden-child", async (ctx, n: number) => ctx.step("double", () => n * 2));

const everything = workflow("golden-everything", async (ctx, input: { readonly label: string; readonly at: Date }) => {
  ctx.set("phase", "gather");
  const parts = await Promise.all([ctx.step("a", async () => 1), ctx.step("b", async () => [new Map([["k", 2n]])])]);
  const raced = await Promise.race([ctx.step("slow", () => new Promise((r) => setTimeout(r, 20, "slow"))), ctx.step("fast", () => "fast")]);
  const flaky = await ctx.step(
    "flaky",
    ({ attempt }) => {
      if (attempt < 2) throw new RetryableError("not yet");
      return attempt;
    },
    { retry: { base: 1, jitter: false } },
  );
  const failed = await ctx.step("fails", () => Promise.reject(new TypeError("no"))).catch((error: Error) => error.message);
  await ctx.sleep(5);
  const doubled = await ctx.call(child, 21);
  const mapped = await ctx.map([1, 2, 3], (n) => ctx.step("item", () => n * 10), { concurrency: 2 });
  ctx.cost({ usd: 0.25 });
  ctx.note(`seen at ${input.at.toISOString()}`);
  const isNew = ctx.patched("golden-patch");
  const answer = await ctx.waitFor("go", { timeout: "30 days" });
  const late = await ctx.waitFor("never", { timeout: 1, default: "none" });
  return { label: input.label, parts, raced, flaky, failed, doubled, mapped, isNew, answer, late, dice: ctx.random(), id: ctx.uuid() };
});

const fails = workflow("golden-fails", async (ctx) => {
  await ctx.step("ok", () => "fine");
  throw new RangeError("always");
});

const loops = workflow("golden-loops", async (ctx, n: number): Promise<number> => {
  const next = await ctx.step("next", () => n + 1);
  ctx.set("n", next);
  return next < 3 ? ctx.continueAs(next) : next;
});

const sleeps = workflow("golden-sleeps", async (ctx) => {
  await ctx.step("before", () => "before");
  await ctx.sleep("3650 days");
  return ctx.step("after", () => "after");
});

export const workflows: readonly Workflow<never, unknown>[] = [child, everything, fails, loops, sleeps];
export { everything, fails, loops, sleeps };
