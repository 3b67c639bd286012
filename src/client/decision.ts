// Decisions of people about parked runs, on their way in: one per park, the first one counts.
import type { Codec } from "../base/envelope.ts";
import { PawlError } from "../base/errors.ts";
import { encodePayload, encodeRecord } from "../core/draft.ts";
import type { Resolved } from "../core/journal.ts";
import { openEntry, openValue } from "../core/values.ts";
import type { RunSource } from "./run.ts";

/** Refuses here what could not be recorded later. */
export function sealDecision(codec: Codec, run: string, id: string, decision: Resolved): string | Uint8Array {
  encodePayload(decision.value, "value of the decision");
  return codec.seal(encodeRecord(decision, "decision"), addressOf(run, id));
}

/** Somebody has decided about this park before: whoever wants something else must be told. */
export async function assertSameDecision(source: RunSource, run: string, id: string, wanted: Resolved): Promise<void> {
  const first = await firstDecision(source, run, id);
  if (first === null) throw overtaken(run, wanted, "somebody has decided about it before");
  if (first.choice === wanted.choice && encodeRecord(first, "decision") === encodeRecord(wanted, "decision")) return;
  const what = first.choice === wanted.choice ? `"${first.choice}" with another value` : `"${first.choice}"`;
  throw overtaken(run, wanted, `it was resolved with ${what} before`, first.choice);
}

/** The decision as it waits in the inbox, or as it was recorded if the run has used it already. */
async function firstDecision({ store, codec }: RunSource, run: string, id: string): Promise<Resolved | null> {
  try {
    const row = (await store.inbox(run)).find((one) => one.id === id);
    if (row !== undefined) return openValue(codec, row.data, addressOf(run, id)) as Resolved;
    const recorded = (await store.journal(run)).findLast(({ type }) => type === "run.resolved");
    return recorded === undefined ? null : (openEntry(codec, run, recorded).payload as Resolved);
  } catch {
    return null;
  }
}

function addressOf(run: string, id: string) {
  return { run, seq: -1, field: `inbox:${id}` };
}

function overtaken(run: string, wanted: Resolved, why: string, first?: string): PawlError {
  return new PawlError(
    "idempotency_conflict",
    `"${wanted.choice}" was not recorded for run ${run}: ${why}. \`pawl show ${run}\` tells what became of it; cancel the run to stop it.`,
    { fields: { run, choice: wanted.choice, ...(first === undefined ? {} : { decided: first }) } },
  );
}
