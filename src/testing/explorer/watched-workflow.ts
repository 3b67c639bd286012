// Watched workflows
// The same workflow, whose body is seen calling the engine. That is how a body shows that it goes on although it was told that its run is
// cancelled; one that does so for ever is stopped, or it would take the process along.
import { callSite } from "../../core/call-site.ts";
import type { Context } from "../../core/context.ts";
import type { Workflow } from "../../core/workflow.ts";
import { nodeHost } from "../../worker/node-host.ts";
import { isCancelling } from "./frame-facts.ts";

/** A call that a body has made after it was told of the cancel. */
export interface LateCall {
  readonly run: string;
  /** `step "refund"` */
  readonly call: string;
  readonly line: string;
}

export type Workflows = readonly Workflow<never, unknown>[];

const CALLS: ReadonlySet<string | symbol> = new Set(["step", "sleep", "sleepUntil", "waitFor", "call", "spawn", "map"]);
/** A body that has called so often after the cancel will never stop. */
const ENDLESS = 100;

/** Wraps each workflow; children that a body calls by their original become the wrapped ones. */
export function watchedWorkflows(workflows: Workflows, late: (call: LateCall) => void): Workflows {
  const watched = new Map<unknown, Workflow<never, unknown>>();
  for (const one of workflows) {
    const { handler } = one.definition;
    const definition: Workflow["definition"] = {
      ...one.definition,
      handler: (ctx, input) => handler(watchedContext(ctx, watched, late), input),
    };
    watched.set(one, { ...one, definition });
  }
  return [...watched.values()];
}

function watchedContext(
  ctx: Context,
  watched: ReadonlyMap<unknown, Workflow<never, unknown>>,
  late: (call: LateCall) => void,
): Context {
  let lateCalls = 0;
  const target = ctx as unknown as Record<string | symbol, unknown>;
  const watchedCall =
    (name: string | symbol, call: (...args: readonly unknown[]) => unknown) =>
    (...args: readonly unknown[]): unknown => {
      const frame = nodeHost.frame();
      if (frame !== undefined && isCancelling(frame)) {
        if (lateCalls++ === 0) late({ run: frame.run, call: describe(String(name), args), line: callSite() });
        if (lateCalls > ENDLESS) return new Promise(() => {});
      }
      const given = name === "call" || name === "spawn" ? [watched.get(args[0]) ?? args[0], ...args.slice(1)] : args;
      return Reflect.apply(call, ctx, given);
    };
  // A body calls the same few thousands of times.
  const methods = new Map<string | symbol, unknown>();
  return new Proxy(ctx, {
    get(_, name) {
      const known = methods.get(name);
      if (known !== undefined) return known;
      const value = target[name];
      if (typeof value !== "function") return value;
      const call = value as (...args: readonly unknown[]) => unknown;
      const method = CALLS.has(name) ? watchedCall(name, call) : (call.bind(ctx) as unknown);
      methods.set(name, method);
      return method;
    },
  });
}

function describe(name: string, [first]: readonly unknown[]): string {
  const subject =
    typeof first === "string" ? first : ((first as { readonly name?: unknown } | null | undefined)?.name ?? null);
  return typeof subject === "string" ? `${name} "${subject}"` : name;
}
