import { expect, it } from "vitest";
import { RetryableError } from "../base/errors.ts";
import { leftUndone } from "./compensation.ts";
import type { Entry, EntryType } from "./journal.ts";

const LOST = new RetryableError("the answer was lost");
const REFUSED = new Error("refused");
const plan = (key: string) => ["effect.planned", key, { attempt: 1, undo: true }] as const;
const failed = (key: string, error: unknown, retryAt: number | null) =>
  ["step.failed", key, { attempt: 1, error, retryAt }] as const;

it("CO1 CO3 what stays of a run is what it did and nobody can tell of, without what was undone, surely failed, or was done before", () => {
  const error = leftUndone(
    "r",
    null,
    entriesOf(
      plan("earlier generation"),
      ["effect.executed", "earlier generation", 1],
      ["run.continued", null, { generation: 1 }],
      plan("done"),
      ["effect.executed", "done", 1],
      plan("undone"),
      ["effect.executed", "undone", 1],
      ["effect.compensated", "undone/undo", null],
      plan("refused"),
      failed("refused", REFUSED, null),
      plan("refused, then done"),
      failed("refused, then done", REFUSED, 5),
      ["step.started", "refused, then done", { attempt: 2 }],
      ["effect.executed", "refused, then done", 1],
      plan("lost, then refused"),
      failed("lost, then refused", LOST, 5),
      ["step.started", "lost, then refused", { attempt: 2 }],
      failed("lost, then refused", REFUSED, null),
      plan("interrupted, then refused"),
      ["step.started", "interrupted, then refused", { attempt: 2, rerun: true }],
      failed("interrupted, then refused", REFUSED, null),
      plan("asked about, then refused"),
      ["effect.unknown", "asked about, then refused", { attempt: 1 }],
      ["step.started", "asked about, then refused", { attempt: 2, rerun: true }],
      failed("asked about, then refused", REFUSED, null),
      plan("under way"),
    ),
    "nobody can undo it",
    REFUSED,
  );
  const remaining = error?.fields["remaining"] as readonly { readonly effect: string }[];
  expect(remaining.map(({ effect }) => effect)).toEqual([
    "done",
    "refused, then done",
    "lost, then refused",
    "interrupted, then refused",
    "under way",
  ]);
  expect(error).toMatchObject({ code: "compensation_incomplete", cause: REFUSED });
});

it("CO3 nothing stays of a run that has undone all it did", () => {
  const entries = entriesOf(plan("a"), ["effect.executed", "a", 1], ["effect.compensated", "a/undo", null]);
  expect(leftUndone("r", null, entries, "nobody can undo it", REFUSED)).toBe(null);
});

it("CO1 S2-45 of a run that undid one action, or that one and the later ones, the others are meant to stay", () => {
  const left = (compensate: object) => {
    const done = ["a", "b", "c"].flatMap((key) => [plan(key), ["effect.executed", key, 1] as const]);
    const error = { fields: { compensate } };
    const entries = entriesOf(...done, ["run.compensating", null, { error }], ["effect.compensated", "c/undo", null]);
    const remaining = leftUndone("r", null, entries, "its code is gone", REFUSED)?.fields["remaining"];
    return ((remaining ?? []) as readonly { readonly effect: string }[]).map(({ effect }) => effect);
  };
  expect(left({ action: "b", later: true })).toEqual(["b"]);
  expect(left({ action: "c", later: false })).toEqual([]);
  expect(left({ action: "nothing" })).toEqual(["a", "b"]);
});

function entriesOf(...lines: readonly (readonly [EntryType, string | null, unknown])[]): Entry[] {
  return lines.map(([type, key, payload], seq) => ({ seq, at: 0, type, key, payload }));
}
