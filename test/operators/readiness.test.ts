// `pawl check --production`: the ten items of readiness, over definitions, plays, the runs of a store and the file of incidents.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Pawl } from "../../src/client/pawl.ts";
import { workflow } from "../../src/core/workflow.ts";
import { pawl } from "../fixtures/cli/command.ts";

const FIXTURES = fileURLToPath(new URL("../fixtures/check", import.meta.url));
const BROKEN = [1, 2, 3, 4, 5, 6, 7, 8, 10];
const folder = mkdtempSync(join(tmpdir(), "pawl-ready-"));
const store = join(folder, "pawl.db");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Checked {
  readonly ok: boolean;
  readonly production: readonly {
    readonly workflow: string;
    readonly items: readonly { readonly item: number; readonly status: string; readonly evidence: string }[];
  }[];
}

/** Every workflow has a run in the store, started with a key; one was started without, and one has failed with other code. */
beforeAll(async () => {
  const names = ["good", ...BROKEN.map((item) => `item${item}`)];
  const failing = names.map((name) =>
    workflow({ name, version: "1.0.0" }, async (ctx) => {
      if (name === "item7") await ctx.step("once", () => 1);
      await ctx.step("draft", () => Promise.reject(new Error("no paper")));
    }),
  );
  const engine = await Pawl.open(store, { workflows: failing, durability: "process", handleSignals: false });
  for (const one of failing) {
    const run = await engine.start(one, undefined, one.name === "item2" ? {} : { key: "letter-1" });
    await expect(run.result()).rejects.toThrow("no paper");
  }
  await engine.close();
});

async function check(file: string, ...args: readonly string[]): Promise<Checked & { readonly code: number | null }> {
  const options = ["--production", "--store", store, ...args];
  const { code, stdout, stderr } = await pawl(FIXTURES, "check", file, ...options, "--json");
  if (stdout === "") throw new Error(stderr);
  return { code, ...(JSON.parse(stdout) as Checked) };
}

const failedOf = ({ production }: Checked) =>
  Object.fromEntries(
    production.map(({ workflow: name, items }) => [
      name,
      items.filter(({ status }) => status !== "pass").map(({ item }) => item),
    ]),
  );

it("S2-96 S2-97 S2-98 S2-99 S2-100 S2-101 S2-102 S2-103 S2-105 S2-106 S2-107 a workflow that breaks one of the ten items fails exactly that one", async () => {
  const checked = await check("production.ts");
  expect(checked.code).toBe(1);
  const broken = BROKEN.map((item) => [`item${item}`, [item]] as const);
  expect(failedOf(checked)).toEqual(Object.fromEntries([["good", []], ...broken]));
  const said = (item: number) =>
    checked.production.find(({ workflow: name }) => name === `item${item}`)?.items[item - 1]?.evidence;
  expect(said(1)).toContain('state "memory" has a list of messages at');
  expect(said(2)).toContain("1 run of 1 began without a key");
  expect(said(3)).toContain('did "chat" outside of any step');
  expect(said(4)).toContain('"chat"');
  expect(said(5)).toContain("names no models and no prompts");
  expect(said(6)).toContain('signal "approved" without a timeout');
  expect(said(7)).toMatch(/failed run \S+ cannot be replayed/);
  expect(said(8)).toContain("nobody owns runs that are compensating");
  expect(said(10)).toContain("incident 2026-11-03 has no regression case");
});

it("S2-104 S2-106 the good example gives ten passes with evidence; without one of the four alerts it fails item 9 alone", async () => {
  const options = ["--workflow", "good", "--production", "--store", store];
  const { stdout } = await pawl(FIXTURES, "check", "production.ts", ...options);
  const readiness = stdout.slice(stdout.indexOf("Readiness of good 1.0.0"));
  const passed = [...readiness.matchAll(/^ {2}(\d+) {2}pass {2}.+\n {7}\S/gm)].map(([, item]) => Number(item));
  expect(passed).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  const quiet = await check("production-alerts.ts", "--workflow", "good");
  expect([quiet.code, failedOf(quiet)]).toEqual([1, { good: [9] }]);
});

it("S2-11 pawl review prints a sheet whose open points come first", async () => {
  const { code, stdout } = await pawl(FIXTURES, "review", "production.ts", "item8");
  expect(code).toBe(0);
  const titles = [...stdout.matchAll(/^(?:Design|Open|Bound|State|Trans|Eff|Own)\S*/gm)].map(([title]) => title);
  expect(titles).toEqual(["Design", "Open", "Boundaries", "State", "Transitions", "Effects", "Owners"]);
  expect(stdout).toContain("  [ ] Who owns runs that are compensating?\n");
  expect(stdout).toContain('  "mail" (write): recognised by detect, cannot be undone\n');
  expect(stdout).toContain('  "stage"\n');
});

it("S2-8 S2-9 pawl fit recommends, or warns of what speaks against it", async () => {
  const asked = async (answers: string) =>
    JSON.parse((await pawl(FIXTURES, "fit", "--answers", answers, "--json")).stdout);
  expect(await asked("yyyyynnnnn")).toMatchObject({ fits: true, warnings: [] });
  expect((await asked("yyyyynnnnn")).reasons).toHaveLength(5);
  expect(await asked("nnnnnnnnnn")).toMatchObject({ fits: false, reasons: [], warnings: [] });
  const warned = await asked("ynnnnyyyyy");
  expect([warned.fits, warned.warnings.length]).toEqual([false, 5]);
  expect((await pawl(FIXTURES, "fit", "--answers", "maybe")).code).toBe(2);
  expect((await pawl(FIXTURES, "fit", "--json")).stderr).toContain("--answers");
});
