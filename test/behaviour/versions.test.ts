import { describe, expect, it } from "vitest";
import type { Pawl } from "../../src/client/pawl.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, openWorld, STORES, type World } from "./harness.ts";

const make = (version: string) =>
  workflow({ name: "versioned", version }, async (ctx) => {
    await ctx.step("a", () => 1);
    await ctx.waitFor("go");
    return ctx.run.version;
  });

async function begin(world: World, version: string): Promise<void> {
  await (await world.open([make(version)])).start(make(version), undefined, { id: "r" });
  await world.settle();
}

describe.each(STORES)("versions on %s", (store) => {
  it("P34 I23 a newer patch picks a run up and records that once; the older one no longer takes it", async () => {
    const world = await openWorld(store);
    await begin(world, "1.2.3");
    const newer = await world.restart([make("1.2.5")]);
    await newer.signal("r", "unrelated");
    await newer.idle();
    expect((await newer.get("r").status()).version).toBe("1.2.5");
    await newer.signal("r", "unrelated");
    await newer.idle();
    const changes = (await newer.get("r").journal()).filter((entry) => entry.type === "version.changed");
    expect(changes.map((entry) => entry.payload)).toEqual([{ from: "1.2.3", to: "1.2.5" }]);
    const older = await world.restart([make("1.2.4")]);
    await older.signal("r", "go");
    await older.idle();
    expect((await older.get("r").status()).status).toBe("waiting");
    const pawl = await world.open([make("1.2.5")]);
    await pawl.idle();
    expect(await pawl.get("r").result()).toBe("1.2.5");
  });

  it.each(["1.3.0", "2.0.0", "1.2.2"])(
    "P34 I23 leaves a run of 1.2.3 alone that only %s could take: it is stranded, unharmed",
    async (version) => {
      const world = await openWorld(store);
      await begin(world, "1.2.3");
      const wrong = await world.restart([make(version)]);
      await wrong.signal("r", "go");
      await wrong.idle();
      expect(await world.journal("r")).toEqual([
        "run.started",
        "step.started a",
        "step.completed a",
        "signal.awaited go",
      ]);
      expect(await world.store.run("r")).toMatchObject({ version: "1.2.3", owner: null });
      const pawl = await world.restart([make(version), make("1.2.3")]);
      expect(await pawl.get("r").result()).toBe("1.2.3");
    },
  );

  it("P34 starts with the newest version, and runs several side by side", async () => {
    const world = await openWorld(store);
    const pawl = await world.open([make("1.0.0"), make("2.1.0"), make("2.0.9")]);
    const runs: [Awaited<ReturnType<Pawl["start"]>>, string][] = [
      [await pawl.start("versioned"), "2.1.0"],
      [await pawl.start(make("1.0.0")), "1.0.0"],
      [await pawl.start(make("2.0.9")), "2.0.9"],
    ];
    for (const [run, version] of runs) {
      await run.signal("go");
      expect(await run.result()).toBe(version);
    }
  });

  it("P34 picks up a run that sleeps for a moment with newer code, and comes to rest", async () => {
    const world = await openWorld(store);
    const napping = (version: string) =>
      workflow({ name: "napping", version }, async (ctx) => {
        await ctx.sleep(800);
        return ctx.run.version;
      });
    await (await world.open([napping("1.0.0")])).start(napping("1.0.0"), undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([napping("1.0.1")]);
    await world.settle();
    expect((await pawl.get("r").status()).version).toBe("1.0.1");
    await pawl.idle();
    await world.advance(800);
    expect(await pawl.get("r").result()).toBe("1.0.1");
  });

  it("P34 refuses versions that are none", async () => {
    expect(() => make("1.0")).toThrow(/major\.minor\.patch/);
    const world = await openWorld(store);
    const client = await world.open();
    expect(await errorOf(client.start("versioned", 1, { version: "x" }))).toMatchObject({ code: "invalid_argument" });
  });
});

describe.each(STORES)("poison on %s", (store) => {
  it("P28 I19 B69 parks a run that kills its worker again and again; its neighbours finish", async () => {
    const world = await openWorld(store);
    const victim: { pawl?: Pawl } = {};
    const deadly = workflow("deadly", async (ctx) => {
      await ctx.step("fine", () => 1);
      await ctx.step("abort", () => {
        world.kill(victim.pawl as Pawl);
        return new Promise<never>(() => {});
      });
    });
    const good = workflow("good", async (ctx, n: number) => ctx.step("s", () => n));
    const client = await world.open();
    await client.start("deadly", undefined, { id: "bad", version: "1.0.0" });
    for (let n = 0; n < 20; n++) await client.start("good", n, { id: `good${n}`, version: "1.0.0" });
    let deaths = 0;
    for (; deaths < 20; deaths++) {
      victim.pawl = await world.open([deadly, good]);
      await world.settle();
      if ((await client.get("bad").status()).state === "parked") break;
      world.kill(victim.pawl);
      await world.fence();
    }
    expect(deaths).toBeLessThanOrEqual(6);
    expect(deaths).toBeGreaterThanOrEqual(3);
    const { parked } = await client.get("bad").status();
    expect(parked).toMatchObject({ reason: "poisoned", choices: ["retry", "cancel"] });
    await victim.pawl?.idle();
    for (let n = 0; n < 20; n++) expect(await client.get(`good${n}`).result()).toBe(n);
    // It stays parked over restarts, and can be tried again by a person.
    const pawl = await world.restart([
      good,
      workflow("deadly", async (ctx) => [await ctx.step("fine", () => 1), await ctx.step("abort", () => "fixed")]),
    ]);
    await pawl.idle();
    expect((await pawl.get("bad").status()).state).toBe("parked");
    await pawl.resolve("bad", "retry");
    expect(await pawl.get("bad").result()).toEqual([1, "fixed"]);
  });

  it("P28 I11 one death brings two hundred runs back at once: none of them is a suspect", async () => {
    const world = await openWorld(store);
    let begun = 0;
    const hanging = workflow("hanging", async (ctx) =>
      ctx.step("s", ({ attempt }) => {
        if (attempt === 2) begun++;
        return new Promise<never>(() => {});
      }),
    );
    const first = await world.open([hanging]);
    await Promise.all(Array.from({ length: 200 }, () => first.start(hanging)));
    await world.settle();
    await world.restart([hanging]);
    await world.settle();
    expect(begun).toBe(200);
  });

  it("P28 runs suspects one at a time, the next as soon as one has recorded an outcome; others do not wait", async () => {
    const world = await openWorld(store);
    // No poll: what happens, happens at once.
    const poll = "1 hour";
    const begun: string[] = [];
    const holds = [gate(), gate()];
    const risky = workflow("risky", async (ctx) => {
      await ctx.step("s", ({ attempt }) => {
        if (attempt < 3) return new Promise<never>(() => {});
        begun.push(ctx.run.id);
        return holds[begun.length - 1]?.passed;
      });
      await ctx.step("rest", () => new Promise<never>(() => {}));
    });
    const harmless = workflow("harmless", async (ctx) => ctx.step("s", () => "done"));
    const first = await world.open([risky]);
    for (const id of ["x", "y"]) await first.start(risky, undefined, { id });
    await world.settle();
    await world.restart([risky]);
    await world.settle();
    const pawl = await world.restart([risky, harmless], { poll });
    expect(await pawl.run(harmless)).toBe("done");
    await world.settle();
    expect(begun).toEqual(["x"]);
    holds[0]?.open();
    await world.settle();
    expect(begun).toEqual(["x", "y"]);
    expect((await world.journal("x")).at(-1)).toBe("step.started rest");
  });

  it("P28 parks a run with its sixth claim: two deaths among others, three alone", async () => {
    const world = await openWorld(store);
    const hanging = workflow("hanging", async (ctx) => ctx.step("s", () => new Promise<never>(() => {})));
    let pawl = await world.open([hanging]);
    await pawl.start(hanging, undefined, { id: "r" });
    for (let claims = 1; claims <= 5; claims++) {
      await world.settle();
      expect(await world.store.run("r")).toMatchObject({ state: "running", claims });
      pawl = await world.restart([hanging]);
    }
    await world.settle();
    expect((await pawl.get("r").status()).parked).toMatchObject({ reason: "poisoned", detail: { claims: 5 } });
  });

  it("P28 forgives deaths after progress: a long run that is unlucky is not parked", async () => {
    const world = await openWorld(store);
    const unlucky = workflow("unlucky", async (ctx) => {
      for (let i = 0; i < 12; i++)
        await ctx.step("s", ({ attempt }) => (attempt === 1 ? new Promise<never>(() => {}) : i));
      return "done";
    });
    await (await world.open([unlucky])).start(unlucky, undefined, { id: "r" });
    let pawl = await world.restart([unlucky]);
    for (let i = 0; i < 20; i++) {
      await world.settle();
      if ((await pawl.get("r").status()).status !== "running") break;
      pawl = await world.restart([unlucky]);
    }
    expect(await pawl.get("r").result()).toBe("done");
  });

  it("P28 does not count a graceful stop, nor a suspension", async () => {
    const world = await openWorld(store);
    const waiting = workflow("waiting", async (ctx) => ctx.waitFor("go"));
    let pawl = await world.open([waiting]);
    await pawl.start(waiting, undefined, { id: "r" });
    for (let i = 0; i < 8; i++) {
      await pawl.close();
      pawl = await world.open([waiting]);
      await pawl.signal("r", "other");
      await pawl.idle();
    }
    expect(await pawl.get("r").status()).toMatchObject({ state: "waiting" });
    expect((await world.store.run("r"))?.claims).toBe(0);
    await pawl.signal("r", "go", "went");
    expect(await pawl.get("r").result()).toBe("went");
  });
});

describe.each(STORES)("split brain on %s", (store) => {
  it("X-18 a fenced worker changes nothing more: its run goes on elsewhere, once", async () => {
    const world = await openWorld(store);
    const { first, second, done } = { first: [] as string[], second: [] as string[], done: [] as string[] };
    const make = (log: string[], hold: Promise<unknown>) =>
      workflow("split", async (ctx) => {
        await ctx.step("a", async ({ attempt }) => {
          log.push(`a ${attempt}`);
          if (attempt === 1) await hold;
          return log === first ? "first" : "second";
        });
        return ctx.step("b", () => {
          done.push(log === first ? "first" : "second");
          return "b";
        });
      });
    let release = () => {};
    const hold = new Promise<void>((resolve) => (release = resolve));
    const one = await world.open([make(first, hold)]);
    await one.start(make(first, hold), undefined, { id: "r" });
    await world.settle();
    const [worker] = await one.workers();
    // It is taken for dead, but lives: its answer comes after another one has the run.
    await world.store.fence({ workers: [worker?.id as string] });
    const two = await world.open([make(second, hold)]);
    await two.idle();
    expect(await two.get("r").result()).toBe("b");
    release();
    await world.settle();
    expect(done).toEqual(["second"]);
    expect((await world.journal("r")).filter((line) => line.startsWith("step.completed a"))).toHaveLength(1);
    expect((await two.get("r").journal()).find((entry) => entry.type === "step.completed")?.payload).toBe("second");
    // The fenced engine has a new incarnation and works on.
    const again = await one.start(make(first, hold));
    expect(await again.result()).toBe("b");
  });
});
