import { decodePayload, encodeRecord } from "./draft.ts";
import type { ChildEnded, OutcomeType, SignalReceived } from "./journal.ts";
import type { Pass } from "./pass.ts";
import { validateNow } from "./schema.ts";
import { encodeFailure, openValue } from "./values.ts";
import type { Wakeup } from "./wakeups.ts";

/** Writes a wake-up's outcome and the end of its wait into the draft, and returns what the body is to see. */
export function recordWakeup(
  pass: Pass,
  wakeup: Wakeup,
): { readonly type: OutcomeType; readonly key: string; readonly payload: unknown } {
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
      const text = signalText(pass, wakeup);
      pass.draft.appendText(at, "signal.received", key, text);
      pass.draft.wait({ close: `signal:${key}` });
      pass.mailbox.consume(wakeup.row, pass.draft);
      return { type: "signal.received", key, payload: decodePayload(text) };
    }
    case "child": {
      const ended = mailValue(pass, wakeup) as ChildEnded & { error?: unknown };
      const payload: ChildEnded = { child: ended.child, status: ended.status, value: ended.error ?? ended.value };
      pass.draft.append(at, "child.ended", key, payload);
      pass.draft.wait({ close: `child:${key}` });
      pass.mailbox.consume(wakeup.row, pass.draft);
      return { type: "child.ended", key, payload };
    }
  }
}

/** A payload that does not fit the wait's schema is recorded as what it is: a signal that came, and an error (P7). */
function signalText(pass: Pass, wakeup: Extract<Wakeup, { kind: "signal" }>): string {
  const { call, row } = wakeup;
  const value = mailValue(pass, wakeup);
  try {
    const payload = validateNow(call.spec.schema, value, `The payload of signal "${call.spec.name}"`);
    return encodeRecord({ id: row.id, payload } satisfies SignalReceived, `signal "${call.spec.name}"`);
  } catch (error) {
    return encodeFailure({ id: row.id, payload: null, error });
  }
}

function mailValue(pass: Pass, { row }: Extract<Wakeup, { row: unknown }>): unknown {
  return openValue(pass.ports.codec, row.data, { run: pass.id, seq: -1, field: `inbox:${row.id}` });
}
