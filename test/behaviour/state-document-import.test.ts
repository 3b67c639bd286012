import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { PhaseWork } from "../../src/flows/phase-spec.ts";
import { phases } from "../../src/flows/phases.ts";
import { SAMPLE } from "../fixtures/sample-document.ts";
import { errorOf, openWorld, STORES } from "./harness.ts";

/** The situation of the format's origin, with its files in a folder of their own. */
function sample(change: (document: Sample) => unknown = () => {}) {
  const folder = mkdtempSync(join(tmpdir(), "pawl-import-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "bug_info.json"), '{"title":"it crashes"}\n');
  writeFileSync(join(folder, "candidate_a.json"), '{"patch":"a"}\n');
  const document: Sample = structuredClone(SAMPLE);
  change(document);
  return { folder, document };
}

// biome-ignore lint/suspicious/noExplicitAny: tests change it where they like.
type Sample = Record<string, any>;

interface Outputs {
  readonly phase_1: { readonly title: string };
  readonly phase_4: { readonly step_4_1: { readonly patch: string }; readonly step_4_2: { readonly patch: string } };
}

/** Five phases in the order of the definition; `called` has those whose code was executed. */
function bugfix(called: string[], version = "1.3.0") {
  const outputs = mkdtempSync(join(tmpdir(), "pawl-bugfix-"));
  onTestFinished(() => rmSync(outputs, { recursive: true, force: true }));
  const work = (name: string, run: (given: PhaseWork<unknown, Outputs>) => unknown = () => null) => ({
    name,
    run: (given: PhaseWork<unknown, Outputs>) => {
      called.push(name);
      return run(given);
    },
  });
  return phases<unknown, Outputs>({ name: "bug-e2e", version, correlation: "jira_key", outputs, retry: false }, [
    { ...work("phase_1", () => ({ title: "it crashes" })), output: "bug_info.json" },
    work("phase_2"),
    work("phase_3"),
    {
      name: "phase_4",
      steps: [
        { ...work("step_4_1", () => ({ patch: "a" })), output: "candidate_a.json" },
        {
          ...work("step_4_2", ({ outputs }) => ({ patch: `${outputs.phase_1.title}: b` })),
          output: "candidate_b.json",
        },
        work("step_4_3", ({ outputs: { phase_4 } }) => [phase_4.step_4_1.patch, phase_4.step_4_2.patch]),
      ],
    },
    work("phase_5"),
  ]);
}

describe.each(STORES)("importing a state document on %s", (store) => {
  it("S0-9 S0-10 S0-11 S0-12 S0-13 S0-23 C-12 resumes the sample: what is done untouched, step_4_2 again, then step_4_3", async () => {
    const world = await openWorld(store);
    const called: string[] = [];
    const made = bugfix(called);
    const pawl = await world.open([made]);
    const { folder, document } = sample();
    const { run, warnings } = await pawl.import(document, { workflow: made, outputs: folder });
    expect(run.id).toBe("wf-bug-e2e-AE-33995-20260601");
    expect(warnings).toEqual([
      'phases.phase_4.step names "step_4_1", which is done, while "step_4_2" is in_progress. The statuses decide.',
      expect.stringMatching(
        /^phases\.phase_1 has no hash for bug_info\.json\. It is recorded now: sha256:[0-9a-f]{64}\.$/,
      ),
      expect.stringMatching(/^phases\.phase_4\.steps\.step_4_1 has no hash for candidate_a\.json\./),
    ]);
    rmSync(folder, { recursive: true });
    expect(await run.result()).toMatchObject({ phase_4: { step_4_3: ["a", "it crashes: b"] } });
    expect(called).toEqual(["step_4_2", "step_4_3", "phase_5"]);
    const after = await run.document();
    expect(after).toMatchObject({
      workflow_id: "wf-bug-e2e-AE-33995-20260601",
      jira_key: "AE-33995",
      started_at: "2026-06-01T02:00:00.000+00:00",
      status: "done",
    });
    expect(after.phases).toMatchObject({
      phase_1: {
        status: "done",
        completed_at: "2026-06-01T02:02:30.000+00:00",
        output_file: "bug_info.json",
        output_hash: expect.stringMatching(/^sha256:/),
      },
      phase_2: { status: "done", skipped: "not in the document that the run was taken over from" },
    });
    expect((await pawl.find(made, "AE-33995"))?.id).toBe(run.id);
  });

  it("S0-10 T-2 shuffled keys change nothing; a phase that lies ahead and is missing is executed", async () => {
    const world = await openWorld(store);
    const called: string[] = [];
    const made = bugfix(called);
    const pawl = await world.open([made]);
    const { folder, document } = sample((given) => {
      const { phase_1, phase_4 } = given["phases"];
      const { step_4_1, step_4_2, step_4_3 } = phase_4.steps;
      given["phases"] = { phase_4: { ...phase_4, steps: { step_4_3, step_4_2, step_4_1 } }, phase_1 };
    });
    const { run } = await pawl.import(document, { workflow: made, outputs: folder });
    await run.result();
    expect(called).toEqual(["step_4_2", "step_4_3", "phase_5"]);
  });

  it("S0-15 T-1 a phase that failed elsewhere blocks here, and nothing after it is called", async () => {
    const world = await openWorld(store);
    const called: string[] = [];
    const made = bugfix(called);
    const pawl = await world.open([made]);
    const { folder, document } = sample((given) => {
      given["phases"] = {
        phase_1: given["phases"].phase_1,
        phase_2: { status: "failed", error: "no such branch" },
        phase_3: { status: "pending" },
      };
    });
    const { run } = await pawl.import(document, { workflow: made, outputs: folder });
    const blocked = await errorOf(pawl.advance(run.id, { to: "end" }));
    expect(blocked).toMatchObject({
      code: "phase_blocked",
      fields: { phase: "phase_2", error: "no such branch", choices: ["retry", "skip", "abort"] },
    });
    expect(called).toEqual([]);
    await pawl.resolve(run.id, { choice: "skip", value: "done by hand" });
    await run.result();
    expect(called).toEqual(["phase_3", "step_4_1", "step_4_2", "step_4_3", "phase_5"]);
  });

  it("S0-15 a step that failed elsewhere is tried again when somebody says so", async () => {
    const world = await openWorld(store);
    const called: string[] = [];
    const made = bugfix(called);
    const pawl = await world.open([made]);
    const { folder, document } = sample((given) => {
      given["phases"].phase_4.status = "failed";
      given["phases"].phase_4.steps.step_4_2 = { status: "failed", error: "flaky" };
    });
    const { run } = await pawl.import(document, { workflow: made, outputs: folder });
    expect(await errorOf(pawl.advance(run.id, { to: "end" }))).toMatchObject({ fields: { at: "phase_4.step_4_2" } });
    await pawl.resolve(run.id, "retry");
    await run.result();
    expect(called).toEqual(["step_4_2", "step_4_3", "phase_5"]);
  });
});

describe("what is refused at import", () => {
  const refusal = async (
    change: (document: Sample) => unknown,
    version = "1.3.0",
    spoil?: (folder: string) => void,
  ) => {
    const world = await openWorld("memory");
    const made = bugfix([], version);
    const pawl = await world.open([made]);
    const { folder, document } = sample(change);
    spoil?.(folder);
    const error = await errorOf(pawl.import(document, { workflow: made, outputs: folder }));
    expect((await pawl.list()).runs).toEqual([]);
    return error;
  };

  it("S0-47 a document without a version, or of another one, is a mismatch that names the choices", async () => {
    const none = await refusal((given) => delete given["workflow_version"]);
    expect(none).toMatchObject({ code: "version_mismatch", fields: { saved: null, current: "1.3.0" } });
    for (const version of ["1.2.9", "1.4.0", "2.0.0", "1.3.0"]) {
      const change = (given: Sample) => (given["workflow_version"] = version === "1.3.0" ? "1.3.1" : "1.3.0");
      const error = await refusal(change, version);
      expect(error, version).toMatchObject({
        code: "version_mismatch",
        fields: { choices: ["old", "fresh", "migrate"] },
      });
      expect(error.message).toMatch(/1\. .* 2\. .* 3\. /);
    }
  });

  it.each([null, [], "state.json", 7, undefined])(
    "E-3 what is no document is none, whatever its version: %j",
    async (given) => {
      const world = await openWorld("memory");
      const made = bugfix([], "1.3.0");
      const pawl = await world.open([made]);
      const error = await errorOf(pawl.import(given, { workflow: made }));
      expect(error).toMatchObject({ code: "invalid_state_document", fields: { path: "" } });
    },
  );

  it("E-3 a version that is no text is named by its path", async () => {
    const error = await refusal((given) => (given["workflow_version"] = 1.3));
    expect(error).toMatchObject({ code: "invalid_state_document", fields: { path: "workflow_version" } });
  });

  it("S0-24 E-4 a file that is gone or was changed is not passed off as the output", async () => {
    const gone = await refusal(
      () => {},
      "1.3.0",
      (folder) => rmSync(join(folder, "bug_info.json")),
    );
    expect(gone).toMatchObject({ code: "output_missing", fields: { phase: "phase_1", file: "bug_info.json" } });
    const other = await refusal((given) => (given["phases"].phase_1.output_hash = `sha256:${"0".repeat(64)}`));
    expect(other).toMatchObject({ code: "output_missing", fields: { phase: "phase_1" } });
  });

  it("E-3 names that the workflow does not have, files outside, and a run that has ended", async () => {
    const phase = await refusal((given) => (given["phases"].phase_9 = { status: "done" }));
    expect(phase).toMatchObject({ code: "invalid_state_document", fields: { path: "phases.phase_9" } });
    const step = await refusal((given) => (given["phases"].phase_4.steps.more = { status: "done" }));
    expect(step).toMatchObject({ fields: { path: "phases.phase_4.steps.more" } });
    const outside = await refusal((given) => (given["phases"].phase_1.output_file = "../bug_info.json"));
    expect(outside).toMatchObject({ fields: { path: "phases.phase_1.output_file" } });
    expect(await refusal((given) => (given["status"] = "done"))).toMatchObject({ code: "run_ended" });
    expect(await refusal((given) => (given["workflow_id"] = "a/b"))).toMatchObject({ fields: { path: "workflow_id" } });
  });

  it("S0-4 a document never takes the place of a run", async () => {
    const world = await openWorld("memory");
    const made = bugfix([]);
    const pawl = await world.open([made]);
    const { folder, document } = sample();
    await pawl.import(document, { workflow: made, outputs: folder });
    expect(await errorOf(pawl.import(document, { workflow: made, outputs: folder }))).toMatchObject({
      code: "idempotency_conflict",
    });
  });

  it("S0-4 C-9 the key of the business belongs to one run: a document of another one is not passed off as that", async () => {
    const world = await openWorld("memory");
    const made = bugfix([], "1.3.0");
    const pawl = await world.open([made]);
    const { folder, document } = sample(() => {});
    const { run } = await pawl.import(document, { workflow: made, outputs: folder });
    const error = await errorOf(
      pawl.import({ ...document, workflow_id: "another" }, { workflow: made, outputs: folder }),
    );
    expect(error).toMatchObject({ code: "idempotency_conflict", fields: { run: run.id } });
    expect((await pawl.list()).runs.map(({ id }) => id)).toEqual([run.id]);
  });

  it("S0-16 C-6 what a document was exported with leads to the same end elsewhere, a later patch included", async () => {
    const here = await openWorld("memory");
    const made = bugfix([]);
    const pawl = await here.open([made]);
    const run = await pawl.start(made, { jira_key: "AE-7" }, { key: "AE-7", advance: true });
    for (let phase = 0; phase < 4; phase++) await pawl.advance(run.id);
    const document = JSON.parse(JSON.stringify(await run.document()));
    // An in-memory store has no place for files: they are where the workflow says.
    const outputs = made.outputsOf(run);
    expect(readFileSync(join(outputs, "candidate_b.json"), "utf8")).toContain("b");
    const there = await openWorld("memory");
    const called: string[] = [];
    const patched = bugfix(called, "1.3.4");
    const other = await there.open([patched]);
    const { run: taken, warnings } = await other.import(document, { workflow: patched, outputs });
    expect(warnings).toEqual([]);
    await taken.result();
    expect(called).toEqual(["phase_5"]);
  });
});
