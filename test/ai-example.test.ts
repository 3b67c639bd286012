// Example 08: the same agent before and after.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testEngine } from "pawl/testing";
import { afterAll, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { research as before } from "../examples/08-research-agent/before.ts";
import { chosenModel } from "../examples/08-research-agent/model.ts";
import { terminal } from "../examples/08-research-agent/terminal.ts";
import { research } from "../examples/08-research-agent/workflow.ts";
import type { LedgerLine } from "../examples/fakes.ts";

const folder = mkdtempSync(join(tmpdir(), "pawl-example-"));
let ledgers = 0;

beforeEach(() => {
  vi.stubEnv("FAKES_LATENCY_MS", "0");
  onTestFinished(() => void vi.unstubAllEnvs());
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What is done from here on is another world's. */
const freshLedger = () => vi.stubEnv("LEDGER", join(folder, `${++ledgers}.jsonl`));

const linesOf = (file: string) =>
  readFileSync(new URL(`../examples/08-research-agent/${file}`, import.meta.url), "utf8").split("\n");

const done = () =>
  readFileSync(process.env["LEDGER"] as string, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as LedgerLine).action);

/** How many lines are only in one of the two, by the longest sequence that both have. */
function changedLines(a: readonly string[], b: readonly string[]): number {
  const common = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const [row, next] = [common[i] as number[], common[i + 1] as number[]];
      row[j] = a[i] === b[j] ? (next[j + 1] as number) + 1 : Math.max(next[j] as number, row[j + 1] as number);
    }
  }
  return a.length + b.length - 2 * (common[0]?.[0] as number);
}

/** Plays both: the plain agent, asked at its terminal, and the durable one, about which an editor decides. */
async function both(isApproved: boolean) {
  vi.spyOn(terminal, "question").mockResolvedValue(isApproved ? "yes" : "no");
  onTestFinished(() => void vi.restoreAllMocks());
  freshLedger();
  const plain = await before("What holds a ratchet?");
  const plainly = done();
  freshLedger();
  const engine = await testEngine({ workflows: [research] });
  onTestFinished(() => engine.close());
  const run = await engine.start(research, "What holds a ratchet?");
  const decision = isApproved ? "approved" : "denied";
  await engine.decide(run.id, "publish", { decision, by: "eve", roles: ["editor"] });
  return { plain, plainly, durable: await run.result(), run };
}

it("X-20 S2-64 example 08 changes fewer than 15 lines and gives the same answer, with every call on record", async () => {
  expect(changedLines(linesOf("before.ts"), linesOf("workflow.ts"))).toBeLessThan(15);
  const { plain, plainly, durable, run } = await both(true);
  expect(durable).toBe(plain);
  expect(durable).toMatch(/^It is all there: https:\/\/news\.example\//);
  expect(done()).toEqual(plainly);
  const keys = (await run.journal()).filter(({ type }) => /started|planned/.test(type)).map(({ key }) => key);
  expect(keys.slice(1)).toEqual([
    "model",
    "tool.search.call_1",
    "tool.search.call_2",
    "model#2",
    ...[3, 4].map((n) => `tool.readPage.call_${n}`),
    "model#3",
    "tool.publish.call_9",
    "model#4",
  ]);
  expect((await run.status()).cost).toEqual({ tokens: 5400 });
});

it("I26 example 08, denied, publishes nothing and says so, before and after", async () => {
  const { plain, durable } = await both(false);
  expect([plain, durable]).toEqual(["Nobody wanted it published.", "Nobody wanted it published."]);
  expect(done()).not.toContain("publish");
});

it("example 08 takes a real model by its name, and says what to install", async () => {
  await expect(chosenModel("nowhere:m-1")).rejects.toThrow(
    "@ai-sdk/nowhere is not installed. Run: npm install @ai-sdk/nowhere",
  );
  await expect(chosenModel("gpt-5")).rejects.toThrow('Give a provider and a model, such as "openai:gpt-5".');
});
