// The script of a case
// Stands for everything that the workflow calls outside: each call is answered by the next event that speaks of it, or by its usual answer.
// No function of the workflow's own runs, unless the setup says so.
//
//   ES1. A call whose event comes later in the case than something that is to happen first waits for its turn.
//   ES2. A call that has succeeded under an idempotency key and comes again is answered as before, and uses up no event.
//   ES3. A call that nothing answers fails, and is told of by name.
import { decode } from "../../base/codec.ts";
import { RetryableError, TerminalError } from "../../base/errors.ts";
import type { StepCall } from "../../core/call.ts";
import type { StepInfo } from "../../core/context.ts";
import type { Frame } from "../../core/host.ts";
import type { Pass } from "../../core/pass.ts";
import type { EvalTool, EvalToolCall } from "./eval-setup.ts";
import type { EvalEvent } from "./read-case.ts";

/** A call, and what came of it outside. */
export interface Answered extends EvalToolCall {
  readonly run: string;
  readonly idempotencyKey: string;
  readonly isEffect: boolean;
  readonly outcome: "success" | "failure";
  /** False: the outside knew the key, so nothing happened. */
  readonly did: boolean;
  /** The event that it was answered by; `null`: its usual answer. */
  readonly event: number | null;
  /** How many events had happened by then that are no answers, counted by their place in the case. */
  readonly position: number;
  /** Nothing keeps it from happening twice. */
  readonly isUnsafe: boolean;
  readonly retries: number;
}

export interface ScriptRules {
  readonly events: readonly EvalEvent[];
  /** Whether a case's name for a tool means this call. */
  fits(name: string, call: EvalToolCall): boolean;
  usual(call: EvalToolCall): EvalTool | null;
  /** Whether the events begin with this call. */
  isInitial(call: EvalToolCall): boolean;
}

type ToolEvent = Extract<EvalEvent, { readonly tool: string; readonly type: "tool_success" | "tool_failure" }>;

interface Waiting {
  readonly call: EvalToolCall;
  readonly info: StepInfo;
  retry(): void;
}

export class Script {
  readonly answered: Answered[] = [];
  /** Calls that nothing answered. */
  readonly unanswered: EvalToolCall[] = [];
  readonly #rules: ScriptRules;
  readonly #left: number[];
  readonly #done = new Map<string, unknown>();
  #waiting: Waiting[] = [];
  #armed = 0;
  #trap: { readonly event: number; spring(): void } | null = null;
  /** Crashes that have been, by the place of their event. */
  readonly #crashes = new Set<number>();
  hasBegun: boolean;
  /** The place in the case behind the last event that is no answer. */
  position = 0;

  constructor(rules: ScriptRules, hasBegun: boolean) {
    this.#rules = rules;
    this.hasBegun = hasBegun;
    this.#left = rules.events.map((event) => (isToolEvent(event) ? (event.times ?? 1) : 0));
  }

  /** Lets events up to this one be used, and answers whoever waits for them. */
  arm(end: number): void {
    this.#armed = Math.max(this.#armed, end);
    this.#goOn();
  }

  #goOn(): void {
    for (const one of this.#waiting.splice(0)) if (!one.info.signal.aborted) one.retry();
  }

  /** The next call of this tool takes effect, and is the last thing that its process does. */
  setTrap(event: number, spring: () => void): void {
    this.#trap = { event, spring };
    this.#goOn();
  }

  /** Whoever waits belongs to a process that is gone. */
  abandon(): void {
    this.#waiting = [];
    if (this.#trap !== null) this.#crashes.add(this.#trap.event);
    this.#trap = null;
  }

  isUsed(event: number): boolean {
    return this.#left[event] === 0;
  }

  /** Calls that wait for an event that has not come. */
  get waiting(): readonly EvalToolCall[] {
    return this.#waiting.map(({ call }) => call);
  }

  /** Answers a call in place of its function. */
  answer(step: StepCall, info: StepInfo, { run, pass }: Frame, fn: () => unknown): unknown {
    const isUndo = step.endsAs === "effect.compensated";
    const tool = isUndo ? `${step.name}/undo` : step.name;
    const call = { workflow: (pass as Pass).workflow.name, tool, key: step.key, attempt: info.attempt };
    if (!this.hasBegun && this.#rules.isInitial(call)) this.hasBegun = true;
    return this.#respond(step, call, info, run, fn);
  }

  /** The last thing that its process does, if a trap is set for it. */
  #spring(crash: number): void {
    const trap = this.#trap;
    if (trap === null || trap.event !== crash) return;
    this.#trap = null;
    this.#crashes.add(crash);
    trap.spring();
  }

  #respond(step: StepCall, call: EvalToolCall, info: StepInfo, run: string, fn: () => unknown): unknown {
    const idempotencyKey = step.idempotencyKey;
    const known = `${call.tool} ${idempotencyKey}`;
    const note = (outcome: Answered["outcome"], did: boolean, event: number | null) =>
      void this.answered.push({
        ...call,
        run,
        idempotencyKey,
        isEffect: step.startsAs === "effect.planned",
        outcome,
        did,
        event,
        position: this.position,
        isUnsafe: step.isUnsafe,
        retries: step.policy.retry.max,
      });
    if (this.#done.has(known)) {
      note("success", step.isUnsafe, null);
      return this.#done.get(known);
    }
    const index = this.hasBegun ? this.#eventFor(call) : -1;
    const crash = this.#crashBefore(index, call);
    if (index >= this.#armed || (crash >= 0 && this.#trap?.event !== crash))
      return new Promise((resolve, reject) => {
        const retry = () => {
          try {
            resolve(this.#respond(step, call, info, run, fn));
          } catch (error) {
            reject(error);
          }
        };
        this.#waiting.push({ call, info, retry });
      });
    const event = index < 0 ? null : (this.#rules.events[index] as ToolEvent);
    if (event !== null) this.#left[index] = (this.#left[index] ?? 0) - 1;
    if (event?.type === "tool_failure") {
      note("failure", false, index);
      this.#spring(crash);
      throw failureOf(event, call.tool);
    }
    const value =
      event !== null && "output" in event ? opened(event.output) : this.#usual(step, call, event !== null, fn);
    this.#done.set(known, value);
    note("success", true, index < 0 ? null : index);
    this.#spring(crash);
    return value;
  }

  #eventFor(call: EvalToolCall): number {
    return this.#rules.events.findIndex(
      (event, index) => isToolEvent(event) && (this.#left[index] ?? 0) > 0 && this.#rules.fits(event.tool, call),
    );
  }

  /** The crash that is to happen in this call, before the event that it is answered by; -1 for none. */
  #crashBefore(event: number, call: EvalToolCall): number {
    const { events, fits } = this.#rules;
    const crash = events.findIndex(
      (one, index) =>
        one.type === "crash" && one.tool !== undefined && !this.#crashes.has(index) && fits(one.tool, call),
    );
    return event >= 0 && crash > event ? -1 : crash;
  }

  #usual(step: StepCall, call: EvalToolCall, isSaid: boolean, fn: () => unknown): unknown {
    const usual = this.#rules.usual(call);
    if (usual !== null && "output" in usual) return structuredClone(usual.output);
    if (usual !== null && "answer" in usual) return usual.answer(call);
    if (usual !== null) return fn();
    const { dry } = step.policy;
    if (typeof dry === "object") return dry.value;
    if (step.endsAs === "effect.compensated") return null;
    if (isSaid) return undefined;
    this.unanswered.push(call);
    throw new TerminalError(`Nothing says what "${call.tool}" answers.`);
  }
}

function isToolEvent(event: EvalEvent): event is ToolEvent {
  return event.type === "tool_success" || event.type === "tool_failure";
}

/** Values of cases are the tagged JSON of exports. */
export function opened(value: unknown): unknown {
  return value === undefined ? undefined : decode(JSON.stringify(value));
}

function failureOf(event: Extract<EvalEvent, { readonly type: "tool_failure" }>, tool: string): Error {
  const { error = {}, kind, retryable = kind === "retryable" } = event;
  const { message = `${tool} failed.`, name, code } = typeof error === "string" ? { message: error } : error;
  const made = retryable ? new RetryableError(message) : new TerminalError(message);
  if (name !== undefined) made.name = name;
  return code === undefined ? made : Object.assign(made, { code });
}
