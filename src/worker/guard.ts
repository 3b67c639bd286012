// The determinism guard
// A body that reads the clock, rolls dice, sets timers or fetches takes another way in replay. While an engine works in this process the
// globals that do so are wrapped; the async context tells a body from a step, and everything else passes through untouched.
import { PawlError } from "../base/errors.ts";
import { callSite } from "../core/call-site.ts";
import type { Log } from "../core/context.ts";
import type { Frame } from "../core/host.ts";
import { nodeHost } from "./node-host.ts";

/** What a body uses in place of what is not its own. */
export const INSTEAD: Readonly<Record<string, string>> = {
  "Date.now()": "ctx.now()",
  "new Date()": "new Date(ctx.now())",
  "Math.random()": "ctx.random()",
  "crypto.randomUUID()": "ctx.uuid()",
  "setTimeout()": "ctx.sleep()",
  "setInterval()": "ctx.sleep() in a loop",
  "setImmediate()": "nothing, or a ctx.step",
  "fetch()": "ctx.step(name, () => fetch(…))",
};

let users = 0;
let restore: () => void = () => {};
let log: Log | null = null;
const told = new Set<string>();

/** Installs the guard for as long as somebody uses it; the returned function gives it up. Without a log, warnings go where they went before. */
export function installGuard(to: Log | null): () => void {
  log = to ?? log;
  if (users++ === 0) restore = wrapGlobals();
  let isInstalled = true;
  return () => {
    if (!isInstalled) return;
    isInstalled = false;
    if (--users === 0) restore();
  };
}

function hazard(what: string): void {
  const frame = nodeHost.frame();
  if (frame === undefined || frame.where !== "body" || frame.guard === "off") return;
  const site = callSite();
  if (frame.guard === "error")
    throw new PawlError("determinism_hazard", explain(frame, what, site), { fields: { run: frame.run, what, site } });
  if (told.has(`${what} ${site}`)) return;
  told.add(`${what} ${site}`);
  const message = explain(frame, what, site);
  nodeHost.enter(undefined, () => log?.warn(message, { run: frame.run, what, site }));
}

function explain(frame: Frame, what: string, site: string): string {
  return `The workflow body of run ${frame.run} calls ${what} at ${site}: in replay it gives another value. Use ${INSTEAD[what]}, or move it into a ctx.step. (\`guard: "off"\` silences this.)`;
}

function wrapGlobals(): () => void {
  const { Date: RealDate, setTimeout, setInterval, setImmediate, fetch } = globalThis;
  const { random } = Math;
  const { now } = RealDate;
  const { randomUUID } = globalThis.crypto;

  // A subclass would change what `Date.prototype.constructor` and existing instances say; a proxy changes nothing but the call.
  globalThis.Date = new Proxy(RealDate, {
    construct(target, args, newTarget) {
      if (args.length === 0) hazard("new Date()");
      return Reflect.construct(target, args, newTarget) as object;
    },
    apply(target, self, args) {
      hazard("new Date()");
      return Reflect.apply(target, self, args);
    },
  });
  RealDate.now = guarded("Date.now()", now);
  Math.random = guarded("Math.random()", random);
  globalThis.crypto.randomUUID = guarded("crypto.randomUUID()", randomUUID);
  globalThis.setTimeout = guarded("setTimeout()", setTimeout);
  globalThis.setInterval = guarded("setInterval()", setInterval);
  globalThis.setImmediate = guarded("setImmediate()", setImmediate);
  globalThis.fetch = guarded("fetch()", fetch);

  return () => {
    RealDate.now = now;
    Math.random = random;
    globalThis.crypto.randomUUID = randomUUID;
    Object.assign(globalThis, { Date: RealDate, setTimeout, setInterval, setImmediate, fetch });
  };
}

/** Keeps the function's own properties, such as setTimeout's promisified form. */
function guarded<F extends (...args: never[]) => unknown>(what: string, fn: F): F {
  return new Proxy(fn, {
    apply(target, self, args) {
      hazard(what);
      return Reflect.apply(target, self, args) as unknown;
    },
  });
}
