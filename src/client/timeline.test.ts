import { describe, expect, it } from "vitest";
import type { Entry, EntryType } from "../core/journal.ts";
import { timeline } from "./timeline.ts";

type Line = readonly [type: EntryType, key?: string | null, payload?: unknown];

const START: Line = ["run.started", null, { workflow: "order", version: "1.0.0", input: 7, seed: "r", deadline: null }];

/** Entries a second apart. */
function journal(...lines: readonly Line[]): Entry[] {
  return lines.map(([type, key = null, payload = null], seq) => ({ seq, at: seq * 1000, type, key, payload }));
}

describe("timeline", () => {
  it("knows what a run began with and how it ended", () => {
    const line = timeline(journal(START, ["run.succeeded", null, { ok: true }]));
    expect(line).toMatchObject({
      workflow: "order",
      version: "1.0.0",
      input: 7,
      startedAt: 0,
      endedAt: 1000,
      entries: 2,
    });
    expect(line).toMatchObject({ status: "succeeded", stopReason: "completed", output: { ok: true } });
    const failed = timeline(journal(START, ["run.failed", null, { error: { message: "no" }, stopReason: "error" }]));
    expect(failed).toMatchObject({ status: "failed", error: { message: "no" }, stopReason: "error" });
  });

  it("S2-66 tells a step's attempts, failures and retries", () => {
    const [step] = timeline(
      journal(
        START,
        ["step.started", "charge", { attempt: 1, input: [5] }],
        ["step.failed", "charge", { attempt: 1, error: { message: "reset" }, retryAt: 2500 }],
        ["step.started", "charge", { attempt: 2 }],
        ["step.completed", "charge", "paid"],
      ),
    ).steps;
    expect(step).toMatchObject({
      seq: 1,
      status: "completed",
      startedAt: 1000,
      endedAt: 4000,
      input: [5],
      output: "paid",
    });
    expect(step?.attempts).toEqual([
      { attempt: 1, startedAt: 1000, endedAt: 2000, outcome: "failed", error: { message: "reset" }, retryAt: 2500 },
      { attempt: 2, startedAt: 3000, endedAt: 4000, outcome: "completed" },
    ]);
  });

  it("tells how often a step has saved, and which attempt did last", () => {
    const { steps, notes } = timeline(
      journal(
        START,
        ["step.started", "a"],
        ["step.started", "b"],
        ["checkpoint", "a", { attempt: 1, value: 1 }],
        ["step.started", "a", { attempt: 2, rerun: true }],
        ["checkpoint", "a", { attempt: 2, value: 2 }],
      ),
    );
    expect(steps[0]).toMatchObject({ key: "a", status: "running", saved: { count: 2, attempt: 2, at: 5000 } });
    expect(steps[1]?.saved).toBeUndefined();
    expect(notes).toEqual([]);
  });

  it("knows a step that waits for its next attempt, and one that failed for good", () => {
    const failure = (retryAt: number | null): Line => ["step.failed", "a", { attempt: 1, error: "e", retryAt }];
    expect(timeline(journal(START, ["step.started", "a"], failure(9))).steps[0]).toMatchObject({
      status: "retrying",
      endedAt: null,
    });
    expect(timeline(journal(START, ["step.started", "a"], failure(null))).steps[0]).toMatchObject({
      status: "failed",
      error: "e",
    });
  });

  it("S2-7 calls an attempt interrupted when another one followed without an outcome", () => {
    const rerun: Line = ["step.started", "a", { attempt: 2, rerun: true }];
    const [step] = timeline(journal(START, ["step.started", "a"], rerun, ["step.completed", "a", 1])).steps;
    expect(step?.attempts.map(({ outcome }) => outcome)).toEqual(["interrupted", "completed"]);
  });

  it("tells timers, signals and signals that did not come", () => {
    const { waits } = timeline(
      journal(
        START,
        ["timer.set", "sleep", { due: 2000 }],
        ["timer.fired", "sleep"],
        ["signal.awaited", "paid", { due: null }],
        ["signal.received", "paid", { id: "s1", payload: 5 }],
        ["signal.awaited", "paid#2", { due: 6000 }],
        ["timer.fired", "paid#2", { wait: true }],
        ["signal.awaited", "map/0/late", { due: null }],
      ),
    );
    expect(waits.map(({ kind, key, name, status }) => [kind, key, name, status])).toEqual([
      ["timer", "sleep", "sleep", "fired"],
      ["signal", "paid", "paid", "received"],
      ["signal", "paid#2", "paid", "timed out"],
      ["signal", "map/0/late", "late", "open"],
    ]);
    expect(waits[1]).toMatchObject({ payload: 5, startedAt: 3000, endedAt: 4000 });
  });

  it("tells children, those that are waited for and those that are not", () => {
    const child = (id: string, detached: boolean) => ({ child: id, workflow: "ship", digest: "", detached });
    const { children } = timeline(
      journal(
        START,
        ["child.started", "ship", child("c1", false)],
        ["child.started", "mail", child("c2", true)],
        ["child.ended", "ship", { child: "c1", status: "failed", value: { message: "lost" } }],
        ["run.succeeded", null, 1],
      ),
    );
    expect(children).toMatchObject([
      { child: "c1", status: "failed", value: { message: "lost" }, endedAt: 3000 },
      { child: "c2", status: "detached", endedAt: null },
    ]);
  });

  it("P12 abandons what is open when the run ends", () => {
    const line = timeline(
      journal(START, ["step.started", "a"], ["signal.awaited", "s", { due: null }], ["run.succeeded", null, 1]),
    );
    expect(line.steps[0]).toMatchObject({ status: "abandoned", endedAt: 3000, attempts: [{ outcome: "abandoned" }] });
    expect(line.waits[0]).toMatchObject({ status: "abandoned" });
  });

  it("P10 takes the same key in the next generation for another step", () => {
    const next = { generation: 1, input: 8, state: {}, cost: {} };
    const line = timeline(
      journal(
        START,
        ["step.started", "a"],
        ["step.completed", "a", 1],
        ["run.continued", null, next],
        ["step.started", "a"],
      ),
    );
    expect(line.generation).toBe(1);
    expect(line.steps.map(({ key, generation, status }) => [key, generation, status])).toEqual([
      ["a", 0, "completed"],
      ["a", 1, "running"],
    ]);
  });

  it("remembers a park until somebody decides", () => {
    const parked = { reason: "unknown_outcome", message: "who knows", choices: ["rerun"] };
    const entries = journal(START, ["run.parked", null, parked], ["run.resolved", null, { choice: "rerun" }]);
    expect(timeline(entries.slice(0, 2)).parked).toEqual(parked);
    expect(timeline(entries).parked).toBe(null);
    expect(timeline(entries).notes.map(({ kind, text }) => `${kind}: ${text}`)).toEqual([
      "parked: who knows",
      "resolved: rerun",
    ]);
  });

  it("puts notes, state, cost, versions and forks into words", () => {
    const { notes, version } = timeline(
      journal(
        START,
        ["note", null, { text: "hello" }],
        ["state.patched", "phase", { value: "x".repeat(200) }],
        ["cost", null, { usd: 0.5, tokens: 12 }],
        ["version.changed", null, { from: "1.0.0", to: "1.0.1" }],
        ["run.forked", null, { from: "r0", at: 3, seed: "r" }],
        ["run.cancelling", null, { cause: "cancel", reason: "twice" }],
      ),
    );
    expect(version).toBe("1.0.1");
    expect(notes.map(({ text }) => text)).toEqual([
      "hello",
      expect.stringMatching(/^phase = "x{78}…$/),
      "0.5 usd, 12 tokens",
      "1.0.1",
      "from run r0, with its first 3 entries",
      "twice",
    ]);
  });

  it("survives a journal that begins in the middle", () => {
    expect(
      timeline(journal(["step.completed", "a", 1], ["timer.fired", "b"], ["child.ended", "c", { status: "failed" }])),
    ).toMatchObject({
      workflow: null,
      status: "unfinished",
      steps: [],
      entries: 3,
    });
  });
});
