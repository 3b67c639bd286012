// What a run made of phases waits for by itself: somebody who tells it to begin the next phase, or who does work outside.
import type { Entry } from "../core/journal.ts";
import { ADVANCE_SIGNAL, DECISION_SIGNAL, MANUAL_SIGNAL } from "../core/outline.ts";
import { type DocumentRow, type DocumentWait, stateDocument } from "../core/state-document.ts";
import type { RunWait } from "./run.ts";

const OWN_SIGNALS: readonly string[] = [ADVANCE_SIGNAL, DECISION_SIGNAL, MANUAL_SIGNAL];

/** Whether it is for one of the signals that only the engine's own methods send: nobody is to send it by hand. */
export function isOwnWait({ kind, name }: RunWait): boolean {
  return kind === "signal" && OWN_SIGNALS.includes(name);
}

export function phaseWaits(row: DocumentRow | null, journal: readonly Entry[]): readonly DocumentWait[] {
  const waits = row === null ? [] : (stateDocument(row, journal).waiting_for ?? []);
  return waits.filter(({ kind }) => kind === "advance" || kind === "manual");
}

export function phaseWaitName({ kind, name }: DocumentWait): string {
  return kind === "advance" ? `leave to begin phase "${name}"` : `work from outside, "${name}"`;
}

export function phaseNow(wait: DocumentWait): string {
  if (wait.kind === "advance") return `It waits for ${phaseWaitName(wait)}.`;
  const who = wait.begun_by === undefined ? "nobody has begun it" : `begun by ${wait.begun_by}`;
  const files = wait.outputs?.length ? ` Its files: ${wait.outputs.join(", ")}.` : "";
  return `It waits for ${phaseWaitName(wait)} (${who}): ${wait.instructions ?? ""}${files}`;
}

export function phaseAdvice(run: string, { kind }: DocumentWait): string {
  return kind === "advance"
    ? `To execute one phase: pawl advance FILE WORKFLOW --id ${run}`
    : `Whoever does it says so with pawl.report("${run}", …); pawl next ${run} tells what it is.`;
}
