import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { begin, createProject, errorOf, json, pawl, project, removeProject } from "./fixtures/cli/command.ts";
import { seed } from "./fixtures/cli/seed.ts";

interface Listed {
  readonly runs: readonly { readonly id: string; readonly status: string; readonly state: string }[];
  readonly cursor: string | null;
}

// One store for all tests that only look.
const shop = createProject();
beforeAll(() =>
  seed(shop, {
    good: [],
    bad: ["fail"],
    open: ["approve"],
    flaky: ["retry"],
    mother: ["ship"],
    "alpha-one": [],
    "alpha-two": [],
  }),
);
afterAll(() => removeProject(shop));

describe("pawl ls", () => {
  it("X-31 lists runs, newest first, page by page", async () => {
    const { code, stdout, stderr } = await pawl(shop, "ls", "--limit", "2");
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^RUN +WORKFLOW +STATUS +STARTED +TOOK +KEY\nalpha-two +order 1\.0\.0 +succeeded .*\nalpha-one /,
    );
    expect(stderr).toMatch(/More: pawl ls --cursor alpha-one/);
    const page = await json<Listed>(shop, "ls", "--limit", "6", "--cursor", "alpha-one");
    expect(page.runs.map(({ id }) => id).slice(1)).toEqual(["mother", "flaky", "open", "bad", "good"]);
    expect(page.cursor).toBe(null);
  });

  it.each([
    [["--status", "failed"], ["bad"]],
    [
      ["--status", "waiting", "--workflow", "order"],
      ["mother", "open"],
    ],
    [["--status", "parked"], []],
    [["--workflow", "nope"], []],
    [["--before", "1h"], []],
    [["--after", "1h", "--status", "failed"], ["bad"]],
    [["--after", "2000-01-01", "--status", "succeeded", "--limit", "1"], ["alpha-two"]],
  ])("filters: %j", async (filter, expected) => {
    expect((await json<Listed>(shop, "ls", ...filter)).runs.map(({ id }) => id)).toEqual(expected);
  });

  it("says so if no run fits", async () => {
    expect(await pawl(shop, "ls", "--workflow", "nope")).toEqual({ code: 0, stdout: "", stderr: "No run fits.\n" });
  });

  it.each([
    ["--after", "yesterday", /--after "yesterday" is not a time/],
    ["--limit", "0", /--limit "0" is not a whole number/],
  ])("refuses %s %s", async (option, value, message) => {
    expect(await pawl(shop, "ls", option, value)).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
  });
});

describe("naming a run", () => {
  it("takes the beginning or the end of an id, if only one run fits", async () => {
    expect(await json(shop, "show", "a-two")).toMatchObject({ id: "alpha-two" });
    expect(await json(shop, "show", "alpha-o")).toMatchObject({ id: "alpha-one" });
    const both = await pawl(shop, "show", "alpha", "--json");
    expect(both.code).toBe(2);
    expect(errorOf(both).message).toContain('"alpha" fits 2 runs: alpha-two, alpha-one');
    expect((await pawl(shop, "show", "a")).code).toBe(3);
  });

  it.each(["show", "why", "journal", "cancel", "retry"])("ends with 3 if %s is asked about no run", async (command) => {
    const text = await pawl(shop, command, "nothing");
    expect(text).toMatchObject({ code: 3, stdout: "", stderr: expect.stringContaining('no run "nothing"') });
    const result = await pawl(shop, command, "nothing", "--json");
    expect(result).toMatchObject({ code: 3, stdout: "" });
    expect(errorOf(result).code).toBe("run_not_found");
  });

  it.each(["../../etc/passwd", "..\\..\\x", "%2e%2e%2f", "a#b", "x".repeat(5000), "\u001b[31mred"])(
    "Q7 takes %j for a name and nothing else",
    async (id) => {
      const { code, stderr } = await pawl(shop, "show", id);
      expect(code).toBe(3);
      expect(stderr).not.toContain("\u001b");
      expect(stderr.length).toBeLessThan(400);
    },
  );
});

describe("pawl show and pawl journal", () => {
  it("S2-66 show every step with its attempts", async () => {
    const { code, stdout } = await pawl(shop, "show", "flaky");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^order 1\.0\.0 {2}succeeded {2}flaky$/m);
    expect(stdout).toMatch(/step +fetch +\S+ ms +completed/);
    expect(stdout).toMatch(
      /step +flaky .* completed\n.* attempt 1 .*failed: lost connection 1; again after .*\n.* attempt 2 .*\n.* attempt 3 .*completed/,
    );
    const shown = await json<{ timeline: { steps: { key: string; attempts: unknown[] }[] } }>(shop, "show", "flaky");
    expect(shown.timeline.steps.map(({ key, attempts }) => [key, attempts.length])).toEqual([
      ["fetch", 1],
      ["flaky", 3],
    ]);
  });

  it("S2-62 show what a step has saved, and with what", async () => {
    const { stdout } = await pawl(shop, "show", "bad");
    expect(stdout).toMatch(/step +charge .* failed: card declined; saved once at \+\d/);
    expect((await pawl(shop, "journal", "bad")).stdout).toMatch(
      /checkpoint +charge +\{"attempt":1,"value":\{"asked":"the bank"\}\}/,
    );
  });

  it("S2-66 show what a run waits for", async () => {
    expect((await pawl(shop, "show", "open")).stdout).toMatch(/signal +approved .* waiting$/m);
    expect((await pawl(shop, "show", "mother")).stdout).toMatch(/child +ship .* waiting {2}run \S+$/m);
  });

  it("print the journal, entry by entry", async () => {
    const { stdout } = await pawl(shop, "journal", "good", "--from", "2", "--limit", "2");
    expect(stdout).toMatch(
      /^SEQ +AT +TYPE +KEY +PAYLOAD\n +2 +\S+Z +step\.started +fetch\n +3 +\S+Z +step\.completed +fetch +3\n$/,
    );
    const entries = await json<{ seq: number; type: string }[]>(shop, "journal", "good");
    expect(entries.map(({ type }) => type)).toEqual([
      "run.started",
      "note",
      "step.started",
      "step.completed",
      "run.succeeded",
    ]);
  });
});

describe("pawl why", () => {
  it.each([
    ["good", /succeeded after [\s\S]*1 step completed: fetch[\s\S]*Its result: \{"id":"good"/],
    ["bad", /failed after .* in step "charge": card declined[\s\S]*pawl retry bad/],
    ["open", /is waiting for signal "approved"[\s\S]*pawl signal open approved[\s\S]*no worker is running/],
    ["mother", /waiting for child "ship"[\s\S]*Child "ship": .* waiting for signal "shipped"/],
  ])("S2-7 explains the run %s", async (id, words) => {
    expect((await pawl(shop, "why", id)).stdout).toMatch(words);
  });

  it("S2-7 explains a run that is being worked on, and who has it", async () => {
    const folder = project();
    const working = begin(folder, ["run", "shop.ts", "order", '{"id":"o1","plan":["hang"]}', "--id", "o1"]);
    await working.line(/▸ hang/);
    const explanation = await json<{ owner: unknown; isStranded: boolean; present: string[]; next: string[] }>(
      folder,
      "why",
      "o1",
    );
    expect(explanation).toMatchObject({
      state: "running",
      owner: { pid: working.pid, health: "live" },
      isStranded: false,
    });
    expect(explanation.present[0]).toMatch(/Step "hang" is under way: attempt 1, for /);
    expect(explanation.next).toEqual(["Nothing: it goes on by itself."]);
    working.kill("SIGKILL");
    await working.ended;
    const after = (await pawl(folder, "why", "o1")).stdout;
    expect(after).toMatch(/its worker is gone[\s\S]*no worker is running[\s\S]*pawl worker <file>/);
  });

  it("tells of a signal with a name that nothing waits for", async () => {
    const folder = project();
    await seed(folder, { open: ["approve"] });
    await pawl(folder, "signal", "open", "aproved");
    expect((await pawl(folder, "why", "open")).stdout).toContain(
      'Signal "aproved" has come, but nothing waits for it.',
    );
  });
});
