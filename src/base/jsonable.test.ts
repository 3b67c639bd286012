import { describe, expect, it } from "vitest";
import { PawlError } from "./errors.ts";
import { jsonable } from "./jsonable.ts";

describe("jsonable", () => {
  it("says everything a run can return in plain JSON", () => {
    const value = {
      date: new Date(0),
      bad: new Date(Number.NaN),
      big: 2n ** 64n,
      map: new Map([["a", 1n]]),
      set: new Set([1]),
      bytes: new Uint8Array([1, 2]),
      list: [undefined, new Date(1)],
    };
    expect(JSON.parse(JSON.stringify(jsonable(value)))).toEqual({
      date: "1970-01-01T00:00:00.000Z",
      bad: null,
      big: "18446744073709551616",
      map: [["a", "1"]],
      set: [1],
      bytes: "AQI=",
      list: [null, "1970-01-01T00:00:00.001Z"],
    });
  });

  it("gives an error its code, fields and cause, and no stack", () => {
    const error = new PawlError("run_ended", "over", { fields: { run: "r" }, cause: new TypeError("why") });
    expect(jsonable(error)).toEqual({
      name: "PawlError",
      message: "over",
      code: "run_ended",
      fields: { run: "r" },
      cause: { name: "TypeError", message: "why" },
    });
  });
});
