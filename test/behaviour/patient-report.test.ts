// Example 05 in virtual time: two hours of work that a crash cuts in two, and a weekend over which nobody answers and nothing runs.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { patientReport } from "../../examples/05-patient-report/workflow.ts";
import { type LedgerLine, wayBack } from "../../examples/fakes.ts";
import type { ApprovalNotification, Notifier } from "../../src/core/notification.ts";
import { HOUR, MINUTE, openWorld, STORES } from "./harness.ts";

let ledger = "";

beforeEach(() => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-report-"));
  ledger = join(folder, "ledger.jsonl");
  vi.stubEnv("LEDGER", ledger);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true, force: true });
  });
});

/** What the outside was asked for, in order; twice if a crash hid the first answer. */
function asked(): string[] {
  const lines = readFileSync(ledger, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as LedgerLine).map(({ action, about }) => `${action} ${about}`);
}

/** Four sources two at a time, an analysis and three phases: two hours. */
const PACE: Readonly<Record<string, number>> = { gather: 25 * MINUTE, analyse: 25 * MINUTE, write: 15 * MINUTE };

describe.each(STORES)("the patient's report on %s", (store) => {
  it("D-5 S4-40 S4-33 S4-37 takes two hours over a crash, waits out a weekend without a process, and is delivered once, by leave of the head", async () => {
    const world = await openWorld(store);
    vi.spyOn(wayBack, "travel").mockImplementation(async ({ action }) => {
      const ms = PACE[action];
      if (ms !== undefined) await new Promise<void>((resolve) => void world.clock.after(ms, resolve));
    });
    const told: string[] = [];
    const notifier: Notifier = {
      name: "ward",
      notify: (notification) => {
        const { event, waitedMs, to } = notification as ApprovalNotification;
        told.push(`${event.slice("approval.".length)} after ${waitedMs / HOUR} h: ${to.join(", ")}`);
      },
    };
    const options = { notifiers: [notifier] };
    const begun = world.clock.now();
    const first = await world.open([patientReport], options);
    await first.start(patientReport, { id: "patient-3", physician: "dr-bell" }, { id: "r" });

    // The analysis is under way: it is asked for again, and what was gathered is not.
    await world.advance(HOUR);
    const second = await world.restart([patientReport], options);
    await world.advance(2 * HOUR);
    const work = ["gather history", "gather laboratory", "gather imaging", "gather medication", "analyse patient"];
    const writing = ["write findings", "write assessment", "write plan"];
    expect(asked()).toEqual([...work, "analyse patient", ...writing]);
    const [open] = (await second.approvals.list()).approvals;
    // Ten minutes of the analysis were lost.
    expect((open?.since.getTime() ?? 0) - begun).toBe(2 * HOUR + 10 * MINUTE);
    expect(told).toEqual(["requested after 0 h: dr-bell"]);

    // Everything falls due while nothing runs: it happens once, in due order.
    world.killAll();
    world.clock.advance(60 * HOUR);
    const third = await world.restart([patientReport], options);
    await world.settle();
    expect(told.slice(1)).toEqual([
      "reminder after 12 h: dr-bell",
      "escalated after 24 h: dr-bell, role:ward",
      "reminder after 36 h: dr-bell",
      "escalated after 48 h: dr-bell, role:department-head",
      "reminder after 60 h: dr-bell, role:department-head",
    ]);
    await third.approvals.decide(open?.id ?? "", { decision: "approved", by: "dr-head", roles: ["department-head"] });
    await world.settle();
    expect(await third.get("r").result()).toEqual({ patient: "patient-3", approvedBy: "dr-head" });
    expect(asked().slice(9)).toEqual(["deliver patient-3"]);
  });
});
