import { expect, it } from "vitest";
import { encode } from "../base/codec.ts";
import { BLOCKED } from "../core/outline.ts";
import { blockOf } from "./block.ts";

/** A blocked run whose decision is used up by its worker while somebody looks: after so many reads. */
function decidedAfter(reads: number) {
  let left = reads;
  const isUsed = () => left-- <= 0;
  const block = () => (isUsed() ? null : { at: "weigh", error: "broken", ticket: "t1" });
  const store = {
    inbox: async () => (isUsed() ? [] : [{ id: "block-t1" }]),
    state: async () => [{ key: BLOCKED, data: encode(block()) }],
  };
  return { store, codec: { unseal: (data: string) => data } } as unknown as Parameters<typeof blockOf>[0];
}

it.each([0, 1, 2])(
  "P18 S0-15 a run is not taken for blocked while a decision moves it, used up after %i reads",
  async (reads) => {
    expect(await blockOf(decidedAfter(reads), "r")).toBeNull();
  },
);
