import { expect, it } from "vitest";
import { differences } from "./difference.ts";

it("equal values have no differences", () => {
  expect(differences({ a: [1, new Date(0)] }, { a: [1, new Date(0)] })).toEqual([]);
});

it("names the deepest place", () => {
  const expected = { id: 1, items: [{ cents: 1 }, { cents: 2 }] };
  const actual = { id: 1, items: [{ cents: 1 }, { cents: 3 }] };
  expect(differences(expected, actual)).toEqual([{ path: ".items[1].cents", expected: 2, actual: 3 }]);
});

it("names what is missing and what is new", () => {
  expect(differences({ a: 1 }, { b: 2 })).toEqual([
    { path: ".a", expected: 1, actual: undefined },
    { path: ".b", expected: undefined, actual: 2 },
  ]);
});

it("takes values of other kinds, and lists of other lengths, as a whole", () => {
  expect(differences([1], [1, 2])).toEqual([{ path: "", expected: [1], actual: [1, 2] }]);
  expect(differences(new Set([1]), new Set([2]))).toHaveLength(1);
  expect(differences("a", { a: 1 })).toEqual([{ path: "", expected: "a", actual: { a: 1 } }]);
});
