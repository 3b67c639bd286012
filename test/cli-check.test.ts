// `pawl check`: what it says of a deployment, and its exit codes.
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  begin,
  createProject,
  errorOf,
  hosted,
  pawl,
  project,
  type Result,
  removeProject,
} from "./fixtures/cli/command.ts";

const FIXTURES = fileURLToPath(new URL("./fixtures/check", import.meta.url));

interface Checked {
  readonly ok: boolean;
  readonly bumps: readonly { readonly workflow: string; readonly needed: string; readonly ok: boolean }[];
  readonly runs: {
    readonly looked: number;
    readonly groups: readonly { readonly plan: string; readonly runs: string[] }[];
  };
  readonly workflows: readonly {
    readonly workflow: string;
    readonly isPlayed: boolean;
    readonly audit: readonly { readonly item: number; readonly status: string; readonly evidence: string }[];
  }[];
}

/** In the process of the others: its files do not change, and as nothing is played, it leaves nothing behind. */
const search = (folder: string, ...args: readonly string[]): Promise<Result> => hosted(folder, ["check", ...args]);

const check = async (folder: string, ...args: readonly string[]) => answerOf(await search(folder, ...args, "--json"));

const answerOf = ({ code, stdout, stderr }: Result) => {
  if (stdout === "") throw new Error(stderr);
  return { code, ...(JSON.parse(stdout) as Checked) };
};

describe("the audit", () => {
  it("S0-52 S0-53 S0-54 S0-55 S0-56 S0-57 S0-58 S0-59 S0-60 a workflow that breaks one of the nine items fails exactly that one", async () => {
    const { code, ok, workflows } = answerOf(
      await pawl(FIXTURES, "check", "audit.ts", "--against", "audit-before.ts", "--json"),
    );
    expect([code, ok]).toEqual([1, false]);
    const failed = workflows.map(({ workflow, audit }) => [
      workflow,
      audit.filter(({ status }) => status === "fail").map(({ item }) => item),
    ]);
    const broken = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((item) => [`item${item}`, [item]]);
    expect(Object.fromEntries(failed)).toEqual(Object.fromEntries([["good", []], ...broken]));
    const silent = workflows.flatMap(({ audit }) => audit).filter(({ status }) => status === "not shown");
    expect(silent).toEqual([]);
    const said = (name: string, item: number) =>
      workflows.find(({ workflow }) => workflow === name)?.audit[item - 1]?.evidence;
    expect(said("item1", 1)).toMatch(/did "chat" outside of any step.*audit\.ts:\d+/);
    expect(said("item2", 2)).toContain('the journal has effect "mail"; the code returned without it');
  });

  it("S0-61 S4-41 S0-25 S0-35 the good example passes all nine with evidence, says what guards each effect, and ends with 0", async () => {
    const { code, stdout } = await pawl(
      FIXTURES,
      "check",
      "audit.ts",
      "--workflow",
      "good",
      "--against",
      "audit-before.ts",
    );
    expect(code).toBe(0);
    expect([...stdout.matchAll(/^ {2}(\d) {2}pass {2}.+\n {7}\S/gm)].map(([, item]) => item)).toEqual([..."123456789"]);
    expect(stdout).toContain("  mail       effect  write  detection    effects, declared  detect       only looks\n");
    expect(stdout).toContain("       a migration leads from 1.3.0\n");
    expect(stdout).toMatch(/\nIt may be deployed\.\n$/);
  });
});

describe("a first deployment", () => {
  const PLAIN = `
    import { workflow } from "pawl";
    const made = new Set();
    const detect = ({ key }) => (made.has(key) ? { found: true, value: 1 } : { found: false });
    const act = ({ key }) => (made.add(key), 1);
    export const plain = workflow("plain", (ctx) => ctx.effect("mail", { class: "write", do: act, detect }));
  `;

  it("S0-54 S0-57 needs no version of its own and no recorder: the version is advised, what nobody saw is not shown", async () => {
    const folder = project({
      "plain.ts": PLAIN,
      "changed.ts": PLAIN.replace('"plain",', '{ name: "plain", uses: { a: { b: "1" } } },'),
    });
    const { code, workflows } = await check(folder, "plain.ts");
    expect(code).toBe(0);
    const itemOf = (all: Checked["workflows"], item: number) => all[0]?.audit[item - 1];
    expect(itemOf(workflows, 3)).toMatchObject({
      status: "pass",
      evidence: expect.stringContaining('write `version: "1.0.0"` before you change it'),
    });
    const changed = await check(folder, "changed.ts", "--against", "plain.ts");
    expect([changed.code, itemOf(changed.workflows, 3)?.status]).toEqual([1, "fail"]);
    const played = await pawl(folder, "check", "plain.ts", "--input", "null");
    expect(played.code).toBe(0);
    expect(played.stderr).toContain("steps and effects run for real, several times, with the network blocked");
    expect(played.stdout).toMatch(/^ {2}6 {2}not shown /m);
    expect(played.stdout).toMatch(/^ {2}look {2}Nobody can tell whether the detector of effect "mail"/m);
  });

  const EXAMPLES = fileURLToPath(new URL("../examples", import.meta.url));

  it.each(readdirSync(EXAMPLES).filter((name) => /^\d/.test(name)))(
    "S0-61 example %s may be deployed",
    async (name) => {
      const { code, stdout } = await search(join(EXAMPLES, name), "workflow.ts");
      expect(stdout).toMatch(/\nIt may be deployed\./);
      expect(code).toBe(0);
    },
  );
});

const OLD = `
  import { workflow } from "pawl";
  export const order = workflow({ name: "order", version: "1.3.0" }, async (ctx) => {
    await ctx.step("reserve", () => 1);
    await ctx.waitFor("go");
  });
  export const short = workflow({ name: "short", version: "1.0.0" }, async (ctx) => ctx.step("work", () => 1));
`;
/** Another name for the first step, and no other version. */
const RENAMED = OLD.replace('"reserve"', '"book"');
const PATCHED = OLD.replace('"1.3.0"', '"1.3.1"');

describe("runs in flight", () => {
  let folder: string;

  beforeAll(async () => {
    folder = createProject({ "old.ts": OLD, "renamed.ts": RENAMED, "patched.ts": PATCHED });
    for (const id of ["o1", "o2"]) await hosted(folder, ["run", "old.ts", "order", "--id", id, "--no-wait"]);
    await hosted(folder, ["run", "old.ts", "short", "--id", "s1"]);
    mkdirSync(join(folder, "runs"));
    for (const id of ["o1", "s1"]) await hosted(folder, ["export", id, "--out", `runs/${id}.json`]);
  });
  afterAll(() => removeProject(folder));

  it("S0-50 C-10 code that goes another way under the same version must not be deployed; the difference is shown", async () => {
    const { code, stdout } = await search(folder, "renamed.ts", "--against", "old.ts");
    expect(code).toBe(1);
    expect(stdout).toContain("  fail  order 1.3.0  needs MINOR, has NONE\n");
    expect(stdout).toContain("          MINOR: 2 unfinished runs do not follow this code\n          Make it 1.4.0.\n");
    expect(stdout).toContain("  2 unfinished runs: 0 resume, 0 stay pinned to their version, 2 need a decision\n");
    expect(stdout).toMatch(/^ {4}- 1 {2}step "reserve" {2}recorded$/m);
    expect(stdout).toMatch(/^ {4}\+ 1 {2}step "book" {2}the code {2}at renamed\.ts:\d+:\d+$/m);
    expect(stdout).toMatch(/^ {4}o\d o\d$/m);
    expect(stdout).toMatch(/It must not be deployed as it is\./);
  });

  it("S0-46 C-10 S0-58 beside a worker that has the runs, a patch is told to go on with them; nothing is taken or written", async () => {
    const worker = begin(folder, ["worker", "old.ts"]);
    await worker.line(/^Working /);
    const before = await Promise.all(["o1", "o2"].map((id) => pawl(folder, "journal", id, "--json")));
    const { code, ok, runs, workflows } = await check(folder, "patched.ts");
    expect([code, ok]).toEqual([0, true]);
    expect(runs).toMatchObject({ looked: 2, resumes: 2, groups: [{ plan: "resumes", with: "1.3.1" }] });
    expect(await Promise.all(["o1", "o2"].map((id) => pawl(folder, "journal", id, "--json")))).toEqual(before);
    // Nobody has played it: that its runs were followed is what shows that their journals are enough.
    const resume = workflows.find(({ workflow }) => workflow === "order")?.audit[1];
    expect(resume).toMatchObject({ status: "pass", evidence: expect.stringContaining("2 unfinished runs") });
    worker.kill("SIGTERM");
    await worker.ended;
  });

  it("S0-50 exports are looked at instead of a store; runs that have ended are left out", async () => {
    const { code, runs } = await check(folder, "renamed.ts", "--runs", "runs");
    expect(code).toBe(1);
    expect(runs).toMatchObject({ looked: 1, groups: [{ cause: "drift", runs: ["o1"] }] });
  });

  it("S0-50 a workflow that is gone may go when it has no runs, and not before", async () => {
    writeFileSync(join(folder, "without-short.ts"), PATCHED.replace(/export const short.*/, ""));
    writeFileSync(join(folder, "without-order.ts"), OLD.replace(/export const order[\s\S]*?\}\);\n/, ""));
    expect((await check(folder, "without-short.ts", "--against", "old.ts")).code).toBe(0);
    const { code, runs } = await check(folder, "without-order.ts", "--against", "old.ts");
    expect([code, runs.groups[0]]).toMatchObject([1, { workflow: "order", cause: "version" }]);
  });
});

describe("determinism and usage", () => {
  const CLOCK = `
  import { workflow } from "pawl";
  export const clock = workflow({ name: "clock", version: "1.0.0" }, async (ctx, id: string) => {
    const now = await ctx.step("now", () => Date.now()); // Math.random() in words is none
    return now > Date.now() ? id : "no";
  });
  `;

  it("S0-53 without an input the text is searched, which only warns; played, the hazard is seen with its line", async () => {
    const folder = project({ "clock.ts": CLOCK });
    const searched = await search(folder, "clock.ts");
    expect(searched.code).toBe(0);
    expect(searched.stdout).toContain("  look  clock.ts:5: Date.now() in a body; use ctx.now()\n");
    expect(searched.stdout.match(/^ {2}look /gm)).toHaveLength(1);
    expect(searched.stdout).toContain("Not played, so nothing is said: give --input");
    expect(searched.stdout).toContain("None were looked at: give --store or --runs.");
    expect(searched.stdout).toContain("It may be deployed. 5 items of the audit were not shown.");
    const played = await pawl(folder, "check", "clock.ts", "--input", '"a"');
    expect(played.code).toBe(1);
    expect(played.stdout).toContain("  fail  clock.ts:5: Date.now() in a body; use ctx.now()\n");
    expect(played.stdout).toMatch(/^ {2}2 {2}fail /m);
  });

  it("bad usage names the option and what to do", async () => {
    const folder = project({ "two.ts": OLD });
    const refused = async (...args: readonly string[]) => {
      const result = await search(folder, "two.ts", ...args, "--json");
      return [result.code, errorOf(result).message];
    };
    expect(await refused("--input", "1")).toEqual([2, expect.stringContaining("Name one with --workflow")]);
    expect(await refused("--runs", "x", "--store", "y")).toEqual([2, expect.stringContaining("Leave one out")]);
    expect(await refused("--store", "none.db")).toEqual([5, expect.stringContaining("There is no store")]);
    expect(await refused("--workflow", "gone")).toEqual([3, expect.stringContaining('no workflow "gone"')]);
  });
});
