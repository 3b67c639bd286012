// Calls
// What a body is waiting for. A call is open from the moment it is issued until its outcome's turn; open calls in order of issue
// are the whole of a run's waiting (P1). Classes, not literals: a step is issued a hundred thousand times a second.
import type { ApprovalRecord } from "./approval.ts";
import type { ApprovalDecided, ApprovalRequested, ApprovalSpec } from "./approval-request.ts";
import { type CastVote, decisionOf, votesIn } from "./approval-votes.ts";
import type { Amounts } from "./budget.ts";
import type { Saved } from "./checkpoints.ts";
import type { CallOptions, StepInfo } from "./context.ts";
import type { Denials } from "./denials.ts";
import type { Dry } from "./dry.ts";
import type { StepStarted } from "./journal.ts";
import type { RetryPolicy } from "./retry.ts";
import type { StandardSchema } from "./schema.ts";
import { idempotencyKey } from "./seeds.ts";
import { isRefused, Spending } from "./spending-state.ts";
import type { Isolation, Sql } from "./sql.ts";
import type { InboxRow, Needs } from "./store.ts";
import { assertNoPromise, type TransactionFunction } from "./transaction-function.ts";
import type { Workflow } from "./workflow.ts";

class OpenCall {
  readonly key: string;
  readonly promise: Promise<unknown>;
  resolve!: (value: unknown) => void;
  reject!: (error: unknown) => void;
  open = true;
  /** Place in the order of issue; -1 until it is in the journal. */
  order = -1;

  constructor(key: string) {
    this.key = key;
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}

/** How a step is run; most steps of a workflow share one. */
export interface StepPolicy {
  readonly timeoutMs: number;
  readonly retry: RetryPolicy;
  readonly recovery: "rerun" | "detect" | "ask" | "compensate" | "fail";
  /** What each attempt reserves of the run's budgets. */
  readonly spend?: Amounts;
  /** The circuit breaker that its attempts go through. */
  readonly breaker?: string;
  /** What it comes to in a dry run, if nothing is recorded. */
  readonly dry?: Dry<unknown>;
}

export class StepCall extends OpenCall {
  readonly type = "step.started";
  readonly name: string;
  readonly fn: (info: StepInfo) => unknown;
  readonly policy: StepPolicy;
  /** The digest of what it is given; with the arguments themselves, for the form that records them. */
  readonly input: { readonly value?: unknown; readonly digest: string } | null;
  readonly #seed: string;
  /** The last attempt begun, failures so far, and when the next attempt is due. */
  attempt = 1;
  failures = 0;
  retryAt: number | null = null;
  /** Checksum of the entry that began that attempt: what it emits goes by this name (SM1). */
  start = "";
  /** Of a step that has to do with budgets. */
  spending: Spending | null = null;
  /** What its attempts have saved last. */
  saved: Saved | null = null;

  constructor(
    key: string,
    name: string,
    fn: StepCall["fn"],
    policy: StepPolicy,
    input: StepCall["input"],
    seed: string,
  ) {
    super(key);
    this.name = name;
    this.fn = fn;
    this.policy = policy;
    this.input = input;
    this.#seed = seed;
    if (policy.spend !== undefined) this.spending = new Spending(policy.spend);
  }

  /** What outside systems may use to recognise a repeated attempt. */
  get idempotencyKey(): string {
    return idempotencyKey(this.#seed, this.key);
  }

  /** What the journal calls it, and its success. */
  get startsAs(): "step.started" | "effect.planned" {
    return "step.started";
  }

  get endsAs(): "step.completed" | "effect.executed" | "effect.compensated" {
    return "step.completed";
  }

  /** What the journal says of it when it is issued. */
  get plan(): object | null {
    const { input } = this;
    if (input === null) return null;
    const { value, digest } = input;
    return (value === undefined ? { attempt: 1, digest } : { attempt: 1, input: value, digest }) satisfies StepStarted;
  }

  /** Repeating it blindly could do harm. */
  get isUnsafe(): boolean {
    return false;
  }

  /** What another call that does the same would have in common with it; `null`: nobody else does it, or it does not matter. */
  sharedAction(_seed: string): string | null {
    return null;
  }

  /** What was tried before is looked for first: so nothing of it may be under way then. */
  get looksFirst(): boolean {
    return false;
  }

  /** The error that leaves open whether it happened, if a person is asked about one. */
  get doubt(): { readonly error: unknown } | null {
    return null;
  }

  /** It was issued in an earlier pass, and the journal has this of it. */
  planned(_payload: unknown): void {}

  /** Something was recorded between its attempts, now or in an earlier pass. */
  marked(_type: string, _payload: unknown): void {}
}

/** A step whose outcome is written by the transaction that its function runs in. */
export class TransactionCall extends StepCall {
  readonly work: TransactionFunction;
  readonly isolation: Isolation;
  /** The transaction, while one is open. */
  sql: Sql | null = null;
  /** Whether its function may return a promise in this store. */
  mayWait = true;

  constructor(
    key: string,
    name: string,
    work: TransactionFunction,
    policy: StepPolicy,
    isolation: Isolation,
    seed: string,
  ) {
    super(key, name, (info) => this.#run(info), policy, null, seed);
    this.work = work;
    this.isolation = isolation;
  }

  #run(info: StepInfo): unknown {
    const value = this.work(this.sql as Sql, info);
    if (!this.mayWait) assertNoPromise(this.name, value);
    return value;
  }
}

export class TimerCall extends OpenCall {
  readonly type = "timer.set";
  /** As first recorded; a recomputed duration does not move it (B44). */
  due: number;
  /** For a duration: it counts from the store's clock when the call is recorded, whatever the time of the body. */
  readonly afterMs: number | null;

  constructor(key: string, time: { readonly due: number } | { readonly afterMs: number }) {
    super(key);
    this.due = "due" in time ? time.due : Number.POSITIVE_INFINITY;
    this.afterMs = "afterMs" in time ? time.afterMs : null;
  }
}

export interface SignalSpec {
  readonly name: string;
  /** Counts from the store's clock when the call is recorded; `null` waits for ever. */
  readonly timeoutMs: number | null;
  readonly fallback: { readonly value: unknown } | null;
  readonly schema: StandardSchema | undefined;
}

export class SignalCall extends OpenCall {
  readonly type = "signal.awaited";
  readonly spec: SignalSpec;
  /** As first recorded. */
  due: number | null = null;

  constructor(key: string, spec: SignalSpec) {
    super(key);
    this.spec = spec;
  }
}

export interface ChildSpec {
  readonly workflow: Workflow;
  readonly options: CallOptions;
  /** Of the input as the body gave it: replay does not ask the schema again (P7). */
  readonly digest: string;
  readonly detached: boolean;
}

export class ChildCall extends OpenCall {
  readonly type = "child.started";
  readonly spec: ChildSpec;
  child: string;
  /** As the child's schema has it, for a call that is to be recorded. */
  input: unknown;
  /** What the child needs before it may begin, for a call that is to be recorded. */
  needs: Needs | null = null;

  constructor(key: string, child: string, input: unknown, spec: ChildSpec) {
    super(key);
    this.child = child;
    this.input = input;
    this.spec = spec;
  }
}

export class ApprovalCall extends OpenCall {
  readonly type = "approval.requested";
  readonly run: string;
  readonly spec: ApprovalSpec;
  /** Of the action, as replay compares it. */
  readonly digest: string;
  /** Opens a vote; `null` for one that cannot be read. */
  readonly read: (row: InboxRow) => CastVote | null;
  /** Those of the run so far. */
  readonly denials: Denials;
  /** As first recorded, and where. */
  request: ApprovalRequested | null = null;
  /** What was decided. */
  record: ApprovalRecord | null = null;
  seq = 0;
  /** What fell due up to then has happened. */
  until = 0;
  /** What falls due next. */
  due: number | null = null;

  constructor(
    key: string,
    run: string,
    spec: ApprovalSpec,
    digest: string,
    read: ApprovalCall["read"],
    denials: Denials,
  ) {
    super(key);
    this.run = run;
    this.spec = spec;
    this.digest = digest;
    this.read = read;
    this.denials = denials;
  }

  /** What these votes have decided; `null` if more are needed. */
  decisionIn(inbox: readonly InboxRow[]): ApprovalDecided | null {
    return this.request === null
      ? null
      : decisionOf(this.run, this.request, votesIn(inbox, this.request.id, this.read));
  }
}

/** An address that an outside system can answer to. */
export class CallbackCall extends OpenCall {
  readonly type = "callback.opened";
  readonly spec: SignalSpec;
  /** As first recorded, as what follows. */
  id: string;
  /** The name of the secret that its token is made with. */
  secret: string | null = null;
  due: number | null = null;

  constructor(key: string, id: string, spec: SignalSpec) {
    super(key);
    this.id = id;
    this.spec = spec;
  }
}

export type Call = StepCall | TimerCall | SignalCall | ChildCall | ApprovalCall | CallbackCall;

/** Rejects without ever being an unhandled rejection: the body may look at it later, or never (P11). */
export function rejectCall(call: Call, error: unknown): void {
  call.promise.catch(() => {});
  call.reject(error);
}

/** A call that needs nothing done in this process. */
export function isWaiting(call: Call): boolean {
  return call.type !== "step.started" || call.retryAt !== null || isRefused(call);
}

/** When a call is due by itself, if ever. */
export function dueOf(call: Call): number | null {
  if (call.type === "step.started") return call.retryAt;
  return call.type === "child.started" ? null : call.due;
}
