import { describe, expect, it } from "vitest";
import { VOTES } from "./approval.ts";
import type { EffectRecord } from "./ledger.ts";
import { isEnd, mayMove, move, statesOf } from "./state-machine.ts";
import { APPROVAL, EFFECT, STATE_MACHINES } from "./state-machines.ts";
import { RUN, TRANSITIONS } from "./transition.ts";

// Written out again on purpose: the tables in the code are compared with these, not with themselves. In front, what each begins with.
const TABLES = `
run: accepted
accepted > running parked cancelled failed
running > retrying waiting compensating parked succeeded failed cancelled
retrying > running parked failed cancelled
waiting > running parked failed cancelled
compensating > running waiting parked failed cancelled
parked > running failed cancelled
succeeded >
failed >
cancelled >

step: pending
pending > in_progress skipped
in_progress > done failed compensated
done > compensated
failed > in_progress skipped compensated
skipped >
compensated >

effect: planned
planned > executed unknown failed compensated
executed > compensated
unknown > planned executed failed compensated
failed >
compensated >

approval: requested
requested > approved denied changes_requested expired cancelled superseded
approved >
denied >
changes_requested >
expired >
cancelled >
superseded >

message: queued
queued > invisible dead
invisible > acknowledged queued dead
acknowledged >
dead >

alert: firing
firing > acknowledged resolved
acknowledged > resolved
resolved >
`;

const tables = TABLES.trim()
  .split("\n\n")
  .map((table) => {
    const [head = "", ...lines] = table.split("\n");
    const [name = "", initial = ""] = head.split(": ");
    const rows = lines.map((line) => {
      const [from = "", to = ""] = line.split(/ > ?/);
      return [from, to.split(" ").filter((one) => one !== "")] as const;
    });
    return { name, initial, edges: new Map(rows) };
  });

describe.each(tables.map((table) => [table.name, table] as const))(
  "M-1 the states of each %s",
  (_, { name, initial, edges }) => {
    const machine = STATE_MACHINES.find((one) => one.name === name)!;

    it("M-1 has these states and begins with the first", () => {
      expect([...statesOf(machine)].sort()).toEqual([...edges.keys()].sort());
      expect(machine.initial).toBe(initial);
    });

    const pairs = [...edges.keys()].flatMap((from) => [...edges.keys()].map((to) => [from, to] as const));
    it.each(pairs)("M-1 S2-34 %s > %s", (from, to) => {
      const isEnded = edges.get(from)!.length === 0;
      const isAllowed = edges.get(from)!.includes(to) || (from === to && !isEnded);
      expect(isEnd(machine, from)).toBe(isEnded);
      expect(mayMove(machine, from, to)).toBe(isAllowed);
      if (isAllowed) return expect(move(machine, "x-7", from, to)).toBe(to);
      expect(() => move(machine, "x-7", from, to)).toThrow(
        expect.objectContaining({ code: "illegal_transition", fields: { [name]: "x-7", from, to } }),
      );
    });

    it("M-1 every state can be reached, and every one leads to an end", () => {
      const reach = (from: string, seen = new Set<string>()): Set<string> => {
        if (seen.has(from)) return seen;
        seen.add(from);
        for (const to of edges.get(from)!) reach(to, seen);
        return seen;
      };
      expect(reach(initial).size).toBe(edges.size);
      for (const state of edges.keys())
        expect([...reach(state)].some((one) => edges.get(one)!.length === 0)).toBe(true);
    });
  },
);

it("M-1 these are all machines, and the run's is the one that commits are built by", () => {
  expect(STATE_MACHINES.map(({ name }) => name)).toEqual(tables.map(({ name }) => name));
  expect(STATE_MACHINES[0]).toBe(RUN);
  expect(RUN.edges).toBe(TRANSITIONS);
});

it("M-1 the words are those of the views", () => {
  expect(APPROVAL.edges.requested).toEqual(expect.arrayContaining([...VOTES, "expired"]));
  const status: EffectRecord["status"][] = [...statesOf(EFFECT)];
  expect(status.length).toBe(5);
});
