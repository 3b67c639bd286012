import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { hosted, type Result } from "./fixtures/cli/command.ts";

const RELEASE = fileURLToPath(new URL("./fixtures/mcp/release.yaml", import.meta.url));

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "pawl-cli-playbook-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true, maxRetries: 3 }));
  cpSync(RELEASE, join(made, "release.yaml"));
  return made;
}

it("S0-2 S0-17 X-31 pawl playbook: one document in an empty folder, the same answer from next and status, refusals with the reason", async () => {
  const cwd = folder();
  const playbook = (...args: string[]): Promise<Result> => hosted(cwd, ["playbook", ...args]);
  expect(await playbook("next")).toMatchObject({ code: 5, stderr: expect.stringContaining("There is no store") });
  expect(readdirSync(cwd)).toEqual(["release.yaml"]);
  const started = await playbook("start", "release.yaml", "--key", "2.4.0", "--by", "bot");
  expect(started).toMatchObject({ code: 0, stdout: expect.stringContaining('Next: step "draft.collect"') });
  expect(await playbook("done", "draft.collect", "--output", "release.yaml")).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/nobody has begun it[\s\S]*First: pawl playbook begin draft\.collect --key 2\.4\.0/),
  });
  expect(await playbook("begin", "draft.write", "--by", "bot")).toMatchObject({ code: 2 });
  expect(await playbook("begin", "draft.collect", "--by", "bot")).toMatchObject({ code: 0 });
  writeFileSync(join(cwd, "mine.md"), "all of it\n");
  const done = await playbook("done", "collect", "--output", "changes.md=mine.md", "--by", "bot", "--json");
  const answer = JSON.parse(done.stdout) as { action: string; step: string; files: { path: string }[] };
  expect(answer).toMatchObject({ action: "do", step: "draft.write", files: [{ file: "changes.md" }] });
  expect(readFileSync(answer.files[0]?.path ?? "", "utf8")).toBe("all of it\n");
  expect(JSON.parse((await playbook("status", "--json")).stdout)).toEqual(answer);
  // Options that all commands have may come first.
  expect(JSON.parse((await hosted(cwd, ["--json", "playbook", "next"])).stdout)).toEqual(answer);
  const { stdout } = await playbook("status", "--key", "2.4.0");
  expect(stdout).toMatch(/^✓ draft\.collect {2}done {2}bot\n· draft\.write {2}pending\n· review {2}pending\n· publish/);
  expect(readdirSync(join(cwd, ".pawl", "playbooks", "runs"))).toHaveLength(1);
  writeFileSync(join(cwd, "bad.yaml"), "name: bad\nversion: 1.0.0\nphases:\n  - nme: a\n");
  expect(await playbook("start", "bad.yaml", "--key", "k", "--json")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(
      '"code":"invalid_playbook","message":"Playbook bad.yaml: phases[0].nme is no field',
    ),
  });
});
