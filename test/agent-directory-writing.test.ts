// How the durable loop writes: what it must save and what it may lose, and the effects that it knows of after a restart.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { modelAdapter } from "../src/agent/adapter.ts";
import type { Checkpoint, CheckpointStore } from "../src/agent/checkpoint-store.ts";
import { checkpointOf, savedRequest } from "../src/agent/checkpoint-store-cases.ts";
import type { EffectRecord } from "../src/agent/effect-record.ts";
import type { ModelRequest } from "../src/agent/model.ts";
import { plan } from "../src/agent/plan.ts";
import { listWorkers, settleEffect } from "../src/agent/recovery.ts";
import { CheckpointSaved } from "../src/agent/recovery-events.ts";
import { callTools, type ScriptedReply, say } from "../src/agent/scripted-model.ts";
import { slice } from "../src/agent/slice.ts";
import { type Tool, tool } from "../src/agent/tool.ts";
import { everyToolCalls } from "../src/agent/trigger.ts";
import { type Call, changed, notes, over, planner, World } from "./agent-directory-world.ts";

const REQUEST = { task: "tidy" };

const full = (path: string) => Object.assign(new Error("no room"), { code: "ENOSPC", path });

describe("a checkpoint that cannot be saved", () => {
  it("S1-62 C-8 is a warning, and the work goes on: the second of three is lost, the third is there", async () => {
    const world = new World();
    let saves = 0;
    const store = world.store();
    const failing = changed(store, {
      async saveCheckpoint(checkpoint: Checkpoint) {
        saves += 1;
        if (saves === 2) throw full("checkpoint.json");
        if (checkpoint.result !== undefined) throw Object.assign(new Error("the process is gone"), { code: "EIO" });
        return store.saveCheckpoint(checkpoint);
      },
    });
    const loop = over(world, failing);
    const pump = setInterval(() => world.clock.advance(10_000), 1);
    await expect(loop.execute(REQUEST).finally(() => clearInterval(pump))).rejects.toMatchObject({
      code: "storage_unavailable",
    });
    expect(loop.counts).toMatchObject({ checkpoints: 2, failedCheckpoints: 1 });
    expect(world.warnings.join()).toContain("A checkpoint could not be saved");
    const before = world.model.requests.length;
    await world.loop().execute();
    expect(String(world.model.requests[before]?.prompt[0]?.content)).toContain("✓ 3. Step 3");
  });

  it("C-8 stops the work where that is asked for", async () => {
    const world = new World();
    const failing = changed(world.store(), { saveCheckpoint: () => Promise.reject(full("checkpoint.json")) });
    const loop = over(world, failing, { checkpoint: { onFailure: "stop" } });
    await expect(loop.execute(REQUEST)).rejects.toMatchObject({ code: "ENOSPC" });
    expect(world.did).toEqual(["look 1"]);
  });

  it("E-27 C-8 a full disk stops the work before an effect, is tried again, and goes on when there is room", async () => {
    const world = new World({ tools: [book()], script: planner(1, () => [{ book: { room: 1 } }]) });
    let isFull = true;
    const fault = (point: string, path: string) => {
      if (isFull && point === "write" && path.includes("checkpoint")) throw full(path);
    };
    const pump = setInterval(() => world.clock.advance(10_000), 1);
    await expect(
      over(world, world.store(fault))
        .execute(REQUEST)
        .finally(() => clearInterval(pump)),
    ).rejects.toMatchObject({
      code: "storage_unavailable",
      message: expect.stringContaining("the disk is full"),
    });
    expect(rooms).toEqual([]);
    expect(world.warnings.filter((line) => line.includes("tried again")).length).toBe(3);
    isFull = false;
    expect(await over(world, world.store(fault)).execute()).toMatchObject({ ending: { kind: "finished" } });
    expect(rooms).toEqual([1]);
  });

  it("E-27 a read-only directory is refused before anything is done", async () => {
    const world = new World();
    const fault = (point: string, path: string) => {
      if (point === "write") throw Object.assign(new Error("read-only"), { code: "EROFS", path });
    };
    await expect(over(world, world.store(fault)).execute(REQUEST)).rejects.toMatchObject({
      code: "storage_unavailable",
      message: expect.stringContaining("read-only"),
    });
    expect(world.model.requests).toEqual([]);
  });
});

describe("when it waits", () => {
  /** A store whose checkpoints wait until they are let go. */
  function slow(world: World) {
    const store = world.store();
    const waiting: (() => void)[] = [];
    const written: number[] = [];
    const saving = changed(store, {
      async saveCheckpoint(checkpoint: Checkpoint) {
        await new Promise<void>((resolve) => void waiting.push(resolve));
        written.push(checkpoint.sequence);
        return store.saveCheckpoint(checkpoint);
      },
    });
    return { saving, waiting, written };
  }

  it("S1-70 by default the next call waits for the checkpoint", async () => {
    const world = new World();
    const { saving, waiting } = slow(world);
    const running = over(world, saving).execute(REQUEST);
    await expect.poll(() => waiting.length).toBe(1);
    const asked = world.model.requests.length;
    await new Promise((resolve) => setImmediate(resolve));
    expect([world.model.requests.length, world.did]).toEqual([asked, ["look 1"]]);
    const pump = setInterval(() => waiting.shift()?.(), 1);
    await running.finally(() => clearInterval(pump));
  });

  it("S1-74 asynchronous ones delay nothing, keep their order, and are all there at the end", async () => {
    const world = new World();
    const { saving, waiting, written } = slow(world);
    const running = over(world, saving, { checkpoint: { async: true } }).execute(REQUEST);
    await expect.poll(() => world.did.length).toBe(3);
    await expect.poll(() => world.model.requests.length).toBe(8);
    expect(written).toEqual([]);
    const pump = setInterval(() => waiting.shift()?.(), 1);
    await running.finally(() => clearInterval(pump));
    expect(written).toEqual([1, 2, 3, 4]);
  });

  it("S1-74 a graceful stop loses none of them", async () => {
    const world = new World();
    const { saving, waiting, written } = slow(world);
    const stop = new AbortController();
    const look = world.look as Tool;
    const stopping = {
      ...look,
      run: (params: unknown, info: Parameters<Tool["run"]>[1]) => {
        if (world.did.length === 2) stop.abort(new Error("stopped"));
        return look.run(params, info);
      },
    };
    const adapter = modelAdapter(world.model, { tools: [stopping] });
    const running = over(world, saving, { adapter, checkpoint: { async: true } }).execute(REQUEST, {
      signal: stop.signal,
    });
    const pump = setInterval(() => waiting.shift()?.(), 1);
    await expect(running.finally(() => clearInterval(pump))).rejects.toThrow("stopped");
    expect(written).toEqual([1, 2]);
    const before = world.model.requests.length;
    await world.loop().execute();
    expect(String(world.model.requests[before]?.prompt[0]?.content)).toContain("✓ 2. Step 2");
  });
});

describe("the size of checkpoints", () => {
  const wide = (n: number, change = 0) =>
    checkpointOf(
      n,
      {},
      Object.fromEntries(
        Array.from({ length: 100 }, (_, at) => [
          `slice-${at}`,
          { text: "all alike ".repeat(20), change: at === 7 ? change : 0 },
        ]),
      ),
    );

  it("S1-72 a compressed one is smaller and loads equal", async () => {
    const world = new World();
    const store = world.store();
    await store.open();
    await store.saveRequest(savedRequest());
    const sizes: number[] = [];
    for (const compress of [false, true]) {
      await store.saveCheckpoint(wide(1), { compress });
      sizes.push(statSync(world.path("checkpoint.json")).size);
      expect(await store.loadCheckpoint()).toEqual(wide(1));
    }
    expect(sizes[1]).toBeLessThan((sizes[0] ?? 0) / 5);
    await store.close();
  });

  it("S1-73 of 100 slices, the one that changed is written, and everything at intervals", async () => {
    const world = new World();
    const written: [string, number][] = [];
    const store = world.store((point, path) => {
      if (point === "rename") written.push([path.split("/").at(-1) ?? "", 0]);
    });
    await store.open();
    await store.saveRequest(savedRequest());
    written.length = 0;
    for (let n = 1; n <= 5; n++) {
      await store.saveCheckpoint(wide(n, n), { incremental: { fullEvery: 4 }, history: 0 });
      expect(await store.loadCheckpoint()).toEqual(wide(n, n));
    }
    expect(written.map(([name]) => name)).toEqual([
      "checkpoint.json",
      ...Array(3).fill("checkpoint.delta.json"),
      "checkpoint.json",
    ]);
    expect(statSync(world.path("checkpoint.delta.json")).size).toBeLessThan(
      statSync(world.path("checkpoint.json")).size / 20,
    );
    await store.close();
  });

  it("C-1 a damaged delta leaves the full one before it, unless an effect could be forgotten with it", async () => {
    const world = new World({ script: planner(3) });
    const { adapter } = world.options;
    const failing = {
      evaluate: async (...given: Parameters<typeof adapter.evaluate>) => {
        const [prompt, options] = given;
        await adapter.evaluate(prompt, options);
        throw new Error("gone");
      },
    } as typeof adapter;
    const checkpoint = { incremental: { fullEvery: 10 } };
    await expect(world.loop({ adapter: failing, checkpoint }).execute(REQUEST)).rejects.toThrow("gone");
    writeFileSync(world.path("checkpoint.delta.json"), "rubbish");
    const before = world.model.requests.length;
    await world.loop({ checkpoint }).execute();
    const prompt = String(world.model.requests[before]?.prompt[0]?.content);
    expect([prompt.includes("✓ 1. Step 1"), prompt.includes("✓ 2.")]).toEqual([true, false]);
  });
});

const rooms: number[] = [];
const bookings = slice<{ readonly room: number }>("bookings");

/** Books a room outside, and can be told to lose its process in there. */
function book(
  guard: Partial<Tool> = {},
  inside: (room: number, key: string) => void | Promise<void> = () => {},
): Tool<never, unknown> {
  rooms.length = 0;
  return {
    ...(tool({
      name: "book",
      description: "Books a room.",
      class: "execute",
      input: z.object({ room: z.number() }),
      output: bookings,
      run: async ({ room }, { key }) => {
        rooms.push(room);
        await inside(room, key);
        return { room };
      },
    }) as Tool),
    ...guard,
  } as Tool<never, unknown>;
}

/** Stands for a process that ends: nothing of it comes back, and nothing is saved any more. */
class Killed {
  isDead = false;
  readonly store: CheckpointStore;

  constructor(world: World) {
    const store = world.store();
    this.store = new Proxy(store, {
      get: (target, name) => {
        const own: unknown = target[name as keyof CheckpointStore];
        if (typeof own !== "function") return own;
        return (...given: unknown[]) =>
          this.isDead && name !== "close" ? new Promise(() => {}) : own.apply(target, given);
      },
    });
  }

  /** Lets go of the directory, as the system does for a process that is gone. */
  async die(): Promise<void> {
    this.isDead = true;
    await this.store.close();
  }
}

const effectsIn = (world: World) => {
  const { snapshot } = JSON.parse(readFileSync(world.path("checkpoint.json"), "utf8")) as {
    snapshot: { slices: { slice_type: string; items: unknown[] }[] };
  };
  return (snapshot.slices.find(({ slice_type }) => slice_type === "effects")?.items ?? []) as EffectRecord[];
};

describe("effects", () => {
  const two = (step: number): readonly Call[] =>
    step === 1 ? [{ book: { room: 1 } }, { look: { at: 1 } }] : [{ book: { room: step } }];
  const worldOf = (
    booking: Tool<never, unknown>,
    script: (request: ModelRequest) => ScriptedReply | Error = planner(2, two),
  ) => {
    const world: World = new World({ script, slices: [plan, notes, bookings], tools: [booking] });
    return world;
  };
  const loopOf = (world: World, booking: Tool<never, unknown>, store: CheckpointStore = world.store()) =>
    over(world, store, { adapter: modelAdapter(world.model, { tools: [booking, world.look] }) });

  it("C-7 an effect is saved before it begins and before anybody goes on, whatever the trigger says", async () => {
    const seen: string[] = [];
    const booking = book(
      {},
      () =>
        void seen.push(
          effectsIn(world)
            .map(({ tool: name, status }) => `${name} ${status}`)
            .join(),
        ),
    );
    const world = worldOf(
      booking,
      planner(1, () => [{ book: { room: 1 } }]),
    );
    const causes: string[] = [];
    world.bus.subscribe(CheckpointSaved, ({ payload }) => causes.push(payload.cause));
    await over(world, world.store(), {
      adapter: modelAdapter(world.model, { tools: [booking] }),
      trigger: everyToolCalls(1000),
    }).execute(REQUEST);
    expect(seen).toEqual(["book planned"]);
    expect(causes).toEqual(["effect", "effect", "final"]);
  });

  it("S1-69 C-7 one that was executed is not done again: what it said and changed is there, once", async () => {
    const booking = book();
    const world = worldOf(booking);
    const first = new Killed(world);
    const look: Tool = {
      ...(world.look as Tool),
      run: async () => {
        await expect.poll(() => effectsIn(world).map(({ status }) => status)).toEqual(["executed"]);
        await first.die();
        return new Promise(() => {});
      },
    };
    void over(world, first.store, { adapter: modelAdapter(world.model, { tools: [booking, look] }) }).execute(REQUEST);
    await expect.poll(() => first.isDead).toBe(true);
    const response = await loopOf(world, booking).execute();
    expect(response.ending.kind).toBe("finished");
    expect(rooms).toEqual([1, 2]);
    const { snapshot } = JSON.parse(readFileSync(world.path("checkpoint.json"), "utf8")) as {
      snapshot: { slices: { slice_type: string; items: unknown[] }[] };
    };
    expect(snapshot.slices.find(({ slice_type }) => slice_type === "bookings")?.items).toEqual([
      { room: 1 },
      { room: 2 },
    ]);
  });

  it("C-7 the same call is meant anew behind a milestone, and within one process", async () => {
    const booking = book();
    const again = { book: { room: 1 } };
    const done = (id: number) => callTools({ planning_update_step: { id, status: "done" } });
    const setUp = callTools({ planning_setup_plan: { objective: "All of it", steps: ["One", "Two"] } });
    const fresh = [setUp, callTools(again), callTools(again), done(1), new Error("gone")];
    const resumed = [callTools(again), done(2), say("done")];
    const world = worldOf(booking, (request) => {
      const script = String(request.prompt[0]?.content).includes("✓ 1.") ? resumed : fresh;
      return script[request.prompt.filter(({ role }) => role === "assistant").length]!;
    });
    await expect(loopOf(world, booking).execute(REQUEST)).rejects.toThrow("gone");
    expect(rooms).toEqual([1, 1]);
    const response = await loopOf(world, booking).execute();
    expect(response.ending.kind).toBe("finished");
    expect(rooms).toEqual([1, 1, 1]);
    expect(effectsIn(world)).toEqual([]);
  });

  it.each([
    ["S1-69 is done again with the same key if the outside knows it", { idempotent: true }, [1, 1], "finished"],
    [
      "S1-69 is not done again if it is found",
      { detect: () => ({ found: true, value: { room: 1 } }) },
      [1],
      "finished",
    ],
    ["S1-69 is done again if it is not found", { detect: () => ({ found: false }) }, [1, 1], "finished"],
    ["C-8 is not done again if nobody can tell: the work ends as an escalation", {}, [1], "escalation"],
  ] as const)("one that was begun when the process ended %s", async (_, guard, expected, ending) => {
    const keys = new Set<string>();
    const state: { killed: Killed | null } = { killed: null };
    const booking = book(guard as Partial<Tool>, async (_room, key) => {
      keys.add(key);
      if (rooms.length > 1) return;
      await state.killed?.die();
      await new Promise(() => {});
    });
    const world = worldOf(
      booking,
      planner(1, () => [{ book: { room: 1 } }]),
    );
    const killed = new Killed(world);
    state.killed = killed;
    void loopOf(world, booking, killed.store).execute(REQUEST);
    await expect.poll(() => killed.isDead).toBe(true);
    const response = await loopOf(world, booking).execute();
    expect(response.ending.kind).toBe(ending);
    expect(rooms).toEqual(expected);
    expect(keys.size).toBe(1);
    if (ending === "finished") return;
    expect(response).toMatchObject({ output: null, ending: { reason: expect.stringContaining('book({"room":1})') } });
    const [report] = await listWorkers(world.root);
    expect(report?.unknownEffects).toMatchObject([{ tool: "book", status: "unknown" }]);
    const [key = ""] = keys;
    await expect(settleEffect({ root: world.root, worker: "w1" }, "nothing", true)).rejects.toMatchObject({
      code: "invalid_argument",
    });
    await settleEffect({ root: world.root, worker: "w1" }, key, true);
    expect(await loopOf(world, booking).execute()).toMatchObject({ ending: { kind: "finished" } });
    expect(rooms).toEqual([1]);
  });

  it("C-1 D-8 after an effect, a checkpoint that is lost with all copies is no reason to start afresh, unless forced", async () => {
    const state: { killed: Killed | null } = { killed: null };
    const booking = book({ idempotent: true }, async () => {
      if (rooms.length > 1) return;
      await state.killed?.die();
      await new Promise(() => {});
    });
    const world = worldOf(
      booking,
      planner(1, () => [{ book: { room: 1 } }]),
    );
    const killed = new Killed(world);
    state.killed = killed;
    void loopOf(world, booking, killed.store).execute(REQUEST);
    await expect.poll(() => killed.isDead).toBe(true);
    const [execution = ""] = readdirSync(world.path("history"));
    for (const name of readdirSync(world.path(`history/${execution}`)))
      writeFileSync(world.path(`history/${execution}/${name}`), "rubbish");
    writeFileSync(world.path("checkpoint.json"), "rubbish");
    await expect(loopOf(world, booking).execute()).rejects.toMatchObject({
      code: "corrupt_value",
      message: expect.stringContaining("could do twice"),
    });
    expect(rooms).toEqual([1]);
    const adapter = modelAdapter(world.model, { tools: [booking] });
    expect(await over(world, world.store(), { adapter, onCorruptCheckpoint: "fresh" }).execute()).toMatchObject({
      ending: { kind: "finished" },
    });
    expect(rooms).toEqual([1, 1]);
  });

  it("X-13 what was spent is kept over a restart, and the limit holds", async () => {
    let isGone = true;
    const answer = planner(2);
    const world = new World({
      script: (request) => {
        const reply = answer(request);
        if (isGone && JSON.stringify(reply.content).includes('\\"at\\":2')) {
          isGone = false;
          return new Error("gone");
        }
        return reply;
      },
    });
    await expect(world.loop({ budget: { calls: 5 } }).execute(REQUEST)).rejects.toThrow("gone");
    // Three calls until the first step was saved; two are left.
    await expect(world.loop({ budget: { calls: 5 } }).execute()).rejects.toMatchObject({ code: "budget_exceeded" });
    expect(await world.loop({ budget: { calls: 50 } }).execute()).toMatchObject({ ending: { kind: "finished" } });
  });
});
