// B61: whoever is first in the journal wins, however the steps complete and whatever is memoised when.
import { expect, it } from "vitest";
import { expectLegal, followPrefix } from "./crash-prefix.ts";
import type { Node } from "./program.ts";
import { runProgram, type Story } from "./rig.ts";

const KEYS = ["a", "b", "c"] as const;
const PERMUTATIONS = [
  ["a", "b", "c"],
  ["a", "c", "b"],
  ["b", "a", "c"],
  ["b", "c", "a"],
  ["c", "a", "b"],
  ["c", "b", "a"],
] as const;

const step = (name: string): Node => ({ op: "step", name, value: 1, pace: "scheduled", end: "ok" });
const race: Node = { op: "join", how: "race", of: KEYS.map(step) };
/** Waits for the losers too, so that all three outcomes are in the journal; the race is decided long before. */
const raceAndRest: Node = {
  op: "seq",
  of: [
    {
      op: "join",
      how: "all",
      of: [race, { op: "join", how: "settled", of: [step("d"), step("e"), step("f")] }],
    },
  ],
};

it.each(PERMUTATIONS)(
  "B61 P2 S3-12 of steps that complete as %s, %s, %s the first in the journal wins, live and after every crash",
  async (...order) => {
    const story = await runProgram(raceAndRest, { seed: 1, order: [...order, "d", "e", "f"] });
    await expectLegal(story);
    expect(racers(story, story.journal.length)).toEqual(order);
    expect(winner(story)).toBe(`${order[0]}=1`);
    for (let length = 1; length < story.journal.length; length++) {
      const resumed = await followPrefix(story, length, length);
      expect(winner(resumed)).toBe(`${racers(resumed, resumed.journal.length)[0]}=1`);
      if (racers(story, length).length > 0) expect(winner(resumed)).toBe(winner(story));
    }
  },
);

/** The steps of the race in the order in which the first `length` entries have their outcomes. */
function racers(story: Story, length: number): (string | null)[] {
  const keys = new Set<string | null>(KEYS);
  const outcomes = story.entries.slice(0, length).filter((entry) => entry.type === "step.completed");
  return outcomes.map((entry) => entry.key).filter((key) => keys.has(key));
}

function winner(story: Story): string {
  const end = story.entries.at(-1)?.payload as [[[string, string]]];
  return end[0][0][1];
}
