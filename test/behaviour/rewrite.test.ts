import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Continued } from "../../src/core/journal.ts";
import { workflow } from "../../src/core/workflow.ts";
import { withoutColdStart } from "../cold-start.ts";
import { errorOf, gate, openWorld, STORES, type World } from "./harness.ts";

const WHO = { cause: "edit", by: "ann", reason: "wrong address" } as const;

interface Seen {
  readonly input: string;
  readonly adopted: unknown;
  readonly color: unknown;
  readonly keys: readonly string[];
}

/** Waits for a signal; what its bodies have seen is in `seen`. */
function make(seen: Seen[] = []) {
  return workflow("letter", async (ctx, input: string) => {
    const keys: string[] = [];
    ctx.set("color", ctx.get("color") ?? "blue");
    seen.push({ input, adopted: ctx.run.adopted, color: ctx.get("color"), keys });
    await ctx.step("print", ({ key }) => void keys.push(key));
    const sent = await ctx.waitFor("send");
    return `${input} ${String(sent)}`;
  });
}

async function begin(world: World, seen: Seen[] = []): Promise<Pawl> {
  const letter = make(seen);
  const pawl = await world.open([letter]);
  await pawl.start(letter, "to bob", { id: "r" });
  await pawl.idle();
  return pawl;
}

describe.each(STORES)("rewriting on %s", (store) => {
  it("P10 C-23 S0-43 goes on from what it was given, as a new generation that says who did it and why", async () => {
    const world = await openWorld(store);
    const seen: Seen[] = [];
    const pawl = await begin(world, seen);
    const before = await world.journal("r");
    await pawl.rewrite("r", { ...WHO, input: "to eve", state: { color: "red" }, adopted: { printed: true } });
    await pawl.idle();
    expect(seen.map(({ keys, ...rest }) => rest)).toEqual([
      { input: "to bob", adopted: undefined, color: "blue" },
      { input: "to eve", adopted: { printed: true }, color: "red" },
    ]);
    // An interrupted effect keeps its key (RW2).
    expect(seen[1]?.keys).toEqual(seen[0]?.keys);
    const after = await world.journal("r");
    expect(after.slice(0, before.length)).toEqual(before);
    const continued = (await pawl.get("r").journal())[before.length];
    expect(continued).toMatchObject({
      type: "run.continued",
      payload: {
        generation: 1,
        input: "to eve",
        state: { color: "red" },
        adopted: { printed: true },
        seed: "r",
        ...WHO,
      },
    });
    const status = await pawl.get("r").status();
    expect(status.data).toEqual({ color: "red" });
    expect(status.waits.map(({ name }) => name)).toEqual(["send"]);
    await pawl.signal("r", "send", "now");
    expect(await pawl.get("r").result()).toBe("to eve now");
  });

  it("P10 keeps what is not named, and a signal that nobody has read yet", async () => {
    const world = await openWorld(store);
    const seen: Seen[] = [];
    const pawl = await begin(world, seen);
    await pawl.close();
    const client = await world.open();
    await client.signal("r", "send", "early");
    await client.rewrite("r", { ...WHO, adopted: [1] });
    const next = await world.open([make(seen)]);
    expect(await next.get("r").result()).toBe("to bob early");
    expect(seen.at(-1)).toMatchObject({ input: "to bob", color: "blue", adopted: [1] });
  });

  it("P10 state that is not in the new state is gone", async () => {
    const world = await openWorld(store);
    const pawl = await begin(world);
    await pawl.close();
    const client = await world.open();
    await client.rewrite("r", { ...WHO, state: { size: 3 } });
    expect((await client.get("r").status()).data).toEqual({ color: undefined, size: 3 });
  });

  it("RW3 ends a park: the run is claimed again, and an old decision about it counts no more", async () => {
    withoutColdStart("its code does not follow its journal, on purpose");
    const world = await openWorld(store);
    const drifting = (name: string) =>
      workflow("drifting", async (ctx, input: string) => {
        if (ctx.run.adopted === undefined) await ctx.step(name, () => 1);
        await ctx.waitFor("go");
        return input;
      });
    const first = await world.open([drifting("a")]);
    await first.start(drifting("a"), "x", { id: "r" });
    await first.idle();
    const pawl = await world.restart([drifting("b")]);
    await pawl.signal("r", "go");
    await pawl.idle();
    expect((await pawl.get("r").status()).parked).toMatchObject({ reason: "replay_drift" });
    await pawl.close();
    const client = await world.open();
    await client.resolve("r", "retry");
    await client.rewrite("r", { ...WHO, input: "y", adopted: true });
    expect((await client.get("r").status()).parked).toBeUndefined();
    const last = await world.open([drifting("b")]);
    expect(await last.get("r").result()).toBe("y");
    expect((await world.journal("r")).filter((line) => line === "run.resolved")).toHaveLength(1);
  });

  it("P12 RW1 closes what the generation before waited for: an open child is cancelled", async () => {
    const world = await openWorld(store);
    const child = workflow("child", async (ctx) => ctx.waitFor("never"));
    const parent = workflow("parent", async (ctx, input: string) => {
      if (ctx.run.adopted === undefined) await ctx.call(child);
      return input;
    });
    const pawl = await world.open([parent, child]);
    await pawl.start(parent, "a", { id: "r" });
    await pawl.idle();
    const [wait] = (await pawl.get("r").status()).waits;
    await pawl.rewrite("r", { ...WHO, input: "b", adopted: "no child" });
    expect(await pawl.get("r").result()).toBe("b");
    await pawl.idle();
    expect((await pawl.get(wait?.name ?? "").status()).state).toBe("cancelled");
  });

  it("gives back what an interrupted step had reserved of a budget, and counts it as spent", async () => {
    const world = await openWorld(store);
    const costly = workflow({ name: "costly", budget: { usd: 10 } }, async (ctx, input: string) => {
      if (ctx.run.adopted === undefined)
        await ctx.step("think", () => new Promise<never>(() => {}), { spend: { usd: 2 } });
      return input;
    });
    const first = await world.open([costly]);
    await first.start(costly, "a", { id: "r" });
    await world.settle();
    world.kill(first);
    await world.fence();
    const client = await world.open();
    await client.rewrite("r", { ...WHO, adopted: "thought" });
    const { budget, cost } = await client.get("r").status();
    expect(budget).toMatchObject({ spent: { usd: 2 }, reserved: { usd: 0 } });
    expect(cost).toEqual({ usd: 2 });
    const pawl = await world.open([costly]);
    expect(await pawl.get("r").result()).toBe("a");
  });

  it("P18 P19 refuses a run that a worker has, and names the worker", async () => {
    const world = await openWorld(store);
    const hold = gate();
    const busy = workflow("busy", async (ctx) => ctx.step("s", () => hold.passed));
    const pawl = await world.open([busy], { name: "host-7" });
    await pawl.start(busy, undefined, { id: "r" });
    await world.settle();
    const client = await world.open();
    for (const one of [client, pawl]) {
      const error = await errorOf(one.rewrite("r", WHO));
      expect(error).toMatchObject({ code: "run_busy", fields: { run: "r" } });
      expect(error.message).toContain("host-7");
    }
    hold.open();
    await pawl.get("r").result();
    expect(await errorOf(client.rewrite("r", WHO))).toMatchObject({ code: "run_ended" });
    expect(await errorOf(client.rewrite("nobody", WHO))).toMatchObject({ code: "run_not_found" });
  });

  it("C-23 refuses what is wrong with its path, and leaves the run as it was", async () => {
    const world = await openWorld(store);
    const strict = workflow({ name: "strict", input: z.object({ to: z.string() }) }, async (ctx, input) => {
      await ctx.waitFor("go");
      return input.to;
    });
    const pawl = await world.open([strict]);
    await pawl.start(strict, { to: "bob" }, { id: "r" });
    await pawl.idle();
    const before = await world.journal("r");
    const wrong = await errorOf(pawl.rewrite("r", { ...WHO, input: { to: 7 } }));
    expect(wrong).toMatchObject({ code: "schema_mismatch" });
    expect(wrong.message).toContain("to");
    for (const [options, field] of [
      [{ ...WHO, by: "" }, "by"],
      [{ ...WHO, reason: "" }, "reason"],
      [{ ...WHO, state: [] as never }, "state"],
      [{ ...WHO, version: "2" }, "version"],
    ] as const)
      expect(await errorOf(pawl.rewrite("r", options))).toMatchObject({ code: "invalid_argument", fields: { field } });
    expect(await errorOf(pawl.rewrite("r", { ...WHO, adopted: { no: () => {} } }))).toMatchObject({
      code: "not_serializable",
    });
    await pawl.idle();
    expect(await world.journal("r")).toEqual(before);
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toBe("bob");
  });

  it("P19 a run that is being cancelled or undone is left alone", async () => {
    const world = await openWorld(store);
    const hold = gate();
    const undoing = workflow("undoing", async (ctx) => {
      await ctx.step("book", () => 1, { undo: () => hold.passed });
      await ctx.waitFor("go");
    });
    const first = await world.open([undoing]);
    await first.start(undoing, undefined, { id: "r" });
    await first.idle();
    void first.cancel("r", { compensate: true });
    await world.settle();
    world.kill(first);
    await world.fence();
    const client = await world.open();
    expect(await errorOf(client.rewrite("r", WHO))).toMatchObject({ code: "run_busy" });
    hold.open();
    const pawl = await world.open([undoing]);
    await pawl.idle();
    expect((await pawl.get("r").status()).state).toBe("cancelled");
  });

  it("P10 a fork of it goes on from the same state, with keys of its own from there", async () => {
    const world = await openWorld(store);
    const seen: Seen[] = [];
    const pawl = await begin(world, seen);
    await pawl.rewrite("r", { ...WHO, input: "to eve", adopted: 1 });
    await pawl.idle();
    const fork = await pawl.fork("r", { at: (await world.journal("r")).length });
    await fork.signal("send", "forked");
    expect(await fork.result()).toBe("to eve forked");
    expect(seen.at(-1)).toMatchObject({ adopted: 1, keys: [] });
  });

  it("a run can be started with what was done before it began", async () => {
    const world = await openWorld(store);
    const seen: Seen[] = [];
    const letter = make(seen);
    const pawl = await world.open([letter]);
    await pawl.start(letter, "x", { id: "r", adopted: { phases: { intake: "done" } } });
    await pawl.idle();
    await world.restart([letter]);
    await world.settle();
    expect(seen.map(({ adopted }) => adopted)).toEqual(seen.map(() => ({ phases: { intake: "done" } })));
  });
});

describe.each(STORES)("rewriting, killed, on %s", (store) => {
  it.each([
    ["before it takes the run", "take", "before", false],
    ["after it has taken it", "take", "after", false],
    ["before its commit", "commit", "before", false],
    ["after its commit", "commit", "after", true],
  ] as const)("I2 P10 %s: all of it has happened or nothing", async (_, method, when, isDone) => {
    const world = await openWorld(store);
    const seen: Seen[] = [];
    const pawl = await begin(world, seen);
    await pawl.close();
    const client = await world.open();
    const original = world.store[method].bind(world.store) as (...args: never[]) => Promise<unknown>;
    vi.spyOn(world.store, method).mockImplementationOnce((async (...args: never[]) => {
      if (when === "before") {
        world.kill(client);
        return new Promise(() => {});
      }
      const answer = await original(...args);
      world.kill(client);
      return answer;
    }) as never);
    void client.rewrite("r", { ...WHO, input: "to eve" });
    await world.settle();
    const next = await world.restart([make(seen)]);
    await next.idle();
    await next.signal("r", "send", "now");
    expect(await next.get("r").result()).toBe(isDone ? "to eve now" : "to bob now");
    const rewrites = (await next.get("r").journal()).filter((entry) => (entry.payload as Continued)?.cause === "edit");
    expect(rewrites).toHaveLength(isDone ? 1 : 0);
  });
});

describe.each(STORES)("what a workflow uses, on %s", (store) => {
  const make = (version: string, review: string) =>
    workflow(
      { name: "using", version, uses: { prompts: { review }, models: { writer: "m-1" } } },
      async (ctx, n: number) => {
        await ctx.waitFor("go");
        if (n > 0) return ctx.continueAs(n - 1);
        return ctx.run.uses["prompts"]?.["review"];
      },
    );

  it("S2-60 S2-70 is pinned per run: a patch that changes it leaves runs in flight with what they had", async () => {
    const world = await openWorld(store);
    const old = make("1.0.0", "3");
    const first = await world.open([old]);
    await first.start(old, 1, { id: "r" });
    await first.idle();
    const [started] = await first.get("r").journal();
    expect(started?.payload).toMatchObject({
      version: "1.0.0",
      uses: { prompts: { review: "3" }, models: { writer: "m-1" } },
    });
    const pawl = await world.restart([make("1.0.1", "4")]);
    await pawl.signal("r", "go");
    await pawl.idle();
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toBe("3");
    const fresh = await pawl.start(make("1.0.1", "4"), 0);
    await fresh.signal("go");
    expect(await fresh.result()).toBe("4");
  });
});

it("S2-60 refuses versions that are none, with their path", () => {
  const make = (uses: unknown) => () => workflow({ name: "w", uses: uses as never }, async () => 1);
  expect(make({ prompts: { review: 3 } })).toThrow(/uses\.prompts\.review/);
  expect(make({ prompts: "3" })).toThrow(/uses\.prompts/);
  expect(make([])).toThrow(/uses/);
});
