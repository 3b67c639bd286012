import { describe, expect, it } from "vitest";
import type { Context } from "../../src/core/context.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, MINUTE, openWorld, STORES } from "./harness.ts";

const SECOND = 1000;
const unreachable = () => Object.assign(new Error("nobody there"), { code: "ECONNREFUSED" });

describe.each(STORES)("guards against runaways on %s", (store) => {
  it("X-29 an open breaker begins no attempt, and lets one through after its cooldown", async () => {
    const world = await openWorld(store);
    const outside = { isDown: true, asked: 0 };
    const breakers = { tool: { failures: 3, window: "1m", cooldown: "30s" } };
    const ask = (ctx: Context) =>
      ctx.step(
        "ask",
        () => {
          outside.asked++;
          if (outside.isDown) throw unreachable();
          return "answer";
        },
        { breaker: "tool", retry: { max: 9, jitter: false, base: "1s", factor: 1 } },
      );
    const flow = workflow({ name: "flow", breakers }, ask);
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    await world.advance(10 * SECOND);
    // Three failures, at 0, 1 and 2 s, have opened it; the attempt at 3 s was not begun and is due when it may pass.
    expect(outside.asked).toBe(3);
    const refused = (await run.journal()).findLast(({ type }) => type === "step.failed");
    expect(refused?.payload).toMatchObject({
      attempt: 4,
      error: { code: "circuit_open", fields: { breaker: "tool" } },
    });
    const other = await pawl.start(flow, undefined, { id: "other" });
    await world.advance(21 * SECOND);
    expect(outside.asked).toBe(3);
    // Only one of the two is let through, and its failure opens the breaker again.
    await world.advance(2 * SECOND);
    expect(outside.asked).toBe(4);
    outside.isDown = false;
    await world.advance(2 * MINUTE);
    expect([await run.result(), await other.result()]).toEqual(["answer", "answer"]);
    expect(outside.asked).toBe(6);
  });

  it("X-29 X-26 failures that are the caller's own do not open a breaker, nor do old ones", async () => {
    const world = await openWorld(store);
    const flow = workflow(
      { name: "flow", retry: false, breakers: { tool: { failures: 2, window: "10s", cooldown: "1h" } } },
      (ctx, status: number) =>
        ctx.step(
          "ask",
          () => {
            if (status !== 200) throw Object.assign(new Error("refused"), { status });
            return "answer";
          },
          { breaker: "tool" },
        ),
    );
    const pawl = await world.open([flow]);
    const ask = (status: number) => pawl.run(flow, status).catch(({ code, message }) => code ?? message);
    for (const status of [400, 404, 422, 503]) expect(await ask(status)).toBe("refused");
    await world.advance(11 * SECOND);
    expect([await ask(503), await ask(200), await ask(503), await ask(200)]).toEqual([
      ...["refused", "answer", "refused"],
      "circuit_open",
    ]);
  });

  it("X-29 X-13 an attempt that a breaker keeps from beginning gives back what it has reserved", async () => {
    const world = await openWorld(store);
    const flow = workflow(
      { name: "flow", budget: { usd: 1, calls: 9 }, retry: false, breakers: { tool: { failures: 1 } } },
      (ctx) =>
        ctx.step(
          "ask",
          () => {
            throw unreachable();
          },
          { breaker: "tool", spend: { usd: 0.4 } },
        ),
    );
    const pawl = await world.open([flow]);
    await errorOf(pawl.run(flow));
    const run = await pawl.start(flow);
    expect(await errorOf(run.result())).toMatchObject({ code: "circuit_open" });
    expect((await run.status()).budget).toMatchObject({ spent: { usd: 0, calls: 0 }, reserved: { usd: 0, calls: 0 } });
  });

  it("X-29 the same call with the same result is refused after so often in a row, in replay as well", async () => {
    const world = await openWorld(store);
    const results = ["a", "a", "b", "b", "b", "never"];
    const seen: unknown[] = [];
    const flow = workflow("loop", async (ctx) => {
      const search = (args: unknown) =>
        ctx.step("search", () => results[seen.push(args) - 1], { noProgress: { repeats: 3, args } });
      const found: unknown[] = [];
      for (let turn = 0; turn < 5; turn++) found.push(await search({ query: "x" }));
      await ctx.waitFor("go");
      const code = await search({ query: "x" }).catch((error) => error.code);
      // Other arguments are another question.
      return [...found, code, await search({ query: "y" })];
    });
    await (await world.open([flow])).start(flow, undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([flow]);
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toEqual(["a", "a", "b", "b", "b", "no_progress", "never"]);
    expect(seen).toHaveLength(6);
  });

  it("X-29 a failure is no result, and each item of a map has its own streak", async () => {
    const world = await openWorld(store);
    let calls = 0;
    const flow = workflow({ name: "loop", retry: false }, async (ctx) => {
      const poll = () =>
        ctx.step("poll", () => (++calls % 2 === 0 ? Promise.reject(new Error("no")) : "same"), {
          noProgress: { repeats: 2 },
        });
      for (let turn = 0; turn < 6; turn++) await poll().catch(() => {});
      return ctx.map([1, 2], () => ctx.step("poll", () => "same", { noProgress: { repeats: 1 } }));
    });
    const pawl = await world.open([flow]);
    expect(await pawl.run(flow)).toEqual(["same", "same"]);
    expect(calls).toBe(6);
  });

  it("X-29 T-23 beyond the retry budget of a workflow a failure is final, until the window has passed", async () => {
    const world = await openWorld(store);
    const attempts: string[] = [];
    const flow = workflow(
      { name: "flow", retryBudget: { max: 3, per: "1m" }, retry: { max: 9, jitter: false, base: "1s", factor: 1 } },
      (ctx) =>
        ctx.step("s", () => {
          attempts.push(ctx.run.id);
          throw unreachable();
        }),
    );
    const pawl = await world.open([flow]);
    const [first, second] = [
      await pawl.start(flow, undefined, { id: "a" }),
      await pawl.start(flow, undefined, { id: "b" }),
    ];
    await world.advance(10 * SECOND);
    const errors = [await errorOf(first.result()), await errorOf(second.result())];
    for (const error of errors) {
      expect(error).toMatchObject({ code: "retry_budget_exceeded", cause: { code: "ECONNREFUSED" } });
      expect(error.message).toContain("the 3 retries");
    }
    expect(attempts).toHaveLength(5);
    await world.advance(2 * MINUTE);
    await pawl.start(flow, undefined, { id: "c" });
    await world.advance(10 * SECOND);
    expect(attempts.filter((id) => id === "c")).toHaveLength(4);
  });

  it("X-29 of a breaker's trial that never ends, the others are not kept waiting for ever", async () => {
    const world = await openWorld(store);
    const hang = gate();
    const outside = { mode: "down" };
    const flow = workflow(
      { name: "flow", retry: false, timeout: "5s", breakers: { tool: { failures: 1, cooldown: "10s" } } },
      (ctx) =>
        ctx.step(
          "ask",
          async () => {
            if (outside.mode === "down") throw unreachable();
            if (outside.mode === "hang") await hang.passed;
            return "answer";
          },
          { breaker: "tool" },
        ),
    );
    const pawl = await world.open([flow]);
    await errorOf(pawl.run(flow));
    await world.advance(11 * SECOND);
    outside.mode = "hang";
    const trial = await pawl.start(flow);
    await world.settle();
    expect(await errorOf(pawl.run(flow))).toMatchObject({ code: "circuit_open" });
    // Its time is over: that is a failure, and the breaker is open again.
    await world.advance(6 * SECOND);
    expect(await errorOf(trial.result())).toMatchObject({ code: "step_timeout" });
    outside.mode = "up";
    expect(await errorOf(pawl.run(flow))).toMatchObject({ code: "circuit_open" });
    await world.advance(10 * SECOND);
    expect(await pawl.run(flow)).toBe("answer");
  });
});
