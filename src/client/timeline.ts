// The timeline of a run
// A pure fold of journal entries into what people ask about: which steps ran, how often and for how long, what the run waits for,
// which children it has. Nothing here is stored; the journal stays the only truth.
import { formatMs } from "../base/duration.ts";
import type { ApprovalDecided, ApprovalEscalated, ApprovalRequested } from "../core/approval-request.ts";
import type { CallbackEnded, CallbackOpened } from "../core/callback.ts";
import type {
  Checkpoint,
  ChildEnded,
  ChildStarted,
  Continued,
  EffectUnknown,
  Ended,
  Entry,
  Forked,
  Parked,
  Resolved,
  RunStarted,
  SignalReceived,
  StatePatched,
  StepFailed,
  StepStarted,
  TimerSet,
} from "../core/journal.ts";

/** "interrupted": a crash hid what became of it, and another attempt followed. "abandoned": the run ended before it did. */
export type AttemptOutcome = "running" | "completed" | "failed" | "interrupted" | "abandoned";

export interface TimelineAttempt {
  readonly attempt: number;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly outcome: AttemptOutcome;
  readonly error?: unknown;
  /** When the next attempt is due, after a failure that is tried again. */
  readonly retryAt?: number;
}

interface TimelineItem {
  /** Position of the entry that began it. */
  readonly seq: number;
  readonly key: string;
  /** The key without its counter and the items of `map` it stands in. */
  readonly name: string;
  readonly generation: number;
  readonly startedAt: number;
  readonly endedAt: number | null;
}

export interface TimelineStep extends TimelineItem {
  /** "unknown": nobody can tell whether an effect happened, and a person is asked. */
  readonly status: "running" | "retrying" | "completed" | "failed" | "unknown" | "abandoned";
  readonly attempts: readonly TimelineAttempt[];
  /** What its attempts have saved: how often, and which of them last, and when. */
  readonly saved?: { readonly count: number; readonly attempt: number; readonly at: number };
  readonly input?: unknown;
  readonly output?: unknown;
  readonly error?: unknown;
}

export interface TimelineWait extends TimelineItem {
  readonly kind: "timer" | "signal" | "approval" | "callback";
  readonly status: "open" | "fired" | "received" | "timed out" | "decided" | "answered" | "failed" | "abandoned";
  readonly due: number | null;
  /** What a signal or an answer brought, the decision about an approval, or why a callback failed. */
  readonly payload?: unknown;
}

export interface TimelineChild extends TimelineItem {
  readonly child: string;
  readonly workflow: string;
  readonly detached: boolean;
  readonly status: "open" | "detached" | "succeeded" | "failed" | "cancelled" | "abandoned";
  /** The output, or the error of a child that did not succeed. */
  readonly value?: unknown;
}

/** What happened to the run itself. */
export interface TimelineMark {
  readonly seq: number;
  readonly at: number;
  readonly kind:
    | "note"
    | "state"
    | "cost"
    | "refused"
    | "patched"
    | "version"
    | "parked"
    | "resolved"
    | "forked"
    | "cancelling"
    | "continued"
    | "escalated";
  readonly text: string;
  readonly payload: unknown;
}

export interface Timeline {
  readonly workflow: string | null;
  readonly version: string | null;
  readonly input: unknown;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly status: "unfinished" | "succeeded" | "failed" | "cancelled";
  readonly stopReason: string | null;
  readonly output?: unknown;
  readonly error?: unknown;
  /** How often the run has gone on with `continueAs`. */
  readonly generation: number;
  readonly steps: readonly TimelineStep[];
  readonly waits: readonly TimelineWait[];
  readonly children: readonly TimelineChild[];
  readonly notes: readonly TimelineMark[];
  /** The last parking, if nobody has decided on it yet. */
  readonly parked: Parked | null;
  readonly entries: number;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type StepDraft = Writable<Omit<TimelineStep, "attempts">> & { attempts: Writable<TimelineAttempt>[] };
type WaitDraft = Writable<TimelineWait>;
type ChildDraft = Writable<TimelineChild>;

/** Folds a journal, whole or from its beginning up to any point. */
export function timeline(entries: readonly Entry[]): Timeline {
  const fold = new Fold();
  for (const entry of entries) fold.add(entry);
  return fold.result();
}

class Fold {
  readonly #head: Writable<Omit<Timeline, "steps" | "waits" | "children" | "notes">> = {
    workflow: null,
    version: null,
    input: undefined,
    startedAt: null,
    endedAt: null,
    status: "unfinished",
    stopReason: null,
    generation: 0,
    parked: null,
    entries: 0,
  };
  readonly #steps: StepDraft[] = [];
  readonly #waits: WaitDraft[] = [];
  readonly #children: ChildDraft[] = [];
  readonly #notes: TimelineMark[] = [];
  // Keys are unique within a generation only, and per kind of call.
  #open = new Map<string, StepDraft | WaitDraft | ChildDraft>();

  result(): Timeline {
    return { ...this.#head, steps: this.#steps, waits: this.#waits, children: this.#children, notes: this.#notes };
  }

  add(entry: Entry): void {
    this.#head.entries += 1;
    switch (entry.type) {
      case "run.started":
        this.#started(entry as Entry<RunStarted>);
        break;
      case "step.started":
      case "effect.planned":
        this.#stepStarted(entry as Entry<StepStarted>);
        break;
      case "step.completed":
      case "effect.executed":
      case "effect.compensated":
        this.#stepCompleted(entry);
        break;
      case "step.failed":
        this.#stepFailed(entry as Entry<StepFailed>);
        break;
      case "checkpoint":
        this.#stepSaved(entry as Entry<Checkpoint>);
        break;
      case "effect.unknown":
        this.#stepUnknown(entry as Entry<EffectUnknown>);
        break;
      case "timer.set":
      case "signal.awaited":
        this.#waitOpened(entry as Entry<Partial<TimerSet> | null>);
        break;
      case "timer.fired":
        this.#timerFired(entry as Entry<{ readonly wait?: boolean } | null>);
        break;
      case "signal.received":
        this.#signalReceived(entry as Entry<SignalReceived>);
        break;
      case "child.started":
        this.#childStarted(entry as Entry<ChildStarted>);
        break;
      case "child.ended":
        this.#childEnded(entry as Entry<ChildEnded>);
        break;
      case "approval.requested":
        this.#approvalRequested(entry as Entry<ApprovalRequested>);
        break;
      case "approval.decided":
        this.#approvalDecided(entry as Entry<ApprovalDecided>);
        break;
      case "callback.opened":
        this.#callbackOpened(entry as Entry<CallbackOpened>);
        break;
      case "callback.ended":
        this.#callbackEnded(entry as Entry<CallbackEnded>);
        break;
      case "run.succeeded":
      case "run.failed":
      case "run.cancelled":
        this.#ended(entry);
        break;
      default:
        this.#marked(entry);
    }
  }

  #started({ at, payload }: Entry<RunStarted>): void {
    Object.assign(this.#head, {
      workflow: payload.workflow,
      version: payload.version,
      input: payload.input,
      startedAt: at,
    });
  }

  #item({ seq, at, key }: Entry): TimelineItem {
    const text = key ?? "";
    return { seq, key: text, name: nameOf(text), generation: this.#head.generation, startedAt: at, endedAt: null };
  }

  #find<T>(kind: string, entry: Entry): T | undefined {
    return this.#open.get(`${kind} ${entry.key}`) as T | undefined;
  }

  #stepStarted(entry: Entry<StepStarted>): void {
    const { at, payload } = entry;
    const attempt: Writable<TimelineAttempt> = {
      attempt: payload?.attempt ?? 1,
      startedAt: at,
      endedAt: null,
      outcome: "running",
    };
    const known = this.#find<StepDraft>("step", entry);
    if (known === undefined) {
      const step: StepDraft = { ...this.#item(entry), status: "running", attempts: [attempt] };
      if (payload?.input !== undefined) step.input = payload.input;
      this.#steps.push(step);
      this.#open.set(`step ${entry.key}`, step);
      return;
    }
    const last = known.attempts.at(-1);
    if (last?.outcome === "running") Object.assign(last, { outcome: "interrupted", endedAt: null });
    known.attempts.push(attempt);
    known.status = "running";
  }

  #stepCompleted(entry: Entry): void {
    const step = this.#find<StepDraft>("step", entry);
    if (step === undefined) return;
    Object.assign(step, { status: "completed", endedAt: entry.at, output: entry.payload });
    // Somebody may have said that it happened in spite of its error.
    delete step.error;
    closeAttempt(step, entry.at, { outcome: "completed" });
  }

  #stepFailed(entry: Entry<StepFailed>): void {
    const step = this.#find<StepDraft>("step", entry);
    if (step === undefined) return;
    const { error, retryAt } = entry.payload;
    closeAttempt(step, entry.at, { outcome: "failed", error, ...(retryAt === null ? {} : { retryAt }) });
    if (retryAt === null) Object.assign(step, { status: "failed", endedAt: entry.at, error });
    else step.status = "retrying";
  }

  #stepSaved({ at, key, payload }: Entry<Checkpoint>): void {
    const step = this.#open.get(`step ${key}`) as StepDraft | undefined;
    if (step !== undefined) step.saved = { count: 1 + (step.saved?.count ?? 0), attempt: payload.attempt, at };
  }

  #stepUnknown(entry: Entry<EffectUnknown>): void {
    const step = this.#find<StepDraft>("step", entry);
    if (step === undefined) return;
    const { error } = entry.payload;
    closeAttempt(step, entry.at, { outcome: "interrupted" });
    Object.assign(step, { status: "unknown", ...(error !== undefined && { error }) });
  }

  #waitOpened(entry: Entry<Partial<TimerSet> | null>): void {
    const kind = entry.type === "timer.set" ? "timer" : "signal";
    const wait: WaitDraft = { ...this.#item(entry), kind, status: "open", due: entry.payload?.due ?? null };
    this.#waits.push(wait);
    this.#open.set(`${kind} ${entry.key}`, wait);
  }

  /** Also the end of a wait for a signal that did not come in time. */
  #timerFired(entry: Entry<{ readonly wait?: boolean } | null>): void {
    const isTimeout = entry.payload?.wait === true;
    const wait = this.#find<WaitDraft>(isTimeout ? "signal" : "timer", entry);
    if (wait !== undefined) Object.assign(wait, { status: isTimeout ? "timed out" : "fired", endedAt: entry.at });
  }

  #signalReceived(entry: Entry<SignalReceived>): void {
    const wait = this.#find<WaitDraft>("signal", entry);
    if (wait !== undefined)
      Object.assign(wait, { status: "received", endedAt: entry.at, payload: entry.payload.payload });
  }

  #approvalRequested(entry: Entry<ApprovalRequested>): void {
    const wait: WaitDraft = { ...this.#item(entry), kind: "approval", status: "open", due: entry.payload.expiresAt };
    this.#waits.push(wait);
    this.#open.set(`approval ${entry.key}`, wait);
  }

  #approvalDecided(entry: Entry<ApprovalDecided>): void {
    const wait = this.#find<WaitDraft>("approval", entry);
    if (wait !== undefined) Object.assign(wait, { status: "decided", endedAt: entry.at, payload: entry.payload });
  }

  #callbackOpened(entry: Entry<CallbackOpened>): void {
    const wait: WaitDraft = { ...this.#item(entry), kind: "callback", status: "open", due: entry.payload.due };
    this.#waits.push(wait);
    this.#open.set(`callback ${entry.key}`, wait);
  }

  #callbackEnded(entry: Entry<CallbackEnded>): void {
    const wait = this.#find<WaitDraft>("callback", entry);
    if (wait !== undefined) Object.assign(wait, { endedAt: entry.at, ...callbackEnd(entry.payload) });
  }

  #childStarted(entry: Entry<ChildStarted>): void {
    const { child, workflow, detached } = entry.payload;
    const draft: ChildDraft = {
      ...this.#item(entry),
      child,
      workflow,
      detached,
      status: detached ? "detached" : "open",
    };
    this.#children.push(draft);
    this.#open.set(`child ${entry.key}`, draft);
  }

  #childEnded(entry: Entry<ChildEnded>): void {
    const { status, value } = entry.payload;
    const child = this.#find<ChildDraft>("child", entry);
    if (child !== undefined) Object.assign(child, { status, value, endedAt: entry.at });
  }

  #ended(entry: Entry): void {
    const { at, type, payload } = entry;
    this.#abandonOpen(at);
    this.#head.endedAt = at;
    this.#head.parked = null;
    if (type === "run.succeeded")
      Object.assign(this.#head, { status: "succeeded", stopReason: "completed", output: payload });
    else {
      const { error, stopReason } = payload as Ended;
      Object.assign(this.#head, { status: type === "run.failed" ? "failed" : "cancelled", error, stopReason });
    }
  }

  /** What is open when a run or a generation ends never gets an outcome (P12). */
  #abandonOpen(at: number): void {
    for (const item of this.#open.values()) {
      if (item.endedAt !== null || ("detached" in item && item.detached)) continue;
      Object.assign(item, { status: "abandoned", endedAt: at });
      if ("attempts" in item && item.attempts.at(-1)?.outcome === "running")
        closeAttempt(item, at, { outcome: "abandoned" });
    }
    this.#open = new Map();
  }

  #marked({ seq, at, type, key, payload }: Entry): void {
    if (type === "run.parked") this.#head.parked = payload as Parked;
    if (type === "run.resolved") this.#head.parked = null;
    if (type === "version.changed") this.#head.version = versionIn(payload) ?? this.#head.version;
    if (type === "run.continued") {
      this.#abandonOpen(at);
      this.#head.generation = (payload as Continued).generation;
    }
    const kind = MARK_KINDS[type];
    if (kind !== undefined) this.#notes.push({ seq, at, kind, text: markText(kind, key, payload), payload });
  }
}

function callbackEnd(ended: CallbackEnded): Pick<TimelineWait, "status" | "payload"> {
  if (ended.status === "expired") return { status: "timed out" };
  return { status: ended.status, payload: ended.status === "failed" ? ended.reason : ended.value };
}

function closeAttempt(step: StepDraft, at: number, end: Partial<TimelineAttempt>): void {
  const last = step.attempts.at(-1);
  if (last !== undefined) Object.assign(last, { endedAt: at, ...end });
}

/** `map/0/charge#2` is the second use of "charge" in the first item of a map. */
function nameOf(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1).replace(/#\d+$/, "");
}

const MARK_KINDS: Readonly<Record<string, TimelineMark["kind"]>> = {
  note: "note",
  "state.patched": "state",
  cost: "cost",
  "step.spent": "cost",
  "step.refused": "refused",
  patched: "patched",
  "version.changed": "version",
  "run.parked": "parked",
  "run.resolved": "resolved",
  "run.forked": "forked",
  "run.cancelling": "cancelling",
  "run.continued": "continued",
  "approval.escalated": "escalated",
};

function markText(kind: TimelineMark["kind"], key: string | null, payload: unknown): string {
  const facts = (payload ?? {}) as Record<string, unknown>;
  switch (kind) {
    case "note":
      return String(facts.text ?? "");
    case "state":
      return `${key} = ${short((payload as StatePatched).value)}`;
    case "cost":
      return `${key === null ? "" : `${key}: `}${Object.entries(facts)
        .map(([unit, amount]) => `${amount} ${unit}`)
        .join(", ")}`;
    case "refused":
      return `${key}: ${facts.used} of ${facts.limit} ${facts.unit} are used, and it needs ${facts.asked}`;
    case "patched":
      return String(key ?? "");
    case "version":
      return versionIn(payload) ?? "";
    case "parked":
      return (payload as Parked).message;
    case "resolved":
      return resolvedText(payload as Resolved);
    case "forked":
      return `from run ${(payload as Forked).from}, with its first ${(payload as Forked).at} entries${facts.effects === undefined ? "" : `; dry (${facts.effects})`}`;
    case "cancelling":
      return String(facts.reason || facts.cause || "");
    case "escalated":
      return escalatedText(key, payload as ApprovalEscalated);
    case "continued":
      return continuedText(payload as Continued);
  }
}

/** The next generation, and who has made it if it was not the body. */
function continuedText({ generation, cause, version, by, reason }: Continued): string {
  const next = `as generation ${generation}`;
  if (cause === undefined) return next;
  return `${next} by ${cause}${version === undefined ? "" : ` to ${version}`}, ${by}: ${reason}`;
}

function escalatedText(key: string | null, { event, level, action, from, to, waitedMs }: ApprovalEscalated): string {
  const what = `approval "${key}" has waited ${formatMs(waitedMs)}`;
  switch (event) {
    case "reminder":
      return `${what}: a reminder`;
    case "timeout":
      return `${what}: those who were asked first are out of time`;
    case "expiry":
      return `${what}: it has expired`;
    case "level":
      return `${what}: level ${level}, ${action}${from === undefined ? "" : ` from ${from.join(", ")} to ${to.join(", ")}`}`;
  }
}

/** A decision on one line: "approved by ann after 3h 00m: fine". */
export function decisionText({ decision, by, waitedMs, reason }: ApprovalDecided): string {
  const who = by === null ? "" : ` by ${by}`;
  return `${decision.replace("_", " ")}${who} after ${formatMs(waitedMs)}${reason === undefined ? "" : `: ${reason}`}`;
}

function resolvedText({ choice, value }: Resolved): string {
  return value === undefined ? choice : `${choice} with ${short(value)}`;
}

function versionIn(payload: unknown): string | null {
  if (typeof payload === "string") return payload;
  const { to, version } = (payload ?? {}) as { readonly to?: unknown; readonly version?: unknown };
  const found = to ?? version;
  return typeof found === "string" ? found : null;
}

/** A value on one line, cut if it is long. */
export function short(value: unknown, max = 80): string {
  const text = jsonOf(value) ?? String(value);
  return text.length > max ? `${text.slice(0, max - 1)}…` : text;
}

function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
