import { describe, expect, it, onTestFinished } from "vitest";
import { manualClock } from "../base/clock.ts";
import { RetryableError } from "../base/errors.ts";
import type { Handle, Store } from "../core/store.ts";
import { workflow } from "../core/workflow.ts";
import { memoryStore } from "../stores/memory/memory-store.ts";
import { processIdentity } from "../worker/process-identity.ts";
import { Pawl } from "./pawl.ts";
import type { PawlOptions } from "./pawl-options.ts";
import { why } from "./why.ts";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

async function open(options: PawlOptions = {}, store: Store = memoryStore()): Promise<Pawl> {
  const pawl = await Pawl.open(store, { logger: silent, handleSignals: false, ...options });
  onTestFinished(() => pawl.close({ drain: 0 }));
  return pawl;
}

function worker(id: string, pid: number, ...handles: readonly Handle[]): Parameters<Store["register"]>[0] {
  return { id, name: id, leaseMs: 60_000, process: { ...processIdentity(), pid, startedAt: null }, handles };
}

describe("why", () => {
  it("S2-7 S2-20 explains a run that has not begun, and when it will", async () => {
    const pawl = await open({}, memoryStore({ clock: manualClock() }));
    await pawl.start("flow", 1, { id: "later", version: "1.0.0", delay: "2h", key: "k" });
    const explanation = await why(pawl, "later");
    expect(explanation).toMatchObject({ state: "accepted", isStranded: true, owner: null });
    expect(explanation.text.join("\n")).toMatch(
      /has not begun yet[\s\S]*with key "k"[\s\S]*It is to start 2026-01-01T02:00:00\.000Z, in 2h 00m/,
    );
  });

  it("S2-7 explains a run that waits for its next attempt", async () => {
    const flaky = workflow("flaky", async (ctx) => {
      await ctx.step("charge", () => {
        throw new RetryableError("connection reset", { retryAfter: "1h" });
      });
    });
    const pawl = await open({ workflows: [flaky] });
    await pawl.start(flaky, undefined, { id: "r" });
    await pawl.idle();
    const { summary, present, wakesAt, next } = await why(pawl, "r");
    expect(summary).toBe("Run r of flaky 1.0.0 waits to try again after a failure.");
    expect(present[0]).toMatch(
      /^Step "charge" failed \(attempt 1\): connection reset\. It is tried again .*, in (1h 00m|59m)/,
    );
    expect(wakesAt?.getTime()).toBeGreaterThan(Date.now());
    expect(next).toEqual(["Nothing: it goes on by itself."]);
  });

  it("S2-7 says how far a step has come that saves on its way", async () => {
    const clock = manualClock();
    const busy = workflow("busy", async (ctx) => {
      await ctx.step("crawl", async ({ save }) => {
        await save({ page: 1 });
        await save({ page: 2 });
        throw new RetryableError("connection reset", { retryAfter: "1h" });
      });
    });
    const pawl = await open({ workflows: [busy] }, memoryStore({ clock }));
    await pawl.start(busy, undefined, { id: "r" });
    await pawl.idle();
    clock.advance(60_000);
    expect((await why(pawl, "r")).present[0]).toMatch(/in 59m.*\. It has saved twice, the last time 1m 00s ago\.$/);
  });

  it("S2-7 explains a run that sleeps", async () => {
    const clock = manualClock();
    const sleepy = workflow("sleepy", (ctx) => ctx.sleep("3 days"));
    const pawl = await open({ workflows: [sleepy] }, memoryStore({ clock }));
    await pawl.start(sleepy, undefined, { id: "r" });
    await pawl.idle();
    const { present, wakesAt } = await why(pawl, "r");
    expect(present).toContain('It sleeps ("sleep") until 2026-01-04T00:00:00.000Z, in 3 d.');
    expect(wakesAt).toEqual(new Date("2026-01-04T00:00:00.000Z"));
  });

  it("P34 says which version a stranded run needs, and which ones there are", async () => {
    const pawl = await open();
    await pawl.start("flow", 1, { id: "r", version: "1.2.3" });
    expect((await why(pawl, "r")).next[0]).toBe("Nothing will move it: no worker is running.");
    await pawl.store.register(worker("other", process.pid, { workflow: "another", version: "1.2.3" }));
    expect((await why(pawl, "r")).next[0]).toBe("Nothing will move it: no live worker has this workflow.");
    await pawl.store.register(
      worker("new", process.pid, { workflow: "flow", version: "2.0.0" }, { workflow: "flow", version: "1.2.2" }),
    );
    const { next, isStranded } = await why(pawl, "r");
    expect(isStranded).toBe(true);
    expect(next).toEqual([
      "It is stranded: live workers have only 2.0.0, 1.2.2 of this workflow, which may not take it.",
      'Start one that has workflow "flow" in version 1.2.3 or a later patch of 1.2: pawl worker <file>',
    ]);
    await pawl.store.register(worker("fit", process.pid, { workflow: "flow", version: "1.2.4" }));
    expect(await why(pawl, "r")).toMatchObject({ isStranded: false, next: ["Nothing: it goes on by itself."] });
  });

  it("looks into a few of many children only", async () => {
    const child = workflow("child", (ctx, _: number) => ctx.waitFor("go"));
    const mother = workflow("mother", (ctx) => ctx.map([1, 2, 3, 4, 5, 6, 7, 8], (item) => ctx.call(child, item)));
    const pawl = await open({ workflows: [child, mother] });
    await pawl.start(mother, undefined, { id: "r" });
    await pawl.idle();
    const { summary, present } = await why(pawl, "r");
    expect(summary).toMatch(
      /waiting for child "map\/0\/child", child "map\/1\/child", child "map\/2\/child" and 5 more\.$/,
    );
    expect(present.filter((line) => line.startsWith("Child"))).toHaveLength(5);
  });

  it("refuses a run that is not there", async () => {
    await expect(why(await open(), "nope")).rejects.toMatchObject({ code: "run_not_found" });
  });
});
