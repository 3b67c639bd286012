// The examples of the repository, against their own fakes: a ledger in a file, which survives any process.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crashEverywhere } from "pawl/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { checkout } from "../../examples/01-checkout/workflow.ts";
import { invoices } from "../../examples/02-batch/workflow.ts";
import { report as reporting } from "../../examples/03-report/workflow.ts";
import { wayBack } from "../../examples/fakes.ts";

const folder = mkdtempSync(join(tmpdir(), "pawl-explorer-"));
const { travel } = wayBack;
let ledgers = 0;

beforeAll(() => {
  // The way back takes no time here: what matters is that the effect comes before its answer.
  wayBack.travel = async () => {};
});

afterAll(() => {
  wayBack.travel = travel;
  delete process.env["LEDGER"];
  rmSync(folder, { recursive: true, force: true });
});

const outside = {
  fresh: () => {
    process.env["LEDGER"] = join(folder, `${++ledgers}.jsonl`);
  },
  /** What has happened, whatever the order. */
  observe: () =>
    readFileSync(process.env["LEDGER"] as string, "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as { action: string; about: string; did: boolean })
      .filter(({ did }) => did)
      .map(({ action, about }) => `${action} ${about}`)
      .sort(),
};

it("S4-16 I6 example 01 survives every point in all modes, with one charge and one mail", async () => {
  const order = { id: "order-1", cents: 4200, email: "ann@example.com" };
  const report = await crashEverywhere(checkout, order, outside);
  expect(report.outcome).toMatch(/^succeeded/);
  expect(report.toString()).toMatch(/^ok: .*0 left|^ok: /);
  expect(report.isComplete).toBe(true);
  expect(outside.observe()).toEqual(["charge order-1", "mail ann@example.com"]);
  expect(report.repeats.every(({ usedKey }) => usedKey)).toBe(true);
});

it("S4-16 I6 example 02 survives every point in all modes, with one invoice for each customer", async () => {
  const report = await crashEverywhere(invoices, { month: "2026-01", customers: 5 }, outside);
  expect(report.outcome).toMatch(/^succeeded/);
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.isComplete).toBe(true);
  expect(outside.observe()).toHaveLength(5);
});

it("S4-16 I6 I14 example 03 survives every point in all modes, its review included", async () => {
  const report = await crashEverywhere(
    reporting,
    { topic: "ratchets", to: "ann@example.com" },
    {
      ...outside,
      script: async (run, engine) => {
        await engine.settle();
        await run.signal("review", { by: "bob", ok: true });
      },
    },
  );
  expect(report.outcome).toMatch(/^succeeded with \{ delivered: true/);
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.points.some(({ kind }) => kind === "signal")).toBe(true);
  expect(report.points.some(({ kind }) => kind === "wake")).toBe(true);
});
