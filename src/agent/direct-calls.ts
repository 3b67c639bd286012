// Calls without a journal
// Everything is done here and now: for a plain process with a directory, and for an agent that is one step. What is kept of it is the session.
import { type Clock, systemClock } from "../base/clock.ts";
import { toMs } from "../base/duration.ts";
import { messageOf, PawlError } from "../base/errors.ts";
import { readableJson } from "../base/storable.ts";
import type { Amounts } from "../core/budget.ts";
import type { Log, StepInfo } from "../core/context.ts";
import { STEP_TIMEOUTS_MS } from "../core/limits.ts";
import {
  type Duration,
  mayHaveHappened,
  type Retry,
  type RetryPolicy,
  retryDelayMs,
  retryPolicy,
} from "../core/retry.ts";
import { secretFor } from "../core/secret-source.ts";
import { type EventBus, handlerFailed } from "./bus.ts";
import type { Calls, ToolCall } from "./calls.ts";
import type { Session } from "./session.ts";
import { isUnsafeTool, type Tool, type ToolRecord } from "./tool.ts";
import { failure, recordOf } from "./tool-call.ts";

export interface DirectCallsOptions {
  /** What the keys of calls begin with: the same after a restart. */
  readonly execution: string;
  readonly bus?: EventBus;
  /** Ends all calls. */
  readonly signal?: AbortSignal;
  readonly log?: Log;
  /** Saves the session. Default: it is kept nowhere. */
  readonly checkpoint?: (session: Session) => Promise<void>;
  /** Told after each call, with all that has been spent here so far. */
  readonly spent?: (total: Amounts) => void;
  readonly heartbeat?: () => void;
  /** Hears what model calls stream. Default: nobody. */
  readonly emit?: (chunk: unknown) => void;
  /** Of model calls. Default: as of a step. */
  readonly retry?: Retry;
  /** Of one attempt of a model call. Default 90 s. */
  readonly timeout?: Duration;
  /** Time, and time limits. Default: the system's. */
  readonly clock?: Clock;
  readonly uuid?: () => string;
  readonly random?: () => number;
}

/** Calls that are made straight away, with retries and time limits. */
export function directCalls(options: DirectCallsOptions): Calls {
  const made = new DirectCalls(options);
  return {
    asksPeople: false,
    model: ({ round }, run) => {
      const timeoutMs = options.timeout === undefined ? STEP_TIMEOUTS_MS.model : toMs(options.timeout, "timeout");
      return made.attempt(`model.${round}`, run, retryPolicy(options.retry), timeoutMs);
    },
    tool: async (call, tool, run) => {
      const timeoutMs = tool.timeout === undefined ? STEP_TIMEOUTS_MS.api : toMs(tool.timeout, "timeout");
      const retry = retryPolicy(isUnsafeTool(tool) ? false : tool.retry);
      try {
        return await made.attempt(call.key, (info) => lookedFor(call, tool, info, run), retry, timeoutMs);
      } catch (error) {
        options.signal?.throwIfAborted();
        // To be told of a failure, a model would try again.
        if (isUnsafeTool(tool) && mayHaveHappened(error)) throw unknownOutcome(call, error);
        return failure(`Tool "${tool.name}" failed: ${messageOf(error)}`);
      }
    },
    checkpoint: async (session) => options.checkpoint?.(session),
    publish: async (event) => {
      const { failures = [] } = (await options.bus?.publish(event)) ?? {};
      for (const { type, message } of failures) options.log?.warn(handlerFailed(type, message));
    },
    now: () => made.now(),
    uuid: options.uuid ?? (() => globalThis.crypto.randomUUID()),
    note: (text) => options.log?.info(text),
  };
}

/** What was tried before may have happened: where a tool can find out, it is looked for first. */
async function lookedFor(
  { args }: ToolCall,
  tool: Tool,
  info: StepInfo,
  run: (info: StepInfo) => Promise<ToolRecord>,
): Promise<ToolRecord> {
  const found = info.attempt === 1 ? undefined : await tool.detect?.(args, info);
  return found?.found === true ? recordOf(tool, found.value, null) : run(info);
}

function unknownOutcome({ name, args }: ToolCall, cause: unknown): PawlError {
  return new PawlError(
    "unknown_outcome",
    `Nobody can tell whether ${name}(${readableJson(args)}) has happened: ${messageOf(cause)}. Look outside. Give the tool a \`detect\`, or \`idempotent: true\` if a repetition does no harm.`,
    { fields: { tool: name, arguments: args }, cause },
  );
}

class DirectCalls {
  readonly #options: DirectCallsOptions;
  readonly #clock: Clock;
  readonly #total: Record<string, number> = {};

  constructor(options: DirectCallsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  now(): number {
    return this.#clock.now();
  }

  async attempt<T>(
    key: string,
    run: (info: StepInfo) => Promise<T>,
    policy: RetryPolicy,
    timeoutMs: number,
  ): Promise<T> {
    const memory: { saved: unknown } = { saved: undefined };
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(key, attempt, run, timeoutMs, memory);
      } catch (error) {
        this.#options.signal?.throwIfAborted();
        const { random = Math.random } = this.#options;
        const delayMs = retryDelayMs(policy, attempt, error, { random, now: () => this.now() });
        if (delayMs === null) throw error;
        await this.#sleep(delayMs);
      } finally {
        this.#options.heartbeat?.();
      }
    }
  }

  async #once<T>(
    key: string,
    attempt: number,
    run: (info: StepInfo) => Promise<T>,
    timeoutMs: number,
    memory: { saved: unknown },
  ): Promise<T> {
    const { signal: outer = NEVER, emit = unheard, execution } = this.#options;
    outer.throwIfAborted();
    const limit = new TimeLimit(this.#clock, key, timeoutMs, outer);
    let said: Amounts = {};
    const info: StepInfo = {
      signal: limit.signal,
      key: `${execution}:${key}`,
      attempt,
      heartbeat: () => {
        limit.restart();
        this.#options.heartbeat?.();
      },
      spent: (amounts) => {
        said = { ...said, ...amounts };
      },
      // For the next attempt in this process: nothing here outlives it but the session.
      save: async (value) => {
        memory.saved = value;
      },
      saved: memory.saved,
      emit,
      secret: (secret) => secretFor(null, { run: execution ?? "of an agent", call: { key } }, secret),
    };
    const rest = this.#pulse();
    try {
      return await limit.race(run(info));
    } finally {
      rest();
      limit.clear();
      this.#add(said);
    }
  }

  /** A call has its own time limit: whoever watches all of them is told that it is alive. */
  #pulse(): () => void {
    const { heartbeat } = this.#options;
    if (heartbeat === undefined) return () => {};
    let forget = () => {};
    const beat = () => {
      heartbeat();
      forget = this.#clock.after(PULSE_MS, beat);
    };
    forget = this.#clock.after(PULSE_MS, beat);
    return () => forget();
  }

  #sleep(ms: number): Promise<void> {
    const { signal = NEVER } = this.#options;
    return new Promise((resolve, reject) => {
      const forget = this.#clock.after(ms, () => {
        signal.removeEventListener("abort", stop);
        resolve();
      });
      const stop = () => {
        forget();
        reject(signal.reason);
      };
      signal.addEventListener("abort", stop, { once: true });
    });
  }

  #add(amounts: Amounts): void {
    for (const [unit, amount] of Object.entries(amounts)) this.#total[unit] = (this.#total[unit] ?? 0) + amount;
    if (Object.keys(amounts).length > 0) this.#options.spent?.({ ...this.#total });
  }
}

const PULSE_MS = 15_000;
const unheard = (): void => {};
const NEVER: AbortSignal = new AbortController().signal;

/** Aborts what takes too long, counted from the last sign of life. */
class TimeLimit {
  readonly #controller = new AbortController();
  readonly #clock: Clock;
  readonly #key: string;
  readonly #ms: number;
  readonly signal: AbortSignal;
  #forget: () => void;

  constructor(clock: Clock, key: string, ms: number, outer: AbortSignal) {
    this.#clock = clock;
    this.#key = key;
    this.#ms = ms;
    this.signal = AbortSignal.any([outer, this.#controller.signal]);
    this.#forget = this.#start();
  }

  restart(): void {
    this.#forget();
    this.#forget = this.#start();
  }

  clear(): void {
    this.#forget();
  }

  race<T>(work: Promise<T>): Promise<T> {
    const { signal } = this;
    return new Promise((resolve, reject) => {
      const stop = () => reject(signal.reason);
      signal.addEventListener("abort", stop, { once: true });
      work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
    });
  }

  #start(): () => void {
    return this.#clock.after(this.#ms, () => this.#controller.abort(tooLong(this.#key, this.#ms)));
  }
}

function tooLong(call: string, timeoutMs: number): PawlError {
  return new PawlError(
    "step_timeout",
    `Call "${call}" has taken longer than ${timeoutMs} ms. Give it a longer \`timeout\`, or let it call info.heartbeat().`,
    { fields: { call, timeoutMs } },
  );
}
