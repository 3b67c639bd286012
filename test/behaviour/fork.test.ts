import { describe, expect, it } from "vitest";
import { RetryableError } from "../../src/base/errors.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, HOUR, openWorld, STORES } from "./harness.ts";

const fixed = { yes: false };

/** Three steps; the last fails until it is fixed. */
function threeSteps(starts: string[]) {
  return workflow({ name: "three", retry: false }, async (ctx, input: string) => {
    const step = (name: string, value: () => unknown) =>
      ctx.step(name, ({ key }) => {
        starts.push(`${name} ${key.split("/")[0] === ctx.run.id ? "own" : "inherited"}`);
        return value();
      });
    const a = await step("a", () => `${input} a`);
    ctx.set("seen", a);
    ctx.cost({ usd: 1 });
    const b = await step("b", () => `${String(a)} b`);
    const c = await step("c", () => (fixed.yes ? `${String(b)} c` : Promise.reject(new Error("broken"))));
    return { c, chance: ctx.random() };
  });
}

describe.each(STORES)("retry on %s", (store) => {
  it("S2-59 starts a new run at the failed step, linked to the old one, which stays as it was", async () => {
    const world = await openWorld(store);
    const starts: string[] = [];
    const three = threeSteps(starts);
    const pawl = await world.open([three]);
    fixed.yes = false;
    const run = await pawl.start(three, "in", { key: "k", tags: ["t"] });
    await errorOf(run.result());
    const before = await run.journal();
    fixed.yes = true;
    const retried = await pawl.retry(run.id);
    expect(await retried.result()).toMatchObject({ c: "in a b c" });
    expect(starts.map((line) => line.split(" ")[0])).toEqual(["a", "b", "c", "c"]);
    expect(retried.id).not.toBe(run.id);
    expect(await run.journal()).toEqual(before);
    expect((await run.status()).status).toBe("failed");
    const status = await retried.status();
    expect(status).toMatchObject({ origin: run.id, key: "k", tags: ["t"], data: { seen: "in a" }, cost: { usd: 1 } });
    // The start key has moved: whoever starts with it gets the new run.
    expect((await pawl.start(three, "in", { key: "k" })).id).toBe(retried.id);
  });

  it("P34 of a run that newer code takes over meanwhile is not for older code", async () => {
    const world = await openWorld(store);
    const moved = (version: string) =>
      workflow({ name: "moved", version, retry: false }, async (ctx) => {
        await ctx.waitFor("go");
        await ctx.step(`as in ${version}`, () => Promise.reject(new Error("broken")));
      });
    const older = moved("1.0.0");
    const before = await world.open([older]);
    const { id } = await before.start(older);
    await world.settle();
    await before.close();
    const client = await world.open([]);
    const read: Store["journal"] = world.store.journal.bind(world.store);
    world.store.journal = async (...asked) => {
      world.store.journal = read;
      const newer = await world.open([moved("1.0.1")]);
      await newer.signal(id, "go");
      await errorOf(newer.get(id).result());
      await newer.close();
      return read(...asked);
    };
    expect(await (await client.retry(id)).status()).toMatchObject({ origin: id, version: "1.0.1" });
  });

  it("I4 a fork of a run in backoff waits for the same attempt, and its waits say so", async () => {
    const world = await openWorld(store);
    const starts: string[] = [];
    const busy = workflow({ name: "busy", retry: { jitter: false } }, async (ctx) =>
      ctx.map(["a"], () =>
        ctx.step("s", ({ attempt }) => {
          starts.push(`${ctx.run.id} ${attempt}`);
          if (attempt < 3) throw new RetryableError("busy", { retryAfter: "1 h" });
          return attempt;
        }),
      ),
    );
    const pawl = await world.open([busy]);
    const run = await pawl.start(busy, undefined, { id: "source" });
    await world.advance(HOUR);
    const waitsOf = async (id: string) => (await world.store.waits({ run: id })).map(({ run: _, ...wait }) => wait);
    const waits = await waitsOf("source");
    expect(waits).toMatchObject([{ key: "retry:map/0/s", kind: "retry", name: "s" }]);
    // Nobody runs the fork: what it waits for is what its journal says.
    world.kill(pawl);
    await world.fence();
    const client = await world.open();
    const fork = await client.fork(run.id, { at: 5 });
    expect(await waitsOf(fork.id)).toEqual(waits);
    const earlier = await client.fork(run.id, { at: 4 });
    expect(await waitsOf(earlier.id)).toEqual([]);
    await world.open([busy]);
    await world.advance(HOUR);
    expect(await fork.result()).toEqual([3]);
    expect(starts.filter((start) => start.startsWith(fork.id))).toEqual([`${fork.id} 3`]);
  });

  it("S2-59 gives the step its retries back", async () => {
    const world = await openWorld(store);
    const attempts: number[] = [];
    const flaky = workflow({ name: "flaky", retry: { max: 2, jitter: false, on: "any" } }, async (ctx) =>
      ctx.step("s", ({ attempt }) => {
        attempts.push(attempt);
        if (attempts.length < 6) throw new Error("no");
        return attempts.length;
      }),
    );
    const pawl = await world.open([flaky]);
    const run = await pawl.start(flaky);
    await world.advance(HOUR);
    expect(await errorOf(run.result())).toMatchObject({ code: "max_retries_exceeded" });
    const retried = await pawl.retry(run.id);
    await world.advance(HOUR);
    expect(await retried.result()).toBe(6);
    // Attempts go on counting, so that what the step does outside is never taken for an earlier one.
    expect(attempts).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("S2-59 tries the failed one of parallel steps again, keeps what completed, and reruns what was under way", async () => {
    const world = await openWorld(store);
    const starts: string[] = [];
    const hang = gate<string>();
    const failing = gate();
    let isFixed = false;
    const parallel = workflow({ name: "parallel", retry: false }, async (ctx) => {
      const step = (name: string, value: () => unknown) =>
        ctx.step(name, () => {
          starts.push(name);
          return value();
        });
      return Promise.all([
        step("done", () => "done"),
        step("fails", async () => {
          await failing.passed;
          if (isFixed) return "fixed";
          throw new Error("broken");
        }),
        step("hangs", () => (isFixed ? "again" : hang.passed)),
      ]);
    });
    const pawl = await world.open([parallel]);
    const run = await pawl.start(parallel);
    await world.settle();
    failing.open();
    await errorOf(run.result());
    isFixed = true;
    const retried = await pawl.retry(run.id);
    expect(await retried.result()).toEqual(["done", "fixed", "again"]);
    expect(starts).toEqual(["done", "fails", "hangs", ...starts.slice(3)]);
    expect(starts.slice(3).toSorted()).toEqual(["fails", "hangs"]);
  });

  it("S2-59 reaches the failed step although the body cleaned up after it", async () => {
    const world = await openWorld(store);
    let isFixed = false;
    const tidy = workflow({ name: "tidy", retry: false }, async (ctx) => {
      try {
        return await ctx.step("work", () => (isFixed ? "worked" : Promise.reject(new Error("broken"))));
      } catch (error) {
        await ctx.step("clean up", () => 1);
        throw error;
      }
    });
    const pawl = await world.open([tidy]);
    const run = await pawl.start(tidy);
    await errorOf(run.result());
    isFixed = true;
    expect(await (await pawl.retry(run.id)).result()).toBe("worked");
  });

  it("S2-59 calls a failed child again, as a new run", async () => {
    const world = await openWorld(store);
    let isFixed = false;
    const child = workflow({ name: "child", retry: false }, async (ctx) =>
      ctx.step("s", () => (isFixed ? "fixed" : Promise.reject(new Error("broken")))),
    );
    const parent = workflow("parent", async (ctx) => [await ctx.step("a", () => 1), await ctx.call(child)]);
    const pawl = await world.open([parent, child]);
    const run = await pawl.start(parent);
    await errorOf(run.result());
    isFixed = true;
    const retried = await pawl.retry(run.id);
    expect(await retried.result()).toEqual([1, "fixed"]);
    const children = (await pawl.list({ workflow: "child" })).runs;
    expect(children.map((one) => one.status)).toEqual(["succeeded", "failed"]);
    expect(children[0]?.parent).toBe(retried.id);
  });

  it("S2-59 takes up a cancelled run where it was", async () => {
    const world = await openWorld(store);
    const starts: string[] = [];
    const waiting = workflow("waiting", async (ctx) => {
      await ctx.step("a", () => void starts.push("a"));
      return ctx.waitFor("go");
    });
    const pawl = await world.open([waiting]);
    const run = await pawl.start(waiting);
    await world.settle();
    await run.cancel();
    await errorOf(run.result());
    const retried = await pawl.retry(run.id);
    await retried.signal("go", "went");
    expect(await retried.result()).toBe("went");
    expect(starts).toEqual(["a"]);
  });

  it("I17 S2-59 retried again, it gives the run that has its key by now, unless that has failed, too", async () => {
    const world = await openWorld(store);
    let isDown = true;
    const shop = workflow("shop", async (ctx) => {
      await ctx.step("charge", () => {
        if (isDown) throw new Error("the shop is closed");
      });
      return ctx.waitFor("go");
    });
    const pawl = await world.open([shop]);
    const source = await pawl.start(shop, undefined, { key: "order-1" });
    await world.settle();
    const first = await pawl.retry(source.id);
    await world.settle();
    expect((await first.status()).state).toBe("failed");
    isDown = false;
    const second = await pawl.retry(source.id);
    expect([(await second.status()).key, second.id === first.id]).toEqual(["order-1", false]);
    // Whoever did not hear of it says it again, while the other one is at work or when it has done it.
    expect((await pawl.retry(source.id)).id).toBe(second.id);
    await second.signal("go");
    await second.result();
    for (const { id } of [source, first]) expect((await pawl.retry(id)).id).toBe(second.id);
    expect((await pawl.list({ workflow: "shop" })).runs).toHaveLength(3);
    expect((await pawl.start(shop, undefined, { key: "order-1" })).id).toBe(second.id);
  });

  it.each(["failed by its timeout", "was cancelled in it"])(
    "X-17 P10 a retry of a run that %s waits anew, for as long",
    async (how) => {
      const world = await openWorld(store);
      const waiting = workflow("waiting", async (ctx) => ctx.waitFor<string>("go", { timeout: "1h" }));
      const pawl = await world.open([waiting]);
      const source = await pawl.start(waiting);
      await world.advance(HOUR / 2);
      if (how === "was cancelled in it") await source.cancel();
      await world.advance(2 * HOUR);
      const retry = async () => {
        const run = await pawl.retry(source.id);
        await world.advance(HOUR - 1);
        expect((await run.status()).state).toBe("waiting");
        return run;
      };
      const late = await retry();
      await world.advance(1);
      expect(await errorOf(late.result())).toMatchObject({ code: "wait_timeout" });
      const again = await retry();
      await again.signal("go", "gone");
      expect(await again.result()).toBe("gone");
    },
  );

  it("X-17 refuses to retry what runs or has succeeded", async () => {
    const world = await openWorld(store);
    const waiting = workflow("waiting", async (ctx) => ctx.waitFor("go"));
    const pawl = await world.open([waiting]);
    const run = await pawl.start(waiting);
    expect(await errorOf(pawl.retry(run.id))).toMatchObject({ code: "invalid_argument" });
    await run.signal("go");
    await run.result();
    expect(await errorOf(pawl.retry(run.id))).toMatchObject({ code: "invalid_argument" });
    expect((await pawl.list()).runs).toHaveLength(1);
  });

  it("X-17 refuses to retry what is still being undone", async () => {
    const world = await openWorld(store);
    const [undoing, undone] = [gate(), gate()];
    const undo = () => {
      undoing.open();
      return undone.passed;
    };
    const flow = workflow("flow", async (ctx) => {
      await ctx.effect("pay", { do: () => "paid", undo });
      throw new Error("broken");
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    await undoing.passed;
    const refused = await errorOf(pawl.retry(run.id));
    expect(refused).toMatchObject({ code: "invalid_argument", message: expect.stringContaining("has not ended") });
    undone.open();
    await errorOf(run.result());
    expect((await pawl.retry(run.id)).id).not.toBe(run.id);
  });

  it("C-3 E-13 does not repeat an action that may have happened, and that nothing keeps from happening twice", async () => {
    const world = await openWorld(store);
    let times = 0;
    const pay = () => {
      times++;
      throw new RetryableError("the answer was lost");
    };
    const flow = workflow("flow", async (ctx) => ctx.effect("pay", { do: pay }, { recovery: "fail" }));
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    await errorOf(run.result());
    const retried = await pawl.retry(run.id);
    expect(await errorOf(retried.result())).toMatchObject({ code: "step_interrupted" });
    expect(times).toBe(1);
  });

  it("S2-59 I10 leaves all questions behind that nobody has answered, and asks them again", async () => {
    const world = await openWorld(store);
    const lost = () => {
      throw new RetryableError("the answer was lost");
    };
    const flow = workflow("flow", async (ctx) =>
      Promise.all([ctx.effect("a", { do: lost }), ctx.effect("b", { do: lost })]),
    );
    const pawl = await world.open([flow]);
    await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    // What was said about the first one is not read before there is an answer about the second.
    await pawl.resolve("r", { choice: "happened", value: 0 });
    await world.settle();
    const parks = (await pawl.get("r").journal()).filter(({ type }) => type === "run.parked");
    expect(parks).toHaveLength(2);
    await pawl.cancel("r");
    const retried = await pawl.retry("r");
    for (const value of [1, 2]) {
      await world.settle();
      const { parked } = await retried.status();
      expect(parked).toMatchObject({ reason: "unknown_outcome" });
      await pawl.resolve(retried.id, { choice: "happened", value });
    }
    expect([await retried.result()].flat().sort()).toEqual([1, 2]);
  });

  it("P10 an action keeps the key that it was planned with, though the body would make another one of it", async () => {
    const world = await openWorld(store);
    const keys: string[] = [];
    const flow = workflow("flow", async (ctx) => {
      await ctx.effect("pay", {
        key: `order of ${ctx.run.id}`,
        do: ({ key }) => void keys.push(`do ${key}`),
        undo: (_value, { undoes }) => void keys.push(`undo ${undoes}`),
      });
      await ctx.waitFor("go");
      throw new Error("broken");
    });
    const pawl = await world.open([flow]);
    await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    await pawl.cancel("r");
    const retried = await pawl.retry("r");
    await retried.signal("go");
    await errorOf(retried.result());
    expect(keys).toEqual(["do order of r", "undo order of r"]);
  });
});

describe.each(STORES)("fork on %s", (store) => {
  const begin = async (): Promise<{ world: Awaited<ReturnType<typeof openWorld>>; pawl: Pawl; starts: string[] }> => {
    const world = await openWorld(store);
    const starts: string[] = [];
    fixed.yes = true;
    const three = threeSteps(starts);
    const pawl = await world.open([three]);
    await pawl.run(three, "in", { id: "source", key: "k" });
    return { world, pawl, starts: starts.splice(0, 3) && starts };
  };

  it("S2-59 P10 inherits the journal up to a step, keeps the source's key, and draws its own chance from there on", async () => {
    const { world, pawl, starts } = await begin();
    const source = (await pawl.get("source").result()) as { c: string; chance: number };
    const fork = await pawl.fork("source", { at: "b" });
    const result = (await fork.result()) as typeof source;
    expect(result.c).toBe("in a b c");
    expect(result.chance).not.toBe(source.chance);
    // What it does from here on is its own, and outside systems see it so.
    expect(starts).toEqual(["b own", "c own"]);
    expect(await fork.status()).toMatchObject({ origin: "source", key: null });
    expect(await world.journal(fork)).toContain("run.forked");
    expect(await pawl.get("source").status()).toMatchObject({ status: "succeeded", key: "k" });
  });

  it("P10 keeps the inherited keys and chance of the prefix through a restart", async () => {
    const world = await openWorld(store);
    const seen: unknown[][] = [];
    const flow = workflow("chance", async (ctx) => {
      const before = [ctx.random(), ctx.uuid()];
      await ctx.step("a", () => 1);
      const after = [ctx.random(), ctx.uuid()];
      await ctx.step("b", () => 1);
      await ctx.waitFor("go");
      seen.push([...before, ...after]);
    });
    const first = await world.open([flow]);
    await first.start(flow, undefined, { id: "source" });
    await world.settle();
    const fork = await first.fork("source", { at: "b" });
    await world.settle();
    const pawl = await world.restart([flow]);
    for (const id of ["source", fork.id]) {
      await pawl.signal(id, "go");
      await pawl.get(id).result();
    }
    const [source, forked] = seen as [unknown[], unknown[]];
    expect(forked.slice(0, 2)).toEqual(source.slice(0, 2));
    expect(forked.slice(2)).not.toEqual(source.slice(2));
  });

  it("S2-59 forks by position, at every entry of a run with parallel steps, waits and a child", async () => {
    const world = await openWorld(store);
    const child = workflow("child", async (ctx, n: number) => ctx.step("c", () => n));
    const rich = workflow("rich", async (ctx) => {
      const [a, b] = await Promise.all([ctx.step("a", () => 1), ctx.step("b", () => 2)]);
      const c = await ctx.call(child, 3);
      await ctx.sleep("1h");
      const got = await ctx.waitFor("go", { timeout: "1h", default: 4 });
      return [a, b, c, got];
    });
    const pawl = await world.open([rich, child]);
    const run = await pawl.start(rich, undefined, { id: "source" });
    await world.advance(2 * HOUR);
    expect(await run.result()).toEqual([1, 2, 3, 4]);
    const length = (await run.journal()).length;
    for (let at = 1; at < length; at++) {
      const fork = await pawl.fork("source", { at });
      await world.advance(2 * HOUR);
      expect(await fork.status(), `fork at ${at}`).toMatchObject({ status: "succeeded", output: [1, 2, 3, 4] });
    }
  });

  it("S2-59 forks a run whose child is still open: the fork gets a child of its own", async () => {
    const world = await openWorld(store);
    const child = workflow("child", async (ctx) => ctx.waitFor("go"));
    const parent = workflow("parent", async (ctx) => [await ctx.step("a", () => 1), await ctx.call(child)]);
    const pawl = await world.open([parent, child]);
    const run = await pawl.start(parent);
    await world.settle();
    const fork = await pawl.fork(run.id, { at: (await run.journal()).length });
    await world.settle();
    for (const { id } of [run, fork]) {
      const [own] = (await pawl.list({ parent: id })).runs;
      await pawl.signal(own?.id as string, "go", `child of ${id}`);
      expect(await pawl.get(id).result()).toEqual([1, `child of ${id}`]);
    }
  });

  it("S2-59 does not inherit an end: a fork at the very end of a finished run ends by itself", async () => {
    const { world, pawl } = await begin();
    const length = (await pawl.get("source").journal()).length;
    const fork = await pawl.fork("source", { at: length }).catch((error: unknown) => error as Error);
    if (fork instanceof Error) return expect(fork).toMatchObject({ code: "invalid_argument" });
    expect(await fork.result()).toMatchObject({ c: "in a b c" });
    expect((await world.journal(fork)).filter((line) => line === "run.succeeded")).toHaveLength(1);
  });

  it("S2-59 forks a parked run without inheriting the question", async () => {
    const world = await openWorld(store);
    const asking = workflow("asking", async (ctx) =>
      ctx.step("ask", ({ attempt }) => (attempt === 1 ? new Promise<never>(() => {}) : "ran"), { recovery: "ask" }),
    );
    await (await world.open([asking])).start(asking, undefined, { id: "source" });
    await world.settle();
    const pawl = await world.restart([asking]);
    await pawl.idle();
    const length = (await pawl.get("source").journal()).length;
    expect((await pawl.get("source").status()).state).toBe("parked");
    const fork = await pawl.fork("source", { at: length });
    await world.settle();
    const status = await fork.status();
    // Wherever it stands, a person can go on with it.
    if (status.state === "parked") {
      expect(status.parked?.choices).toContain("rerun");
      await pawl.resolve(fork.id, "rerun");
    }
    expect(await fork.result()).toBe("ran");
    await pawl.cancel("source");
  });

  it("S2-59 says which points there are when one is none", async () => {
    const { pawl } = await begin();
    for (const at of ["nothing", 0, 99, 1.5])
      expect(await errorOf(pawl.fork("source", { at }))).toMatchObject({ code: "invalid_argument" });
    expect((await errorOf(pawl.fork("source", { at: "nothing" }))).message).toContain("a, b, c");
  });
});
