import { expect, it } from "vitest";
import type { StoredEntry } from "../core/journal.ts";
import { OperatingCounters } from "./operating-counters.ts";

const counters = new OperatingCounters();
let seq = 0;

function told(run: string, type: StoredEntry["type"], key: string, at: number): void {
  counters.committed(run, [{ seq: seq++, at, type, key, data: null, hash: "" }], () => false);
}

/** What was measured since the last time, in seconds. */
let before = counters.value.stepSeconds;
function measured(): { count: number; seconds: number } {
  const { stepSeconds: now } = counters.value;
  const difference = { count: now.count - before.count, seconds: now.sum - before.sum };
  before = now;
  return difference;
}

it("attempts are measured from their start to their end, one after the other and side by side", () => {
  told("r", "step.started", "a", 1000);
  told("r", "step.completed", "a", 3000);
  told("r", "step.started", "b", 3000);
  told("r", "step.started", "c", 4000);
  told("other", "step.started", "b", 0);
  told("r", "step.started", "d", 5000);
  told("r", "step.failed", "c", 5000);
  told("r", "step.completed", "b", 7000);
  told("r", "effect.executed", "d", 8000);
  told("r", "step.started", "b#2", 8000);
  told("r", "step.completed", "b#2", 8500);
  expect(measured()).toEqual({ count: 5, seconds: 2 + 1 + 4 + 3 + 0.5 });
  told("other", "step.completed", "b", 1000);
  expect(measured()).toEqual({ count: 1, seconds: 1 });
  expect(counters.value.steps).toEqual({ completed: 5, failed: 1, retried: 0, unknown: 0 });
});

it("what began in another process is counted, and not measured; nor is one of more runs than are remembered", () => {
  told("elsewhere", "step.completed", "a", 500);
  told("elsewhere", "step.started", "b", 500);
  told("elsewhere", "step.completed", "a", 600);
  expect(measured().count).toBe(0);
  for (let i = 0; i < 10_000; i++) told(`run ${i}`, "step.started", "a", 1000);
  told("elsewhere", "step.completed", "b", 2000);
  expect(measured().count).toBe(0);
  for (let i = 0; i < 10_000; i++) told(`run ${i}`, "step.completed", "a", 2000);
  expect(measured()).toEqual({ count: 10_000, seconds: 10_000 });
});
