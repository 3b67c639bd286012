import { expect, it } from "vitest";
import { isParkedForGood } from "./follow.ts";

/** A parked run whose decision is used up by its worker while somebody looks: after so many reads. */
function decidedAfter(reads: number) {
  let left = reads;
  const isUsed = () => left-- <= 0;
  const store = {
    inbox: async () => (isUsed() ? [] : [{ kind: "decision", name: "decision" }]),
    run: async () => ({ cancel: null }),
  };
  const run = { id: "r", status: async () => (isUsed() ? {} : { parked: { reason: "unknown_outcome" } }) };
  return { pawl: { store }, run } as unknown as Parameters<typeof isParkedForGood>[0];
}

it.each([0, 1, 2, 3])(
  "P18 E-26 whoever follows a run does not take it for parked while a decision moves it, used up after %i reads",
  async (reads) => {
    expect(await isParkedForGood(decidedAfter(reads))).toBe(false);
  },
);
