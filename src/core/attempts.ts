// Attempts
// Runs the functions of a pass's steps, behind the barrier. It owns what is running now; what became of it goes back to the pass.
//
//   A1. A function starts only after its `step.started` is durable, and only while the lease surely runs (P37).
//   A2. An attempt speaks once: its first end counts, a late result after a timeout, a cancel or a drop is refused.
import { PawlError } from "../base/errors.ts";
import { seededRandom } from "../base/random.ts";
import type { StepCall } from "./call.ts";
import type { StepInfo } from "./context.ts";
import type { Frame } from "./host.ts";
import type { PassPorts } from "./pass-ports.ts";

export interface AttemptEvents {
  completed(call: StepCall, value: unknown): void;
  failed(call: StepCall, error: unknown): void;
  heartbeat(detail: unknown): void;
  /** Whether the run has ended, parked or left: then nothing begins any more (P12). */
  isClosed(): boolean;
}

interface Attempt {
  readonly call: StepCall;
  readonly number: number;
  controller: AbortController | null;
  reason: unknown;
  isOver: boolean;
  forgetTimer: () => void;
}

export class Attempts {
  readonly #ports: PassPorts;
  readonly #bodyFrame: Frame;
  readonly #events: AttemptEvents;
  readonly #running = new Set<Attempt>();

  constructor(ports: PassPorts, bodyFrame: Frame, events: AttemptEvents) {
    this.#ports = ports;
    this.#bodyFrame = bodyFrame;
    this.#events = events;
  }

  get names(): string[] {
    return [...this.#running].map((attempt) => attempt.call.key);
  }

  start(call: StepCall): void {
    if (!call.open || this.#events.isClosed()) return;
    if (!this.#ports.mayStart()) return this.#ports.whenSafe(() => this.start(call));
    const attempt: Attempt = {
      call,
      number: call.attempt,
      controller: null,
      reason: undefined,
      isOver: false,
      forgetTimer: () => {},
    };
    this.#running.add(attempt);
    this.#arm(attempt);
    this.#run(attempt);
  }

  /** Aborts everything that runs and forgets it: outcomes that come later are refused. */
  abortAll(reason: unknown): void {
    for (const attempt of [...this.#running]) {
      this.#finish(attempt);
      abort(attempt, reason);
    }
  }

  #run(attempt: Attempt): void {
    const { call } = attempt;
    try {
      const result = this.#ports.host.enter(this.#frame(attempt), () => call.fn(this.#info(attempt)));
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
    if (this.#finish(attempt)) this.#events.completed(attempt.call, value);
  }

  #failed(attempt: Attempt, error: unknown): void {
    if (this.#finish(attempt)) this.#events.failed(attempt.call, error);
  }

  /** True for the first end of an attempt (A2). */
  #finish(attempt: Attempt): boolean {
    if (attempt.isOver) return false;
    attempt.isOver = true;
    attempt.forgetTimer();
    this.#running.delete(attempt);
    return true;
  }

  #arm(attempt: Attempt): void {
    const { timeoutMs } = attempt.call;
    if (timeoutMs === Number.POSITIVE_INFINITY) return;
    attempt.forgetTimer = this.#ports.clock.after(timeoutMs, () => this.#timedOut(attempt));
  }

  #timedOut(attempt: Attempt): void {
    const error = timeoutError(this.#bodyFrame.run, attempt);
    if (!this.#finish(attempt)) return;
    abort(attempt, error);
    this.#events.failed(attempt.call, error);
  }

  #info(attempt: Attempt): StepInfo {
    const heartbeat = (detail?: unknown) => {
      if (attempt.isOver) return;
      attempt.forgetTimer();
      this.#arm(attempt);
      if (detail !== undefined) this.#events.heartbeat(detail);
    };
    return {
      // Made on demand: most steps never look at it, and an AbortController is dear.
      get signal() {
        attempt.controller ??= new AbortController();
        if (attempt.reason !== undefined) attempt.controller.abort(attempt.reason);
        return attempt.controller.signal;
      },
      key: attempt.call.idempotencyKey,
      attempt: attempt.number,
      heartbeat,
    };
  }

  #frame(attempt: Attempt): Frame {
    const { run, pass, scope } = this.#bodyFrame;
    const { idempotencyKey, key } = attempt.call;
    let stream: ReturnType<typeof seededRandom> | null = null;
    const chance = () => {
      stream ??= seededRandom(`${idempotencyKey}@${attempt.number}`);
      return stream;
    };
    const step = { key, random: () => chance().next(), uuid: () => chance().uuid() };
    return { where: "step", run, pass, scope, guard: "off", attempt: step };
  }
}

function abort(attempt: Attempt, reason: unknown): void {
  attempt.reason = reason;
  attempt.controller?.abort(reason);
}

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

function timeoutError(run: string, attempt: Attempt): PawlError {
  const { key, timeoutMs } = attempt.call;
  const seconds = timeoutMs / 1000;
  return new PawlError(
    "step_timeout",
    `Step "${key}" of run ${run} gave no result and no heartbeat for ${seconds} s (attempt ${attempt.number}). ` +
      `If it needs longer, set its \`timeout\` option or call heartbeat() while it works.`,
    { fields: { run, step: key, seconds, attempt: attempt.number } },
  );
}
