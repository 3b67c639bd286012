// Cases from runs
// What a stored run was told becomes the script of a case: the same answers, decisions, signals and times. What it came to is what must not
// come of it again, until somebody says what should.
import { messageOf, PawlError } from "../../base/errors.ts";
import { REDACTED_TAG, REDACTED_TEXT } from "../../base/redacted.ts";
import type { ExportedEntry, ExportedRun } from "../../client/export.ts";
import { publicStatus } from "../../core/transition.ts";
import { alternatives, CASE_STATUSES } from "./final-status.ts";
import { type BadEnd, type EvalCase, type EvalEvent, type EvalExpectations, readEvalCase } from "./read-case.ts";
import { opened } from "./script.ts";

export interface EvalFromRunOptions {
  readonly case_id?: string;
  /** What the run should have come to: "succeeded", "waiting_or_escalated". Default: not what it came to. */
  readonly expect?: string;
  readonly owner?: string;
  /** A day after which somebody should look at the case again: "2027-01-31". */
  readonly expires?: string;
  /** Keep who has decided. Default false: a case needs no names. */
  readonly people?: boolean;
  /** The runs below it, whose calls must be answered, too. */
  readonly children?: readonly ExportedRun[];
}

/** Names of properties that are left out of a case unless somebody says otherwise: what tells of people, and what opens doors. */
export const PERSONAL_NAMES: readonly string[] = [
  "address",
  "apiKey",
  "api_key",
  "authorization",
  "birthday",
  "card",
  "cardNumber",
  "cookie",
  "email",
  "firstName",
  "iban",
  "ip",
  "lastName",
  "mail",
  "password",
  "phone",
  "secret",
  "ssn",
  "token",
];

type Json = Readonly<Record<string, unknown>>;

/** Makes a regression case from an exported run. */
export function evalFromRun(exported: ExportedRun, options: EvalFromRunOptions = {}): EvalCase {
  const { run, entries } = exported;
  const { case_id: id = `regression_${run.workflow}_${run.id.slice(-12)}`, expect, owner, expires } = options;
  const all = [exported, ...(options.children ?? [])].flatMap((one) => eventsOf(one, options.people === true));
  const events = all.sort((a, b) => a.at - b.at).map(({ event }) => event);
  return readEvalCase({
    case_id: id,
    description: `What happened to run ${run.id} of ${run.workflow} ${run.version}, which ${publicStatus(run.state)}.`,
    workflow: run.workflow,
    input: withoutMarks((entries[0]?.value as Json | undefined)?.["input"] ?? null),
    events,
    events_may_be_left: true,
    expected: expect === undefined ? { must_not_end_as: endOf(exported) } : expectationOf(expect),
    status: "draft",
    ...(owner !== undefined && { owner }),
    ...(expires !== undefined && { expires }),
    source: { run: run.id, version: run.version, isRedacted: exported.isRedacted },
  });
}

function expectationOf(expect: string): EvalExpectations {
  if (alternatives(expect).every((one) => (CASE_STATUSES as readonly string[]).includes(one)))
    return { final_status: expect };
  try {
    return JSON.parse(expect) as EvalExpectations;
  } catch (cause) {
    const message = `"${expect}" is nothing that a run can come to. Give ${CASE_STATUSES.join(", ")}, several joined by _or_, or the expectations of a case as JSON.`;
    throw new PawlError("invalid_argument", message, { fields: { field: "expect", allowed: CASE_STATUSES }, cause });
  }
}

/** How it ended; texts that were redacted are left out. */
function endOf({ run, entries }: ExportedRun): BadEnd {
  const status = run.state === "parked" ? "parked" : publicStatus(run.state);
  const last = entries.at(-1);
  if (last?.type === "run.succeeded") return { status, output: withoutMarks(last.value) };
  const failed = last?.type === "run.failed" || last?.type === "run.cancelled";
  const error = failed ? textOf((opened(withoutMarks(last.value)) as { readonly error?: unknown }).error) : null;
  const isTold = error !== null && !error.includes(REDACTED_TEXT);
  return { status, ...(run.stopReason !== null && { stop_reason: run.stopReason }), ...(isTold && { error }) };
}

interface Timed {
  readonly at: number;
  readonly event: EvalEvent;
}

function eventsOf({ entries, run }: ExportedRun, people: boolean): Timed[] {
  const calls = new Map<string, ExportedEntry>();
  return entries.flatMap((entry) => {
    const { type, key, at } = entry;
    const known = calls.get(`${kindOf(type)} ${key}`);
    if (/^(timer\.set|signal\.awaited|step\.started|effect\.planned)$/.test(type))
      calls.set(`${kindOf(type)} ${key}`, entry);
    const event = eventOf(entry, known ?? null, run.deadline === null ? 0 : run.deadline - run.createdAt);
    if (event === null) return [];
    const by = people ? voterIn(entry) : null;
    return [{ at, event: by === null ? event : ({ ...event, by } as EvalEvent) }];
  });
}

function voterIn({ type, value }: ExportedEntry): string | null {
  const { by, decision } = (value ?? {}) as Json;
  return type === "approval.decided" && decision !== "expired" && typeof by === "string" ? by : null;
}

function kindOf(type: string): string {
  return type === "timer.fired" ? "timer" : (type.split(".")[0] ?? "");
}

/** What the case says of an entry; `null`: it follows from the rest. */
function eventOf(
  { type, key, value, at }: ExportedEntry,
  call: ExportedEntry | null,
  deadlineMs: number,
): EvalEvent | null {
  const facts = (value ?? {}) as Json;
  const tool = key ?? "";
  switch (type) {
    case "step.completed":
    case "effect.executed":
      return { type: "tool_success", tool, output: withoutMarks(value) };
    case "step.failed":
      return failureOf(tool, opened(withoutMarks(value)) as FailedStep);
    case "step.started":
      // Its process had died, and nobody knows what the attempt before has done.
      return facts["rerun"] === true ? { type: "crash", tool } : null;
    case "approval.decided":
      return decisionOf(nameOf(tool), String(facts["decision"]));
    case "approval.escalated":
      return isHandoff(facts) ? { type: "approval_timeout", approval_id: nameOf(tool), until: "escalated" } : null;
    case "signal.received":
      return { type: "signal", name: nameOf(tool), payload: withoutMarks(facts["payload"] ?? null) };
    case "timer.fired":
      return { type: "time_passes", time: Math.max(0, at - (call?.at ?? at)) };
    case "run.cancelling":
      if (facts["cause"] === "deadline") return { type: "time_passes", time: deadlineMs };
      return { type: "cancel", ...(facts["compensate"] === true && { compensate: true }) };
    case "run.resolved":
      return {
        type: "resolve",
        choice: String(facts["choice"]),
        ...("value" in facts && { value: withoutMarks(facts["value"]) }),
      };
    default:
      return null;
  }
}

interface FailedStep {
  readonly error: unknown;
  readonly retryAt: number | null;
}

function failureOf(tool: string, { error, retryAt }: FailedStep): EvalEvent | null {
  const { code, cause, name } = (error ?? {}) as { code?: unknown; cause?: unknown; name?: unknown };
  // What a crash or a cancel has done to it is no answer of the tool.
  if (code === "step_interrupted" || code === "run_ended") return null;
  const isUsedUp = code === "max_retries_exceeded";
  const thrown = isUsedUp ? cause : error;
  const message = textOf(thrown);
  return {
    type: "tool_failure",
    tool,
    kind: retryAt !== null || isUsedUp ? "retryable" : "fatal",
    error: {
      message,
      ...(!isUsedUp && typeof code === "string" && { code }),
      ...(typeof name === "string" && { name }),
    },
  };
}

function decisionOf(approval: string, decision: string): EvalEvent | null {
  if (decision === "approved") return { type: "approval_granted", approval_id: approval };
  if (decision === "expired") return { type: "approval_timeout", approval_id: approval, until: "expired" };
  return { type: "approval_denied", approval_id: approval };
}

function isHandoff({ event, action }: Json): boolean {
  return event !== "reminder" && event !== "expiry" && action !== "notify";
}

function nameOf(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1).replace(/#\d+$/, "");
}

function textOf(error: unknown): string {
  const text = messageOf(error);
  return text.trim() === "" ? "It failed." : text;
}

/** Stands for values that were left out, so that the code can go on: something of the same kind, and plainly not the value. */
const PLACEHOLDERS: Readonly<Record<string, unknown>> = {
  string: REDACTED_TEXT,
  number: 0,
  boolean: false,
  null: null,
  array: [],
};

function withoutMarks(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutMarks);
  const [tag, ...others] = Object.keys(value);
  if (tag === REDACTED_TAG && others.length === 0) {
    const kind = String((value as Json)[tag]);
    return kind in PLACEHOLDERS ? PLACEHOLDERS[kind] : {};
  }
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withoutMarks(inner)]));
}
