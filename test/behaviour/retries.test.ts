import { describe, expect, it } from "vitest";
import { RetryableError, TerminalError } from "../../src/base/errors.ts";
import type { StepOptions } from "../../src/core/context.ts";
import type { StepFailed } from "../../src/core/journal.ts";
import { type Retry, retryDelayMs, retryPolicy } from "../../src/core/retry.ts";
import { workflow } from "../../src/core/workflow.ts";
import { DAY, errorOf, openWorld, STORES, type World } from "./harness.ts";

const PLAIN: Retry = { jitter: false };

/** A workflow whose one step fails `failures` times with what `error` makes, and notes when it ran. */
function flaky(world: World, failures: number, error: () => unknown, options: StepOptions = {}) {
  const times: number[] = [];
  const flow = workflow("flaky", async (ctx) =>
    ctx.step(
      "try",
      () => {
        times.push(world.clock.now());
        if (times.length <= failures) throw error();
        return times.length;
      },
      { retry: PLAIN, ...options },
    ),
  );
  return { flow, waits: () => times.slice(1).map((time, i) => time - (times[i] as number)) };
}

describe.each(STORES)("retries on %s", (store) => {
  it("S4-29 waits 1, 2 and 4 s between the four attempts that are the default", async () => {
    const world = await openWorld(store);
    const { flow, waits } = flaky(world, 3, () => new RetryableError("later"));
    const run = await (await world.open([flow])).start(flow);
    await world.advance(60_000);
    expect(await run.result()).toBe(4);
    expect(waits()).toEqual([1000, 2000, 4000]);
  });

  it("S4-29 never waits longer than the cap", async () => {
    const world = await openWorld(store);
    const { flow, waits } = flaky(world, 10, () => new RetryableError("later"), { retry: { jitter: false, max: 10 } });
    const run = await (await world.open([flow])).start(flow);
    await world.advance(600_000);
    expect(await run.result()).toBe(11);
    expect(waits()).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60, 60].map((seconds) => seconds * 1000));
  });

  it("S4-30 E-24 says after the last retry that they are used up, with the last error as its cause", async () => {
    const world = await openWorld(store);
    let n = 0;
    const { flow, waits } = flaky(world, 99, () => new RetryableError(`no ${++n}`), {
      retry: { jitter: false, max: 2 },
    });
    const run = await (await world.open([flow])).start(flow);
    await world.advance(600_000);
    const error = await errorOf(run.result());
    expect(error).toMatchObject({ code: "max_retries_exceeded", fields: { run: run.id, step: "try", attempts: 3 } });
    expect(error.cause).toMatchObject({ name: "RetryableError", message: "no 3" });
    expect(waits()).toHaveLength(2);
    expect((await run.status()).stopReason).toBe("max_retries_exceeded");
  });

  it("S4-28 E-25 retries what marks itself transient; everything else surfaces at once", async () => {
    const world = await openWorld(store);
    const status = (code: number) => Object.assign(new Error(`status ${code}`), { status: code });
    const network = new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "ECONNREFUSED" }) });
    const errors: Readonly<Record<string, [unknown, boolean]>> = {
      retryable: [new RetryableError("x"), true],
      reset: [Object.assign(new Error("x"), { code: "ECONNRESET" }), true],
      fetch: [network, true],
      s429: [status(429), true],
      s503: [status(503), true],
      response: [Object.assign(new Error("x"), { response: { status: 408 } }), true],
      s404: [status(404), false],
      plain: [new Error("x"), false],
      terminal: [new TerminalError("x"), false],
      text: ["just text", false],
    };
    const attempts: Record<string, number> = {};
    const failing = workflow("failing", async (ctx, name: string) => {
      await ctx.step(name, () => {
        attempts[name] = (attempts[name] ?? 0) + 1;
        throw errors[name]?.[0];
      });
    });
    const pawl = await world.open([failing]);
    const runs = await Promise.all(Object.keys(errors).map((name) => pawl.start(failing, name)));
    await world.advance(60_000);
    await Promise.all(runs.map((run) => errorOf(run.result())));
    const expected = Object.entries(errors).map(([name, [, isRetried]]) => [name, isRetried ? 4 : 1]);
    expect(attempts).toEqual(Object.fromEntries(expected));
  });

  it('S4-28 widens with on: "any" or a function, but never over a TerminalError', async () => {
    const world = await openWorld(store);
    const counts = { any: 0, terminal: 0, chosen: 0, refused: 0 };
    const wide = workflow({ name: "wide", retry: { max: 1, jitter: false, on: "any" } }, async (ctx) => {
      const failing = (name: keyof typeof counts, error: unknown, retry?: Retry) =>
        ctx
          .step(
            name,
            () => {
              counts[name]++;
              throw error;
            },
            retry === undefined ? {} : { retry },
          )
          .catch(() => {});
      await failing("any", new Error("x"));
      await failing("terminal", new TerminalError("x"));
      const on = (error: unknown) => (error as Error).message === "yes";
      await failing("chosen", new Error("yes"), { on });
      await failing("refused", new Error("no"), { on });
    });
    const run = await (await world.open([wide])).start(wide);
    await world.advance(10_000);
    await run.result();
    expect(counts).toEqual({ any: 2, terminal: 1, chosen: 2, refused: 1 });
  });

  it("E-25 honours Retry-After, of the error and of a response's headers", async () => {
    const world = await openWorld(store);
    const headers = new Headers({ "retry-after": "7" });
    const asked = [
      new RetryableError("x", { retryAfter: "90s" }),
      Object.assign(new Error("busy"), { status: 429, headers }),
      Object.assign(new Error("busy"), { response: { status: 503, headers: { "retry-after": "3" } } }),
    ];
    const { flow, waits } = flaky(world, 3, () => asked.shift());
    const run = await (await world.open([flow])).start(flow);
    await world.advance(200_000);
    await run.result();
    expect(waits()).toEqual([90_000, 7000, 3000]);
  });

  it("E-25 honours a Retry-After that is a date, and does not wait for one that has passed", async () => {
    const world = await openWorld(store);
    const dates = [world.clock.now() + 42_000, world.clock.now() - 60_000].map((time) => new Date(time).toUTCString());
    const { flow, waits } = flaky(world, 2, () =>
      Object.assign(new Error("busy"), { status: 503, headers: new Headers({ "retry-after": dates.shift() ?? "" }) }),
    );
    const run = await (await world.open([flow])).start(flow);
    await world.advance(200_000);
    await run.result();
    expect(waits()).toEqual([42_000, 0]);
  });

  it("E-25 takes its own backoff when an error asks for a wait that cannot be read", async () => {
    const world = await openWorld(store);
    const { flow, waits } = flaky(world, 1, () => new RetryableError("x", { retryAfter: "soonish" }));
    const run = await (await world.open([flow])).start(flow);
    await world.advance(60_000);
    expect((await run.status()).status).toBe("succeeded");
    expect(waits()).toEqual([1000]);
  });

  it("S4-28 fails a step whose own retry rule throws, and does not hang", async () => {
    const world = await openWorld(store);
    const on = () => {
      throw new Error("rule broke");
    };
    const { flow } = flaky(world, 1, () => new Error("x"), { retry: { on } });
    const run = await (await world.open([flow])).start(flow);
    await world.advance(60_000);
    expect(await run.status()).toMatchObject({ status: "failed", error: { message: "x" } });
  });

  it("S4-31 T-23 C-5 keeps attempts and the backoff through restarts: only the rest is waited for", async () => {
    const world = await openWorld(store);
    const { flow, waits } = flaky(world, 2, () => new RetryableError("later"), {
      retry: { jitter: false, base: "60s", cap: "1h" },
    });
    await (await world.open([flow])).start(flow, undefined, { id: "r" });
    await world.advance(45_000);
    expect(await world.store.run("r")).toMatchObject({ state: "retrying", owner: null });
    await world.restart([flow]);
    await world.advance(14_999);
    expect(waits()).toEqual([]);
    await world.advance(1);
    expect(waits()).toEqual([60_000]);
    // The second failure is the second one still: its wait doubles.
    await world.restart([flow]);
    await world.advance(120_000);
    expect(waits()).toEqual([60_000, 120_000]);
    const entries = await world.store.journal("r");
    expect(entries.at(-1)?.type).toBe("run.succeeded");
  });

  it("S4-31 C-5 a run that something else wakes in the middle of a backoff waits for the rest of it", async () => {
    const world = await openWorld(store);
    const times: number[] = [];
    const waking = workflow("waking", async (ctx) => {
      const work = ctx.step(
        "try",
        () => {
          times.push(world.clock.now());
          if (times.length === 1) throw new RetryableError("later");
          return "done";
        },
        { retry: { jitter: false, base: "60s" } },
      );
      await ctx.waitFor("go");
      return work;
    });
    await (await world.open([waking])).start(waking, undefined, { id: "r" });
    await world.advance(20_000);
    const pawl = await world.restart([waking]);
    await pawl.signal("r", "go");
    await world.advance(39_999);
    expect(await world.journal("r")).toContain("signal.received go");
    expect(times).toHaveLength(1);
    await world.advance(1);
    expect(await pawl.get("r").result()).toBe("done");
    expect(times).toHaveLength(2);
  });

  it("C-5 counts retries in the journal, so that a crash gives none back", async () => {
    const world = await openWorld(store);
    let calls = 0;
    const flow = workflow("flaky", async (ctx) =>
      ctx.step(
        "try",
        () => {
          calls++;
          throw new RetryableError("x");
        },
        { retry: { max: 3, jitter: false } },
      ),
    );
    await (await world.open([flow])).start(flow, undefined, { id: "r" });
    for (let i = 0; i < 6; i++) {
      const pawl = await world.restart([flow]);
      await world.advance(5000);
      if ((await pawl.get("r").status()).status === "failed") break;
    }
    expect(calls).toBe(4);
    expect(await world.store.run("r")).toMatchObject({ state: "failed", stopReason: "max_retries_exceeded" });
  });

  it("C-5 ends a run at its deadline, whatever retries its step has left", async () => {
    const world = await openWorld(store);
    let attempts = 0;
    const slow = workflow({ name: "slow", retry: { max: 10, base: "1 h", cap: "1 h", jitter: false } }, async (ctx) =>
      ctx.step("s", () => {
        attempts++;
        throw new RetryableError("busy");
      }),
    );
    const run = await (await world.open([slow])).start(slow, undefined, { deadline: "90 min" });
    await world.advance(DAY);
    expect(await errorOf(run.result())).toMatchObject({ code: "deadline_exceeded" });
    expect(attempts).toBe(2);
  });

  it("C-5 counts no restart of a run that gets further each time: twenty are within its deadline", async () => {
    const world = await openWorld(store);
    const unlucky = workflow("unlucky", async (ctx) => {
      for (let i = 0; i < 20; i++)
        await ctx.step("s", ({ attempt }) => (attempt === 1 ? new Promise<never>(() => {}) : i));
      return "done";
    });
    let pawl = await world.open([unlucky]);
    await pawl.start(unlucky, undefined, { id: "r" });
    for (let i = 0; i < 20; i++) {
      await world.settle();
      expect((await pawl.get("r").status()).status).toBe("running");
      pawl = await world.restart([unlucky]);
    }
    expect(await pawl.get("r").result()).toBe("done");
  });

  it("S4-32 spreads waits over nothing to the full delay, and the journal keeps what was drawn", async () => {
    const world = await openWorld(store);
    const flow = workflow("spread", async (ctx) => {
      await ctx.step("try", () => Promise.reject(new RetryableError("x")), {
        retry: { max: 1, base: "1000s", cap: "1000s" },
      });
    });
    const pawl = await world.open([flow]);
    const runs = await Promise.all(Array.from({ length: 30 }, () => pawl.start(flow)));
    await world.settle();
    const waits = await Promise.all(
      runs.map(async (run) => {
        const failed = (await run.journal()).find((entry) => entry.type === "step.failed");
        const payload = failed?.payload as StepFailed | undefined;
        return (payload?.retryAt ?? Number.NaN) - (failed?.at ?? 0);
      }),
    );
    expect(waits.every((wait) => wait >= 0 && wait <= 1_000_000)).toBe(true);
    expect(new Set(waits).size).toBeGreaterThan(20);
    const drawn = [0, 0.25, 0.999].map((random) =>
      retryDelayMs(retryPolicy(undefined), 2, new RetryableError("x"), { random: () => random, now: () => 0 }),
    );
    expect(drawn).toEqual([0, 500, 1998]);
  });

  it("S4-28 shows a run in backoff as running, and what it waits for", async () => {
    const world = await openWorld(store);
    const { flow } = flaky(world, 1, () => new RetryableError("later", { retryAfter: "1h" }));
    const run = await (await world.open([flow])).start(flow);
    await world.settle();
    const status = await run.status();
    expect(status).toMatchObject({ status: "running", state: "retrying", owner: null });
    expect(status.waits).toEqual([
      { kind: "retry", key: "retry:try", name: "try", due: new Date(world.clock.now() + 3_600_000) },
    ]);
  });
});
