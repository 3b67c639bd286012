// The examples of the repository, against their own fakes: a ledger in a file, which survives any process.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CrashOptions, crashEverywhere } from "pawl/testing";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { checkout } from "../../examples/01-checkout/workflow.ts";
import { invoices } from "../../examples/02-batch/workflow.ts";
import { report as reporting } from "../../examples/03-report/workflow.ts";
import { refund } from "../../examples/04-refund/workflow.ts";
import { patientReport } from "../../examples/05-patient-report/workflow.ts";
import { bugfix } from "../../examples/06-bugfix/workflow.ts";
import { research } from "../../examples/08-research-agent/workflow.ts";
import { type LedgerLine, type Patient, type RefundRequest, wayBack } from "../../examples/fakes.ts";
import { Repository } from "../guards/repository.ts";

// Other work may slow the machine down, and an exploration that a test leaves behind disturbs the next one.
vi.setConfig({ testTimeout: 120_000 });

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
  observe: () => happened().sort(),
};

/** What has happened outside, in order. */
function happened(): string[] {
  return readFileSync(process.env["LEDGER"] as string, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as LedgerLine)
    .filter(({ did }) => did)
    .map(({ action, about }) => `${action} ${about}`);
}

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

const REQUEST = { order: "order-7", cents: 4200, email: "ada@example.org", agent: "bot-1" };
const approve = (by: string, role: string) => ({ decision: "approved" as const, by, roles: [role], reason: "checked" });

/** So long are pairs of crashes looked for: as many as there is time for. */
const PAIRS = { pairs: true, budgetMs: 1000, seed: 5 };

it("D-3 I6 I15 X-23 S2-36 S2-114 example 04 survives every point in all modes and pairs of crashes: one draft, one refund, one mail, after the approval", async () => {
  const options: CrashOptions<RefundRequest, unknown> = {
    ...outside,
    script: (run, engine) => engine.decide(run.id, "issue", approve("grace", "support-lead")),
  };
  const report = await crashEverywhere(refund, REQUEST, options);
  expect(report.outcome).toMatch(/^succeeded/);
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.isComplete).toBe(true);
  expect(happened()).toEqual(["draft order-7", "review order-7", "issue draft-order-7", "mail ada@example.org"]);
  const pairs = await crashEverywhere(refund, REQUEST, { ...options, ...PAIRS });
  expect(pairs.toString()).toMatch(/^ok: /);
});

it("D-3 S2-29 C-14 S2-114 example 04, denied or left alone, issues nothing and withdraws its draft, wherever it crashes", async () => {
  for (const decision of ["denied", "nothing"]) {
    const report = await crashEverywhere(refund, REQUEST, {
      ...outside,
      ...(decision === "nothing" && { modes: ["kill"] }),
      script: async (run, engine) => {
        if (decision === "denied")
          await engine.decide(run.id, "issue", { ...approve("grace", "support-lead"), decision });
      },
    });
    expect(report.outcome).toMatch(/^failed/);
    expect(report.toString()).toMatch(/^ok: /);
    expect(outside.observe()).toEqual(["draft order-7", "review order-7", "withdraw draft-order-7"]);
  }
});

it("D-10 C-15 I16 example 04, cancelled with compensate after both effects, takes back both, the last first, wherever it crashes", async () => {
  // The answer about the mail never comes, so that the run is still there when fraud is found.
  wayBack.travel = ({ action }) => (action === "mail" ? new Promise(() => {}) : Promise.resolve());
  onTestFinished(() => {
    wayBack.travel = async () => {};
  });
  const report = await crashEverywhere(refund, REQUEST, {
    fresh: outside.fresh,
    observe: happened,
    script: async (run, engine) => {
      await engine.decide(run.id, "issue", approve("grace", "support-lead"));
      await engine.until(async () => (await run.effects()).some(({ effect }) => effect === "tell"));
      await run.cancel({ compensate: true, reason: "found fraud" });
    },
  });
  expect(report.outcome).toMatch(/^cancelled/);
  expect(report.toString()).toMatch(/^ok: /);
  expect(happened().slice(-2)).toEqual(["reverse refund-draft-order-7", "withdraw draft-order-7"]);
  expect(happened()).toHaveLength(6);
});

it("D-5 S4-40 S4-33 example 05 survives every point and pairs of crashes over a long weekend: one report, approved by the head of the department", async () => {
  const patient = { id: "patient-3", physician: "dr-bell" };
  const options: CrashOptions<Patient, unknown> = {
    ...outside,
    script: async (run, engine) => {
      await engine.until(async () => (await engine.approvals.list()).approvals[0]?.level === 2);
      await engine.decide(run.id, "report", approve("dr-head", "department-head"));
    },
  };
  const report = await crashEverywhere(patientReport, patient, options);
  expect(report.outcome).toContain("approvedBy: 'dr-head'");
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.isComplete).toBe(true);
  expect(outside.observe().filter((line) => line.startsWith("deliver"))).toEqual(["deliver patient-3"]);
  const pairs = await crashEverywhere(patientReport, patient, { ...options, ...PAIRS, modes: ["kill"] });
  expect(pairs.toString()).toMatch(/^ok: /);
});

it("D-1 S0-1 S0-62 T-4 I6 example 06 killed everywhere commits once, and tells everybody once", async () => {
  vi.stubEnv("GIT_AUTHOR_DATE", "2026-06-01T10:00:00+08:00");
  vi.stubEnv("GIT_COMMITTER_DATE", "2026-06-01T10:00:00+08:00");
  onTestFinished(() => void vi.unstubAllEnvs());
  const template = new Repository();
  // Git comes with samples of hooks, which would be most of what is copied.
  rmSync(join(template.cwd, ".git", "hooks"), { recursive: true });
  const repository = join(folder, "app");
  const report = await crashEverywhere(
    bugfix,
    { jira_key: "AE-33995", repository },
    {
      modes: ["kill"],
      fresh: () => {
        outside.fresh();
        rmSync(repository, { recursive: true, force: true });
        cpSync(template.cwd, repository, { recursive: true });
      },
      observe: () => [
        ...outside.observe(),
        readFileSync(join(repository, ".git/logs/HEAD"), "utf8").trim().split("\n").length,
      ],
    },
  );
  expect(report.outcome).toMatch(/^succeeded/);
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.isComplete).toBe(true);
  expect(outside.observe()).toEqual([
    "comment AE-33995",
    "job follow-up AE-33995",
    "mail AE-33995",
    "propose AE-33995 a guard at the border",
    "propose AE-33995 the root cause",
    "propose AE-33995 the smallest change",
    "read AE-33995",
    "reviewer AE-33995",
  ]);
  const log = execFileSync("git", ["log", "--all", "--format=%s"], { cwd: repository, encoding: "utf8" });
  expect(log).toBe("AE-33995: it crashes on start\n");
});

it("B55 I26 I6 X-20 C-11 example 08 survives every point in all modes: one article, after the approval", async () => {
  const report = await crashEverywhere(research, "What holds a ratchet?", {
    ...outside,
    script: (run, engine) => engine.decide(run.id, "publish", approve("eve", "editor")),
  });
  expect(report.outcome).toMatch(/^succeeded with 'It is all there: /);
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.isComplete).toBe(true);
  expect(report.hazards).toEqual([]);
  expect(outside.observe().filter((line) => line.startsWith("publish"))).toEqual(["publish What holds a ratchet"]);
  expect(outside.observe()).toHaveLength(5);
});
