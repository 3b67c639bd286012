import { expect, it, onTestFinished } from "vitest";
import { Pawl } from "../client/pawl.ts";
import { workflow } from "../core/workflow.ts";
import { hasExamples, isEmpty, seed } from "./dev-seed.ts";

async function openStore(): Promise<Pawl> {
  const pawl = await Pawl.open("memory:", { handleSignals: false });
  onTestFinished(() => pawl.close());
  return pawl;
}

it("X-31 examples are for a store in which nothing is, and are known again", async () => {
  const pawl = await openStore();
  expect([await isEmpty(pawl), await hasExamples(pawl)]).toEqual([true, false]);
  const count = await seed(pawl);
  const { runs } = await pawl.list();
  expect(runs.map(({ workflow: name }) => name).sort()).toEqual([
    "example-import",
    "example-label",
    "example-order",
    "example-refund",
    "example-research",
  ]);
  expect(count).toBe(runs.length);
  expect(runs.every(({ tags }) => tags.includes("example"))).toBe(true);
  expect(await pawl.schedules()).toHaveLength(1);
  expect([await isEmpty(pawl), await hasExamples(pawl)]).toEqual([false, true]);
});

it("X-31 a store with a run or a schedule of one's own is not empty", async () => {
  const hello = workflow("hello", async () => "hello");
  const withRun = await openStore();
  await withRun.start(hello, undefined);
  expect(await isEmpty(withRun)).toBe(false);
  const withSchedule = await openStore();
  await withSchedule.schedule("nightly", hello, { cron: "@daily", input: undefined });
  expect(await isEmpty(withSchedule)).toBe(false);
});
