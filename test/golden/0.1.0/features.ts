// The workflows of the stores that are frozen beside this file, one for each feature. They may never change: what runs today must be
// replayed by every later release.
import { RetryableError, type Sql, type Workflow, workflow } from "pawl";
import { workflows as first } from "./workflows.ts";

/** The first attempt never ends: the process that made it has died. */
const interrupted = ({ attempt }: { readonly attempt: number }): Promise<string> | string => (attempt === 1 ? new Promise(() => {}) : `attempt ${attempt}`);
const PATIENT = { timeout: "36500 days" };

const held = workflow("golden-held", async (ctx) => {
  const before = await ctx.step("before", () => "before");
  return [before, await ctx.step("held", interrupted, PATIENT)];
});

const asks = workflow("golden-asks", async (ctx) => ctx.step("risky", interrupted, { ...PATIENT, recovery: "ask" }));

const letters = workflow("golden-letters", async (ctx) => {
  const one = await ctx.waitFor("one");
  return [one, await ctx.waitFor("two")];
});

const grows = workflow("golden-grows", async (ctx, n: number) => {
  const by = await ctx.waitFor<number>("grown");
  return ctx.step("sum", () => n + by);
});

const parent = workflow("golden-parent", async (ctx) => {
  const spawned = await ctx.spawn(grows, 10);
  const called = await ctx.call(grows, 1);
  return { called, spawned: typeof spawned.id };
});

const limited = workflow(
  { name: "golden-limited", concurrency: { limit: 1, key: (input: { readonly account: string }) => input.account } },
  async (ctx, input: { readonly account: string; readonly isHeld: boolean }) =>
    ctx.step("work", ({ attempt }) => (input.isHeld ? interrupted({ attempt }) : "done"), PATIENT),
);

const rated = workflow({ name: "golden-rated", rate: { limit: 1, per: "3650 days" } }, async (ctx, n: number) => ctx.step("work", () => n));

function book(sql: Sql, store: string, entry: string): unknown {
  if (store === "postgres") return sql.query("insert into golden_ledger (entry) values ($1)", [entry]).then(() => entry);
  sql.run("insert into golden_ledger (entry) values (?)", entry);
  return entry;
}

const booked = workflow("golden-booked", async (ctx, { store }: { readonly store: string }) => {
  const first = await ctx.transaction("first", (sql) => book(sql, store, `${ctx.run.key}: first`));
  const go = await ctx.waitFor("go");
  return [first, go, await ctx.transaction("second", (sql) => book(sql, store, `${ctx.run.key}: second`))];
});

/** Text that does not compress well, the same in every process. */
function noise(length: number): string {
  let seed = 7;
  return Array.from({ length }, () => {
    seed = (seed * 48271) % 2147483647;
    return String.fromCharCode(33 + (seed % 90));
  }).join("");
}

const large = workflow("golden-large", async (ctx, page: string) => {
  ctx.set("page", page);
  ctx.progress({ at: "the large step" });
  const written = await ctx.step("write", () => noise(6000));
  const letter = await ctx.waitFor<string>("letter");
  return { page: page.length, written, letter: letter.length, bytes: await ctx.step("bytes", () => new Uint8Array([0, 1, 254, 255])) };
});

const retries = workflow("golden-retries", async (ctx) =>
  ctx.step(
    "later",
    ({ attempt }) => {
      if (attempt === 1) throw new RetryableError("not before ten years");
      return attempt;
    },
    { retry: { base: "3650 days", cap: "3650 days", jitter: false } },
  ),
);

const generations = workflow("golden-generations", async (ctx, n: number): Promise<number> => {
  ctx.set("generation", n);
  const next = await ctx.waitFor<number>("next");
  return next < 3 ? ctx.continueAs(next) : next;
});

const ticks = workflow("golden-ticks", async (ctx) => ctx.step("slot", () => ctx.run.schedule?.name ?? "none"));

const doubles = workflow("golden-doubles", async (ctx, n: number) => ctx.step("double", () => n * 2));

export const workflows: readonly Workflow<never, unknown>[] = [
  ...first,
  ...[held, asks, letters, grows, parent, limited, rated, booked, large, retries, generations, ticks, doubles],
];
