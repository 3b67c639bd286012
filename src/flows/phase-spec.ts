// Phases as their author gives them.
import type { ApprovalAction, ApproveOptions } from "../core/approval.ts";
import type { Context, StepInfo, StepOptions, WaitOptions } from "../core/context.ts";
import type { EffectOptions, EffectSpec } from "../core/effect.ts";
import type { Duration } from "../core/retry.ts";
import type { StandardSchema } from "../core/schema.ts";
import type { Workflow, WorkflowOptions } from "../core/workflow.ts";

/** What a run made of phases knows when one of its functions is called. */
export interface PhaseFacts<I, O> {
  readonly input: I;
  /**
   * What earlier phases gave, by name; of a phase with steps, what each of them gave. One that was written to a file is read when it is asked
   * for, and compared with its hash. What was skipped is `undefined`.
   */
  readonly outputs: Readonly<O>;
  /** The files that earlier phases gave, in the order in which they were done. */
  readonly files: readonly PhaseFile[];
  readonly run: Context["run"];
}

export interface PhaseFile {
  /** Whose output it is: `phase.step`, or the phase. */
  readonly at: string;
  readonly file: string;
  /** Of its bytes, as hex. */
  readonly sha256: string;
}

/** The same, inside a step: `key` is the same in every attempt, also in one that a person asks for after a failure. */
export type PhaseWork<I, O> = PhaseFacts<I, O> & StepInfo;

/** What one step does: exactly one of these. */
export interface StepDeeds<I, O> {
  /** Does the work and gives its result. */
  readonly run?: (work: PhaseWork<I, O>) => unknown;
  /** Does something outside that must not happen twice, such as what `pawl/guards` makes. */
  readonly effect?: EffectSpec<unknown> | ((facts: PhaseFacts<I, O>) => EffectSpec<unknown>);
  /** Asks people. Whoever says no ends the run, unless the options say "branch". What stands here and not in a function is part of the structure. */
  readonly approve?: GateOptions<I, O> | ((facts: PhaseFacts<I, O>) => ApproveOptions);
  /** Work that a person or an outside agent does: it says when it begins, and when it is done or has failed. */
  readonly manual?: ManualOptions;
  /** Waits for a time. */
  readonly sleep?: Duration;
  /** Waits for a signal. */
  readonly waitFor?: string | SignalOptions;
  /** Starts a child run and waits for its result. */
  readonly call?: Workflow<never, unknown>;
}

/**
 * A gate whose options are known in advance, all but what it is about. With `fourEyes` and without an `actor`, nobody may decide who has had a part in
 * a step that is done outside.
 */
export interface GateOptions<I, O> extends Omit<ApproveOptions, "action" | "evidence"> {
  readonly action: ApprovalAction | ((facts: PhaseFacts<I, O>) => ApprovalAction);
  readonly evidence?: unknown;
}

export interface ManualOptions {
  /** What is to be done, for whoever does it. */
  readonly instructions: string;
  /** The files that must be there when it is done. */
  readonly outputs?: readonly string[];
}

export interface SignalOptions extends WaitOptions<unknown, StandardSchema> {
  readonly signal: string;
}

export interface PhaseStep<I = unknown, O = Record<string, unknown>>
  extends StepDeeds<I, O>,
    Pick<StepOptions, "kind" | "timeout" | "retry" | "spend" | "breaker"> {
  /** Letters, digits, "_" and "-". */
  readonly name: string;
  /** The file that the result goes to; the journal keeps its name, hash and size. Default: the journal keeps the result. */
  readonly output?: string;
  /** With `run` and `effect`: what happens if a crash interrupts it. */
  readonly recovery?: EffectOptions["recovery"];
  /** Asked before it begins: if what it would do is there already, it is done without being executed. */
  readonly satisfied?: (work: PhaseWork<I, O>) => boolean | Promise<boolean>;
  /** With `call`: what the child is started with. */
  readonly input?: ((facts: PhaseFacts<I, O>) => unknown) | object | string | number | boolean | null;
}

/** A phase: one step, or a list of them. */
export interface Phase<I = unknown, O = Record<string, unknown>> extends PhaseStep<I, O> {
  /** Whether the phase is on this run's way. Asked once, when its turn comes; the answer is recorded. Default: it is. */
  readonly when?: (work: PhaseWork<I, O>) => boolean | Promise<boolean>;
  /** Its steps, in their order. */
  readonly steps?: readonly PhaseStep<I, O>[];
}

export interface PhasesOptions<I, O, R = unknown> extends WorkflowOptions<I> {
  /** The field of the state document that holds the key of the business, such as "jira_key": the start key, or that field of the input. */
  readonly correlation?: string;
  /** What the ids of runs begin with: `wf-bug-e2e-AE-33995-20260601`. Default "wf". */
  readonly prefix?: string;
  /** Makes the ids of runs that have a key of the business; one that is taken gets a number. Default: prefix, name, key and date. */
  readonly runId?: (facts: RunIdFacts) => string;
  /** The folder for output files; each run has one of its own in it. Default: beside the store, or `.pawl/outputs`. */
  readonly outputs?: string;
  /** A step that has failed for good: wait for a person's decision, or end the run. Default "block". */
  readonly onFailed?: "block" | "fail";
  /** The result of a run. Default: what each phase gave, or the file that it is in. */
  readonly result?: (work: PhaseWork<I, O>) => R | Promise<R>;
}

export interface RunIdFacts {
  readonly prefix: string;
  readonly workflow: string;
  /** The key of the business. */
  readonly key: string;
  /** The day of the start in UTC, as `20260601`. */
  readonly date: string;
}
