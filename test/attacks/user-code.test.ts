import { describe, expect, it, onTestFinished } from "vitest";
import { type Codec, jsonCodec } from "../../src/base/envelope.ts";
import { PawlError, RetryableError } from "../../src/base/errors.ts";
import type { Context, Log } from "../../src/core/context.ts";
import type { Commit, RunCommit, Verdict } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";
import { nodeHost } from "../../src/worker/node-host.ts";
import { errorOf, openWorld } from "../behaviour/harness.ts";
import { openOn, rounds, silent } from "./rig.ts";

/** What would have ended the process. */
function fatalities(): unknown[] {
  const seen: unknown[] = [];
  const others = ["uncaughtException", "unhandledRejection"].map((event) => [event, process.listeners(event as never)]);
  const note = (error: unknown) => void seen.push(error);
  for (const [event] of others) process.removeAllListeners(event as never).on(event as never, note as never);
  onTestFinished(() => {
    for (const [event, listeners] of others) {
      process.removeListener(event as never, note as never);
      for (const listener of listeners as never[]) process.on(event as never, listener);
    }
  });
  return seen;
}

class PointError extends Error {
  get code(): string {
    return "E_POINT";
  }
}

function refuse(): never {
  throw new Error("not to be read");
}

/** A value with a `then` of its own. */
function thenable(then: (resolve: (value: unknown) => void) => void, value: object = {}): Promise<unknown> {
  return Object.assign(value as Promise<never>, { then });
}

/** An error of which one property cannot be read. */
function withGetter(key: string): Error {
  return Object.defineProperty(new Error("a getter throws"), key, { enumerable: true, get: refuse });
}

const unreadable: Readonly<Record<string, () => unknown>> = {
  ...Object.fromEntries(
    ["code", "name", "message", "cause", "status", "response", "headers", "retryAfter", "stack", "toString"].map(
      (key) => [`an error whose ${key} throws`, () => withGetter(key)],
    ),
  ),
  "an error whose code cannot be text": () => Object.assign(new Error("x"), { code: Object.create(null) }),
  "an error whose headers throw when asked": () => Object.assign(new Error("x"), { headers: { get: refuse } }),
  "a plain object that cannot be read": () => new Proxy({}, { get: refuse, ownKeys: refuse, getPrototypeOf: refuse }),
  "a revoked proxy": () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  },
  "a getter that throws a revoked proxy": () =>
    Object.defineProperty({}, "x", {
      enumerable: true,
      get: () => {
        throw unreadable["a revoked proxy"]?.();
      },
    }),
  "an object without a prototype": () => Object.assign(Object.create(null), { fn: refuse }),
  "a symbol": () => Symbol("why"),
  "a function": () => refuse,
  undefined: () => undefined,
  null: () => null,
  NaN: () => Number.NaN,
  "a frozen error": () => Object.freeze(new Error("frozen")),
  "a message of 100 MiB": () => new Error("x".repeat(100 * 2 ** 20)),
};

describe("what users bring along", () => {
  it("P16 progress that cannot be stored is refused at the call and hurts no neighbour", async () => {
    const world = await openWorld("memory");
    const fatal = fatalities();
    const bad = workflow("bad", async (ctx) => {
      ctx.progress(() => {});
      await ctx.step("a", () => 1);
    });
    const beating = workflow("beating", async (ctx) => {
      await ctx.step("a", ({ heartbeat }) => heartbeat(Symbol("x")), { retry: false });
    });
    const good = workflow("good", async (ctx) => ctx.step("a", () => "fine"));
    const pawl = await openOn(world.store, {}, [bad, beating, good]);
    const first = await pawl.start(bad);
    const second = await pawl.start(beating);
    expect((await errorOf(first.result()))["code"]).toBe("not_serializable");
    expect((await errorOf(second.result()))["code"]).toBe("not_serializable");
    expect(await pawl.run(good)).toBe("fine");
    expect(fatal).toEqual([]);
  });

  it("P16 a logger that throws or rejects stops nothing", async () => {
    const world = await openWorld("memory");
    const fatal = fatalities();
    const fail = () => {
      throw new Error("the log is closed");
    };
    const reject = () => Promise.reject(new Error("the log is closed")) as never;
    const logger: Log = { debug: fail, info: fail, warn: reject, error: fail };
    const logging = workflow("logging", async (ctx) => {
      await ctx.step("a", () => 1);
      ctx.log.info("hello");
      ctx.log.warn("hello");
      return ctx.step("b", () => 2);
    });
    const pawl = await openOn(world.store, {}, [logging], { logger });
    expect(await pawl.run(logging)).toBe(2);
    await rounds(20);
    expect(fatal).toEqual([]);
  });

  it("P16 a codec that fails for a while delays the runs it fails for, and nothing else", async () => {
    const store = memoryStore();
    const fatal = fatalities();
    let broken = "";
    const codec: Codec = {
      ...jsonCodec,
      seal: (text, at) => {
        if (at.run === broken) throw new Error("no key");
        return jsonCodec.seal(text, at);
      },
    };
    let begun = 0;
    const secret = workflow("secret", async (ctx, how: string) => {
      await ctx.step("a", () => {
        if (begun++ === 0) broken = ctx.run.id;
      });
      if (how === "throw") throw new TypeError("no");
      if (how === "wait") return ctx.waitFor("go", { timeout: 1, default: "none" });
      return ctx.step(
        "b",
        () => {
          if (begun === 1) throw new RetryableError("again");
          return "secret";
        },
        { retry: { base: 1 } },
      );
    });
    const plain = workflow("plain", async (ctx) => ctx.step("a", () => "fine"));
    const pawl = await openOn(store, {}, [secret, plain], { codec, logger: silent, lease: 300 });
    for (const how of ["throw", "wait", "step"]) {
      begun = 0;
      const run = await pawl.start(secret, how);
      await rounds();
      expect(await pawl.run(plain)).toBe("fine");
      broken = "";
      const end = run.result().catch((error: Error) => error.message);
      expect(await end).toBe({ throw: "no", wait: "none", step: "secret" }[how]);
    }
    expect(fatal).toEqual([]);
  });

  it("P16 an error code that cannot be stored ends its run like any other", async () => {
    const world = await openWorld("memory");
    const odd = workflow("odd", async () => {
      throw Object.assign(new Error("odd"), { code: "\0" });
    });
    const pawl = await openOn(world.store, {}, [odd]);
    expect(await errorOf(pawl.run(odd))).toMatchObject({ message: "odd" });
  });

  it.each(Object.keys(unreadable))(
    "B66 a step and a body that throw %s: the run fails as with any other error",
    async (what) => {
      const world = await openWorld("memory");
      const fatal = fatalities();
      const lines: string[] = [];
      const logger: Log = { ...silent, warn: (line) => void lines.push(line), error: (line) => void lines.push(line) };
      const thrown = (unreadable[what] as () => unknown)();
      const calls: string[] = [];
      const throwing = workflow("throwing", async (ctx, where: "body" | "step" | "retried step") => {
        if (where === "body") throw thrown;
        const fn = () => {
          calls.push(where);
          throw thrown;
        };
        await ctx.step("s", fn, where === "step" ? {} : { retry: { max: 2, base: 0, on: "any" } });
      });
      const pawl = await openOn(world.store, {}, [throwing], { logger });
      for (const where of ["body", "step", "retried step"] as const) {
        const run = await pawl.start(throwing, where);
        await world.settle();
        await world.advance(1);
        expect((await run.status()).state, where).toBe("failed");
        await errorOf(run.result());
      }
      expect(calls).toEqual(["step", "retried step", "retried step", "retried step"]);
      expect(lines.filter((line) => line.includes("again"))).toEqual([]);
      expect(fatal).toEqual([]);
    },
  );

  it("B66 what can be read of an error that cannot be stored is kept, its cause included", async () => {
    const world = await openWorld("memory");
    const odd = Object.assign(new PointError("odd"), { socket: Symbol("s"), cause: unreadable["a symbol"]?.() });
    const throwing = workflow("throwing", async (ctx) =>
      ctx.step("s", () => Promise.reject(odd), { retry: { max: 1, base: 0, on: "any" } }),
    );
    const symbols = workflow("symbols", async (ctx) =>
      ctx.step("s", () => Promise.reject(Symbol("why")), { retry: { max: 1, base: 0, on: "any" } }),
    );
    const pawl = await openOn(world.store, {}, [throwing, symbols]);
    const [first, second] = [await pawl.start(throwing), await pawl.start(symbols)];
    await world.advance(1);
    expect((await errorOf(first.result()))["cause"]).toMatchObject({
      message: "odd",
      name: "PointError",
      code: "E_POINT",
    });
    expect(await errorOf(second.result())).toMatchObject({
      code: "max_retries_exceeded",
      cause: { message: "Symbol(why)" },
    });
  });

  it("P16 a commit that the store can never take parks its run instead of trying for ever", async () => {
    const world = await openWorld("memory");
    const stepping = workflow("stepping", async (ctx) => {
      await ctx.step("a", () => 1);
      return ctx.step("b", () => "done");
    });
    let commits = 0;
    let isRefused = true;
    const pawl = await openOn(
      world.store,
      {
        commit: async (request) => {
          if (++commits > 100) throw new PawlError("storage_unavailable", "It goes round and round.");
          const [part] = request.runs;
          const isBad = isRefused && part?.entries.some((entry) => entry.key === "b");
          if (part === undefined || !isBad) return world.store.commit(request);
          return [{ run: part.run, kind: "failed", error: new Error("no such thing") }];
        },
      },
      [stepping],
    );
    const run = await pawl.start(stepping);
    await rounds();
    expect((await run.status()).parked).toMatchObject({ reason: "commit_refused" });
    expect(commits).toBeLessThan(10);
    isRefused = false;
    await pawl.resolve(run.id, "retry");
    expect(await run.result()).toBe("done");
  });

  it("P16 a part that the store can never take parks its run alone: those in the same commit go on and run nothing twice", async () => {
    const world = await openWorld("memory");
    const begun: string[] = [];
    const stepping = workflow("stepping", async (ctx, name: string) => {
      await ctx.step("a", () => 1);
      await ctx.step("b", () => void begun.push(name));
      return name;
    });
    const isBad = ({ run, entries }: RunCommit) => run === "bad" && entries.some(({ key }) => key === "b");
    let neighbours = 0;
    const commit = async (request: Commit): Promise<Verdict[]> => {
      const runs = request.runs.filter((part) => !isBad(part));
      const verdicts = await world.store.commit({ ...request, runs });
      if (runs.length < request.runs.length) neighbours = runs.length;
      const error = new Error("no such thing");
      return request.runs.map(
        ({ run }) => verdicts.find((verdict) => verdict.run === run) ?? { run, kind: "failed", error },
      );
    };
    const pawl = await openOn(world.store, { commit }, [stepping]);
    const names = ["one", "bad", "two"];
    const [one, bad, two] = await Promise.all(names.map((id) => pawl.start(stepping, id, { id })));
    expect(await one?.result()).toBe("one");
    expect(await two?.result()).toBe("two");
    await rounds();
    expect(neighbours).toBe(2);
    expect(begun).toEqual(["one", "two"]);
    expect((await bad?.status())?.parked).toMatchObject({ reason: "commit_refused" });
  });

  it("P7 the then of what a body returns runs as part of the body", async () => {
    const world = await openWorld("memory");
    const frames: unknown[] = [];
    // Query builders are such values: their work is done by it.
    const lazy = workflow("lazy", () => thenable((resolve) => resolve(void frames.push(nodeHost.frame()?.where))));
    const pawl = await world.open([lazy]);
    await pawl.run(lazy, undefined);
    expect(frames).toEqual(["body"]);
  });

  it.each<[string, (ctx: Context) => unknown, unknown]>([
    ["throws at once", () => refuse(), "not to be read"],
    ["returns nothing", () => undefined, undefined],
    ["returns a value", () => 5, 5],
    ["returns a thenable that works", (ctx) => thenable((resolve) => void ctx.step("a", () => 4).then(resolve)), 4],
    ["returns a thenable that throws", () => thenable(refuse), "not to be read"],
    ["returns one whose then cannot be read", () => new Proxy({}, { get: refuse }), "not to be read"],
    ["returns a promise with a then of its own", () => thenable(refuse, Promise.resolve(1)), "not to be read"],
  ])("P16 a body that is no async function and %s ends its run like any other", async (_, body, expected) => {
    const world = await openWorld("memory");
    const odd = workflow("odd", body as () => Promise<unknown>);
    const pawl = await world.open([odd]);
    const end = await pawl.run(odd, undefined).catch((error: Error) => error.message);
    expect(end).toEqual(expected);
  });

  it("P6 the options of a child are checked at the call", async () => {
    const world = await openWorld("memory");
    const child = workflow("child", async () => 1);
    const parent = workflow("parent", async (ctx, options: { tags?: string[]; priority?: number }) =>
      ctx.call(child, undefined, options),
    );
    const pawl = await openOn(world.store, {}, [child, parent]);
    expect((await errorOf(pawl.run(parent, { tags: ["a\0"] })))["code"]).toBe("invalid_name");
    expect((await errorOf(pawl.run(parent, { priority: Number.NaN })))["code"]).toBe("invalid_argument");
  });

  it("I13 a deadline that is no time is refused", async () => {
    const world = await openWorld("memory");
    const any = workflow("any", async (ctx) => ctx.sleep("1 day"));
    const pawl = await openOn(world.store, {}, [any]);
    expect((await errorOf(pawl.start(any, undefined, { deadline: new Date("soon") })))["code"]).toBe(
      "invalid_argument",
    );
  });
});
