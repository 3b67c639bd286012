import { expect, it } from "vitest";
import { isHandled } from "./version-line.ts";

const handle = { workflow: "w", version: "1.2.3" };

it("P34 a worker runs its own line up to its own patch", () => {
  const versions = ["1.2.0", "1.2.3", "1.2.4", "1.3.0", "2.2.3"];
  expect(versions.filter((version) => isHandled([handle], "w", version))).toEqual(["1.2.0", "1.2.3"]);
  expect(isHandled([handle], "other", "1.2.3")).toBe(false);
  expect(versions.filter((version) => isHandled([{ ...handle, policy: "exact" }], "w", version))).toEqual(["1.2.3"]);
  expect(versions.every((version) => isHandled([{ ...handle, policy: "ignore" }], "w", version))).toBe(true);
});

it("A7 nobody runs what is no version", () => {
  for (const version of ["", "2", "1.2", "1.2.3 ", "v1.2.3", "1.2.-3"])
    expect(isHandled([handle], "w", version), version).toBe(false);
});
