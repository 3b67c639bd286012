import { expect, it } from "vitest";
import { table } from "./table.ts";

it("aligns columns, right where asked, and leaves no spaces at the end", () => {
  expect(
    table(
      [
        ["A", "N", "B"],
        ["long", "1", ""],
        ["x", "100", "y"],
      ],
      { right: [1] },
    ),
  ).toEqual(["A       N  B", "long    1", "x     100  y"]);
});

it("cuts the last column to the width of the terminal", () => {
  expect(table([["key", "a very long payload that goes on"]], { width: 20 })).toEqual(["key  a very long pa…"]);
});

it("paints a cell without counting the colours, and the header as a whole", () => {
  const paint = (text: string) => `<${text}>`;
  expect(
    table(
      [
        ["H", "I"],
        [{ text: "ab", paint }, "c"],
      ],
      { header: (text) => text.toLowerCase() },
    ),
  ).toEqual(["h   i", "<ab>  c"]);
});

it("counts wide and combining characters as a terminal does", () => {
  expect(
    table([
      ["日本", "x"],
      ["abcd", "y"],
      ["e\u0301", "z"],
    ]),
  ).toEqual(["日本  x", "abcd  y", "e\u0301     z"]);
});
