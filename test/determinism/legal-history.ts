// The reference model: which journals are legal histories of a program
// It shares nothing with the engine but the interpreter of programs, the key rules of `map` and the codec, and is written to be obviously right:
// outcomes are handed to the body one at a time in journal order, and everything it does until it is quiet belongs to that turn (P2).
//
//   H1. The first entry is `run.started`; positions are dense (I3).
//   H2. The calls of a turn are recorded after its outcome, in the order of issue, with kind, key and digest as issued (P3).
//   H3. An outcome belongs to a call that is open, fits its kind, and comes only when every call of the turn before it is recorded:
//       only the last recorded turn may be incomplete.
//   H4. When the body has ended, nothing follows but the end, and the end says what the body returned or threw (I5).
//   H5. A payload has the shape that its type asks for. A due time is taken as recorded; only a strict reading computes it again, from the
//       time at which its call was recorded (B44).
//   H6. Marks are passed over. Notes count only in a strict reading, where they stand exactly where the body made them (P9).
import { AsyncLocalStorage } from "node:async_hooks";
import { decode, encode } from "../../src/base/codec.ts";
import { seededRandom } from "../../src/base/random.ts";
import { type Entry, entryKind, type RunStarted, type StepFailed, type StepStarted } from "../../src/core/journal.ts";
import { mapItems } from "../../src/core/map-items.ts";
import { nodeHost } from "../../src/worker/node-host.ts";
import { type Body, interpret, type Node, type World } from "./program.ts";

export type Reading =
  | { readonly isLegal: true; readonly end: BodyEnd | null }
  | { readonly isLegal: false; readonly seq: number; readonly why: string };

export type BodyEnd =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: { readonly name: string; readonly message: string } };

/** What the body does in a turn, in order. */
interface Deed {
  readonly type: string;
  readonly key: string | null;
  readonly payload: unknown;
  readonly call: OpenCall | null;
}

interface OpenCall {
  readonly type: string;
  readonly key: string;
  readonly due: number | null;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface Scope {
  readonly prefix: string;
  readonly uses: Map<string, number>;
}

class Illegal extends Error {
  readonly seq: number;

  constructor(entry: Entry, why: string) {
    super(why);
    this.seq = entry.seq;
  }
}

// One for all readers: every instance makes every promise of the process dearer.
const scopes = new AsyncLocalStorage<Scope>();

// Captured at load, before an engine wraps it.
const { setImmediate: later } = globalThis;
const macrotask = (fn: () => void = () => {}) =>
  new Promise<void>((resolve, reject) => {
    later(() => {
      try {
        resolve(fn());
      } catch (error) {
        reject(error);
      }
    });
  });

/** Reads a journal as a history of `program`. `strict` also holds notes to their place. */
export async function readHistory(
  program: Node,
  journal: readonly Entry[],
  { strict }: { strict: boolean },
): Promise<Reading> {
  const reader = new Reader(program, strict);
  try {
    for (const [position, entry] of journal.entries()) {
      if (entry.seq !== position) throw new Illegal(entry, `position ${entry.seq} instead of ${position}`);
      await reader.read(entry);
    }
    return { isLegal: true, end: reader.end };
  } catch (error) {
    if (error instanceof Illegal) return { isLegal: false, seq: error.seq, why: error.message };
    throw error;
  }
}

class Reader {
  readonly #program: Node;
  readonly #strict: boolean;
  readonly #root: Scope = { prefix: "", uses: new Map() };
  readonly #open = new Map<string, OpenCall>();
  #deeds: Deed[] = [];
  #now = 0;
  #isOver = false;
  #foreign = 0;
  #random: () => number = () => 0;
  end: BodyEnd | null = null;

  constructor(program: Node, strict: boolean) {
    this.#program = program;
    this.#strict = strict;
  }

  async read(entry: Entry): Promise<void> {
    if (this.#isOver) throw new Illegal(entry, "something follows the end");
    if (!isShaped(entry)) throw new Illegal(entry, `its payload is none of ${entry.type}`);
    switch (entryKind(entry)) {
      case "call":
        return this.#readCall(entry);
      case "outcome":
        return this.#readOutcome(entry);
      case "note":
        return this.#strict ? this.#readNote(entry) : undefined;
      case "end":
        return this.#readEnd(entry);
      case "mark":
        return this.#readMark(entry);
    }
  }

  #readCall(entry: Entry): void {
    const deed = this.#nextDeed();
    if (deed === undefined) throw new Illegal(entry, `${entry.type} ${entry.key} was not issued`);
    if (deed.call === null || !isSameCall(entry, deed, this.#strict))
      throw new Illegal(entry, `${deed.type} ${deed.key} was issued instead of ${entry.type} ${entry.key}`);
    const due = (entry.payload as { due?: number | null } | null)?.due ?? null;
    this.#open.set(`${deed.type} ${deed.key}`, { ...deed.call, due });
  }

  #readNote(entry: Entry): void {
    const deed = this.#nextDeed();
    const isSame =
      deed?.type === entry.type && deed.key === entry.key && encode(deed.payload) === encode(entry.payload);
    if (!isSame)
      throw new Illegal(entry, `${entry.type} ${entry.key} stands where the body did ${deed?.type} ${deed?.key}`);
  }

  /** A mark belongs to a step that is open; only a strict reading looks. */
  #readMark(entry: Entry): void {
    const isAboutStep = entry.type === "step.started" || entry.type === "step.failed";
    if (this.#strict && isAboutStep && !this.#open.has(`step.started ${entry.key}`))
      throw new Illegal(entry, `the step of mark ${entry.type} ${entry.key} is not open`);
  }

  #nextDeed(): Deed | undefined {
    if (!this.#strict) this.#deeds = this.#deeds.filter((deed) => deed.call !== null);
    return this.#deeds.shift();
  }

  #assertTurnComplete(entry: Entry): void {
    const missing = this.#nextDeed();
    if (missing !== undefined)
      throw new Illegal(entry, `${missing.type} ${missing.key} was issued before and is not recorded`);
  }

  async #readOutcome(entry: Entry): Promise<void> {
    this.#assertTurnComplete(entry);
    if (this.end !== null) throw new Illegal(entry, "the body has ended before it");
    if ((entry.type === "run.started") !== (entry.seq === 0)) throw new Illegal(entry, "a run starts once");
    this.#now = entry.at;
    // From a macrotask, as the engine does: ticks and microtasks would run in another order after a microtask.
    await macrotask(() => {
      if (entry.type === "run.started") this.#startBody(entry.payload as RunStarted);
      else this.#settle(entry);
    });
    do await macrotask();
    while (this.#foreign > 0);
  }

  #startBody({ seed }: RunStarted): void {
    const chance = seededRandom(seed);
    this.#random = () => chance.next();
    // No function around it: the engine has none either, and each would let the end come later.
    interpret(this.#program, this.#context(), this.#world()).then(
      (value) => {
        this.end = { ok: true, value: decode(encode(value)) };
      },
      (error: Error) => {
        this.end = { ok: false, error: { name: error.name, message: error.message } };
      },
    );
  }

  #settle(entry: Entry): void {
    const call = this.#callOf(entry);
    if (call === undefined) throw new Illegal(entry, `${entry.type} ${entry.key} has no open call`);
    this.#open.delete(`${call.type} ${call.key}`);
    if (this.#strict && call.due !== null && entry.type === "timer.fired" && entry.at < call.due)
      throw new Illegal(entry, `${entry.key} fired before its time`);
    switch (entry.type) {
      case "step.failed":
        return call.reject((entry.payload as StepFailed).error);
      case "signal.received":
        return call.resolve((entry.payload as { payload: unknown }).payload);
      case "timer.fired":
        return call.resolve(entry.payload === null ? undefined : "timeout");
      default:
        return call.resolve(entry.payload);
    }
  }

  #callOf(entry: Entry): OpenCall | undefined {
    switch (entry.type) {
      case "step.completed":
      case "step.failed":
        return this.#open.get(`step.started ${entry.key}`);
      case "signal.received":
        return this.#open.get(`signal.awaited ${entry.key}`);
      case "timer.fired":
        return this.#open.get(`${entry.payload === null ? "timer.set" : "signal.awaited"} ${entry.key}`);
      default:
        return undefined;
    }
  }

  #readEnd(entry: Entry): void {
    this.#assertTurnComplete(entry);
    const { end } = this;
    if (end === null) throw new Illegal(entry, "the body has not ended");
    this.#isOver = true;
    const { error } = (entry.payload ?? {}) as { error?: Error };
    const recorded =
      entry.type === "run.succeeded"
        ? { ok: true, value: entry.payload }
        : { ok: false, error: { name: error?.name, message: error?.message } };
    if (encode(recorded) !== encode(end))
      throw new Illegal(entry, `it says ${encode(recorded)}, the body ended with ${encode(end)}`);
  }

  // What the body sees

  #context(): Body {
    return {
      step: ((...args: unknown[]) => this.#step(args)) as Body["step"],
      sleep: async (ms) => {
        await this.#issue("timer.set", this.#key("timer.set", "sleep"), { after: Number(ms) });
      },
      waitFor: ((name: string, options: { timeout?: number } = {}) => {
        return this.#issue("signal.awaited", this.#key("signal.awaited", name), { after: options.timeout ?? null });
      }) as Body["waitFor"],
      map: ((items: unknown[], fn: (item: unknown, index: number) => Promise<unknown>, options = {}) => {
        const scope = this.#scope();
        const prefix = `${scope.prefix}${nth(scope, "map", "map")}/`;
        const run = (item: unknown, index: number) =>
          scopes.run({ prefix: `${prefix}${index}/`, uses: new Map() }, async () => fn(item, index));
        return mapItems(items, run, options);
      }) as Body["map"],
      now: () => this.#now,
      random: () => this.#random(),
      set: (key, value) => this.#say("state.patched", key, { value }),
      note: (text) => this.#say("note", null, { text }),
      cost: (amounts) => this.#say("cost", null, amounts),
    };
  }

  #world(): World {
    return {
      work: () => () => undefined,
      apply: () => undefined,
      // In sequential code nothing else can happen meanwhile: it belongs to the turn.
      foreign: async () => {
        this.#foreign++;
        await macrotask();
        this.#foreign--;
      },
      abandoned: (promise) => void promise.catch(() => {}),
    };
  }

  #step(args: readonly unknown[]): Promise<unknown> {
    const [first, ...rest] = args;
    if (typeof first === "string") return this.#issue("step.started", this.#key("step.started", first), null);
    const key = this.#key("step.started", (first as { name: string }).name);
    return this.#issue("step.started", key, { digest: nodeHost.digest(encode(rest)) });
  }

  #issue(type: string, key: string, payload: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      // Once the body has ended nothing joins the journal (P12).
      if (this.end === null) this.#deeds.push({ type, key, payload, call: { type, key, due: null, resolve, reject } });
    });
  }

  #say(type: string, key: string | null, payload: unknown): void {
    if (this.end === null) this.#deeds.push({ type, key, payload, call: null });
  }

  #scope(): Scope {
    return scopes.getStore() ?? this.#root;
  }

  #key(type: string, name: string): string {
    const scope = this.#scope();
    return scope.prefix + nth(scope, type, name);
  }
}

function nth(scope: Scope, type: string, name: string): string {
  const n = (scope.uses.get(`${type} ${name}`) ?? 0) + 1;
  scope.uses.set(`${type} ${name}`, n);
  return n === 1 ? name : `${name}#${n}`;
}

function isSameCall(entry: Entry, deed: Deed, strict: boolean): boolean {
  if (entry.type !== deed.type || entry.key !== deed.key) return false;
  if (entry.type === "step.started") {
    const issued = (deed.payload as { digest: string } | null)?.digest ?? null;
    return ((entry.payload as StepStarted)?.digest ?? null) === issued;
  }
  if (!strict) return true;
  // The driver's clock never goes back, so an entry's time is the store's time when it was issued.
  const { after } = deed.payload as { after: number | null };
  return encode(entry.payload) === encode({ due: after === null ? null : entry.at + after });
}

function isShaped({ type, payload }: Entry): boolean {
  const fields = typeof payload === "object" && payload !== null ? (payload as Record<string, unknown>) : null;
  const isTime = (value: unknown) => typeof value === "number";
  switch (type) {
    case "step.failed":
      return fields !== null && isTime(fields["attempt"]) && (fields["retryAt"] === null || isTime(fields["retryAt"]));
    case "timer.set":
      return fields !== null && isTime(fields["due"]);
    case "signal.awaited":
      return fields !== null && (fields["due"] === null || isTime(fields["due"]));
    case "signal.received":
      return fields !== null && typeof fields["id"] === "string";
    default:
      return true;
  }
}
