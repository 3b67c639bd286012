// Workflow programs as data
// One handler interprets them all. What a program returns can be judged without running it: `isAllowed` knows every answer it may give,
// whatever happened on the way.
import { hasCode } from "../../base/errors.ts";
import type { BudgetOptions } from "../../core/budget.ts";
import type { Context, StepInfo } from "../../core/context.ts";
import type { Workflow } from "../../core/workflow.ts";
import {
  type DeedOutside,
  type DeedProgram,
  Deeds,
  FAILURE,
  failuresOf,
  isAllowedDeed,
  isDeed,
  type SpendingLimit,
} from "./deeds.ts";
import type { SavedPart } from "./save-checks.ts";
import type { Situation } from "./situations.ts";

/** What a simulated run does, as data. Its answer can be judged without running it. */
export type Program =
  /** Adds to a counter outside, once per idempotency key; the function takes `ms`. */
  | { readonly op: "add"; readonly counter: string; readonly by: number; readonly ms: number }
  /** Fails so often and then succeeds. */
  | { readonly op: "flaky"; readonly fails: number; readonly ms: number }
  /** Fails for good; the body catches it. */
  | { readonly op: "broken" }
  /** Fails for good, and nobody catches it: only as one of several in `any`. */
  | { readonly op: "throw" }
  /** Fails for good until somebody has retried something, and nobody catches it. */
  | { readonly op: "ail"; readonly ms: number }
  /** Must never begin twice: a crash in its middle fails it. */
  | { readonly op: "once"; readonly ms: number }
  /** Takes longer than its timeout allows. */
  | { readonly op: "late"; readonly ms: number }
  | { readonly op: "sleep"; readonly ms: number }
  /** Does so many parts, each in `ms`, and saves after each; its first attempts fail after one. */
  | { readonly op: "save"; readonly times: number; readonly fails: number; readonly ms: number }
  | { readonly op: "wait"; readonly signal: string; readonly timeoutMs: number | null }
  | { readonly op: "set"; readonly value: number }
  | { readonly op: "seq" | "all" | "race" | "any"; readonly of: readonly Program[] }
  | { readonly op: "map"; readonly items: number; readonly concurrency: number; readonly of: Program }
  /** A child; one that fails does so after all it has to do, and the body catches it. */
  | { readonly op: "call" | "spawn"; readonly of: Program; readonly fails: boolean; readonly budget?: SpendingLimit }
  /** The first version of the workflow goes `before`, a patch of it `after`. */
  | { readonly op: "patch"; readonly before: Program; readonly after: Program }
  | DeedProgram;

/** What a run of the simulated workflow is started with. Each round is a generation of its own. */
export interface ProgramInput {
  readonly program: Program;
  readonly rounds: number;
  readonly done: readonly unknown[];
  /** After its last round it throws. */
  readonly fails: boolean;
  /** What it may spend, with all runs below it. */
  readonly budget?: SpendingLimit;
  readonly of?: OfBurst;
}

/** Which start of which burst an input comes from. */
export interface OfBurst {
  readonly burst: number;
  readonly n: number;
}

/** What the steps of a program need from the world outside. */
export interface Outside extends DeedOutside {
  /** A step's function has begun. */
  began(run: string, info: StepInfo): void;
  /** It did what it had to do outside. */
  acted(info: StepInfo, counter: string, by: number): void;
  /** Its function is over, whatever came of it. */
  ended(info: StepInfo): void;
  pause(ms: number): Promise<void>;
  /** An attempt looks at what was saved before it; says how many parts are done. */
  resumed(run: string, info: StepInfo): number;
  /** It was told that so many parts are saved. */
  saved(run: string, info: StepInfo, n: number): void;
  /** Somebody has retried something: what ailed is well. */
  isMended(): boolean;
  sometimes(what: Situation): void;
}

/** The code that a worker runs: a version of the workflow. */
export interface Build {
  readonly isPatched: boolean;
  readonly workflow: () => Workflow<ProgramInput, unknown>;
  readonly outside: Outside;
}

const RETRY = { max: 3, base: 20, factor: 2, jitter: false, on: "any" } as const;

/** What a step says that ails. */
const ILL = "this has to be mended first";

/** Whether a run ended with this error because it was meant to. */
export function isMeant(error: unknown): boolean {
  return error instanceof Error && error.message === FAILURE;
}

/** Whether a run ended with this error because it, or a child of it, ails. */
export function isIll(error: unknown): boolean {
  if (hasCode(error, "child_failed")) return isIll((error as Error).cause);
  return error instanceof Error && error.message === ILL;
}

/** The handler of the simulated workflow. */
export async function runProgram(ctx: Context, input: ProgramInput, build: Build): Promise<unknown> {
  const { rounds, done, fails } = input;
  const result = await new Interpreter(ctx, build, done.length).run(input.program);
  const results = [...done, result];
  if (results.length < rounds) return ctx.continueAs({ ...input, done: results });
  if (fails) throw new Error(FAILURE);
  return results;
}

class Interpreter {
  readonly #ctx: Context;
  readonly #build: Build;
  readonly #deeds: Deeds;

  constructor(ctx: Context, build: Build, generation: number) {
    this.#ctx = ctx;
    this.#build = build;
    this.#deeds = new Deeds(ctx, build.outside, generation);
  }

  async run(node: Program): Promise<unknown> {
    const ctx = this.#ctx;
    switch (node.op) {
      case "add":
        return this.#step("add", node.ms, {}, (info) => {
          this.#build.outside.acted(info, node.counter, node.by);
          return node.by;
        });
      case "flaky":
        return this.#step("flaky", node.ms, { retry: RETRY }, (info) => {
          if (info.attempt <= node.fails) throw new Error(`attempt ${info.attempt} fails`);
          return `after ${node.fails}`;
        });
      case "broken":
        return this.#step("broken", 1, { retry: false }, fail).catch(unlessStopped("caught"));
      case "throw":
        return this.#step("throw", 1, { retry: false }, fail);
      case "ail":
        return this.#step("ail", node.ms, { retry: false }, () => this.#ail());
      case "once":
        return this.#step("once", node.ms, { recovery: "fail", retry: false }, () => "once").catch(this.#interrupted);
      case "late":
        return this.#step("late", node.ms, { timeout: 30, retry: false }, () => "in time").catch(unlessStopped("late"));
      case "save":
        return this.#save(node);
      case "sleep":
        await ctx.sleep(node.ms);
        return "slept";
      case "wait":
        return this.#wait(node.signal, node.timeoutMs);
      case "set":
        ctx.set("value", node.value);
        return ctx.get("value");
      case "seq": {
        const results: unknown[] = [];
        for (const one of node.of) results.push(await this.run(one));
        return results;
      }
      case "all":
        return Promise.all(node.of.map((one) => this.run(one)));
      case "race":
        return Promise.race(node.of.map((one) => this.run(one)));
      case "any":
        return Promise.any(node.of.map((one) => this.run(one)));
      case "map":
        return ctx.map(
          Array.from({ length: node.items }, (_, i) => i),
          () => this.run(node.of),
          { concurrency: node.concurrency },
        );
      case "call":
        return ctx.call(this.#build.workflow(), childInput(node), budgetOf(node)).catch(caughtFrom(node));
      case "spawn":
        await ctx.spawn(this.#build.workflow(), childInput(node), budgetOf(node));
        return "spawned";
      case "patch": {
        const isPatched = this.#build.isPatched && ctx.patched("way");
        if (isPatched) this.#build.outside.sometimes("a patch was taken");
        return this.run(isPatched ? node.after : node.before);
      }
      case "deal":
      case "ask":
      case "spend":
      case "stop":
        return this.#deeds.run(node);
    }
  }

  #step(
    name: string,
    ms: number,
    options: Parameters<Context["step"]>[2] & object,
    finish: (info: StepInfo) => unknown,
  ): Promise<unknown> {
    const { outside } = this.#build;
    const { id } = this.#ctx.run;
    return this.#ctx.step(
      name,
      async (info) => {
        outside.began(id, info);
        if (ms > 0) await outside.pause(ms);
        outside.ended(info);
        return finish(info);
      },
      options,
    );
  }

  #save({ times, fails, ms }: Extract<Program, { op: "save" }>): Promise<unknown> {
    const { outside } = this.#build;
    const { id } = this.#ctx.run;
    const work = async (info: StepInfo) => {
      outside.began(id, info);
      try {
        for (let n = outside.resumed(id, info) + 1; n <= times; n++) {
          if (ms > 0) await outside.pause(ms);
          await info.save({ key: info.key, n } satisfies SavedPart);
          outside.saved(id, info, n);
          if (info.attempt <= fails) throw new Error(`attempt ${info.attempt} fails`);
        }
      } finally {
        outside.ended(info);
      }
      return `saved ${times}`;
    };
    return this.#ctx.step("save", work, { retry: RETRY });
  }

  #ail(): string {
    if (!this.#build.outside.isMended()) throw new Error(ILL);
    return "well";
  }

  async #wait(signal: string, timeoutMs: number | null): Promise<unknown> {
    if (timeoutMs === null) return this.#ctx.waitFor(signal);
    return this.#ctx.waitFor(signal, { timeout: timeoutMs, default: "timeout" });
  }

  readonly #interrupted = (error: unknown): string => {
    if (!hasCode(error, "step_interrupted")) throw error;
    this.#build.outside.sometimes("a step that may begin once was interrupted");
    return "interrupted";
  };
}

type Child = Extract<Program, { op: "call" | "spawn" }>;

function childInput({ of, fails, budget }: Child): ProgramInput {
  return { program: of, rounds: 1, done: [], fails, ...(budget !== undefined && { budget }) };
}

function budgetOf({ budget }: Pick<Child, "budget">) {
  return budget === undefined ? {} : { budget: limitsOf(budget) };
}

/** As engines are told of a budget. */
export function limitsOf({ usd, calls, onExceeded }: SpendingLimit): BudgetOptions {
  return { usd, calls, onExceeded };
}

/** Whether a child may fail: it is meant to, or does things outside. */
function mayFail({ of, fails }: Child): boolean {
  return fails || deedsOf(of).length > 0;
}

function caughtFrom(child: Child): (error: unknown) => string {
  return (error) => {
    const isExpected = deedsOf(child.of).length > 0 || (child.fails && isMeant((error as Error).cause));
    if (isExpected && hasCode(error, "child_failed")) return "a child failed";
    throw error;
  };
}

/** All that a run of this program does outside itself, without its children. */
function deedsOf(node: Program): readonly DeedProgram[] {
  if (isDeed(node)) return [node];
  switch (node.op) {
    case "seq":
    case "all":
    case "race":
    case "any":
      return node.of.flatMap(deedsOf);
    case "map":
      return deedsOf(node.of);
    case "patch":
      return [...deedsOf(node.before), ...deedsOf(node.after)];
    default:
      return [];
  }
}

/** Whether a run of this program, or one that it calls, acts outside, asks or spends. */
export function actsOutside(program: Program): boolean {
  return hasOp(program, ["deal", "ask", "spend", "stop"]);
}

function hasOp(node: Program, ops: readonly Program["op"][]): boolean {
  if (ops.includes(node.op)) return true;
  const inner = "of" in node ? [node.of].flat() : node.op === "patch" ? [node.before, node.after] : [];
  return inner.some((one) => hasOp(one, ops));
}

/** Whether a run with this input may end with that error. */
export function isAllowedFailure({ program, fails }: ProgramInput, error: unknown): boolean {
  const deeds = deedsOf(program);
  if (isMeant(error)) return fails || deeds.some(({ op }) => op === "stop");
  if (isIll(error)) return hasOp(program, ["ail"]);
  if (hasCode(error, "compensation_incomplete")) return deeds.length > 0;
  return deeds.flatMap(failuresOf).some((code) => hasCode(error, code));
}

function fail(): never {
  throw new Error("fails for good");
}

/** A cancelled run must stop, whatever its steps would have become. */
function unlessStopped(value: string): (error: unknown) => string {
  return (error) => {
    if (hasCode(error, "cancelled") || hasCode(error, "deadline_exceeded")) throw error;
    return value;
  };
}

/** Whether a run with this input may end with that output. */
export function isAllowedResult({ program, rounds, fails }: ProgramInput, output: unknown): boolean {
  if (fails) return false;
  return Array.isArray(output) && output.length === rounds && output.every((one) => isAllowed(program, one));
}

function isAllowed(node: Program, value: unknown): boolean {
  switch (node.op) {
    case "add":
      return value === node.by;
    case "flaky":
      return value === `after ${node.fails}`;
    case "broken":
      return value === "caught";
    case "throw":
      return false;
    case "ail":
      return value === "well";
    case "once":
      return value === "once" || value === "interrupted";
    case "late":
      return value === "late" || value === "in time";
    case "save":
      return value === `saved ${node.times}`;
    case "sleep":
      return value === "slept";
    case "wait":
      return isSignalOf(node.signal, value) || (node.timeoutMs !== null && value === "timeout");
    case "set":
      return value === node.value;
    case "seq":
    case "all":
      return isTuple(value, node.of.length) && node.of.every((one, i) => isAllowed(one, value[i]));
    case "race":
    case "any":
      return node.of.some((one) => isAllowed(one, value));
    case "map":
      return isTuple(value, node.items) && value.every((one) => isAllowed(node.of, one));
    case "call":
      return (mayFail(node) && value === "a child failed") || isAllowedResult(childInput(node), value);
    case "spawn":
      return value === "spawned";
    case "patch":
      return isAllowed(node.before, value) || isAllowed(node.after, value);
    case "deal":
    case "ask":
    case "spend":
    case "stop":
      return isAllowedDeed(node, value);
  }
}

function isTuple(value: unknown, length: number): value is unknown[] {
  return Array.isArray(value) && value.length === length;
}

/** Payloads name their signal, so that one that reached the wrong wait is seen. */
export function signalPayload(signal: string, n: number): string {
  return `${signal} ${n}`;
}

function isSignalOf(signal: string, value: unknown): boolean {
  return typeof value === "string" && value.startsWith(`${signal} `);
}

/** How many waits for each signal a program can open at most: so many are sent, and none waits in vain. */
export function waitsOf(node: Program, times = 1, waits: Map<string, number> = new Map()): Map<string, number> {
  switch (node.op) {
    case "wait":
      waits.set(node.signal, (waits.get(node.signal) ?? 0) + times);
      break;
    case "map":
      waitsOf(node.of, times * node.items, waits);
      break;
    case "patch":
      for (const one of [node.before, node.after]) waitsOf(one, times, waits);
      break;
    case "seq":
    case "all":
    case "race":
    case "any":
      for (const one of node.of) waitsOf(one, times, waits);
      break;
    // Nobody knows a child's id, so nobody sends to it.
    default:
  }
  return waits;
}
