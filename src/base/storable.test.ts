import { expect, it } from "vitest";
import { readableJson, storable } from "./storable.ts";

class Row {
  readonly id = 7n;
}
const circle: { self?: unknown } = {};
circle.self = circle;

it("C-7 what can be stored stays as it is, and all else is what JSON makes of it", () => {
  const kept = { when: new Date(0), count: 5n, seen: new Set([1]) };
  expect(storable(kept)).toBe(kept);
  expect(storable({ row: new Row(), go: () => 1 })).toEqual({ row: { id: "7" } });
  expect(storable(() => 1)).toBeUndefined();
  expect(storable(circle)).toBe("[object Object]");
});

it("C-7 a value can be read whatever it is", () => {
  expect(readableJson({ n: 5n, seen: new Map([["a", new Set([1])]]) })).toBe('{"n":"5","seen":[["a",[1]]]}');
  expect(readableJson(circle)).toBe('"[object Object]"');
  expect(readableJson(undefined)).toBeUndefined();
});
