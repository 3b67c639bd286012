// A run of a machine
// Works on one step after the other and does what it decides. Over the context alone: every step, wait and question is an ordinary call of it.
//
//   MR1. The current step is always in the run's state (`pawl.machine`), written in the commit of the outcome that led to it.
//   MR2. Nothing of a transition counts that the plan does not allow: the state stays as it was.
//   MR3. The state is a fold of recorded patches. Functions get copies of it.
//   MR4. A generation that was made by an edit or a migration goes on at the step in its state. What is done once more there has a key of its own, or
//        the outside would take it for what an earlier generation did (P10).
import { hasCode, PawlError, RetryableError, TerminalError } from "../base/errors.ts";
import type { ApprovalRecord, ApproveOptions } from "../core/approval.ts";
import type { CompensationScope } from "../core/compensation.ts";
import type { Context, StepInfo } from "../core/context.ts";
import { decodePayload, encodePayload } from "../core/draft.ts";
import type { EffectSpec } from "../core/effect.ts";
import { ownCancel } from "../core/endings.ts";
import { infoWith } from "../core/info-with.ts";
import { MACHINE_KEY, type MachinePosition } from "../core/machine-position.ts";
import type { MachinePlan, PlannedStep } from "./machine-plan.ts";
import {
  type AnyTransition,
  accept,
  refusalOf,
  type Situation,
  stateAfter,
  tooManyRejections,
} from "./machine-rules.ts";
import type { AgentOutcome, Rejection, StepOf } from "./machine-step.ts";
import type { Wait } from "./machine-transition.ts";
import type { State, StepPatch } from "./patch.ts";

type Pending = Extract<AnyTransition, { transition: "wait" | "escalate" }>;
type Position = MachinePosition & { readonly pending?: Pending };

/** What a step has led to: a decision, or the patches of parallel steps and where they meet. */
type Worked =
  | AnyTransition
  | { readonly transition: "join"; readonly next: string; readonly patches: readonly StepPatch[] };

const PROPOSALS = 3;
/** What the engine takes as the stop reason of an error. */
const STOP_REASON = /^[\w.:-]{1,100}$/;

export class MachineRun {
  readonly #ctx: Context;
  readonly #plan: MachinePlan;
  #state: State = {};
  #at: Position = { step: "", completed: [], uses: {} };
  readonly #approvals = new Map<string, ApprovalRecord>();
  /** Keys of the effects of this generation, in the order in which they were planned. */
  readonly #effects: string[] = [];
  #uses: Readonly<Record<string, number>> = {};
  #isResumed = false;

  constructor(ctx: Context, plan: MachinePlan) {
    this.#ctx = ctx;
    this.#plan = plan;
  }

  async play(input: unknown): Promise<unknown> {
    this.#begin(input);
    for (;;) {
      const step = this.#step(this.#at.step);
      const decided = this.#at.pending ?? (await this.#watched(step));
      const end = await this.#take(step, decided);
      if (end !== null) return end.output;
    }
  }

  /** Another generation of a run goes on where the one before it was: in its state. */
  #begin(input: unknown): void {
    const { initial, name, start, rules } = this.#plan;
    const saved = this.#ctx.get<Position>(MACHINE_KEY);
    const fields = initial(input);
    assertState(name, fields, rules);
    for (const [field, value] of Object.entries(fields)) {
      const known = saved === undefined ? undefined : this.#ctx.get(field);
      if (known === undefined) this.#ctx.set(field, value);
    }
    this.#read(Object.keys(fields));
    if (saved === undefined) return this.#publish({ step: start, completed: [] });
    // What somebody has written by hand need not say more than the step.
    const { completed = [], uses = {} }: Partial<Position> = saved;
    this.#at = { ...saved, completed, uses };
    this.#uses = uses;
    this.#isResumed = true;
  }

  #read(fields: readonly string[]): void {
    // As it was recorded (I21).
    this.#state = { ...this.#state, ...Object.fromEntries(fields.map((field) => [field, this.#ctx.get(field)])) };
  }

  #step(name: string): PlannedStep {
    const step = this.#plan.steps.get(name);
    if (step !== undefined) return step;
    throw new PawlError(
      "illegal_transition",
      `Run ${this.#ctx.run.id} is at step "${name}", which machine "${this.#plan.name}" does not have. Run it with the code that has it, or migrate it.`,
      { fields: { run: this.#ctx.run.id, step: name } },
    );
  }

  get #situation(): Situation {
    return { plan: this.#plan, state: this.#state, effects: this.#effects };
  }

  /** What the plan does not allow is told, whoever proposed it. */
  async #watched(step: PlannedStep): Promise<Worked> {
    try {
      return await this.#work(step);
    } catch (error) {
      if (hasCode(error, "illegal_transition") || hasCode(error, "invalid_transition"))
        this.#reject(step.name, (error as Error).message);
      throw error;
    }
  }

  #reject(step: string, reason: string): void {
    this.#ctx.note(`proposal_rejected: step "${step}": ${reason}`);
    this.#publish({ ...this.#at, rejected: (this.#at.rejected ?? 0) + 1 });
  }

  #work(planned: PlannedStep): Promise<Worked> {
    const { step } = planned;
    switch (step.kind) {
      case "step":
      case "evaluator":
        return this.#runCode(planned, step);
      case "effect":
        return this.#runEffect(planned, step);
      case "approval":
        return this.#ask(planned, step);
      case "agent":
        return this.#runAgent(planned, step);
      case "parallel":
        return this.#fork(step);
    }
  }

  /** Calls by the name of the step, or one that no earlier generation has used (MR4). */
  async #call<T>(step: string, call: (name: string) => Promise<T>): Promise<T> {
    const uses = (this.#uses[step] ?? 0) + 1;
    const done = await call(this.#isResumed && uses > 1 ? `${step}.${uses}` : step);
    this.#uses = { ...this.#uses, [step]: uses };
    return done;
  }

  #runCode(planned: PlannedStep, { spec }: StepOf<"step" | "evaluator">): Promise<AnyTransition> {
    const { run, next: _next, can: _can, ...options } = spec;
    const situation = this.#situation;
    const work = async (info: StepInfo) => {
      const decided = accept(situation, planned, await run.call(spec, copyOf(situation.state), info));
      if (decided.transition === "retry") throw later(decided.reason, decided.delay);
      return decided;
    };
    return this.#call(planned.name, (own) => this.#ctx.step(own, work, options));
  }

  async #runEffect(planned: PlannedStep, { spec }: StepOf<"effect">): Promise<AnyTransition> {
    const { name } = planned;
    const {
      next: _next,
      can: _can,
      do: _do,
      detect: _detect,
      undo: _undo,
      key: _key,
      decide: _decide,
      needs,
      ...rest
    } = spec;
    const { keyScope, class: kind, idempotent, ...options } = rest;
    const state = this.#state;
    const effect: EffectSpec<unknown> = {
      do: (info) => spec.do(copyOf(state), info),
      ...(spec.detect !== undefined && { detect: (info) => spec.detect!(copyOf(state), info) }),
      ...(spec.undo !== undefined && { undo: (value, info) => spec.undo!(value, info) }),
      ...(spec.key !== undefined && { key: spec.key(copyOf(state)) }),
      ...(keyScope !== undefined && { keyScope }),
      ...(kind !== undefined && { class: kind }),
      ...(idempotent !== undefined && { idempotent }),
      ...(needs !== undefined && { needs: this.#needed(name, needs) }),
    };
    const value = await this.#call(name, (own) => {
      this.#effects.push(keyFor(own, this.#effects));
      return this.#ctx.effect(own, effect, options);
    });
    return accept(this.#situation, planned, spec.decide(copyOf(this.#state), value));
  }

  /** The action as it would be asked for now: whatever has changed since shows. */
  #needed(effect: string, gate: string): NonNullable<EffectSpec<unknown>["needs"]> {
    const approval = this.#approvals.get(gate);
    const { step } = this.#step(gate);
    if (approval === undefined || step.kind !== "approval")
      throw new PawlError(
        "approval_mismatch",
        `Effect "${effect}" needs the approval of step "${gate}", which this run has not asked for yet. Lead it through that step first.`,
        { fields: { run: this.#ctx.run.id, effect, reason: "not_approved" } },
      );
    return { approval, action: step.spec.action(copyOf(this.#state)) };
  }

  async #ask(planned: PlannedStep, { spec }: StepOf<"approval">): Promise<AnyTransition> {
    const { name } = planned;
    const {
      approved,
      denied,
      expired,
      changes,
      action: _action,
      evidence: _evidence,
      patch: _patch,
      approvers,
      ...rest
    } = spec;
    const state = this.#state;
    const options: ApproveOptions = {
      ...rest,
      action: spec.action(copyOf(state)),
      approvers: typeof approvers === "function" ? approvers(copyOf(state)) : approvers,
      ...(spec.evidence !== undefined && { evidence: spec.evidence(copyOf(state)) }),
      ...(denied !== undefined && { onDenied: "branch" }),
      ...(expired !== undefined && { onExpired: "branch" }),
      ...(changes !== undefined && { onChanges: "branch" }),
    };
    const decision: ApprovalRecord = await this.#ctx.approve(name, options);
    if (decision.decision === "approved") this.#approvals.set(name, decision);
    const ways = { approved, denied, expired, changes_requested: changes };
    return accept(this.#situation, planned, {
      transition: "continue",
      next: ways[decision.decision],
      ...(spec.patch !== undefined && { patch: spec.patch(copyOf(this.#state), decision) }),
    });
  }

  async #runAgent(planned: PlannedStep, step: StepOf<"agent">): Promise<AnyTransition> {
    const { spec } = step;
    const { run, next: _next, can: _can, result: _result, decide: _decide, proposals = PROPOSALS, ...rest } = spec;
    const { onRefusal: _refusal, onEscalation: _escalation, ...options } = rest;
    const rejected: Rejection[] = [];
    const state = this.#state;
    const work = async (info: StepInfo) => {
      const outcome = await run.call(spec, copyOf(state), infoWith(info, { rejected: [...rejected] }));
      if (outcome?.outcome === "error" && typeof outcome.reason === "string") throw later(outcome.reason, undefined);
      return outcome;
    };
    for (;;) {
      const call = (own: string) => this.#ctx.step<unknown>(own, work, { kind: "model", dry: "recorded", ...options });
      const given = await this.#call(planned.name, call);
      const reason = refusalOf(planned, step, given);
      if (reason === null) return this.#decide(planned, step, given as AgentOutcome<unknown>);
      rejected.push({ proposal: given, reason });
      if (rejected.length >= proposals) throw tooManyRejections(planned, rejected.length, reason);
      this.#reject(planned.name, reason);
    }
  }

  /** What follows is for the definition to say. */
  #decide(planned: PlannedStep, { spec }: StepOf<"agent">, outcome: AgentOutcome<unknown>): AnyTransition {
    const state = copyOf(this.#state);
    const checked = (decided: unknown) => accept(this.#situation, planned, decided);
    if (outcome.outcome === "result") return checked(spec.decide(state, outcome.value, outcome.next ?? null));
    const { reason } = outcome;
    if (outcome.outcome === "refusal")
      return spec.onRefusal === undefined ? stop("refused", reason) : checked(spec.onRefusal(state, reason));
    if (spec.onEscalation !== undefined) return checked(spec.onEscalation(state, reason));
    // Nobody waits for one branch while the others go on.
    const isBranch = this.#at.step !== planned.name;
    if (this.#plan.escalation === null || isBranch) return stop("escalated", reason);
    return { transition: "escalate", reason };
  }

  /** All at once, on the same state; the first that fails ends the run. */
  async #fork({ spec: { branches, next } }: StepOf<"parallel">): Promise<Worked> {
    const worked = await Promise.all(branches.map((branch) => this.#work(this.#step(branch))));
    const failed = worked.find(({ transition }) => transition === "fail");
    if (failed !== undefined) return failed;
    const patches = worked.map((one, i) => ({
      step: branches[i]!,
      patch: ("patch" in one ? one.patch : undefined) ?? {},
    }));
    return { transition: "join", next, patches };
  }

  /** Does what was decided; returns how the run ends, if it does. */
  async #take(step: PlannedStep, decided: Worked): Promise<{ readonly output: unknown } | null> {
    const { name } = step;
    if (decided.transition === "join") {
      this.#apply(decided.patches);
      return this.#goOn([...decided.patches.map((one) => one.step), name], decided.next);
    }
    if ("patch" in decided && decided.patch !== undefined) this.#apply([{ step: name, patch: decided.patch }]);
    switch (decided.transition) {
      case "continue":
        return this.#goOn([name], decided.next);
      case "wait_for_approval":
        return this.#goOn([name], decided.approval);
      case "wait":
        return this.#goOn([name], await this.#wait(name, decided));
      case "escalate":
        return this.#goOn(decided.next === undefined ? [] : [name], await this.#escalate(name, decided));
      case "complete":
        this.#publish({ ...this.#at, completed: withSteps(this.#at.completed, [name]) });
        return { output: decided.output };
      default:
        throw this.#stopped(name, decided);
    }
  }

  #apply(patches: readonly StepPatch[]): void {
    const changed = stateAfter(this.#situation, patches);
    for (const [field, value] of Object.entries(changed)) this.#ctx.set(field, value);
    this.#read(Object.keys(changed));
  }

  #goOn(completed: readonly string[], step: string): null {
    const { pending: _, ...at } = this.#at;
    this.#publish({ ...at, step, completed: withSteps(at.completed, completed) });
    return null;
  }

  #publish(position: Omit<Position, "uses">): void {
    this.#at = { ...position, uses: this.#uses };
    this.#ctx.set(MACHINE_KEY, this.#at);
  }

  /** What is waited for is part of where the run is. */
  #hold({ patch: _, ...pending }: Pending): void {
    if (this.#at.pending === undefined) this.#publish({ ...this.#at, pending });
  }

  async #wait(step: string, wait: Wait<State, string, "wait">): Promise<string> {
    this.#hold(wait);
    if (wait.for !== undefined) await this.#ctx.sleep(wait.for);
    else if (wait.until !== undefined) await this.#ctx.sleepUntil(wait.until);
    else return this.#waitForSignal(step, wait);
    return wait.next;
  }

  async #waitForSignal(
    step: string,
    { signal = "", timeout, into, next, late }: Wait<State, string, "wait">,
  ): Promise<string> {
    const LATE = { late: true };
    const options = { ...(timeout !== undefined && { timeout }), ...(late !== undefined && { default: LATE }) };
    const received: unknown = await this.#ctx.waitFor(signal, options);
    if (received === LATE && late !== undefined) return late;
    if (into !== undefined) this.#apply([{ step, patch: { [into]: received } }]);
    return next;
  }

  async #escalate(step: string, escalate: Extract<Pending, { transition: "escalate" }>): Promise<string> {
    this.#hold(escalate);
    const { escalation, name } = this.#plan;
    const action = { tool: `${name}.${step}`, arguments: { reason: escalate.reason } };
    await this.#ctx.approve(`${step}.escalation`, { ...escalation!, kind: "escalation", action });
    return escalate.next ?? step;
  }

  #stopped(step: string, decided: AnyTransition): Error {
    const { id } = this.#ctx.run;
    const reason = "reason" in decided ? decided.reason : "";
    if (decided.transition === "cancel") return ownCancel(id, reason, decided.compensate === true);
    const scope: CompensationScope | null =
      decided.transition === "compensate" && decided.action !== undefined
        ? { action: decided.action, later: decided.later === true }
        : null;
    const fields = { run: id, step, reason, ...(scope !== null && { compensate: scope }) };
    return Object.assign(new TerminalError(`Step "${step}" ended run ${id}: ${reason}`), {
      code: stopCode(reason),
      fields,
    });
  }
}

function stop(code: string, reason: string): AnyTransition {
  return { transition: "fail", reason: `${code}: ${reason}` };
}

/** The reason itself where it is a word, otherwise a word made of it. */
function stopCode(reason: string): string {
  if (STOP_REASON.test(reason)) return reason;
  const word = /^(refused|escalated): /.exec(reason)?.[1];
  const slug = reason
    .toLowerCase()
    .replaceAll(/[^\w.:-]+/g, "_")
    .replaceAll(/^_+|_+$/g, "")
    .slice(0, 100);
  return word ?? (slug === "" ? "failed" : slug);
}

function later(reason: string, delay: number | string | undefined): RetryableError {
  return new RetryableError(reason, delay === undefined ? {} : { retryAfter: delay });
}

/** The key that the next use of a name has. */
function keyFor(name: string, used: readonly string[]): string {
  const before = used.filter((key) => key === name || key.startsWith(`${name}#`)).length;
  return before === 0 ? name : `${name}#${before + 1}`;
}

/** Each once: what a loop completes again does not make the list grow. */
function withSteps(completed: readonly string[], steps: readonly string[]): readonly string[] {
  return [...new Set([...completed, ...steps])];
}

function copyOf(state: State): State {
  return decodePayload(encodePayload(state, "state")) as State;
}

function assertState(machine: string, state: unknown, rules: object): asserts state is State {
  const problem =
    typeof state !== "object" || state === null || Array.isArray(state)
      ? "is no plain object"
      : (Object.keys(state)
          .filter((field) => field.startsWith("pawl."))
          .map((field) => `has a field "${field}", a name that Pawl keeps to itself`)[0] ??
        Object.keys(rules)
          .filter((field) => !Object.hasOwn(state, field))
          .map((field) => `has no field "${field}", which \`merge\` has a rule for`)[0]);
  if (problem === undefined) return;
  throw new PawlError(
    "invalid_argument",
    `The first state of machine "${machine}" ${problem}. Correct what \`state\` returns.`,
    {
      fields: { machine, field: "state" },
    },
  );
}
