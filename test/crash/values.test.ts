// Every value of the fuzz list through every door of a run, on every store. It is the same after a crash, or refused at the call with the path
// to what cannot be kept.

import { inspect, isDeepStrictEqual } from "node:util";
import { describe, expect, it, vi } from "vitest";
import { type Context, type Entry, type Pawl, workflow } from "../../src/index.ts";
import { gate, openWorld, STORES, type StoreKind, type World } from "../behaviour/harness.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 600_000 });

const MIB = 2 ** 20;

class PaymentError extends Error {
  readonly code = "card_declined";
}

class Point {
  readonly x = 1;
}

const shared = { at: new Date(0) };

/** Megabytes at every door are for one store: the others keep half of one as well, and take no other way for more. */
const LARGEST = "1 MiB and one byte around it";

const kept: Record<string, unknown> = {
  undefined: undefined,
  "undefined inside": { a: undefined, b: [undefined, 1] },
  null: null,
  "special numbers": [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, 0],
  "large numbers": [2 ** 53 - 1, 2 ** 53, 2 ** 53 + 1, Number.MAX_VALUE, Number.MIN_VALUE],
  BigInt: [0n, -1n, 2n ** 200n],
  Date: new Date(1_700_000_000_123),
  "invalid Date": new Date(Number.NaN),
  "Date of the year 275760": new Date(8_640_000_000_000_000),
  Map: new Map<unknown, unknown>([
    ["a", 1],
    [{ key: 1 }, new Set([1, "2"])],
  ]),
  Set: new Set<unknown>([1, new Map([[1, 2]]), undefined]),
  RegExp: /a+b/giu,
  URL: new URL("https://example.com/a?b=c#d"),
  "typed arrays": [new Uint8Array([0, 255]), new Float64Array([1.5, Number.NaN]), new BigInt64Array([-1n])],
  ArrayBuffer: new Uint8Array([1, 2, 3]).buffer,
  Buffer: Buffer.from("bytes"),
  Error: new Error("plain"),
  "Error with cause and code": Object.assign(new TypeError("outer", { cause: new RangeError("inner") }), {
    code: "E_X",
  }),
  "Error of a class of its own": new PaymentError("declined"),
  AggregateError: new AggregateError([new Error("one"), new Error("two")], "both"),
  "shared reference": [shared, shared],
  "sparse array": Object.assign([1, 2, 3, 4], { length: 4 }).concat(Object.assign(new Array(3), { 2: 5 })),
  "key __proto__": JSON.parse(
    '{"__proto__": {"isAdmin": true}, "constructor": {"prototype": 1}, "toJSON": "x", "": 0}',
  ),
  "keys that look like tags": { $date: "no", $: { $map: [] }, $undefined: true },
  "lone surrogates": ["\ud800", "a\udc00b", { "\udfff": 1 }],
  "NUL, separators, emoji, right to left": ["\0", "a\u0000b", "\u2028\u2029", "👩‍👩‍👧", "שלום \u202e", "\ufeffBOM"],
  "SQL and HTML": ["'; drop table runs; --", "<script>alert(1)</script>", "%00", "../../etc"],
  "a key of half a megabyte": { ["k".repeat(MIB / 2)]: 1 },
  [LARGEST]: ["x".repeat(MIB - 1), "x".repeat(MIB), "x".repeat(MIB + 1)],
  "depth 60": nested(60),
  "a Proxy that behaves": new Proxy({ a: [1, new Date(0)] }, {}),
};

function keptOn(store: StoreKind): [name: string, value: unknown][] {
  return Object.entries(kept).filter(([name]) => store === "sqlite" || name !== LARGEST);
}

const circular: Record<string, unknown> = { a: {} };
(circular["a"] as Record<string, unknown>)["b"] = circular;
const toItself = { toJSON: () => toItself };

/** Each stands at `deep[1].bad` of what is passed. */
const refused: Record<string, [value: unknown, code: "not_serializable" | "too_large"]> = {
  function: [() => 1, "not_serializable"],
  symbol: [Symbol("s"), "not_serializable"],
  "class instance": [new Point(), "not_serializable"],
  promise: [Promise.resolve(1), "not_serializable"],
  WeakMap: [new WeakMap(), "not_serializable"],
  "getter that throws": [
    Object.defineProperty({}, "x", {
      enumerable: true,
      get() {
        throw new Error("no");
      },
    }),
    "not_serializable",
  ],
  "a Proxy that throws": [new Proxy({ a: 1 }, { get: refuse }), "not_serializable"],
  "a Proxy that lists nothing": [new Proxy({ a: 1 }, { ownKeys: refuse }), "not_serializable"],
  "a revoked Proxy": [revoked(), "not_serializable"],
  circular: [circular, "not_serializable"],
  "toJSON that returns itself": [toItself, "not_serializable"],
  "depth 10,000": [nested(10_000), "not_serializable"],
  "array of 1e8 holes": [new Array(1e8), "not_serializable"],
  "64 MiB of text": ["x".repeat(64 * MIB), "too_large"],
};

function refuse(): never {
  throw new Error("no");
}

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = { down: value };
  return value;
}

/** What is promised of values: errors keep name, message, code, cause and errors, not their class or stack; a Buffer is bytes. */
function plain(value: unknown): unknown {
  if (value instanceof Error) {
    const { message, cause, errors, code } = value as AggregateError & { code?: unknown };
    const name = value.name === "Error" ? value.constructor.name : value.name;
    return { error: name, message, code, cause: plain(cause), errors: errors?.map(plain) };
  }
  if (value instanceof Date) return { date: value.getTime() };
  if (Buffer.isBuffer(value)) return new Uint8Array(value);
  if (Array.isArray(value)) return value.map(plain);
  return value;
}

function isSame(actual: unknown, expected: unknown): boolean {
  const [a, b] = [plain(actual), plain(expected)];
  return isDeepStrictEqual(a, b) && inspect(a, { depth: 4 }) === inspect(b, { depth: 4 });
}

let isFirstLife = true;

function once<T>(value: T): T {
  if (isFirstLife) return value;
  throw new Error("a recorded step ran again");
}

function argument(value: unknown): unknown {
  return once(value);
}

function thrownBy(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch((thrown: unknown) => thrown);
}

const echo = workflow("echo", async (_ctx, input: unknown) => input);

const doors = workflow("doors", async (ctx, { name }: { name: string; value: unknown }) => {
  const value = kept[name];
  ctx.set("state", value);
  const throwing = (what: unknown) => () => {
    once(1);
    throw what;
  };
  const seen = {
    "the result of a step": await ctx.step("result", () => once(value)),
    "an argument of a step": await ctx.step(argument, value),
    "an error": ((await thrownBy(ctx.step("error", throwing({ thrown: value })))) as { thrown: unknown }).thrown,
    "what is thrown": await thrownBy(ctx.step("thrown", throwing(value), { retry: false })),
    "a child's input and output": await ctx.call(echo, value),
    "run state": ctx.get("state"),
  };
  ctx.progress(value);
  await ctx.step("after", () => once(1));
  return { ...seen, "a signal": await ctx.waitFor("value") };
});

const throwing = workflow("throwing", async (ctx, name: string) => {
  await ctx.waitFor("value");
  throw kept[name];
});

const generations = workflow("generations", async (ctx, input: { name: string; value?: unknown }) => {
  if (!("value" in input)) return ctx.continueAs({ name: input.name, value: kept[input.name] });
  await ctx.waitFor("value");
  return input.value;
});

const asking = workflow("asking", async (ctx) => ctx.step("s", () => gate().passed, { recovery: "ask" }));

const all = [doors, echo, throwing, generations, asking];

async function startAll(pawl: Pawl, name: string, value: unknown): Promise<void> {
  await pawl.start(doors, { name, value }, { id: `doors ${name}` });
  await pawl.start(throwing, name, { id: `throwing ${name}` });
  await pawl.start(generations, { name }, { id: `generations ${name}` });
  await pawl.start(asking, undefined, { id: `asking ${name}` });
}

/** What came out of each door. */
async function seenOf(pawl: Pawl, name: string, value: unknown): Promise<Record<string, unknown>> {
  for (const flow of ["doors", "throwing", "generations"]) await pawl.signal(`${flow} ${name}`, "value", value);
  await pawl.resolve(`asking ${name}`, { choice: "complete", value });
  const run = pawl.get<Record<string, unknown>>(`doors ${name}`);
  const inBody = await run.result();
  const [started] = await run.journal();
  const { data, progress } = await run.status();
  return {
    ...inBody,
    "the input": (started as Entry<{ input: { value: unknown } }>).payload.input.value,
    "run state, read from outside": data["state"],
    progress,
    "what a body throws": await thrownBy(pawl.get(`throwing ${name}`).result()),
    "the next generation's input": await pawl.get(`generations ${name}`).result(),
    "a decision": await pawl.get(`asking ${name}`).result(),
  };
}

describe.each(STORES)("values on %s", (store) => {
  it("I21 B64 B66 B67 Q8 every value that can be kept is the same after a crash, at every door", async () => {
    isFirstLife = true;
    const world = await openWorld(store);
    const first = await world.open(all);
    for (const [name, value] of keptOn(store)) await startAll(first, name, value);
    await world.settle();
    isFirstLife = false;
    const second = await world.restart(all);
    await world.settle();
    const wrong: string[] = [];
    for (const [name, value] of keptOn(store)) {
      for (const [door, actual] of Object.entries(await seenOf(second, name, value)))
        if (!isSame(actual, value)) wrong.push(`${name} as ${door}: ${inspect(actual).slice(0, 200)}`);
    }
    expect(wrong).toEqual([]);
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  it("B67 I21 live code sees what a replay will see: the value after the codec, never the one before it", async () => {
    const value = { list: [1], at: new Date(0) };
    const live = workflow("live", async (ctx) => {
      const result = await ctx.step("s", () => value);
      return { isSameObject: result === value, isEqual: isDeepStrictEqual(result, value) };
    });
    const world = await openWorld(store);
    expect(await (await world.open([live])).run(live)).toEqual({ isSameObject: false, isEqual: true });
  });

  it("I21 I20 B65 B66 every value that cannot be kept is refused at the call, with the path to it, and harms nothing", async () => {
    const world = await openWorld(store);
    const pawl = await world.open([...all, badDoors, badOutput]);
    const waiting = await pawl.start(throwing, "null", { id: "waiting" });
    for (const [name, [value, code]] of Object.entries(refused)) {
      const bad = { deep: [0, { bad: value }] };
      const path = code === "too_large" ? /./ : /deep\[1\]\.bad/;
      const told = (door: string, error: unknown) => {
        expect(error, `${name} as ${door}`).toBeInstanceOf(Error);
        expect(error, `${name} as ${door}`).toMatchObject({ code, message: expect.stringMatching(path) });
      };
      told("the input", await thrownBy(pawl.start(echo, bad)));
      told("a signal", await thrownBy(waiting.signal("value", bad)));
      told("the output", await thrownBy(pawl.run(badOutput, name)));
      const { error, ...seen } = await pawl.run(badDoors, name);
      for (const [door, refusal] of Object.entries(seen)) told(door, refusal);
      // An error that drags something along is recorded without it: never a second failure instead of the first.
      expect(error, name).toMatchObject({ message: "with baggage", code: "E_BAGGAGE" });
    }
    expect((await pawl.list({ workflow: "echo" })).runs.length).toBe(0);
    await expectNothingAskedTwice(world);
    await pawl.cancel("waiting");
  });
});

async function expectNothingAskedTwice(world: World): Promise<void> {
  await world.settle();
  expect(world.lines.filter(({ message }) => message.includes("again"))).toEqual([]);
}

function badOf(name: string): unknown {
  return { deep: [0, { bad: refused[name]?.[0] }] };
}

const badOutput = workflow("bad-output", async (_ctx, name: string) => badOf(name));

const badDoors = workflow("bad-doors", async (ctx: Context, name: string) => {
  const bad = badOf(name);
  const refusalOf = (call: () => unknown) => thrownBy((async () => call())());
  const withBaggage = () => {
    throw Object.assign(new Error("with baggage"), bad, { code: "E_BAGGAGE" });
  };
  return {
    "the result of a step": await refusalOf(() => ctx.step("result", () => bad)),
    "an argument of a step": await refusalOf(() => ctx.step(argument, bad)),
    "run state": await refusalOf(() => ctx.set("state", bad)),
    "a child's input": await refusalOf(() => ctx.call(echo, bad)),
    "a child's output": ((await refusalOf(() => ctx.call(badOutput, name))) as Error).cause,
    "the next generation's input": await refusalOf(() => ctx.continueAs(bad)),
    progress: await refusalOf(() => ctx.progress(bad)),
    "a heartbeat": await refusalOf(() => ctx.step("beat", ({ heartbeat }) => heartbeat(bad))),
    error: await thrownBy(ctx.step("error", withBaggage)),
  };
});
