import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { Context, StepOptions } from "../../src/core/context.ts";
import { type WorkflowOptions, workflow } from "../../src/core/workflow.ts";
import { withoutColdStart } from "../cold-start.ts";
import { errorOf, gate, openWorld, STORES, type World } from "./harness.ts";

type Body = (ctx: Context) => Promise<unknown>;

const HERE = fileURLToPath(import.meta.url);
const other = workflow("other", async () => 1);
const third = workflow("third", async () => 1);
function pay(amount: number) {
  return amount;
}

/** One part after the other, as one body. */
const inTurn =
  (...parts: Body[]): Body =>
  async (ctx) => {
    let last: unknown;
    for (const part of parts) last = await part(ctx);
    return last;
  };
const step =
  (name: string, value: unknown = 1, options: StepOptions = {}): Body =>
  (ctx) =>
    ctx.step(name, () => value, options);
const both =
  (a: Body, b: Body): Body =>
  (ctx) =>
    Promise.all([a(ctx), b(ctx)]);
const go: Body = (ctx) => ctx.waitFor("go");

/** Runs `before` up to its wait for "go", then lets `after` replay what it recorded. */
async function replaced(world: World, before: Body, after: Body, options: Partial<WorkflowOptions> = {}) {
  const make = (body: Body) => workflow({ name: "changing", ...options }, body);
  await (await world.open([make(before), other, third])).start(make(before), undefined, { id: "r" });
  await world.settle();
  const recorded = await world.journal("r");
  const pawl = await world.restart([make(after), other, third]);
  await pawl.signal("r", "go");
  await world.settle();
  return { pawl, recorded, run: pawl.get("r") };
}

describe.each(STORES)("divergence on %s", (store) => {
  it("P3 E-17 S3-14 parks with a diff that names the entry, what is recorded, what was issued and the code line", async () => {
    withoutColdStart("its code leaves the journal on purpose");
    const world = await openWorld(store);
    let calls = 0;
    const { run, recorded } = await replaced(
      world,
      async (ctx) => {
        await ctx.step("reserve", () => ++calls);
        await ctx.waitFor("go");
      },
      async (ctx) => {
        await ctx.step("charge", () => ++calls);
        await ctx.waitFor("go");
      },
    );
    const status = await run.status();
    expect(status).toMatchObject({ status: "waiting", state: "parked", owner: null });
    expect(status.parked).toMatchObject({
      reason: "replay_drift",
      choices: ["retry", "cancel"],
      detail: { seq: 1, recorded: expect.stringContaining("reserve"), issued: expect.stringContaining("charge") },
    });
    const message = status.parked?.message ?? "";
    expect(message).toContain("entry 1");
    expect(message).toContain('step "reserve"');
    expect(message).toContain('step "charge"');
    expect(message).toMatch(/divergence\.test\.ts:\d+/);
    expect(status.parked?.detail?.["site"]).toMatch(/divergence\.test\.ts:\d+/);
    // Nothing ran, and nothing was added but the park.
    expect(calls).toBe(1);
    expect(await world.journal("r")).toEqual([...recorded, "run.parked"]);
    expect(world.lines.some((line) => line.level === "error" && line.message === message)).toBe(true);
    await run.cancel();
  });

  const changes: Readonly<Record<string, [Body, Body]>> = {
    "another step": [step("a"), step("b")],
    "another kind": [step("a"), async (ctx) => ctx.sleep(5)],
    "another input": [async (ctx) => ctx.step(pay, 1), async (ctx) => ctx.step(pay, 2)],
    "another `input`": [step("a", 1, { input: ["x"] }), step("a", 1, { input: ["y"] })],
    "no `input` any more": [step("a", 1, { input: ["x"] }), step("a")],
    "another form": [async (ctx) => ctx.step(pay, 1), async (ctx) => ctx.step("pay", () => 1)],
    "another signal": [async (ctx) => ctx.waitFor("x", { timeout: 0, default: 1 }), async (ctx) => ctx.waitFor("y")],
    "another child": [async (ctx) => ctx.call(other), async (ctx) => ctx.call(third)],
    "another order": [both(step("a"), step("b")), both(step("b"), step("a"))],
    "a call before it": [step("a"), inTurn(step("new"), step("a"))],
    "a call between": [inTurn(step("a"), step("b")), inTurn(both(step("a"), step("c")), step("b"))],
    "the call left out": [step("a"), async () => 1],
    "an early end": [inTurn(step("a"), step("b")), inTurn(step("a"), () => Promise.reject(new Error("x")))],
  };

  it.each(Object.keys(changes))("P3 B57 B63 C-27 refuses %s: never a wrong result", async (name) => {
    withoutColdStart("its code leaves the journal on purpose");
    const [before, after] = changes[name] as [Body, Body];
    const world = await openWorld(store);
    const ends = name === "an early end" || name === "the call left out";
    const { run, pawl } = await replaced(world, inTurn(before, go), ends ? after : inTurn(after, go));
    expect(await run.status()).toMatchObject({ state: "parked", parked: { reason: "replay_drift" } });
    await pawl.cancel("r");
  });

  it("P3 lets code follow that differs only after the last recorded entry", async () => {
    const world = await openWorld(store);
    const { run } = await replaced(
      world,
      inTurn(step("a"), go, async () => "old"),
      inTurn(step("a", 2), go, step("new", "new")),
    );
    expect(await run.result()).toBe("new");
  });

  it("P3 goes on with code that follows the journal again, after retry", async () => {
    const world = await openWorld(store);
    const good = inTurn(step("a"), go);
    const { run } = await replaced(world, good, step("b"));
    expect((await run.status()).state).toBe("parked");
    const pawl = await world.restart([workflow("changing", good)]);
    await pawl.idle();
    expect((await pawl.get("r").status()).state).toBe("parked");
    await pawl.resolve("r", "retry");
    await pawl.idle();
    expect(await pawl.get("r").status()).toMatchObject({ status: "succeeded" });
  });

  it('P3 with onMissing "execute" runs afresh what the journal does not have', async () => {
    const world = await openWorld(store);
    const ran: string[] = [];
    const noted = (ctx: Context, name: string) => ctx.step(name, () => ran.push(name));
    const { run } = await replaced(
      world,
      async (ctx) => [await noted(ctx, "a"), await noted(ctx, "b"), await ctx.waitFor("go")],
      async (ctx) => [await noted(ctx, "a"), await noted(ctx, "new"), await noted(ctx, "b"), await ctx.waitFor("go")],
      { onMissing: "execute" },
    );
    expect((await run.status()).status).toBe("succeeded");
    expect(ran).toEqual(["a", "b", "new"]);
  });

  it("S3-14 B57 catches a body that depends on something that is not recorded", async () => {
    const world = await openWorld(store);
    let flips = 0;
    const flipping: Body = async (ctx) => {
      await ctx.step(flips++ % 2 === 0 ? "heads" : "tails", () => 1);
      return ctx.waitFor("go");
    };
    const { run, pawl } = await replaced(world, flipping, flipping);
    expect((await run.status()).parked?.message).toMatch(/"heads".*"tails"/);
    await pawl.cancel("r");
  });

  it("B57 replays nothing from a journal that was edited: it parks and names the entry", async () => {
    const world = await openWorld(store);
    const { run, pawl } = await (async () => {
      const make = () =>
        workflow("edited", async (ctx) => [await ctx.step("a", () => "true"), await ctx.waitFor("go")]);
      const first = await world.open([make()]);
      await first.start(make(), undefined, { id: "r" });
      await world.settle();
      world.kill(first);
      await world.fence();
      const lying = Object.assign(Object.create(world.store) as typeof world.store, {
        claim: async (...args: Parameters<typeof world.store.claim>) =>
          (await world.store.claim(...args)).map((claimed) => ({
            ...claimed,
            journal: claimed.journal.map((entry) =>
              entry.type === "step.completed" ? { ...entry, data: '"false"' } : entry,
            ),
          })),
      });
      const { Pawl } = await import("../../src/client/pawl.ts");
      const pawl = await Pawl.open(lying, { workflows: [make()], handleSignals: false, logger: quiet });
      await pawl.signal("r", "go");
      await pawl.idle();
      return { pawl, run: pawl.get("r") };
    })();
    expect((await run.status()).parked).toMatchObject({ reason: "corrupted_journal" });
    expect((await run.status()).parked?.message).toContain("entry 2");
    await pawl.cancel("r");
    await pawl.close({ drain: 1 });
  });
});

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

describe.each(STORES)("foreign awaits on %s", (store) => {
  it("P4 allows them while nothing else is pending, live and in replay", async () => {
    const world = await openWorld(store);
    let reads = 0;
    const reading = workflow({ name: "reading", guard: "off" }, async (ctx) => {
      const text = await readFile(HERE, "utf8");
      reads++;
      const length = await ctx.step("length", () => text.length);
      await readFile(HERE);
      const again = await ctx.step("again", () => text.length);
      await ctx.waitFor("go");
      return length === again;
    });
    const first = await world.open([reading]);
    const run = await first.start(reading, undefined, { id: "r" });
    for await (const event of run.events()) if (event.type === "signal.awaited") break;
    const pawl = await world.restart([reading]);
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toBe(true);
    expect(reads).toBeGreaterThan(1);
  });

  it("P4 refuses a call after one while another branch is pending, with the line, and parks", async () => {
    const world = await openWorld(store);
    const seen = gate<unknown>();
    const hold = gate();
    let isFixed = false;
    const parallel = workflow({ name: "parallel", guard: "off" }, async (ctx) => {
      const other = ctx.step("other", () => hold.passed);
      if (!isFixed) {
        await readFile(HERE);
        await ctx.step("foreign", () => 1).catch(seen.open);
      }
      await other;
      return "done";
    });
    const pawl = await world.open([parallel]);
    const run = await pawl.start(parallel);
    const error = (await seen.passed) as { code: string; message: string };
    expect(error.code).toBe("foreign_await");
    expect(error.message).toMatch(/"foreign".*divergence\.test\.ts:\d+/);
    expect(error.message).toContain('step "other"');
    await world.settle();
    expect((await run.status()).parked).toMatchObject({ reason: "foreign_await", choices: ["retry", "cancel"] });
    expect(await world.journal(run)).not.toContain("step.started foreign");
    isFixed = true;
    hold.open();
    await pawl.resolve(run.id, "retry");
    expect(await run.result()).toBe("done");
  });

  it("P4 takes microtasks, nextTick and thenables of the body for its own", async () => {
    const world = await openWorld(store);
    const busy = workflow({ name: "busy", guard: "off" }, async (ctx) => {
      const branch = async (name: string) => {
        for (let i = 0; i < 5; i++) {
          await null;
          await Promise.resolve().then(() => null);
          await new Promise<void>((resolve) => process.nextTick(resolve));
          // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested
          await { then: (resolve: (value: number) => void) => resolve(1) };
          await ctx.step(name, () => i);
        }
      };
      await Promise.all(["a", "b", "c"].map(branch));
      await ctx.waitFor("go");
      return "done";
    });
    await (await world.open([busy])).start(busy, undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([busy]);
    await pawl.signal("r", "go");
    await world.settle();
    expect(await pawl.get("r").status()).toMatchObject({ status: "succeeded" });
    expect(await errorOf(pawl.resolve("r", "retry"))).toMatchObject({ code: "invalid_argument" });
  });
});
