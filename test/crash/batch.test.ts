// A long batch that is killed again and again, and a process that never lives for long.

import { expect, it, vi } from "vitest";
import { type EngineRequest, live, type RunRequest } from "./child.ts";
import { everyTime, killLives } from "./killed-lives.ts";
import { example, TEST_WORKFLOWS, World } from "./world.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 600_000 });

it("S4-2 D-12 I6 a batch of 5,000 with five kills: each item's outcome is recorded once, each effect happened once", async () => {
  const world = new World();
  const run: RunRequest = { workflow: "invoices", id: "batch", input: { month: "2031-05", customers: 5000 } };
  const task = { engines: [{ store: world.store(), runs: [run] }], files: [example("02-batch")] };
  // In mid-transaction, right behind one, and between an effect and its outcome.
  for (const kill of [
    { point: "effect", n: 700 },
    { point: "before-commit", n: 30 },
    { point: "effect", n: 999 },
    { point: "after-commit", n: 20 },
    { point: "effect", n: 1 },
  ]) {
    const child = await live({ ...task, kill }, { env: world.env });
    expect(await child.exited, child.report()).toEqual({ code: null, signal: "SIGKILL" });
  }
  const child = await live(task, { env: world.env });
  expect(await child.exited, child.report()).toEqual({ code: 0, signal: null });
  expect(await child.result("batch")).toMatchObject({ invoices: 5000 });

  const { journal, orphans } = await world.remains("batch");
  const outcomes = journal
    .filter(({ type, key }) => type === "step.completed" && key !== "customers")
    .map(({ key }) => key);
  expect(outcomes.length).toBe(5000);
  expect(new Set(outcomes).size).toBe(5000);
  expect(orphans).toEqual([]);
  const ledger = world.ledger();
  const effects = ledger.filter(({ did }) => did);
  expect(effects.length).toBe(5000);
  expect(new Set(effects.map(({ about }) => about)).size).toBe(5000);
  // Twenty at a time are in flight, and only those may be asked for again.
  expect(ledger.length - effects.length).toBeLessThanOrEqual(5 * 20);
});

it("I6 I19 P28 a process that never lives for more than a few commits still gets there", async () => {
  const world = new World();
  const runs: RunRequest[] = [{ workflow: "invoices", id: "batch", input: { month: "2031-05", customers: 24 } }];
  const task = { engines: [{ store: world.store(), runs }], files: [example("02-batch")] };
  let lives = 1;
  // Register, fence the dead, find the run started already, claim it, mark what is run again; then there is progress.
  for (; lives < 40; lives++) {
    const child = await live({ ...task, kill: { point: "after-commit", n: 7 } }, { env: world.env });
    if ((await child.exited).code === 0) break;
  }
  const { journal, status } = await world.remains("batch");
  expect(status?.state, journal.map(({ seq, type, key }) => `${seq} ${type} ${key}`).join("\n")).toBe("succeeded");
  expect(lives).toBeGreaterThan(3);
  expect(world.ledger().filter(({ did }) => did).length).toBe(24);
});

it("S0-20 S3-10 a failure is on disk before anybody hears of it, and is not tried again after a crash", async () => {
  const world = new World();
  const engine = (id: string) => ({ store: world.store(id), runs: [{ workflow: "failing", id, input: null }] });
  const lifeOf = (engines: readonly EngineRequest[]) => live({ engines, files: [TEST_WORKFLOWS] }, { env: world.env });
  const undisturbed = await lifeOf([engine("whole")]);
  expect(await undisturbed.exited, undisturbed.report()).toEqual({ code: 0, signal: null });
  expect(world.seenOf("whole").length).toBe(1);
  const kills = everyTime("after-commit", await undisturbed.reached("after-commit"));
  expect(kills.length).toBeGreaterThanOrEqual(3);
  const killed = await killLives(kills, { next: ({ n }) => engine(`f${n}`), live: lifeOf });
  expect(killed.length).toBe(kills.length);
  const lives = [{ run: "whole", child: undisturbed }, ...killed];
  const found = await Promise.all(
    lives.map(async ({ run, child }) => {
      const { journal } = await world.remains(run, run);
      const wasRecorded = journal.some(({ type }) => type === "step.failed");
      const wasHeard = child.said.some((said) => said.event === "result" && said["run"] === run);
      if (wasHeard) expect(wasRecorded, run).toBe(true);
      return { run, wasRecorded, before: world.seenOf(run).length };
    }),
  );
  expect(new Set(found.map(({ wasRecorded }) => wasRecorded))).toEqual(new Set([true, false]));
  const second = await lifeOf(lives.map(({ run }) => engine(run)));
  for (const { run, wasRecorded, before } of found) {
    expect(await second.result(run), second.report()).toMatchObject({ error: { message: "no such account" } });
    if (wasRecorded) expect(world.seenOf(run).length, run).toBe(before);
  }
});
