import { expect, it } from "vitest";
import * as agents from "../src/agent/index.ts";
import * as ai from "../src/ai/index.ts";
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
    "secret",
    "sqliteStore",
    "workflow",
  ]);
});

it("S2-10 what agents are made of is in a subpath of its own, and what runs them is not", () => {
  const names = Object.keys(agents);
  for (const name of [
    "agent",
    "tool",
    "mcpTools",
    "prompt",
    "section",
    "slice",
    "Session",
    "scriptedModel",
    "DurableLoop",
  ])
    expect(names).toContain(name);
  expect(names.filter((name) => name in pawl)).toEqual([]);
});

it("the exports of pawl/ai are these", () => {
  expect(Object.keys(ai).sort()).toEqual([
    "DurableAgent",
    "durableDownload",
    "durableModel",
    "durableTools",
    "isDenied",
    "stepOf",
    "unguarded",
  ]);
});
