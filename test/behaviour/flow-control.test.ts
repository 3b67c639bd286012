import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import { why } from "../../src/client/why.ts";
import { type Workflow, workflow } from "../../src/core/workflow.ts";
import { errorOf, type Gate, gate, MINUTE, openWorld, STORES, type World } from "./harness.ts";

interface Job {
  readonly name: string;
  readonly customer?: string;
}

/** Which bodies are inside their step now, and how many were at most, by customer. */
class Floor {
  readonly inside = new Set<string>();
  readonly gates = new Map<string, Gate<void>>();
  most = 0;

  enter(name: string): Promise<void> {
    this.inside.add(name);
    this.most = Math.max(this.most, this.inside.size);
    const door = gate();
    this.gates.set(name, door);
    return door.passed;
  }

  /** Lets the first of those inside go on; returns who that was. */
  leave(): string | undefined {
    const [name] = this.inside;
    if (name === undefined) return undefined;
    this.inside.delete(name);
    this.gates.get(name)?.open();
    return name;
  }
}

function jobs(floor: Floor, limit: number, byCustomer = false): Workflow<Job, string> {
  const key = (job: Job) => job.customer ?? "nobody";
  return workflow({ name: "job", concurrency: byCustomer ? { limit, key } : limit }, async (ctx, job: Job) => {
    await ctx.step("work", () => floor.enter(job.name));
    return job.name;
  });
}

async function startAll(pawl: Pawl, job: Workflow<Job, string>, all: readonly Job[]): Promise<void> {
  for (const one of all) await pawl.start(job, one, { id: one.name });
}

/** Lets everybody out, one after the other; returns the order. */
async function clear(world: World, floor: Floor): Promise<string[]> {
  const order: string[] = [];
  for (;;) {
    await world.settle();
    const name = floor.leave();
    if (name === undefined) return order;
    order.push(name);
  }
}

describe.each(STORES)("flow control on %s", (store) => {
  it("I18 X-21 three workers together run as many runs as the limit says, oldest first, and all of them in the end", async () => {
    const world = await openWorld(store);
    const floor = new Floor();
    const job = jobs(floor, 2);
    const engines = [await world.open([job]), await world.open([job]), await world.open([job])];
    const names = ["a", "b", "c", "d", "e", "f", "g"];
    for (const [i, name] of names.entries()) await startAll(engines[i % 3] as Pawl, job, [{ name }]);
    await world.settle();
    expect([...floor.inside].toSorted()).toEqual(["a", "b"]);
    expect((await clear(world, floor)).toSorted()).toEqual(names);
    expect(floor.most).toBe(2);
  });

  it("I18 counts each key by itself: a busy customer keeps no other waiting", async () => {
    const world = await openWorld(store);
    const floor = new Floor();
    const job = jobs(floor, 1, true);
    const pawl = await world.open([job]);
    await startAll(pawl, job, [
      { name: "a1", customer: "a" },
      { name: "a2", customer: "a" },
      { name: "b1", customer: "b" },
      { name: "a3", customer: "a" },
    ]);
    await world.settle();
    expect([...floor.inside]).toEqual(["a1", "b1"]);
    expect(await clear(world, floor)).toEqual(["a1", "b1", "a2", "a3"]);
  });

  it("X-21 a line goes by priority, and a full one holds up no run of another workflow", async () => {
    const world = await openWorld(store);
    const floor = new Floor();
    const job = jobs(floor, 1);
    const free = workflow("free", async (ctx) => ctx.step("s", () => "done"));
    const pawl = await world.open([job, free]);
    await startAll(pawl, job, [{ name: "first" }]);
    await world.settle();
    await pawl.start(job, { name: "low" }, { id: "low", priority: 1 });
    await pawl.start(job, { name: "high" }, { id: "high", priority: 9 });
    expect(await (await pawl.start(free, undefined, { delay: 0 })).result()).toBe("done");
    expect(await clear(world, floor)).toEqual(["first", "high", "low"]);
  });

  it("B56 I18 a recursive fan-out with limit 1 and depth 5 finishes: a parent that waits holds no slot", async () => {
    const world = await openWorld(store);
    let running = 0;
    let most = 0;
    const tree: Workflow<number, number> = workflow({ name: "tree", concurrency: 1 }, async (ctx, depth: number) => {
      await ctx.step("work", async () => {
        most = Math.max(most, ++running);
        await Promise.resolve();
        running--;
      });
      if (depth === 0) return 1;
      const children = Array.from({ length: 1 + (depth % 2) }, () => ctx.call(tree, depth - 1));
      return (await Promise.all(children)).reduce((sum, leaves) => sum + leaves);
    });
    const engines = [await world.open([tree]), await world.open([tree])];
    expect(await (await (engines[0] as Pawl).start(tree, 5)).result()).toBe(8);
    expect(most).toBe(1);
  });

  it("I18 C-16 a run that sleeps, waits or is to be tried again lets others in, and stands in line to go on", async () => {
    const world = await openWorld(store);
    const seen: string[] = [];
    const nap = workflow({ name: "nap", concurrency: 1 }, async (ctx, how: string) => {
      await ctx.step("begin", () => void seen.push(`${how} begins`));
      if (how === "sleep") await ctx.sleep("500ms");
      if (how === "signal") await ctx.waitFor("go");
      if (how === "retry") {
        const once = async ({ attempt }: { attempt: number }) => {
          if (attempt === 1) throw new Error("not yet");
        };
        await ctx.step("fragile", once, { retry: { max: 1, on: "any", base: "500ms", jitter: false } });
      }
      await ctx.step("end", () => void seen.push(`${how} ends`));
    });
    const pawl = await world.open([nap]);
    for (const how of ["sleep", "signal", "retry", "none"]) await pawl.start(nap, how, { id: how });
    await world.settle();
    expect(seen).toEqual(["sleep begins", "signal begins", "retry begins", "none begins", "none ends"]);
    await pawl.signal("signal", "go");
    await world.advance(MINUTE);
    expect(seen.slice(5).toSorted()).toEqual(["retry ends", "signal ends", "sleep ends"]);
  });

  it("B5 B16 I18 the slot of a worker that dies in a step goes to the next once it is fenced, and its run goes on after that", async () => {
    const world = await openWorld(store);
    const floor = new Floor();
    const job = jobs(floor, 1);
    const first = await world.open([job]);
    await startAll(first, job, [{ name: "a" }, { name: "b" }]);
    await world.settle();
    world.kill(first);
    floor.inside.clear();
    await world.open([job]);
    await world.settle();
    expect([...floor.inside]).toEqual([]);
    await world.fence();
    await world.open([job]);
    expect((await clear(world, floor)).toSorted()).toEqual(["a", "b"]);
    expect(floor.most).toBe(1);
  });

  it("I18 a run in line says so: its status and `why` name the slot, its limit and who holds it", async () => {
    const world = await openWorld(store);
    const floor = new Floor();
    const job = jobs(floor, 1, true);
    const pawl = await world.open([job]);
    await startAll(pawl, job, [
      { name: "holder", customer: "a" },
      { name: "next", customer: "a" },
    ]);
    await world.settle();
    const status = await pawl.get("next").status();
    expect([status.status, status.state, status.owner]).toEqual(["waiting", "waiting", null]);
    expect(status.waits).toEqual([{ kind: "slot", key: "slot", name: "job/a", due: null }]);
    expect((await pawl.get("holder").status()).waits).toEqual([]);
    const { summary, present } = await why(pawl, "next");
    expect(summary).toMatch(/is waiting for a free slot of "job\/a"/);
    expect(present.join(" ")).toMatch(/at most one run may hold at a time. Now: holder\./);
    await clear(world, floor);
    expect((await pawl.get("next").status()).state).toBe("succeeded");
  });

  it("P19 I18 a run in line is cancelled at once, and its place with it", async () => {
    const world = await openWorld(store);
    const floor = new Floor();
    const job = jobs(floor, 1);
    const pawl = await world.open([job]);
    await startAll(pawl, job, [{ name: "a" }, { name: "b" }, { name: "c" }]);
    await world.settle();
    expect(await pawl.cancel("b")).toEqual({ outcome: "cancelled" });
    expect(await clear(world, floor)).toEqual(["a", "c"]);
  });

  it("P34 I18 the newest limit that a claiming worker has is the one in force", async () => {
    const world = await openWorld(store);
    const floor = new Floor();
    const before = await world.open([jobs(floor, 1)]);
    await startAll(
      before,
      jobs(floor, 1),
      ["a", "b", "c", "d"].map((name) => ({ name })),
    );
    await world.settle();
    expect([...floor.inside]).toEqual(["a"]);
    const after = await world.open([jobs(floor, 3)]);
    await world.settle();
    expect([...floor.inside]).toEqual(["a", "b", "c"]);
    expect((await clear(world, floor)).toSorted()).toEqual(["a", "b", "c", "d"]);
    expect(floor.most).toBe(3);
    await after.close();
  });

  it("I18 a run started by name from a process that knows no limits stands in line all the same", async () => {
    const world = await openWorld(store);
    const floor = new Floor();
    const job = jobs(floor, 1, true);
    const client = await world.open();
    const version = "1.0.0";
    for (const name of ["a", "b"]) await client.start("job", { name, customer: "x" }, { id: name, version });
    await world.open([job]);
    await world.settle();
    expect([...floor.inside]).toEqual(["a"]);
    expect((await world.store.run("b"))?.slot).toBe("job/x");
    expect(await clear(world, floor)).toEqual(["a", "b"]);
  });

  it("X-21 a rate lets so many begin in any span; others wait, and begin as soon as they may", async () => {
    const world = await openWorld(store);
    const begun: [string, number][] = [];
    const origin = world.clock.now();
    const call = workflow({ name: "call", rate: { limit: 2, per: "1m" } }, async (ctx, name: string) => {
      await ctx.step("begin", () => void begun.push([name, world.clock.now() - origin]));
      await ctx.sleep("10s");
    });
    const pawl = await world.open([call]);
    for (const name of ["a", "b", "c"]) await pawl.start(call, name, { id: name });
    await world.settle();
    expect((await pawl.get("c").status()).waits).toEqual([{ kind: "rate", key: "rate", name: "call", due: null }]);
    expect((await why(pawl, "c")).present.join(" ")).toMatch(/It begins when the rate of "call" lets it/);
    await world.advance(MINUTE / 2);
    await pawl.start(call, "d", { id: "d" });
    await pawl.start(call, "e", { id: "e" });
    await world.advance(3 * MINUTE);
    expect(begun).toEqual([
      ["a", 0],
      ["b", 0],
      ["c", MINUTE],
      ["d", MINUTE],
      ["e", 2 * MINUTE],
    ]);
  });

  it("X-21 a burst of starts becomes one run with the last input, which begins when it has been quiet; all get that run", async () => {
    const world = await openWorld(store);
    const begun: [string, number][] = [];
    const origin = world.clock.now();
    const index = workflow("index", async (ctx, text: string) => {
      await ctx.step("begin", () => void begun.push([text, world.clock.now() - origin]));
      return text;
    });
    const engines = [await world.open([index]), await world.open([index]), await world.open()];
    const ids = new Set<string>();
    const start = async (i: number, text: string, key = "doc") => {
      const pawl = engines[i] as Pawl;
      const run = await pawl.start(index, text, { debounce: { key, wait: "10s", max: "25s" } });
      return run.id;
    };
    for (const i of [0, 1, 2]) {
      ids.add(await start(i, `text ${i}`));
      await world.advance(5000);
    }
    const other = await start(0, "other", "another doc");
    expect([ids.size, ids.has(other)]).toEqual([1, false]);
    expect(begun).toEqual([]);
    await world.advance(MINUTE);
    expect(begun).toEqual([
      ["text 2", 20_000],
      ["other", 25_000],
    ]);
    const [first = ""] = ids;
    expect(await (engines[0] as Pawl).get(first).result()).toBe("text 2");
    const next = await start(1, "later");
    expect(ids.has(next)).toBe(false);
    begun.length = 0;
    const from = world.clock.now() - origin;
    for (let second = 0; second < 30; second += 6) {
      await world.advance(6000);
      if (begun.length === 0) expect(await start(0, `at ${second + 6}`)).toBe(next);
    }
    expect(begun).toEqual([["at 24", from + 25_000]]);
  });

  it("X-21 a burst that goes on for ever takes nothing of the run's time: its deadline counts from the last start", async () => {
    const world = await openWorld(store);
    const index = workflow({ name: "index", deadline: "1m" }, async (ctx, n: number) => ctx.step("s", () => n));
    const pawl = await world.open([index]);
    const start = (n: number) => pawl.start(index, n, { debounce: { key: "k", wait: "30s" } });
    const run = await start(0);
    for (let n = 1; n < 6; n++) {
      await world.advance(20_000);
      expect((await start(n)).id).toBe(run.id);
    }
    const last = world.clock.now();
    await world.advance(MINUTE);
    expect(await run.result()).toBe(5);
    expect((await run.status()).deadline?.getTime()).toBe(last + 30_000 + MINUTE);
  });

  it("P19 X-21 a run that waits for its burst to end is cancelled without its body, and the next start makes another", async () => {
    const world = await openWorld(store);
    const seen: string[] = [];
    const index = workflow("index", async (ctx, text: string) => {
      seen.push(text);
      return ctx.step("s", () => text);
    });
    const pawl = await world.open([index]);
    const start = (text: string) => pawl.start(index, text, { debounce: { key: "k", wait: "30s" } });
    const first = await start("a");
    expect((await start("b")).id).toBe(first.id);
    expect(await pawl.cancel(first.id)).toEqual({ outcome: "cancelled" });
    const next = await start("c");
    expect(next.id).not.toBe(first.id);
    await world.advance(MINUTE);
    expect([seen, await next.result()]).toEqual([["c"], "c"]);
  });

  it("I18 X-21 a burst from a process that knows no limits stands in the line of its last input, and its rate counts", async () => {
    const world = await openWorld(store);
    const begun: string[] = [];
    const key = (text: string) => text;
    const index = workflow(
      { name: "index", concurrency: { limit: 1, key }, rate: { limit: 1, per: "1h" } },
      async (ctx, text: string) => ctx.step("s", () => void begun.push(text)),
    );
    const client = await world.open();
    const start = (text: string) =>
      client.start("index", text, { version: "1.0.0", debounce: { key: "k", wait: "30s" } });
    const { id } = await start("a");
    await start("b");
    const pawl = await world.open([index]);
    await pawl.start(index, "first");
    await world.advance(MINUTE);
    expect([begun, (await world.store.run(id))?.slot]).toEqual([["first"], "index/b"]);
    await world.advance(60 * MINUTE);
    expect(begun).toEqual(["first", "b"]);
  });

  it("I17 X-21 starts of a burst that come at the same time are one run, with the input of one of them", async () => {
    const world = await openWorld(store);
    let begun = 0;
    const index = workflow({ name: "index", concurrency: 1 }, async (ctx, n: number) =>
      ctx.step("s", () => {
        begun++;
        return n;
      }),
    );
    const engines = [await world.open([index]), await world.open([index])];
    const starts = Array.from({ length: 8 }, (_, n) =>
      (engines[n % 2] as Pawl).start(index, n, { debounce: { key: "k", wait: "1s" } }),
    );
    const runs = await Promise.all(starts);
    expect(new Set(runs.map(({ id }) => id)).size).toBe(1);
    await world.advance(5000);
    expect(await (runs[0] as (typeof runs)[0]).result()).toBeLessThan(8);
    expect(begun).toBe(1);
  });
});

describe("flow control", () => {
  it("I18 a slot that is let go is offered to other workers at once", async () => {
    const world = await openWorld("memory");
    const held = gate();
    let begun = 0;
    const old = workflow({ name: "job", version: "1.0.0", concurrency: 1 }, async (ctx) => {
      await ctx.step("hold", () => held.passed);
    });
    const next = workflow({ name: "job", version: "1.1.0", concurrency: 1 }, async (ctx) => {
      await ctx.step("begin", () => void begun++);
    });
    const [first, second] = [await world.open([old]), await world.open([next])];
    await first.start(old);
    await world.settle();
    await second.start(next);
    await world.settle();
    expect(begun).toBe(0);
    held.open();
    await world.settle();
    expect(begun).toBe(1);
  });

  it("X-21 refuses limits that make no sense, and names the field", async () => {
    const define = (options: object) => () => workflow({ name: "w", ...options }, async () => {});
    expect(define({ concurrency: 0 })).toThrow(/Workflow "w": concurrency\.limit is 0\. Give a whole number/);
    expect(define({ concurrency: { limit: 1.5 } })).toThrow(/concurrency\.limit is 1\.5/);
    expect(define({ concurrency: { limit: 1, key: "customer" } })).toThrow(
      /concurrency\.key is string\. Give a function/,
    );
    expect(define({ rate: { limit: -1, per: "1m" } })).toThrow(/rate\.limit is -1/);
    expect(define({ rate: { limit: 1, per: 0 } })).toThrow(/rate\.per is 0/);
    expect(define({ rate: { limit: 1, per: "soon" } })).toThrow(/rate\.per/);
  });

  it("X-21 refuses a debounced start that also says which run it is, or when it begins", async () => {
    const world = await openWorld("memory");
    const w = workflow("w", async () => {});
    const pawl = await world.open([w]);
    const debounce = { key: "k", wait: "1s" };
    for (const other of [{ id: "a" }, { key: "a" }, { delay: "1s" }]) {
      const error = await errorOf(pawl.start(w, undefined, { debounce, ...other }));
      expect([error.code, error.message]).toEqual([
        "invalid_argument",
        expect.stringMatching(/debounce cannot be used with/),
      ]);
    }
    const nameless = pawl.start(w, undefined, { debounce: { key: "", wait: "1s" } });
    expect((await errorOf(nameless)).message).toMatch(/debounce key "" cannot be used/);
    expect((await errorOf(pawl.start(w, undefined, { debounce: { key: "k", wait: "soon" } }))).message).toMatch(
      /debounce\.wait/,
    );
  });

  it("X-21 a key that is no name is refused where the run is started, and in a parent where it is called", async () => {
    const world = await openWorld("memory");
    const key = (name: string) => name;
    const child = workflow({ name: "child", concurrency: { limit: 1, key } }, async (_ctx, name: string) => name);
    const parent = workflow("parent", async (ctx) => {
      const refused = await errorOf((async () => ctx.call(child, ""))());
      return [refused.message, await ctx.call(child, "fine")];
    });
    const pawl = await world.open([child, parent]);
    expect((await errorOf(pawl.start(child, ""))).message).toMatch(
      /concurrency key of workflow "child" "" cannot be used/,
    );
    const [refused, value] = await (await pawl.start(parent)).result();
    expect([refused, value]).toEqual([expect.stringMatching(/cannot be used: it is empty/), "fine"]);
  });

  it.each(Array.from({ length: 12 }, (_, seed) => seed))(
    "I18 I10 never more than the limit own a run at any store time, whatever dies (seed %i)",
    async (seed) => {
      const world = await openWorld("memory");
      const random = seededRandom(`flow ${seed}`);
      const limit = 1 + (seed % 3);
      const chaotic: Workflow<number, number> = workflow(
        { name: "chaotic", concurrency: { limit, key: (n: number) => `k${n % 2}` } },
        async (ctx, n: number) => {
          await ctx.step("a", () => n);
          if (n % 3 === 0) await ctx.sleep("2s");
          if (n % 4 === 0 && n > 0) await ctx.call(chaotic, Math.floor(n / 4));
          return ctx.step("b", () => n);
        },
      );
      const peaks = watchSlots(world, ["chaotic/k0", "chaotic/k1"]);
      const engines = [await world.open([chaotic]), await world.open([chaotic]), await world.open([chaotic])];
      for (let n = 0; n < 24; n++) await (engines[n % 3] as Pawl).start(chaotic, n, { id: `r${n}` });
      for (let round = 0; round < 8; round++) {
        for (let turn = Math.floor(random.next() * 30); turn > 0; turn--) await Promise.resolve();
        const index = Math.floor(random.next() * 3);
        world.kill(engines[index] as Pawl);
        engines[index] = await world.open([chaotic]);
        if (random.next() < 0.7) await world.fence();
        world.clock.advance(random.next() * 1000);
      }
      await world.fence();
      await world.advance(MINUTE);
      for (let n = 0; n < 24; n++) expect((await world.store.run(`r${n}`))?.state).toBe("succeeded");
      expect(peaks()).toBeLessThanOrEqual(limit);
      expect(peaks()).toBeGreaterThan(0);
    },
  );
});

/** Looks at who owns what after every claim and every other change; gives the most that any slot had. */
function watchSlots(world: World, slots: readonly string[]): () => number {
  let most = 0;
  const { store } = world;
  for (const method of ["claim", "commit", "fence", "take"] as const) {
    const call = store[method].bind(store) as (...args: unknown[]) => Promise<unknown>;
    Object.assign(store, {
      [method]: async (...args: unknown[]) => {
        const answer = await call(...args);
        for (const slot of slots) most = Math.max(most, (await store.runs({ slot, limit: 99 })).length);
        return answer;
      },
    });
  }
  return () => most;
}
