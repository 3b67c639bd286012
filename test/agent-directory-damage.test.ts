// What a worker does about documents that are damaged, and about work that was given up, failed or done: nothing outside happens twice.
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { Adapter } from "../src/agent/adapter.ts";
import { savedRequest } from "../src/agent/checkpoint-store-cases.ts";
import type { ModelRequest } from "../src/agent/model.ts";
import { abandon, listRecoverable, listWorkers, recover, settleEffect } from "../src/agent/recovery.ts";
import type { ScriptedReply } from "../src/agent/scripted-model.ts";
import { slice } from "../src/agent/slice.ts";
import { type Tool, tool } from "../src/agent/tool.ts";
import { PawlError } from "../src/base/errors.ts";
import { changed, over, planner, World } from "./agent-directory-world.ts";

const REQUEST = { task: "tidy" };

/** A world whose agent sends a letter in each of its steps, and whose model is gone after so many answers. */
class Letters {
  readonly sent: number[] = [];
  readonly send: Tool<never, unknown> = tool({
    name: "send",
    description: "Sends a letter.",
    class: "execute",
    input: z.object({ to: z.number() }),
    run: ({ to }: { to: number }) => {
      this.sent.push(to);
      return `sent to ${to}`;
    },
  }) as unknown as Tool<never, unknown>;
  readonly world: World;
  answers: number;

  constructor(answers: number) {
    this.answers = answers;
    const model = planner(3, (step) => [{ send: { to: step } }]);
    const script = (request: ModelRequest): ScriptedReply | Error =>
      this.answers-- > 0 ? model(request) : new Error("the model is gone");
    this.world = new World({ script, tools: [this.send] });
  }

  loop(changes: Parameters<World["loop"]>[0] = {}) {
    return this.world.loop({ ...changes, retry: false });
  }

  async untilGone(changes: Parameters<World["loop"]>[0] = {}): Promise<void> {
    await expect(this.loop(changes).execute(REQUEST)).rejects.toThrow("the model is gone");
    this.answers = Number.POSITIVE_INFINITY;
  }

  damage(name: string): void {
    writeFileSync(this.world.path(name), "rubbish");
  }

  get copies(): string[] {
    const [execution = ""] = readdirSync(this.world.path("history"));
    return readdirSync(this.world.path(`history/${execution}`)).map((name) => `history/${execution}/${name}`);
  }
}

describe("a damaged checkpoint", () => {
  const checkpoint = { incremental: { fullEvery: 50 } };

  it("C-1 C-7 D-8 its copy goes with what has changed since: effects that the delta knows of are not done again", async () => {
    const letters = new Letters(4);
    await letters.untilGone({ checkpoint });
    expect(letters.sent).toEqual([1, 2]);
    letters.damage("checkpoint.json");
    expect(await letters.loop({ checkpoint }).execute()).toMatchObject({ ending: { kind: "finished" } });
    expect(letters.sent).toEqual([1, 2, 3]);
  });

  it("C-1 C-7 the same where a process ended before the copy had taken its place", async () => {
    const letters = new Letters(4);
    await letters.untilGone({ checkpoint });
    const store = letters.world.store();
    await store.open();
    await store.quarantine("checkpoint", "damaged");
    await store.close();
    expect(await letters.loop({ checkpoint }).execute()).toMatchObject({ ending: { kind: "finished" } });
    expect(letters.sent).toEqual([1, 2, 3]);
  });

  it("C-1 C-7 a copy that may not know of an effect is not gone on from", async () => {
    const letters = new Letters(4);
    await letters.untilGone({ checkpoint: { history: 3 } });
    const newest = letters.copies.sort((a, b) => a.localeCompare(b, "en", { numeric: true })).at(-1) ?? "";
    letters.damage("checkpoint.json");
    letters.damage(newest);
    const again = letters.loop({ checkpoint: { history: 3 } }).execute();
    await expect(again).rejects.toMatchObject({ code: "corrupt_value", fields: { reason: expect.any(String) } });
    expect(letters.sent).toEqual([1, 2]);
  });

  it("C-1 a copy without a usable snapshot is none", async () => {
    const world = new World({ script: (request) => (world.model.requests.length > 5 ? gone : planner(3)(request)) });
    const gone = new Error("gone");
    await expect(world.loop({ retry: false }).execute(REQUEST)).rejects.toThrow("gone");
    const [execution = ""] = readdirSync(world.path("history"));
    const [name = ""] = readdirSync(world.path(`history/${execution}`));
    const facts = { format: 1, execution, attempt: 1, sequence: 2, saved_at: "2026-01-01T00:00:00Z", deadline: null };
    writeFileSync(world.path(`history/${execution}/${name}`), JSON.stringify({ ...facts, snapshot: { slices: 5 } }));
    writeFileSync(world.path("checkpoint.json"), "rubbish");
    world.model = new World().model;
    expect(await world.loop().execute()).toMatchObject({ ending: { kind: "finished" } });
    expect(world.warnings.join()).toContain("starts fresh");
  });

  it("C-28 S1-73 a fresh start has nothing of the delta that was there", async () => {
    const old = slice<string>("old");
    const world = new World({ script: (request) => (world.model.requests.length > 5 ? gone : planner(3)(request)) });
    const gone = new Error("gone");
    const { session } = world.options;
    const withOld: typeof session = (facts) => {
      const made = session?.(facts);
      made?.register(old);
      return made as NonNullable<typeof made>;
    };
    await expect(world.loop({ session: withOld, checkpoint, retry: false }).execute(REQUEST)).rejects.toThrow("gone");
    expect(world.files).toContain("checkpoint.delta.json");
    const once: Adapter = {
      async evaluate(_, options) {
        await options.calls.checkpoint(options.session);
        throw gone;
      },
    };
    const changes = { checkpoint, onUnknownSlice: "fresh" as const };
    await expect(world.loop({ ...changes, adapter: once }).execute()).rejects.toThrow("gone");
    const snapshot = (await world.store().loadCheckpoint())?.snapshot;
    expect(snapshot).not.toContain("Step 1");
    expect(snapshot).not.toContain('"old"');
  });
});

describe("what is over", () => {
  it("T-12 C-7 a process that ended with its answer unused gets it again: nothing is done twice", async () => {
    const letters = new Letters(Number.POSITIVE_INFINITY);
    const response = await letters.loop().execute(REQUEST);
    const asked = letters.world.model.requests.length;
    expect(await letters.loop().execute()).toEqual(response);
    const onRepeatedRequest = "answer";
    expect(await letters.loop({ onRepeatedRequest }).execute(REQUEST)).toEqual(response);
    expect([letters.world.model.requests.length, letters.sent]).toEqual([asked, [1, 2, 3]]);
    await letters.loop({ onRepeatedRequest }).execute({ task: "dance" });
    await letters.loop().execute({ task: "dance" });
    expect(letters.sent).toEqual([1, 2, 3, 1, 2, 3, 1, 2, 3]);
  });

  it("X-9 S1-60 a failed request that is tried again and dies is recoverable like any other", async () => {
    const letters = new Letters(0);
    await letters.untilGone();
    expect(await listRecoverable(letters.world.root)).toEqual([]);
    letters.answers = 3;
    await expect(letters.loop().execute()).rejects.toThrow("the model is gone");
    letters.answers = Number.POSITIVE_INFINITY;
    expect(await listRecoverable(letters.world.root)).toMatchObject([{ state: "incomplete", failure: null }]);
    expect(await recover(letters.world.root, () => letters.loop())).toMatchObject([
      { response: { ending: { kind: "finished" } } },
    ]);
  });

  it("E-10 T-12 an answer is an answer, though the directory could not be let go of", async () => {
    const world = new World();
    const store = world.store();
    const close = async () => {
      await store.close();
      throw new Error("no room");
    };
    const loop = over(world, changed(store, { close }));
    expect(await loop.execute(REQUEST)).toMatchObject({ ending: { kind: "finished" } });
    expect(world.warnings.join()).toContain("no room");
  });
});

it("S1-58 a deadline that is no time is refused before anything is done", async () => {
  const world = new World();
  const loop = world.loop({ deadline: new Date(Number.NaN) });
  await expect(loop.execute(REQUEST)).rejects.toMatchObject({ code: "invalid_argument" });
  expect(await listRecoverable(world.root)).toEqual([]);
});

describe("the loop in one process", () => {
  const failing = (error: unknown): Adapter => ({
    async evaluate(_, options) {
      await options.calls.checkpoint(options.session);
      throw error;
    },
  });

  it("S1-61 E-10 does not go on without its directory", async () => {
    const world = new World();
    const taken = new PawlError("worker_directory_busy", "taken");
    const loop = world.loop({ adapter: failing(taken), resumeInProcess: true });
    await expect(loop.execute(REQUEST)).rejects.toThrow("taken");
  });

  it("S1-61 a stop ends the pause before another start", async () => {
    const world = new World();
    const stop = new AbortController();
    const loop = world.loop({ adapter: failing(new Error("gone")), resumeInProcess: { after: "1h" } });
    const running = loop.execute(REQUEST, { signal: stop.signal });
    await expect.poll(() => world.warnings.join()).toContain("resumed in the same process");
    stop.abort(new Error("stopped"));
    await expect(running).rejects.toThrow();
  });
});

describe("workers under a root", () => {
  it("X-9 M-2 a worker's directory may be a link", async () => {
    const world = new World();
    const elsewhere = new World();
    const store = elsewhere.store();
    await store.open();
    await store.saveRequest(savedRequest());
    await store.close();
    symlinkSync(elsewhere.path("."), `${world.root}/linked`);
    symlinkSync(`${world.root}/nowhere`, `${world.root}/broken`);
    expect(await listRecoverable(world.root)).toMatchObject([{ worker: "linked", state: "started" }]);
  });

  it("X-9 D-8 one that is damaged hides no other: it is tried, and its error told", async () => {
    const letters = new Letters(4);
    await letters.untilGone();
    letters.damage("checkpoint.json");
    const { root } = letters.world;
    mkdirSync(`${root}/a/request.json`, { recursive: true });
    mkdirSync(`${root}/b`);
    writeFileSync(`${root}/b/lock`, "rubbish, and more of it");
    expect(await listWorkers(root)).toMatchObject([
      { worker: "a", state: "damaged" },
      { worker: "b", state: "damaged" },
      { worker: "w1", state: "damaged", failure: null },
    ]);
    const taken = await recover(root, (worker) => letters.loop({ directory: { root, worker } }));
    expect(taken).toMatchObject([
      { worker: "a", error: { code: "storage_unavailable" } },
      { worker: "w1", response: { ending: { kind: "finished" } } },
    ]);
    expect(letters.sent).toEqual([1, 2, 3]);
  });

  it("X-9 nobody is made by being given up", async () => {
    const world = new World();
    expect(await abandon({ root: world.root, worker: "typo" }, "enough")).toBe(false);
    await expect(settleEffect({ root: world.root, worker: "typo" }, "e1", true)).rejects.toMatchObject({
      code: "invalid_argument",
    });
    expect(existsSync(`${world.root}/typo`)).toBe(false);
    expect(await listWorkers(world.root)).toEqual([]);
  });
});
