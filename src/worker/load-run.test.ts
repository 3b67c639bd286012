import { expect, it } from "vitest";
import type { EntryType } from "../core/journal.ts";
import { isParked } from "./load-run.ts";

it.each<[boolean, readonly EntryType[]]>([
  [false, ["run.started"]],
  [true, ["run.started", "step.started", "run.parked"]],
  [true, ["run.parked", "step.refused"]],
  [false, ["run.parked", "run.resolved", "step.started"]],
  [true, ["run.parked", "run.resolved", "run.parked"]],
  [false, ["run.parked", "run.cancelling", "run.compensating", "step.failed"]],
])("I4 P19 that a run is parked is %s after %j: a decision ends it, and so does a cancel", (expected, types) => {
  expect(isParked(types.map((type) => ({ type })))).toBe(expected);
});
