import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { folderName } from "../src/files/folder-name.ts";
import { errorOf, hosted, project, type Result } from "./fixtures/cli/command.ts";
import { SAMPLE } from "./fixtures/sample-document.ts";

const BUGFIX = `
// Made with phases instead of workflow(…).
import { existsSync } from "node:fs";
import { phases } from "pawl";
const step = (name, run = () => name) => ({ name, run });
export const bugfix = phases({ name: "bug-e2e", version: "1.3.0", correlation: "jira_key", retry: false }, [
  { ...step("phase_1", ({ input }) => ({ title: input.jira_key })), output: "bug_info.json" },
  step("phase_2", () => {
    if (existsSync("broken")) throw new Error("no such branch");
    return "phase_2";
  }),
  { name: "phase_4", steps: [
    { ...step("step_4_1"), output: "candidate_a.json" },
    { ...step("step_4_2", ({ outputs }) => outputs.phase_1.title), output: "candidate_b.json" },
    step("step_4_3", ({ outputs }) => outputs.phase_4.step_4_2),
  ] },
]);
`;

/** In the process of the others: the files that they load stay as they are. */
const pawl = (folder: string, ...args: readonly string[]): Promise<Result> => hosted(folder, args);

async function json<T>(folder: string, ...args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await pawl(folder, ...args, "--json");
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as T;
}

interface Document {
  readonly status: string;
  readonly phases: Readonly<
    Record<string, { readonly status: string; readonly skipped?: string; readonly steps?: object }>
  >;
}

describe("phases on the command line", () => {
  it("S0-14 S0-15 S0-17 C-24 E-5 advance executes one phase; a failed one stops it, and a decision goes on", async () => {
    const folder = project({ "bugfix.ts": BUGFIX, broken: "" });
    const advance = (...more: string[]) =>
      pawl(folder, "advance", "bugfix.ts", "bug-e2e", '{"jira_key":"AE-1"}', "--key", "AE-1", ...more);
    const first = await advance("--json");
    expect(first).toMatchObject({ code: 0 });
    const { run, phase } = JSON.parse(first.stdout) as { run: string; phase: string };
    expect(run).toMatch(/^wf-bug-e2e-AE-1-\d{8}$/);
    expect(phase).toBe("phase_1");
    expect(existsSync(join(folder, ".pawl", "outputs", folderName(run), "bug_info.json"))).toBe(true);
    expect(await json(folder, "next", run)).toMatchObject({ action: "run", phase: "phase_2" });
    const blocked = await advance("--json");
    expect({ code: blocked.code, error: errorOf(blocked) }).toMatchObject({
      code: 4,
      error: { code: "phase_blocked", phase: "phase_2", choices: ["retry", "skip", "abort"] },
    });
    const why = await pawl(folder, "why", run);
    expect(why.stdout).toContain("is blocked (phase_blocked)");
    expect(why.stdout).toContain("no such branch");
    expect(why.stdout).toContain(`pawl resolve ${run} skip --reason "…"`);
    expect(why.stdout).not.toContain("pawl signal");
    expect((await pawl(folder, "resolve", run, "skip", "--reason", "by hand")).code).toBe(0);
    expect((await advance("--to-end")).stdout).toBe(`Phase "phase_4" is done; run ${run} has ended.\n`);
    const document = await json<Document>(folder, "show", run, "--document");
    expect(document).toMatchObject({ status: "done", jira_key: "AE-1", phases: { phase_2: { skipped: "by hand" } } });
  });

  it("S0-9 S0-17 S0-23 imports the sample with its files beside it, and resumes it from the document alone", async () => {
    const folder = project({
      "bugfix.ts": BUGFIX,
      "state.json": JSON.stringify(SAMPLE),
      "bug_info.json": '{"title":"it crashes"}',
      "candidate_a.json": '"a"',
    });
    const imported = await json<{ id: string; warnings: string[] }>(
      folder,
      ...["import", "state.json", "--workflow-file", "bugfix.ts"],
    );
    expect(imported.id).toBe(SAMPLE.workflow_id);
    expect(imported.warnings).toHaveLength(3);
    const done = await json<{ output: unknown }>(folder, "run", "bugfix.ts", "bug-e2e", "--id", imported.id);
    expect(done.output).toMatchObject({ phase_4: { step_4_3: "it crashes" } });
    expect((await pawl(folder, "export", imported.id, "--document", "--out", "after.json")).code).toBe(0);
    const after = JSON.parse(readFileSync(join(folder, "after.json"), "utf8")) as Document;
    expect(after).toMatchObject({
      status: "done",
      phases: { phase_1: { status: "done" }, phase_4: { status: "done" } },
    });
    expect(await json(folder, "next", "--document", "after.json")).toMatchObject({ action: "nothing" });
  });

  it("E-3 tells what is wrong with a document, and where", async () => {
    const folder = project({ "bugfix.ts": BUGFIX });
    const wrong = { ...SAMPLE, phases: { phase_1: { status: "finished" } } };
    writeFileSync(join(folder, "state.json"), JSON.stringify(wrong));
    const refused = await pawl(folder, "import", "state.json", "--workflow-file", "bugfix.ts", "--json");
    expect({ code: refused.code, error: errorOf(refused) }).toMatchObject({
      code: 2,
      error: { code: "invalid_state_document", path: "phases.phase_1.status" },
    });
    writeFileSync(join(folder, "state.json"), "{");
    expect(await pawl(folder, "next", "--document", "state.json")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("state.json is not JSON"),
    });
    const text = JSON.stringify(SAMPLE);
    writeFileSync(join(folder, "state.json"), text.replace('"phases":{', '"phases":{"phase_1":{"status":"pending"},'));
    expect(errorOf(await pawl(folder, "next", "--document", "state.json", "--json"))).toMatchObject({
      code: "invalid_state_document",
      path: "phases.phase_1",
    });
    writeFileSync(join(folder, "state.json"), `\uFEFF${text}`);
    expect(await json(folder, "next", "--document", "state.json")).toMatchObject({ action: "run", phase: "phase_4" });
  });
});
