// Commands with and without the keys of a store.
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { Pawl } from "../src/client/pawl.ts";
import { workflow } from "../src/core/workflow.ts";
import { pawl, project } from "./fixtures/cli/command.ts";

const KEY = Buffer.alloc(32, 7).toString("base64");
const CANARY = "canary-in-a-parcel";

it("Q14 I25 commands without the key tell which one is missing, and nothing else; with PAWL_KEYS all; pawl keys counts", async () => {
  const folder = project();
  onTestFinished(() => void vi.unstubAllEnvs());
  const file = join(folder, ".pawl", "pawl.db");
  const parcel = workflow("parcel", async (ctx, to: string) => ctx.step("label", () => `to ${to}`));
  const engine = await Pawl.open(file, { workflows: [parcel], encryption: { keys: [{ id: "k1", key: KEY }] } });
  const run = await engine.start(parcel, CANARY, { id: "r1" });
  await run.result();
  await engine.close();

  for (const args of [["ls"], ["show", "r1"], ["journal", "r1"], ["export", "r1"], ["why", "r1"]]) {
    const { stdout, stderr, code } = await pawl(folder, ...args, "--json");
    expect(stdout + stderr, args.join(" ")).not.toContain(CANARY);
    if (args[0] === "journal")
      expect([code, JSON.parse(stderr)]).toMatchObject([2, { error: { code: "key_missing" } }]);
  }
  vi.stubEnv("PAWL_KEYS", `k2:${Buffer.alloc(32, 8).toString("base64")}, k1:${KEY}`);
  const shown = await pawl(folder, "journal", "r1", "--json");
  expect(shown.stdout).toContain(CANARY);
  const counted = await pawl(folder, "keys", "--json");
  expect(JSON.parse(counted.stdout)).toEqual({
    keys: [
      { key: "k2", runs: 0, unfinished: 0, audits: 0, here: "seals" },
      { key: "k1", runs: 1, unfinished: 0, audits: 0, here: "opens" },
    ],
    plainRuns: 0,
    isPlainRead: true,
  });
  vi.unstubAllEnvs();
  expect((await pawl(folder, "keys")).stdout).toMatch(/k1 +1 +0 +0 +missing/);
  const made = await pawl(folder, "keys", "new", "2026-12");
  expect(made.stdout).toMatch(/^2026-12:[A-Za-z0-9+/]{43}=\n$/);
  vi.stubEnv("PAWL_KEYS", KEY);
  const bad = await pawl(folder, "ls");
  expect(bad.stderr).toContain("PAWL_KEYS has no id");
  expect(bad.stderr).not.toContain(KEY);
});

it("Q14 pawl keys and pawl doctor say that plain values are read, and how many there are, until PAWL_PLAIN refuses them", async () => {
  const folder = project();
  onTestFinished(() => void vi.unstubAllEnvs());
  const file = join(folder, ".pawl", "pawl.db");
  const parcel = workflow("parcel", async (ctx, to: string) => ctx.step("label", () => `to ${to}`));
  const engine = await Pawl.open(file, { workflows: [parcel] });
  await engine.run(parcel, "ann", { id: "plain" });
  await engine.close();
  expect((await pawl(folder, "doctor")).stdout).not.toContain("not sealed");
  vi.stubEnv("PAWL_KEYS", `k1:${KEY}`);
  const { stdout, code } = await pawl(folder, "doctor");
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/warning .*whoever can write.* 3 entries of the journals are plain/),
  ]);
  const { stderr } = await pawl(folder, "keys");
  expect(stderr).toContain("1 run has values that are not sealed.");
  expect(stderr).toContain("PAWL_PLAIN=refuse");
  vi.stubEnv("PAWL_PLAIN", "refuse");
  expect((await pawl(folder, "doctor")).stdout).not.toContain("not sealed");
  expect((await pawl(folder, "keys")).stderr).not.toContain("PAWL_PLAIN");
  expect((await pawl(folder, "journal", "plain")).stderr).toContain("it is not sealed");
  vi.stubEnv("PAWL_PLAIN", "no");
  expect((await pawl(folder, "ls")).stderr).toContain('PAWL_PLAIN is "no". Give read or refuse.');
});
