// Runs before every test file; see cold-start.ts. It loads the engine only after the test file has: a test may have replaced parts of it.
import { afterAll, beforeAll, expect } from "vitest";

const HAS_NO_ENGINE = /\/src\/(base|core|cli)\/[^/]*$/;

// Files that share a process: the name of the last test of the one before is no test of this one.
expect.setState({ currentTestName: "" });

let finish = async (): Promise<void> => {};

beforeAll(async () => {
  if (HAS_NO_ENGINE.test(expect.getState().testPath ?? "")) return;
  const { replayAll, watchEngines } = await import("./cold-start.ts");
  watchEngines();
  finish = replayAll;
});

afterAll(() => finish(), 120_000);
