// Steps
// What becomes of a step's attempts: an outcome in line for its turn, or another attempt at a recorded time.
import { hasCode, PawlError } from "../base/errors.ts";
import { type AttemptEvents, Attempts } from "./attempts.ts";
import { tellBreaker, whyOpen } from "./breaker.ts";
import { type StepCall, TransactionCall } from "./call.ts";
import { Checkpoints } from "./checkpoints.ts";
import { decodePayload, encodePayload } from "./draft.ts";
import type { DryCalls } from "./dry.ts";
import type { StepFailed, StepStarted } from "./journal.ts";
import type { Pass } from "./pass.ts";
import { askAboutFailure, finalFailure, stepFailure } from "./recovery.ts";
import { RefusedCalls } from "./refused-calls.ts";
import { isGivenUp, isRetryable, retryDelayMs } from "./retry.ts";
import { takeRetry } from "./retry-budget.ts";
import { beginRefused, reserve, settleSpending } from "./spending.ts";
import { isRefused, sayNothingSpent } from "./spending-state.ts";
import { AttemptStream } from "./streams.ts";
import { type Committed, Transactions } from "./transactions.ts";
import { encodeFailure } from "./values.ts";

/** An outcome in hand, waiting for its turn. */
export interface Outcome {
  readonly call: StepCall;
  readonly type: StepCall["endsAs"] | "step.failed";
  readonly text: string;
  readonly payload: unknown;
}

export class Steps implements AttemptEvents {
  readonly #pass: Pass;
  readonly #attempts: Attempts;
  readonly #ready: Outcome[] = [];
  /** Made on demand: most runs have none. */
  #transactions: Transactions | null = null;
  #refusedCalls: RefusedCalls | null = null;
  #checkpoints: Checkpoints | null = null;
  /** The last turn brought a step's outcome. */
  hadTurn = false;

  constructor(pass: Pass) {
    this.#pass = pass;
    this.#attempts = new Attempts(pass.ports, pass.frame, this);
  }

  get running(): string[] {
    return this.#attempts.names;
  }

  /** Steps that wait behind the barrier, for their next attempt, or to be run again after a crash. */
  get notBegun(): string[] {
    const begun = new Set([...this.#attempts.names, ...this.#ready.map(({ call }) => call.key)]);
    const keys = this.#pass.calls.steps().map((call) => call.key);
    return keys.filter((key) => !begun.has(key));
  }

  get hasOutcome(): boolean {
    return this.#ready.length > 0 || this.#transactions?.hasCommitted === true;
  }

  /** Nothing runs, and no outcome waits for its turn. */
  get isQuiet(): boolean {
    return this.#ready.length === 0 && this.#attempts.isEmpty && this.#transactions?.isQuiet !== false;
  }

  /** Starts the function behind the barrier: once everything written so far is durable. A transaction needs none (TX1). */
  startBehindBarrier(call: StepCall): void {
    if (call instanceof TransactionCall && this.#pass.dry === null) return this.#transactionsOf().add(call);
    const reserved = call.spending?.reserved ?? null;
    this.#pass.draft.onDurable(() => {
      // What was reserved for it may have been refused since.
      if (call.spending === null || (call.spending.reserved === reserved && !isRefused(call))) this.#begin(call);
    });
  }

  #begin(call: StepCall): void {
    const { dry } = this.#pass;
    if (dry !== null && !dry.runs(call)) return this.#pass.guarded(() => this.#leaveUndone(call, dry));
    const refusal = call.policy.breaker === undefined ? null : whyOpen(this.#pass, call);
    if (refusal === null) {
      if (call.spending !== null) call.spending.mayHaveBegun = true;
      return this.#attempts.start(call);
    }
    sayNothingSpent(call);
    this.failed(call, refusal);
  }

  /** What a dry run does not do has its outcome at once (DR3). */
  #leaveUndone(call: StepCall, dry: DryCalls): void {
    if (!call.open || this.isClosed()) return;
    sayNothingSpent(call);
    this.settle(dry.outcomeOf(call));
  }

  /** A call that does not begin, since a budget has no room for it. */
  refused(call: StepCall): void {
    this.#refusedCalls ??= new RefusedCalls(this.#pass, (one) => beginRefused(this.#pass, one));
    this.#refusedCalls.add(call);
  }

  /** Something that was reserved is settled: there may be room for others. */
  hasGivenBack(): void {
    if (this.#refusedCalls !== null) this.#refusedCalls.mayTryAgain = true;
  }

  #transactionsOf(): Transactions {
    this.#transactions ??= new Transactions(this.#pass, {
      start: (call) => this.#attempts.start(call),
      failed: (call, error) => this.failed(call, error),
    });
    return this.#transactions;
  }

  /** Lets transactions begin, and write their outcomes, as far as they can. A run that a budget keeps from going on rests or is parked. */
  goOn(): void {
    this.#transactions?.goOn();
    this.#refusedCalls?.goOn();
  }

  /** An outcome that is in the journal already: its turn is the next (TX3). */
  takeCommitted(): Committed | null {
    return this.#transactions?.takeCommitted() ?? null;
  }

  /** Begins another attempt, behind a barrier of its own. A rerun follows a crash and uses up no retry (P28). */
  startAgain(call: StepCall, how: { readonly rerun?: true }): void {
    call.attempt++;
    call.retryAt = null;
    const spend = call.spending === null ? null : reserve(this.#pass, call);
    const mark: StepStarted = { attempt: call.attempt, ...how, ...(spend !== null && { spend }) };
    call.marked("step.started", mark);
    this.#pass.draft.append(this.#pass.ports.clock.now(), "step.started", call.key, mark, call);
    this.startBehindBarrier(call);
    this.#pass.ports.dirty(this.#pass);
  }

  /** A step that is recorded while nothing may begin: the next pass begins it. */
  putOff(call: StepCall): void {
    const { id, draft, ports } = this.#pass;
    const now = ports.clock.now();
    const message = `Step "${call.key}" of run ${id} was not begun: its process was about to stop.`;
    const error = new PawlError("step_interrupted", message, { fields: { run: id, step: call.key } });
    call.retryAt = now;
    const mark: StepFailed = { attempt: call.attempt, error, retryAt: now, isRetried: true, hasBegun: false };
    draft.appendText(now, "step.failed", call.key, encodeFailure(mark));
    draft.wait({ open: { key: `retry:${call.key}`, kind: "retry", name: call.name, due: now, detail: null } });
  }

  startDueRetries(): void {
    if (!this.#pass.calls.hasRetries) return;
    const now = this.#pass.ports.clock.now();
    for (const call of this.#pass.calls.steps()) {
      if (call.retryAt === null || call.retryAt > now) continue;
      if (isRefused(call)) {
        this.#refusedCalls?.tryAgain(call);
        continue;
      }
      this.#pass.draft.wait({ close: `retry:${call.key}` });
      this.startAgain(call, {});
    }
  }

  /** Puts an outcome in line for its turn. */
  settle(given: Outcome): void {
    if (this.#pass.isClosed || (this.#pass.cancelling !== null && !this.#pass.body.isCompensating)) return;
    const outcome = given.type === "step.failed" ? this.#redacted(given) : given;
    this.#ready.push(outcome);
    this.#pass.requestTurn();
  }

  /** The body gets the error that replay will give it. */
  #redacted(outcome: Outcome): Outcome {
    const { redactor } = this.#pass;
    if (redactor === null) return outcome;
    const text = redactor.entry(outcome.type, outcome.call.key, outcome.text);
    return { ...outcome, text, payload: decodePayload(text) };
  }

  /** Ends a call with this error, whatever its retries. */
  endWith(call: StepCall, error: unknown): void {
    this.settle(finalFailure(call, error));
  }

  /** The next outcome whose call is still open. */
  takeOutcome(): Outcome | undefined {
    for (;;) {
      const outcome = this.#ready.shift();
      if (outcome === undefined || outcome.call.open) return outcome;
    }
  }

  forgetOutcomes(): void {
    this.#ready.length = 0;
  }

  abortAll(reason: () => unknown): void {
    this.#attempts.abortAll(reason);
    this.#transactions?.abortAll();
    this.#checkpoints?.abandon(reason);
  }

  heartbeat(detail: unknown): void {
    this.#pass.progress(detail);
  }

  save(call: StepCall, attempt: number, value: unknown): Promise<void> {
    this.#checkpoints ??= new Checkpoints(this.#pass);
    return this.#checkpoints.save(call, attempt, value);
  }

  openStream(call: StepCall): AttemptStream {
    return new AttemptStream(this.#pass.id, call, this.#pass.ports, this.#pass.redactor);
  }

  isClosed(): boolean {
    return this.#pass.isClosed || this.#pass.isStopping;
  }

  completed(call: StepCall, value: unknown): void {
    if (this.#pass.isClosed || !call.open) return;
    const { redactor } = this.#pass;
    let text: string;
    try {
      text = encodePayload(value, `result of step "${call.key}"`);
      if (redactor !== null) text = redactor.value(text);
    } catch (error) {
      return this.failed(call, error);
    }
    if (call.policy.breaker !== undefined) tellBreaker(this.#pass, call, null);
    const payload = redactor === null && isPlain(value) ? value : decodePayload(text);
    if (call instanceof TransactionCall) return this.#transactions?.returned(call, { text, payload });
    this.settle({ call, type: call.endsAs, text, payload });
  }

  failed(call: StepCall, error: unknown): void {
    if (this.#pass.isClosed || !call.open) return;
    if (call instanceof TransactionCall && this.#transactions?.threw(call, error) === true) return;
    this.#pass.guarded(() => this.#failed(call, error));
  }

  #failed(call: StepCall, error: unknown): void {
    const { ports, draft } = this.#pass;
    const { name } = call;
    const { retry } = call.policy;
    if (call.policy.breaker !== undefined) tellBreaker(this.#pass, call, error);
    const delayMs = retryDelayMs(retry, call.failures + 1, error, {
      random: ports.random,
      now: () => ports.clock.now(),
    });
    // An attempt that a breaker kept from beginning did nothing.
    if (call.isUnsafe && !hasCode(error, "circuit_open") && (isRetryable(retry, error) || isGivenUp(error)))
      return askAboutFailure(this.#pass, call, error);
    if (delayMs === null) {
      const isExhausted = call.failures > 0 && isRetryable(retry, error);
      return this.settle(stepFailure(this.#pass.id, call, error, isExhausted));
    }
    const exhausted = this.#pass.workflow.definition.retryBudget === null ? null : takeRetry(this.#pass, call, error);
    if (exhausted !== null) return this.endWith(call, exhausted);
    if (call.spending !== null) settleSpending(this.#pass, call);
    const due = ports.clock.now() + Math.ceil(delayMs);
    call.failures++;
    call.retryAt = due;
    const mark: StepFailed = { attempt: call.attempt, error, retryAt: due };
    draft.appendText(ports.clock.now(), "step.failed", call.key, encodeFailure(mark));
    call.marked("step.failed", mark);
    draft.wait({ open: { key: `retry:${call.key}`, kind: "retry", name, due, detail: null } });
    ports.dirty(this.#pass);
    this.#pass.evaluate();
  }
}

/** Values that are the same before and after the codec need no second look. */
function isPlain(value: unknown): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  return Number.isSafeInteger(value) && !Object.is(value, -0);
}
