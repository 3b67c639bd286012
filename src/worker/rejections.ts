// Unhandled rejections
// A body may start a step and look at it later, or never. What belongs to a run must not end the process, live or in replay; everything
// else must behave as if nobody had listened (P11).
import { nodeHost } from "./node-host.ts";

let users = 0;

/** Keeps the rejections of runs from ending the process, for as long as somebody uses it. */
export function shieldRejections(): () => void {
  if (users++ === 0) process.prependListener("unhandledRejection", onUnhandled);
  let isInstalled = true;
  return () => {
    if (!isInstalled) return;
    isInstalled = false;
    if (--users === 0) process.off("unhandledRejection", onUnhandled);
  };
}

function onUnhandled(reason: unknown): void {
  if (nodeHost.frame() !== undefined) return;
  // With other listeners, they decide. Alone, Node would have thrown: so do we.
  if (process.listenerCount("unhandledRejection") > 1) return;
  throw reason;
}
