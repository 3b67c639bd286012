import { describe, expect, it } from "vitest";
import { groupsOf, plansInStore } from "../../src/cli/check/unfinished-runs.ts";
import { Pawl } from "../../src/client/pawl.ts";
import type { Store } from "../../src/core/store.ts";
import type { Workflow } from "../../src/core/workflow.ts";
import { memoryStore, phases, workflow } from "../../src/index.ts";
import { Registry } from "../../src/worker/registry.ts";
import { openWorld, STORES, type World } from "../behaviour/harness.ts";

const waiting = (name: string, version: string, step = "work", more: object = {}) =>
  workflow({ name, version, ...more }, async (ctx) => {
    await ctx.step(step, () => 1);
    await ctx.waitFor("go");
  }) as Workflow;

const phased = (version: string, ...names: readonly string[]) =>
  phases({ name: "phased", version }, [
    { name: "first", steps: names.map((name) => ({ name, run: () => name })) },
    { name: "wait", waitFor: "go" },
  ]) as Workflow;

const BEFORE = [
  waiting("same", "1.0.0"),
  waiting("patch", "1.3.0"),
  waiting("minor", "1.3.0"),
  waiting("major", "1.3.0"),
  waiting("led", "1.3.0"),
  waiting("drift", "1.0.0"),
  phased("1.0.0", "a"),
  workflow({ name: "parked", version: "1.0.0" }, async (ctx) => {
    await ctx.step("work", ({ attempt }) => (attempt === 1 ? new Promise(() => {}) : 1), { recovery: "ask" });
  }) as Workflow,
];

const migrations = [{ from: "1.3", to: "2.0.0", migrate: () => ({}) }];
const AFTER = [
  waiting("same", "1.0.0"),
  waiting("patch", "1.3.1"),
  waiting("minor", "1.3.0"),
  waiting("minor", "1.4.0", "other"),
  waiting("major", "2.0.0"),
  waiting("led", "2.0.0", "other", { migrations }),
  waiting("drift", "1.0.0", "other"),
  phased("1.0.0", "a", "b"),
  waiting("parked", "1.0.0"),
];

const names = BEFORE.map(({ name }) => name);

async function started(world: World): Promise<void> {
  const pawl = await world.open(BEFORE);
  for (const name of names) await pawl.start(name, undefined, { id: `${name}-1` });
  await world.settle();
  world.kill(pawl);
  await world.fence();
  // The run whose step may not be repeated is parked by whoever finds it.
  const next = await world.open(BEFORE);
  await world.settle();
  await next.close();
}

/** Rows, journals and mail of every run. */
async function contents(store: Store): Promise<unknown> {
  const rows = await store.runs({ limit: 1000 });
  return Promise.all(rows.map(async (row) => [row, await store.journal(row.id), await store.inbox?.(row.id)]));
}

describe("plans of unfinished runs", () => {
  it.each(STORES)(
    "S0-50 C-10 S0-48 resumes, stays pinned or needs a decision, and nothing is written: %s",
    async (kind) => {
      const world = await openWorld(kind);
      await started(world);
      const before = await contents(world.store);
      const client = await world.open();
      const plans = await plansInStore(client, names, new Registry(AFTER), () => {});
      expect(await contents(world.store)).toEqual(before);
      expect(
        groupsOf(plans).map(({ runs, plan, cause, with: by, why }) => [runs.join(), plan, cause, by, why]),
      ).toEqual([
        ["same-1", "resumes", null, "1.0.0", "goes on"],
        ["patch-1", "resumes", null, "1.3.1", "goes on, and is of 1.3.1 from then on"],
        ["minor-1", "pinned", null, "1.3.0", "finishes under 1.3.0; new runs are of 1.4.0"],
        [
          "major-1",
          "decision",
          "version",
          null,
          "2.0.0 may not go on with it, and 1.3.0 is not here; no migration leads there",
        ],
        [
          "led-1",
          "decision",
          "version",
          null,
          "2.0.0 may not go on with it, and 1.3.0 is not here; a migration leads there: `pawl resolve RUN migrate`",
        ],
        [
          "drift-1",
          "decision",
          "drift",
          "1.0.0",
          'At entry 1 the journal has step "work"; the code issued step "other".',
        ],
        ["phased-1", "decision", "structure", "1.0.0", "definition changed, version did not"],
        ["parked-1", "decision", "parked", "1.0.0", "it was parked before (unknown_outcome)"],
      ]);
      const drift = plans.find(({ cause }) => cause === "drift");
      expect(drift?.diff?.at(-2)).toBe('- 1  step "work"  recorded');
      expect(drift?.diff?.at(-1)).toMatch(/^\+ 1 {2}step "other" {2}the code {2}at .*run-plans\.test\.ts:\d+:\d+$/);
    },
  );

  it("S0-50 C-10 1,000 runs with three kinds of change: each is read and replayed once, and no other call is made", async () => {
    const store = memoryStore();
    const calls = new Map<string, number>();
    const counted = new Proxy(store, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...args: unknown[]): unknown => {
          calls.set(String(name), (calls.get(String(name)) ?? 0) + 1);
          return Reflect.apply(value, target, args);
        };
      },
    });
    let bodies = 0;
    const one = (name: string, version: string, step: string) =>
      workflow({ name, version }, async (ctx) => {
        bodies += 1;
        await ctx.step(step, () => 1);
        await ctx.waitFor("go");
      }) as Workflow;
    const before = ["a", "b", "c"].map((name) => one(name, "1.0.0", "work"));
    const pawl = await Pawl.open(store, { workflows: before, handleSignals: false });
    await Promise.all(Array.from({ length: 1000 }, (_, n) => pawl.start("abc"[n % 3]!)));
    await pawl.idle();
    bodies = 0;
    const client = await Pawl.open(counted);
    calls.clear();
    const after = [
      one("a", "1.0.1", "work"),
      one("b", "1.0.0", "work"),
      one("b", "1.1.0", "x"),
      one("c", "1.0.0", "x"),
    ];
    const plans = await plansInStore(client, ["a", "b", "c"], new Registry(after), () => {});
    expect(groupsOf(plans).map(({ workflow: name, plan, cause, runs }) => [name, plan, cause, runs.length])).toEqual([
      ["a", "resumes", null, 334],
      ["b", "pinned", null, 333],
      ["c", "decision", "drift", 333],
    ]);
    expect(Object.fromEntries(calls)).toEqual({ runs: 3, run: 3000, journal: 1000 });
    expect(bodies).toBe(1000);
    await client.close();
    await pawl.close();
  });
});
