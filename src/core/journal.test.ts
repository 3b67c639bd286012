import { expect, it } from "vitest";
import { CALLS, ENDS, type Entry, type EntryType, entryKind, MARKS, NOTES, OUTCOMES } from "./journal.ts";

function entry(type: string, payload: unknown = null): Entry {
  return { seq: 1, at: 0, type: type as EntryType, key: "k", payload };
}

it("P1 every type of entry is a call, an outcome, a note, a mark or an end", () => {
  const failed = { attempt: 1, error: new Error("no"), retryAt: null };
  const kinds = (types: readonly string[]) =>
    new Set(types.map((type) => entryKind(entry(type, type === "step.failed" ? failed : null))));
  expect(kinds(CALLS)).toEqual(new Set(["call"]));
  expect(kinds(OUTCOMES)).toEqual(new Set(["outcome"]));
  expect(kinds(NOTES)).toEqual(new Set(["note"]));
  expect(kinds(MARKS)).toEqual(new Set(["mark"]));
  expect(kinds(ENDS)).toEqual(new Set(["end"]));
});

it("P1 the first attempt of a step is a call, a later one a mark", () => {
  expect(entryKind(entry("step.started"))).toBe("call");
  expect(entryKind(entry("step.started", { attempt: 1, input: [], digest: "d" }))).toBe("call");
  expect(entryKind(entry("step.started", { attempt: 2 }))).toBe("mark");
});

it("P1 a failure is an outcome when it is final, and a mark when another attempt follows", () => {
  const failed = { attempt: 1, error: new Error("no") };
  expect(entryKind(entry("step.failed", { ...failed, retryAt: null }))).toBe("outcome");
  expect(entryKind(entry("step.failed", { ...failed, retryAt: 0 }))).toBe("mark");
});

it("P1 I23 a type that this version does not know is a mark", () => {
  expect(entryKind(entry("run.transmuted"))).toBe("mark");
});
