// Compensation
// Undoes what a run has done outside, once its body has failed or was stopped.
//
//   CO1. To be undone is what was done and what nobody can tell of, the last first. What failed for sure, in all of its attempts, is not.
//        The error that the body failed with may say that nothing is, or only one action, or that one and the later ones.
//   CO2. It begins with an entry of its own, after which nothing of the body counts: replay begins it there, whatever the body does meanwhile.
//   CO3. One undo after the other, each a step of its own. One that fails for good does not keep the others from being done; it is listed at the end.
//   CO4. Neither a cancel nor the deadline stops it.
import { messageWithCause, PawlError, readProperty } from "../base/errors.ts";
import type { StepPolicy } from "./call.ts";
import { decodePayload } from "./draft.ts";
import { type BodyResult, cancelChildren } from "./endings.ts";
import type { Cancelling, Compensating, Entry, StepFailed } from "./journal.ts";
import { LIMITS } from "./limits.ts";
import type { Pass } from "./pass.ts";
import { settleOpen } from "./spending.ts";
import { transition } from "./transition.ts";
import { EarlierAttempts, isUndoable, UNDO_SUFFIX, type UndoableCall, UndoCall } from "./undoable-call.ts";
import { encodeFailure } from "./values.ts";

interface Left {
  readonly effect: string;
  readonly error: unknown;
}

/** What could not be undone, as the error of the run lists it. */
export interface Remaining {
  readonly effect: string;
  /** Why. */
  readonly error: string;
}

export class Compensation {
  readonly #pass: Pass;
  readonly #calls: UndoableCall[] = [];
  readonly #left: Left[] = [];
  isUnderWay = false;

  constructor(pass: Pass) {
    this.#pass = pass;
  }

  /** Keeps a call of the body in mind, in order of issue. */
  add(call: UndoableCall): void {
    this.#calls.push(call);
  }

  /** Whether a body that ended so, or was stopped so, leaves something to be undone. */
  isDue(result: BodyResult, cancelling: Cancelling | null): boolean {
    if (cancelling === null && (result.ok || isExempt(result.error))) return false;
    if (cancelling?.cause === "cancel" && cancelling.compensate !== true) return false;
    return this.#toUndo(result.ok ? null : result.error, cancelling).length > 0;
  }

  /** Who stops a run from outside means all of it. */
  #toUndo(error: unknown, cancelling: Cancelling | null): UndoableCall[] {
    const meant = cancelling === null ? meantBy(error, this.#calls, ({ key }) => key) : this.#calls;
    return meant.filter((call) => call.isToUndo);
  }

  /** Undoes one after the other; `over` is told how the run ends. */
  async begin({ error }: Compensating, over: (result: BodyResult) => void): Promise<void> {
    const pass = this.#pass;
    this.isUnderWay = true;
    pass.steps.forgetOutcomes();
    // Whoever has loaded the run has said that it runs.
    pass.draft.row({ state: transition(pass.id, pass.row.state, "compensating") });
    const undone = this.#toUndo(error, pass.cancelling).reverse();
    pass.calls.dropAll();
    for (const call of undone) {
      const policy = policyOf(call);
      const undo = new UndoCall(call, policy, (ended) => this.#await(ended, policy));
      try {
        pass.guarded(() => pass.place(undo, null));
        await undo.promise;
      } catch (failure) {
        this.#left.push({ effect: call.key, error: failure });
      }
    }
    const owner = pass.workflow.definition.owners.compensating;
    over({ ok: false, error: this.#left.length === 0 ? error : incomplete(pass.id, owner, this.#left, error) });
  }

  /** Gives what was stopped the time that a stopped body has, and leaves as much of its own to the undo. */
  #await(ended: Promise<unknown>, { timeoutMs }: StepPolicy): Promise<void> {
    return new Promise((resolve) => {
      const begin = () => this.#whenSafe(resolve);
      const forget = this.#pass.ports.clock.after(Math.min(LIMITS.cancelGraceMs, timeoutMs / 2), begin);
      void ended.then(() => {
        forget();
        begin();
      });
    });
  }

  /** The lease may have run out over the wait: the gate that every step begins at is passed again (P37). Whoever has lost the run never begins. */
  #whenSafe(begin: () => void): void {
    const { ports, isClosed } = this.#pass;
    if (isClosed) return;
    if (ports.mayStart()) begin();
    else ports.whenSafe(() => this.#whenSafe(begin));
  }

  /** Something could not be undone: the run ends as failed, whatever stopped it. */
  get isIncomplete(): boolean {
    return this.#left.length > 0;
  }
}

/** Money may hang on it: every error is tried again, as often as the action itself would have been. */
function policyOf({ policy }: UndoableCall): StepPolicy {
  return { timeoutMs: policy.timeoutMs, retry: { ...policy.retry, on: "any" }, recovery: "rerun" };
}

/** What an error may have in `fields.compensate`: `false`, or the one action that is to be undone, with those after it or without. */
export interface CompensationScope {
  readonly action: string;
  readonly later: boolean;
}

/** Whoever throws may say that what was done is to stay. */
function isExempt(error: unknown): boolean {
  return readProperty(readProperty(error, "fields"), "compensate") === false;
}

/** Of actions in the order of their issue, those that the error is about. */
function meantBy<T>(error: unknown, actions: readonly T[], keyOf: (action: T) => string): readonly T[] {
  const scope = readProperty(readProperty(error, "fields"), "compensate");
  const action = readProperty(scope, "action");
  const first = actions.findIndex((one) => keyOf(one) === action);
  if (first < 0) return actions;
  return actions.slice(first, readProperty(scope, "later") === true ? undefined : first + 1);
}

/** Writes that the body is over and its work is undone; what it had left pending goes (P12). */
export function recordCompensating(pass: Pass, { ok, ...failed }: BodyResult): Compensating {
  const error = ok ? null : (failed as { error: unknown }).error;
  const text = encodeFailure({ error } satisfies Compensating);
  const { draft, ports, id } = pass;
  settleOpen(pass);
  draft.appendText(ports.clock.now(), "run.compensating", null, text);
  draft.wait({ closeAll: true });
  cancelChildren(pass, { reason: `Its parent ${id} is undoing what it has done.`, compensate: true });
  const ended = new PawlError("run_ended", `Run ${id} has stopped, and undoes what it has done.`, {
    fields: { run: id },
  });
  draft.onDurable(() => pass.steps.abortAll(() => ended));
  return decodePayload(text) as Compensating;
}

/** What stays of a run that is to be undone and whose body cannot do that, and why; `null` if there is nothing. */
export function leftUndone(
  run: string,
  owner: string | null,
  entries: readonly Entry[],
  error: string,
  cause: unknown,
): PawlError | null {
  const left = new Map<string, Left & { readonly earlier: EarlierAttempts }>();
  const planned: string[] = [];
  let stopped: unknown = null;
  for (const entry of entries) {
    const { type, key, payload } = entry;
    // What an earlier generation has done stays.
    if (type === "run.continued") left.clear();
    if (type === "run.compensating") stopped = (payload as Compensating).error;
    if (key === null) continue;
    if (isUndoable(entry)) {
      planned.push(key);
      left.set(key, { effect: key, error, earlier: new EarlierAttempts() });
    }
    left.get(key)?.earlier.take(type, payload);
    if (type === "effect.compensated") left.delete(key.slice(0, -UNDO_SUFFIX.length));
    const isFinal = type === "step.failed" && (payload as StepFailed).retryAt === null;
    if (isFinal && left.get(key)?.earlier.mayHaveHappened === false) left.delete(key);
  }
  const meant = new Set(meantBy(stopped, planned, (effect) => effect));
  const remaining = [...left.values()].filter(({ effect }) => meant.has(effect));
  return remaining.length === 0 ? null : incomplete(run, owner, remaining, cause);
}

function incomplete(run: string, owner: string | null, left: readonly Left[], cause: unknown): PawlError {
  const remaining = left.map(({ effect, error }): Remaining => ({ effect, error: messageWithCause(error) }));
  const list = remaining.map(({ effect, error }) => `"${effect}" (${error})`).join(", ");
  return new PawlError(
    "compensation_incomplete",
    `Run ${run} failed, and not everything that it had done could be undone. Still there: ${list}. Undo it by hand; \`pawl effects ${run}\` lists all of it.${owner === null ? "" : ` Its owner is ${owner}.`}`,
    { fields: { run, owner, remaining }, cause },
  );
}
