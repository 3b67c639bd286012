// The guard and the shield belong to the process, not to a store: they are shown once, on memory.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Guard, workflow } from "../../src/core/workflow.ts";
import { coldStartFile } from "../cold-start.ts";
import { errorOf, openWorld } from "./harness.ts";

const HAZARDS: Readonly<Record<string, () => unknown>> = {
  "Date.now()": () => Date.now(),
  "new Date()": () => new Date(),
  "Math.random()": () => Math.random(),
  "crypto.randomUUID()": () => crypto.randomUUID(),
  "setTimeout()": () => clearTimeout(setTimeout(() => {}, 0)),
  "setInterval()": () => clearInterval(setInterval(() => {}, 1000)),
  "setImmediate()": () => clearImmediate(setImmediate(() => {})),
  "fetch()": () => fetch("data:text/plain,x").catch(() => {}),
};

const hazardous = (guard: Guard, hazard: () => unknown) =>
  workflow({ name: "hazardous", guard }, async (ctx) => {
    await ctx.step("inside", async () => void (await hazard()));
    hazard();
    return ctx.step("after", () => "done");
  });

describe("the guard", () => {
  it.each(Object.keys(HAZARDS))("P7 S3-15 warns of %s in a body, once per line, and not in a step", async (name) => {
    const world = await openWorld("memory");
    const flow = hazardous("warn", HAZARDS[name] as () => unknown);
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    expect(await run.result()).toBe("done");
    await pawl.run(flow);
    const warnings = world.lines.filter((line) => line.level === "warn" && line.message.includes(name));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]?.fields).toMatchObject({ run: run.id, what: name });
    expect(warnings[0]?.message).toMatch(/guard\.test\.ts:\d+.*Use /);
  });

  it.each(Object.keys(HAZARDS))('P7 S3-15 refuses %s in a body with guard "error"', async (name) => {
    const world = await openWorld("memory");
    const flow = hazardous("error", HAZARDS[name] as () => unknown);
    const pawl = await world.open([flow]);
    expect(await errorOf(pawl.run(flow))).toMatchObject({ code: "determinism_hazard", fields: { what: name } });
  });

  it('P7 says nothing with guard "off", nor of code outside of bodies', async () => {
    const world = await openWorld("memory");
    const all = () => Object.values(HAZARDS).map((hazard) => hazard());
    const flow = hazardous("off", all);
    const pawl = await world.open([flow]);
    await pawl.run(flow);
    all();
    expect(world.lines.filter(({ level }) => level === "warn" || level === "error")).toEqual([]);
  });

  it("P7 leaves dates that are given a time alone", async () => {
    const world = await openWorld("memory");
    const flow = workflow({ name: "dates", guard: "error" }, async () => [
      new Date(5).getTime(),
      Date.UTC(1970, 0, 1),
      new Date(0) instanceof Date,
    ]);
    expect(await (await world.open([flow])).run(flow)).toEqual([5, 0, true]);
  });

  it("P7 gives the globals back when the last engine closes", async () => {
    const before = [Date, Date.now, Math.random, setTimeout, fetch];
    const world = await openWorld("memory");
    const flow = workflow("nothing", async () => 1);
    const engines = [await world.open([flow]), await world.open([flow])];
    await engines[0]?.close();
    expect(Math.random).not.toBe(before[2]);
    await engines[1]?.close();
    expect([Date, Date.now, Math.random, setTimeout, fetch]).toEqual(before);
  });
});

const PACKAGE = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

/** Runs a program that sees the built package and the careless workflow; resolves with how it ended. */
function runProgram(body: string): Promise<{ code: number | null; out: string; err: string }> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-program-"));
  const [file, flow] = [join(folder, "program.mjs"), join(folder, "careless.mjs")];
  const store = join(folder, "pawl.db");
  onTestFinished(async () => {
    await coldStartFile(store, [flow]);
    rmSync(folder, { recursive: true, force: true });
  });
  writeFileSync(flow, `import { workflow } from ${JSON.stringify(PACKAGE)};\n${CARELESS}`);
  writeFileSync(file, `import { Pawl } from ${JSON.stringify(PACKAGE)};\n${OPEN}\n${body}`);
  return new Promise((resolve) => {
    execFile(process.execPath, [file, store], { timeout: 20_000 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : typeof error.code === "number" ? error.code : null, out, err });
    });
  });
}

// A failing step that the body looks at later, one it never looks at, and a promise derived from one.
const CARELESS = `
export const careless = workflow({ name: "careless", retry: false }, async (ctx) => {
  const late = ctx.step("late", () => Promise.reject(new Error("late")));
  ctx.step("never", () => Promise.reject(new Error("never")));
  ctx.step("derived", () => Promise.reject(new Error("derived"))).then(() => {});
  (async () => { await ctx.step("nested", () => { throw new Error("nested") }); })();
  await ctx.step("slow", () => new Promise((resolve) => setImmediate(() => setImmediate(resolve))));
  await ctx.waitFor("go");
  return late.catch((error) => error.message);
});
`;

const OPEN = `
import { careless } from "./careless.mjs";
const open = () => Pawl.open(process.argv[2], { workflows: [careless] });
`;

describe("unhandled rejections", () => {
  it("P11 B62 of runs do not end the process, live nor in replay", async () => {
    const { code, out, err } = await runProgram(`
      const first = await open();
      await first.start(careless, undefined, { id: "r" });
      await first.idle();
      await first.close();
      const second = await open();
      await second.signal("r", "go");
      console.log(await second.get("r").result());
      await second.close();`);
    expect({ code, out: out.trim(), err }).toEqual({ code: 0, out: "late", err: "" });
  });

  it("P11 of others still do", async () => {
    const { code, err } = await runProgram(`
      await open();
      Promise.reject(new Error("somebody else's"));
      setTimeout(() => process.exit(0), 5000);`);
    expect(code).not.toBe(0);
    expect(err).toContain("somebody else's");
  });

  it("P11 of others reach the program's own listener", async () => {
    const { code, out } = await runProgram(`
      process.on("unhandledRejection", (error) => console.log("seen", error.message));
      const pawl = await open();
      await pawl.start(careless, undefined, { id: "r" });
      Promise.reject(new Error("mine"));
      await pawl.idle();
      await pawl.close();`);
    expect({ code, out: out.trim() }).toEqual({ code: 0, out: "seen mine" });
  });
});
