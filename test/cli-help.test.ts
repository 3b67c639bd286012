import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { errorOf, json, pawl, project } from "./fixtures/cli/command.ts";

const REFERENCE = readFileSync(new URL("../docs/reference/cli.md", import.meta.url), "utf8");

const COMMANDS = [
  "init",
  "run",
  "worker",
  "start",
  "ls",
  "show",
  "why",
  "journal",
  "effects",
  "graph",
  "export",
  "signal",
  "cancel",
  "retry",
  "fork",
  "resolve",
  "approvals",
  "approve",
  "deny",
  "request-changes",
  "schedules",
  "check",
  "test",
  "replay",
  "workers",
  "agents",
  "doctor",
  "backup",
  "mcp",
  "exit-codes",
];

const OF_PLAYBOOKS = ["start", "next", "begin", "done", "fail", "status"].map((name) => `playbook ${name}`);

describe("help", () => {
  it("X-31 lists every command, an example and the exit codes", async () => {
    const { code, stdout } = await pawl(project(), "--help");
    expect(code).toBe(0);
    for (const command of COMMANDS) expect(stdout).toMatch(new RegExp(`^  ${command} `, "m"));
    expect(stdout).toContain("Example:");
    expect(stdout).toMatch(/130 +interrupted/);
  });

  // The page is every command's own help: docs.test.ts compares it with what the commands print.
  it.each([...COMMANDS, ...OF_PLAYBOOKS])("S2-66 %s has an example, --json and --store", (command) => {
    const help = REFERENCE.split(/^## /m).find((section) => section.startsWith(`pawl ${command}\n`));
    expect(help).toMatch(new RegExp(`Examples?:\n  \\$ pawl ${command}`));
    expect(help).toContain("--json");
    expect(help).toContain("--store <url>");
  });

  it("explains the exit codes", async () => {
    const folder = project();
    const asked = await pawl(folder, "exit-codes");
    const helped = await pawl(folder, "help", "exit-codes");
    expect(asked).toMatchObject({ code: 0 });
    expect(asked.stdout).toMatch(/^ {2}5 +the store cannot be used$/m);
    expect(helped.stdout).toContain(asked.stdout.trim());
    const codes = await json<{ code: number; meaning: string }[]>(folder, "exit-codes");
    expect(codes).toContainEqual({ code: 5, meaning: "the store cannot be used" });
  });

  it("prints its version", async () => {
    const { code, stdout } = await pawl(project(), "--version");
    expect({ code, isVersion: /^\d+\.\d+\.\d+\n$/.test(stdout) }).toEqual({ code: 0, isVersion: true });
  });
});

describe("bad usage", () => {
  it.each([
    [[], /Usage: pawl/],
    [["sho"], /unknown command 'sho'[\s\S]*show/],
    [["ls", "--josn"], /unknown option '--josn'/],
    [["show"], /missing required argument 'run'/],
    [["fork", "abcd"], /required option '--at/],
    [["ls", "--status", "odd"], /Allowed choices are running/],
  ] as const)("ends %j with 2 and says what is wrong", async (args, message) => {
    const { code, stdout, stderr } = await pawl(project(), ...args);
    expect(code).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it("says so in JSON to programs", async () => {
    const result = await pawl(project(), "ls", "--odd", "--json");
    expect(result.code).toBe(2);
    expect(errorOf(result)).toMatchObject({ code: "invalid_argument", message: expect.stringContaining("--odd") });
  });
});
