import { expect, it } from "vitest";
import { jsonCodec } from "../base/envelope.ts";
import { nodeHost } from "../worker/node-host.ts";
import { Draft } from "./draft.ts";
import type { StoredEntry } from "./journal.ts";
import { openJournal } from "./values.ts";

const STARTED = { workflow: "w", version: "1.0.0", input: null, seed: "seed", deadline: null };

it("P35 an entry of another run is damage where it stands in for the one of this run, though its own checksum is right", () => {
  const [own, other] = [journalOf("r", "mine"), journalOf("s", "not mine")];
  expect(open("r", own)).toHaveLength(3);
  expect(open("s", other)).toHaveLength(3);
  const exchanged = own.with(1, other[1] as StoredEntry);
  expect(() => open("r", exchanged)).toThrow(expect.objectContaining({ code: "corrupted_journal" }));
});

it("P35 a whole journal is damage under the name of another run", () => {
  expect(() => open("s", journalOf("r", "mine"))).toThrow(expect.objectContaining({ code: "corrupted_journal" }));
});

function open(id: string, journal: readonly StoredEntry[]) {
  return openJournal(nodeHost, jsonCodec, { id, head: 0, headHash: "" }, journal);
}

function journalOf(run: string, note: string): readonly StoredEntry[] {
  const draft = new Draft(run, { head: 0, hash: run, at: 0 }, nodeHost, jsonCodec);
  draft.append(1, "run.started", null, STARTED);
  draft.append(2, "note", null, { name: "said", value: note });
  draft.append(3, "note", null, { name: "said", value: "the same" });
  return draft.take().commit.entries;
}
