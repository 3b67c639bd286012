import { AsyncLocalStorage } from "node:async_hooks";
import { hash } from "node:crypto";
import type { Frame, Host } from "../core/host.ts";

// Captured at load: the determinism guard replaces some of the globals later.
const { setImmediate: startImmediate } = globalThis;
const { nextTick } = process;

const context = new AsyncLocalStorage<Frame | undefined>();

/** The real machine. One for the whole process: a frame entered by one engine is seen by all. */
export const nodeHost: Host = {
  // Callbacks run outside any frame: what they log or call must not pass for a body's doing.
  immediate: (fn) => void startImmediate(context.getStore() === undefined ? fn : () => context.run(undefined, fn)),
  tick: (fn) => nextTick(fn),
  digest: (data) => hash("sha256", data, "base64url").slice(0, 22),
  enter: <T, A>(frame: Frame | undefined, fn: (arg: A) => T, arg?: A) => context.run(frame, fn, arg as A),
  frame: () => context.getStore(),
};
