// Five real worker processes on one SQLite file, killed while slots come: each slot has one run, and none is missing.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Pawl } from "../src/client/pawl.ts";
import { built, type Child, startChild } from "./child.ts";

const WORKERS = 5;
const SCHEDULES = ["a", "b", "c"];
const KILLS = 8;
const SLOTS = 5;

/** Works until it is killed; each start of the effect is a line in the ledger, and the first one is said: who dies again and again is parked. */
function startWorker(file: string, ledger: string): Child {
  return startChild(`
    import { appendFileSync } from "node:fs";
    import { Pawl, workflow } from "${built("index.js")}";
    const job = workflow("job", async (ctx) => {
      await ctx.step("effect", ({ attempt }) => {
        appendFileSync(${JSON.stringify(ledger)}, ctx.run.id + " " + attempt + "\\n");
        if (attempt === 1) say(ctx.run.id);
      });
    });
    await Pawl.open(${JSON.stringify(file)}, { workflows: [job], logger: { debug() {}, info() {}, warn() {}, error() {} } });
    await new Promise(() => setInterval(() => {}, 1000));`);
}

it("I13 B46 each slot runs once with five workers that are killed while it comes", async () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-schedules-"));
  const [file, ledger] = [join(folder, "pawl.db"), join(folder, "ledger")];
  writeFileSync(ledger, "");
  const children: Child[] = [];
  onTestFinished(async () => {
    for (const child of children) await child.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  const client = await Pawl.open(file);
  onTestFinished(() => client.close());
  for (const name of SCHEDULES) await client.schedule(name, "job", { every: "1 second", misfire: "catchUp" });

  const seen = new Map(SCHEDULES.map((name) => [name, new Set<string>()]));
  let kills = 0;
  const isEnough = () => kills >= KILLS && [...seen.values()].every((slots) => slots.size >= SLOTS);
  const work = async (): Promise<void> => {
    while (!isEnough()) {
      const child = startWorker(file, ledger);
      children.push(child);
      await untilKilled(child);
    }
  };
  /** Kills it right after an effect, every other time that it has one, until there were enough kills. */
  const untilKilled = async (child: Child): Promise<void> => {
    for (let line = 1; !isEnough(); line++) {
      const id = await child.line();
      seen.get(id.slice(0, 1))?.add(id);
      if (kills >= KILLS || line % 2 === 1) continue;
      kills += 1;
      return child.kill();
    }
  };
  const working = Array.from({ length: WORKERS }, () => work());
  await Promise.race(working);
  for (const name of SCHEDULES) expect(await client.unschedule(name)).toBe(true);
  for (const one of working) one.catch(() => {});
  await expect.poll(async () => (await client.list({ status: "running" })).runs.length, { timeout: 20_000 }).toBe(0);

  expect(kills).toBe(KILLS);
  const lines = readFileSync(ledger, "utf8").trim().split("\n");
  // An effect that a kill has interrupted begins again as the next attempt; a second run of a slot would begin with the first.
  expect(new Set(lines).size).toBe(lines.length);
  for (const name of SCHEDULES) {
    const { runs } = await client.list({ tag: `schedule:${name}`, limit: 1000 });
    const slots = runs.map(({ id }) => Date.parse(id.slice(name.length + 1))).sort((a, b) => a - b);
    expect(slots.length).toBeGreaterThanOrEqual(SLOTS);
    expect(slots).toEqual(slots.map((_, n) => (slots[0] ?? 0) + n * 1000));
    expect(runs.map(({ status }) => status)).toEqual(runs.map(() => "succeeded"));
    expect(runs.filter(({ id }) => !lines.some((line) => line.startsWith(`${id} `)))).toEqual([]);
  }
}, 90_000);
