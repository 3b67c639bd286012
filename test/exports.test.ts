import { expect, it } from "vitest";
import * as pawl from "../src/index.ts";

it("S2-10 the root exports are few, and only these", () => {
  expect(Object.keys(pawl).sort()).toEqual([
    "ERROR_CATEGORIES",
    "Pawl",
    "PawlError",
    "RetryableError",
    "TerminalError",
    "errorCategory",
    "fileStore",
    "hasCode",
    "machine",
    "memoryStore",
    "phases",
    "postgresStore",
    "sqliteStore",
    "workflow",
  ]);
});
