import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { begin, errorOf, hosted, json, pawl, project, type Result } from "./fixtures/cli/command.ts";

interface Outcome {
  readonly id: string;
  readonly status: string;
  readonly output?: unknown;
  readonly error?: { readonly message: string };
  readonly parked?: { readonly choices: readonly string[] };
}

/** In the process of the others, where it is about neither the process nor how it ends. */
const run = (folder: string, ...args: readonly string[]): Promise<Result> =>
  hosted(folder, ["run", "shop.ts", ...args]);
const effects = (folder: string) => readFileSync(join(folder, "effects.log"), "utf8").trim().split("\n");
const input = (id: string, ...plan: string[]) => JSON.stringify({ id, plan });

describe("pawl init", () => {
  it("writes a first workflow that runs, in a CommonJS project and one of ES modules", async () => {
    for (const manifest of ['{ "name": "plain" }', '{ "type": "module" }']) {
      const folder = project({ "package.json": manifest });
      const { code, stdout } = await hosted(folder, ["init"]);
      expect(code).toBe(0);
      expect(stdout).toContain("pawl run workflows/hello.ts hello");
      const hello = begin(folder, ["run", "workflows/hello.ts", "hello", "--no-wait"]);
      await hello.line(/✓ greet/);
      hello.kill("SIGKILL");
      expect(readFileSync(join(folder, "package.json"), "utf8")).toBe(manifest);
    }
  });

  it("overwrites nothing", async () => {
    const folder = project({
      "workflows/hello.ts": "// mine\n",
      "package.json": '{\n    "scripts": { "worker": "mine" }\n}\n',
    });
    const before = readFileSync(join(folder, "package.json"), "utf8");
    expect(JSON.parse((await hosted(folder, ["init", "--script", "--json"])).stdout)).toMatchObject({
      created: false,
      script: false,
    });
    expect(readFileSync(join(folder, "workflows/hello.ts"), "utf8")).toBe("// mine\n");
    expect(readFileSync(join(folder, "package.json"), "utf8")).toBe(before);
  });

  it("adds a script when asked, and keeps the file's indentation", async () => {
    const folder = project({ "package.json": '{\n    "name": "x"\n}\n' });
    await hosted(folder, ["init", "--script"]);
    expect(readFileSync(join(folder, "package.json"), "utf8")).toMatch(
      /^\{\n {4}"name": "x",\n {4}"scripts": \{\n {8}"worker": "pawl worker /,
    );
  });

  it("says where to begin if there is no such folder", async () => {
    expect(await hosted(project(), ["init", "nowhere"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no folder nowhere"),
    });
  });
});

describe("pawl run", () => {
  it("prints progress on stderr and the result on stdout", async () => {
    const { code, stdout, stderr } = await pawl(project(), "run", "shop.ts", "order", input("o1", "retry"));
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ id: "o1", items: 3 });
    expect(stderr).toMatch(/✓ fetch/);
    expect(stderr).toMatch(/✗ flaky {2}attempt 1 failed: lost connection 1; again in /);
    expect(stderr).toMatch(/✓ flaky {2}.*attempt 3/);
    expect(stderr).not.toContain("\u001b");
  });

  it("tells a few items of a map one by one and sums up the rest; the result is complete for people and programs", async () => {
    const many = `
      import { TerminalError, workflow } from "pawl";
      export const many = workflow("many", async (ctx, n: number) => {
        const items = Array.from({ length: n }, (_, i) => i);
        const work = (i: number) => ctx.step("item", () => {
          if (i === 30) throw new TerminalError("no thirty");
          return i;
        });
        const results = await ctx.map(items, work, { partial: true, concurrency: 5 });
        await ctx.step("after", () => {});
        return results.map(({ status }) => status);
      });`;
    const folder = project({ "many.ts": many });
    const { code, stdout, stderr } = await hosted(folder, ["run", "many.ts", "many", "200"]);
    expect(code).toBe(0);
    const shown = stderr.match(/✓ map\/\d+\/item/g)?.length ?? 0;
    const [line = "", more] = /^ {2}✗ map {2}(\d+) more steps done, 1 failed$/m.exec(stderr) ?? [];
    expect(shown).toBeGreaterThan(0);
    expect(shown).toBeLessThanOrEqual(10);
    expect(shown + Number(more)).toBe(199);
    expect(stderr.indexOf(line)).toBeLessThan(stderr.indexOf("✓ after"));
    expect(JSON.parse(stdout)).toHaveLength(200);
    const few = await hosted(folder, ["run", "many.ts", "many", "5"]);
    expect(few.stderr.match(/✓ map\/\d\/item/g)?.length).toBe(5);
    expect(few.stderr).not.toContain("more step");
    const { stdout: told } = await hosted(folder, ["run", "many.ts", "many", "200", "--json"]);
    expect((JSON.parse(told) as Outcome).output).toHaveLength(200);
  });

  it("gives programs one object", async () => {
    const { stdout } = await run(project(), "order", input("o1", "date"), "--json");
    expect(JSON.parse(stdout)).toMatchObject({
      status: "succeeded",
      output: { at: "1970-01-01T00:00:00.000Z", big: "10" },
    });
  });

  it("C-9 D-11 gives the same run for a key, and refuses the key with other input", async () => {
    const folder = project();
    const told = async (...args: readonly string[]) =>
      JSON.parse((await run(folder, "order", ...args, "--key", "k", "--json")).stdout) as Outcome;
    const [first, again, bare] = [await told(input("o1")), await told(input("o1")), await told()];
    expect([again.id, bare.id]).toEqual([first.id, first.id]);
    expect(effects(folder)).toEqual(["fetch o1"]);
    const other = await run(folder, "order", input("o2"), "--key", "k", "--json");
    expect(other.code).toBe(2);
    expect(errorOf(other)).toMatchObject({ code: "idempotency_conflict", message: expect.stringContaining(first.id) });
  });

  it("ends with 1 if the run failed, and says how to go on", async () => {
    const folder = project();
    const { code, stdout, stderr } = await pawl(folder, "run", "shop.ts", "order", input("o1", "fail"), "--id", "o1");
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/✗ charge {2}failed: card declined/);
    expect(stderr).toContain("pawl retry o1");
    const result = await run(folder, "order", "--id", "o1", "--json");
    expect(result.code).toBe(1);
    expect(JSON.parse(result.stdout)).toMatchObject({ status: "failed", error: { message: "card declined" } });
  });

  it("Q9 looks a workflow up by its name and nothing else", async () => {
    for (const name of ["nope", "__proto__", "constructor", "toString", "../shop"]) {
      const { code, stderr } = await hosted(project(), ["run", "shop.ts", name]);
      expect(code).toBe(3);
      expect(stderr).toMatch(/It has: order, ship\./);
    }
  });

  it("takes input from a file and from stdin", async () => {
    const folder = project({ "input.json": input("from-file") });
    const read = await run(folder, "order", "@input.json");
    expect(JSON.parse(read.stdout)).toMatchObject({ id: "from-file" });
    const piped = await begin(folder, ["run", "shop.ts", "order", "-"], { stdin: input("from-stdin") }).ended;
    expect(JSON.parse(piped.stdout)).toMatchObject({ id: "from-stdin" });
  });

  it.each([
    ["Ada", /INPUT is not JSON.*'"Ada"'/],
    ["{id:1}", /INPUT is not JSON.*single quotes/],
    ["@nowhere.json", /INPUT: there is no file nowhere\.json/],
    ['{"id":7}', /id: must be text/],
  ])("refuses the input %s and names what to do", async (text, message) => {
    const folder = project();
    const { code, stderr } = await hosted(folder, ["run", "shop.ts", "order", text]);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it("creates no store for a call that cannot work", async () => {
    const folder = project();
    await run(folder, "order", "{");
    await run(folder, "nope", "{}");
    expect(existsSync(join(folder, ".pawl"))).toBe(false);
  });

  it("S2-7 goes on after SIGKILL where it was, without running finished steps again", async () => {
    const folder = project();
    const first = begin(folder, ["run", "shop.ts", "order", input("o1", "approve"), "--id", "o1"]);
    await first.line(/◷ signal approved {2}waiting; send it with: pawl signal o1 approved/);
    first.kill("SIGKILL");
    await first.ended;
    const second = begin(folder, ["run", "shop.ts", "order", "--id", "o1"]);
    expect(await second.line(/^order 1\.0\.0/)).toContain("goes on: 1 step done before");
    expect((await pawl(folder, "signal", "o1", "approved")).code).toBe(0);
    expect((await second.ended).code).toBe(0);
    expect(effects(folder)).toEqual(["fetch o1"]);
  });

  it("stops on Ctrl-C with 130 and names the command to go on with", async () => {
    const folder = project();
    const first = begin(folder, ["run", "shop.ts", "order", input("o1", "approve"), "--key", "k"]);
    await first.line(/signal approved/);
    first.kill("SIGINT");
    const { code, stderr } = await first.ended;
    expect(code).toBe(130);
    const [, again = ""] = /^ {2}pawl (run shop\.ts order --id \S+)$/m.exec(stderr) ?? [];
    const second = begin(folder, again.split(" "));
    const id = again.split(" ").at(-1) ?? "";
    await second.line(/goes on/);
    await pawl(folder, "signal", id, "approved");
    expect((await second.ended).code).toBe(0);
  });

  it("stops at once on a second Ctrl-C, whatever a step does", async () => {
    const run = begin(project(), ["run", "shop.ts", "order", input("o1", "hang")]);
    await run.line(/▸ hang {2}running/);
    run.kill("SIGINT");
    await run.line(/^Stopping/);
    run.kill("SIGINT");
    expect((await run.ended).code).toBe(130);
  });

  it("with --no-wait ends with 4 as soon as the run waits", async () => {
    const folder = project();
    const text = await run(folder, "order", input("o1", "approve"), "--no-wait");
    expect(text).toMatchObject({ code: 4, stdout: "" });
    expect(text.stderr).toContain('It waits for signal "approved"');
    const result = await run(folder, "order", input("o2", "approve"), "--no-wait", "--json");
    expect(result.code).toBe(4);
    expect(JSON.parse(result.stdout)).toMatchObject({
      status: "waiting",
      waits: [{ kind: "signal", name: "approved" }],
    });
  });

  it("S2-7 ends with 4 when the run is parked, and goes on once a person has decided", async () => {
    const folder = project();
    const first = begin(folder, ["run", "shop.ts", "order", input("o1", "pay"), "--id", "o1"]);
    await first.line(/▸ pay {2}running/);
    first.kill("SIGKILL");
    await first.ended;
    const parked = await run(folder, "order", "--id", "o1");
    expect(parked.code).toBe(4);
    expect(parked.stderr).toContain("pawl resolve o1 complete");
    const why = async () => (await pawl(folder, "why", "o1")).stdout;
    expect(await why()).toMatch(/is parked \(unknown_outcome\)[\s\S]*nobody can tell[\s\S]*pawl resolve o1 rerun/);
    expect((await pawl(folder, "resolve", "o1", "odd")).stderr).toContain(
      "Choose one of: rerun, complete, fail, cancel",
    );
    expect(await json(folder, "resolve", "o1", "complete", "--value", '{"paid":true}')).toEqual({
      run: "o1",
      choice: "complete",
    });
    expect(await why()).toMatch(
      /A decision on it is recorded and takes effect when a worker has the run(?![\s\S]*pawl resolve)/,
    );
    expect((await run(folder, "order", "--id", "o1")).code).toBe(0);
  });

  it("S0-40 E-1 refuses a run of another version, with both versions and the three choices", async () => {
    const folder = project();
    await run(folder, "order", input("o1", "approve"), "--id", "o1", "--no-wait");
    const newer = readFileSync(join(folder, "shop.ts"), "utf8").replace(
      'name: "order",',
      'name: "order", version: "2.0.0",',
    );
    const other = project({ "shop.ts": newer });
    const { code, stderr } = await run(other, "order", "--id", "o1", "--store", join(folder, ".pawl/pawl.db"));
    expect(code).toBe(2);
    expect(stderr).toMatch(/Run o1 .* 1\.0\.0.* 2\.0\.0[\s\S]*1\. "old"[\s\S]*2\. "fresh"[\s\S]*3\. "migrate"/);
  });
});

describe("pawl worker and pawl start", () => {
  it("D-11 one run for a key that is started three times at once, later, and after a restart", async () => {
    const folder = project();
    const worker = begin(folder, ["worker", "shop.ts"]);
    await worker.line(/^Working on order 1\.0\.0, ship 1\.0\.0/);
    const args = ["start", "order", input("o1"), "--key", "k"];
    const atOnce = async () => JSON.parse((await begin(folder, [...args, "--json"]).ended).stdout) as { id: string };
    const start = () => json<{ id: string }>(folder, ...args);
    const ids = (await Promise.all([atOnce(), atOnce(), atOnce()])).map(({ id }) => id);
    ids.push((await start()).id);
    expect((await run(folder, "order", "--key", "k")).code).toBe(0);
    worker.kill("SIGTERM");
    expect(await worker.ended).toMatchObject({ code: 0, stderr: expect.stringContaining("Stopped.") });
    const next = begin(folder, ["worker", "shop.ts", "--json"]);
    await next.line(/"event":"started"/);
    ids.push((await start()).id);
    expect(new Set(ids).size).toBe(1);
    next.kill("SIGINT");
    expect((await next.ended).code).toBe(0);
    expect(
      (await next.ended).stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).event),
    ).toEqual(["started", "stopping", "stopped"]);
    expect(effects(folder)).toEqual(["fetch o1"]);
  });

  it("start prints the id alone, and says so if nobody will work on the run", async () => {
    const folder = project();
    const { code, stdout, stderr } = await pawl(
      folder,
      "start",
      "order",
      "{}",
      "--version",
      "1.0.0",
      "--id",
      "o1",
      "--tag",
      "a",
      "b",
      "--delay",
      "2h",
    );
    expect({ code, stdout }).toEqual({ code: 0, stdout: "o1\n" });
    expect(stderr).toContain("No live worker has order 1.0.0");
    expect(await json(folder, "ls", "--tag", "b")).toMatchObject({
      runs: [{ id: "o1", tags: ["a", "b"], state: "accepted" }],
    });
    expect((await pawl(folder, "why", "o1")).stdout).toMatch(/It is to start .*in (2h|1h 59m)/);
  });

  it("start refuses a workflow that nobody has, and bad options", async () => {
    const folder = project();
    expect((await pawl(folder, "start", "nope", "{}")).code).toBe(3);
    const bad = await pawl(folder, "start", "order", "{}", "--version", "1.0.0", "--delay", "soon");
    expect(bad).toMatchObject({ code: 2, stderr: expect.stringContaining("delay") });
    expect((await pawl(folder, "start", "order", "{}", "--version", "1.0.0", "--priority", "high")).stderr).toContain(
      '--priority "high"',
    );
  });

  it("refuses a concurrency that is no number", async () => {
    expect(await hosted(project(), ["worker", "shop.ts", "--concurrency", "many"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--concurrency "many"'),
    });
  });
});
