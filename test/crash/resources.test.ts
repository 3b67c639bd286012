// What a process holds is bounded by what it works on, not by how much there is to do or was done.

import { expect, it, vi } from "vitest";
import { loadDriver } from "../../src/stores/sqlite/driver.ts";
import { built, startChild } from "../child.ts";
import { World } from "./world.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 600_000 });

/** Less than the results of ten thousand runs, which are 150 MB. */
const HEAP_MB = 128;

/** Works on all runs, `wave` of them at once, and says how each thing stood before and after. */
function burst(store: string, runs: number, wave: number): string {
  return `
    import { Pawl, sqliteStore, workflow } from ${JSON.stringify(built("index.js"))};
    const body = workflow("burst", async (ctx, n) => {
      let length = 0;
      for (const name of ["a", "b", "c"]) length += (await ctx.step(name, () => "x".repeat(5000) + n)).length;
      return length;
    });
    const store = sqliteStore(${JSON.stringify(store)}, { durability: "process" });
    const pawl = await Pawl.open(store, { workflows: [body] });
    await pawl.run(body, 0);
    await pawl.idle();
    // Handles of a kind are counted, not compared: timers come and go.
    const count = () => {
      const counts = {};
      for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
      return counts;
    };
    const before = count();
    for (let first = 0; first < ${runs}; first += ${wave}) {
      await Promise.all(Array.from({ length: ${wave} }, (_, i) => pawl.start(body, first + i)));
      await pawl.idle();
    }
    let right = 0;
    for (let cursor; cursor !== null; ) {
      const page = await pawl.list({ status: "succeeded", limit: 1000, cursor: cursor ?? undefined });
      cursor = page.cursor;
      for (const { id } of page.runs) if (Math.floor((await pawl.get(id).result()) / 15_000) === 1) right += 1;
    }
    await pawl.idle();
    say(JSON.stringify({ right, before, after: count(), mostMb: process.resourceUsage().maxRSS / 1024 }));
    while ((await store.purge({ succeededBefore: Date.now() + 1000, failedBefore: 0, limit: 1000 })) > 0);
    await pawl.close();`;
}

/** How many rows each table has that has any. */
function rowsOf(path: string): Record<string, number> {
  const db = loadDriver().open(path);
  const names = db.prepare("select name from sqlite_master where type = 'table'").all() as { name: string }[];
  const counts = names.map(({ name }) => {
    const [row] = db.prepare(`select count(*) as n from "${name}"`).all() as { n: number }[];
    return [name, row?.n ?? 0] as const;
  });
  db.close();
  return Object.fromEntries(counts.filter(([, n]) => n > 0));
}

it.each([
  ["10,000 runs of three steps at once", 10_000, 10_000],
  ["2,000 runs in waves of 500", 2000, 500],
])(`B68 I27 %s, in a heap of ${HEAP_MB} MB: none is lost, and nothing is kept`, async (_, runs, wave) => {
  const path = new World().store();
  const child = startChild(burst(path, runs, wave), [], [`--max-old-space-size=${HEAP_MB}`]);
  const { right, before, after, mostMb } = JSON.parse(await child.line());
  // One run came before the others, to warm up.
  expect(right).toBe(runs + 1);
  expect(after).toEqual(before);
  // The heap, what SQLite and the driver keep beside it, and Node itself.
  expect(mostMb).toBeLessThan(400);
  await child.rest();
  // The row that says where the audit log ends is always there.
  const { meta, workers: _workers, audit_head: _head, ...rest } = rowsOf(path);
  expect(meta).toBeGreaterThan(0);
  expect(rest).toEqual({});
});
