// Hazards
// A body that reads the clock or rolls dice takes its own way in replay. While a workflow is explored, those globals give every engine of a
// history something else, so that what depends on them shows; the lines that read them are kept.
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { callSite } from "../../core/call-site.ts";
import { nodeHost } from "../../worker/node-host.ts";

/** What the body of an engine's run gets from the outside instead of what it would get. */
export interface BodyWorld {
  now(): number;
  random(): number;
  /** `Math.random()` was read at this line. */
  noted(what: string, line: string): void;
}

/** By pass: bodies of several engines run in one process. */
export type BodyWorlds = WeakMap<object, BodyWorld>;

/** Replaces the globals until the returned function is called. Code outside of the bodies in question sees no difference. */
export function watchBodies(worlds: BodyWorlds): () => void {
  const { Date: RealDate } = globalThis;
  const { now } = RealDate;
  const { random } = Math;
  const { randomUUID } = globalThis.crypto;
  // Most code imports this one by name.
  const { randomUUID: nodeUuid } = crypto;
  const read = <T>(what: string, usual: () => T, instead: (world: BodyWorld) => T): T => {
    const frame = nodeHost.frame();
    const world = frame?.where === "body" ? worlds.get(frame.pass) : undefined;
    if (world === undefined) return usual();
    world.noted(what, callSite());
    return instead(world);
  };
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) => {
      const given = args.length > 0 ? args : [read("new Date()", now, (world) => world.now())];
      return Reflect.construct(target, given, newTarget) as object;
    },
    apply: (target) => new target(read("Date()", now, (world) => world.now())).toString(),
  });
  RealDate.now = () => read("Date.now()", now, (world) => world.now());
  Math.random = () => read("Math.random()", random, (world) => world.random());
  const readUuid = (usual: () => Uuid) => read("crypto.randomUUID()", usual, (world) => uuidFrom(() => world.random()));
  globalThis.crypto.randomUUID = () => readUuid(() => randomUUID.call(globalThis.crypto));
  crypto.randomUUID = (options) => readUuid(() => nodeUuid(options));
  syncBuiltinESMExports();
  return () => {
    crypto.randomUUID = nodeUuid;
    syncBuiltinESMExports();
    RealDate.now = now;
    Math.random = random;
    globalThis.crypto.randomUUID = randomUUID;
    globalThis.Date = RealDate;
  };
}

type Uuid = ReturnType<typeof globalThis.crypto.randomUUID>;

function uuidFrom(random: () => number): Uuid {
  const hex = (digits: number) => Array.from({ length: digits }, () => Math.floor(random() * 16).toString(16)).join("");
  return `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`;
}
