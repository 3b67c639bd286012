import { expect, it } from "vitest";
import { encode } from "../base/codec.ts";
import { savedValue, withoutOldCheckpoints } from "./checkpoints.ts";
import { isWellFormed } from "./entry-shape.ts";
import { type Entry, type EntryType, entryKind } from "./journal.ts";

type Line = readonly [type: EntryType, key?: string | null, payload?: unknown];

function journal(...lines: readonly Line[]): Entry[] {
  return lines.map(([type, key = null, payload = null], seq) => ({ seq, at: seq, type, key, payload }));
}

function saved(key: string, value: unknown): Line {
  return ["checkpoint", key, { attempt: 1, value }];
}

it("P1 a checkpoint is a mark of a step: it has a key, an attempt and a value", () => {
  const [entry] = journal(["note"], saved("s", undefined)).slice(1);
  expect(entryKind(entry as Entry)).toBe("mark");
  expect(isWellFormed(entry as Entry)).toBe(true);
  for (const payload of [null, 7, {}, { attempt: 1 }, { attempt: "1", value: 1 }])
    expect(isWellFormed({ ...(entry as Entry), payload })).toBe(false);
  expect(isWellFormed({ ...(entry as Entry), key: null })).toBe(false);
});

it("what was saved is decoded anew each time, from a text as from an entry", () => {
  const value = { at: new Date(5), list: [1] };
  const entry = { payload: { attempt: 1, value } };
  const [first, second] = [savedValue(entry), savedValue(entry)] as [typeof value, typeof value];
  expect(first).toEqual(value);
  first.list.push(2);
  expect(second).toEqual({ at: new Date(5), list: [1] });
  const text = encode({ attempt: 1, value });
  expect(savedValue({ text })).toEqual(value);
  expect(savedValue({ text })).not.toBe(savedValue({ text }));
});

it("of the checkpoints of a journal the newest of each open step is kept", () => {
  const entries = journal(
    ["run.started"],
    ["step.started", "over"],
    ["step.started", "open"],
    ["effect.planned", "failing"],
    ["step.started", "failed"],
    saved("over", 1),
    saved("open", 1),
    saved("failing", 1),
    saved("failed", 1),
    ["step.failed", "failing", { attempt: 1, error: "e", retryAt: 5 }],
    ["step.failed", "failed", { attempt: 1, error: "e", retryAt: null }],
    saved("open", 2),
    ["step.completed", "over", 7],
    ["step.started", "open", { attempt: 2, rerun: true }],
  );
  const kept = withoutOldCheckpoints(entries);
  expect(kept.filter(({ type }) => type === "checkpoint").map(({ seq }) => seq)).toEqual([7, 11]);
  expect(kept.filter(({ type }) => type !== "checkpoint")).toEqual(entries.filter(({ type }) => type !== "checkpoint"));
  const plain = journal(["run.started"], ["step.started", "s"]);
  expect(withoutOldCheckpoints(plain)).toBe(plain);
});
