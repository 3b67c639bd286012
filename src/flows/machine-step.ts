// The steps of a machine
// What users give for each kind of step, and what is made of it: a value that only `machine` can read.
import type { ApprovalAction, ApprovalRecord, ApproveOptions } from "../core/approval.ts";
import type { StepInfo, StepOptions } from "../core/context.ts";
import type { EffectOptions, EffectSpec } from "../core/effect.ts";
import type { StandardSchema } from "../core/schema.ts";
import type { Detected, UndoInfo } from "../core/undoable-call.ts";
import type { Transition, TransitionWord } from "./machine-transition.ts";

/** What all steps say about their way. */
interface Routes<N extends string, C extends string> {
  /** The steps that may follow. Default: none. */
  readonly next?: readonly N[];
  /** What it may do beside going on and failing. Default: nothing. */
  readonly can?: readonly C[];
}

type Decided<S, N extends string, C extends string, O> = Transition<S, NoInfer<N>, NoInfer<C>, O>;

/** Whatever follows an action that has been done: it cannot be asked for again. */
export type AfterWord = Exclude<TransitionWord, "retry">;

/** A step of code: bounded work, run and recorded as `ctx.step`. */
export interface CodeStep<S, N extends string, C extends TransitionWord, O>
  extends Routes<N, C>,
    Omit<StepOptions, "key" | "noProgress"> {
  /** Does the work and decides. `state` is a copy. */
  run(state: S, info: StepInfo): Decided<S, N, C, O> | Promise<Decided<S, N, C, O>>;
}

/** An action outside, done and recorded as `ctx.effect`. */
export interface EffectStep<S, N extends string, C extends AfterWord, O, T>
  extends Routes<N, C>,
    EffectOptions,
    Pick<EffectSpec<T>, "keyScope" | "class" | "idempotent"> {
  /** Does it. `info.key` is the same in every attempt: pass it on as an idempotency key. */
  do(state: S, info: StepInfo): T | Promise<T>;
  /** Finds out whether it happened; asked before it is tried again. */
  detect?(state: S, info: StepInfo): Detected<T> | Promise<Detected<T>>;
  /** Takes it back if the run fails later. */
  undo?(value: T | undefined, info: UndoInfo): unknown;
  /** A key of the business, such as an order number. */
  key?(state: S): string;
  /** The step that must have approved this very action. Default: none. */
  readonly needs?: string;
  /** Decides what follows, from what `do` returned. It runs in the body: no clock, no dice, no I/O. */
  decide(state: S, value: T): Decided<S, N, C, O>;
}

/** A question to people, asked and recorded as `ctx.approve`. */
export interface ApprovalStep<S, N extends string>
  extends Omit<ApproveOptions, "action" | "approvers" | "evidence" | "onDenied" | "onExpired" | "onChanges"> {
  /** The exact action: an effect that `needs` this step is compared with it once more. */
  action(state: S): ApprovalAction;
  /** Who may decide. */
  readonly approvers: readonly string[] | ((state: S) => readonly string[]);
  /** What the approver should see before deciding. */
  evidence?(state: S): unknown;
  /** Where it goes on. */
  readonly approved: N;
  /** Where it goes on if it was denied. Default: as `onDenied` says. */
  readonly denied?: N;
  /** Where it goes on if nobody has decided in time. Default: as `onExpired` says. */
  readonly expired?: N;
  /** Where it goes on if somebody wants changes. Default: as `onChanges` says. */
  readonly changes?: N;
  /** Without `denied`: fail and undo what was done, or fail and leave it. */
  readonly onDenied?: "compensate" | "fail";
  /** Without `expired`: what becomes of the run. */
  readonly onExpired?: "escalate" | "compensate" | "cancel" | "fail";
  /** Without `changes`: as `onDenied`. */
  readonly onChanges?: "compensate" | "fail";
  /** What the decision changes in the state. */
  patch?(state: S, decision: ApprovalRecord): Partial<S>;
}

/** What an agent came to. It says nothing about what the run does: that is for the machine. */
export type AgentOutcome<T, N extends string = string> =
  /** It has done its work. `next` is a proposal. */
  | { readonly outcome: "result"; readonly value: T; readonly next?: N }
  /** It will not. */
  | { readonly outcome: "refusal"; readonly reason: string }
  /** It could not: it is run again, as often as its `retry` allows. */
  | { readonly outcome: "error"; readonly reason: string }
  /** A person has to look at it. */
  | { readonly outcome: "escalation"; readonly reason: string };

/** A proposal that was refused, and why: for the agent to do better. */
export interface Rejection {
  readonly proposal: unknown;
  readonly reason: string;
}

export interface AgentInfo extends StepInfo {
  /** What was refused of what it proposed before, in this step. */
  readonly rejected: readonly Rejection[];
}

/** An agent: bounded work of uncertain outcome, run and recorded as `ctx.step` of kind "model". */
export interface AgentStep<S, N extends string, C extends AfterWord, O, T>
  extends Routes<N, C>,
    Omit<StepOptions, "key" | "noProgress"> {
  /** Works, and says what it came to. */
  run(state: S, info: AgentInfo): AgentOutcome<T, NoInfer<N>> | Promise<AgentOutcome<T, NoInfer<N>>>;
  /** What its value must be. Default: not checked. */
  readonly result?: StandardSchema;
  /** Decides what follows from its result and its proposal, which is one of `next` or `null`. It runs in the body. */
  decide(state: S, value: T, proposal: NoInfer<N> | null): Decided<S, N, C, O>;
  /** Decides what follows from a refusal. Default: the run fails with "refused". */
  onRefusal?(state: S, reason: string): Decided<S, N, C, O>;
  /**
   * Decides what follows from an escalation. Default: the people of the machine's `escalation` are asked; without any, and in a branch, the run fails
   * with "escalated".
   */
  onEscalation?(state: S, reason: string): Decided<S, N, C, O>;
  /** How many proposals may be refused before the run fails. Default 3. */
  readonly proposals?: number;
}

/** Steps that work at the same time, and where it goes on when all of them have. */
export interface ParallelStep<N extends string> {
  /** Each works on the same state; what they change is merged in this order. */
  readonly branches: readonly N[];
  /** Where it goes on when all have done their work. */
  readonly next: N;
}

/** A step as the engine of machines sees it: the types of state and values are known to whoever gave it. */
export type AnyStep =
  | { readonly kind: "step" | "evaluator"; readonly spec: CodeStep<unknown, string, TransitionWord, unknown> }
  | { readonly kind: "effect"; readonly spec: EffectStep<unknown, string, AfterWord, unknown, unknown> }
  | { readonly kind: "approval"; readonly spec: ApprovalStep<unknown, string> }
  | { readonly kind: "agent"; readonly spec: AgentStep<unknown, string, AfterWord, unknown, unknown> }
  | { readonly kind: "parallel"; readonly spec: ParallelStep<string> };

export type StepOf<K extends AnyStep["kind"]> = Extract<AnyStep, { readonly kind: K }>;

declare const types: unique symbol;

/** A step of a machine, made by one of the functions that its definition is given. */
export interface MachineStep<N extends string = string, O = unknown> {
  readonly kind: AnyStep["kind"];
  /** Carries what may follow and what it may complete with; there is nothing at run time. */
  readonly [types]?: { readonly next: N; readonly output: O };
}

/** What a definition makes its steps with. */
export interface Steps<S> {
  /** Deterministic code. */
  step<const N extends string = never, const C extends TransitionWord = never, O = never>(
    spec: CodeStep<S, N, C, O>,
  ): MachineStep<NoInfer<N>, NoInfer<O>>;
  /** Code that judges what others have done. */
  evaluator<const N extends string = never, const C extends TransitionWord = never, O = never>(
    spec: CodeStep<S, N, C, O>,
  ): MachineStep<NoInfer<N>, NoInfer<O>>;
  /** An action outside. */
  effect<const N extends string = never, const C extends AfterWord = never, O = never, T = unknown>(
    spec: EffectStep<S, N, C, O, T>,
  ): MachineStep<NoInfer<N>, NoInfer<O>>;
  /** A question to people. */
  approval<const N extends string>(spec: ApprovalStep<S, N>): MachineStep<NoInfer<N>, never>;
  /** An agent. */
  agent<const N extends string = never, const C extends AfterWord = never, O = never, T = unknown>(
    spec: AgentStep<S, N, C, O, T>,
  ): MachineStep<NoInfer<N>, NoInfer<O>>;
  /** Several steps at once. */
  parallel<const N extends string>(spec: ParallelStep<N>): MachineStep<NoInfer<N>, never>;
}

const made =
  (kind: AnyStep["kind"]) =>
  (spec: object): never =>
    ({ kind, spec }) as never;

/** One set for all machines: their types differ, and nothing else. */
export const STEPS: Steps<never> = {
  step: made("step"),
  evaluator: made("evaluator"),
  effect: made("effect"),
  approval: made("approval"),
  agent: made("agent"),
  parallel: made("parallel"),
};
