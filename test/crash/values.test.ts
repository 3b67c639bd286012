// Every value of the fuzz list through every door of a run: input, step result, thrown error, signal and state. It is the same after a
// restart, or refused at the call with the path to what cannot be kept.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect, isDeepStrictEqual } from "node:util";
import { afterAll, expect, it, vi } from "vitest";
import { type Entry, Pawl, workflow } from "../../src/index.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 60_000 });

const MIB = 2 ** 20;
const folder = mkdtempSync(join(tmpdir(), "pawl-values-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

class PaymentError extends Error {
  readonly code = "card_declined";
}

class Point {
  readonly x = 1;
}

const shared = { at: new Date(0) };

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
  "a key of 2 MB": { ["k".repeat(2 * MIB)]: 1 },
  "1 MiB and one byte around it": ["x".repeat(MIB - 1), "x".repeat(MIB), "x".repeat(MIB + 1)],
  "depth 60": nested(60),
};

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
  circular: [circular, "not_serializable"],
  "toJSON that returns itself": [toItself, "not_serializable"],
  "depth 10,000": [nested(10_000), "not_serializable"],
  "array of 1e8 holes": [new Array(1e8), "not_serializable"],
  "64 MiB of text": ["x".repeat(64 * MIB), "too_large"],
};

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

const doors = workflow("doors", async (ctx, { name }: { name: string; value: unknown }) => {
  ctx.set("state", kept[name]);
  const result = await ctx.step("result", () => once(kept[name]));
  const error = await ctx
    .step("error", () => {
      throw once({ thrown: kept[name] });
    })
    .catch((thrown: unknown) => thrown);
  const signal = await ctx.waitFor("value");
  return { result, error, signal };
});

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

async function open(file: string): Promise<Pawl> {
  return Pawl.open(join(folder, file), { workflows: [doors, badDoors], logger: quiet, handleSignals: false });
}

const badDoors = workflow("bad-doors", async (ctx, name: string) => {
  const bad = { deep: [0, { bad: refused[name]?.[0] }] };
  const result = await ctx.step("result", () => bad).catch((error: unknown) => error);
  const error = await ctx
    .step("error", () => {
      throw Object.assign(new Error("with baggage"), bad, { code: "E_BAGGAGE" });
    })
    .catch((thrown: unknown) => thrown);
  let state: unknown = null;
  try {
    ctx.set("state", bad);
  } catch (thrown) {
    state = thrown;
  }
  return { result, error, state };
});

it("every value that can be kept is the same after a restart, at every door (I21, B64, B66, B67, Q8)", async () => {
  const first = await open("kept.db");
  for (const [name, value] of Object.entries(kept)) await first.start(doors, { name, value }, { id: name });
  await first.idle();
  await first.close();

  isFirstLife = false;
  const second = await open("kept.db");
  const wrong: string[] = [];
  for (const [name, value] of Object.entries(kept)) {
    await second.signal(name, "value", value);
    const run = second.get<{ result: unknown; error: { thrown: unknown }; signal: unknown }>(name);
    const { result, error, signal } = await run.result();
    const [started] = await run.journal();
    const { data } = await run.status();
    const { input } = (started as Entry<{ input: { value: unknown } }>).payload;
    const seen = { input: input.value, result, error: error.thrown, signal, state: data["state"] };
    for (const [door, actual] of Object.entries(seen)) {
      if (!isSame(actual, value)) wrong.push(`${name} as ${door}: ${inspect(actual).slice(0, 200)}`);
    }
  }
  await second.close();
  expect(wrong).toEqual([]);
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
});

it("live code sees what a replay will see: the value after the codec, never the one before it (B67, I21)", async () => {
  const value = { list: [1], at: new Date(0) };
  const live = workflow("live", async (ctx) => {
    const result = await ctx.step("s", () => value);
    return { isSameObject: result === value, isEqual: isDeepStrictEqual(result, value) };
  });
  const pawl = await Pawl.open(join(folder, "live.db"), { workflows: [live], logger: quiet, handleSignals: false });
  expect(await pawl.run(live)).toEqual({ isSameObject: false, isEqual: true });
  await pawl.close();
});

it("every value that cannot be kept is refused at the call, with the path to it, and harms nothing (I21, I20, B65, B66)", async () => {
  const pawl = await open("refused.db");
  const waiting = await pawl.start(doors, { name: "null", value: null }, { id: "waiting" });
  for (const [name, [value, code]] of Object.entries(refused)) {
    const bad = { deep: [0, { bad: value }] };
    const path = code === "too_large" ? /./ : /deep\[1\]\.bad/;
    const told = (error: unknown) => {
      expect(error, name).toBeInstanceOf(Error);
      expect(error, name).toMatchObject({ code, message: expect.stringMatching(path) });
      return true;
    };
    told(await pawl.start(doors, { name, value: bad }).catch((error: unknown) => error));
    told(await waiting.signal("value", bad).catch((error: unknown) => error));
    const { result, error, state } = await pawl.run(badDoors, name);
    told(result);
    told(state);
    // An error that drags something along is recorded without it: never a second failure instead of the first.
    expect(error, name).toMatchObject({ message: "with baggage", code: "E_BAGGAGE" });
  }
  expect(await pawl.store.orphans()).toEqual([]);
  expect((await pawl.list({ workflow: "doors" })).runs.length).toBe(1);
  await pawl.close();
});
