import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { Program } from "./child.ts";
import { hosted } from "./fixtures/cli/command.ts";

const MAIN = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const CLIENT = fileURLToPath(new URL("./fixtures/mcp/client.mjs", import.meta.url));
const RELEASE = fileURLToPath(new URL("./fixtures/mcp/release.yaml", import.meta.url));
const STORE = "file:.pawl/playbooks";
const KEY = { key: "2.4.0" };

type Answer = Record<string, unknown> & { readonly said: string; readonly isError: boolean };

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "pawl-mcp-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true, maxRetries: 3 }));
  cpSync(RELEASE, join(made, "release.yaml"));
  return made;
}

/** A conversation: an agent and a server of its own. */
function conversation(cwd: string, calls: readonly (readonly [string, object])[]) {
  const server = [process.execPath, MAIN, "mcp", "--as", "builder", "release.yaml"];
  const { PAWL_STORE: _, ...env } = process.env;
  const client = new Program([process.execPath, CLIENT, JSON.stringify(server), JSON.stringify(calls)], { cwd, env });
  const said = () => client.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  return {
    /** All answers, once the script is over. */
    async answers(): Promise<readonly Answer[]> {
      await client.until(() => said().find(({ over }) => over === true));
      return said().slice(1, -1) as unknown as readonly Answer[];
    },
    /** Agent and server die together, without a word. */
    async kill(): Promise<void> {
      const { server: pid } = said()[0] as { server: number };
      client.process.kill("SIGKILL");
      process.kill(pid, "SIGKILL");
      await client.exited;
    },
    async leave(): Promise<void> {
      client.tell("bye");
      expect(await client.exited, client.report()).toMatchObject({ code: 0 });
    },
  };
}

function documentIn(cwd: string): Record<string, unknown> {
  const runs = join(cwd, ".pawl", "playbooks", "runs");
  const [run = ""] = readdirSync(runs);
  return JSON.parse(readFileSync(join(runs, run, "state.json"), "utf8"));
}

describe("pawl mcp", () => {
  it("S0-16 S0-17 S2-1 a client is cut off in the middle, and new ones finish the playbook from the file alone", async () => {
    const cwd = folder();
    const changes = { "changes.md": "changes.md" };
    writeFileSync(join(cwd, "changes.md"), "changes.md of draft.collect\n");
    const first = conversation(cwd, [
      ["playbook_list", {}],
      ["playbook_start", { playbook: "release", ...KEY }],
      ["playbook_begin", { step: "draft.collect", ...KEY }],
      ["send", { tool: "playbook_done", arguments: { step: "draft.collect", outputs: changes, ...KEY } }],
    ]);
    const [list, started, begun] = await first.answers();
    await first.kill();
    expect(list).toMatchObject({ playbooks: [{ name: "release", version: "1.0.0" }], runs: [] });
    expect(started).toMatchObject({ action: "do", step: "draft.collect", begun_by: null, outputs: ["changes.md"] });
    expect(started?.said).toContain("List what has changed.");
    expect(begun).toMatchObject({ action: "do", begun_by: "builder" });
    expect(documentIn(cwd)).toMatchObject({ release: "2.4.0", status: "in_progress" });

    // A conversation that believes to be further than it is.
    const second = conversation(cwd, [
      ["playbook_done", { step: "publish", outputs: { "link.txt": "changes.md" }, ...KEY }],
      ["follow", KEY],
      ["playbook_begin", { step: "publish", ...KEY }],
      ["playbook_approve", { id: "any" }],
      ["tools", {}],
    ]);
    const answers = await second.answers();
    await second.kill();
    expect(answers[0]).toMatchObject({ isError: true, error: { code: "invalid_argument" } });
    expect(answers[0]?.said).toContain("the run does not stand there");
    const waiting = answers.find(({ action }) => action === "wait") as Answer;
    expect(waiting).toMatchObject({
      approvals: [{ name: "review", approvers: ["ann", "role:editor"] }],
      step: "review",
    });
    expect(waiting.said).toContain("nor approve this yourself");
    expect(answers.slice(-3, -1)).toMatchObject([{ isError: true }, { isError: true }]);
    expect(answers.at(-1)).toEqual(
      ["list", "start", "next", "begin", "done", "fail", "status"].map((name) => `playbook_${name}`),
    );

    const [{ id } = { id: "" }] = waiting["approvals"] as { id: string }[];
    const own = await hosted(cwd, ["approve", id, "--by", "builder", "--role", "editor", "--store", STORE]);
    expect(own).toMatchObject({ code: 2, stderr: expect.stringContaining("it needs four eyes") });
    expect(await hosted(cwd, ["approve", id, "--by", "ann", "--store", STORE])).toMatchObject({ code: 0 });

    const third = conversation(cwd, [
      ["follow", KEY],
      ["playbook_status", KEY],
    ]);
    const last = (await third.answers()).at(-1) as Answer;
    await third.leave();
    expect(last).toMatchObject({ action: "nothing", status: "done", isError: false });
    expect(last["progress"]).toEqual([
      { step: "draft.collect", status: "done", done_by: "builder" },
      { step: "draft.write", status: "done", done_by: "builder" },
      { step: "review", status: "done" },
      { step: "publish", status: "done", done_by: "builder" },
    ]);
    for (const { step, file, path } of last["files"] as { step: string; file: string; path: string }[])
      expect(readFileSync(path, "utf8")).toBe(`${file} of ${step}\n`);
    expect(documentIn(cwd)).toMatchObject({ status: "done" });
  }, 60_000);

  it("S2-1 says what is missing without changing anything", async () => {
    const cwd = folder();
    const client = conversation(cwd, [
      ["playbook_next", {}],
      ["playbook_start", { playbook: "other", ...KEY }],
      ["playbook_start", { playbook: "release" }],
    ]);
    const [next, other, keyless] = await client.answers();
    await client.leave();
    expect(next).toMatchObject({ isError: true, error: { code: "storage_unavailable" } });
    expect(other).toMatchObject({ isError: true, error: { code: "unknown_workflow" } });
    expect(other?.said).toContain("Those that are offered: release");
    expect(keyless).toMatchObject({ isError: true });
    expect(keyless?.said).toContain("key");
    expect(existsSync(join(cwd, ".pawl"))).toBe(false);
  }, 60_000);
});
