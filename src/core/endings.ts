// Endings
// How a run ends or is parked: the entries, the row and the messages that belong to it, written into the pass's draft in one piece.
import { type Cancel, cancelText, readCancel } from "../base/cancel-text.ts";
import { type ErrorCode, messageOf, PawlError, readProperty } from "../base/errors.ts";
import { utf8Length } from "../base/utf8.ts";
import { type Draft, decodePayload, encodePayload, encodeRecord } from "./draft.ts";
import type { Cancelling, ChildEnded, Continued, Ended, Entry, Parked } from "./journal.ts";
import { LIMITS } from "./limits.ts";
import { notifyIncomplete } from "./notification.ts";
import type { Pass } from "./pass.ts";
import type { PassEnd, PassPorts } from "./pass-ports.ts";
import { pinned } from "./pins.ts";
import { freed } from "./rest.ts";
import { validateNow } from "./schema.ts";
import { settleOpen } from "./spending.ts";
import type { ParentLink, RowPatch, RunRow } from "./store.ts";
import { transition } from "./transition.ts";
import { encodeFailure } from "./values.ts";
import { childMessageId } from "./wakeups.ts";

export type BodyResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown };

type Terminal = "succeeded" | "failed" | "cancelled";

interface End {
  readonly state: Terminal;
  readonly text: string;
  /** The output, or the error. */
  readonly value: unknown;
  readonly stopReason: string;
}

/** Writes the end of a run whose body has returned or thrown. */
export function endRun(pass: Pass, result: BodyResult): PassEnd {
  settleOpen(pass);
  const end = redactedEnd(pass, endWith(pass, result));
  if (pass.body.isIncomplete) {
    const { id, ports } = pass;
    pass.draft.onDurable(() => ports.log.error(messageOf(end.value), { run: id, reason: end.stopReason }));
  }
  if (pass.cancelling === null) pass.draft.beginEnd();
  if (pass.body.isIncomplete) notifyIncomplete(pass, end.value);
  cancelChildren(pass, { reason: `Its parent ${pass.id} ${end.state}.`, compensate: end.state === "failed" });
  writeEnd(pass.draft, pass.row, pass.ports, end);
  return { kind: "ended", state: end.state, text: end.text };
}

function endWith(pass: Pass, result: BodyResult): End {
  if (pass.cancelling === null || pass.body.isIncomplete) return endOf(pass, result);
  return endOfCancelled(pass.id, pass.cancelling);
}

/** Whoever waits for the result, and a parent, get what is recorded. */
function redactedEnd({ redactor }: Pass, end: End): End {
  if (redactor === null) return end;
  const text = redactor.entry(`run.${end.state}`, null, end.text);
  const payload = decodePayload(text);
  return { ...end, text, value: end.state === "succeeded" ? payload : (payload as Ended).error };
}

function endOf(pass: Pass, result: BodyResult): End {
  if (!result.ok) return isOwnCancel(pass.id, result.error) ? cancelledEnd(result.error) : failedEnd(result.error);
  try {
    const { output } = pass.workflow.definition;
    const value = validateNow(output, result.value, `The output of workflow "${pass.workflow.name}"`);
    return { state: "succeeded", text: encodePayload(value, "output"), value, stopReason: "completed" };
  } catch (error) {
    return failedEnd(error);
  }
}

function failedEnd(error: unknown): End {
  const stopReason = stopReasonOf(error);
  return { state: "failed", text: encodeFailure({ error, stopReason } satisfies Ended), value: error, stopReason };
}

function cancelledEnd(error: unknown): End {
  const text = encodeFailure({ error, stopReason: "cancelled" } satisfies Ended);
  return { state: "cancelled", text, value: error, stopReason: "cancelled" };
}

/** What a body throws to cancel its own run: what it has done stays, unless it says otherwise. */
export function ownCancel(run: string, reason: string, compensate: boolean): PawlError {
  return new PawlError(
    "cancelled",
    `Run ${run} cancelled itself: ${reason}. Start a new run to do the work after all.`,
    {
      fields: { run, reason, self: true, ...(!compensate && { compensate: false }) },
    },
  );
}

function isOwnCancel(run: string, error: unknown): boolean {
  const fields = readProperty(error, "fields");
  return (
    readProperty(error, "code") === "cancelled" &&
    readProperty(fields, "self") === true &&
    readProperty(fields, "run") === run
  );
}

function stopReasonOf(error: unknown): string {
  const code = readProperty(error, "code");
  return typeof code === "string" && /^[\w.:-]{1,100}$/.test(code) ? code : "error";
}

function endOfCancelled(run: string, cancelling: Cancelling): End {
  const error = cancelError(run, cancelling);
  const state = cancelling.cause === "deadline" ? "failed" : "cancelled";
  return {
    state,
    text: encodeFailure({ error, stopReason: error.code } satisfies Ended),
    value: error,
    stopReason: error.code,
  };
}

/** Writes that the run is to stop; its bodies are told once that is durable (P13, P19). */
export function recordCancel(
  pass: Pass,
  cause: Cancelling["cause"],
  asked: string | null = pass.mailbox.cancel,
): Cancelling {
  const cancelling: Cancelling =
    cause === "cancel"
      ? recordableCancel(asked)
      : { cause, reason: "The run's deadline has passed.", compensate: true };
  settleOpen(pass);
  pass.draft.append(pass.ports.clock.now(), "run.cancelling", null, cancelling);
  // What is being undone is undone (CO4).
  if (pass.body.isCompensating) return cancelling;
  pass.draft.wait({ closeAll: true });
  cancelChildren(pass, { reason: cancelling.reason, compensate: cancelling.compensate === true });
  pass.draft.onDurable(() => pass.steps.abortAll(() => cancelError(pass.id, cancelling)));
  return cancelling;
}

/** What is stored as a reason may have got there past every check: it is mended, or nothing could cancel the run (I20, P19). */
export function recordableCancel(stored: string | null): Cancelling {
  const { reason, compensate } = readCancel(stored);
  const short = utf8Length(reason) > LIMITS.reasonBytes ? `${reason.slice(0, LIMITS.reasonBytes / 4)}…` : reason;
  const sound = short.replaceAll(/[\0\ud800-\udfff]/gu, "\ufffd");
  return { cause: "cancel", reason: sound, ...(compensate && { compensate }) };
}

/** Children that were called go with their parent; spawned ones live (P12). */
export function cancelChildren(pass: Pass, cancel: Cancel): void {
  for (const call of pass.calls.waits()) {
    if (call.type !== "child.started") continue;
    pass.draft.send({ to: call.child, id: `cancel:${pass.id}`, kind: "cancel", name: "", data: cancelText(cancel) });
    pass.draft.onDurable(() => pass.ports.mailed());
  }
}

/**
 * Ends a run that has no body in memory: parked, stranded, or never begun (P19). Its open children go with it (P12). With `left`, what it has
 * done was to be undone and cannot be.
 */
export function cancelWithoutBody(
  draft: Draft,
  row: RunRow,
  ports: Pick<PassPorts, "clock" | "codec">,
  cancelling: Cancelling,
  children: readonly string[],
  left: PawlError | null = null,
): PassEnd {
  draft.append(ports.clock.now(), "run.cancelling", null, cancelling);
  const data = cancelText({ reason: cancelling.reason, compensate: cancelling.compensate === true });
  for (const to of children) draft.send({ to, id: `cancel:${row.id}`, kind: "cancel", name: "", data });
  const end = left === null ? endOfCancelled(row.id, cancelling) : failedEnd(left);
  writeEnd(draft, row, ports, end);
  return { kind: "ended", state: end.state, text: end.text };
}

/** Ends a run that never had a body, and has done what it was for. */
export function endBodiless(draft: Draft, row: RunRow, ports: Pick<PassPorts, "clock" | "codec">): void {
  const text = encodePayload(null, "output");
  writeEnd(draft, row, ports, { state: "succeeded", text, value: null, stopReason: "completed" });
}

function writeEnd(draft: Draft, row: RunRow, ports: Pick<PassPorts, "clock" | "codec">, end: End): void {
  const now = ports.clock.now();
  draft.appendText(now, `run.${end.state}`, null, end.text);
  const { head, hash, at } = draft.chain;
  const patch: RowPatch = {
    state: transition(row.id, row.state, end.state),
    ended: true,
    endedAt: at,
    release: true,
    readyAt: null,
    wakeAt: null,
    claims: 0,
    head,
    headHash: hash,
    stopReason: end.stopReason,
    ...freed(row),
  };
  draft.row(patch);
  if (row.parent !== null && !row.parent.detached) tellParent(draft, row, row.parent, ports, end);
}

function tellParent(draft: Draft, row: RunRow, parent: ParentLink, ports: Pick<PassPorts, "codec">, end: End): void {
  const id = childMessageId(row.id);
  const ended = { child: row.id, status: end.state };
  const text =
    end.state === "succeeded"
      ? encodeRecord({ ...ended, value: end.value } satisfies ChildEnded, "output")
      : encodeFailure({ ...ended, value: null, error: end.value });
  const data = ports.codec.seal(text, { run: parent.run, seq: -1, field: `inbox:${id}` });
  draft.send({ to: parent.run, id, kind: "child", name: parent.key, data });
}

/** What the next generation starts with; refuses what cannot be recorded. */
export function continuedText(
  { generation, notes, body, workflow, pins, dry, redactor }: Pass,
  input: unknown,
): string {
  const { budget, structure } = workflow.definition;
  const hasBudgets = body.budgets.length > 0 || budget !== null;
  const continued: Continued = {
    generation: generation + 1,
    input,
    state: notes.state,
    cost: notes.costs,
    ...(hasBudgets && { budgets: body.budgets }),
    ...pinned({ structure, uses: pins.uses }),
    ...(dry !== null && { effects: dry.policy }),
  };
  encodePayload(input, "input of continueAs");
  const text = encodeRecord(continued, "run state and input of continueAs");
  return redactor === null ? text : redactor.entry("run.continued", null, text);
}

/** Ends a generation: the next one keeps id, inbox and positions, and starts from this entry (P10). */
export function continueRun(pass: Pass, text: string): PassEnd {
  settleOpen(pass);
  cancelChildren(pass, { reason: `Its parent ${pass.id} continued as a new generation.`, compensate: true });
  pass.draft.wait({ closeAll: true });
  const seq = pass.draft.appendText(pass.ports.clock.now(), "run.continued", null, text);
  const { chain } = pass.draft;
  const entry: Entry = { seq, at: chain.at, type: "run.continued", key: null, payload: decodePayload(text) };
  return { kind: "continued", entry, chain };
}

/** Parks a run: it will not move until a person decides. */
export function parkRun(pass: Pass, parked: Parked): PassEnd {
  // Parked with a cancel that nobody has seen, it would wait for ever (P19).
  pass.draft.beginEnd();
  writePark(pass.draft, pass.row, pass.ports.clock.now(), parked);
  pass.draft.onDurable(() => pass.ports.log.error(parked.message, parkFields(pass.row, parked)));
  return { kind: "parked", message: parked.message };
}

/** What the log says of a park. */
export function parkFields(row: RunRow, { reason }: Parked): Readonly<Record<string, unknown>> {
  return { event: "run.parked", run: row.id, workflow: row.workflow, traceId: row.traceId, reason };
}

export function writePark(draft: Draft, row: RunRow, now: number, parked: Parked): void {
  draft.append(now, "run.parked", null, parked);
  draft.wait({
    open: { key: "decision", kind: "decision", name: parked.reason, due: null, detail: JSON.stringify(parked) },
  });
  const { head, hash } = draft.chain;
  draft.row({
    state: transition(row.id, row.state, "parked"),
    release: true,
    readyAt: null,
    wakeAt: null,
    claims: 0,
    head,
    headHash: hash,
    ...freed(row),
  });
}

export function cancelError(run: string, { cause, reason }: Cancelling): PawlError {
  const code: ErrorCode = cause === "deadline" ? "deadline_exceeded" : "cancelled";
  const message =
    cause === "deadline"
      ? `Run ${run} passed its deadline. Give the workflow or the start a longer \`deadline\` and retry the run.`
      : `Run ${run} was cancelled${reason === "" ? "" : `: ${reason}`}. Start a new run, or retry this one, to do the work after all.`;
  return new PawlError(code, message, { fields: { run, reason } });
}

export function runEnded(run: string): PawlError {
  return new PawlError("run_ended", `Run ${run} has ended; what its steps still do is no longer recorded.`, {
    fields: { run },
  });
}
