import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Pawl } from "../src/client/pawl.ts";
import { workflow } from "../src/core/workflow.ts";
import { memoryStore } from "../src/index.ts";
import { loadDriver } from "../src/stores/sqlite/driver.ts";
import { openWorld } from "./behaviour/harness.ts";
import { coldStartFile, replayAll, withoutColdStart } from "./cold-start.ts";
import { coldStartAll, live } from "./crash/child.ts";
import { TEST_WORKFLOWS, World } from "./crash/world.ts";
import { pawl as command, createProject, removeProject } from "./fixtures/cli/command.ts";

const shaky = () => {
  let passes = 0;
  return workflow("shaky", async (ctx) => ctx.step(++passes === 1 ? "first" : "later", () => passes));
};

it("I5 a run that its code does not reproduce is found once its engine has closed, and its test is named", async () => {
  const flow = shaky();
  const pawl = await Pawl.open(memoryStore(), { workflows: [flow], handleSignals: false });
  await pawl.run(flow);
  await pawl.close();
  await expect(replayAll()).rejects.toThrow(
    /1 runs .*\nin "I5 a run that .* has step "first"; the code issued step "later"/,
  );
});

it("I5 the runs of a killed engine are found when another one closes on its store", async () => {
  const world = await openWorld("memory");
  const flow = shaky();
  const killed = await world.open([flow]);
  await killed.run(flow);
  const next = await world.restart([]);
  await next.close();
  await expect(replayAll()).rejects.toThrow("1 runs are not reproduced");
});

it("I5 a test that opts out is left out", async () => {
  withoutColdStart("its body counts its passes on purpose");
  const flow = shaky();
  const pawl = await Pawl.open(memoryStore(), { workflows: [flow], handleSignals: false });
  await pawl.run(flow);
  await pawl.close();
  await replayAll();
});

const WAYWARD = fileURLToPath(new URL("./crash/wayward.mjs", import.meta.url));

describe("runs of child processes", () => {
  /** Runs a workflow to its end in a process of its own. */
  async function runInChild(file: string, workflow: string): Promise<World> {
    const world = new World();
    const runs = [{ workflow, id: "r", input: 20 }];
    const child = await live({ engines: [{ store: world.store(), runs }], files: [file] }, { env: world.env });
    expect((await child.exited).code, child.report()).toBe(0);
    return world;
  }

  /** What the last check of this file has counted. */
  async function counted(): Promise<unknown> {
    const folder = mkdtempSync(join(tmpdir(), "pawl-counted-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    vi.stubEnv("PAWL_COLD_START_REPORT", join(folder, "report.jsonl"));
    onTestFinished(() => void vi.unstubAllEnvs());
    await replayAll();
    return JSON.parse(readFileSync(join(folder, "report.jsonl"), "utf8"));
  }

  it("I5 a run that its code reproduces is counted, and said to be of a child process", async () => {
    await runInChild(TEST_WORKFLOWS, "harmless");
    await coldStartAll();
    expect(await counted()).toMatchObject({ checked: 1, ofChildren: 1, withoutCode: 0, unreadable: 0 });
  });

  it("I5 a run whose code leaves the journal in another process is found, and its test is named", async () => {
    await runInChild(WAYWARD, "wayward");
    await coldStartAll();
    await expect(replayAll()).rejects.toThrow(
      /1 runs .*\nin "runs of child processes > I5 a run whose code leaves .* has step "visit of \d+"; the code issued step "visit of/,
    );
  });

  it("I5 a run whose journal was altered is found: the code comes to another end", async () => {
    const world = await runInChild(TEST_WORKFLOWS, "harmless");
    const db = loadDriver().open(world.store());
    db.exec("update journal set data = '99' where type = 'run.succeeded'");
    db.close();
    await coldStartAll();
    await expect(replayAll()).rejects.toThrow("has run.succeeded 99; the code comes to run.succeeded 41");
  });

  it("I5 the runs of a command are found when its project is removed", async () => {
    const folder = createProject({ "wayward.ts": readFileSync(WAYWARD, "utf8") });
    expect((await command(folder, "run", "wayward.ts", "wayward")).code).toBe(0);
    await removeProject(folder);
    await expect(replayAll()).rejects.toThrow(/1 runs .*\n.* the code issued step "visit of/);
  });

  it("I5 a test that opts out is left out", async () => {
    withoutColdStart("its code goes another way in every process on purpose");
    await runInChild(WAYWARD, "wayward");
    await coldStartAll();
    expect(await counted()).toMatchObject({ checked: 0, optedOut: 1 });
  });

  it("I5 a run whose code is not at hand, and a file that is no store, are counted", async () => {
    const world = await runInChild(TEST_WORKFLOWS, "harmless");
    await coldStartFile(world.store(), []);
    await coldStartFile(WAYWARD, []);
    expect(await counted()).toMatchObject({ checked: 0, withoutCode: 1, unreadable: 1 });
  });
});
