// Five real worker processes on one store that are killed while slots come and limits are full: each slot has one run and none is missing, no limit is
// ever exceeded, and a fan-out that needs its own slot again and again comes to its end. The children run the built package.
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Pawl } from "../src/client/pawl.ts";
import { built, type Child, startChild } from "./child.ts";
import { postgresUrl } from "./fixtures/cli/postgres-url.ts";

const WORKERS = 5;
const SCHEDULES = ["a", "b", "c"];
/** Workers that die in the step of a slot, and the slots that each schedule has at least. */
const DEATHS_IN_SLOTS = 3;
const SLOTS = 4;
const SLOTS_PER_DEATH = 2;
/** Runs of the limited workflow, two keys of which may have so many at a time. Of every six the first hangs until its worker is killed. */
const LIMIT = 2;
const JOBS = 18;
const JOBS_PER_DEATH = 6;
const DEPTH = 5;
const LEAVES = 8;

/** Says where it may be killed. Whatever its bodies do is a line in the ledger: whoever is inside of a limited one has a slot, by any clock. */
function startWorker(url: string, ledger: string): Child {
  return startChild(`
    import { appendFileSync } from "node:fs";
    import { Pawl, workflow } from "${built("index.js")}";
    const note = (...words) => appendFileSync(${JSON.stringify(ledger)}, words.join(" ") + "\\n");
    const inside = async (slot, id, body = () => {}) => {
      note("enter", process.pid, slot, id);
      await body();
      for (let round = 0; round < 50; round++) await new Promise((resolve) => setImmediate(resolve));
      note("leave", process.pid, slot, id);
    };
    const hang = () => {
      say("stuck");
      return new Promise(() => {});
    };
    const tick = workflow("tick", async (ctx) => {
      await ctx.step("effect", ({ attempt }) => {
        note("slot", process.pid, ctx.run.id, attempt);
        if (attempt === 1) say(ctx.run.id);
      });
    });
    const key = (n) => "k" + (n % 2);
    const job = workflow({ name: "job", concurrency: { limit: ${LIMIT}, key } }, async (ctx, n) => {
      await ctx.step("work", ({ attempt }) =>
        inside(key(n), ctx.run.id, n % ${JOBS_PER_DEATH} === 0 && attempt === 1 ? hang : undefined),
      );
    });
    const tree = workflow({ name: "tree", concurrency: 1 }, async (ctx, depth) => {
      await ctx.step("work", () => inside("tree", ctx.run.id));
      if (depth === 0) return 1;
      const children = Array.from({ length: 1 + (depth % 2) }, () => ctx.call(tree, depth - 1));
      return (await Promise.all(children)).reduce((sum, leaves) => sum + leaves);
    });
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    await Pawl.open(${JSON.stringify(url)}, { workflows: [tick, job, tree], logger, poll: "100ms" });
    await heard();`);
}

interface Line {
  readonly word: string;
  readonly pid: string;
  readonly what: string;
  readonly id: string;
}

/** Without what a process did after it was about to be killed: nobody knows how far it came. */
function readLedger(ledger: string): Line[] {
  const dying = new Set<string>();
  return readFileSync(ledger, "utf8")
    .trim()
    .split("\n")
    .map((line) => {
      const [word = "", pid = "", what = "", id = ""] = line.split(" ");
      return { word, pid, what, id };
    })
    .filter(({ word, pid }) => {
      if (word === "kill") dying.add(pid);
      return word === "kill" || word === "slot" || !dying.has(pid);
    });
}

/** The most bodies of each slot that were inside at one moment; those of a killed process are out from there on. */
function mostInside(lines: readonly Line[]): Record<string, number> {
  const inside = new Map<string, Line>();
  const most: Record<string, number> = {};
  for (const line of lines) {
    const { word, pid, what, id } = line;
    if (word === "leave") inside.delete(`${pid} ${id}`);
    if (word === "kill") for (const [name, one] of inside) if (one.pid === pid) inside.delete(name);
    if (word !== "enter") continue;
    inside.set(`${pid} ${id}`, line);
    most[what] = Math.max(most[what] ?? 0, [...inside.values()].filter((one) => one.what === what).length);
  }
  return most;
}

it.each(["sqlite", "postgres"] as const)(
  "I13 I18 B16 B46 B56 five workers that are killed again and again run each slot once, never exceed a limit and finish a fan-out (%s)",
  { timeout: 90_000 },
  async (kind) => {
    const folder = mkdtempSync(join(tmpdir(), "pawl-killed-"));
    const ledger = join(folder, "ledger");
    writeFileSync(ledger, "");
    const url = kind === "sqlite" ? join(folder, "pawl.db") : postgresUrl();
    const children: Child[] = [];
    const client = await Pawl.open(url);
    onTestFinished(async () => {
      for (const child of children) await child.kill();
      await client.close();
      rmSync(folder, { recursive: true, force: true });
    });
    for (const name of SCHEDULES) await client.schedule(name, "tick", { every: "1 second", misfire: "catchUp" });
    const version = "1.0.0";
    const root = await client.start("tree", DEPTH, { id: "tree", version });
    const jobs = [];
    for (let n = 0; n < JOBS; n++) jobs.push(await client.start("job", n, { id: `job${n}`, version }));

    const seen = new Map(SCHEDULES.map((name) => [name, new Set<string>()]));
    const hasSlots = (count: number) => [...seen.values()].every(({ size }) => size >= count);
    const stuck: Child[] = [];
    const deaths = { job: 0, slot: 0 };
    let sinceDeath = 0;
    const hire = () => {
      const child = startWorker(url, ledger);
      children.push(child);
      const listen = async () => {
        for (;;) heard(child, await child.line());
      };
      // It ends with the process.
      listen().catch(() => {});
    };
    /** Whoever is stuck dies, or whoever is in a slot; not before others came forward, or a run that died with each of them would be parked (P28). */
    const heard = (child: Child, line: string) => {
      if (line === "stuck") return void stuck.push(child);
      seen.get(line.slice(0, 1))?.add(line);
      if (++sinceDeath < SLOTS_PER_DEATH || !hasSlots(1)) return;
      const victim = stuck.shift();
      if (victim === undefined && deaths.slot >= DEATHS_IN_SLOTS) return;
      deaths[victim === undefined ? "slot" : "job"] += 1;
      sinceDeath = 0;
      appendFileSync(ledger, `kill ${(victim ?? child).process.pid}\n`);
      (victim ?? child).process.kill("SIGKILL");
      hire();
    };
    for (let n = 0; n < WORKERS; n++) hire();
    await Promise.all(jobs.map((job) => job.result()));
    expect(await root.result()).toBe(LEAVES);
    await expect.poll(() => hasSlots(SLOTS) && deaths.slot >= DEATHS_IN_SLOTS, { timeout: 60_000 }).toBe(true);
    for (const name of SCHEDULES) expect(await client.unschedule(name)).toBe(true);
    for (const status of ["waiting", "running"] as const)
      await expect.poll(async () => (await client.list({ status })).runs, { timeout: 30_000 }).toEqual([]);

    const lines = readLedger(ledger);
    expect(mostInside(lines)).toEqual({ k0: LIMIT, k1: LIMIT, tree: 1 });
    expect(deaths.job).toBeGreaterThan(0);
    // An effect that a kill has interrupted begins again as the next attempt; a second run of a slot would begin with the first.
    const effects = lines.filter(({ word }) => word === "slot").map(({ what, id }) => `${what} ${id}`);
    expect(new Set(effects).size).toBe(effects.length);
    for (const name of SCHEDULES) {
      const { runs } = await client.list({ tag: `schedule:${name}`, limit: 1000 });
      const slots = runs.map(({ id }) => Date.parse(id.slice(name.length + 1))).sort((a, b) => a - b);
      expect(slots.length).toBeGreaterThanOrEqual(SLOTS);
      expect(slots).toEqual(slots.map((_, n) => (slots[0] ?? 0) + n * 1000));
      expect(runs.map(({ status }) => status)).toEqual(runs.map(() => "succeeded"));
      expect(runs.filter(({ id }) => !effects.some((effect) => effect.startsWith(`${id} `)))).toEqual([]);
    }
  },
);
