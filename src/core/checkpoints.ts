// Checkpoints
// What a step saves while it works, so that its next attempt can go on from there and not from the beginning.
//
//   CP1. A checkpoint is a mark of its step. It joins the open commit while its attempt is under way, and never after the end of the attempt,
//        the step's outcome, a cancel or the end of the run (A2, P12).
//   CP2. `save` resolves when the commit that holds it is durable (P13). A pass that is lost cannot tell any more: what is pending rejects.
//   CP3. An attempt is given what earlier ones have saved, never its own, decoded for it alone.
//   CP4. It is progress as an outcome is (P28). The commit itself sets the count of deaths back, so that no store has to know the type.
import { PawlError } from "../base/errors.ts";
import { type StepCall, TransactionCall } from "./call.ts";
import { decodePayload, encodePayload, encodeRecord } from "./draft.ts";
import { type Checkpoint, type Entry, isStepSuccess, type StepFailed } from "./journal.ts";
import type { Pass } from "./pass.ts";

/** The newest checkpoint of a step: as it was written here, or as the journal gave it. */
export type Saved = { readonly text: string } | { readonly payload: Checkpoint };

/** A copy of what was saved that nobody else has (CP3). */
export function savedValue(saved: Saved): unknown {
  const text = "text" in saved ? saved.text : encodeRecord(saved.payload, "checkpoint");
  return (decodePayload(text) as Checkpoint).value;
}

type Reject = (error: PawlError) => void;

export class Checkpoints {
  readonly #pass: Pass;
  readonly #pending = new Map<Reject, StepCall>();

  constructor(pass: Pass) {
    this.#pass = pass;
  }

  /** Writes down what an attempt has come to. */
  save(call: StepCall, attempt: number, value: unknown): Promise<void> {
    return new Promise((resolve, reject) => {
      const { draft, ports, body, isClosed, id } = this.#pass;
      if (isClosed || body.isOver || !call.open) throw attemptOver(id, call, attempt);
      const given = encodePayload({ attempt, value } satisfies Checkpoint, `checkpoint of step "${call.key}"`);
      const { redactor } = this.#pass;
      const text = redactor === null ? given : redactor.entry("checkpoint", call.key, given);
      draft.appendText(ports.clock.now(), "checkpoint", call.key, text);
      call.saved = { text };
      this.#countProgress();
      this.#pending.set(reject, call);
      draft.onDurable(() => {
        this.#pending.delete(reject);
        resolve();
      });
      ports.dirty(this.#pass);
    });
  }

  /** Where an outcome has joined the journal in this pass, stores know without being told. */
  #countProgress(): void {
    const { draft, hasProgressed } = this.#pass;
    if (!hasProgressed) draft.row({ claims: 0 });
    this.#pass.hasProgressed = true;
  }

  /** The run is lost to this process. What was durable by then has been told before (CP2). */
  abandon(reason: () => unknown): void {
    if (this.#pending.size === 0) return;
    const cause = reason();
    for (const [reject, { key }] of this.#pending) reject(lost(this.#pass.id, key, cause));
    this.#pending.clear();
  }
}

/** A transaction is there whole or not at all, so it has nothing to go on from; and its run writes nothing else before it is decided (TX2). */
export function assertSaves(run: string, call: StepCall): void {
  if (!(call instanceof TransactionCall)) return;
  const message = `save() in transaction "${call.key}" of run ${run}: a transaction is there whole or not at all, so it has no checkpoints. Save in a step before it.`;
  throw new PawlError("invalid_argument", message, { fields: { run, step: call.key, field: "save" } });
}

export function attemptOver(run: string, { key }: StepCall, attempt: number, cause?: unknown): PawlError {
  return new PawlError(
    "attempt_over",
    `Attempt ${attempt} of step "${key}" of run ${run} is over: what it saves is not recorded. ` +
      "Await save() before the function returns, and stop when its `signal` is aborted.",
    { fields: { run, step: key, attempt }, cause },
  );
}

function lost(run: string, step: string, cause: unknown): PawlError {
  const message = `A checkpoint of step "${step}" of run ${run} may or may not be recorded: this process lost the run before the store had answered. The next attempt finds out.`;
  return new PawlError("unknown_outcome", message, { fields: { run, step }, cause });
}

/** A generation's entries without the checkpoints that nobody asks for any more: newer ones are there, or the step's outcome. */
export function withoutOldCheckpoints(entries: readonly Entry[]): readonly Entry[] {
  if (!entries.some(({ type }) => type === "checkpoint")) return entries;
  const known = new Set<string | null>();
  const isNeeded = ({ type, key, payload }: Entry) => {
    const isCheckpoint = type === "checkpoint";
    const isNew = !known.has(key);
    if (isCheckpoint || isStepSuccess(type) || (type === "step.failed" && (payload as StepFailed).retryAt === null))
      known.add(key);
    return !isCheckpoint || isNew;
  };
  return entries.toReversed().filter(isNeeded).reverse();
}
