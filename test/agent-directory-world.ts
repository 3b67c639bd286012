// A worker's directory, an agent that plans, and what it did: for tests of the durable loop.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { modelAdapter } from "../src/agent/adapter.ts";
import { EventBus } from "../src/agent/bus.ts";
import type { CheckpointStore } from "../src/agent/checkpoint-store.ts";
import { DurableLoop, type DurableLoopOptions, type DurableLoopRules } from "../src/agent/durable-loop.ts";
import type { LoopOptions } from "../src/agent/loop.ts";
import type { ModelRequest } from "../src/agent/model.ts";
import { plan } from "../src/agent/plan.ts";
import { planningSection } from "../src/agent/planning-section.ts";
import { progressSection } from "../src/agent/progress-section.ts";
import { prompt } from "../src/agent/prompt.ts";
import { callTools, type ScriptedReply, say, scriptedModel } from "../src/agent/scripted-model.ts";
import { section } from "../src/agent/section.ts";
import { Session } from "../src/agent/session.ts";
import { type AnySlice, slice } from "../src/agent/slice.ts";
import { type Tool, tool } from "../src/agent/tool.ts";
import { directoryStore } from "../src/agent/worker-directory.ts";
import { type ManualClock, manualClock } from "../src/base/clock.ts";

export interface Request {
  readonly task: string;
}

export const notes = slice<{ readonly text: string }>("notes");

export const task = prompt({
  namespace: "test",
  key: "task",
  sections: [
    section<Request>({ title: "Task", key: "task", body: "Do this: $task." }),
    progressSection(),
    planningSection(),
  ],
});

export type Call = Readonly<Record<string, unknown>>;

/** Plans so many steps, and does what each needs; it goes by its prompt and the conversation alone. */
export function planner(steps: number, workOf: (step: number) => readonly Call[] = (step) => [{ look: { at: step } }]) {
  return (request: ModelRequest): ScriptedReply => {
    const [system, ...conversation] = request.prompt;
    const told = typeof system?.content === "string" ? system.content : "";
    const calls = conversation
      .flatMap(({ content }) => (typeof content === "string" ? [] : content))
      .filter(({ type }) => type === "tool-call");
    const has = (name: string, input?: unknown) =>
      calls.some(
        (call) =>
          call.toolName === name && (input === undefined || JSON.stringify(call.input) === JSON.stringify(input)),
      );
    if (!told.includes("Objective:") && !has("planning_setup_plan"))
      return callTools({
        planning_setup_plan: {
          objective: "All of it",
          steps: Array.from({ length: steps }, (_, n) => `Step ${n + 1}`),
        },
      });
    for (let step = 1; step <= steps; step++) {
      const done = { id: step, status: "done" };
      if (told.includes(`✓ ${step}.`) || has("planning_update_step", done)) continue;
      const open = workOf(step).filter((call) => !has(Object.keys(call)[0] ?? "", Object.values(call)[0]));
      return open.length > 0 ? callTools(...open) : callTools({ planning_update_step: done });
    }
    return say("All of it is done.");
  };
}

export interface WorldOptions {
  readonly script?: (request: ModelRequest) => ScriptedReply | Error | Promise<ScriptedReply | Error>;
  readonly tools?: readonly Tool<never, unknown>[];
  readonly slices?: readonly AnySlice[];
}

type LoopChanges = Partial<LoopOptions<Request, string>> & DurableLoopRules<Request, string> & Record<string, unknown>;

/** One worker's root, and loops over it as processes would make them. */
export class World {
  readonly root: string = mkdtempSync(join(tmpdir(), "pawl-loop-"));
  readonly clock: ManualClock = manualClock();
  readonly bus: EventBus = new EventBus();
  readonly warnings: string[] = [];
  /** What tools did, in order. */
  readonly did: string[] = [];
  readonly #options: WorldOptions;
  model = scriptedModel([]);

  constructor(options: WorldOptions = {}) {
    this.#options = options;
    this.model = scriptedModel(options.script ?? planner(3));
    onTestFinished(() => rmSync(this.root, { recursive: true, force: true }));
  }

  readonly look: Tool<{ at: number }, unknown> = tool({
    name: "look",
    description: "Looks.",
    class: "read",
    input: z.object({ at: z.number() }),
    output: notes,
    run: ({ at }) => {
      this.did.push(`look ${at}`);
      return { text: `seen ${at}` };
    },
  });

  log = {
    debug() {},
    info() {},
    warn: (message: string) => void this.warnings.push(message),
    error: (message: string) => void this.warnings.push(message),
  };

  get options(): DurableLoopOptions<Request, string> {
    const { tools = [this.look], slices = [plan, notes] } = this.#options;
    return {
      adapter: modelAdapter(this.model, { tools }),
      session: ({ id, createdAt }) => new Session({ id, createdAt, slices, log: this.log }),
      prompt: (request) => task.bind(request),
      directory: { root: this.root, worker: "w1", durability: "process" },
      bus: this.bus,
      log: this.log,
      clock: this.clock,
    };
  }

  loop(changes: LoopChanges = {}): DurableLoop<Request, string> {
    return new DurableLoop<Request, string>({ ...this.options, ...changes });
  }

  store(fault?: (point: string, path: string) => void) {
    return directoryStore({
      root: this.root,
      worker: "w1",
      durability: "process",
      ...(fault !== undefined && { fault }),
    });
  }

  /** The files of the worker, without those that say who has it. */
  get files(): string[] {
    return readdirSync(join(this.root, "w1")).filter((name) => !/^(lock|lease)/.test(name));
  }

  path(name: string): string {
    return join(this.root, "w1", name);
  }
}

/** The store with some of its methods replaced. */
export function changed(store: CheckpointStore, changes: Partial<CheckpointStore>): CheckpointStore {
  return new Proxy(store, {
    get: (target, name) => {
      const own = changes[name as keyof CheckpointStore] ?? (target[name as keyof CheckpointStore] as unknown);
      return typeof own === "function" ? own.bind(target) : own;
    },
  });
}

/** A loop over a given store. */
export function over(
  world: World,
  store: CheckpointStore,
  changes: Record<string, unknown> = {},
): DurableLoop<Request, string> {
  const { directory: _, ...options } = world.options as unknown as Record<string, unknown>;
  return world.loop({ ...options, directory: undefined, store, ...changes });
}
