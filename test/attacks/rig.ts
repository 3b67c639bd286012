// Engines on stores that misbehave: any method of the store may be replaced, and every engine is closed when its test ends.
import { onTestFinished } from "vitest";
import type { ManualClock } from "../../src/base/clock.ts";
import { PawlError } from "../../src/base/errors.ts";
import { Pawl } from "../../src/client/pawl.ts";
import type { PawlOptions } from "../../src/client/pawl-options.ts";
import type { Log } from "../../src/core/context.ts";
import type { Store } from "../../src/core/store.ts";
import type { Workflows } from "../behaviour/harness.ts";
import { database } from "../postgres-schemas.ts";

// Captured before any guard wraps it.
const { setImmediate: startImmediate } = globalThis;

export const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** An engine on `store` with some of its methods replaced. */
export async function openOn(
  store: Store,
  overrides: Partial<Store>,
  workflows: Workflows,
  options: PawlOptions = {},
): Promise<Pawl> {
  const own: Store = { ...store, open: async () => {}, close: async () => {}, ...overrides };
  const pawl = await Pawl.open(own, { workflows, logger: silent, handleSignals: false, ...options });
  onTestFinished(() => pawl.close({ drain: 1 }));
  return pawl;
}

/** Lets the event loop go round until nothing that needs no time is left. */
export async function rounds(n = 400): Promise<void> {
  for (let still = 0; still < n; still = database.pending > 0 ? 0 : still + 1)
    await (database.pending > 0 ? database.answered() : new Promise<void>((resolve) => startImmediate(resolve)));
}

/** Moves a clock second by second, and lets everything that falls due happen. */
export async function tick(clock: ManualClock, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    clock.advance(1000);
    await rounds(60);
  }
}

/** What a store says when it may or may not have done what it was asked. */
export function lost(): PawlError {
  return new PawlError("unknown_outcome", "The answer was lost.");
}

/** What a store says when it surely has done nothing. */
export function away(): PawlError {
  return new PawlError("storage_unavailable", "The store is away.");
}

/** A log that keeps its lines. */
export function noting(lines: string[]): Log {
  // What the engine tells of every run in passing has an event; what runs say has none.
  const note = (message: string, fields?: object) => void ("event" in (fields ?? {}) || lines.push(message));
  return { debug: note, info: note, warn: note, error: note };
}

/** What a promise has come to so far, without waiting for it. */
export async function stateOf(promise: Promise<unknown>): Promise<"pending" | "resolved" | "rejected"> {
  let state: "pending" | "resolved" | "rejected" = "pending";
  promise.then(
    () => (state = "resolved"),
    () => (state = "rejected"),
  );
  await rounds();
  return state;
}
