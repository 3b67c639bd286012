// Linted workflows
// The same workflows, whose steps and effects are run by a stage that watches them. What the engine is given is otherwise what the body gave.
import type { Context, StepInfo, StepOptions, UndoableStepOptions } from "../../core/context.ts";
import { type EffectOptions, type EffectSpec, planOf, recoveryOf } from "../../core/effect.ts";
import type { UndoInfo } from "../../core/undoable-call.ts";
import type { Workflow } from "../../core/workflow.ts";
import type { Workflows } from "../explorer/watched-workflow.ts";
import type { Declared, Operation } from "./operation.ts";
import type { Stage } from "./stage.ts";

type AnyFunction = (...args: readonly unknown[]) => unknown;
type Undo = NonNullable<EffectSpec<unknown>["undo"]>;

const WATCHED: ReadonlySet<string | symbol> = new Set(["step", "effect", "transaction", "call", "spawn"]);

/** Wraps each workflow, by its original: an engine goes on with the very one that it was told to start. */
export function lintedWorkflows(workflows: Workflows, stage: Stage): Map<unknown, Workflow<never, unknown>> {
  const linted = new Map<unknown, Workflow<never, unknown>>();
  for (const workflow of workflows) {
    const { handler } = workflow.definition;
    const definition: Workflow["definition"] = {
      ...workflow.definition,
      handler: (ctx, input) => {
        stage.enterBody(ctx.run.id, workflow.name);
        return handler(lintedContext(ctx, new Watched(ctx, workflow.name, stage, linted)), input);
      },
    };
    linted.set(workflow, { ...workflow, definition });
  }
  return linted;
}

function lintedContext(ctx: Context, watched: Watched): Context {
  return new Proxy(ctx, {
    get(_, name) {
      const owner = (WATCHED.has(name) ? watched : ctx) as unknown as Readonly<Record<string | symbol, unknown>>;
      const value = owner[name];
      return typeof value === "function" ? (value.bind(owner) as unknown) : value;
    },
  });
}

/** The calls that do something outside, or may. Whatever is no proper call goes to the engine as it is: it says what is wrong. */
class Watched {
  readonly #ctx: Context;
  readonly #workflow: string;
  readonly #stage: Stage;
  readonly #linted: ReadonlyMap<unknown, Workflow<never, unknown>>;

  constructor(ctx: Context, workflow: string, stage: Stage, linted: ReadonlyMap<unknown, Workflow<never, unknown>>) {
    this.#ctx = ctx;
    this.#workflow = workflow;
    this.#stage = stage;
    this.#linted = linted;
  }

  call(child: unknown, ...args: readonly unknown[]): unknown {
    return (this.#ctx.call.bind(this.#ctx) as AnyFunction)(this.#linted.get(child) ?? child, ...args);
  }

  spawn(child: unknown, ...args: readonly unknown[]): unknown {
    return (this.#ctx.spawn.bind(this.#ctx) as AnyFunction)(this.#linted.get(child) ?? child, ...args);
  }

  step(...args: readonly unknown[]): unknown {
    const [first, fn, options = {}] = args;
    const call = this.#ctx.step.bind(this.#ctx) as AnyFunction;
    if (typeof first === "function") return call(this.#withArguments(first as AnyFunction), ...args.slice(1));
    if (typeof first !== "string" || typeof fn !== "function" || !isGiven(options)) return call(...args);
    const { undo, recovery = "rerun" } = options;
    const operation = this.#stage.operation({
      ...this.#plain("step", first),
      class: undo === undefined ? null : "write",
      recovery,
      canUndo: undo !== undefined,
    });
    const run = (info: StepInfo) => this.#stage.step(operation, (given) => (fn as AnyFunction)(given), info);
    if (typeof undo !== "function") return call(first, run, options);
    return call(first, run, { ...options, undo: this.#undo(operation, (value, info) => undo(value, info)) });
  }

  effect(name: string, spec: EffectSpec<unknown>, options: EffectOptions = {}): unknown {
    const operation = this.#stage.operation({ ...this.#plain("effect", name), ...effectFacts(name, spec, options) });
    const { detect, undo } = spec;
    const take = (value: unknown, info: UndoInfo) => undo?.call(spec, value, info);
    // What the spec has beside these stays as it is, also if it is frozen or comes from a class.
    const watched = Object.create(spec, {
      do: { value: (info: StepInfo) => this.#stage.effect(operation, spec, info) },
      ...(detect !== undefined && { detect: { value: (info: StepInfo) => detect.call(spec, info) } }),
      ...(undo !== undefined && { undo: { value: this.#undo(operation, take) } }),
    }) as EffectSpec<unknown>;
    return this.#ctx.effect(name, watched, options);
  }

  /** It happens together with its record, or not at all: there is nothing to watch. */
  transaction(...args: Parameters<Context["transaction"]>): unknown {
    const [name] = args;
    const operation = this.#stage.operation({ ...this.#plain("transaction", name), class: "write" });
    operation.places.add(name);
    return this.#ctx.transaction(...args);
  }

  /** A function under its own name: the engine takes the step's name from it. */
  #withArguments(fn: AnyFunction): AnyFunction {
    const operation = this.#stage.operation(this.#plain("step", fn.name.replace(/^bound /, "")));
    const run = (...given: readonly unknown[]) => this.#stage.step(operation, () => fn(...given), NO_INFO);
    return Object.defineProperty(run, "name", { value: fn.name });
  }

  #undo(operation: Operation, fn: Undo): Undo {
    return (value: unknown, info: UndoInfo) => this.#stage.undo(operation, () => fn(value, info));
  }

  #plain(kind: Declared["kind"], name: string): Declared {
    return {
      workflow: this.#workflow,
      name,
      kind,
      class: null,
      guard: "none",
      recovery: "rerun",
      hasKey: false,
      canUndo: false,
      needsApproval: false,
    };
  }
}

/** A function that is called with arguments of its own gets none. */
const NO_INFO: StepInfo = {
  key: "",
  attempt: 1,
  signal: new AbortController().signal,
  heartbeat() {},
  spent() {},
  async save() {},
  saved: undefined,
  emit() {},
  secret: async () => "a secret of a test",
};

function isGiven(options: unknown): options is StepOptions & Partial<UndoableStepOptions<unknown>> {
  return typeof options === "object" && options !== null;
}

/** As the engine sees them; it refuses what these refuse, in the same words. */
function effectFacts(name: string, spec: EffectSpec<unknown>, options: EffectOptions): Partial<Declared> {
  const plan = planOf(name, spec, "", false);
  return {
    class: spec.class ?? null,
    guard: plan.guard === "idempotent" && spec.idempotent === "natural" ? "natural" : plan.guard,
    recovery: recoveryOf(name, plan, spec, options),
    hasKey: spec.key !== undefined,
    canUndo: spec.undo !== undefined,
    needsApproval: spec.needs !== undefined,
  };
}
