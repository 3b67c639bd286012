// B63: a journal that is not a history of the code is refused, never followed silently. The rule is `readHistory`: a mutated journal that is
// still a legal history of the program (two equal entries swapped, the last call of the last turn dropped, …) must be followed; any other must
// park the run, and may start no step whose place in the journal was not reached.
import fc from "fast-check";
import { expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { jsonCodec } from "../../src/base/envelope.ts";
import { CALLS, type EntryType, OUTCOMES, type Parked, type StoredEntry } from "../../src/core/journal.ts";
import { openEntry } from "../../src/core/values.ts";
import { withoutColdStart } from "../cold-start.ts";
import { readHistory } from "./legal-history.ts";
import { programs, propertyOptions, schedules } from "./program-arbitrary.ts";
import { rechain, resume, runProgram, type Story } from "./rig.ts";

withoutColdStart("its journals are altered on purpose");

const DONE = ["succeeded", "failed"];
/** A body that goes quiet before a recorded call may be slow: it is parked when the watchdog says so (P3). */
const REFUSED = ["replay_drift", "replay_stalled", "corrupted_journal"];

/** How a journal is altered: at which entry, to what. Numbers are taken modulo what there is. */
type Mutation =
  | { readonly kind: "key"; readonly at: number; readonly key: string }
  | { readonly kind: "type"; readonly at: number; readonly type: EntryType }
  | { readonly kind: "digest"; readonly at: number }
  | { readonly kind: "drop"; readonly at: number }
  | { readonly kind: "swap"; readonly at: number; readonly with: number };

// A cancel may come at any moment, and what lies before a generation's start is not replayed: forged ones of these two are legal histories.
const TYPES = [...CALLS, ...OUTCOMES].filter((type) => type !== "run.cancelling" && type !== "run.continued");

const at = fc.nat(1000);
const mutations: fc.Arbitrary<Mutation> = fc.oneof(
  fc.record({
    kind: fc.constant("key" as const),
    at,
    key: fc.constantFrom("a", "a#2", "b", "c", "sleep", "unheard-of"),
  }),
  fc.record({ kind: fc.constant("type" as const), at, type: fc.constantFrom<EntryType[]>(...TYPES) }),
  fc.record({ kind: fc.constant("digest" as const), at }),
  fc.record({ kind: fc.constant("drop" as const), at }),
  fc.record({ kind: fc.constant("swap" as const), at, with: at }),
);

it("B63, P3, S3-14: an altered journal parks the run, unless it is a legal history itself", async () => {
  const seen = { refused: 0, followed: 0 };
  await fc.assert(
    fc.asyncProperty(
      programs({ maxCalls: 6 }),
      schedules,
      fc.array(mutations, { minLength: 6, maxLength: 6 }),
      async (program, seed, list) => {
        const story = await runProgram(program, { seed });
        for (const mutation of list) {
          const altered = mutate(story.journal.slice(0, -1), mutation);
          if (altered === null) continue;
          const kept = rechain(story.row.id, altered);
          const isLegal = await isHistory(story, kept);
          const resumed = await resume(story, kept, seed, { leaseClock: manualClock() });
          const became = parkOf(resumed)?.reason ?? resumed.row.state;
          expect(isLegal ? DONE : REFUSED, `${JSON.stringify(mutation)} of\n${linesOf(story)}`).toContain(became);
          if (isLegal) seen.followed++;
          else seen.refused++;
        }
      },
    ),
    propertyOptions(250),
  );
  expect(seen.refused).toBeGreaterThan(500);
  expect(seen.followed).toBeGreaterThan(20);
}, 600_000);

it("B63, P35: an altered journal whose checksums were not repaired parks the run as corrupted", async () => {
  await fc.assert(
    fc.asyncProperty(programs({ maxCalls: 5 }), schedules, mutations, async (program, seed, mutation) => {
      const story = await runProgram(program, { seed });
      const altered = mutate(story.journal.slice(0, -1), mutation);
      if (altered === null) return;
      const kept = altered.map((entry, seq) => ({ ...entry, seq }));
      // Dropping the last entries leaves what a crash leaves.
      const isCut = kept.every((entry, seq) => JSON.stringify(entry) === JSON.stringify(story.journal[seq]));
      const resumed = await resume(story, kept, seed);
      expect(parkOf(resumed)?.reason).toBe(isCut ? undefined : "corrupted_journal");
      if (!isCut) expect(resumed.starts.size).toBe(0);
    }),
    propertyOptions(150),
  );
}, 600_000);

/** The altered entries, or `null` where the mutation changes nothing. The first entry, which starts the run, stays. */
function mutate(journal: readonly StoredEntry[], mutation: Mutation): StoredEntry[] | null {
  if (journal.length < 2) return null;
  const index = 1 + (mutation.at % (journal.length - 1));
  const entry = journal[index] as StoredEntry;
  const replaced = (by: Partial<StoredEntry>) => journal.map((one, i) => (i === index ? { ...one, ...by } : one));
  switch (mutation.kind) {
    case "key":
      return entry.key === null || entry.key === mutation.key ? null : replaced({ key: mutation.key });
    case "type":
      return entry.type === mutation.type ? null : replaced({ type: mutation.type });
    case "digest":
      return typeof entry.data === "string" && entry.data.includes('"digest"')
        ? replaced({
            data: entry.data.replace(/"digest":"./, (text) => `${text.slice(0, -1)}${text.endsWith("x") ? "y" : "x"}`),
          })
        : null;
    case "drop":
      return journal.filter((_, i) => i !== index);
    case "swap": {
      const other = 1 + (mutation.with % (journal.length - 1));
      if (other === index) return null;
      // Times stay where they are: they may not run backwards (P8).
      const content = ({ type, key, data }: StoredEntry) => ({ type, key, data });
      return journal.map((one, i) =>
        i === index
          ? { ...one, ...content(journal[other] as StoredEntry) }
          : i === other
            ? { ...one, ...content(entry) }
            : one,
      );
    }
  }
}

async function isHistory(story: Story, kept: readonly StoredEntry[]): Promise<boolean> {
  const entries = kept.map((entry) => openEntry(jsonCodec, story.row.id, entry));
  return (await readHistory(story.program, entries, { strict: false })).isLegal;
}

function linesOf(story: Story): string {
  return story.entries.map((entry) => `${entry.seq} ${entry.type} ${entry.key}`).join("\n");
}

function parkOf(story: Story): Parked | undefined {
  const last = story.entries.at(-1);
  return last?.type === "run.parked" ? (last.payload as Parked) : undefined;
}
