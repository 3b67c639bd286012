import { describe, expect, it } from "vitest";
import { type AnyRules, patched, type State } from "./patch.ts";

const merge = (state: State, rules: AnyRules, ...patches: State[]) =>
  patched(
    state,
    patches.map((patch, i) => ({ step: `s${i + 1}`, patch })),
    rules,
  );

describe("merge rules", () => {
  it.each<[string, AnyRules[string], unknown, unknown[], unknown]>([
    ["replace: the last one wins", "replace", 1, [2, 3], 3],
    ["append: nobody's items are lost", "append", ["a"], [["b"], ["c", "d"]], ["a", "b", "c", "d"]],
    ["merge: nobody's properties are lost", "merge", { a: 1 }, [{ b: 2 }, { a: 3 }], { a: 3, b: 2 }],
    ["max: the greatest stays", "max", 2, [5, 3], 5],
    [
      "{ by }: items of the same key take each other's place",
      { by: "id" },
      [{ id: 1, n: "old" }, { id: 2 }],
      [
        [{ id: 3, n: "first" }],
        [
          { id: 1, n: "new" },
          { id: 3, n: "second" },
        ],
      ],
      [{ id: 1, n: "new" }, { id: 2 }, { id: 3, n: "second" }],
    ],
    ["a function", (current, value) => `${current}+${value}`, "a", ["b", "c"], "a+b+c"],
  ])("T-16 %s", (_, rule, current, patches, expected) => {
    const changed = merge({ field: current, other: 1 }, { field: rule }, ...patches.map((field) => ({ field })));
    expect(changed).toEqual({ field: expected });
  });

  it("T-16 without a rule one patch replaces, and two of parallel steps are an error that names field and steps", () => {
    expect(merge({ a: 1, b: 1 }, {}, { a: 2 }, { b: 2 })).toEqual({ a: 2, b: 2 });
    expect(() => merge({ a: 1 }, {}, { a: 2 }, { a: 2 })).toThrow(
      expect.objectContaining({ code: "patch_conflict", fields: { field: "a", steps: ["s1", "s2"] } }),
    );
  });

  it.each([
    ["append", ["a"], "b"],
    ["max", 1, "2"],
    ["merge", {}, []],
  ] as const)("T-16 a patch that %s cannot merge is refused", (rule, current, value) => {
    expect(() => merge({ a: current }, { a: rule }, { a: value })).toThrow(
      expect.objectContaining({ code: "invalid_transition", fields: { step: "s1", field: "a" } }),
    );
  });
});
