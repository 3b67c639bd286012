// A loop over a prompt, without a store: what `DurableLoop` adds is that it survives its process.
import { type Clock, systemClock } from "../base/clock.ts";
import { type Duration, toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import { createIds, type Ids } from "../base/ids.ts";
import { consoleLog } from "../client/console-log.ts";
import type { Log } from "../core/context.ts";
import type { Retry } from "../core/retry.ts";
import type { Adapter, PromptResponse, SpendingLimits } from "./adapter.ts";
import type { SessionFacts } from "./agent.ts";
import { EventBus } from "./bus.ts";
import type { Calls } from "./calls.ts";
import { directCalls } from "./direct-calls.ts";
import { plan } from "./plan.ts";
import type { BoundPrompt } from "./prompt.ts";
import { Session } from "./session.ts";

export interface LoopOptions<I, O> {
  /** Evaluates the prompt: `modelAdapter(model)`, or one of your own. */
  readonly adapter: Adapter;
  /** Tells what happens. Default: one of its own. */
  readonly bus?: EventBus;
  /** Makes the session. Default: one with a plan. */
  session?(facts: SessionFacts<I>): Session;
  /** What the model is told, made of the request and the session. */
  prompt(request: I, session: Session): BoundPrompt<O>;
  /** How long an execution may take, restarts included; or the instant it must end by. Default: no end. */
  readonly deadline?: Duration | Date;
  /** What an execution may spend, restarts included. Default: no limit. */
  readonly budget?: SpendingLimits;
  /** Of model calls. Default: as of a step. */
  readonly retry?: Retry;
  /** Where warnings go. */
  readonly log?: Log;
  /** Time, deadlines and pauses. */
  readonly clock?: Clock;
}

export interface ExecuteOptions {
  /** Stops the work: no call is begun any more. What was saved is kept. */
  readonly signal?: AbortSignal;
}

/** One stay of an execution in a process. */
export interface Stay {
  /** The id of the execution, with the number of this start. */
  readonly prefix: string;
  readonly deadline: number | null;
  readonly signal: AbortSignal | undefined;
}

/** Evaluates a prompt for each request. */
export class AgentLoop<I, O> {
  protected readonly bus: EventBus;
  protected readonly clock: Clock;
  protected readonly log: Log;
  protected readonly ids: Ids;
  readonly #options: LoopOptions<I, O>;

  constructor(options: LoopOptions<I, O>) {
    this.#options = options;
    this.bus = options.bus ?? new EventBus();
    this.clock = options.clock ?? systemClock;
    this.log = options.log ?? consoleLog;
    this.ids = createIds({
      now: () => this.clock.now(),
      randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
    });
  }

  async execute(request: I, options: ExecuteOptions = {}): Promise<PromptResponse<O>> {
    const id = this.ids.next();
    const session = this.createSession({ id, createdAt: this.clock.now(), request });
    const prompt = this.createPrompt(request, session);
    const stay: Stay = { prefix: id, deadline: this.deadlineFrom(this.clock.now()), signal: options.signal };
    this.assertInTime(id, stay.deadline);
    return this.evaluate(prompt, session, stay);
  }

  protected createSession(facts: SessionFacts<I>): Session {
    const { id, createdAt } = facts;
    return this.#options.session?.(facts) ?? new Session({ id, createdAt, slices: [plan], log: this.log });
  }

  protected createPrompt(request: I, session: Session): BoundPrompt<O> {
    return this.#options.prompt(request, session);
  }

  /** Asks the adapter, with calls that are made straight away unless others are given. */
  protected evaluate(
    prompt: BoundPrompt<O>,
    session: Session,
    stay: Stay,
    calls: Calls = this.callsOf(stay),
  ): Promise<PromptResponse<O>> {
    const { adapter, budget } = this.#options;
    const { deadline, signal } = stay;
    return adapter.evaluate(prompt, {
      session,
      bus: this.bus,
      calls,
      ...(deadline !== null && { deadline }),
      ...(budget !== undefined && { budget }),
      ...(signal !== undefined && { signal }),
    });
  }

  protected callsOf({ prefix, signal }: Stay): Calls {
    const { retry } = this.#options;
    return directCalls({
      execution: prefix,
      bus: this.bus,
      log: this.log,
      clock: this.clock,
      ...(signal !== undefined && { signal }),
      ...(retry !== undefined && { retry }),
    });
  }

  /** The instant by which an execution must end that begins now; `null`: none. */
  protected deadlineFrom(now: number): number | null {
    const { deadline } = this.#options;
    if (deadline === undefined) return null;
    const instant = deadline instanceof Date ? deadline.getTime() : now + toMs(deadline, "deadline");
    if (!Number.isNaN(instant)) return instant;
    throw new PawlError("invalid_argument", "`deadline` of the loop is no time. Give a date, or a duration.", {
      fields: { field: "deadline" },
    });
  }

  /** Looked at before anything else: past its deadline, an execution does no work (S1-58). */
  protected assertInTime(execution: string, deadline: number | null): void {
    if (deadline === null || this.clock.now() < deadline) return;
    throw new PawlError(
      "deadline_exceeded",
      `Execution ${execution} has passed its deadline (${new Date(deadline).toISOString()}), so nothing was done. Abandon it, and begin it again with more time.`,
      { fields: { execution, deadline } },
    );
  }
}
