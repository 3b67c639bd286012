import { describe, expect, it } from "vitest";
import { isTerminal, publicStatus, RUN_STATES, type RunState, TRANSITIONS, transition } from "./transition.ts";

// Written out again on purpose: the table in the code is compared with what DESIGN section 8 allows, not with itself.
const EDGES = `
accepted > running parked cancelled failed
running > retrying waiting compensating parked succeeded failed cancelled
retrying > running parked failed cancelled
waiting > running parked failed cancelled
compensating > running waiting parked failed cancelled
parked > running failed cancelled
`;

const allowed = new Set(
  EDGES.trim()
    .split("\n")
    .flatMap((line) => {
      const [from = "", to = ""] = line.split(" > ");
      return to.split(" ").map((one) => `${from} > ${one}`);
    }),
);
const pairs = RUN_STATES.flatMap((from) => RUN_STATES.map((to) => [from, to] as const));

describe("E-11 the transition table", () => {
  it.each(pairs)("E-11 S2-34 %s > %s", (from, to) => {
    const isStaying = from === to && !isTerminal(from);
    if (allowed.has(`${from} > ${to}`) || isStaying) return expect(transition("r", from, to)).toBe(to);
    expect(() => transition("run-7", from, to)).toThrow(
      expect.objectContaining({ code: "illegal_transition", fields: { run: "run-7", from, to } }),
    );
  });

  it("E-11 names the run, both states and what is allowed", () => {
    expect(() => transition("run-7", "parked", "succeeded")).toThrow(
      /run-7.*"parked".*"succeeded".*running, failed, cancelled/,
    );
    expect(() => transition("run-7", "failed", "running")).toThrow(/it has ended/);
  });

  it("S2-19 S2-34 of the pairs of SPEC's states it takes those of the table there, a few more that are named here, and refuses the rest", () => {
    // A step's outcome and what follows it are one commit: Running and Checkpointed are one state.
    const states: readonly RunState[] = RUN_STATES.filter((state) => state !== "parked");
    const taken = states.flatMap((from) =>
      TRANSITIONS[from].filter((to) => to !== "parked").map((to) => `${from} > ${to}`),
    );
    const table = [
      [
        "accepted > running",
        "running > waiting",
        "running > retrying",
        "running > compensating",
        "running > succeeded",
      ],
      ["running > failed", "running > cancelled", "waiting > running", "waiting > cancelled", "retrying > running"],
      ["retrying > failed", "compensating > failed", "compensating > cancelled"],
    ].flat();
    const more = [
      // A cancel or a deadline, whatever the run is doing.
      ...["accepted > cancelled", "accepted > failed", "retrying > cancelled", "waiting > failed"],
      // Whoever takes over runs first; a run that undoes may rest as one that waits.
      ...["compensating > running", "compensating > waiting"],
    ];
    expect(taken.toSorted()).toEqual([...table, ...more].toSorted());
    // A decision about a run that waits is a turn of its body, so it is running when it begins to undo.
    expect(() => transition("r", "waiting", "compensating")).toThrow();
  });

  it("I16 nothing follows an end, and an end can be reached from everywhere", () => {
    const ends: RunState[] = ["succeeded", "failed", "cancelled"];
    expect(RUN_STATES.filter(isTerminal)).toEqual(ends);
    for (const state of RUN_STATES) if (!isTerminal(state)) expect(TRANSITIONS[state]).toContain("cancelled");
  });

  it("E-11 every state has a public word", () => {
    expect(RUN_STATES.map((state) => `${state} ${publicStatus(state)}`)).toEqual([
      "accepted running",
      "running running",
      "retrying running",
      "waiting waiting",
      "compensating running",
      "parked waiting",
      "succeeded succeeded",
      "failed failed",
      "cancelled cancelled",
    ]);
  });
});
