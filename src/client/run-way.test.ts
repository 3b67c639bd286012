import { expect, it } from "vitest";
import { graphOfPhases } from "../core/graph.ts";
import type { Entry, EntryType } from "../core/journal.ts";
import { wayOf } from "./run-way.ts";

const PHASES = graphOfPhases({
  phases: [{ name: "intake" }, { name: "fix", steps: [{ name: "try" }, { name: "commit" }] }, { name: "tell" }],
});

const journal = (...lines: readonly (readonly [type: EntryType, key: string | null, payload?: unknown])[]): Entry[] =>
  lines.map(([type, key, payload = null], seq) => ({ seq, at: seq, type, key, payload }));

it("S0-5 phases are one after the other, with their steps in their place", () => {
  expect(PHASES.nodes.map(({ id, kind, group }) => [id, kind, group])).toEqual([
    ["intake", "phase", undefined],
    ["fix.try", "step", "fix"],
    ["fix.commit", "step", "fix"],
    ["tell", "phase", undefined],
    ["/complete", "end", undefined],
  ]);
  expect(PHASES.edges.map(({ from, to }) => `${from} > ${to}`)).toEqual([
    "intake > fix.try",
    "fix.try > fix.commit",
    "fix.commit > tell",
    "tell > /complete",
  ]);
});

it("S0-5 the way through phases is that of their entries, with what was skipped and what is under way", () => {
  const { nodes, edges } = wayOf(
    PHASES,
    journal(
      ["run.started", null],
      ["step.started", "intake:when"],
      ["step.completed", "intake:when"],
      ["step.started", "intake"],
      ["step.completed", "intake"],
      ["state.patched", "pawl.phase.fix.try", { value: { skipped: "not needed" } }],
      ["step.started", "fix.commit"],
      ["step.failed", "fix.commit", { retryAt: 5, error: null }],
      ["step.started", "fix.commit:2"],
    ),
  );
  expect(Object.fromEntries(nodes)).toEqual({ intake: "done", "fix.try": "skipped", "fix.commit": "current" });
  expect([...edges]).toEqual(["intake\nfix.try", "fix.try\nfix.commit"]);
  const ended = wayOf(
    PHASES,
    journal(
      ...["intake", "fix.try", "fix.commit", "tell"].flatMap((key) => [
        ["step.started", key] as const,
        ["step.completed", key] as const,
      ]),
      ["run.succeeded", null],
    ),
  );
  expect(new Set(ended.nodes.values())).toEqual(new Set(["done"]));
  expect(ended.edges.size).toBe(4);
});
