// Example 06 in the situation of the sample that the format of state documents comes from.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { bugfix } from "../examples/06-bugfix/workflow.ts";
import { type LedgerLine, wayBack } from "../examples/fakes.ts";
import { manualClock } from "../src/base/clock.ts";
import { fileStore, Pawl } from "../src/index.ts";
import { gate } from "./behaviour/harness.ts";
import { SAMPLE } from "./fixtures/sample-document.ts";
import { Repository } from "./guards/repository.ts";

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const RUN = "wf-bug-e2e-AE-33995-20260601";

/** A folder with a repository and a ledger; `asked` has what the outside was asked. */
function scene() {
  const folder = mkdtempSync(join(tmpdir(), "pawl-example-"));
  vi.stubEnv("LEDGER", join(folder, "ledger.jsonl"));
  vi.stubEnv("FAKES_LATENCY_MS", "0");
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true, force: true });
  });
  const app = new Repository();
  const open = async (workflows = [bugfix]): Promise<Pawl> => {
    const clock = manualClock(Date.parse("2026-06-01T10:00:00+08:00"));
    const store = fileStore(join(folder, "state"), { clock, durability: "process" });
    const pawl = await Pawl.open(store, { workflows, logger: quiet, handleSignals: false });
    onTestFinished(() => pawl.close({ drain: 1 }));
    return pawl;
  };
  const asked = () =>
    readFileSync(join(folder, "ledger.jsonl"), "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as LedgerLine)
      .map(({ action, about }) => `${action} ${about.replace("AE-33995", "").trim()}`.trim());
  return { folder, app, open, asked };
}

const NEWS = ["reviewer", "comment", "job follow-up", "mail"];

/** The kinds of values, with the values of what is the same in every run of this situation. */
function shapeOf(value: unknown, path = ""): unknown {
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shapeOf(inner, `${path}.${key}`)]));
  if (/_at$/.test(path)) return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d$/.test(String(value));
  // The sample's pointer names a step that is done; here it is the first one that is not.
  return path.endsWith(".step") ? typeof value : value;
}

it("S0-62 S0-2 S0-5 S0-7 example 06 in the middle of its second candidate has a document of the sample's shape", async () => {
  const { app, open } = scene();
  const { travel } = wayBack;
  const stuck = gate();
  wayBack.travel = async (line) => {
    if (!line.about.endsWith("the root cause")) return travel(line);
    stuck.open();
    return new Promise(() => {});
  };
  onTestFinished(() => {
    wayBack.travel = travel;
  });
  const pawl = await open();
  const run = await pawl.start(bugfix, { jira_key: "AE-33995", repository: app.cwd }, { key: "AE-33995" });
  await stuck.passed;
  expect(run.id).toBe(RUN);
  const store = pawl.store as ReturnType<typeof fileStore>;
  const document = JSON.parse(readFileSync(join(store.folderOf(RUN), "state.json"), "utf8"));
  expect(shapeOf(document)).toMatchObject(shapeOf(SAMPLE) as object);
  expect(document.phases.phase_4.step).toBe("step_4_2");
  // What was routed around is not left out, as in the sample, but says why it is done.
  expect(document.phases.phase_2).toMatchObject({ status: "done", skipped: expect.any(String) });
});

it("S0-62 S0-9 S0-10 S0-12 S0-13 C-12 the sample with its output files is imported into example 06 on a file store, and finished", async () => {
  const { folder, app, open, asked } = scene();
  const bug = { issue: "AE-33995", title: "it crashes on start", team: "app", isReproducible: true };
  writeFileSync(join(folder, "bug_info.json"), JSON.stringify(bug));
  writeFileSync(
    join(folder, "candidate_a.json"),
    JSON.stringify({ idea: "by hand", patch: "a better one\n", score: 99 }),
  );
  const pawl = await open();
  const input = { jira_key: "AE-33995", repository: app.cwd };
  const { run, warnings } = await pawl.import(SAMPLE, { workflow: bugfix, outputs: folder, input });
  expect(warnings).toHaveLength(3);
  await run.result();
  expect(asked()).toEqual(["propose the root cause", "propose a guard at the border", ...NEWS]);
  expect([app.count, app.read("fix.patch")]).toEqual([1, "a better one\n"]);
  expect(app.git("log", "--format=%(trailers:key=Pawl-Step,valueonly)").trim()).toBe(`${RUN}/phase_5.commit`);
});
