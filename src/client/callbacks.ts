// Callbacks, for whoever answers them
// An answer is a message with the one id of its callback, and the owner of the run records it. So the first of two counts, and whoever sends the
// same one again, as systems that retry do, is told that it has been taken.
import type { Codec } from "../base/envelope.ts";
import { PawlError } from "../base/errors.ts";
import { utf8Length } from "../base/utf8.ts";
import {
  type CallbackAnswer,
  type CallbackEnded,
  type CallbackOpened,
  type CallbackSecrets,
  isCallbackAnswer,
  readToken,
} from "../core/callback.ts";
import { answerDigest, answerId, CALLBACK_SPACE } from "../core/callbacks.ts";
import { encodePayload, encodeRecord } from "../core/draft.ts";
import type { Host } from "../core/host.ts";
import { LIMITS } from "../core/limits.ts";
import type { InboxRow, Store } from "../core/store.ts";
import { asKept, openEntry, openValue } from "../core/values.ts";

/** An answer that counts. */
export interface CallbackReceipt {
  /** The id of the callback. */
  readonly callback: string;
  readonly run: string;
  /** The key of the call: its name, with a count from the second use on. */
  readonly key: string;
  /** The same answer had been taken before: nothing has changed. */
  readonly repeated: boolean;
}

export interface CallbackFailure {
  /** What went wrong, for the workflow and for people. */
  readonly reason: string;
  /** More of it, for the workflow. */
  readonly detail?: unknown;
}

export interface CallbacksPorts {
  readonly store: Store;
  readonly codec: Codec;
  readonly host: Host;
  readonly secrets: CallbackSecrets | null;
  assertOpen(): void;
  /** A message has been sent. */
  sent(): void;
}

/** A callback as the journal, the waits and the inbox of its run have it. */
interface Found {
  readonly id: string;
  readonly run: string;
  readonly key: string;
  readonly due: number | null;
  readonly isWaiting: boolean;
  readonly ended: CallbackEnded | null;
  /** The answer that has come and is not recorded yet. */
  readonly answer: { readonly digest: string; readonly at: number } | null;
}

export class Callbacks {
  readonly #ports: CallbacksPorts;

  constructor(ports: CallbacksPorts) {
    this.#ports = ports;
  }

  /** Answers the callback that this token was made for, once. The same answer again is told so and changes nothing. */
  async answer(token: string, value?: unknown): Promise<CallbackReceipt> {
    encodePayload(value, "answer");
    return this.#send(this.#idIn(token), { status: "answered", value });
  }

  /** Answers it with a failure: the workflow gets `callback_failed`. */
  async fail(token: string, failure: CallbackFailure): Promise<CallbackReceipt> {
    return this.#send(this.#idIn(token), failed(failure));
  }

  /** Closes a callback by its id, without its token: for people who look after the runs. Its token answers nothing any more. */
  async revoke(id: string, failure: CallbackFailure): Promise<CallbackReceipt> {
    return this.#send(id, failed(failure));
  }

  /** Whoever guesses learns nothing, not even which callbacks there are, and costs the store nothing. */
  #idIn(token: string): string {
    const { assertOpen, secrets } = this.#ports;
    assertOpen();
    if (secrets === null) {
      const message =
        "This process cannot tell a token of a callback from a guess: it has no `secret`. Give it the one of the workers, Pawl.open({ secret }) or PAWL_SECRET for the command line.";
      throw new PawlError("secret_missing", message);
    }
    const read = readToken(token);
    if (read !== null && secrets.isProof(read.id, read.proof)) return read.id;
    throw notFound();
  }

  async #send(id: string, given: CallbackAnswer): Promise<CallbackReceipt> {
    const { store, codec, host, assertOpen, sent } = this.#ports;
    assertOpen();
    const answer = asKept(codec, given, addressOf("", answerId(id)), "answer");
    const digest = answerDigest(host, answer);
    const before = await this.#find(id);
    const known = settled(before, digest);
    if (known !== null) return known;
    if (isLate(before, store.clock.now())) throw expired(before);
    const { run } = before;
    const messageId = answerId(id);
    const data = codec.seal(encodeRecord(answer, "answer"), addressOf(run, messageId));
    const delivery = await store.deliver({ to: run, id: messageId, kind: "callback", name: id, data });
    if (delivery !== "missing" && delivery !== "ended") sent();
    // What became of it is read afterwards: another may have come first, or its time may have been over by the store's clock.
    const found = await this.#find(id);
    const receipt = settled(found, digest);
    if (receipt === null) throw notWaiting(found);
    return { ...receipt, repeated: delivery !== "delivered" };
  }

  async #find(id: string): Promise<Found> {
    const { store, codec, host } = this.#ports;
    const holder = typeof id === "string" && id !== "" ? await store.key(CALLBACK_SPACE, id) : null;
    if (holder === null) throw notFound();
    const { run } = holder;
    // The inbox before the journal: an answer that is used in between is in the journal by then.
    const row = (await store.inbox(run)).find((one) => one.id === answerId(id));
    const waits = await store.waits({ run, kind: "callback", name: id });
    const entries = (await store.journal(run))
      .filter(({ type }) => type === "callback.opened" || type === "callback.ended")
      .map((entry) => openEntry(codec, run, entry));
    const opened = entries.find(
      ({ type, payload }) => type === "callback.opened" && (payload as CallbackOpened).id === id,
    );
    if (opened === undefined) throw notFound();
    const ended = entries.find(
      ({ type, payload }) => type === "callback.ended" && (payload as CallbackEnded).id === id,
    );
    const answer = row === undefined ? null : readAnswer(codec, run, row);
    return {
      id,
      run,
      key: opened.key ?? "",
      due: (opened.payload as CallbackOpened).due,
      isWaiting: waits.length > 0,
      ended: (ended?.payload ?? null) as CallbackEnded | null,
      answer: answer === null || row === undefined ? null : { digest: answerDigest(host, answer), at: row.at },
    };
  }
}

/** What is left to say where an answer has come, or none can come any more; `null` while it waits for one. */
function settled(found: Found, digest: string): CallbackReceipt | null {
  const { id, run, key, ended, answer, isWaiting } = found;
  if (ended?.status === "expired") throw expired(found);
  if (ended === null && answer !== null && isLate(found, answer.at)) throw expired(found);
  if (ended === null && !isWaiting) throw notWaiting(found);
  const given = ended?.digest ?? answer?.digest;
  if (given === undefined) return null;
  if (given !== digest) throw answered(found);
  return { callback: id, run, key, repeated: true };
}

function isLate({ due }: Found, at: number): boolean {
  return due !== null && at > due;
}

function readAnswer(codec: Codec, run: string, row: InboxRow): CallbackAnswer | null {
  try {
    const value = openValue(codec, row.data, addressOf(run, row.id));
    return isCallbackAnswer(value) ? value : null;
  } catch {
    return null;
  }
}

function addressOf(run: string, id: string) {
  return { run, seq: -1, field: `inbox:${id}` };
}

function failed(failure: CallbackFailure): CallbackAnswer {
  const { reason } = failure ?? {};
  if (typeof reason !== "string" || reason === "" || utf8Length(reason) > LIMITS.reasonBytes) {
    const message = `\`reason\` of the failure must be text of at most ${LIMITS.reasonBytes} bytes. Say what went wrong.`;
    throw new PawlError("invalid_argument", message, { fields: { field: "reason" } });
  }
  if (!("detail" in failure)) return { status: "failed", reason };
  encodePayload(failure.detail, "detail");
  return { status: "failed", reason, detail: failure.detail };
}

function notFound(): PawlError {
  const message =
    "There is no callback for this token in this store: it was made for another one, is damaged, or its run has been removed. `pawl why RUN` names the callbacks that a run waits for.";
  return new PawlError("callback_not_found", message, { fields: { reason: "unknown" } });
}

function answered({ id, run, key, ended }: Found): PawlError {
  const how = ended?.status === "failed" ? "closed with a failure" : "answered";
  const message = `Callback ${id} ("${key}" of run ${run}) has been ${how} before, with something else. The first answer counts; signal or cancel the run to change its course.`;
  return new PawlError("callback_answered", message, { fields: { run, callback: id, key, reason: "answered" } });
}

function expired({ id, run, key, due }: Found): PawlError {
  const until = due === null ? "" : ` was open until ${new Date(due).toISOString()}`;
  const message = `Callback ${id} ("${key}" of run ${run})${until}: it is too late to answer. \`pawl why ${run}\` tells what the run does now.`;
  return new PawlError("callback_expired", message, { fields: { run, callback: id, key, reason: "expired" } });
}

function notWaiting({ id, run, key }: Found): PawlError {
  const message = `Run ${run} no longer waits for callback ${id} ("${key}"): the answer was not taken. \`pawl why ${run}\` tells what became of it.`;
  return new PawlError("run_ended", message, { fields: { run, callback: id, key, reason: "ended" } });
}
