import { describe, expect, it, onTestFinished } from "vitest";
import { type Codec, jsonCodec } from "../../src/base/envelope.ts";
import { PawlError, RetryableError } from "../../src/base/errors.ts";
import type { Log } from "../../src/core/context.ts";
import { workflow } from "../../src/core/workflow.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";
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
