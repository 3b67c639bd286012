import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { newWorker } from "../store-cases/case.ts";
import { describeScenario } from "./describe-scenario.ts";
import { drawScenario } from "./draw-scenario.ts";
import type { Scenario, Settings } from "./scenario.ts";
import { simulate } from "./simulation.ts";
import { Twin } from "./twin.ts";

// A folder of our own: what is left behind in it was left behind here.
const before = process.env["TMPDIR"];
const folder = mkdtempSync(join(tmpdir(), "pawl-twin-test-"));
beforeAll(() => {
  process.env["TMPDIR"] = folder;
});
afterAll(() => {
  if (before === undefined) delete process.env["TMPDIR"];
  else process.env["TMPDIR"] = before;
  rmSync(folder, { recursive: true, force: true });
});

it("I22 with SQLite beside the model a simulation takes the same way, and leaves no file", async () => {
  for (const seed of [3, 4]) {
    const [memory, sqlite] = [await simulate(on("memory", seed)), await simulate(on("sqlite", seed))];
    expect(sqlite.violation).toBe(null);
    expect(sqlite.trace.join("\n")).toBe(memory.trace.join("\n"));
    expect(describeScenario(sqlite.scenario)).toContain("store sqlite");
  }
  expect(readdirSync(folder)).toEqual([]);
});

it("I22 a power cut takes the same writes from SQLite as from the model", async () => {
  const { settings, ...drawn } = on("sqlite", 3);
  const faults = [{ at: 60, kind: "power-cut", lost: 5, backAfterMs: 1 }] as const;
  const report = await simulate({ ...drawn, settings: { ...settings, durability: "process" }, faults });
  expect(report.violation).toBe(null);
  expect(report.sometimes.get("the power failed and took writes with it")).toBe(1);
});

it("I22 an answer that differs is told with its call and both answers", async () => {
  const differences: string[] = [];
  const twin = new Twin((what) => differences.push(what));
  const at = { pid: 1, wall: 5, monotonic: 6 };
  try {
    twin.follow({ ...at, method: "register", args: [newWorker("w")] }, Promise.resolve());
    twin.follow({ ...at, method: "heartbeat", args: ["w"] }, Promise.resolve({ others: 0, alive: true }));
    twin.follow({ ...at, method: "heartbeat", args: ["v"] }, Promise.resolve({ others: 1, alive: true }));
  } finally {
    await twin.close();
  }
  expect(differences).toEqual([
    'heartbeat("v") gave {"alive":false,"others":1} on SQLite and {"alive":true,"others":1} on the model',
  ]);
});

function on(store: Settings["store"], seed: number): Scenario {
  const drawn = drawScenario(seed);
  return { ...drawn, settings: { ...drawn.settings, store } };
}
