// `pawl test --crash-everywhere`: crashes that one process plays by itself, and real ones with fresh processes after them.
import { readdirSync } from "node:fs";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { drawPoints } from "../src/cli/fresh-processes.ts";
import { begin, errorOf, hosted, project, type Result } from "./fixtures/cli/command.ts";

// Each point takes two processes.
vi.setConfig({ testTimeout: 120_000 });

interface Report {
  readonly test: string;
  readonly ok: boolean;
  readonly crashes: {
    readonly ok: boolean;
    readonly points: readonly unknown[];
    readonly explored: number;
    readonly failures: readonly { readonly kind: string; readonly step?: string; readonly message: string }[];
  };
  readonly processes: {
    readonly points: number;
    readonly drawn: number | null;
    readonly explored: number;
    readonly isComplete: boolean;
    readonly notCompared: readonly string[];
    readonly failures: readonly {
      readonly kind: string;
      readonly step?: string;
      readonly message: string;
      readonly point: { readonly n: number };
    }[];
  } | null;
}

const reportsOf = ({ stdout }: Result) => JSON.parse(stdout) as { ok: boolean; seed: number; tests: Report[] };

const isLeftover = (name: string) => name.startsWith("pawl-test-");

/** The command itself needs no process of its own: those that it kills, and those that recover, are fresh ones whoever starts them. */
const crash = (folder: string, ...args: readonly string[]) => hosted(folder, ["test", "--crash-everywhere", ...args]);

/** The same without fresh processes. */
const crashHere = (folder: string, ...args: readonly string[]) => crash(folder, "--no-processes", ...args);

/** It sleeps for days and waits for a signal; its fakes remember. */
const SOUND = `
  import { workflow } from "pawl";
  import { crashTest, fakeModel, recorder } from "pawl/testing";

  const outside = recorder();
  const model = fakeModel(["Dear Ada", "Never said"]);

  export const letter = workflow("letter", async (ctx, name: string) => {
    const answer = await ctx.waitFor("answer", { timeout: "7 days", default: "none" });
    return await ctx.step("post", async ({ key }) => {
      const greeting = await model("Greet " + name, { key });
      outside.record("post", [greeting, answer], key);
      return [greeting, answer];
    });
  });

  export default crashTest({
    workflow: letter,
    input: "Ada",
    recorder: outside,
    fresh: () => model.reset(),
    script: (run) => run.signal("answer", "yes"),
  });
`;

/** In one process the variable survives every crash that is only played. */
const STATE = `
  import { workflow } from "pawl";

  let token = "none";

  export const sync = workflow("sync", async (ctx) => {
    await ctx.step("log in", () => {
      token = "t-1";
    });
    return await ctx.step("fetch", () => "fetched with " + token);
  });
`;

/** What it ends with does not follow from its steps; and one of them is never the same, so no two results need be. */
const STAMPED = `
  import { workflow } from "pawl";

  let token = "none";

  export const sync = workflow("sync", async (ctx) => {
    await ctx.step("log in", () => {
      token = "t-1";
    });
    await ctx.step("stamp", () => process.hrtime().join());
    return "with " + token;
  });
`;

/** It tells of every process that has not been there from the beginning: wherever it was killed, it ends otherwise. */
const LONG = `
  import { existsSync } from "node:fs";
  import { join } from "node:path";
  import { workflow } from "pawl";

  const folder = process.env["PAWL_TEST_FOLDER"];
  const isSecondLife = folder !== undefined && existsSync(join(folder, "pawl.db"));

  export const long = workflow("long", async (ctx) => {
    for (let i = 0; i < 8; i++) await ctx.step("page", () => i);
    return await ctx.step("life", () => (isSecondLife ? "second" : "first"));
  });
`;

/** A process that finds what another one has left never gets to work. */
const NEVER_RECOVERED = `
  import { existsSync } from "node:fs";
  import { join } from "node:path";
  const folder = process.env["PAWL_TEST_FOLDER"];
  if (folder !== undefined && existsSync(join(folder, "pawl.db"))) {
    setInterval(() => {}, 60_000);
    await new Promise(() => {});
  }
`;

/** What a crash may change, each in its own way. The lot is never the same here, and in a life that is killed other than in one that is not. */
const FREE = `
  import { workflow } from "pawl";
  import { crashTest, recorder } from "pawl/testing";

  const outside = recorder();
  let drawn = 0;
  function draw() {
    const folder = process.env["PAWL_TEST_FOLDER"];
    return folder === undefined ? ++drawn : folder.includes("undisturbed") ? 1 : 2;
  }

  const asked = workflow("asked", async (ctx) => {
    await ctx.step("charge", () => outside.record("charge"), { recovery: "ask" });
    return "charged";
  });
  const told = workflow("told", async (ctx) => {
    try {
      await ctx.step("charge", () => outside.record("charge"), { recovery: "fail" });
      return "charged";
    } catch {
      await ctx.step("tell", ({ key }) => outside.record("tell", {}, key));
      return "told";
    }
  });
  const lots = workflow("lots", async (ctx) => {
    const lot = await ctx.step("draw", draw);
    await ctx.step("way " + lot, ({ key }) => outside.record("way " + lot, {}, key));
    return { way: lot };
  });

  export const ask = crashTest({ workflow: asked, input: undefined, recorder: outside });
  export const fail = crashTest({ workflow: told, input: undefined, recorder: outside });
  export const vary = crashTest({ workflow: lots, input: undefined, recorder: outside });
`;

/** It acts, and then notes that it has, in a book of its own that it looks into first. */
const NOTING = `
  import { existsSync, writeFileSync } from "node:fs";
  import { join } from "node:path";
  import { workflow } from "pawl";
  import { crashTest, recorder } from "pawl/testing";

  const outside = recorder();
  const note = () => join(process.env["PAWL_TEST_FOLDER"] ?? ".", "charged");

  export const pay = workflow("pay", (ctx) =>
    ctx.step("charge", () => {
      if (process.env["PAWL_TEST_FOLDER"] === undefined || existsSync(note())) return;
      outside.record("charge");
      writeFileSync(note(), "");
    }),
  );

  export default crashTest({ workflow: pay, input: undefined, recorder: outside });
`;

const MANY = `
  import { workflow } from "pawl";
  import { crashTest, recorder } from "pawl/testing";

  const outside = recorder();
  const rows = workflow("rows", async (ctx) => {
    for (let i = 0; i < 12; i++) await ctx.step("row " + i, () => outside.record("row", { i }));
  });

  export const batch = crashTest({ workflow: rows, input: undefined, recorder: outside });
  export const vain = crashTest({ workflow: workflow("vain", (ctx) => ctx.waitFor("go")), input: undefined });
  export const fine = crashTest({ workflow: workflow("fine", (ctx) => ctx.step("a", () => 1)), input: undefined });
`;

/** A fresh process says that it is there, and does not come to its end. */
const ENDLESS = `
  import { writeFileSync } from "node:fs";
  if (process.env["PAWL_TEST_FOLDER"] !== undefined) {
    writeFileSync("alive", "");
    setInterval(() => {}, 60_000);
    await new Promise(() => {});
  }
`;

const TWO = `
  import { workflow } from "pawl";
  export const add = workflow("add", (ctx, n: number) => ctx.step("add", () => n + 1));
  const ask = async () => (await fetch("http://127.0.0.1:49151/")).status;
  export const call = workflow("call", (ctx) => ctx.step("call", ask, { retry: false }));
`;

describe("pawl test", () => {
  it("S4-1 S3-9 a sound workflow passes at every point, here and in fresh processes", async () => {
    const { code, stdout, stderr } = await crash(project({ "sound.ts": SOUND }), "sound.ts", "--seed", "7");
    expect({ code, stderr: stderr.replaceAll(/^Crashing letter.*…\n/gm, "") }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^letter\n/);
    expect(stdout).toMatch(/undisturbed {6}succeeded with .*Dear Ada/);
    expect(stdout).toMatch(/in this process {2}\d+ points, \d+ crashes tried, \d+ skipped as equal/);
    expect(stdout).toMatch(/fresh processes {2}(\d+) of \1 points tried\n/);
    expect(stdout).toMatch(/seed {13}7\n/);
    expect(stdout).toMatch(/No failure\./);
    expect(stdout).not.toContain("\u001b");
  });

  it("S4-1 state in a module variable passes here, and is caught by a fresh process, which names the step", async () => {
    const { code, stdout } = await crash(project({ "state.ts": STATE }), "state.ts", "--at", "9");
    expect(code).toBe(1);
    expect(stdout).toMatch(/fresh processes {2}1 of \d+ points tried/);
    expect(stdout).toMatch(/Step "fetch" recorded "fetched with none", undisturbed "fetched with t-1"/);
    expect(stdout).toContain("none of the variables");
    expect(stdout).toMatch(/Killed at point 9, start of step "fetch"\. Look into it with --at 9\./);
    expect(stdout).toMatch(/ 1 failure\./);
  });

  it("S4-1 I6 a step that acts and then notes it is killed in between, after which a fresh process acts again", async () => {
    const { code, stdout } = await crash(project({ "noting.ts": NOTING }), "noting.ts");
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining(" 1 failure.") });
    expect(stdout).toMatch(/"charge" happened 2 times, undisturbed 1\. Step "charge" makes it\./);
    expect(stdout).toMatch(/Killed at point 6, effect "charge" in step "charge"\. Look into it with --at 6\./);
  });

  it("S4-1 I6 an effect whose details cannot be stored is counted in fresh processes as in this one", async () => {
    const odd = `
      import { workflow } from "pawl";
      import { crashTest, recorder } from "pawl/testing";
      const outside = recorder();
      const details = () => {
        const order: { self?: unknown } = {};
        order.self = order;
        return { order, by: () => {} };
      };
      const make = (name: string, keyOf: (key: string) => string | undefined) =>
        workflow(name, (ctx) => ctx.step("charge", ({ key }) => outside.record("charge", details(), keyOf(key))));
      const test = (one: ReturnType<typeof make>) => crashTest({ workflow: one, input: undefined, recorder: outside });
      export const sound = test(make("sound", (key) => key));
      export const broken = test(make("broken", () => undefined));
    `;
    const { tests } = reportsOf(await crash(project({ "odd.ts": odd }), "odd.ts", "--json"));
    const [broken, sound] = ["broken", "sound"].map((name) => tests.find(({ test }) => test === name)?.processes);
    expect(sound).toMatchObject({ isComplete: true, failures: [] });
    expect(broken?.failures[0]?.message).toMatch(/"charge" happened 2 times, undisturbed 1/);
  });

  it("S4-1 I5 a body that reads a module variable is caught by a fresh process, though a step varies", async () => {
    const { code, stdout } = await crash(project({ "stamped.ts": STAMPED }), "stamped.ts", "--processes", "1");
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining("Replayed in a fresh process") });
    expect(stdout).toMatch(/the journal has run\.succeeded "with t-1"; the code comes to run\.succeeded "with none"/);
    expect(stdout).toMatch(/none of the variables/);
  });

  it("takes input from the command line, one point, and some modes; and no process where none is wanted", async () => {
    const folder = project({ "two.ts": TWO });
    const args = ["two.ts", "add", "--input", "41", "--at", "3", "--modes", "kill,take-over", "--json"];
    const result = await crashHere(folder, ...args);
    expect(result.code).toBe(0);
    const [report] = reportsOf(result).tests;
    expect(report).toMatchObject({ test: "add", ok: true, processes: null });
    expect(report?.crashes.explored).toBeLessThanOrEqual(4);
    const quick = await crash(folder, "two.ts", "add", "--input", "41", "--budget", "1ms", "--json");
    expect(reportsOf(quick).tests[0]?.processes).toMatchObject({ explored: 0, isComplete: false });
  });

  it("S4-1 of more points than are wanted, fresh processes try those that the seed draws; how many and the seed are told", async () => {
    const folder = project({ "long.ts": LONG });
    const result = await crash(folder, "long.ts", "--modes", "kill", "--seed", "7", "--processes", "2", "--json");
    const { seed, tests } = reportsOf(result);
    const { processes } = tests[0] as Report;
    expect({ code: result.code, seed }).toEqual({ code: 1, seed: 7 });
    expect(processes).toMatchObject({ drawn: 2, explored: 2, isComplete: false });
    const points = Array.from({ length: processes?.points ?? 0 }, (_, i) => i + 1);
    expect(points.length).toBeGreaterThan(20);
    const drawn = drawPoints(points, 7, 2).toSorted((a, b) => a - b);
    expect(processes?.failures.map(({ point }) => point.n)).toEqual(drawn);
    expect(processes?.failures[0]).toMatchObject({ kind: "result", step: "life" });
  });

  it("S4-1 a budget ends processes that are under way, and says that it was used up: they are no failures", async () => {
    const folder = project({ "hung.ts": `${NEVER_RECOVERED}${STATE}` });
    const { code, stdout } = await crash(folder, "hung.ts", "--budget", "4s");
    expect(stdout).toMatch(/fresh processes {2}0 of \d+ points tried; the budget was used up\n/);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("No failure.") });
  });

  it("S4-1 a budget also ends a process that nobody has disturbed", async () => {
    const folder = project({ "state.ts": `${ENDLESS}${STATE}` });
    const { code, stdout } = await crash(folder, "state.ts", "--budget", "3s", "--json");
    expect({ code, processes: (JSON.parse(stdout) as { tests: Report[] }).tests[0]?.processes }).toMatchObject({
      code: 0,
      processes: { explored: 0, isComplete: false, failures: [] },
    });
  });

  it("shows ten failures, and how many more there are; a run that waits in vain needs no fresh process", async () => {
    const folder = project({ "many.ts": MANY });
    const many = await crashHere(folder, "many.ts", "batch", "--modes", "kill");
    expect(many.code).toBe(1);
    expect(many.stdout.match(/^ {2}failure /gm)).toHaveLength(10);
    expect(many.stdout).toMatch(/… and 2 more; --json has them all\.\n\n.*\n\n {2}12 failures\./);
    const vain = await crash(folder, "many.ts", "vain");
    expect(vain.code).toBe(1);
    expect(vain.stdout).toMatch(/If it waits for signal "go", have the script of the crash test send it/);
    expect(vain.stdout).not.toMatch(/fresh processes/);
    const none = await crashHere(folder, "many.ts", "fine", "--budget", "1ms");
    expect(none.stdout).toMatch(/No crash was tried\. Give more time with --budget\./);
    const never = await crashHere(folder, "many.ts", "fine", "--at", "5", "--modes", "lost-answer");
    expect(never.stdout).toMatch(/No crash was tried: none of the `modes` can happen at this point/);
  });

  it("fresh processes do not compare what differs without any crash", async () => {
    const stamp = `
      import { workflow } from "pawl";
      export const stamp = workflow("stamp", async (ctx) => ({ at: await ctx.step("now", () => process.hrtime().join()), n: 1 }));
    `;
    const result = await crash(project({ "stamp.ts": stamp }), "stamp.ts", "--at", "1", "--allow-net", "--json");
    expect(reportsOf(result).tests[0]?.processes).toMatchObject({ explored: 1, notCompared: [".at"], failures: [] });
  });

  it("S4-1 I6 fresh processes do not blame a person's answer, an interrupted step, or what follows from a lot", async () => {
    const result = await crash(project({ "free.ts": FREE }), "free.ts", "--at", "6", "--json");
    const { tests } = reportsOf(result);
    expect(tests.map(({ test, ok, processes }) => [test, ok, processes?.explored, processes?.failures])).toEqual([
      ["ask", true, 1, []],
      ["fail", true, 1, []],
      ["vary", true, 1, []],
    ]);
  });

  it("S4-1 the workflow that pawl init writes passes, though one of its steps returns the time", async () => {
    const folder = project({});
    expect((await hosted(folder, ["init"])).code).toBe(0);
    const { code, stdout } = await crash(folder, "workflows/hello.ts", "--processes", "1");
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("No failure.") });
    expect(stdout).toMatch(/advice {3}These steps vary without any crash: "finish"\./);
    expect(stdout).toMatch(/processes {2}1 of \d+ points tried, 1 was drawn by lot; not compared: finishedAt/);
  });

  it("blocks the network unless it is allowed", async () => {
    const folder = project({ "two.ts": TWO });
    const blocked = await crashHere(folder, "two.ts", "call", "--at", "1");
    expect(blocked).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/"call" wants to use the network, which is blocked/),
    });
    // For fresh processes that are allowed it, see "what differs without any crash".
    const allowed = await crashHere(folder, "two.ts", "call", "--at", "1", "--allow-net");
    expect({ code: allowed.code, stdout: allowed.stdout }).toEqual({
      code: 0,
      stdout: expect.stringContaining("fetch failed"),
    });
  });

  it("leaves nothing behind when it is interrupted", async () => {
    const folder = project({ "state.ts": `${ENDLESS}${STATE}` });
    vi.stubEnv("TMPDIR", folder);
    onTestFinished(() => void vi.unstubAllEnvs());
    const running = begin(folder, ["test", "--crash-everywhere", "state.ts"]);
    await vi.waitFor(() => expect(readdirSync(folder)).toContain("alive"), { timeout: 60_000 });
    expect(readdirSync(folder).some(isLeftover)).toBe(true);
    running.kill("SIGINT");
    expect((await running.ended).code).toBe(130);
    expect(readdirSync(folder).filter(isLeftover)).toEqual([]);
  });
});

describe("bad usage of pawl test", () => {
  const folder = () => project({ "two.ts": TWO, "none.ts": "export const n = 1;" });
  it.each([
    [["test", "two.ts"], 2, /required option '--crash-everywhere'/],
    [["test", "--crash-everywhere"], 2, /missing required argument 'file'/],
    [["test", "--crash-everywhere", "gone.ts"], 2, /There is no file gone.ts/],
    [["test", "--crash-everywhere", "none.ts"], 2, /exports neither a crash test nor a workflow. Export one: /],
    [["test", "--crash-everywhere", "two.ts"], 2, /several to test \(add, call\).* Name one after the file/],
    [["test", "--crash-everywhere", "two.ts", "sub"], 3, /has no "sub" to test. It has: add, call/],
    [["test", "--crash-everywhere", "two.ts", "add", "--at", "0"], 2, /--at "0" is not a whole number of at least 1/],
    [
      ["test", "--crash-everywhere", "two.ts", "add", "--modes", "burn"],
      2,
      /--modes "burn" is none of kill, lost-answer/,
    ],
    [["test", "--crash-everywhere", "two.ts", "add", "--budget", "soon"], 2, /--budget/],
    [["test", "--crash-everywhere", "two.ts", "add", "--processes", "0"], 2, /--processes "0" is not a whole number/],
    [["test", "--crash-everywhere", "two.ts", "add", "--input", "{"], 2, /--input is not JSON/],
    [
      ["test", "--crash-everywhere", "two.ts", "add", "--input", "1", "--at", "99"],
      2,
      /no point 99: `at` is one of 1 to \d+/,
    ],
  ] as const)("ends %j with %i and says what to do", async (args, code, message) => {
    const result = await hosted(folder(), args);
    expect({ code: result.code, stdout: result.stdout }).toEqual({ code, stdout: "" });
    expect(result.stderr).toMatch(message);
  });

  it("says so in JSON to programs", async () => {
    const result = await crashHere(folder(), "two.ts", "sub", "--json");
    expect({ code: result.code, error: errorOf(result) }).toMatchObject({
      code: 3,
      error: { code: "unknown_workflow" },
    });
  });
});
