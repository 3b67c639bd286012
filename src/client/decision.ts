// Decisions of people about parked runs, on their way in: one per park, the first one counts.
import { readCancel } from "../base/cancel-text.ts";
import type { Codec } from "../base/envelope.ts";
import { PawlError } from "../base/errors.ts";
import { encodePayload, encodeRecord } from "../core/draft.ts";
import type { Parked, Resolved } from "../core/journal.ts";
import { isTerminal } from "../core/transition.ts";
import { asKept, openEntry, openKey, openValue } from "../core/values.ts";
import type { RunSource } from "./run.ts";

/** Refuses here what could not be recorded later. */
export function sealDecision(codec: Codec, run: string, id: string, decision: Resolved): string | Uint8Array {
  encodePayload(decision.value, "value of the decision");
  return codec.seal(encodeRecord(decision, "decision"), addressOf(run, id));
}

/** The step that a decision is about: the one that the run asks about, unless another one of its steps is named. */
export async function stepOf(
  { store, codec }: Pick<RunSource, "store" | "codec">,
  run: string,
  { detail }: Pick<Parked, "detail">,
  named: string | undefined,
): Promise<string> {
  const asked = detail?.["step"];
  const step = typeof asked === "string" ? asked : "";
  if (named === undefined || named === step) return step;
  if ((await store.journal(run)).some((entry) => openKey(codec, entry) === named)) return named;
  throw new PawlError(
    "invalid_argument",
    `Run ${run} has no step "${named}" to decide about.${step === "" ? "" : ` It asks about "${step}": name that, or none.`}`,
    { fields: { run, step: named } },
  );
}

/** A run is cancelled once: whoever wants more of it than the first one asked for must be told. */
export async function assertSameCancel(
  { store }: Pick<RunSource, "store">,
  run: string,
  compensate: boolean | undefined,
): Promise<void> {
  const row = compensate === true ? await store.run(run) : null;
  if (row === null || isTerminal(row.state) || readCancel(row.cancel).compensate) return;
  throw new PawlError(
    "idempotency_conflict",
    `Run ${run} is being cancelled already, and without \`compensate\`: what it has done stays. \`pawl effects ${run}\` lists it; undo it by hand.`,
    { fields: { run, compensate: false } },
  );
}

/** Somebody has decided about this park before: whoever wants something else must be told. */
export async function assertSameDecision(source: RunSource, run: string, id: string, wanted: Resolved): Promise<void> {
  const first = await firstDecision(source, run, id);
  const kept = asKept(source.codec, wanted, addressOf(run, id), "decision");
  if (first === null) throw overtaken(run, wanted, "somebody has decided about it before");
  if (first.choice === wanted.choice && encodeRecord(first, "decision") === encodeRecord(kept, "decision")) return;
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
