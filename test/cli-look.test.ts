import { describe, expect, it } from "vitest";
import { begin, errorOf, json, pawl, project } from "./fixtures/cli/command.ts";

interface Listed {
  readonly runs: readonly { readonly id: string; readonly status: string; readonly state: string }[];
  readonly cursor: string | null;
}

const run = (folder: string, id: string, ...plan: string[]) =>
  pawl(folder, "run", "shop.ts", "order", JSON.stringify({ id, plan }), "--id", id, "--no-wait");

describe("pawl ls", () => {
  it("X-31 lists runs, newest first, page by page", async () => {
    const folder = project();
    for (const id of ["run-1", "run-2", "run-3"]) await run(folder, id);
    const { code, stdout, stderr } = await pawl(folder, "ls", "--limit", "2");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^RUN +WORKFLOW +STATUS +STARTED +TOOK +KEY\nrun-3 +order 1\.0\.0 +succeeded .*\nrun-2 /);
    expect(stderr).toMatch(/More: pawl ls --cursor run-2/);
    const page = await json<Listed>(folder, "ls", "--limit", "2", "--cursor", "run-2");
    expect(page).toMatchObject({ runs: [{ id: "run-1" }], cursor: null });
  });

  it("filters by status, state, workflow and time", async () => {
    const folder = project();
    await run(folder, "good");
    await run(folder, "bad", "fail");
    await run(folder, "open", "approve");
    const ids = async (...filter: string[]) => (await json<Listed>(folder, "ls", ...filter)).runs.map(({ id }) => id);
    expect(await ids("--status", "failed")).toEqual(["bad"]);
    expect(await ids("--status", "waiting")).toEqual(["open"]);
    expect(await ids("--status", "parked")).toEqual([]);
    expect(await ids("--workflow", "ship")).toEqual([]);
    expect(await ids("--after", "1h")).toHaveLength(3);
    expect(await ids("--before", "1h")).toEqual([]);
    expect(await ids("--after", "2000-01-01", "--status", "succeeded")).toEqual(["good"]);
    expect((await pawl(folder, "ls", "--workflow", "ship")).stderr).toBe("No run fits.\n");
  });

  it.each([
    ["--after", "yesterday", /--after "yesterday" is not a time/],
    ["--limit", "0", /--limit "0" is not a whole number/],
  ])("refuses %s %s", async (option, value, message) => {
    const folder = project();
    await run(folder, "run-1");
    expect(await pawl(folder, "ls", option, value)).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
  });
});

describe("naming a run", () => {
  it("takes the beginning or the end of an id, if only one run fits", async () => {
    const folder = project();
    await run(folder, "alpha-one");
    await run(folder, "alpha-two");
    const { stdout } = await pawl(folder, "run", "shop.ts", "ship", '"x"', "--no-wait", "--json");
    const { id } = JSON.parse(stdout) as { id: string };
    expect(await json(folder, "show", "-two")).toMatchObject({ id: "alpha-two" });
    expect(await json(folder, "show", id.slice(0, 8))).toMatchObject({ id });
    expect(await json(folder, "show", id.slice(-8))).toMatchObject({ id });
    const both = await pawl(folder, "show", "alpha", "--json");
    expect(both.code).toBe(2);
    expect(errorOf(both).message).toContain('"alpha" fits 2 runs: alpha-two, alpha-one');
  });

  it.each(["show", "why", "journal", "cancel", "retry"])("ends with 3 if %s is asked about no run", async (command) => {
    const folder = project();
    await run(folder, "run-1");
    const text = await pawl(folder, command, "nothing");
    expect(text).toMatchObject({ code: 3, stdout: "", stderr: expect.stringContaining('no run "nothing"') });
    const result = await pawl(folder, command, "nothing", "--json");
    expect(result).toMatchObject({ code: 3, stdout: "" });
    expect(errorOf(result).code).toBe("run_not_found");
  });

  it.each(["../../etc/passwd", "..\\..\\x", "%2e%2e%2f", "a#b", "x".repeat(5000), "\u001b[31mred"])(
    "Q7 takes %j for a name and nothing else",
    async (id) => {
      const folder = project();
      await run(folder, "run-1");
      const { code, stderr } = await pawl(folder, "show", id);
      expect(code).toBe(3);
      expect(stderr).not.toContain("\u001b");
      expect(stderr.length).toBeLessThan(400);
    },
  );
});

describe("pawl show and pawl journal", () => {
  it("S2-66 show every step with its attempts, waits and children", async () => {
    const folder = project();
    await run(folder, "run-1", "retry", "ship");
    const { code, stdout } = await pawl(folder, "show", "run-1");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^order 1\.0\.0 {2}waiting {2}run-1$/m);
    expect(stdout).toMatch(/step +fetch +\S+ ms +completed/);
    expect(stdout).toMatch(
      /step +flaky .* completed\n.* attempt 1 .*failed: lost connection 1; again after .*\n.* attempt 2 .*\n.* attempt 3 .*completed/,
    );
    expect(stdout).toMatch(/child +ship .* waiting {2}run \S+/);
    const shown = await json<{ timeline: { steps: { key: string; attempts: unknown[] }[] } }>(folder, "show", "run-1");
    expect(shown.timeline.steps.map(({ key, attempts }) => [key, attempts.length])).toEqual([
      ["fetch", 1],
      ["flaky", 3],
    ]);
  });

  it("print the journal, entry by entry", async () => {
    const folder = project();
    await run(folder, "run-1");
    const { stdout } = await pawl(folder, "journal", "run-1", "--from", "2", "--limit", "2");
    expect(stdout).toMatch(
      /^SEQ +AT +TYPE +KEY +PAYLOAD\n +2 +\S+Z +step\.started +fetch\n +3 +\S+Z +step\.completed +fetch +3\n$/,
    );
    const entries = await json<{ seq: number; type: string }[]>(folder, "journal", "run-1");
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
  it("S2-7 explains a run that succeeded, failed, waits for a signal, or for a child that waits itself", async () => {
    const folder = project();
    await run(folder, "good");
    await run(folder, "bad", "fail");
    await run(folder, "open", "approve");
    await run(folder, "mother", "ship");
    const why = async (id: string) => (await pawl(folder, "why", id)).stdout;
    expect(await why("good")).toMatch(/succeeded after [\s\S]*1 step completed: fetch[\s\S]*Its result: \{"id":"good"/);
    expect(await why("bad")).toMatch(/failed after .* in step "charge": card declined[\s\S]*pawl retry bad/);
    expect(await why("open")).toMatch(
      /is waiting for signal "approved"[\s\S]*pawl signal open approved[\s\S]*no worker is running/,
    );
    expect(await why("mother")).toMatch(/waiting for child "ship"[\s\S]*Child "ship": .* waiting for signal "shipped"/);
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
    await run(folder, "open", "approve");
    await pawl(folder, "signal", "open", "aproved");
    expect((await pawl(folder, "why", "open")).stdout).toContain(
      'Signal "aproved" has come, but nothing waits for it.',
    );
  });
});
