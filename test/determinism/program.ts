// Workflow programs as data
// One handler interprets them, so that thousands of bodies of different shape can be generated, shrunk and printed. The same interpreter runs
// on the engine and on the reference model; what differs comes in as a `World`.
import type { Context } from "../../src/core/context.ts";

export type Combinator = "all" | "race" | "any" | "settled";
export type Microtask = "nextTick" | "queueMicrotask" | "thenable" | "generator" | "await";
export type ForeignAwait = "setImmediate" | "setTimeout" | "readFile" | "messageChannel";

/** How a step's function ends: at once, in a microtask, or when the scheduler says so. */
export type Pace = "sync" | "async" | "scheduled";

export type Node =
  | { readonly op: "step"; readonly name: string; readonly value: number; readonly pace: Pace; readonly end: StepEnd }
  /** The form that records its arguments and their digest. */
  | { readonly op: "apply"; readonly value: number; readonly pace: Pace }
  | { readonly op: "sleep"; readonly ms: number }
  | { readonly op: "wait"; readonly name: string; readonly timeoutMs: number | null }
  | { readonly op: "set"; readonly key: string; readonly value: number }
  | { readonly op: "note" }
  | { readonly op: "cost" }
  | { readonly op: "draw" }
  | { readonly op: "micro"; readonly kind: Microtask }
  | { readonly op: "foreign"; readonly kind: ForeignAwait }
  | { readonly op: "seq"; readonly of: readonly Node[] }
  | { readonly op: "join"; readonly how: Combinator; readonly of: readonly Node[] }
  | { readonly op: "loop"; readonly times: number; readonly of: Node }
  | {
      readonly op: "map";
      readonly items: number;
      readonly concurrency: number;
      readonly partial: boolean;
      readonly of: Node;
    }
  /** Begins one thing, does another, and only then looks at the first. */
  | { readonly op: "later"; readonly first: Node; readonly second: Node }
  /** Takes a way that depends on the workflow's clock or chance. */
  | { readonly op: "branch"; readonly on: "now" | "random"; readonly yes: Node; readonly no: Node };

/** `retried`: fails once, then succeeds. `caught`: fails for good, and the body catches it. `thrown`: nobody does. */
export type StepEnd = "ok" | "retried" | "caught" | "thrown";

/** What a program needs that is not the context. */
export interface World {
  /** The function of a step. */
  work(value: number, pace: Pace, end: StepEnd): (info: { readonly key: string; readonly attempt: number }) => unknown;
  /** The function of a step with arguments. */
  apply(value: number, pace: Pace): unknown;
  foreign(kind: ForeignAwait): Promise<void>;
  /** Told of every promise that the body may never look at again. */
  abandoned(promise: Promise<unknown>): void;
}

export type Body = Pick<Context, "step" | "sleep" | "waitFor" | "map" | "now" | "random" | "set" | "note" | "cost">;

const RETRY = { max: 2, base: 40, factor: 1, jitter: false, on: "any" } as const;

/** Runs a program. What it returns tells the whole way it took. */
export async function interpret(node: Node, ctx: Body, world: World): Promise<unknown> {
  switch (node.op) {
    case "step":
      return runStep(node, ctx, world);
    case "apply":
      return ctx.step(
        function apply(value: number, pace: Pace) {
          return world.apply(value, pace);
        },
        node.value,
        node.pace,
      );
    case "sleep":
      await ctx.sleep(node.ms);
      return `slept until ${ctx.now()}`;
    case "wait":
      return ctx.waitFor(node.name, node.timeoutMs === null ? {} : { timeout: node.timeoutMs, default: "timeout" });
    case "set":
      return ctx.set(node.key, node.value);
    case "note":
      return ctx.note(`at ${ctx.now()}`);
    case "cost":
      return ctx.cost({ units: 1 });
    case "draw":
      return ctx.random();
    case "micro":
      return microtask(node.kind);
    case "foreign":
      return world.foreign(node.kind);
    case "seq":
      return inSequence(node.of, ctx, world);
    case "join":
      return join(node.how, node.of, ctx, world);
    case "loop": {
      const turns: unknown[] = [];
      for (let i = 0; i < node.times; i++) turns.push(await interpret(node.of, ctx, world));
      return turns;
    }
    case "map":
      return mapOver(node, ctx, world);
    case "later": {
      const first = interpret(node.first, ctx, world);
      world.abandoned(first);
      const second = await interpret(node.second, ctx, world);
      return [second, await first];
    }
    case "branch": {
      const isYes = node.on === "now" ? ctx.now() % 2 === 0 : ctx.random() < 0.5;
      return [isYes, await interpret(isYes ? node.yes : node.no, ctx, world)];
    }
  }
}

async function runStep(node: Extract<Node, { op: "step" }>, ctx: Body, world: World): Promise<unknown> {
  const options = node.end === "retried" ? { retry: RETRY } : { retry: false as const };
  const result = ctx.step(node.name, world.work(node.value, node.pace, node.end), options);
  if (node.end !== "caught") return result;
  try {
    return await result;
  } catch (error) {
    return `caught ${(error as Error).message}`;
  }
}

async function inSequence(nodes: readonly Node[], ctx: Body, world: World): Promise<unknown[]> {
  const results: unknown[] = [];
  for (const node of nodes) results.push(await interpret(node, ctx, world));
  return results;
}

async function join(how: Combinator, nodes: readonly Node[], ctx: Body, world: World): Promise<unknown> {
  const branches = nodes.map((node) => interpret(node, ctx, world));
  for (const branch of branches) world.abandoned(branch);
  switch (how) {
    case "all":
      return Promise.all(branches);
    case "race":
      return ["won", await Promise.race(branches), ctx.now()];
    case "any":
      return Promise.any(branches).catch((error: AggregateError) => `none of ${error.errors.length}`);
    case "settled":
      return (await Promise.allSettled(branches)).map((one) =>
        one.status === "fulfilled" ? one.value : `rejected ${(one.reason as Error).message}`,
      );
  }
}

async function mapOver(node: Extract<Node, { op: "map" }>, ctx: Body, world: World): Promise<unknown> {
  const items = Array.from({ length: node.items }, (_, i) => i);
  const work = async (item: number) => [item, await interpret(node.of, ctx, world)];
  const { concurrency } = node;
  if (!node.partial) return ctx.map(items, work, { concurrency });
  const settled = await ctx.map(items, work, { concurrency, partial: true });
  return settled.map((one) => (one.status === "fulfilled" ? one.value : `rejected ${(one.reason as Error).message}`));
}

/** Waits in ways that end within the turn. */
async function microtask(kind: Microtask): Promise<unknown> {
  switch (kind) {
    case "await":
      return await null;
    case "nextTick":
      return new Promise<void>((resolve) => process.nextTick(resolve));
    case "queueMicrotask":
      return new Promise<void>((resolve) => queueMicrotask(resolve));
    case "thenable":
      // biome-ignore lint/suspicious/noThenProperty: a thenable is what this is about.
      return await { then: (resolve: (value: string) => void) => resolve("thenable") };
    case "generator": {
      const seen: number[] = [];
      for await (const one of counted()) seen.push(one);
      return seen;
    }
  }
}

async function* counted(): AsyncGenerator<number, void, void> {
  yield 1;
  await null;
  yield 2;
}

/** An upper bound of the calls that a program can issue. */
export function sizeOf(node: Node): number {
  switch (node.op) {
    case "seq":
    case "join":
      return node.of.reduce((sum, one) => sum + sizeOf(one), 0);
    case "loop":
      return node.times * sizeOf(node.of);
    case "map":
      return node.items * sizeOf(node.of);
    case "later":
      return sizeOf(node.first) + sizeOf(node.second);
    case "branch":
      return Math.max(sizeOf(node.yes), sizeOf(node.no));
    case "step":
    case "apply":
    case "sleep":
    case "wait":
      return 1;
    default:
      return 0;
  }
}
