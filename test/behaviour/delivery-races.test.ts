import { describe, expect, it } from "vitest";
import type { Log } from "../../src/core/context.ts";
import type { Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { openOn, rounds } from "../attacks/rig.ts";
import { gate, openWorld, STORES } from "./harness.ts";

/** What somebody should act on. */
function logTo(lines: string[]): Log {
  const write = (message: string) => void lines.push(message);
  return { debug: () => {}, info: () => {}, warn: write, error: write };
}

const ORDERS = [
  ["start", "signal", "cancel"],
  ["start", "cancel", "signal"],
  ["signal", "start", "cancel"],
  ["signal", "cancel", "start"],
  ["cancel", "start", "signal"],
  ["cancel", "signal", "start"],
] as const;

describe.each(STORES)("start, signal and cancel of one id on %s", (store) => {
  const waiting = workflow("waiting", async (ctx) => {
    await ctx.waitFor("go");
    await ctx.waitFor("never");
  });

  const cases = ORDERS.flatMap((order) =>
    (["one after the other", "all at once"] as const).flatMap((pace) =>
      (["a worker", "clients only"] as const).map((who) => [order.join(", "), pace, who, order] as const),
    ),
  );

  it.each(cases)("B12 I16 %s, %s, with %s: nothing is stuck, and every sender is told", async (_, pace, who, order) => {
    const world = await openWorld(store);
    const pawl = await world.open(who === "a worker" ? [waiting] : []);
    const acts = {
      start: () => pawl.start(waiting, undefined, { id: "r" }),
      signal: () => pawl.signal("r", "go"),
      cancel: () => pawl.cancel("r"),
    };
    const told: Record<string, string> = {};
    const send = async (what: (typeof order)[number]) => {
      told[what] = await acts[what]().then(
        () => "done",
        (error: { code: string }) => error.code,
      );
    };
    if (pace === "all at once") await Promise.all(order.map(send));
    else for (const what of order) await send(what);
    await world.settle();
    expect(told["start"]).toBe("done");
    expect(told["signal"]).toMatch(/^(done|run_not_found|run_ended)$/);
    expect(told["cancel"]).toMatch(/^(done|run_not_found)$/);
    // A cancel that was accepted ends the run; one that came too early leaves a run that waits and can be cancelled.
    if (told["cancel"] !== "done") await pawl.cancel("r");
    await world.settle();
    expect((await world.store.run("r"))?.state).toBe("cancelled");
  });
});

describe.each(STORES)("mail that is used up on %s", (store) => {
  const receiving = workflow("receiving", async (ctx) => [
    await ctx.waitFor("a"),
    await ctx.waitFor("a", { timeout: "1h", default: null }),
  ]);

  it("P5 a run whose message was used up elsewhere is loaded again, and receives it once", async () => {
    const world = await openWorld(store);
    const lines: string[] = [];
    let refusals = 0;
    const commit: Store["commit"] = async (batch) => {
      const part = batch.runs.find(({ consumes }) => (consumes ?? []).length > 0);
      if (part === undefined || refusals++ > 0) return world.store.commit(batch);
      return batch.runs.map(({ run }) => ({ run, kind: "refused", why: "consumed" }));
    };
    const pawl = await openOn(world.store, { commit }, [receiving], { logger: logTo(lines) });
    const run = await pawl.start(receiving);
    await run.signal("a", "once");
    const receipts = async () => (await run.journal()).filter(({ type }) => type === "signal.received");
    await expect.poll(receipts).toHaveLength(1);
    expect(refusals).toBeGreaterThan(0);
    expect(lines).toEqual([expect.stringContaining(run.id)]);
    expect((await receipts()).map(({ payload }) => (payload as { payload: unknown }).payload)).toEqual(["once"]);
    await world.advance(3_600_000);
    expect(await run.result()).toEqual(["once", null]);
  });

  it("P5 a message whose use is on its way to the store is not used again when the inbox still shows it", async () => {
    const world = await openWorld(store);
    const lines: string[] = [];
    const hold = gate();
    const used = gate();
    let commits = 0;
    const commit: Store["commit"] = async (batch) => {
      if (batch.runs.some(({ consumes }) => (consumes ?? []).length > 0) && commits++ === 0) {
        used.open();
        await hold.passed;
      }
      return world.store.commit(batch);
    };
    const reading = gate();
    const owned: Store["owned"] = async (...question) => {
      const mail = await world.store.owned(...question);
      if (mail.some(({ inbox }) => inbox.length === 2)) reading.open();
      return mail;
    };
    const both = workflow("both", async (ctx) => [await ctx.waitFor("a"), await ctx.waitFor("a"), "end"]);
    const pawl = await openOn(world.store, { commit, owned }, [both], { logger: logTo(lines) });
    const run = await pawl.start(both);
    await run.signal("a", 1);
    await used.passed;
    // The inbox is read again, for another message, while the first one is still in it.
    await run.signal("b", 2);
    await reading.passed;
    await rounds();
    hold.open();
    const receipts = async () => (await run.journal()).filter(({ type }) => type === "signal.received");
    await expect.poll(receipts).toHaveLength(1);
    await run.signal("a", 3);
    expect(await run.result()).toEqual([1, 3, "end"]);
    // Used twice, it would be refused, and the run loaded again.
    expect(lines).toEqual([]);
  });
});
