import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Pawl } from "pawl";
import { exportRun } from "pawl/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createProject, errorOf, hosted, json, pawl, type Result, removeProject } from "./fixtures/cli/command.ts";
import { seed } from "./fixtures/cli/seed.ts";

interface Exported {
  readonly format: string;
  readonly formatVersion: number;
  readonly run: Readonly<Record<string, unknown>>;
  readonly children: readonly string[];
  readonly entries: readonly Readonly<Record<string, unknown>>[];
}

const read = (folder: string, file: string) => JSON.parse(readFileSync(join(folder, file), "utf8")) as Exported;
/** In the process of the others: its files do not change, and it leaves nothing behind. */
const replay = (...args: readonly string[]): Promise<Result> => hosted(folder, ["replay", ...args]);
const effects = (folder: string) => readFileSync(join(folder, "effects.log"), "utf8");

/** A project with exports of a run that succeeded, one that failed, one with a child and one that waits. */
let folder: string;

/** The shop with one change. */
function changed(name: string, before: string, after: string): string {
  const text = readFileSync(join(folder, "shop.ts"), "utf8");
  writeFileSync(join(folder, name), text.replace(before, after));
  return name;
}

beforeAll(async () => {
  folder = createProject();
  await seed(folder, { done: ["retry"], bad: ["fail"], waits: ["approve"], parent: ["ship"] });
  mkdirSync(join(folder, "runs"));
  const client = await Pawl.open(join(folder, ".pawl", "pawl.db"));
  for (const id of ["done", "bad", "waits", "parent"])
    writeFileSync(join(folder, "runs", `${id}.json`), JSON.stringify(await exportRun(client, id)));
  await client.close();
});

afterAll(() => removeProject(folder));

describe("pawl export and pawl replay", () => {
  it("I5 a folder of exports is reproduced by the code that made them; nothing is done again", async () => {
    const before = effects(folder);
    const { code, stdout } = await pawl(folder, "replay", "runs", "shop.ts");
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining("4 runs reproduced.") });
    expect(effects(folder)).toBe(before);
    const file = read(folder, "runs/parent.json");
    expect(file).toMatchObject({ format: "pawl-run", formatVersion: 1, run: { id: "parent", state: "waiting" } });
    expect(file.children).toEqual([expect.stringMatching(/^c/)]);
    expect(file.entries.map(({ seq }) => seq)).toEqual(file.entries.map((_, index) => index));
  });

  it("I5 P3 changed code is found: the entry, what is recorded, what the code does instead, and its line; exit code 1", async () => {
    const shop = changed("renamed.ts", 'ctx.step("fetch"', 'ctx.step("fetch-all"');
    const one = await replay("runs/done.json", shop);
    expect(one.code).toBe(1);
    expect(one.stdout).toContain("differs  runs/done.json");
    expect(one.stdout).toMatch(/^ {2}- 2 {2}step "fetch" {2}recorded$/m);
    expect(one.stdout).toMatch(/^ {2}\+ 2 {2}step "fetch-all" {2}the code {2}at renamed\.ts:\d+:\d+$/m);
    const all = await replay("runs", shop, "--json");
    expect(all.code).toBe(1);
    const answer = JSON.parse(all.stdout) as { failed: number; results: { diff: unknown; line: string }[] };
    expect(answer).toMatchObject({ ok: false, replayed: 4, failed: 4, skipped: 0 });
    expect(answer.results[0]).toMatchObject({ ok: false, diff: { seq: 2, recorded: 'step "fetch"' } });
  });

  it("P34 a run of a version that this code would not take is skipped", async () => {
    const shop = changed("next.ts", '{ name: "order", input', '{ name: "order", version: "2.0.0", input');
    const { code, stdout } = await replay("runs/done.json", shop);
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining("skipped  runs/done.json") });
  });

  it("Q13 --redact leaves all values out, or those with a name, and says so where they stood", async () => {
    const all = await pawl(folder, "export", "done", "--redact");
    expect(all.code).toBe(0);
    expect(all.stdout).not.toContain('"plan"');
    expect(all.stdout).not.toContain("order done");
    expect(all.stdout).not.toContain("lost connection");
    await pawl(folder, "export", "done", "--redact", "text", "--out", "named.json");
    const named = read(folder, "named.json").entries;
    expect(named.find(({ type }) => type === "note")).toMatchObject({ value: { text: { $redacted: "string" } } });
    expect(named[0]).toMatchObject({ value: { input: { id: "done" } } });
    expect((await replay("named.json", "shop.ts")).code).toBe(0);
    writeFileSync(join(folder, "all.json"), all.stdout);
    const replayed = await replay("all.json", "shop.ts");
    expect(replayed.code).toBe(1);
    expect(replayed.stdout).toContain("The value of run.started (entry 0) is redacted in this export");
  });

  it("I23 a damaged export, a newer one and one of another workflow are refused by file and field", async () => {
    const file = read(folder, "runs/done.json");
    const write = (name: string, value: unknown) => writeFileSync(join(folder, name), JSON.stringify(value));
    write("newer.json", { ...file, formatVersion: 2 });
    write("damaged.json", { ...file, entries: [{ ...file.entries[0], at: "soon" }] });
    write("other.json", { ...file, run: { ...file.run, workflow: "gone" } });
    writeFileSync(join(folder, "cut.json"), JSON.stringify(file).slice(0, 500));
    const refused = async (name: string) => {
      const result = await replay(name, "shop.ts", "--json");
      return { code: result.code, message: errorOf(result).message };
    };
    expect(await refused("newer.json")).toEqual({
      code: 2,
      message: expect.stringMatching(/^newer\.json: formatVersion is 2; .*Upgrade Pawl/),
    });
    expect(await refused("damaged.json")).toEqual({
      code: 2,
      message: expect.stringMatching(/^damaged\.json: .*entries\[0\]\.at cannot be "soon"\. Export the run again/),
    });
    expect(await refused("other.json")).toEqual({ code: 3, message: expect.stringContaining('workflow "gone"') });
    expect(await refused("cut.json")).toEqual({ code: 2, message: expect.stringContaining("cut.json is not JSON") });
    expect(await refused("nowhere")).toEqual({
      code: 2,
      message: expect.stringContaining("no file or folder nowhere"),
    });
  });

  it("writes to stdout without --out, and to no folder that does not exist", async () => {
    expect(JSON.parse((await pawl(folder, "export", "done")).stdout)).toMatchObject({ run: { id: "done" } });
    expect(await json(folder, "export", "done", "--out", "done.json")).toMatchObject({
      run: "done",
      file: "done.json",
    });
    expect((await pawl(folder, "export", "done", "--out", "gone/done.json")).code).toBe(2);
    expect((await pawl(folder, "export", "nobody")).code).toBe(3);
  });
});
