import { expect, it } from "vitest";
import type { Host } from "./host.ts";
import { Turns } from "./turns.ts";

/** An event loop of check phases alone: what an immediate asks for comes in the next one. */
function loopOf() {
  let queue: (() => void)[] = [];
  const host = { immediate: (fn: () => void) => void queue.push(fn) } as Host;
  const phase = () => {
    const due = queue;
    queue = [];
    for (const fn of due) fn();
  };
  return { host, phase };
}

/** How many turns so many runs have had after each phase, if each asks for the next turn when one is over. */
function turnsOf({ runs, phases }: { readonly runs: number; readonly phases: number }): number[] {
  const { host, phase } = loopOf();
  const turns = new Turns(host, () => {});
  let taken = 0;
  for (let i = 0; i < runs; i++) {
    const taker = { openTurn: () => void taken++, closeTurn: () => turns.request(taker) };
    turns.request(taker);
  }
  return Array.from({ length: phases }, () => {
    phase();
    return taken;
  });
}

it("gives a run that is alone four turns in one round of the event loop", () => {
  expect(turnsOf({ runs: 1, phases: 3 })).toEqual([4, 8, 12]);
});

it("I27 lets the event loop go round between the turns of many runs, and each of them has its turn", () => {
  expect(turnsOf({ runs: 1000, phases: 3 })).toEqual([1000, 2000, 3000]);
  expect(turnsOf({ runs: 40, phases: 2 })).toEqual([80, 160]);
});
