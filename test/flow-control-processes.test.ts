// Limits between real processes on one SQLite file that are killed while they work. The children run the built package.

import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Pawl } from "../src/client/pawl.ts";
import { built, type Child, startChild } from "./child.ts";

const LIMIT = 2;
const RUNS_PER_KILL = 10;
const KILLS = 4;

/**
 * A worker whose bodies write into the ledger when they begin and when they end. Of every ten runs, the first hangs in its first attempt, and says
 * so: only a kill gets it out of there.
 */
function startWorker(file: string, ledger: string): Child {
  return startChild(`
    import { appendFileSync } from "node:fs";
    import { Pawl, workflow } from "${built("index.js")}";
    const note = (word, n) => appendFileSync(${JSON.stringify(ledger)}, word + " " + process.pid + " " + n + "\\n");
    const rounds = async (count) => {
      for (; count > 0; count--) await new Promise((resolve) => setImmediate(resolve));
    };
    const key = (n) => "k" + (n % 2);
    const job = workflow({ name: "job", concurrency: { limit: ${LIMIT}, key } }, async (ctx, n) => {
      await ctx.step("work", async ({ attempt }) => {
        note("enter", n);
        if (n % ${RUNS_PER_KILL} === 0 && attempt === 1) {
          say("stuck");
          await new Promise(() => {});
        }
        await rounds(50);
        note("leave", n);
      });
    });
    await Pawl.open(${JSON.stringify(file)}, { workflows: [job], durability: "process", poll: "50ms" });
    say("up");
    await heard();`);
}

/** Whoever says something first. */
function firstToSpeak(workers: readonly Child[]): Promise<Child> {
  return Promise.any(workers.map((worker) => worker.line().then(() => worker)));
}

/** The most bodies of one key that were inside at one moment; those of a killed process are out from there on. */
function mostInside(lines: readonly string[]): number {
  const inside = new Map<string, { pid: string; key: number }>();
  let most = 0;
  for (const line of lines) {
    const [word, pid = "", n = ""] = line.split(" ");
    if (word === "enter") inside.set(`${pid} ${n}`, { pid, key: Number(n) % 2 });
    if (word === "leave") inside.delete(`${pid} ${n}`);
    if (word === "kill") for (const [name, one] of inside) if (one.pid === pid) inside.delete(name);
    for (const key of [0, 1]) most = Math.max(most, [...inside.values()].filter((one) => one.key === key).length);
  }
  return most;
}

it("I18 B16 three processes that are killed again and again never have more bodies of a key at work than its limit", {
  timeout: 60_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-flow-"));
  const file = join(folder, "pawl.db");
  const ledger = join(folder, "ledger");
  const workers = [startWorker(file, ledger), startWorker(file, ledger), startWorker(file, ledger)];
  for (const worker of workers) expect(await worker.line()).toBe("up");
  const client = await Pawl.open(file, { durability: "process" });
  onTestFinished(async () => {
    await client.close();
    for (const worker of workers) await worker.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  const runs = [];
  for (let kill = 0; kill < KILLS; kill++) {
    for (let n = kill * RUNS_PER_KILL; n < (kill + 1) * RUNS_PER_KILL; n++)
      runs.push(await client.start("job", n, { id: `r${n}` }));
    const victim = await firstToSpeak(workers);
    appendFileSync(ledger, `kill ${victim.process.pid} -\n`);
    await victim.kill();
    const next = startWorker(file, ledger);
    workers.splice(workers.indexOf(victim), 1, next);
    expect(await next.line()).toBe("up");
  }
  await Promise.all(runs.map((run) => run.result()));
  const lines = readFileSync(ledger, "utf8").trimEnd().split("\n");
  const count = (word: string) => lines.filter((line) => line.startsWith(word)).length;
  expect(mostInside(lines)).toBe(LIMIT);
  expect(count("enter") - count("leave")).toBeGreaterThanOrEqual(KILLS);
  expect(count("leave")).toBeGreaterThanOrEqual(KILLS * RUNS_PER_KILL);
});
