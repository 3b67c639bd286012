import { nodeHost } from "../worker/node-host.ts";

/**
 * Runs functions of the SDK in the body without the determinism guard: `await unguarded(() => generateText({ … }))`. They read the clock and draw ids
 * for values that a durable model's record replaces, or that go to telemetry alone.
 */
export function unguarded<T>(fn: () => T): T {
  const frame = nodeHost.frame();
  return frame === undefined ? fn() : nodeHost.enter({ ...frame, guard: "off" }, fn);
}
