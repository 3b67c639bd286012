import { describe, expect, it } from "vitest";
import type { StepKind } from "../../src/core/context.ts";
import { workflow } from "../../src/core/workflow.ts";
import { DAY, errorOf, gate, MINUTE, openWorld, STORES } from "./harness.ts";

const never = () => new Promise<never>(() => {});

describe.each(STORES)("timeouts on %s", (store) => {
  it("S4-24 S4-25 S4-26 E-20 gives each kind of step its own time, and the error names step and seconds", async () => {
    const world = await openWorld(store);
    const kinds: Readonly<Record<StepKind, number>> = { model: 90, api: 45, database: 15, code: 60 };
    const hanging = workflow({ name: "hanging", retry: false }, async (ctx, kind: StepKind) =>
      ctx.step("hang", never, { kind }),
    );
    const pawl = await world.open([hanging]);
    for (const [kind, seconds] of Object.entries(kinds)) {
      const run = await pawl.start(hanging, kind as StepKind);
      await world.advance(seconds * 1000 - 1);
      expect((await run.status()).status).toBe("running");
      await world.advance(1);
      const error = await errorOf(run.result());
      expect(error).toMatchObject({ code: "step_timeout", fields: { run: run.id, step: "hang", seconds, attempt: 1 } });
      expect(error.message).toMatch(`"hang"`);
      expect(error.message).toMatch(`${seconds} s`);
      expect(error.message).toContain("`timeout`");
    }
  });

  it("S3-21 S4-25 takes a timeout per step and per workflow", async () => {
    const world = await openWorld(store);
    const times: number[] = [];
    const timed = workflow({ name: "timed", retry: false, timeout: "5s" }, async (ctx) => {
      for (const timeout of [undefined, "200ms"]) {
        const from = ctx.now();
        await ctx.step("hang", never, timeout === undefined ? {} : { timeout }).catch(() => {});
        times.push(ctx.now() - from);
      }
    });
    const run = await (await world.open([timed])).start(timed);
    await world.advance(MINUTE);
    await run.result();
    expect(times).toEqual([5000, 200]);
  });

  it("S3-21 retries a step that timed out, by policy", async () => {
    const world = await openWorld(store);
    const attempts: number[] = [];
    const slow = workflow({ name: "slow", retry: { jitter: false }, timeout: "5s" }, async (ctx) =>
      ctx.step("slow", ({ attempt }) => {
        attempts.push(attempt);
        return attempt === 3 ? "done" : never();
      }),
    );
    const run = await (await world.open([slow])).start(slow);
    await world.advance(MINUTE);
    expect(await run.result()).toBe("done");
    expect(attempts).toEqual([1, 2, 3]);
  });

  it("S4-27 B23 aborts what timed out, and refuses its late result", async () => {
    const world = await openWorld(store);
    const late = gate<string>();
    const signals: AbortSignal[] = [];
    const results: unknown[] = [];
    const stale = workflow({ name: "stale", retry: { max: 1, jitter: false }, timeout: "5s" }, async (ctx) => {
      const value = await ctx.step("twice", ({ signal, attempt }) => {
        signals.push(signal);
        return attempt === 1 ? late.passed : "second";
      });
      results.push(value);
      await ctx.waitFor("go");
      return value;
    });
    const pawl = await world.open([stale]);
    const run = await pawl.start(stale);
    await world.advance(5000);
    expect(signals[0]?.aborted).toBe(true);
    expect(signals[0]?.reason).toMatchObject({ code: "step_timeout" });
    // The late result comes during the backoff: it must not end the wait.
    late.open("late");
    await world.settle();
    expect(results).toEqual([]);
    await world.advance(1000);
    expect(results).toEqual(["second"]);
    await run.signal("go");
    expect(await run.result()).toBe("second");
    expect((await world.journal(run)).filter((line) => line.startsWith("step.completed"))).toHaveLength(1);
  });

  it("B23 tells of an attempt that begins while the one before it was aborted and has not settled", async () => {
    const world = await openWorld(store);
    const stuck = gate<string>();
    const heeding = workflow({ name: "heeding", retry: { max: 1, jitter: false }, timeout: "5s" }, async (ctx) => {
      await ctx.step("heeds", ({ signal, attempt }) =>
        attempt === 2
          ? "done"
          : new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
      );
      return ctx.step("goes on", ({ attempt }) => (attempt === 2 ? "second" : stuck.passed));
    });
    const run = await (await world.open([heeding])).start(heeding);
    await world.advance(MINUTE);
    expect(await run.result()).toBe("second");
    const warnings = world.lines.filter(({ level }) => level === "warn");
    expect(warnings).toMatchObject([{ fields: { run: run.id, step: "goes on", attempt: 2, earlier: [1] } }]);
    for (const part of [run.id, '"goes on"', "attempt 2", "attempt 1"]) expect(warnings[0]?.message).toContain(part);
  });

  it.each([25, 30, 400])("B43 gives a step, a wait and a run %i days, not a millisecond less", async (days) => {
    const world = await openWorld(store);
    const long = workflow({ name: "long", retry: false }, async (ctx, what: string) => {
      const timeout = days * DAY;
      if (what === "step") await ctx.step("s", never, { timeout });
      if (what === "wait") await ctx.waitFor("never", { timeout });
      await ctx.waitFor("never");
    });
    const pawl = await world.open([long]);
    const deadline = { step: (days + 1) * DAY, wait: (days + 1) * DAY, run: days * DAY };
    const runs = await Promise.all(
      Object.entries(deadline).map(([what, ms]) => pawl.start(long, what, { deadline: ms, id: what })),
    );
    const states = () => Promise.all(runs.map(async (run) => (await run.status()).stopReason ?? "going on"));
    await world.advance(days * DAY - 1);
    expect(await states()).toEqual(["going on", "going on", "going on"]);
    await world.advance(1);
    expect(await states()).toEqual(["step_timeout", "wait_timeout", "deadline_exceeded"]);
  });

  it("S3-22 B22 counts from the last heartbeat: a step longer than any timeout or lease runs once", async () => {
    const world = await openWorld(store);
    let starts = 0;
    const beat = { now: (_detail?: unknown) => {} };
    const done = gate<string>();
    const long = workflow({ name: "long", retry: false }, async (ctx) =>
      ctx.step("long", ({ heartbeat }) => {
        starts++;
        beat.now = heartbeat;
        return done.passed;
      }),
    );
    const run = await (await world.open([long])).start(long);
    for (let minute = 0; minute < 47; minute++) {
      await world.advance(MINUTE - 1);
      beat.now();
    }
    done.open("all of it");
    expect(await run.result()).toBe("all of it");
    expect(starts).toBe(1);
  });

  it("S3-22 times out when the heartbeats stop, and shows their detail as progress", async () => {
    const world = await openWorld(store);
    const beat = { now: (_detail?: unknown) => {} };
    const fading = workflow({ name: "fading", retry: false }, async (ctx) => {
      await ctx
        .step("fade", ({ heartbeat }) => {
          beat.now = heartbeat;
          return never();
        })
        .catch(() => {});
      await ctx.waitFor("go");
    });
    const run = await (await world.open([fading])).start(fading);
    await world.advance(30_000);
    beat.now({ done: 3, of: 10 });
    await world.advance(59_999);
    expect((await run.status()).waits).toEqual([]);
    await world.advance(1);
    const status = await run.status();
    expect(status.waits).toMatchObject([{ kind: "signal", name: "go" }]);
    expect(status.progress).toEqual({ done: 3, of: 10 });
  });

  it("S4-27 gives an attempt that ends in time no timeout afterwards", async () => {
    const world = await openWorld(store);
    const signals: AbortSignal[] = [];
    const quick = workflow({ name: "quick", retry: false }, async (ctx) => {
      await ctx.step("quick", (info) => void signals.push(info.signal));
      await ctx.step("other", () => 1);
      await ctx.sleep("1h");
    });
    const run = await (await world.open([quick])).start(quick);
    await world.advance(60 * MINUTE);
    await run.result();
    expect(signals.map((signal) => signal.aborted)).toEqual([false]);
  });
});
