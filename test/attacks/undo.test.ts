// What is undone when nobody can be sure of what was done: actions under way, lost answers, results that cannot be kept, generations.
import { describe, expect, it } from "vitest";
import { RetryableError } from "../../src/base/errors.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, MINUTE, nextRound, openWorld, STORES } from "../behaviour/harness.ts";
import { withoutColdStart } from "../cold-start.ts";

describe.each(STORES)("undoing on %s", (store) => {
  it.each([
    ["is cancelled", true],
    ["fails", false],
  ])(
    "C-15 C-25 D-10 an action that is still under way when its run %s is undone after it, not before",
    async (_, isCancelled) => {
      const world = await openWorld(store);
      const log: string[] = [];
      const bank = gate();
      const other = gate();
      const slow = (name: string, isFindable: boolean) => ({
        idempotent: true,
        // A tool that does not heed its signal.
        do: async () => {
          await bank.passed;
          log.push(`do ${name}`);
          return name;
        },
        undo: (value: string | undefined) => void log.push(`undo ${name}: ${value}`),
        ...(isFindable && {
          detect: () =>
            log.includes(`do ${name}`) ? { found: true as const, value: name } : { found: false as const },
        }),
      });
      const flow = workflow("flow", async (ctx) => {
        await Promise.all([
          ctx.effect("blind", slow("blind", false)),
          ctx.effect("found", slow("found", true)),
          ctx.step("other", () => other.passed),
        ]);
      });
      const pawl = await world.open([flow]);
      const run = await pawl.start(flow);
      await world.settle();
      if (isCancelled) await run.cancel({ compensate: true });
      else other.fail(new Error("fatal"));
      await world.settle();
      expect(log).toEqual([]);
      bank.open();
      await errorOf(run.result());
      expect(log).toEqual(["do blind", "do found", "undo found: found", "undo blind: undefined"]);
      expect(await run.effects()).toMatchObject([{ status: "compensated" }, { status: "compensated" }]);
    },
  );

  it("C-15 C-25 an undo does not wait for ever for an action that does not end", async () => {
    const world = await openWorld(store);
    const undone: string[] = [];
    const flow = workflow("flow", async (ctx) =>
      ctx.effect(
        "stubborn",
        { idempotent: true, do: () => new Promise<string>(() => {}), undo: () => void undone.push("undone") },
        { timeout: "20s" },
      ),
    );
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    await world.settle();
    await run.cancel({ compensate: true });
    await world.advance(MINUTE);
    expect(await run.status()).toMatchObject({ state: "cancelled" });
    expect(undone).toEqual(["undone"]);
  });

  it("an action may return what begins when somebody waits for it: it begins once", async () => {
    const world = await openWorld(store);
    let begun = 0;
    const lazy = () => ({
      // biome-ignore lint/suspicious/noThenProperty: as query builders do
      then: (done: (value: string) => void) => {
        begun++;
        done("rows");
      },
    });
    const flow = workflow("flow", async (ctx) =>
      ctx.step("query", () => lazy() as unknown as Promise<string>, { undo: () => {} }),
    );
    const pawl = await world.open([flow]);
    expect([await pawl.run(flow), begun]).toEqual(["rows", 1]);
  });

  it("S2-27 an action whose answer was lost once may have happened, whatever a later attempt says", async () => {
    const world = await openWorld(store);
    const log: string[] = [];
    let tries = 0;
    const flow = workflow("flow", async (ctx) =>
      ctx.effect("charge", {
        idempotent: true,
        do: ({ key }) => {
          log.push(`charge ${key}`);
          throw ++tries === 1 ? new RetryableError("connection lost") : new Error("key was used before");
        },
        undo: (value, { undoes }) => void log.push(`refund ${undoes}: ${value}`),
      }),
    );
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    await world.advance(MINUTE);
    expect(await errorOf(run.result())).toMatchObject({ message: "key was used before" });
    expect(log).toEqual(["charge r/charge", "charge r/charge", "refund r/charge: undefined"]);
    expect(await run.effects()).toMatchObject([{ status: "compensated", attempts: 2 }]);
  });

  it("S2-27 X-29 an action whose answer was lost, and that a budget for retries keeps from being tried again, may have happened", async () => {
    const world = await openWorld(store);
    const undone: string[] = [];
    const flow = workflow({ name: "flow", retryBudget: { max: 0, per: "1m" } }, async (ctx) =>
      ctx.effect("charge", {
        idempotent: true,
        do: () => Promise.reject(new RetryableError("connection lost")),
        undo: () => void undone.push("undone"),
      }),
    );
    const pawl = await world.open([flow]);
    expect(await errorOf(pawl.run(flow))).toMatchObject({ code: "retry_budget_exceeded" });
    expect(undone).toEqual(["undone"]);
  });

  it("S2-27 C-3 an action that a crash interrupted may have happened, also if a detector fails afterwards", async () => {
    const world = await openWorld(store);
    const log: string[] = [];
    const victim: { pawl?: Pawl | undefined } = {};
    const flow = workflow("flow", async (ctx) =>
      ctx.effect("charge", {
        do: ({ key }) => {
          log.push(`charge ${key}`);
          if (victim.pawl !== undefined) world.kill(victim.pawl);
          return "paid";
        },
        detect: () => {
          log.push("look");
          if (log.filter((line) => line === "look").length === 1) throw new Error("bad request");
          return { found: true, value: "paid" };
        },
        undo: (value, { undoes }) => void log.push(`refund ${undoes}: ${value}`),
      }),
    );
    victim.pawl = await world.open([flow]);
    void victim.pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([flow]);
    expect(await errorOf(pawl.get("r").result())).toMatchObject({ message: "bad request" });
    expect(log).toEqual(["charge r/charge", "look", "look", "refund r/charge: paid"]);
  });

  it("S2-27 what failed for sure is not undone: not begun because of a breaker, or refused before anything else", async () => {
    const world = await openWorld(store);
    const undone: string[] = [];
    const flow = workflow({ name: "flow", breakers: { bank: { failures: 1 } }, retry: false }, async (ctx) => {
      const spec = (name: string, error: Error) => ({
        idempotent: true,
        do: () => Promise.reject(error),
        undo: () => void undone.push(name),
      });
      const lost = Object.assign(new Error("bad gateway"), { status: 502 });
      await ctx.effect("lost", spec("lost", lost), { breaker: "bank" }).catch(() => {});
      await ctx.effect("not begun", spec("not begun", lost), { breaker: "bank" }).catch(() => {});
      await ctx.effect("refused", spec("refused", new Error("no such card")));
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    await errorOf(run.result());
    expect(undone).toEqual(["lost"]);
    const statuses = (await run.effects()).map(({ status }) => status);
    expect(statuses).toEqual(["compensated", "failed", "failed"]);
  });

  it("S2-27 I21 an action whose result cannot be recorded has happened: it is undone", async () => {
    const world = await openWorld(store);
    const log: string[] = [];
    const flow = workflow("flow", async (ctx) =>
      ctx.effect("charge", {
        do: () => {
          log.push("charge");
          return { close: () => {} };
        },
        undo: (value) => void log.push(`refund ${value}`),
      }),
    );
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    expect(await errorOf(run.result())).toMatchObject({ code: "not_serializable" });
    expect(log).toEqual(["charge", "refund undefined"]);
    expect(await run.effects()).toMatchObject([{ status: "compensated" }]);
  });

  it("S2-27 an effect that was not begun when its process stopped, and is refused later, is not undone", async () => {
    const world = await openWorld(store);
    const undone: string[] = [];
    const [first, other] = [gate(), gate()];
    const flow = workflow("flow", async (ctx) => {
      const refused = {
        idempotent: true,
        do: () => Promise.reject(new Error("no such card")),
        undo: () => void undone.push("undone"),
      };
      const branch = ctx.step("first", () => first.passed).then(() => ctx.effect("refused", refused));
      await Promise.all([branch, ctx.step("other", () => other.passed)]);
    });
    const pawl = await world.open([flow]);
    await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    const closing = pawl.close({ drain: "1m" });
    await nextRound();
    first.open();
    await world.settle();
    expect(await world.journal("r")).toContain("effect.planned refused");
    other.open();
    await closing;
    const second = await world.open([flow]);
    await errorOf(second.get("r").result());
    expect(undone).toEqual([]);
  });

  it("P19 E-15 what nobody undid is listed: also what was done in a second attempt, and nothing that only looks like it", async () => {
    withoutColdStart("its code leaves the journal on purpose");
    const world = await openWorld(store);
    let tries = 0;
    const flowOf = (name: string) =>
      workflow("flow", async (ctx) => {
        if (ctx.get("generation") === undefined) {
          await ctx.step("of the generation before", () => 1, { undo: () => {} });
          ctx.set("generation", 1);
          await ctx.continueAs(undefined);
        }
        await ctx.step("looks like it", () => ({ undo: true }));
        await ctx.effect(
          name,
          {
            idempotent: true,
            do: () => {
              if (++tries === 1) throw Object.assign(new Error("not now"), { code: "EAGAIN" });
              return "done";
            },
            undo: () => {},
          },
          { retry: { max: 1, on: "any" } },
        );
        await ctx.waitFor("never");
      });
    const first = await world.open([flowOf("a")]);
    await first.start(flowOf("a"), undefined, { id: "r" });
    await world.advance(MINUTE);
    const second = await world.restart([flowOf("b")]);
    await world.settle();
    await second.cancel("r", { compensate: true });
    await world.settle();
    const error = await errorOf(second.get("r").result());
    expect(error).toMatchObject({ code: "compensation_incomplete" });
    const { remaining } = error["fields"] as { remaining: { effect: string }[] };
    expect(remaining.map(({ effect }) => effect)).toEqual(["a"]);
  });

  it("P10 S2-45 the ledger has what every generation did, and retry of one that was undone leaves the others alone", async () => {
    const world = await openWorld(store);
    const log: string[] = [];
    let isBroken = true;
    const flow = workflow("flow", async (ctx, generation: number): Promise<string> => {
      await ctx.effect("charge", {
        idempotent: true,
        do: ({ key }) => {
          log.push(`charge ${key}`);
          return generation;
        },
        undo: (value, { undoes }) => void log.push(`refund ${undoes}: ${value}`),
      });
      if (generation === 0) return ctx.continueAs(1);
      await ctx.step("ship", () => (isBroken ? Promise.reject(new Error("fatal")) : "shipped"));
      return "done";
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, 0, { id: "r" });
    await errorOf(run.result());
    expect(log).toEqual(["charge r/charge", "charge r#1/charge", "refund r#1/charge: 1"]);
    expect(await run.effects()).toMatchObject([
      { effect: "charge", key: "r/charge", status: "executed", value: 0 },
      { effect: "charge", key: "r#1/charge", status: "compensated", value: 1 },
    ]);
    isBroken = false;
    const again = await pawl.retry("r");
    expect(await again.result()).toBe("done");
    expect(log.slice(3)).toEqual([`charge ${again.id}/charge`]);
  });

  it("P19 I16 whoever cancels with compensate after a cancel without is told that nothing is undone", async () => {
    const world = await openWorld(store);
    const undone: string[] = [];
    const flow = workflow("flow", async (ctx) => {
      await ctx.step("a", () => 1, { undo: () => void undone.push("a") });
      await ctx.waitFor("never").catch(() => {});
      // It takes a while to stop.
      await new Promise(() => {});
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    expect(await run.cancel()).toEqual({ outcome: "cancelling" });
    expect(await errorOf(run.cancel({ compensate: true }))).toMatchObject({
      code: "idempotency_conflict",
      message: expect.stringContaining("without `compensate`"),
    });
    expect(await run.cancel()).toEqual({ outcome: "cancelling" });
    expect(undone).toEqual([]);
  });

  it("E-26 a decision about a step that the run does not have is refused", async () => {
    const world = await openWorld(store);
    const flow = workflow("flow", async (ctx) =>
      ctx.effect("send", { do: () => Promise.reject(new RetryableError("connection lost")) }),
    );
    const pawl = await world.open([flow]);
    await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    const error = await errorOf(pawl.resolve("r", { choice: "happened", value: 1, step: "sent" }));
    expect(error).toMatchObject({ code: "invalid_argument", message: expect.stringContaining('It asks about "send"') });
    await pawl.resolve("r", { choice: "happened", value: 1, step: "send" });
    expect(await pawl.get("r").result()).toBe(1);
  });

  it("C-15 P19 a client that cannot undo a parked run does not take it again and again while it waits for somebody who can", async () => {
    const world = await openWorld(store);
    const undone: string[] = [];
    const flow = workflow("flow", async (ctx) =>
      ctx.effect("send", {
        do: () => Promise.reject(new RetryableError("connection lost")),
        undo: () => void undone.push("undone"),
      }),
    );
    const pawl = await world.open([flow]);
    await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    await pawl.close();
    const client = await world.open();
    let takes = 0;
    const take = world.store.take.bind(world.store);
    world.store.take = (...args) => {
      takes++;
      return take(...args);
    };
    const cancelling = client.cancel("r", { compensate: true });
    await world.settle();
    expect(takes).toBe(1);
    await world.open([flow]);
    expect(await cancelling).toMatchObject({ outcome: expect.stringMatching(/cancell(ing|ed)/) });
    await world.settle();
    expect(undone).toEqual(["undone"]);
  });

  it.each([[undefined], [null], ["payment 7"], [{ value: 7 }]])(
    "S0-36 C-3 an answer %j of a detector is neither yes nor no: nothing is done again, and the error says what to return",
    async (answer) => {
      const world = await openWorld(store);
      let done = 0;
      let isBack = false;
      const flow = workflow("flow", async (ctx) =>
        ctx.effect("charge", {
          do: () => {
            done++;
            return isBack ? "again" : Promise.reject(new RetryableError("connection lost"));
          },
          detect: () => answer as never,
        }),
      );
      const pawl = await world.open([flow]);
      const run = await pawl.start(flow);
      await world.settle();
      isBack = true;
      await world.advance(MINUTE);
      expect((await errorOf(run.result())).message).toMatch(
        /`detect` of effect "charge" returned .*Return \{ found: true, value \}/,
      );
      expect(done).toBe(1);
      expect(await run.effects()).toMatchObject([{ status: "unknown" }]);
    },
  );
});
