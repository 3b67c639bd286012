// Callbacks in the journal
// How an address is opened, answered or given up, and what that does to the body.
//
//   CB1. At most one outcome: an answer, a failure, or the end of its time. The inbox has one message id for each address.
//   CB2. The journal and the store have the id alone. The token is made from it with a secret of the process, again in every replay.
//   CB3. Its time is over only if no answer came before the commit that says so: that commit holds as long as the inbox is as it was read.
import { PawlError } from "../base/errors.ts";
import { CallbackCall, rejectCall, type SignalSpec } from "./call.ts";
import { type Callback, type CallbackAnswer, type CallbackEnded, type CallbackOpened, tokenOf } from "./callback.ts";
import { decodePayload, encodeRecord } from "./draft.ts";
import type { Host } from "./host.ts";
import type { Parked } from "./journal.ts";
import type { Pass } from "./pass.ts";
import { validateNow } from "./schema.ts";
import { stableDigest } from "./stable-digest.ts";
import type { WaitChange } from "./store.ts";
import { encodeFailure } from "./values.ts";
import { type Recorded, readMail, recordedText } from "./wakeup-delivery.ts";
import type { CallbackWakeup } from "./wakeups.ts";

/** Where the id of a callback leads to its run. */
export const CALLBACK_SPACE = "callback";

/**
 * Seed and generation are in it, as in the id of a child (P10), and when the run was made: a run may get the id of one that was removed, and tokens of
 * that one must not answer it. It begins with letters, for command lines.
 */
export function callbackId(host: Host, seed: string, generation: number, key: string, createdAt: number): string {
  return `cb${host.digest(`callback/${createdAt}/${seed}/${generation}/${key}`)}`;
}

/** The one message that may answer it: of two answers one comes first (CB1). */
export function answerId(callback: string): string {
  return `callback:${callback}`;
}

/** What the same answer, sent again, is recognised by. */
export function answerDigest(host: Host, answer: CallbackAnswer): string {
  return stableDigest((text) => host.digest(text), answer);
}

export function newCallbackCall(pass: Pass, key: string, spec: SignalSpec): CallbackCall {
  const { ports, seed, generation, row } = pass;
  return new CallbackCall(key, callbackId(ports.host, seed, generation, key, row.createdAt), spec);
}

/** What the body gets. The token is made when it is read: most replays never need it. */
export function callbackOf<T>(pass: Pass, call: CallbackCall, answer: Promise<unknown>): Callback<T> {
  return {
    get id() {
      return call.id;
    },
    get token() {
      return tokenFor(pass, call);
    },
    value: () => answer as Promise<T>,
  };
}

function tokenFor({ id: run, ports }: Pass, call: CallbackCall): string {
  const { callbackSecrets } = ports;
  const proof = callbackSecrets?.proof(call.secret ?? callbackSecrets.current, call.id) ?? null;
  if (proof !== null) return tokenOf(call.id, proof);
  const { name } = call.spec;
  const message = `The token of callback "${name}" of run ${run} cannot be made here: ${NO_SECRET}`;
  throw new PawlError("secret_missing", message, { fields: { run, callback: call.id, name } });
}

const NO_SECRET =
  "this process does not have the secret for it. Give Pawl.open the `secret` that all processes of this store have, or set PAWL_SECRET for the command line; one that was replaced has to follow it in the list until its callbacks are answered.";

/** Opens the address: it is there, durably, before anybody outside can be told of it. */
export function recordCallback(pass: Pass, call: CallbackCall, at: number): void {
  const { callbackSecrets } = pass.ports;
  if (callbackSecrets === null) return pass.park(withoutSecret(pass.id, call.spec.name));
  const { id, key } = call;
  const { timeoutMs } = call.spec;
  const due = timeoutMs === null ? null : Math.ceil(at + timeoutMs);
  const opened: CallbackOpened = { id, secret: callbackSecrets.current, due };
  adoptCallback(call, opened);
  pass.draft.append(at, call.type, key, opened);
  pass.draft.wait(callbackWait(key, call.spec.name, opened));
  pass.draft.key({ space: CALLBACK_SPACE, key: id, digest: key });
}

/** Nothing is lost: the run goes on as soon as a process with a secret has it. */
function withoutSecret(run: string, name: string): Parked {
  const message =
    `Run ${run} cannot open callback "${name}": this process has no \`secret\` to make its token with. ` +
    'Give all processes of this store the same one, Pawl.open({ secret }) or PAWL_SECRET for the command line, and resolve the run with "retry".';
  return { reason: "secret_missing", message, choices: ["retry", "cancel"], detail: { callback: name } };
}

/** What is shown to people is the name; the id says which one it is. */
export function callbackWait(key: string, name: string, { id, due }: CallbackOpened): WaitChange {
  return {
    open: { key: `callback:${key}`, kind: "callback", name: id, due, detail: JSON.stringify({ name }) },
  };
}

export function adoptCallback(call: CallbackCall, { id, secret, due }: CallbackOpened): void {
  call.id = id;
  call.secret = secret;
  call.due = due;
}

/** An answer has come, or its time is over: what is written, and what the body is to see of it. */
export function recordCallbackWakeup(pass: Pass, wakeup: CallbackWakeup): Recorded | null {
  if (wakeup.kind === "unanswered") {
    // An answer that is on its way may yet be there first (CB3).
    pass.draft.ifWake(pass.mailbox.wake);
    return end(pass, wakeup.call, encodeRecord({ id: wakeup.call.id, status: "expired" }, "callback"));
  }
  const { call, row } = wakeup;
  const mail = readMail(pass.ports.codec, pass.id, row);
  if (mail.error !== undefined) {
    pass.park(mail.error);
    return null;
  }
  pass.mailbox.consume(row, pass.draft);
  return end(pass, call, endedText(pass, call, mail.value as CallbackAnswer));
}

function end(pass: Pass, { key }: CallbackCall, given: string): Recorded {
  const text = recordedText(pass, "callback.ended", key, given);
  pass.draft.appendText(pass.ports.clock.now(), "callback.ended", key, text);
  pass.draft.wait({ close: `callback:${key}` });
  return { type: "callback.ended", key, payload: decodePayload(text) };
}

/** A value that does not fit the schema is recorded as what it is: an answer that came, and an error (P7). */
function endedText({ ports }: Pass, { id, spec }: CallbackCall, answer: CallbackAnswer): string {
  const by = { id, digest: answerDigest(ports.host, answer) };
  if (answer.status === "failed") return encodeRecord({ ...by, ...answer }, `callback "${spec.name}"`);
  const { status } = answer;
  try {
    const value = validateNow(spec.schema, answer.value, `The answer to callback "${spec.name}"`);
    return encodeRecord({ ...by, status, value } satisfies CallbackEnded, `callback "${spec.name}"`);
  } catch (error) {
    return encodeFailure({ ...by, status, value: null, error });
  }
}

/** Hands a recorded outcome to the body. */
export function settleCallback(run: string, call: CallbackCall, ended: CallbackEnded): void {
  const { name, fallback } = call.spec;
  const fields = { run, callback: ended.id, name };
  switch (ended.status) {
    case "answered":
      if (ended.error === undefined) return call.resolve(ended.value);
      return rejectCall(call, ended.error);
    case "failed": {
      const { reason, detail } = ended;
      const message = `Callback "${name}" of run ${run} was answered with a failure: ${reason}${/[.!?]$/.test(reason) ? "" : "."} Catch this error to do something else.`;
      const more = { reason, ...(detail === undefined ? {} : { detail }) };
      return rejectCall(call, new PawlError("callback_failed", message, { fields: { ...fields, ...more } }));
    }
    case "expired": {
      if (fallback !== null) return call.resolve(fallback.value);
      const message = `Nobody answered callback "${name}" of run ${run} in time. Give ctx.callback a \`default\`, a longer \`timeout\`, or catch this error.`;
      return rejectCall(call, new PawlError("wait_timeout", message, { fields }));
    }
  }
}
