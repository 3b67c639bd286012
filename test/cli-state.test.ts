import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { Pawl } from "../src/client/pawl.ts";
import { workflow } from "../src/core/workflow.ts";
import { errorOf, hosted, project, type Result } from "./fixtures/cli/command.ts";

/** In the process of the others: the files that they load stay as they are. */
const pawl = (folder: string, ...args: readonly string[]): Promise<Result> => hosted(folder, args);

async function json<T>(folder: string, ...args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await pawl(folder, ...args, "--json");
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as T;
}

const letter = (version: string) =>
  workflow({ name: "letter", version, input: z.object({ to: z.string() }) }, async (ctx, { to }) => {
    ctx.set("seen", new Date(0));
    await ctx.waitFor("send");
    return `${version} ${to}`;
  });

const url = (folder: string) => join(folder, ".pawl/pawl.db");

/** Works with this version until nothing is left to do. */
async function work(folder: string, version: string, body: (engine: Pawl) => Promise<unknown>): Promise<unknown> {
  const engine = await Pawl.open(url(folder), {
    workflows: [letter(version)],
    versionGrace: 0,
    handleSignals: false,
    logger: { debug() {}, info() {}, warn() {}, error() {} },
  });
  try {
    return await body(engine);
  } finally {
    await engine.close();
  }
}

async function seeded(): Promise<string> {
  const folder = project();
  await work(folder, "1.3.0", async (engine) => {
    await engine.start(letter("1.3.0"), { to: "bob" }, { id: "r1" });
    await engine.idle();
  });
  return folder;
}

function edited(folder: string, value: unknown): string {
  const file = join(folder, "state.json");
  writeFileSync(file, typeof value === "string" ? value : JSON.stringify(value));
  return file;
}

const WHO = ["--by", "ann", "--reason", "wrong address"];

describe("pawl state", () => {
  it("S0-43 C-23 X-17 shows what a run goes on from, and edits it: recorded, with who did it and why", async () => {
    const folder = await seeded();
    const shown = await json<Record<string, unknown>>(folder, "state", "show", "r1");
    expect(shown).toMatchObject({
      run: "r1",
      workflow: "letter",
      version: "1.3.0",
      input: { to: "bob" },
      state: { seen: { $date: "1970-01-01T00:00:00.000Z" } },
    });
    const file = edited(folder, { ...shown, input: { to: "eve" }, phases: { intake: { status: "done" } } });
    expect(await pawl(folder, "state", "edit", "r1", "--file", file, ...WHO)).toMatchObject({
      code: 0,
      stdout: "Run r1 goes on from the edited state.\n",
    });
    const journal = await json<{ type: string; payload: object }[]>(folder, "journal", "r1");
    expect(journal.at(-1)).toMatchObject({
      type: "run.continued",
      payload: {
        cause: "edit",
        by: "ann",
        reason: "wrong address",
        adopted: { phases: { intake: { status: "done" } } },
      },
    });
    expect(await json(folder, "state", "show", "r1")).toMatchObject({
      input: { to: "eve" },
      state: { seen: { $date: "1970-01-01T00:00:00.000Z" } },
      phases: { intake: { status: "done" } },
    });
    const result = await work(folder, "1.3.0", async (engine) => {
      await engine.signal("r1", "send");
      return engine.get("r1").result();
    });
    expect(result).toBe("1.3.0 eve");
  });

  it("C-23 refuses an edit with the path of what is wrong, and changes nothing", async () => {
    const folder = await seeded();
    const before = await json(folder, "journal", "r1");
    const file = edited(folder, { phases: { intake: { status: "ready" } } });
    const answer = await pawl(folder, "state", "edit", "r1", "--file", file, ...WHO, "--json");
    expect([answer.code, errorOf(answer).code]).toEqual([2, "schema_mismatch"]);
    expect(answer.stderr).toContain("phases.intake.status");
    const unsaid = await pawl(folder, "state", "edit", "r1", "--file", edited(folder, {}), "--by", "ann");
    expect(unsaid).toMatchObject({ code: 2, stderr: expect.stringContaining("--reason") });
    expect((await pawl(folder, "state", "melt", "r1")).stderr).toContain("show, edit");
    expect(await json(folder, "journal", "r1")).toEqual(before);
  });

  it("C-23 checks the input against the workflow's schema where its code is given", async () => {
    const folder = project({
      "letter.ts": `import { workflow } from "pawl";
        const input = { "~standard": { version: 1 as const, vendor: "t", validate: (value: any) =>
          typeof value.to === "string" ? { value } : { issues: [{ message: "must be text", path: ["to"] }] } } };
        export const letter = workflow({ name: "letter", version: "1.3.0", input }, async (ctx) => ctx.waitFor("send"));`,
    });
    await work(folder, "1.3.0", async (engine) => {
      await engine.start(letter("1.3.0"), { to: "bob" }, { id: "r1" });
      await engine.idle();
    });
    const file = edited(folder, { input: { to: 7 } });
    const answer = await pawl(folder, "state", "edit", "r1", "--file", file, "--code", "letter.ts", ...WHO);
    expect(answer).toMatchObject({ code: 2, stderr: expect.stringContaining("to: must be text") });
  });
});

describe("a run of a version that no worker has", () => {
  it("S0-40 S0-42 X-17 pawl why lists the choices, and pawl resolve takes them", async () => {
    const folder = await seeded();
    await work(folder, "2.0.0", (engine) => engine.idle());
    const why = (await pawl(folder, "why", "r1")).stdout;
    for (const line of ["1.3.0", "2.0.0", '1. "old"', '2. "fresh"', '3. "migrate"', "pawl resolve r1 fresh"])
      expect(why).toContain(line);
    const refused = await pawl(folder, "resolve", "r1", "migrate");
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("no migration from 1.3.0 to 2.0.0") });
    const [fresh] = (await work(folder, "2.0.0", async (engine) => {
      const answer = await pawl(folder, "resolve", "r1", "fresh");
      expect(answer).toMatchObject({ code: 0, stdout: expect.stringMatching(/It goes on as run \S+\.\n$/) });
      const run = answer.stdout.match(/run (\S+)\.\n$/)?.[1] ?? "";
      await engine.signal(run, "send");
      return [await engine.get(run).result()];
    })) as [string];
    expect(fresh).toBe("2.0.0 bob");
    expect(await json(folder, "show", "r1")).toMatchObject({ state: "cancelled" });
  });
});
