// Compiled by `npm run types`, never run: the types of input, steps and results flow without an annotation and without `any`.
import { type Context, Pawl, type Run, workflow } from "pawl";
import { z } from "zod";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function expectType<_T extends true>(): void {}

interface Order {
  readonly id: string;
  readonly cents: number;
}

const checkout = workflow("checkout", async (ctx, order: Order) => {
  expectType<Equal<typeof ctx, Context>>();
  const payment = await ctx.step("charge", async ({ key, attempt, signal }) => {
    expectType<Equal<typeof key, string>>();
    expectType<Equal<typeof attempt, number>>();
    expectType<Equal<typeof signal, AbortSignal>>();
    return { paid: order.cents };
  });
  expectType<Equal<typeof payment, { paid: number }>>();
  return payment.paid;
});

const parsed = workflow(
  { name: "parsed", input: z.object({ count: z.string().transform(Number) }) },
  async (_ctx, input) => {
    expectType<Equal<typeof input, { count: number }>>();
    return input.count;
  },
);

const nothing = workflow("nothing", async (ctx) => ctx.run.id);

async function lookup(id: string, limit: number): Promise<readonly string[]> {
  return [id].slice(0, limit);
}

export const parent = workflow("parent", async (ctx) => {
  const paid = await ctx.call(checkout, { id: "a", cents: 1 });
  expectType<Equal<typeof paid, number>>();
  const rows = await ctx.step(lookup, "a", 3);
  expectType<Equal<typeof rows, readonly string[]>>();
  const doubled = await ctx.map([1, 2], async (n, index) => n * index);
  expectType<Equal<typeof doubled, number[]>>();
  const settled = await ctx.map([1], async (n) => `${n}`, { partial: true });
  expectType<Equal<typeof settled, PromiseSettledResult<string>[]>>();
  const answer = await ctx.waitFor("go", { schema: z.object({ yes: z.boolean() }), timeout: "1 day", default: null });
  expectType<Equal<typeof answer, { yes: boolean } | null>>();
  const loose = await ctx.waitFor("go");
  expectType<Equal<typeof loose, unknown>>();
  // @ts-expect-error the input of a child is checked
  await ctx.call(checkout, { id: "a" });
  // @ts-expect-error and so are the arguments of a step's function
  await ctx.step(lookup, "a", "3");
});

export async function client(pawl: Pawl): Promise<void> {
  const run = await pawl.start(checkout, { id: "a", cents: 1 });
  expectType<Equal<typeof run, Run<number>>>();
  const result = await pawl.run(parsed, { count: "3" });
  expectType<Equal<typeof result, number>>();
  const id = await pawl.run(nothing);
  expectType<Equal<typeof id, string>>();
  // @ts-expect-error the input is checked against what the schema accepts
  await pawl.start(parsed, { count: 3 });
  // @ts-expect-error an input that the handler needs may not be left out
  await pawl.start(checkout);
  await Pawl.open("memory:", { workflows: [checkout, parsed, nothing, parent] });
}
