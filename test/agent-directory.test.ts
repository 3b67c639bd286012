// The durable loop in a worker's directory.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { Adapter } from "../src/agent/adapter.ts";
import { modelAdapter } from "../src/agent/adapter.ts";
import { DurableLoop } from "../src/agent/durable-loop.ts";
import { AgentLoop } from "../src/agent/loop.ts";
import { plan } from "../src/agent/plan.ts";
import { abandon, listRecoverable, listWorkers, recover } from "../src/agent/recovery.ts";
import { CheckpointSaved, RecoveryCompleted, RecoveryFailed, RecoveryStarted } from "../src/agent/recovery-events.ts";
import { say, scriptedModel } from "../src/agent/scripted-model.ts";
import { eventType } from "../src/agent/session-event.ts";
import { ToolInvoked } from "../src/agent/telemetry.ts";
import { tool } from "../src/agent/tool.ts";
import { checkpointTrigger } from "../src/agent/trigger.ts";
import { planner, task, World } from "./agent-directory-world.ts";

const REQUEST = { task: "tidy" };

/** A planner whose process fails when it begins a step for the first time. */
function failingAt(step: number, steps = 3) {
  let hasFailed = false;
  const answer = planner(steps);
  return (request: Parameters<typeof answer>[0]) => {
    const reply = answer(request);
    if (hasFailed || !JSON.stringify(reply.content).includes(`{\\"at\\":${step}}`)) return reply;
    hasFailed = true;
    return new Error("the model is gone");
  };
}

const promptOf = (world: World, n: number) => String(world.model.requests[n]?.prompt[0]?.content);

describe("a durable loop", () => {
  it("S1-18 S1-20 S1-47 S1-52 F-6 F-7 F-8 begins fresh, saves at each step, and leaves an empty marker", async () => {
    const world = new World();
    const loop = world.loop();
    expect(loop).toBeInstanceOf(AgentLoop);
    const response = await loop.execute(REQUEST);
    expect(response).toMatchObject({ text: "All of it is done.", ending: { kind: "finished" } });
    expect(world.files).toEqual(["checkpoint.json", "completed", "history", "request.json"]);
    expect(statSync(world.path("completed")).size).toBe(0);
    expect(JSON.parse(readFileSync(world.path("request.json"), "utf8"))).toMatchObject({
      request: REQUEST,
      deadline: null,
    });
  });

  it("S1-45 S1-1 makes one checkpoint per step that is done, however often tools are called", async () => {
    const looks = Array.from({ length: 10 }, (_, at) => ({ look: { at } }));
    const world = new World({ script: planner(3, (step) => (step === 2 ? looks : [])) });
    const saved: number[] = [];
    world.bus.subscribe(
      CheckpointSaved,
      ({ payload }) => payload.cause === "milestone" && saved.push(payload.sequence),
    );
    const loop = world.loop();
    await loop.execute(REQUEST);
    expect(saved).toEqual([1, 2, 3]);
    expect(loop.counts).toMatchObject({ checkpoints: 3, executionsWithoutCheckpoint: 0 });
  });

  it("S1-20 S1-22 S1-2 S1-69 D-2 goes on after a failure with the steps that are done, and begins the one it was in again", async () => {
    const world = new World({ script: failingAt(3) });
    await expect(world.loop().execute(REQUEST)).rejects.toThrow("the model is gone");
    expect(await world.store().state()).toBe("incomplete");
    const before = world.model.requests.length;
    const response = await world.loop().execute();
    expect(response.ending.kind).toBe("finished");
    expect(promptOf(world, before)).toContain("✓ 2. Step 2");
    expect(promptOf(world, before)).not.toContain("✓ 3.");
    expect(world.did).toEqual(["look 1", "look 2", "look 3"]);
    const first = promptOf(world, 0).split("## 2.");
    expect(promptOf(world, before).startsWith(first[0] ?? "?")).toBe(true);
  });

  it("S1-21 S1-23 does everything in this order, fresh and resumed", async () => {
    const world = new World({ script: failingAt(2, 2) });
    const order: string[] = [];
    const { options } = world;
    const store = world.store((point, path) => {
      const name = /w1\/(.*)$/.exec(path)?.[1] ?? "";
      if (point === "rename" || point === "remove")
        order.push(`${point === "rename" ? "write" : "remove"} ${name.replace(/[0-9a-f-]{36}/g, "ID")}`);
    });
    const watched = {
      ...options,
      store,
      session: (facts: Parameters<NonNullable<typeof options.session>>[0]) => {
        order.push("session");
        return options.session!(facts);
      },
      prompt: (request: { task: string }, session: Parameters<typeof options.prompt>[1]) => {
        order.push(
          `prompt ${
            session
              .query(plan)
              .latest()
              ?.steps.filter(({ status }) => status === "done").length ?? "-"
          }`,
        );
        return options.prompt(request, session);
      },
      adapter: {
        evaluate: (...given: Parameters<Adapter["evaluate"]>) => {
          order.push("evaluate");
          return options.adapter.evaluate(...given);
        },
      } as Adapter,
      checkpoint: { history: 0 },
    };
    const { bus } = world;
    const subscribe = bus.subscribe.bind(bus);
    bus.subscribe = (type, ...rest) => {
      if (type.name === ToolInvoked.name) order.push("observe");
      return subscribe(type, ...rest);
    };
    const { directory: _, ...withStore } = watched as typeof watched & { directory?: unknown };
    await expect(new DurableLoop(withStore).execute(REQUEST)).rejects.toThrow();
    expect(order).toEqual([
      "session",
      "prompt -",
      "observe",
      "write request.json",
      "evaluate",
      "write checkpoint.json",
    ]);
    order.length = 0;
    await new DurableLoop(withStore).execute();
    const end = ["write checkpoint.json", "write checkpoint.json", "write completed"];
    expect(order).toEqual(["session", "prompt 1", "observe", "evaluate", ...end]);
    order.length = 0;
    await new DurableLoop(withStore).execute(REQUEST);
    expect(order.slice(0, 10)).toEqual([
      "session",
      "prompt -",
      "observe",
      "write archive/ID/request.json",
      "write archive/ID/checkpoint.json",
      "write archive/ID/completed",
      "write request.json",
      "remove completed",
      "remove checkpoint.json",
      "evaluate",
    ]);
  });

  it("S1-24 T-7 resumes with the request that it began with, whatever the caller gives", async () => {
    const world = new World({ script: failingAt(2) });
    await expect(world.loop().execute(REQUEST)).rejects.toThrow();
    await expect(world.loop({ onRequestDiffers: "refuse" }).execute({ task: "dance" })).rejects.toMatchObject({
      code: "idempotency_conflict",
    });
    const before = world.model.requests.length;
    await world.loop().execute({ task: "dance" });
    expect(promptOf(world, before)).toContain("Do this: tidy.");
    expect(world.warnings.join()).toContain("another one was given, and is not used");
    world.warnings.length = 0;
    await world.loop().execute({ task: "dance" });
    expect(promptOf(world, world.model.requests.length - 1)).toContain("Do this: dance.");
  });

  it("S1-25 S1-26 the checkpoint of a step has that step, and events without a value are not asked about", async () => {
    const world = new World();
    const asked: unknown[] = [];
    const all = checkpointTrigger();
    const trigger = {
      matches: (facts: Parameters<typeof all.matches>[0]) => {
        asked.push(facts.value);
        return all.matches(facts);
      },
    };
    const steps: number[] = [];
    world.bus.subscribe(CheckpointSaved, () => {
      const { snapshot } = JSON.parse(readFileSync(world.path("checkpoint.json"), "utf8")) as {
        snapshot: { slices: { slice_type: string; items: { steps: { status: string }[] }[] }[] };
      };
      const saved = snapshot.slices.find(({ slice_type }) => slice_type === "plan")?.items[0];
      steps.push(saved?.steps.filter(({ status }) => status === "done").length ?? -1);
    });
    const quiet = tool({
      name: "quiet",
      description: "Says nothing.",
      class: "read",
      input: z.object({ n: z.number() }),
      run: () => undefined,
    });
    const script = planner(2, (step) => [{ quiet: { n: step } }]);
    const loop = world.loop({ trigger, adapter: modelAdapter(scriptedModel(script), { tools: [quiet] }) });
    await loop.execute(REQUEST);
    expect(steps).toEqual([1, 2, 2]);
    expect(asked).not.toContain(undefined);
    expect(asked.length).toBeGreaterThan(0);
  });

  it("S1-27 T-10 an observer hears of its own execution alone, and of nothing after it", async () => {
    const world = new World();
    const sessions: string[] = [];
    world.bus.subscribe(
      CheckpointSaved,
      ({ payload }) => payload.cause === "milestone" && sessions.push(payload.execution),
    );
    for (let n = 0; n < 3; n++) await world.loop().execute({ task: `task ${n}` });
    expect(sessions.length).toBe(9);
    expect(new Set(sessions).size).toBe(3);
  });

  it("S1-9 S1-11 a milestone of one's own is the only one", async () => {
    const MilestoneReached = eventType<{ n: number }>("MilestoneReached");
    const reach = tool({
      name: "reach",
      description: "Reaches.",
      class: "read",
      input: z.object({ n: z.number() }),
      run: ({ n }, { dispatch }) => {
        dispatch(MilestoneReached({ n }));
        return n;
      },
    });
    const world = new World({
      tools: [reach],
      script: planner(3, (step) => (step === 2 ? [{ reach: { n: 1 } }] : [])),
    });
    const loop = world.loop({ trigger: checkpointTrigger({ events: [MilestoneReached] }) });
    await loop.execute(REQUEST);
    expect(loop.counts.checkpoints).toBe(1);
  });

  it("S1-44 warns of work that saves nothing, and counts it", async () => {
    const world = new World({ script: () => say("done without a plan") });
    const loop = world.loop({ completion: "returned" });
    await loop.execute(REQUEST);
    expect(loop.counts.executionsWithoutCheckpoint).toBe(1);
    expect(world.warnings.join()).toContain("has saved no milestone");
  });

  it("S1-17 C-22 sets no marker if it threw, or stopped before its plan was done", async () => {
    const world = new World({ script: (request) => (request.prompt.length < 4 ? planner(2)(request) : say("enough")) });
    const response = await world.loop().execute(REQUEST);
    expect(response).toMatchObject({
      output: null,
      ending: { kind: "incomplete", reason: expect.stringContaining("1. Step 1") },
    });
    expect(existsSync(world.path("completed"))).toBe(false);
  });

  it("S1-48 finds its own work again by its worker's name, and nobody else's", async () => {
    const world = new World({ script: failingAt(2) });
    await expect(world.loop().execute(REQUEST)).rejects.toThrow();
    const other = world.loop({ directory: { root: world.root, worker: "w2" } });
    await expect(other.execute()).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await world.loop().recover()).toMatchObject({ ending: { kind: "finished" } });
    for (const worker of ["", "../w1", "a/b", ".w"])
      expect(() => world.loop({ directory: { root: world.root, worker } })).toThrow(/cannot name a directory/);
  });
});

describe("time", () => {
  it("S1-5 S1-58 S1-59 T-13 E-8 20 restarts do not move the deadline, and after it nothing is done", async () => {
    const world = new World();
    const times: (number | undefined)[] = [];
    let restarts = 0;
    const { adapter } = world.options;
    const failing: Adapter = {
      async evaluate(prompt, options) {
        times.push(options.deadline === undefined ? undefined : options.deadline - world.clock.now());
        if (restarts++ < 20) {
          // The first one saves a step.
          if (restarts === 1)
            await adapter.evaluate(prompt, { ...options, signal: AbortSignal.abort() }).catch(() => {});
          await options.calls.checkpoint(options.session);
          throw new Error("gone");
        }
        return adapter.evaluate(prompt, options);
      },
    };
    const start = () => world.loop({ adapter: failing, deadline: "1h" }).execute(REQUEST);
    for (let n = 0; n <= 20; n++) {
      if (n === 20) break;
      await expect(start()).rejects.toThrow("gone");
      world.clock.advance(60_000);
    }
    expect(await start()).toMatchObject({ ending: { kind: "finished" } });
    expect(times.map((left) => (left ?? 0) / 60_000)).toEqual(Array.from({ length: 21 }, (_, n) => 60 - n));

    restarts = 19;
    const late = { task: "late" };
    await expect(world.loop({ adapter: failing, deadline: "1h" }).execute(late)).rejects.toThrow("gone");
    world.clock.advance(3_600_000);
    const calls = times.length;
    await expect(world.loop({ adapter: failing, deadline: "9h" }).execute(late)).rejects.toMatchObject({
      code: "deadline_exceeded",
    });
    expect(times.length).toBe(calls);
    const past = world.loop({ adapter: failing, deadline: new Date(0), directory: { root: world.root, worker: "w9" } });
    await expect(past.execute(late)).rejects.toMatchObject({ code: "deadline_exceeded" });
    expect(times.length).toBe(calls);
  });

  it("S1-60 M-2 an error without a checkpoint is final: the next request takes its place, unless it is asked for again", async () => {
    const world = new World({ script: failingAt(1) });
    await expect(world.loop().execute(REQUEST)).rejects.toThrow("the model is gone");
    expect(await listWorkers(world.root)).toMatchObject([
      { state: "started", failure: expect.stringContaining("the model is gone") },
    ]);
    expect(await listRecoverable(world.root)).toEqual([]);
    await world.loop().execute({ task: "dance" });
    expect(promptOf(world, world.model.requests.length - 1)).toContain("Do this: dance.");
    const again = new World({ script: failingAt(1) });
    await expect(again.loop().execute(REQUEST)).rejects.toThrow();
    expect(await again.loop().execute()).toMatchObject({ ending: { kind: "finished" } });
  });

  it("S1-61 resumes in the same call where that is asked for", async () => {
    const world = new World();
    let failures = 0;
    const { adapter } = world.options;
    const failing: Adapter = {
      async evaluate(prompt, options) {
        await options.calls.checkpoint(options.session);
        if (failures++ < 2) throw new Error("gone");
        return adapter.evaluate(prompt, options);
      },
    };
    const running = world.loop({ adapter: failing, resumeInProcess: { after: 0 } }).execute(REQUEST);
    const pump = setInterval(() => world.clock.advance(0), 1);
    expect(await running.finally(() => clearInterval(pump))).toMatchObject({ ending: { kind: "finished" } });
    expect(failures).toBe(3);
  });

  it("X-8 does not resume what is too old", async () => {
    const world = new World({ script: failingAt(2) });
    await expect(world.loop().execute(REQUEST)).rejects.toThrow();
    world.clock.advance(24 * 3_600_000 + 1000);
    await expect(world.loop({ maxAge: "1 day" }).execute()).rejects.toMatchObject({
      code: "deadline_exceeded",
      message: expect.stringContaining("maxAge"),
    });
    expect(await world.loop().execute()).toMatchObject({ ending: { kind: "finished" } });
  });
});

describe("what a crash leaves", () => {
  it("T-12 an answer without its marker is given back, and nothing is evaluated", async () => {
    const world = new World();
    const response = await world.loop().execute(REQUEST);
    rmSync(world.path("completed"));
    const asked = world.model.requests.length;
    expect(await world.loop().execute()).toEqual(response);
    expect(world.model.requests.length).toBe(asked);
    expect(existsSync(world.path("completed"))).toBe(true);
  });

  it("M-2 T-9 a request without a checkpoint is seen, and begun again or not", async () => {
    const world = new World();
    const store = world.store();
    await store.open();
    await store.saveRequest({ execution: "e1", request: REQUEST, deadline: null, startedAt: 1000 });
    await store.close();
    expect(await listRecoverable(world.root)).toMatchObject([
      { worker: "w1", state: "started", execution: "e1", startedAt: 1000, owner: null },
    ]);
    await expect(world.loop({ restartStarted: false }).execute()).rejects.toMatchObject({ code: "invalid_argument" });
    await world.loop().execute({ task: "dance" });
    expect(promptOf(world, 0)).toContain("Do this: tidy.");
    expect(world.warnings.join()).toContain("request without a checkpoint");
  });

  it("S1-50 S1-51 F-9 drafts are ignored and cleaned; a request that was cut off is reported", async () => {
    const world = new World({ script: failingAt(2) });
    await expect(world.loop().execute(REQUEST)).rejects.toThrow();
    writeFileSync(world.path("checkpoint.json.7-abc.tmp"), "{");
    mkdirSync(world.path("workspace.tmp"));
    await world.loop().execute();
    expect(world.files.filter((name) => name.endsWith(".tmp"))).toEqual(["workspace.tmp"]);

    const cut = new World();
    mkdirSync(cut.path(""), { recursive: true });
    writeFileSync(cut.path("request.json.7-abc.tmp"), '{"request"');
    await expect(cut.loop().execute()).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("no usable request"),
    });
    writeFileSync(cut.path("request.json"), '{"request"');
    await expect(cut.loop().execute()).rejects.toMatchObject({
      code: "corrupt_value",
      message: expect.stringContaining("request.json"),
    });
    expect(await cut.loop().execute(REQUEST)).toMatchObject({ ending: { kind: "finished" } });
  });

  it.each([
    ["cut off", (path: string) => writeFileSync(path, readFileSync(path).subarray(0, 100))],
    [
      "not a snapshot",
      (path: string) =>
        writeFileSync(
          path,
          JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), snapshot: {}, checksum: undefined }),
        ),
    ],
    ["missing", (path: string) => rmSync(path)],
  ])(
    "S1-63 C-1 a checkpoint that is %s ends in a fresh start with the saved request, and is kept",
    async (how, damage) => {
      const world = new World({ script: failingAt(2) });
      await expect(world.loop({ checkpoint: { history: 0 } }).execute(REQUEST)).rejects.toThrow();
      damage(world.path("checkpoint.json"));
      const before = world.model.requests.length;
      expect(await world.loop().execute({ task: "dance" })).toMatchObject({ ending: { kind: "finished" } });
      expect(promptOf(world, before)).toContain("Do this: tidy.");
      expect(promptOf(world, before)).toContain("Nothing is done yet");
      expect(world.warnings.join()).toMatch(/starts fresh from its request|begun again/);
      if (how !== "missing") expect(readdirSync(world.path("quarantine")).length).toBe(2);
    },
  );

  it("C-1 D-8 the copy in the history stands in for a damaged checkpoint", async () => {
    const world = new World({ script: failingAt(3) });
    await expect(world.loop().execute(REQUEST)).rejects.toThrow();
    writeFileSync(world.path("checkpoint.json"), "rubbish");
    const before = world.model.requests.length;
    await expect(world.loop({ onCorruptCheckpoint: "error" }).execute()).rejects.toMatchObject({
      code: "corrupt_value",
    });
    await world.loop().execute();
    expect(promptOf(world, before)).toContain("✓ 2. Step 2");
    expect(readdirSync(world.path("quarantine")).length).toBe(2);
  });

  it("S1-64 fails with both names if neither can be read", async () => {
    const world = new World({ script: failingAt(2) });
    await expect(world.loop({ checkpoint: { history: 0 } }).execute(REQUEST)).rejects.toThrow();
    for (const name of ["request.json", "checkpoint.json"]) writeFileSync(world.path(name), "rubbish");
    const message = expect.stringMatching(/request\.json.*checkpoint\.json/);
    await expect(world.loop().execute()).rejects.toMatchObject({ code: "corrupt_value", message });
    await expect(world.loop().execute(REQUEST)).rejects.toMatchObject({ code: "corrupt_value", message });
  });

  it("S1-65 C-28 E-7 slices of unknown type are an error, dropped, or a fresh start; a bad value is an error", async () => {
    const world = new World({ script: failingAt(2) });
    const state = () => world.loop().execute();
    await expect(world.loop().execute(REQUEST)).rejects.toThrow();
    const sessionOf = world.options.session!;
    const strange = (facts: Parameters<typeof sessionOf>[0]) =>
      new (sessionOf(facts).constructor as typeof import("../src/agent/session.ts").Session)({
        ...facts,
        slices: [plan],
      });
    await expect(world.loop({ session: strange }).execute()).rejects.toMatchObject({
      code: "snapshot_restore",
      fields: { reason: "unknown_type", slices: ["notes"] },
    });
    const copy = readFileSync(world.path("checkpoint.json"));
    const tools = modelAdapter(scriptedModel(planner(3, () => [])), {});
    const before = world.model.requests.length;
    expect(await world.loop({ session: strange, onUnknownSlice: "drop", adapter: tools }).execute()).toMatchObject({
      ending: { kind: "finished" },
    });
    rmSync(world.path("completed"));
    writeFileSync(world.path("checkpoint.json"), copy);
    const fresh = scriptedModel(planner(3, () => []));
    await world.loop({ session: strange, onUnknownSlice: "fresh", adapter: modelAdapter(fresh, {}) }).execute();
    expect(String(fresh.requests[0]?.prompt[0]?.content)).toContain("Nothing is done yet");
    expect(readdirSync(world.path("quarantine")).length).toBe(2);
    rmSync(world.path("completed"));
    const bad = JSON.parse(String(copy)) as {
      checksum?: string;
      snapshot: { slices: { slice_type: string; items: unknown[] }[] };
    };
    delete bad.checksum;
    bad.snapshot.slices.find(({ slice_type }) => slice_type === "notes")!.items = [{ $date: "never" }];
    writeFileSync(world.path("checkpoint.json"), JSON.stringify(bad));
    await expect(state()).rejects.toMatchObject({ code: "snapshot_restore", fields: { reason: "bad_value" } });
    expect(world.model.requests.length).toBe(before);
  });
});

describe("one at a time", () => {
  it("S1-68 a second request is refused while one is under way, or waits for it", async () => {
    const world = new World();
    const loop = world.loop();
    const first = loop.execute(REQUEST);
    await expect(loop.execute(REQUEST)).rejects.toMatchObject({ code: "run_busy" });
    await first;
    const patient = world.loop({ whileRunning: "queue" });
    const both = await Promise.all([patient.execute({ task: "a" }), patient.execute({ task: "b" })]);
    expect(both.map(({ ending }) => ending.kind)).toEqual(["finished", "finished"]);
    expect(promptOf(world, world.model.requests.length - 1)).toContain("Do this: b.");
  });

  it("S1-67 E-10 another loop on the same directory is refused with the owner's identity, and may look", async () => {
    const world = new World({ script: () => new Promise(() => {}) });
    const stop = new AbortController();
    const first = world.loop().execute(REQUEST, { signal: stop.signal });
    first.catch(() => {});
    await expect.poll(() => world.model.requests.length).toBe(1);
    await expect(world.loop().execute(REQUEST)).rejects.toMatchObject({
      code: "worker_directory_busy",
      fields: { owner: { pid: process.pid } },
    });
    expect(await listWorkers(world.root)).toMatchObject([{ state: "started", owner: { pid: process.pid } }]);
    expect(await listRecoverable(world.root)).toEqual([]);
    await expect(abandon({ root: world.root, worker: "w1" }, "stuck")).rejects.toMatchObject({
      code: "worker_directory_busy",
    });
    stop.abort();
    await expect(first).rejects.toThrow();
    expect(await listRecoverable(world.root)).toMatchObject([{ state: "started" }]);
  });
});

describe("recovery", () => {
  it("X-9 lists what is left, takes it up and tells about it, or gives it up", async () => {
    const world = new World({ script: failingAt(2) });
    const told: string[] = [];
    for (const type of [RecoveryStarted, RecoveryCompleted, RecoveryFailed])
      world.bus.subscribe<{ attempt: number; sequence: number }>(type, (event) =>
        told.push(`${event.type} ${event.payload.attempt} ${event.payload.sequence}`),
      );
    await expect(world.loop().execute(REQUEST)).rejects.toThrow();
    await world.loop({ directory: { root: world.root, worker: "w2" } }).execute(REQUEST);
    expect((await listRecoverable(world.root)).map(({ worker }) => worker)).toEqual(["w1"]);
    const loopOf = (worker: string) => world.loop({ directory: { root: world.root, worker } });
    expect(await recover(world.root, loopOf)).toMatchObject([
      { worker: "w1", response: { ending: { kind: "finished" } } },
    ]);
    expect(await recover(world.root, loopOf)).toEqual([]);
    expect(told).toEqual(["RecoveryStarted 2 1", "RecoveryCompleted 2 1"]);

    const other = new World({ script: failingAt(2) });
    other.bus.subscribe(RecoveryFailed, ({ payload }) => told.push(payload.message));
    await expect(other.loop().execute(REQUEST)).rejects.toThrow();
    const broken: Adapter = { evaluate: () => Promise.reject(new Error("still gone")) };
    expect(await recover(other.root, () => other.loop({ adapter: broken }))).toMatchObject([
      { error: { message: "still gone" } },
    ]);
    expect(told.at(-1)).toBe("still gone");
    expect(await abandon({ root: other.root, worker: "w1" }, "nobody needs it")).toBe(true);
    expect(await abandon({ root: other.root, worker: "w1" }, "nobody needs it")).toBe(false);
    expect(await listWorkers(other.root)).toMatchObject([{ state: "empty" }]);
    const [archived = ""] = readdirSync(other.path("archive"));
    expect(readFileSync(other.path(`archive/${archived}/request.json`), "utf8")).toContain(
      "abandoned: nobody needs it",
    );
    expect(await listWorkers(`${other.root}/nowhere`)).toEqual([]);
  });

  it("S1-19 S1-31 the plain loop does without a store", async () => {
    const world = new World();
    const { adapter, session, prompt, log, clock } = world.options;
    const plain = new AgentLoop({ adapter, session: session!, prompt, log: log!, clock: clock!, deadline: "1h" });
    expect(await plain.execute(REQUEST)).toMatchObject({ ending: { kind: "finished" } });
    expect(readdirSync(world.root)).toEqual([]);
    const late = new AgentLoop({
      adapter,
      prompt: (request: { task: string }) => task.bind(request),
      clock: clock!,
      deadline: new Date(0),
    });
    await expect(late.execute(REQUEST)).rejects.toMatchObject({ code: "deadline_exceeded" });
  });
});
