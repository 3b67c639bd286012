import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { checkpointOf, savedRequest } from "../src/agent/checkpoint-store-cases.ts";
import { directoryStore } from "../src/agent/worker-directory.ts";
import { errorOf, json, pawl, project } from "./fixtures/cli/command.ts";

const PLANNED = {
  key: "e1.1.0:tool.publish.c1",
  tool: "publish",
  args: { topic: "owls" },
  digest: "d",
  status: "unknown",
  plannedAt: 0,
};

it("M-2 X-9 lists workers by what they have left, and gives up or settles what stands still", async () => {
  const root = mkdtempSync(join(tmpdir(), "pawl-agents-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const here = project();
  expect((await pawl(here, "agents", root)).stderr).toContain("No worker has a directory");

  const started = directoryStore({ root, worker: "a" });
  await started.open();
  onTestFinished(() => started.close());
  await started.saveRequest(savedRequest());
  const doubtful = directoryStore({ root, worker: "b" });
  await doubtful.open();
  await doubtful.saveRequest(savedRequest());
  await doubtful.saveCheckpoint(checkpointOf(1, {}, { effects: PLANNED }));
  await doubtful.close();

  const shown = await pawl(here, "agents", root);
  expect(shown.stdout).toMatch(new RegExp(`^a +started +${process.pid} `, "m"));
  expect(shown.stdout).toMatch(/^b +incomplete /m);
  expect(shown.stdout).toContain(`${PLANNED.key}  publish {"topic":"owls"}`);
  expect(await json(here, "agents", root)).toMatchObject({
    workers: [
      { worker: "a", state: "started", execution: "e1", owner: { pid: process.pid } },
      { worker: "b", state: "incomplete", owner: null, unknownEffects: [{ key: PLANNED.key }] },
    ],
  });

  const busy = await pawl(here, "agents", root, "--abandon", "a", "--reason", "enough", "--json");
  expect([busy.code, errorOf(busy)]).toMatchObject([5, { code: "worker_directory_busy" }]);
  expect(errorOf(await pawl(here, "agents", root, "--abandon", "b", "--json"))).toMatchObject({
    code: "invalid_argument",
  });
  expect(errorOf(await pawl(here, "agents", root, "--settle", PLANNED.key, "--json"))).toMatchObject({
    code: "invalid_argument",
  });
  const settled = await json(here, "agents", root, "--worker", "b", "--settle", PLANNED.key, "--no-happened");
  expect(settled).toMatchObject({ workers: [{}, { worker: "b", unknownEffects: [] }] });
  const given = await json(here, "agents", root, "--abandon", "b", "--reason", "enough");
  expect(given).toMatchObject({ workers: [{}, { worker: "b", state: "empty" }] });
  const typo = await pawl(here, "agents", root, "--abandon", "typo", "--reason", "enough", "--json");
  expect(errorOf(typo)).toMatchObject({ code: "invalid_argument", message: expect.stringContaining("typo") });
});
