import type { Codec } from "../base/envelope.ts";
import { messageOf, PawlError } from "../base/errors.ts";
import { isVote } from "./approval-votes.ts";
import { isCallbackAnswer } from "./callback.ts";
import { decodePayload, encodeRecord } from "./draft.ts";
import { isWellFormed } from "./entry-shape.ts";
import type { ChildEnded, OutcomeType, Parked, SignalReceived } from "./journal.ts";
import { parkedForKey } from "./missing-key.ts";
import type { Pass } from "./pass.ts";
import { validateNow } from "./schema.ts";
import type { InboxRow } from "./store.ts";
import { encodeFailure, openValue } from "./values.ts";
import type { PlainWakeup } from "./wakeups.ts";

export interface Recorded {
  readonly type: OutcomeType;
  readonly key: string | null;
  readonly payload: unknown;
}

/**
 * Writes a wake-up's outcome and the end of its wait into the draft, and returns what the body is to see. A message that cannot be read parks
 * the run instead, and stays where it is: it may be repaired.
 */
export function recordWakeup(pass: Pass, wakeup: PlainWakeup): Recorded | null {
  const isMail = wakeup.kind === "signal" || wakeup.kind === "child";
  const mail = isMail ? readMail(pass.ports.codec, pass.id, wakeup.row) : null;
  if (mail?.error === undefined) return record(pass, wakeup, mail?.value);
  pass.park(mail.error);
  return null;
}

function record(pass: Pass, wakeup: PlainWakeup, value: unknown): Recorded {
  const at = pass.ports.clock.now();
  const { key } = wakeup.call;
  switch (wakeup.kind) {
    case "timer":
      pass.draft.append(at, "timer.fired", key, null);
      pass.draft.wait({ close: `timer:${key}` });
      return { type: "timer.fired", key, payload: null };
    case "timeout":
      pass.draft.append(at, "timer.fired", key, { wait: true });
      pass.draft.wait({ close: `signal:${key}` });
      return { type: "timer.fired", key, payload: { wait: true } };
    case "signal": {
      const text = recordedText(pass, "signal.received", key, signalText(wakeup, value));
      pass.draft.appendText(at, "signal.received", key, text);
      pass.draft.wait({ close: `signal:${key}` });
      pass.mailbox.consume(wakeup.row, pass.draft);
      return { type: "signal.received", key, payload: decodePayload(text) };
    }
    case "child": {
      const ended = value as ChildEnded & { error?: unknown };
      const payload: ChildEnded = { child: ended.child, status: ended.status, value: ended.error ?? ended.value };
      const text = recordedText(pass, "child.ended", key, encodeRecord(payload, "child.ended"));
      pass.draft.appendText(at, "child.ended", key, text);
      pass.draft.wait({ close: `child:${key}` });
      pass.mailbox.consume(wakeup.row, pass.draft);
      return { type: "child.ended", key, payload: pass.redactor === null ? payload : decodePayload(text) };
    }
  }
}

/** The text of an outcome as it is recorded, for bodies that go on with it. */
export function recordedText({ redactor }: Pass, type: OutcomeType, key: string | null, text: string): string {
  return redactor === null ? text : redactor.entry(type, key, text);
}

/** A payload that does not fit the wait's schema is recorded as what it is: a signal that came, and an error (P7). */
function signalText({ call, row }: Extract<PlainWakeup, { kind: "signal" }>, value: unknown): string {
  try {
    const payload = validateNow(call.spec.schema, value, `The payload of signal "${call.spec.name}"`);
    return encodeRecord({ id: row.id, payload } satisfies SignalReceived, `signal "${call.spec.name}"`);
  } catch (error) {
    return encodeFailure({ id: row.id, payload: null, error });
  }
}

type Mail = { readonly value: unknown; readonly error?: undefined } | { readonly error: Parked };

/** Opens a message, or says why its run has to be parked. */
export function readMail(codec: Codec, run: string, row: InboxRow): Mail {
  try {
    const value = openValue(codec, row.data, { run, seq: -1, field: `inbox:${row.id}` });
    if (isSound(row, value)) return { value };
    return {
      error: damagedMail(run, row, new PawlError("corrupt_value", "Its content is not what such a message holds.")),
    };
  } catch (error) {
    return { error: parkedForKey(run, error) ?? damagedMail(run, row, error) };
  }
}

/** A signal may hold anything. */
function isSound({ kind }: InboxRow, value: unknown): boolean {
  if (kind === "child") return isWellFormed({ seq: 1, at: 0, type: "child.ended", key: "child", payload: value });
  if (kind === "approval") return isVote(value);
  if (kind === "callback") return isCallbackAnswer(value);
  return kind === "signal" || isWellFormed({ seq: 1, at: 0, type: "run.resolved", key: null, payload: value });
}

function damagedMail(run: string, { id, kind, name }: InboxRow, error: unknown): Parked {
  const what = kind === "signal" ? `signal "${name}"` : kind;
  return {
    reason: "corrupted_journal",
    message:
      `Run ${run} cannot go on: message ${id} (${what}) in its inbox cannot be read. ${messageOf(error)} ` +
      'Repair it from a backup and resolve the run with "retry", or cancel the run.',
    choices: ["retry", "cancel"],
    detail: { code: "corrupt_value", message: id, kind, name },
  };
}
