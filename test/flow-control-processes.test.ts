// Limits between real processes on one SQLite file that are killed while they work. The children run the built package.

import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Pawl } from "../src/client/pawl.ts";
import { built, type Child, startChild } from "./child.ts";

const LIMIT = 2;
const RUNS = 40;
const KILLS = 6;

/** A worker whose bodies write into the ledger when they begin and when they end. */
function startWorker(file: string, ledger: string): Child {
  return startChild(`
    import { appendFileSync } from "node:fs";
    import { setTimeout as pause } from "node:timers/promises";
    import { Pawl, workflow } from "${built("index.js")}";
    const note = (word, n) => appendFileSync(${JSON.stringify(ledger)}, word + " " + process.pid + " " + n + "\\n");
    const job = workflow({ name: "job", concurrency: { limit: ${LIMIT}, key: (n) => "k" + (n % 2) } }, async (ctx, n) => {
      await ctx.step("work", async () => {
        note("enter", n);
        say("enter");
        await pause(15);
        note("leave", n);
      });
    });
    await Pawl.open(${JSON.stringify(file)}, { workflows: [job], durability: "process", poll: "50ms" });
    say("up");
    await heard();`);
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
  for (let n = 0; n < RUNS; n++) runs.push(await client.start("job", n, { id: `r${n}` }));
  for (let kill = 0; kill < KILLS; kill++) {
    const [victim] = workers.splice(kill % 3, 1) as [Child];
    expect(await victim.line()).toBe("enter");
    appendFileSync(ledger, `kill ${victim.process.pid} -\n`);
    await victim.kill();
    const next = startWorker(file, ledger);
    expect(await next.line()).toBe("up");
    workers.push(next);
  }
  await Promise.all(runs.map((run) => run.result()));
  const lines = readFileSync(ledger, "utf8").trimEnd().split("\n");
  expect(mostInside(lines)).toBe(LIMIT);
  expect(lines.filter((line) => line.startsWith("leave")).length).toBeGreaterThanOrEqual(RUNS);
});
