// Attempts
// Runs the functions of a pass's steps, behind the barrier. It owns what is running now; what became of it goes back to the pass.
//
//   A1. A function starts only after its `step.started` is durable, and only while the lease surely runs (P37).
//   A2. An attempt speaks once: its first end counts, a late result after a timeout, a cancel or a drop is refused.
import { PawlError } from "../base/errors.ts";
import { type SeededRandom, seededRandom } from "../base/random.ts";
import type { Secret } from "../base/secret.ts";
import type { Amounts } from "./budget.ts";
import type { StepCall } from "./call.ts";
import { assertSaves, attemptOver, type Saved, savedValue } from "./checkpoints.ts";
import type { StepInfo } from "./context.ts";
import type { Frame, StepFrame } from "./host.ts";
import type { KeyScope } from "./key-scope.ts";
import { LIMITS } from "./limits.ts";
import type { PassPorts } from "./pass-ports.ts";
import { secretFor } from "./secret-source.ts";
import { attemptSeed } from "./seeds.ts";
import { saySpent } from "./spending-state.ts";
import type { AttemptStream } from "./streams.ts";
import type { Armable } from "./timeouts.ts";

export interface AttemptEvents {
  completed(call: StepCall, value: unknown): void;
  failed(call: StepCall, error: unknown): void;
  heartbeat(detail: unknown): void;
  /** Writes a checkpoint; resolves when it is durable. */
  save(call: StepCall, attempt: number, value: unknown): Promise<void>;
  /** Where what an attempt emits goes. */
  openStream(call: StepCall): AttemptStream;
  /** Whether the run has ended, parked or left: then nothing begins any more (P12). */
  isClosed(): boolean;
}

export class Attempts {
  readonly #ports: PassPorts;
  readonly #bodyFrame: Frame;
  readonly #events: AttemptEvents;
  readonly #running: Attempt[] = [];
  /** Attempts whose function has ended, and whose chunks are not stored yet (SM2). Made on demand, as what follows. */
  #closing: Set<Attempt> | null = null;
  /** Attempts that were aborted when their time was up, and whose function goes on all the same. */
  #overdue: Set<Attempt> | null = null;
  /** Calls whose next attempt waits for the end of those, and how to forget when that would be too long. */
  #held: Map<StepCall, () => void> | null = null;

  constructor(ports: PassPorts, bodyFrame: Frame, events: AttemptEvents) {
    this.#ports = ports;
    this.#bodyFrame = bodyFrame;
    this.#events = events;
  }

  get names(): string[] {
    return [...this.#running, ...(this.#closing ?? [])].map((attempt) => attempt.call.key);
  }

  get isEmpty(): boolean {
    return this.#running.length === 0 && (this.#closing === null || this.#closing.size === 0);
  }

  start(call: StepCall, isPatient: boolean = call.looksFirst): void {
    if (!call.open || this.#events.isClosed()) return;
    if (!this.#ports.mayStart()) return this.#ports.whenSafe(() => this.start(call, isPatient));
    if (this.#overdue !== null) {
      if (isPatient && this.#overdueOf(call).length > 0) return this.#hold(call);
      this.#tellOfOverlap(call);
    }
    const attempt = new Attempt(this, this.#bodyFrame, call);
    this.#running.push(attempt);
    this.#run(attempt);
    if (!attempt.isOver) this.#ports.timeouts.add(attempt);
  }

  /**
   * Looked for while an earlier attempt is still at it, an action would not be found, and be done twice. It is waited for, as long as a stopped
   * body is; one that does not end even then is left alone.
   */
  #hold(call: StepCall): void {
    const forget = this.#ports.clock.after(LIMITS.cancelGraceMs, () => this.#release(call));
    this.#held ??= new Map();
    this.#held.set(call, forget);
  }

  #release(call: StepCall): void {
    const forget = this.#held?.get(call);
    if (forget === undefined) return;
    forget();
    this.#held?.delete(call);
    this.start(call, false);
  }

  /** Aborts everything that runs and forgets it: outcomes that come later are refused. */
  abortAll(reason: () => unknown): void {
    for (const forget of this.#held?.values() ?? []) forget();
    this.#held = null;
    for (const attempt of this.#closing ?? []) attempt.stream?.abandon();
    this.#closing = null;
    if (this.#running.length === 0) return;
    const error = reason();
    for (const attempt of [...this.#running]) {
      this.#finish(attempt);
      attempt.abort(error);
    }
  }

  heartbeat(attempt: Attempt, detail: unknown): void {
    if (attempt.isOver) return;
    this.arm(attempt);
    if (detail !== undefined) this.#events.heartbeat(detail);
  }

  /** A checkpoint says that the step is alive, and so does its end: how long the store takes is not the step's fault. */
  save(attempt: Attempt, value: unknown): Promise<void> {
    const { call, run } = attempt;
    assertSaves(run, call);
    if (!attempt.isOver) this.arm(attempt);
    const saved = attempt.isOver
      ? Promise.reject(attemptOver(run, call, attempt.attempt, attempt.reason))
      : this.#events.save(call, attempt.attempt, value);
    // Whoever does not wait for it may never look at it either.
    saved.then(() => this.heartbeat(attempt, undefined), forgetNothing);
    return saved;
  }

  /** Known from then on: what the attempt tells of it is redacted. */
  secret(attempt: Attempt, secret: string | Secret): Promise<string> {
    return secretFor(this.#ports.secrets, attempt, secret);
  }

  emit(attempt: Attempt, chunk: unknown): void {
    if (attempt.isOver) return;
    attempt.stream ??= this.#events.openStream(attempt.call);
    attempt.stream.emit(chunk);
  }

  #run(attempt: Attempt): void {
    try {
      const result = this.#ports.host.enter(attempt, runAttempt, attempt);
      if (isPromise(result)) {
        result.then(
          (value) => this.#completed(attempt, value),
          (error: unknown) => this.#failed(attempt, error),
        );
      } else this.#completed(attempt, result);
    } catch (error) {
      this.#failed(attempt, error);
    }
  }

  #completed(attempt: Attempt, value: unknown): void {
    if (!this.#finish(attempt)) this.#hasEnded(attempt);
    else if (attempt.stream === null) this.#events.completed(attempt.call, value);
    else this.#whenStored(attempt, attempt.stream, () => this.#events.completed(attempt.call, value));
  }

  #failed(attempt: Attempt, error: unknown): void {
    if (!this.#finish(attempt)) this.#hasEnded(attempt);
    else if (attempt.stream === null) this.#events.failed(attempt.call, error);
    else this.#whenStored(attempt, attempt.stream, () => this.#events.failed(attempt.call, error));
  }

  /** The outcome of an attempt that has emitted something waits for that to be stored (SM2). */
  #whenStored(attempt: Attempt, stream: AttemptStream, tell: () => void): void {
    this.#closing ??= new Set();
    this.#closing.add(attempt);
    stream.close(() => {
      if (this.#closing?.delete(attempt) === true) tell();
    });
  }

  #hasEnded(attempt: Attempt): void {
    if (this.#overdue?.delete(attempt) === true && this.#overdueOf(attempt.call).length === 0)
      this.#release(attempt.call);
  }

  #overdueOf(call: StepCall): number[] {
    return [...(this.#overdue ?? [])].filter((attempt) => attempt.call === call).map(({ attempt }) => attempt);
  }

  /** Two attempts at once are what timeouts cannot prevent: only the function can, by heeding its signal (B23). */
  #tellOfOverlap(call: StepCall): void {
    const earlier = this.#overdueOf(call);
    if (earlier.length === 0) return;
    const { run } = this.#bodyFrame;
    const message =
      `Step "${call.key}" of run ${run} begins attempt ${call.attempt} while attempt ${earlier.join(", ")} was aborted and still runs. ` +
      "Have its function stop when its `signal` is aborted.";
    this.#ports.log.warn(message, { run, step: call.key, attempt: call.attempt, earlier });
  }

  /** True for the first end of an attempt (A2). */
  #finish(attempt: Attempt): boolean {
    if (attempt.isOver) return false;
    attempt.isOver = true;
    attempt.forgetTimer();
    this.#forget(attempt);
    return true;
  }

  #forget(attempt: Attempt): void {
    const last = this.#running.pop();
    if (last !== undefined && last !== attempt) this.#running[this.#running.indexOf(attempt)] = last;
  }

  /** Counts the step's time from now. */
  arm(attempt: Attempt): void {
    attempt.forgetTimer();
    attempt.forgetTimer = this.#ports.clock.after(attempt.call.policy.timeoutMs, () => this.#timedOut(attempt));
  }

  #timedOut(attempt: Attempt): void {
    if (!this.#finish(attempt)) return;
    const error = timeoutError(attempt);
    this.#overdue ??= new Set();
    this.#overdue.add(attempt);
    attempt.abort(error);
    this.#events.failed(attempt.call, error);
  }
}

/**
 * One attempt: what its function is given, and the frame it runs in. Signal and heartbeat are made on demand: most steps use neither, and an
 * AbortController is dear.
 */
class Attempt implements Frame, StepFrame, StepInfo, Armable {
  readonly call: StepCall;
  readonly attempt: number;
  readonly #owner: Attempts;
  readonly #body: Frame;
  #chance: SeededRandom | null = null;
  #controller: AbortController | null = null;
  #before: Saved | null;
  #saved: unknown;
  /** What it was aborted with. */
  reason: unknown;
  isOver = false;
  /** Once it has emitted something. */
  stream: AttemptStream | null = null;
  forgetTimer: () => void = forgetNothing;

  constructor(owner: Attempts, body: Frame, call: StepCall) {
    this.#owner = owner;
    this.#body = body;
    this.call = call;
    this.attempt = call.attempt;
    this.#before = call.saved;
  }

  get where(): "step" {
    return "step";
  }

  get guard(): "off" {
    return "off";
  }

  get run(): string {
    return this.#body.run;
  }

  get pass(): object {
    return this.#body.pass;
  }

  get scope(): KeyScope {
    return this.#body.scope;
  }

  get step(): StepFrame {
    return this;
  }

  get key(): string {
    return this.call.idempotencyKey;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.reason !== undefined) this.#controller.abort(this.reason);
    return this.#controller.signal;
  }

  get heartbeat(): (detail?: unknown) => void {
    return (detail) => this.#owner.heartbeat(this, detail);
  }

  get spent(): (amounts: Amounts) => void {
    return (amounts) => {
      if (!this.isOver) saySpent(this.call, amounts);
    };
  }

  get save(): (value: unknown) => Promise<void> {
    return (value) => this.#owner.save(this, value);
  }

  /** Decoded once an attempt looks at it, and then its own (CP3). */
  get saved(): unknown {
    if (this.#before !== null) this.#saved = savedValue(this.#before);
    this.#before = null;
    return this.#saved;
  }

  get secret(): (secret: string | Secret) => Promise<string> {
    return (secret) => this.#owner.secret(this, secret);
  }

  get emit(): (chunk: unknown) => void {
    return (chunk) => this.#owner.emit(this, chunk);
  }

  arm(): void {
    this.#owner.arm(this);
  }

  abort(reason: unknown): void {
    this.stream?.abandon();
    this.reason = reason;
    this.#controller?.abort(reason);
  }

  /** A stream of (run, key, attempt) (P7). */
  random(): number {
    return this.#stream().next();
  }

  uuid(): string {
    return this.#stream().uuid();
  }

  #stream(): SeededRandom {
    this.#chance ??= seededRandom(attemptSeed(this.key, this.attempt));
    return this.#chance;
  }
}

function runAttempt(attempt: Attempt): unknown {
  return attempt.call.fn(attempt);
}

function forgetNothing(): void {}

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

function timeoutError({ run, attempt, call }: Attempt): PawlError {
  const seconds = call.policy.timeoutMs / 1000;
  return new PawlError(
    "step_timeout",
    `Step "${call.key}" of run ${run} gave no result and no heartbeat for ${seconds} s (attempt ${attempt}). ` +
      `If it needs longer, set its \`timeout\` option or call heartbeat() while it works.`,
    { fields: { run, step: call.key, seconds, attempt } },
  );
}
