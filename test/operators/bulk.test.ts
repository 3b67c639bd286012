// Bulk: every run that fits is acted on once, however often the bulk is given and wherever it was cut off.
import { describe, expect, it } from "vitest";
import type { BulkOutcome, BulkRequest } from "../../src/client/bulk.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, openWorld, type World } from "../behaviour/harness.ts";

const RUNS = 500;
const waiting = workflow({ name: "waiting" }, async (ctx) => ctx.waitFor("go"));
const failing = workflow({ name: "failing", retry: { max: 0 } }, async (ctx) => {
  await ctx.step("s", () => Promise.reject(new Error("no")));
});

async function startAll(world: World, pawl: Pawl, one: typeof waiting, count = RUNS): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, i) => `r${i}`);
  await Promise.all(ids.map((id) => pawl.start(one, undefined, { id, tags: ["t"] })));
  await world.settle();
  return ids;
}

/** The process that gives the bulk is gone after its second page; another one gives it again. */
async function cutOff(world: World, request: BulkRequest): Promise<BulkOutcome> {
  const first = await world.open();
  await new Promise<void>((resolve) => {
    let pages = 0;
    const onProgress = () => {
      if (++pages < 2) return;
      world.kill(first);
      resolve();
    };
    void first.operations.bulk({ ...request, onProgress });
  });
  return (await world.open()).operations.bulk(request);
}

describe.each(["memory", "sqlite"] as const)("bulk on %s", (store) => {
  it("S2-10 500 runs are cancelled, each once, by a bulk that is cut off in the middle and given again", async () => {
    const world = await openWorld(store);
    const pawl = await world.open([waiting]);
    const ids = await startAll(world, pawl, waiting);
    const request = { action: "cancel", filter: { workflow: "waiting" }, by: "ada", reason: "stop" } as const;
    expect(await pawl.operations.bulk({ ...request, dryRun: true })).toEqual({
      matched: RUNS,
      done: 0,
      already: 0,
      failed: [],
      dryRun: true,
    });
    const outcome = await cutOff(world, request);
    await Promise.all(ids.map((id) => errorOf(pawl.get(id).result())));
    expect(outcome.failed).toEqual([]);
    expect(outcome.done).toBeGreaterThan(0);
    expect(outcome.done).toBeLessThanOrEqual(RUNS - 200);
    for (const id of ids) {
      const types = (await pawl.get(id).journal()).map(({ type }) => type);
      expect(types.filter((type) => type === "run.cancelling" || type === "run.cancelled")).toHaveLength(2);
    }
    const { records } = await pawl.operations.audit();
    expect(records.map(({ action, outcome: what }) => [action, what])).toEqual([
      ["runs.cancel", "begun"],
      ["runs.cancel", "begun"],
      ["runs.cancel", "done"],
    ]);
    expect(JSON.parse(records[2]?.detail ?? "")).toMatchObject({ filter: { workflow: "waiting" }, reason: "stop" });
  });

  it("S2-10 500 runs are retried, each once, by a bulk that is cut off in the middle and given again, and again", async () => {
    const world = await openWorld(store);
    const pawl = await world.open([failing]);
    const ids = new Set(await startAll(world, pawl, failing));
    const request = {
      action: "retry",
      filter: { tag: "t", before: new Date(world.clock.now() + 1) },
      by: "ada",
    } as const;
    await world.advance(10);
    const second = await cutOff(world, request);
    await world.settle();
    expect([second.done + second.already, second.failed]).toEqual([RUNS, []]);
    expect(await pawl.operations.bulk(request)).toMatchObject({ matched: RUNS, done: 0, already: RUNS });
    const heirs = (await world.store.runs({ limit: 9999 })).filter(({ origin }) => origin !== null);
    expect(heirs).toHaveLength(RUNS);
    expect(new Set(heirs.map(({ origin }) => origin))).toEqual(ids);
  });
});

describe("bulk", () => {
  it("S2-10 leaves alone what somebody has retried by hand, and what has ended", async () => {
    const world = await openWorld("memory");
    const pawl = await world.open([failing, waiting]);
    await startAll(world, pawl, failing, 3);
    await pawl.retry("r1");
    await world.settle();
    const before = new Date(world.clock.now() + 1);
    await world.advance(10);
    const outcome = await pawl.operations.bulk({ action: "retry", filter: { search: "r", before }, by: "ada" });
    expect(outcome).toMatchObject({ matched: 3, done: 2, already: 1 });
    await world.settle();
    expect(await pawl.operations.bulk({ action: "cancel", filter: { workflow: "failing" }, by: "ada" })).toMatchObject({
      matched: 0,
    });
    expect(
      await pawl.operations.bulk({ action: "cancel", filter: { status: "failed" }, by: "ada", dryRun: true }),
    ).toMatchObject({ matched: 0, dryRun: true });
  });

  it("S2-10 one run that cannot be retried is told of, and the others are", async () => {
    const world = await openWorld("memory");
    const pawl = await world.open([failing]);
    await startAll(world, pawl, failing, 3);
    const { journal } = world.store;
    const damaged = { ...world.store, journal: (run: string) => (run === "r1" ? Promise.resolve([]) : journal(run)) };
    const { Pawl: Engine } = await import("../../src/client/pawl.ts");
    const client = await Engine.open(damaged, { handleSignals: false });
    const outcome = await client.operations.bulk({ action: "retry", filter: {}, by: "ada" });
    expect(outcome).toMatchObject({ matched: 3, done: 2, failed: [{ id: "r1", error: expect.any(String) }] });
  });

  it("S2-10 says what it does not know, and stops when it is told to", async () => {
    const world = await openWorld("memory");
    const pawl = await world.open([waiting]);
    await startAll(world, pawl, waiting, 150);
    const wrong = { action: "delete" as "cancel", filter: {}, by: "ada" };
    expect(await errorOf(pawl.operations.bulk(wrong))).toMatchObject({ code: "invalid_argument" });
    expect(await errorOf(pawl.operations.bulk({ action: "cancel", filter: {}, by: "" }))).toMatchObject({
      fields: { field: "by" },
    });
    const stop = new AbortController();
    const request = { action: "cancel", filter: {}, by: "ada", signal: stop.signal } as const;
    const outcome = await pawl.operations.bulk({ ...request, onProgress: () => stop.abort() });
    expect(outcome).toMatchObject({ matched: 100, done: 100 });
    expect(JSON.parse((await pawl.operations.audit()).records.at(-1)?.detail ?? "")).toMatchObject({ stopped: true });
  });
});
