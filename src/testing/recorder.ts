// The recorder
// Stands for the outside world in a test: what a workflow does to it is written down, with where it came from. It knows the idempotency
// keys it has seen, as a payment provider does: asked again, it changes nothing.
import { inspect } from "node:util";
import { decode, encode } from "../base/codec.ts";
import { callSite } from "../core/call-site.ts";
import { nodeHost } from "../worker/node-host.ts";
import { isCancelling } from "./explorer/frame-facts.ts";
import { outsideFile } from "./outside-memory.ts";

/** One request as the outside world saw it. */
export interface Effect {
  readonly name: string;
  readonly details: unknown;
  /** The idempotency key that came with it; `null`: none. */
  readonly key: string | null;
  /** False: its key was known, so nothing happened. */
  readonly did: boolean;
  /** Where it was made: by a step, by the body of a workflow outside any step, or by no run at all. */
  readonly where: "step" | "body" | "elsewhere";
  readonly run: string | null;
  /** Key of the step that made it. */
  readonly step: string | null;
  /** The line that made it, if that was in a body. */
  readonly line: string | null;
  /** Whether the run was told before that it is cancelled. */
  readonly isAfterCancel: boolean;
}

/** A record of outside effects, for tests. */
export interface Recorder {
  /** Makes an effect; one of the same name and key that was made before changes nothing. */
  record(name: string, details?: unknown, key?: string): void;
  /** What has happened, in order: requests whose key was known are left out. */
  readonly effects: readonly Effect[];
  /** Every request, also those that changed nothing. */
  readonly requests: readonly Effect[];
  clear(): void;
}

/** Makes an empty record of outside effects: hand it to `crashEverywhere`, and have your fakes call `record`. */
export function recorder(): Recorder {
  return new RecordBook();
}

/** The recorder as the explorer sees it: it can be put back to where it was. */
export class RecordBook implements Recorder {
  readonly #memory = outsideFile<Effect>("effects");
  #requests: Effect[] = [];
  /** Those that were seen, by the name of their effect. */
  #keys = new Map<string, Set<string>>();
  #isRead = false;
  /** Told of each effect once it has happened, before whoever makes it goes on. */
  onEffect: ((effect: Effect) => void) | null = null;

  constructor() {
    this.restore(this.#memory?.items ?? []);
  }

  get requests(): readonly Effect[] {
    this.#isRead = true;
    return this.#requests;
  }

  /** Whether anybody has ever looked at what was recorded: what a run does next may depend on all of it. */
  get isRead(): boolean {
    return this.#isRead;
  }

  get effects(): readonly Effect[] {
    return this.requests.filter(({ did }) => did);
  }

  // No answer: a step that returned whether it was the first would give another result when it runs again.
  record(name: string, details?: unknown, key?: string): void {
    const did = key === undefined || this.#isNew(name, key);
    const effect = { name, details: copyOf(details), key: key ?? null, did, ...whereabouts() };
    this.#requests.push(effect);
    this.#memory?.add({ ...effect, details: storable(effect.details) });
    if (did) this.onEffect?.(effect);
  }

  clear(): void {
    this.#memory?.clear();
    this.restore([]);
  }

  get length(): number {
    return this.#requests.length;
  }

  /** Whether these requests would have left the same keys behind: then whatever is requested next is answered alike. */
  hasSameKeys(requests: readonly Effect[]): boolean {
    const isKeyed = ({ key, did }: Effect) => key !== null && did;
    const keyed = requests.filter(isKeyed);
    if (keyed.length !== this.#requests.filter(isKeyed).length) return false;
    return keyed.every(({ name, key }) => key !== null && this.#keys.get(name)?.has(key) === true);
  }

  /** What was recorded so far. The list only grows, so its length is enough. */
  save(): () => readonly Effect[] {
    const requests = this.#requests;
    const { length } = requests;
    return () => requests.slice(0, length);
  }

  restore(requests: readonly Effect[]): void {
    this.#requests = [...requests];
    this.#keys = new Map();
    for (const { name, key } of requests) if (key !== null) this.#isNew(name, key);
  }

  /** Whether this key was not seen before. It is now. */
  #isNew(name: string, key: string): boolean {
    const keys = this.#keys.get(name);
    if (keys === undefined) this.#keys.set(name, new Set([key]));
    else if (keys.has(key)) return false;
    else keys.add(key);
    return true;
  }
}

function whereabouts(): Pick<Effect, "where" | "run" | "step" | "line" | "isAfterCancel"> {
  const frame = nodeHost.frame();
  if (frame === undefined) return { where: "elsewhere", run: null, step: null, line: null, isAfterCancel: false };
  const { where, run, step } = frame;
  const line = where === "body" ? callSite() : null;
  return { where, run, step: step?.call.key ?? null, line, isAfterCancel: isCancelling(frame) };
}

/** Later changes of what was passed are no part of the record. */
function copyOf(details: unknown): unknown {
  if (isFlat(details)) return typeof details === "object" && details !== null ? { ...details } : details;
  try {
    return structuredClone(details);
  } catch {
    return details;
  }
}

/** Details as a file keeps them. What cannot be stored, as a function, is kept as people would see it. */
export function storable(details: unknown): unknown {
  try {
    return decode(encode(details));
  } catch {
    return inspect(details, { depth: null, sorted: true });
  }
}

/** Text, numbers and the like, or a plain object of them: most effects are no more, and need no deep copy or comparison. */
export function isFlat(details: unknown): boolean {
  if (typeof details !== "object" || details === null)
    return typeof details !== "function" && typeof details !== "symbol";
  if (Object.getPrototypeOf(details) !== Object.prototype) return false;
  for (const name in details) if (!isPlain((details as Record<string, unknown>)[name])) return false;
  return true;
}

function isPlain(value: unknown): boolean {
  return value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}
