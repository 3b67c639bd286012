import { expect, it } from "vitest";
import { isRefusal } from "./database-error.ts";

it("I2 P17 a pooler's word that the server's connection is gone is no refusal: the statement may have been applied", () => {
  expect(isRefusal({ severity: "ERROR", code: "08P01", message: "server conn crashed?" })).toBe(false);
  expect(isRefusal({ severity: "FATAL", code: "08P01", message: "server conn crashed?" })).toBe(false);
  expect(isRefusal({ severity: "ERROR", code: "40P01", message: "deadlock detected" })).toBe(true);
});
