// A budget of one dollar over a tree of fifty children at once, in three real worker processes on PostgreSQL that are killed while calls are under way.
// Whatever the calls cost is a line in a ledger outside, written before the process can die of it. The children run the built package.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { Pawl } from "../src/client/pawl.ts";
import { built, type Child, startChild } from "./child.ts";
import { postgresUrl } from "./fixtures/cli/postgres-url.ts";

const WORKERS = 3;
const CHILDREN = 50;
const CALLS_EACH = 2;
/** A process hangs in its fourth call until it is killed, unless it was hired after so many deaths. */
const DEATHS = 3;
const FATAL_CALL = 4;
const LIMIT = 1;
/** What a call reserves, and what every fourth child's calls cost instead. */
const RESERVED = 0.04;
const DEARER = 0.06;

/** Calls take a while, so that others are under way when one hangs. */
function startWorker(url: string, ledger: string, isMortal: boolean): Child {
  return startChild(`
    import { appendFileSync } from "node:fs";
    import { Pawl, workflow } from "${built("index.js")}";
    const note = (...words) => appendFileSync(${JSON.stringify(ledger)}, words.join(" ") + "\\n");
    let begun = 0;
    const child = workflow("child", async (ctx, n) => {
      const usd = n % 4 === 0 ? ${DEARER} : ${RESERVED};
      for (let i = 0; i < ${CALLS_EACH}; i++) {
        await ctx.step("call", async (info) => {
          note("begin", process.pid, info.key, usd);
          if (++begun === ${FATAL_CALL} && ${isMortal}) {
            say("stuck");
            await new Promise(() => {});
          }
          for (let round = 0; round < 200; round++) await new Promise((resolve) => setImmediate(resolve));
          info.spent({ usd });
          note("end", process.pid, info.key, usd);
        }, { spend: { usd: ${RESERVED} } });
      }
    });
    const root = workflow({ name: "root", budget: { usd: ${LIMIT} } }, async (ctx) => {
      await ctx.map(Array.from({ length: ${CHILDREN} }, (_, n) => n), (n) => ctx.call(child, n));
      return "all paid";
    });
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    await Pawl.open(${JSON.stringify(url)}, { workflows: [root, child], logger, poll: "100ms" });
    await heard();`);
}

interface Line {
  readonly word: string;
  readonly pid: string;
  readonly key: string;
  readonly usd: number;
}

function readLedger(ledger: string): Line[] {
  const lines = readFileSync(ledger, "utf8").trim().split("\n");
  return lines.map((line) => {
    const [word = "", pid = "", key = "", usd = ""] = line.split(" ");
    return { word, pid, key, usd: Number(usd) };
  });
}

/** What all calls have cost together, each once, and the most of them that were under way at a moment. */
function accountOf(lines: readonly Line[]) {
  const costs = new Map<string, number>();
  const open = new Set<string>();
  let most = 0;
  for (const { word, pid, key, usd } of lines) {
    costs.set(key, usd);
    if (word === "begin") open.add(`${pid} ${key}`);
    else open.delete(`${pid} ${key}`);
    most = Math.max(most, open.size);
  }
  const begun = lines.filter(({ word }) => word === "begin").length;
  return { cost: [...costs.values()].reduce((sum, usd) => sum + usd, 0), calls: costs.size, begun, inFlight: most };
}

it("I26 X-13 E-9 a budget of 1 USD over fifty concurrent children is never exceeded by more than the calls in flight, across kills of three workers on PostgreSQL", {
  timeout: 60_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-budget-"));
  const ledger = join(folder, "ledger");
  writeFileSync(ledger, "");
  const url = postgresUrl();
  const client = await Pawl.open(url);
  const workers: Child[] = [];
  onTestFinished(async () => {
    for (const worker of workers) await worker.kill();
    await client.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const hire = () => {
    const worker = startWorker(url, ledger, workers.length < WORKERS + DEATHS);
    workers.push(worker);
    const killed = async () => {
      await worker.line();
      worker.process.kill("SIGKILL");
      hire();
    };
    // It ends with the process.
    killed().catch(() => {});
  };
  for (let n = 0; n < WORKERS; n++) hire();
  const run = await client.start("root", undefined, { id: "root", version: "1.0.0", budget: { usd: LIMIT } });

  const stopped = async () => {
    const { runs } = await client.list({ limit: 1000, workflow: "child" });
    return runs.length === CHILDREN && runs.every(({ state }) => state === "parked" || state === "succeeded")
      ? runs
      : null;
  };
  const runs = await vi.waitUntil(stopped, { timeout: 50_000, interval: 50 });
  const parked = runs.filter(({ state }) => state === "parked");
  const { budget } = await run.status();
  const first = accountOf(readLedger(ledger));
  expect(workers.length).toBeGreaterThan(WORKERS);
  expect(first.begun).toBeGreaterThan(first.calls);
  // Only what a call cost more than it had reserved can be past the limit, and only of calls that were under way.
  expect(first.cost).toBeLessThanOrEqual(LIMIT + first.inFlight * (DEARER - RESERVED));
  expect(budget?.spent["usd"]).toBeCloseTo(first.cost, 6);
  // Nothing is left reserved, and no room is unused.
  expect(budget?.reserved).toEqual({ usd: 0 });
  expect(budget?.spent["usd"]).toBeGreaterThan(LIMIT - RESERVED);
  for (const { id } of parked.slice(0, 3))
    expect((await client.get(id).status()).parked?.detail).toMatchObject({ budget: "root", unit: "usd", limit: LIMIT });

  await client.resolve(parked[0]?.id as string, { choice: "raise", value: { usd: 100 } });
  expect(await run.result()).toBe("all paid");
  const last = accountOf(readLedger(ledger));
  expect(last.calls).toBe(CHILDREN * CALLS_EACH);
  expect((await run.status()).budget).toMatchObject({ limits: { usd: 100 }, reserved: { usd: 0 } });
  expect((await run.status()).budget?.spent["usd"]).toBeCloseTo(last.cost, 6);
});
