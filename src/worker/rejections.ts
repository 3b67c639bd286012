// Unhandled rejections
// A body may start a step and look at it later, or never. What belongs to a run must not end the process, live or in replay, whoever else
// listens; everything else must behave as if nobody had looked (P11). A listener could not do that: it cannot keep an event from others.
import { nodeHost } from "./node-host.ts";

type Emit = (this: NodeJS.Process, event: string | symbol, ...args: unknown[]) => boolean;

let users = 0;
let restore: () => void = () => {};

/** Keeps the rejections of runs from ending the process, for as long as somebody uses it. */
export function shieldRejections(): () => void {
  if (users++ === 0) restore = shieldEmit();
  let isInstalled = true;
  return () => {
    if (!isInstalled) return;
    isInstalled = false;
    if (--users === 0) restore();
  };
}

function shieldEmit(): () => void {
  const target = process as unknown as { emit: Emit };
  const { emit } = target;
  let isOver = false;
  const shielded: Emit = function (event, ...args) {
    if (!isOver && event === "unhandledRejection" && nodeHost.frame() !== undefined) return true;
    return Reflect.apply(emit, this, [event, ...args]);
  };
  target.emit = shielded;
  return () => {
    isOver = true;
    // Whoever has wrapped it after us keeps working.
    if (target.emit === shielded) target.emit = emit;
  };
}
