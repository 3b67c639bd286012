// Values at the limit, one below and one above it, through every door. The limit is lowered here: what is shown does not depend on its size.
import { describe, expect, it, vi } from "vitest";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Entry, RunStarted } from "../../src/core/journal.ts";
import { LIMITS } from "../../src/core/limits.ts";
import { type Workflow, workflow } from "../../src/core/workflow.ts";
import { withoutColdStart } from "../cold-start.ts";
import { gate, openWorld, STORES, type World } from "./harness.ts";

withoutColdStart("its bodies return what the test holds out to them at the moment");

vi.mock("../../src/core/limits.ts", async (original) => {
  const module = await original<typeof import("../../src/core/limits.ts")>();
  return { ...module, LIMITS: { ...module.LIMITS, valueBytes: 10_000, envelopeBytes: 2000 } };
});

/** What a door does with a value, and what comes out on its other side. */
type Door = (world: World, value: unknown) => Promise<unknown>;

/** A door inside a body: the body passes the value through it and answers with what it gets. */
function inBody(body: (ctx: Parameters<Workflow["definition"]["handler"]>[0], value: unknown) => unknown): Door {
  return async (world, value) => {
    let seen: unknown;
    const passing = workflow("passing", async (ctx) => {
      seen = await (async () => body(ctx, value))().catch((error: unknown) => error);
    });
    const pawl = await world.open([passing, echo, giving]);
    given = value;
    await pawl.run(passing);
    return seen;
  };
}

let given: unknown;
const echo = workflow("echo", async (_ctx, input: unknown) => input);
const giving = workflow("giving", async () => given);

function same(value: unknown): unknown {
  return value;
}

async function startedWith(pawl: Pawl, run: string): Promise<unknown> {
  const [first] = await pawl.get(run).journal();
  return (first as Entry<RunStarted>).payload.input;
}

const doors: Readonly<Record<string, Door>> = {
  "the input": async (world, value) => {
    const silent = workflow("silent", async (_ctx, _input: unknown) => 1);
    const pawl = await world.open([silent]);
    const run = await pawl.start(silent, value);
    await run.result();
    return startedWith(pawl, run.id);
  },
  "the output": async (world, value) => {
    given = value;
    return (await world.open([giving])).run(giving);
  },
  "a step's result": inBody((ctx, value) => ctx.step("s", () => value, { retry: false })),
  "a step's argument": inBody((ctx, value) => ctx.step(same, value)),
  "run state": inBody((ctx, value) => {
    ctx.set("k", value);
    return ctx.get("k");
  }),
  "a child's input": inBody((ctx, value) => ctx.call(echo, value)),
  "a child's output": inBody(async (ctx) => {
    try {
      return await ctx.call(giving);
    } catch (error) {
      return (error as Error).cause;
    }
  }),
  "a signal": async (world, value) => {
    const waiting = workflow("waiting", async (ctx) => ctx.waitFor("go"));
    const pawl = await world.open([waiting]);
    const run = await pawl.start(waiting);
    await run.signal("go", value);
    return run.result();
  },
  "the input of the next generation": async (world, value) => {
    let seen: unknown;
    const again = workflow("again", async (ctx, input: unknown) => {
      if (input !== "first") seen = input;
      else await ctx.continueAs(value).catch((error: unknown) => (seen = error));
    });
    await (await world.open([again])).run(again, "first");
    return seen;
  },
  progress: async (world, value) => reported(world, (ctx) => ctx.progress(value)),
  "a heartbeat's detail": async (world, value) =>
    reported(world, (ctx) => ctx.step("beat", ({ heartbeat }) => heartbeat(value), { retry: false })),
  "a decision": async (world, value) => {
    const asking = workflow("asking", async (ctx) =>
      ctx.step("s", () => gate().passed, { recovery: "ask", retry: false }),
    );
    await (await world.open([asking])).start(asking, undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([asking]);
    await world.settle();
    try {
      await pawl.resolve("r", { choice: "complete", value });
    } catch (error) {
      await pawl.resolve("r", "fail");
      throw error;
    }
    return pawl.get("r").result();
  },
};

async function reported(world: World, report: (ctx: Parameters<typeof echo.definition.handler>[0]) => unknown) {
  let refusal: unknown;
  const reporting = workflow("reporting", async (ctx) => {
    await ctx.step("before", () => 1);
    await (async () => report(ctx))().catch((error: unknown) => (refusal = error));
    await ctx.step("after", () => 1);
  });
  const pawl = await world.open([reporting]);
  const run = await pawl.start(reporting);
  await run.result();
  if (refusal !== undefined) throw refusal;
  return (await run.status()).progress;
}

/** A text that takes so many bytes when it is stored. */
function textOf(bytes: number): string {
  return "x".repeat(bytes - 2);
}

function levelsOf(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = { down: value };
  return value;
}

const passed = async (door: Door, world: World, value: unknown): Promise<unknown> =>
  door(world, value).catch((error: unknown) => error);

describe.each(STORES)("values at their limit on %s", (store) => {
  it.each(Object.keys(doors))("B65 I20 %s: the limit is kept, one byte more is refused at the call", async (name) => {
    const door = doors[name] as Door;
    // Arguments are stored as a list.
    const limit = LIMITS.valueBytes - (name === "a step's argument" ? 2 : 0);
    for (const bytes of [limit - 1, limit]) {
      const world = await openWorld(store);
      expect(await passed(door, world, textOf(bytes)), `${bytes} bytes`).toSatisfy((seen) => seen === textOf(bytes));
      expect(world.lines.filter(({ message }) => message.includes("again"))).toEqual([]);
    }
    const world = await openWorld(store);
    expect(await passed(door, world, textOf(limit + 1))).toMatchObject({ code: "too_large" });
    await world.settle();
    expect(world.lines.filter(({ message }) => message.includes("again"))).toEqual([]);
  });

  it.each(Object.keys(doors))("B65 Q8 %s: 62 levels are kept, 63 are refused at the call", async (name) => {
    const door = doors[name] as Door;
    const deepest = 62 - (name === "a step's argument" ? 1 : 0);
    const world = await openWorld(store);
    expect(JSON.stringify(await passed(door, world, levelsOf(deepest)))).toBe(JSON.stringify(levelsOf(deepest)));
    const other = await openWorld(store);
    expect(await passed(door, other, levelsOf(deepest + 1))).toMatchObject({ code: "not_serializable" });
    await other.settle();
    const lines = [...world.lines, ...other.lines].map(({ message }) => message);
    expect(lines.filter((line) => line.includes("again"))).toEqual([]);
  });

  it("B65 a note: the limit is kept, one byte more is refused at the call", async () => {
    const world = await openWorld(store);
    const refusals: unknown[] = [];
    const noting = workflow("noting", async (ctx) => {
      for (const bytes of [LIMITS.valueBytes, LIMITS.valueBytes + 1]) {
        try {
          ctx.note(textOf(bytes));
        } catch (error) {
          refusals.push(error);
        }
      }
    });
    const pawl = await world.open([noting]);
    const run = await pawl.start(noting);
    await run.result();
    expect(refusals).toMatchObject([{ code: "too_large" }]);
    const notes = (await run.journal()).filter(({ type }) => type === "note");
    expect(notes.map(({ payload }) => payload)).toEqual([{ text: textOf(LIMITS.valueBytes) }]);
  });

  it("B65 run state that is too large together is refused by continueAs, and the run goes on", async () => {
    const world = await openWorld(store);
    const hoarding = workflow("hoarding", async (ctx) => {
      for (const key of ["a", "b"]) ctx.set(key, textOf(LIMITS.valueBytes));
      return ctx.continueAs(undefined).catch((error: { code: string }) => error.code);
    });
    expect(await (await world.open([hoarding])).run(hoarding)).toBe("too_large");
  });

  it("B65 B66 an error above the limit is recorded shortened, by a step, a body and a child", async () => {
    for (const bytes of [LIMITS.valueBytes - 100, LIMITS.valueBytes, 3 * LIMITS.valueBytes]) {
      const world = await openWorld(store);
      const failing = workflow("failing", async (ctx) =>
        ctx.step("s", () => Promise.reject(new Error(textOf(bytes))), { retry: false }),
      );
      const parent = workflow("parent", async (ctx) => ctx.call(failing));
      const pawl = await world.open([failing, parent]);
      await expect(pawl.run(failing), `${bytes} bytes`).rejects.toThrow(/^x{9000}/);
      await expect(pawl.run(parent), `${bytes} bytes`).rejects.toMatchObject({ code: "child_failed" });
      expect(world.lines.filter(({ message }) => message.includes("again"))).toEqual([]);
    }
  });
});

describe.each(STORES)("the reason of a cancel on %s", (store) => {
  const waiting = workflow("waiting", async (ctx) => ctx.waitFor("go"));
  const parent = workflow("parent", async (ctx) => ctx.call(waiting));

  it("B65 is kept up to its limit, and refused at the call above it, and the run is unharmed", async () => {
    const world = await openWorld(store);
    const pawl = await world.open([waiting]);
    const run = await pawl.start(waiting);
    await world.settle();
    for (const reason of ["é".repeat(LIMITS.reasonBytes / 2 + 1), "x".repeat(LIMITS.reasonBytes + 1)])
      await expect(run.cancel({ reason })).rejects.toMatchObject({ code: "too_large" });
    await expect(run.cancel({ reason: 5 as never })).rejects.toMatchObject({ code: "invalid_argument" });
    await world.settle();
    expect((await run.status()).state).toBe("waiting");
    const reason = "é".repeat(LIMITS.reasonBytes / 2);
    await run.cancel({ reason });
    await expect(run.result()).rejects.toMatchObject({ code: "cancelled", fields: { reason } });
  });

  it.each([
    ["with its body", true],
    ["without a body", false],
  ])(
    "B65 I20 P19 one that is stored all the same, and too long or no text, is mended: the run and its child end, %s",
    async (_, hasBody) => {
      for (const [stored, recorded] of [
        ["x".repeat(3 * LIMITS.valueBytes), /^x+…$/],
        ["👍".repeat(LIMITS.reasonBytes), /^(👍)+�?…$/],
      ] as const) {
        const world = await openWorld(store);
        const pawl = await world.open([waiting, parent]);
        await pawl.start(parent, undefined, { id: "r" });
        await world.settle();
        const [wait] = await world.store.waits({ run: "r" });
        if (!hasBody) world.kill(pawl);
        if (!hasBody) await world.fence();
        await world.store.deliver({ to: "r", id: "c", kind: "cancel", name: "", data: stored });
        const other = hasBody ? pawl : await world.open();
        expect(await other.cancel("r")).toMatchObject({ outcome: expect.stringMatching(/^cancel/) });
        if (!hasBody) await other.cancel(wait?.name as string);
        await world.settle();
        expect((await other.get("r").status()).error).toMatchObject({
          fields: { reason: expect.stringMatching(recorded) },
        });
        expect(await other.get(wait?.name as string).status()).toMatchObject({ state: "cancelled" });
      }
    },
  );
});
