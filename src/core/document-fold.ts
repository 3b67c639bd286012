// The fold behind a state document
// Takes the entries of a journal one by one and keeps, for each phase and step, what a document says of it. Values that could not be opened
// may be missing: then the document says less, and nothing wrong.
import { messageWithCause } from "../base/errors.ts";
import type { ApprovalDecided, ApprovalRequested } from "./approval-request.ts";
import type { CallbackOpened } from "./callback.ts";
import type { ChildEnded, ChildStarted, Continued, Ended, Entry, Parked, RunStarted, StepFailed } from "./journal.ts";
import { isOutline, isOwnKey, markedBy, OUTLINE, type Outline, type PhaseMark, subjectOf } from "./outline.ts";
import type { DocumentStatus } from "./status-words.ts";

/** What is known of one phase or step. */
export interface Line {
  status: DocumentStatus;
  startedAt?: number;
  completedAt?: number;
  attempts: number;
  skipped?: string;
  error?: string;
  input?: unknown;
  output?: { readonly value: unknown };
  doneBy?: string;
}

export interface OpenWait {
  readonly kind: "timer" | "signal" | "approval" | "callback" | "child";
  readonly key: string;
  readonly name: string;
  readonly due: number | null;
}

export interface ApprovalLine {
  readonly request: ApprovalRequested;
  decided: ApprovalDecided | null;
}

const NOT_ON_THE_WAY = "not on this run's way";
const SATISFIED = "already satisfied";

export class DocumentFold {
  started: RunStarted | null = null;
  startedAt: number | null = null;
  updatedAt: number | null = null;
  /** How many entries are in it. */
  sequence = 0;
  generation = 0;
  input: unknown;
  outline: Outline | null = null;
  /** What an import, an edit or a migration said was done before. */
  adopted: unknown;
  parked: Parked | null = null;
  ended: { readonly type: Entry["type"]; readonly payload: unknown } | null = null;
  isCompensating = false;
  /** By phase, or `phase.step`. */
  readonly lines: Map<string, Line> = new Map();
  readonly waits: Map<string, OpenWait> = new Map();
  readonly approvals: Map<string, ApprovalLine> = new Map();
  readonly state: Map<string, unknown> = new Map();

  add(entry: Entry): void {
    this.sequence = entry.seq + 1;
    this.updatedAt = entry.at;
    this.#run(entry);
    if (entry.key === null) return;
    if (entry.type === "state.patched") return this.#patched(entry.key, valueIn(entry.payload), entry.at);
    this.#call(entry, entry.key);
  }

  #run({ type, payload, at }: Entry): void {
    switch (type) {
      case "run.started":
        this.started = payload as RunStarted | null;
        this.startedAt = at;
        this.#begin(payload as RunStarted | null);
        break;
      case "run.continued":
        this.#continue(payload as Continued | null);
        break;
      case "run.parked":
        this.parked = payload as Parked | null;
        break;
      case "run.resolved":
        this.parked = null;
        break;
      case "run.compensating":
        this.isCompensating = true;
        break;
      case "run.succeeded":
      case "run.failed":
      case "run.cancelled":
        this.ended = { type, payload };
        this.waits.clear();
        break;
      default:
    }
  }

  #begin(facts: { readonly input?: unknown; readonly adopted?: unknown } | null): void {
    this.input = facts?.input;
    this.adopted = facts?.adopted;
  }

  /** A generation names its steps anew; what was said before counts if it was handed on. */
  #continue(continued: Continued | null): void {
    this.lines.clear();
    this.waits.clear();
    this.generation = continued?.generation ?? this.generation + 1;
    this.parked = null;
    this.state.clear();
    this.outline = null;
    // Of what the faces keep there nothing holds any more: what was adopted does.
    for (const [key, value] of Object.entries(continued?.state ?? {}))
      if (!isOwnKey(key) || key === OUTLINE) this.#patched(key, value, this.updatedAt ?? 0);
    this.#begin(continued);
  }

  #patched(key: string, value: unknown, at: number): void {
    if (value === undefined || value === null) this.state.delete(key);
    else this.state.set(key, value);
    if (key === OUTLINE && isOutline(value)) this.outline = value;
    const marked = markedBy(key);
    if (marked !== null && value !== null && typeof value === "object") this.#mark(marked, value as PhaseMark, at);
  }

  #mark(at: string, mark: PhaseMark, time: number): void {
    if (mark.status === "pending") return void this.lines.delete(at);
    const line = this.#line(at);
    if (mark.status === "in_progress") return this.#started(line, time);
    if (mark.status === "done") this.#done(line, time);
    if (mark.status === "failed") line.status = "failed";
    if (mark.skipped !== undefined) line.skipped = mark.skipped;
    if (mark.error !== undefined) line.error = mark.error;
    if (mark.output !== undefined) line.output = { value: mark.output };
    if (mark.by !== undefined) line.doneBy = mark.by;
  }

  #call(entry: Entry, key: string): void {
    const { type, payload, at } = entry;
    switch (type) {
      case "step.started":
      case "effect.planned":
        return this.#began(key, payload, at);
      case "step.completed":
      case "effect.executed":
        return this.#completed(key, payload, at);
      case "step.failed":
        if ((payload as StepFailed | null)?.retryAt === null) this.#failed(key, (payload as StepFailed).error);
        return;
      case "timer.set":
      case "signal.awaited":
      case "callback.opened":
        return this.#waits(type, key, payload as { readonly due?: number | null } | null);
      case "timer.fired":
        return void this.waits.delete(`${isTimeout(payload) ? "signal" : "timer"} ${key}`);
      case "signal.received":
        return void this.waits.delete(`signal ${key}`);
      case "callback.ended":
        return void this.waits.delete(`callback ${key}`);
      case "child.started":
        return this.#childStarted(key, payload as ChildStarted, at);
      case "child.ended":
        return this.#childEnded(key, payload as ChildEnded, at);
      case "approval.requested":
        return this.#requested(key, payload as ApprovalRequested, at);
      case "approval.decided":
        return this.#decided(key, payload as ApprovalDecided, at);
      default:
    }
  }

  #began(key: string, payload: unknown, at: number): void {
    const { at: subject } = subjectOf(key);
    const line = this.#line(this.outline === null ? key : subject);
    this.#started(line, at);
    const input = (payload as { readonly input?: unknown } | null)?.input;
    if (input !== undefined) line.input = input;
    if (subjectOf(key).question === null || this.outline === null) line.attempts++;
  }

  #completed(key: string, payload: unknown, at: number): void {
    const { at: subject, question } = subjectOf(key);
    if (this.outline === null || question === null) {
      const line = this.#line(this.outline === null ? key : subject);
      this.#done(line, at);
      line.output = { value: payload };
      return;
    }
    const isSkipped = question === "when" ? payload === false : question === "satisfied" && payload === true;
    if (!isSkipped) return;
    const line = this.#line(subject);
    this.#done(line, at);
    line.skipped = question === "when" ? NOT_ON_THE_WAY : SATISFIED;
  }

  #failed(key: string, error: unknown): void {
    const line = this.#line(this.outline === null ? key : subjectOf(key).at);
    line.status = "failed";
    line.error = messageWithCause(error);
  }

  #waits(type: Entry["type"], key: string, payload: { readonly due?: number | null } | null): void {
    const kind = type === "timer.set" ? "timer" : type === "signal.awaited" ? "signal" : "callback";
    const name = kind === "callback" ? ((payload as CallbackOpened | null)?.id ?? key) : subjectOf(key).at;
    this.waits.set(`${kind} ${key}`, { kind, key, name, due: payload?.due ?? null });
  }

  #childStarted(key: string, { child, detached }: ChildStarted, at: number): void {
    if (detached) return;
    this.waits.set(`child ${key}`, { kind: "child", key, name: child, due: null });
    if (this.outline !== null) this.#began(key, null, at);
  }

  #childEnded(key: string, { status, value }: ChildEnded, at: number): void {
    this.waits.delete(`child ${key}`);
    if (this.outline === null) return;
    if (status === "succeeded") this.#completed(key, value, at);
    else this.#failed(key, value);
  }

  #requested(key: string, request: ApprovalRequested, at: number): void {
    this.approvals.set(request.id, { request, decided: null });
    this.waits.set(`approval ${key}`, { kind: "approval", key, name: request.name, due: request.expiresAt });
    if (this.outline !== null) this.#began(key, null, at);
  }

  #decided(key: string, decided: ApprovalDecided, at: number): void {
    this.waits.delete(`approval ${key}`);
    const line = this.approvals.get(decided.id);
    if (line !== undefined) line.decided = decided;
    if (this.outline === null) return;
    if (isGoodEnd(line?.request, decided)) this.#completed(key, decisionOf(decided), at);
    else this.#failed(key, { message: decisionText(decided) });
  }

  #line(at: string): Line {
    let line = this.lines.get(at);
    if (line === undefined) {
      line = { status: "pending", attempts: 0 };
      this.lines.set(at, line);
    }
    return line;
  }

  #started(line: Line, at: number): void {
    line.status = "in_progress";
    line.startedAt ??= at;
    delete line.completedAt;
    delete line.error;
    delete line.skipped;
    delete line.output;
  }

  #done(line: Line, at: number): void {
    line.status = "done";
    line.completedAt = at;
    delete line.error;
  }

  /** What the run ended with: its error, or its result. */
  get end(): { readonly result?: unknown; readonly error?: unknown; readonly stopReason?: string } {
    if (this.ended === null) return {};
    if (this.ended.type === "run.succeeded") return { result: this.ended.payload, stopReason: "completed" };
    const { error, stopReason } = (this.ended.payload ?? {}) as Partial<Ended>;
    return { error, ...(stopReason !== undefined && { stopReason }) };
  }
}

function valueIn(payload: unknown): unknown {
  return (payload as { readonly value?: unknown } | null)?.value;
}

function isTimeout(payload: unknown): boolean {
  return (payload as { readonly wait?: unknown } | null)?.wait === true;
}

/** Where a workflow branches on what people say, a "no" is an answer like any other. */
function isGoodEnd(request: ApprovalRequested | undefined, { decision }: ApprovalDecided): boolean {
  if (decision === "approved") return true;
  const rules = { denied: request?.onDenied, expired: request?.onExpired, changes_requested: request?.onChanges };
  return rules[decision as keyof typeof rules] === "branch";
}

function decisionOf({ decision, by, reason }: ApprovalDecided) {
  return { decision, by, ...(reason !== undefined && { reason }) };
}

function decisionText({ decision, by, reason }: ApprovalDecided): string {
  const who = by === null ? "" : ` by ${by}`;
  return `${decision.replace("_", " ")}${who}${reason === undefined ? "" : `: ${reason}`}`;
}
