// Recovery
// What becomes of steps that were started and whose outcome nobody recorded: a crash hid whether they happened.
import { messageOf, PawlError } from "../base/errors.ts";
import type { StepCall } from "./call.ts";
import { describeCall } from "./divergence.ts";
import { decodePayload, encodeRecord } from "./draft.ts";
import type { EffectUnknown, Resolved, StepFailed } from "./journal.ts";
import type { Pass } from "./pass.ts";
import { BUDGET_DECISION, recoverRefused } from "./spending.ts";
import { isRefused } from "./spending-state.ts";
import type { Outcome } from "./steps.ts";
import type { InboxRow } from "./store.ts";
import { encodeFailure, recordable } from "./values.ts";
import { readMail } from "./wakeup-delivery.ts";

export const UNKNOWN_OUTCOME_CHOICES = ["rerun", "complete", "fail", "cancel"] as const;
/** What a person may say about an outside action; the last two stop the run. */
export const UNKNOWN_EFFECT_CHOICES = ["happened", "did-not-happen", "compensate", "abort"] as const;

/** Reruns, asks or fails each interrupted step by its `recovery`. One that asks parks the whole run before anything else starts. */
export function recoverSteps(pass: Pass, calls: readonly StepCall[]): void {
  // A cancel has its turn next, or that the run is undone: nobody needs to know any more, unless to undo it.
  if (pass.isStopping || pass.body.isOver) return;
  const decided = new Map<StepCall, Decision>();
  const refused = calls.filter(isRefused);
  const interrupted = refused.length === 0 ? calls : calls.filter((call) => !isRefused(call));
  for (const call of interrupted) {
    if (recoveryIn(pass, call) !== "ask") continue;
    const decision = decisionFor(pass, [call.key, ""]);
    if (decision === undefined) return ask(pass, call, call.doubt);
    decided.set(call, decision);
  }
  for (const call of interrupted) {
    const decision = decided.get(call);
    if (decision !== undefined) decide(pass, call, decision);
    else if (recoveryIn(pass, call) === "fail" || recoveryIn(pass, call) === "compensate")
      pass.steps.settle(interruptedFailure(pass, call));
    else pass.steps.startAgain(call, { rerun: true });
  }
  if (refused.length === 0) return;
  const found = decisionFor(pass, [BUDGET_DECISION]);
  if (found !== undefined) pass.resolved(found.row, found.decision);
  recoverRefused(pass, refused, found?.decision ?? null);
}

/** What is not done at all can be left undone again. */
function recoveryIn({ dry }: Pass, call: StepCall): StepCall["policy"]["recovery"] {
  return dry !== null && !dry.runs(call) ? "rerun" : call.policy.recovery;
}

interface Decision {
  readonly row: InboxRow;
  readonly decision: Resolved;
}

/** What a person has decided about a step, by one of these names. One that cannot be read is used up: the person is asked again. */
function decisionFor(pass: Pass, names: readonly string[]): Decision | undefined {
  for (const row of pass.mailbox.rows) {
    if (row.kind !== "decision" || !names.includes(row.name)) continue;
    const mail = readMail(pass.ports.codec, pass.id, row);
    if (mail.error === undefined) return { row, decision: mail.value as Resolved };
    pass.ports.log.error(mail.error.message, { run: pass.id });
    pass.mailbox.consume(row, pass.draft);
  }
  return undefined;
}

/** Parks the run over a step that a crash interrupted, or that failed so that nobody can tell what it did. */
function ask(pass: Pass, call: StepCall, failure: { readonly error: unknown } | null): void {
  const isEffect = call.startsAs === "effect.planned";
  if (isEffect) {
    const unknown: EffectUnknown = { attempt: call.attempt, ...(failure !== null && { error: failure.error }) };
    const text = failure === null ? encodeRecord(unknown, "effect") : encodeFailure({ ...unknown, ...failure });
    pass.draft.appendText(pass.ports.clock.now(), "effect.unknown", call.key, text);
  }
  const what =
    failure === null
      ? `was interrupted in ${describeCall(call)} (attempt ${call.attempt})`
      : `got an error in ${describeCall(call)} (${messageOf(failure.error)})`;
  const next = isEffect
    ? '"happened" with the result, "did-not-happen" to do it now, "compensate" to undo what the run has done, or "abort"'
    : '"rerun", "complete" with the result, "fail", or "cancel"';
  pass.park({
    reason: "unknown_outcome",
    message:
      `Run ${pass.id} ${what}: nobody can tell whether it took effect. ` +
      `Look outside (its idempotency key is ${call.idempotencyKey}), then resolve the run: ${next}.`,
    choices: isEffect ? UNKNOWN_EFFECT_CHOICES : UNKNOWN_OUTCOME_CHOICES,
    detail: { step: call.key, attempt: call.attempt, key: call.idempotencyKey },
  });
}

/** An action that may have happened in spite of its error is not repeated by itself: a person is asked, or it fails, by its `recovery`. */
export function askAboutFailure(pass: Pass, call: StepCall, error: unknown): void {
  // The body has failed without it: as what may have happened, it is undone with the rest.
  if (pass.body.isOver) return;
  if (call.policy.recovery === "ask") return ask(pass, call, { error });
  const message =
    `Effect "${call.key}" of run ${pass.id} failed so that it may have happened all the same, and nothing keeps it from happening twice: it is not tried again. ` +
    "Give it a `detect`, or `idempotent: true` if the outside recognises its key. The error is the cause.";
  const fields = { run: pass.id, effect: call.key, attempt: call.attempt };
  pass.steps.settle(finalFailure(call, new PawlError("unsafe_retry", message, { fields, cause: recordable(error) })));
}

function decide(pass: Pass, call: StepCall, { row, decision }: Decision): void {
  pass.resolved(row, decision);
  if (decision.choice === "rerun" || decision.choice === "did-not-happen")
    return pass.steps.startAgain(call, { rerun: true });
  if (decision.choice === "fail") return pass.steps.settle(interruptedFailure(pass, call, decision.value));
  const text = encodeRecord(decision.value, "decision");
  pass.steps.settle({ call, type: call.endsAs, text, payload: decision.value });
}

function interruptedFailure(pass: Pass, call: StepCall, reason?: unknown): Outcome {
  const error = new PawlError(
    "step_interrupted",
    `Step "${call.key}" of run ${pass.id} was interrupted and ${reason === undefined ? `its recovery is "${call.policy.recovery}"` : `a person decided that it failed: ${String(reason)}`}. ` +
      "It may have taken effect: check outside before retrying the run.",
    { fields: { run: pass.id, step: call.key, attempt: call.attempt } },
  );
  return finalFailure(call, error);
}

/** The outcome of a step that will not be tried again. Errors, too, are delivered as replay would deliver them (P7). */
export function finalFailure(call: StepCall, error: unknown): Outcome {
  const text = encodeFailure({ attempt: call.attempt, error, retryAt: null } satisfies StepFailed);
  return { call, type: "step.failed", text, payload: decodePayload(text) };
}

/** The outcome of a step that failed; after retries it says so, with the last error as its cause (S4-30). */
export function stepFailure(run: string, call: StepCall, error: unknown, isExhausted: boolean): Outcome {
  if (!isExhausted) return finalFailure(call, error);
  const message = `Step "${call.key}" of run ${run} failed ${call.failures + 1} times; its ${call.policy.retry.max} retries are used up. The last error is the cause.`;
  return finalFailure(
    call,
    new PawlError("max_retries_exceeded", message, {
      fields: { run, step: call.key, attempts: call.attempt },
      cause: recordable(error),
    }),
  );
}
