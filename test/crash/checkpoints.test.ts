// A step that saves on its way, killed behind its second save and once more while it goes on.

import { expect, it, vi } from "vitest";
import type { Checkpoint } from "../../src/core/journal.ts";
import { type KillPoint, live } from "./child.ts";
import { TEST_WORKFLOWS, World } from "./world.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 600_000 });

it("I1 P13 a step killed after its second save, and again before its third, goes on from the second in a third process", async () => {
  const world = new World();
  const runs = [{ workflow: "saving", id: "s", input: null }];
  const task = { engines: [{ store: world.store(), runs }], files: [TEST_WORKFLOWS] };
  const deaths: readonly KillPoint[] = [
    { point: "saved", n: 2 },
    { point: "part", n: 1 },
  ];
  for (const kill of deaths) {
    const child = await live({ ...task, kill }, { env: world.env });
    expect(await child.exited, child.report()).toEqual({ code: null, signal: "SIGKILL" });
    // Acknowledged to the dead process: so it is there.
    expect(savedIn((await world.remains("s")).journal)).toEqual([1, 2]);
  }
  const last = await live(task, { env: world.env });
  expect(await last.exited, last.report()).toEqual({ code: 0, signal: null });
  expect(await last.result("s")).toEqual([
    { n: 1, attempt: 1 },
    { n: 2, attempt: 1 },
    { n: 3, attempt: 3 },
  ]);
  // What was saved was not done again; the third part was, by the process that died before it could save it.
  expect(world.seenOf("s").map(({ action, attempt }) => `${action} by ${attempt}`)).toEqual([
    "part 1 by 1",
    "part 2 by 1",
    "part 3 by 2",
    "part 3 by 3",
  ]);
  const { journal, orphans } = await world.remains("s");
  expect(savedIn(journal)).toEqual([1, 2, 3]);
  expect(orphans).toEqual([]);
});

/** How many parts each checkpoint has. */
function savedIn(journal: readonly { readonly type: string; readonly payload: unknown }[]): number[] {
  const checkpoints = journal.filter(({ type }) => type === "checkpoint").map(({ payload }) => payload as Checkpoint);
  return checkpoints.map(({ value }) => (value as { parts: unknown[] }).parts.length);
}
