// A long journal costs what it holds: reading it is one look at the store, replaying it is one turn for each outcome, and a run that
// continues as a new generation leaves the old ones behind.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { Pawl, type Store, sqliteStore, workflow } from "../src/index.ts";
import { nodeHost } from "../src/worker/node-host.ts";

interface Plan {
  readonly steps: number;
  /** Generations to come. */
  readonly more: number;
}

/** What the body and the steps do is counted; the counts of one life end up in its story. */
const counts = { calls: 0, starts: 0 };

const long = workflow("long", async (ctx, { steps, more }: Plan): Promise<number> => {
  for (let i = 0; i < steps; i++) {
    counts.calls += 1;
    await ctx.step("s", () => {
      counts.starts += 1;
    });
  }
  if (more > 0) return ctx.continueAs({ steps, more: more - 1 });
  await ctx.waitFor("go");
  return steps;
});

/** What it took to go on. */
interface Cost {
  /** Calls that the body issued, and steps that ran. */
  readonly calls: number;
  readonly starts: number;
  /** Callbacks of the event loop that the engine asked for. */
  readonly turns: number;
  /** Calls to the store that returned journal entries, and how many entries. */
  readonly reads: number;
  readonly entries: number;
}

/** Records a run on disk up to its wait, and lets another engine finish it. */
async function resume(plan: Plan): Promise<Cost> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-long-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "pawl.db");
  const first = await openOn(sqliteStore(path, { durability: "process" }));
  await first.start(long, plan, { id: "r" });
  await first.idle();
  await first.close();
  const client = await Pawl.open(path);
  await client.signal("r", "go");
  await client.close();

  Object.assign(counts, { calls: 0, starts: 0 });
  const { store, read } = counting(sqliteStore(path, { durability: "process" }));
  const immediate = vi.spyOn(nodeHost, "immediate");
  const second = await openOn(store);
  await second.idle();
  const cost = { ...counts, ...read, turns: immediate.mock.calls.length };
  immediate.mockRestore();
  expect(await second.get("r").result()).toBe(plan.steps);
  await second.close();
  return cost;
}

function openOn(store: Store): Promise<Pawl> {
  return Pawl.open(store, { workflows: [long], handleSignals: false });
}

function counting(store: Store): { store: Store; read: { reads: number; entries: number } } {
  const read = { reads: 0, entries: 0 };
  const note = (entries: number) => {
    if (entries > 0) read.reads += 1;
    read.entries += entries;
  };
  const counted: Store = {
    ...store,
    async claim(request) {
      const runs = await store.claim(request);
      note(runs.reduce((sum, { journal }) => sum + journal.length, 0));
      return runs;
    },
    async take(worker, run) {
      const claimed = await store.take(worker, run);
      note(claimed?.journal.length ?? 0);
      return claimed;
    },
    async journal(run, range) {
      const entries = await store.journal(run, range);
      note(entries.length);
      return entries;
    },
  };
  return { store: counted, read };
}

it("D-15 a run with 10,000 recorded steps is resumed without running one of them, with one read and work that grows in proportion", async () => {
  const small = await resume({ steps: 1000, more: 0 });
  const large = await resume({ steps: 10_000, more: 0 });
  expect(small).toMatchObject({ calls: 1000, starts: 0, reads: 1 });
  expect(large).toMatchObject({ calls: 10_000, starts: 0, reads: 1 });
  // An entry for each start and each outcome, and a few around them.
  expect(large.entries).toBeLessThan(2 * 10_000 + 10);
  // Ten times as many, and a few that a busy machine adds; what grows faster would ask for a hundred times as many.
  expect(large.turns / small.turns).toBeLessThan(15);
});

it("D-15 the same work in ten generations replays the last one alone", async () => {
  const one = await resume({ steps: 1000, more: 0 });
  const ten = await resume({ steps: 1000, more: 9 });
  expect(ten).toMatchObject({ calls: 1000, starts: 0, reads: 1 });
  // As many, and a few that a busy machine adds; all ten generations would ask for ten times as many.
  expect(ten.turns / one.turns).toBeLessThan(2);
});
