import type { Secret } from "../base/secret.ts";
import type { ApprovalRecord, Approved, ApproveOptions } from "./approval.ts";
import type { Amounts, BudgetOptions } from "./budget.ts";
import type { Callback } from "./callback.ts";
import type { Dry } from "./dry.ts";
import type { EffectOptions, EffectSpec } from "./effect.ts";
import type { Uses } from "./journal.ts";
import type { NoProgress } from "./no-progress.ts";
import type { Duration, Retry } from "./retry.ts";
import type { SchemaOutput, StandardSchema } from "./schema.ts";
import type { Sql, TransactionOptions } from "./sql.ts";
import type { UndoInfo } from "./undoable-call.ts";
import type { Workflow } from "./workflow.ts";

/** What a step's function receives. */
export interface StepInfo {
  /** Fires when the step times out, the run is cancelled, or this process lost the run. */
  readonly signal: AbortSignal;
  /** Stable over attempts and restarts: pass it on as an idempotency key. */
  readonly key: string;
  /** 1 for the first try. */
  readonly attempt: number;
  /** Says that the step is alive: its timeout counts from the last call. `detail` shows as the run's progress. */
  heartbeat(detail?: unknown): void;
  /** Says what this attempt has really spent: `{ usd: 0.03, tokens: 1200 }`. The last word counts; default: what was reserved. */
  spent(amounts: Amounts): void;
  /**
   * Makes `value` durable as the step's newest checkpoint, and counts as a heartbeat. Rejects with `attempt_over` once the attempt is, and where the
   * value cannot be recorded.
   */
  save(value: unknown): Promise<void>;
  /** What an earlier attempt of this step has saved last, whatever ended it: a crash, a failure, a timeout. `undefined`: nothing. */
  readonly saved: unknown;
  /**
   * Tells readers of `run.stream()` something while the step runs: tokens of a model, lines of a log. Nothing of it is in the journal; what an attempt has
   * emitted is void if another one begins. Not in a transaction. It is no heartbeat.
   */
  emit(chunk: unknown): void;
  /**
   * What a secret stands for, by its name or its handle. It is for this attempt alone: wherever it shows up in what is recorded or logged, it is
   * taken out. Rejects with `secret_missing` if no provider of this process has it.
   */
  secret(secret: string | Secret): Promise<string>;
}

export type StepKind = "code" | "model" | "api" | "database";

export interface StepOptions {
  /** Overrides the key that is derived from the name. May be used once in a run. */
  readonly key?: string;
  /** What the step is about: another value in replay is another call, and parks the run (`replay_drift`). Its digest is recorded, not the value. */
  readonly input?: unknown;
  /** What the step does; decides its default timeout. Default "code". */
  readonly kind?: StepKind;
  /** Time for one attempt, counted from the last heartbeat. */
  readonly timeout?: Duration;
  readonly retry?: Retry;
  /** What happens to a step that a crash interrupted: run it again (default), ask a person, fail it, or fail it and undo it. */
  readonly recovery?: "rerun" | "ask" | "fail" | "compensate";
  /** What each attempt reserves of the run's budgets before it begins: `{ usd: 0.05, tokens: 2000 }`. It counts as one of `calls`. */
  readonly spend?: Amounts;
  /** The name of a circuit breaker: while it is open, attempts are not begun and fail with `circuit_open`. */
  readonly breaker?: string;
  /** Refuses the step once it has had the same result this often in a row, for the same `args`. */
  readonly noProgress?: NoProgress;
  /**
   * What the step does in a dry run: "run" if it changes nothing outside; "recorded": it answers with what is recorded, or fails with
   * `effect_not_recorded`; or what it answers with where nothing is. Default: "run" for kind "model", else "recorded".
   */
  readonly dry?: Dry<unknown>;
}

/** With what takes it back. */
export interface UndoableStepOptions<T> extends StepOptions {
  /**
   * Takes the step back if the run fails later, is cancelled with `compensate`, or passes its deadline. Gets what the step returned, or `undefined`
   * if nobody can tell whether it happened; must be safe to repeat.
   */
  undo(value: T | undefined, info: UndoInfo): unknown;
}

export interface WaitOptions<D, S extends StandardSchema> {
  /** Give up after this long: resolve with `default` if there is one, otherwise reject with `wait_timeout`. */
  readonly timeout?: Duration;
  readonly default?: D;
  /** Checked before what has come is recorded. */
  readonly schema?: S;
}

export interface CallOptions {
  /** Overrides the key that is derived from the workflow's name. */
  readonly key?: string;
  readonly tags?: readonly string[];
  readonly priority?: number;
  /** What the child and all runs below it may spend, beside the budgets that hold here. Default: the workflow's. */
  readonly budget?: BudgetOptions;
}

export interface MapOptions {
  /** How many items are worked on at once. Default: all. */
  readonly concurrency?: number;
}

/** What the run has cost so far; numbers add up. */
export type Cost = Readonly<Record<string, number>>;

export interface Log {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

export interface RunFacts {
  readonly id: string;
  readonly workflow: string;
  readonly version: string;
  readonly traceId: string;
  readonly key?: string;
  /** How often this run was claimed in a row without recording anything; 1 in peace. It differs between passes: a body must not depend on it. */
  readonly attempt: number;
  readonly deadline?: Date;
  readonly tags: readonly string[];
  /** The schedule that has started this run, and the time that it was due: use it instead of the time when the run began. */
  readonly schedule?: { readonly name: string; readonly slot: Date };
  /** What is said to have been done before this generation of the run began: by an import, an edit or a migration. */
  readonly adopted?: unknown;
  /** The versions of prompts, policies, models and tools that the run was started with, whatever the workflow says since. */
  readonly uses: Uses;
  /** The folder for its output files, where the store has a place for them. It differs between machines: a body must not depend on it. */
  readonly outputs?: string;
}

type StartInput<I> = undefined extends I ? [input?: I, options?: CallOptions] : [input: I, options?: CallOptions];

/** With it, a decision that is no approval is a value and no error. */
type Branching = { readonly onDenied: "branch" } | { readonly onExpired: "branch" } | { readonly onChanges: "branch" };

/** What a workflow sees of the engine. */
export interface Context {
  readonly run: RunFacts;
  /** Fires when the run is cancelled or its deadline has passed. */
  readonly signal: AbortSignal;
  /** Silent in replay. */
  readonly log: Log;

  /** Runs `fn` once and records its outcome; after a crash the recorded outcome is returned instead. */
  step<T>(
    name: string,
    fn: (info: StepInfo) => T | Promise<T>,
    options?: StepOptions | UndoableStepOptions<T>,
  ): Promise<T>;
  /** Runs a named function with arguments that are recorded and compared in replay. */
  step<A extends readonly unknown[], T>(fn: (...args: A) => T | Promise<T>, ...args: A): Promise<T>;

  /**
   * Does something outside that must not happen twice, and keeps it in the run's ledger: planned before it begins, then executed, unknown or
   * compensated. After a crash `detect` decides, or the outside by its key, or a person.
   */
  effect<T>(name: string, spec: EffectSpec<T>, options?: EffectOptions): Promise<T>;

  /**
   * Runs SQL in the store's database, in one transaction with the record of its outcome: both are there, or neither. On PostgreSQL `fn` may be
   * async; on SQLite it must be synchronous. Other stores have no transactions.
   */
  transaction<T>(
    name: string,
    fn: (sql: Sql, info: StepInfo) => T | Promise<T>,
    options?: TransactionOptions,
  ): Promise<T>;

  /** Sleeps any length, without memory or a worker. */
  sleep(duration: Duration): Promise<void>;
  sleepUntil(time: Date | number): Promise<void>;
  /** Waits for a signal. One that came earlier counts; each is delivered once. */
  waitFor<T = unknown>(signal: string, options?: { readonly timeout?: Duration }): Promise<T>;
  waitFor<S extends StandardSchema, D = never>(
    signal: string,
    options: WaitOptions<D, S> & { readonly schema: S },
  ): Promise<SchemaOutput<S> | D>;
  waitFor<T = unknown, D = never>(signal: string, options: WaitOptions<D, StandardSchema>): Promise<T | D>;

  /**
   * Opens a one-time address: `token` for an outside system, which answers it through `pawl.callbacks`, and `value()` to wait for the answer. Its
   * `timeout` counts from here. All processes with workflows need the same `secret`.
   */
  callback<T = unknown>(name: string, options?: { readonly timeout?: Duration }): Callback<T>;
  callback<S extends StandardSchema, D = never>(
    name: string,
    options: WaitOptions<D, S> & { readonly schema: S },
  ): Callback<SchemaOutput<S> | D>;
  callback<T = unknown, D = never>(name: string, options: WaitOptions<D, StandardSchema>): Callback<T | D>;

  /**
   * Asks people for leave to do one exact action, and waits for their decision, days if need be. Resolves only if it was approved; otherwise it
   * rejects with `approval_denied`, `approval_expired` or `changes_requested`.
   */
  approve(name: string, options: ApproveOptions & Branching): Promise<ApprovalRecord>;
  approve(name: string, options: ApproveOptions): Promise<Approved>;

  /** Starts a child run and waits for its result. It is cancelled if this run ends first. */
  call<I, O>(workflow: Workflow<I, O>, ...args: StartInput<I>): Promise<O>;
  /** Starts a run that goes on by itself. */
  spawn<I, O>(workflow: Workflow<I, O>, ...args: StartInput<I>): Promise<{ readonly id: string }>;
  /** Works on all items. Each has its own keys; the first failure rejects. */
  map<T, R>(items: readonly T[], fn: (item: T, index: number) => Promise<R>, options?: MapOptions): Promise<R[]>;
  /** Like `map`, but a failing item does not stop the others. */
  map<T, R>(
    items: readonly T[],
    fn: (item: T, index: number) => Promise<R>,
    options: MapOptions & { readonly partial: true },
  ): Promise<PromiseSettledResult<R>[]>;

  /** The time of the last outcome this run has seen; the same in every replay. */
  now(): number;
  /** A number in [0, 1) that is the same in every replay. */
  random(): number;
  uuid(): string;

  /** Run state that others may read with `run.status()`. */
  set(key: string, value: unknown): void;
  get<T = unknown>(key: string): T | undefined;
  /** Latest progress, for people; not part of the journal. */
  progress(value: unknown): void;
  cost(amounts: Cost): void;
  note(text: string): void;

  /** Ends this generation of the run and begins the next one with a fresh journal position: for loops without end. */
  continueAs(input: unknown): Promise<never>;
  /** True in runs that reach this point for the first time with this code, false in runs that passed it with older code. */
  patched(id: string): boolean;
}
