// The trace of a run
// A fold of its journal into spans, each told when it is over: attempts of steps and effects, approvals, waits, and at last the run itself. Pure:
// whoever reads the same entries gets the same spans, ids included.
//
//   RT1. A span is told once, by the entry that ends it. Whoever comes later reads what was before without telling it.
//   RT2. Nothing of what runs were given or have returned is in a span, unless content was asked for; nor what errors say of it.
import { readProperty } from "../base/errors.ts";
import type { ApprovalDecided, ApprovalEscalated, ApprovalRequested } from "../core/approval-request.ts";
import type { EffectPlanned, Ended, EntryType, Parked, StepFailed, StepStarted } from "../core/journal.ts";
import type { ObservedEntry, ObservedRun } from "../core/observer.ts";
import { UNDO_SUFFIX } from "../core/undoable-call.ts";
import { modelAttributes, toolAttributes } from "./gen-ai.ts";
import type { Attributes, SpanData, SpanEvent } from "./span-data.ts";
import { callSpanId, runSpanId } from "./span-ids.ts";

interface OpenSpan {
  readonly kind: Exclude<SpanData["kind"], "run">;
  readonly name: string;
  readonly start: string;
  readonly startAt: number;
  readonly attributes: Attributes;
  readonly events: readonly SpanEvent[];
  /** Of effects, which later attempts need again. */
  readonly plan: EffectPlanned | null;
}

/** What an entry of each type begins to wait for, and what ends that. */
const WAITS: Readonly<Partial<Record<EntryType, string>>> = {
  "timer.set": "timer",
  "signal.awaited": "signal",
  "callback.opened": "callback",
  "child.started": "child",
};

const WAIT_ENDS: ReadonlySet<EntryType> = new Set<EntryType>([
  "timer.fired",
  "signal.received",
  "callback.ended",
  "child.ended",
]);

const RUN_EVENTS: Readonly<Partial<Record<EntryType, string>>> = {
  "run.started": "run_started",
  "run.continued": "run_continued",
  "run.resolved": "run_resolved",
  "run.cancelling": "run_cancelling",
  "run.compensating": "run_compensating",
  "run.forked": "run_forked",
  "version.changed": "version_changed",
  "step.refused": "budget_refused",
};

export class RunTrace {
  readonly #run: ObservedRun;
  readonly #hasContent: boolean;
  readonly #open = new Map<string, OpenSpan>();
  readonly #events: SpanEvent[] = [];

  constructor(run: ObservedRun, hasContent: boolean) {
    this.#run = run;
    this.#hasContent = hasContent;
  }

  /** The spans that are over with this entry. */
  take(entry: ObservedEntry): SpanData[] {
    const { type, key, at, payload } = entry;
    const event = RUN_EVENTS[type];
    if (event !== undefined) this.#note(event, at, key === null ? {} : { "pawl.step.key": key });
    switch (type) {
      case "run.parked":
        this.#note("run_parked", at, { "pawl.parked.reason": (payload as Parked).reason });
        return [];
      case "run.continued":
        return this.#closeAll(at);
      case "run.succeeded":
      case "run.failed":
      case "run.cancelled":
        return [...this.#closeAll(at), this.#ended(type.slice("run.".length), at, payload)];
      default:
        return key === null ? [] : this.#takeCall(entry, key);
    }
  }

  #takeCall(entry: ObservedEntry, key: string): SpanData[] {
    const { type, at, payload } = entry;
    switch (type) {
      case "step.started":
      case "effect.planned":
        return this.#begin(entry, key);
      case "step.reserved":
        return this.#restart(entry, key);
      case "step.completed":
      case "effect.executed":
      case "effect.compensated":
        return this.#end(key, at, null, this.#resultOf(key, payload), [this.#resultEvent(key, at)]);
      case "step.failed":
        return this.#failed(key, at, payload as StepFailed);
      case "effect.unknown":
        return this.#end(key, at, "unknown_outcome", { "pawl.step.outcome": "unknown" }, [
          { name: "effect_unknown", at },
        ]);
      case "checkpoint":
        this.#mark(key, { name: "checkpoint", at, attributes: { "pawl.step.key": key } });
        return [];
      case "step.spent":
        this.#describe(key, spentAttributes(payload));
        return [];
      case "approval.requested":
        return this.#asked(entry, key, payload as ApprovalRequested);
      case "approval.escalated":
        this.#mark(`approval:${key}`, escalated(at, payload as ApprovalEscalated));
        return [];
      case "approval.decided":
        return this.#decided(key, at, payload as ApprovalDecided);
      default:
        if (type in WAITS) return this.#await(entry, key);
        return WAIT_ENDS.has(type) ? this.#end(`wait:${key}`, at, null, {}, []) : [];
    }
  }

  // Attempts

  #begin(entry: ObservedEntry, key: string): SpanData[] {
    const { type, at, hash, payload } = entry;
    const before = this.#open.get(key);
    const attempt = type === "effect.planned" ? 1 : ((payload as StepStarted)?.attempt ?? 1);
    // A crash has hidden how the one before it ended.
    const interrupted =
      before === undefined ? [] : this.#end(key, at, "interrupted", { "pawl.step.outcome": "interrupted" }, []);
    const plan = type === "effect.planned" ? (payload as EffectPlanned) : (this.#plans.get(key) ?? null);
    if (plan !== null) this.#plans.set(key, plan);
    const isUndo = key.endsWith(UNDO_SUFFIX);
    this.#open.set(key, {
      kind: plan === null ? "step" : "effect",
      name: key,
      start: hash,
      startAt: at,
      plan,
      attributes: {
        "pawl.step.attempt": attempt,
        ...(isUndo && { "pawl.step.undo": true }),
        ...((payload as StepStarted)?.rerun === true && { "pawl.step.rerun": true }),
        ...(plan !== null && planAttributes(plan)),
      },
      events: [{ name: "step_started", at, attributes: { "pawl.step.attempt": attempt } }],
    });
    return interrupted;
  }

  /** Of effects that were planned in this generation: attempts after the first do not say it again. */
  readonly #plans = new Map<string, EffectPlanned>();

  /** A budget had no room before: the attempt begins only now. */
  #restart({ hash, at }: ObservedEntry, key: string): SpanData[] {
    const open = this.#open.get(key);
    if (open !== undefined) this.#open.set(key, { ...open, start: hash, startAt: at });
    return [];
  }

  #failed(key: string, at: number, { error, retryAt }: StepFailed): SpanData[] {
    const code = errorType(error);
    const next: SpanEvent[] =
      retryAt === null ? [] : [{ name: "retry_scheduled", at, attributes: { "pawl.retry.delay_ms": retryAt - at } }];
    const outcome = { "pawl.step.outcome": retryAt === null ? "failed" : "retried", "error.type": code };
    return this.#end(key, at, code, outcome, next);
  }

  #resultOf(key: string, value: unknown): Attributes {
    const content = this.#hasContent;
    const what = modelAttributes(value, content) ?? toolAttributes(key, value, content) ?? {};
    const isTool = what["gen_ai.operation.name"] === "execute_tool";
    const plan = this.#open.get(key)?.plan ?? null;
    return {
      "pawl.step.outcome": "completed",
      ...what,
      ...(isTool && plan === null && { "pawl.policy.decision": "not_required", "pawl.effect.key": key }),
    };
  }

  #resultEvent(key: string, at: number): SpanEvent {
    const isTool = this.#open.get(key)?.kind === "effect" || toolAttributes(key, null, false) !== null;
    return { name: isTool ? "tool_result" : "step_result", at };
  }

  // Approvals and waits

  #asked(
    { at, hash }: ObservedEntry,
    key: string,
    { id, name, risk, action, policyVersion }: ApprovalRequested,
  ): SpanData[] {
    this.#open.set(`approval:${key}`, {
      kind: "approval",
      name: `approval ${name}`,
      start: hash,
      startAt: at,
      plan: null,
      attributes: {
        "pawl.approval.id": id,
        "pawl.approval.risk": risk,
        "gen_ai.tool.name": action.tool,
        ...(policyVersion !== null && { "pawl.policy.version": policyVersion }),
      },
      events: [{ name: "approval_requested", at }],
    });
    return [];
  }

  #decided(key: string, at: number, { decision, level }: ApprovalDecided): SpanData[] {
    const name = decision === "expired" ? "approval_timeout" : "approval_decided";
    const attributes = { "pawl.policy.decision": decision, "pawl.approval.level": level };
    return this.#end(`approval:${key}`, at, null, attributes, [{ name, at }]);
  }

  #await({ type, at, hash }: ObservedEntry, key: string): SpanData[] {
    const kind = WAITS[type] as string;
    const attributes = { "pawl.wait.kind": kind };
    const name = `wait ${kind} ${key}`;
    this.#open.set(`wait:${key}`, { kind: "wait", name, start: hash, startAt: at, plan: null, attributes, events: [] });
    return [];
  }

  // Ends

  #end(
    slot: string,
    at: number,
    error: string | null,
    attributes: Attributes,
    events: readonly SpanEvent[],
  ): SpanData[] {
    const open = this.#open.get(slot);
    if (open === undefined) return [];
    this.#open.delete(slot);
    return [
      {
        kind: open.kind,
        name: open.name,
        spanId: callSpanId(this.#run.id, open.start),
        parentId: runSpanId(this.#run.id),
        startAt: open.startAt,
        endAt: at,
        attributes: {
          ...this.#common,
          "pawl.step.key": slot.replace(/^(approval|wait):/, ""),
          ...open.attributes,
          ...attributes,
        },
        events: [...open.events, ...events],
        error,
      },
    ];
  }

  /** What is under way when the run ends or begins anew. */
  #closeAll(at: number): SpanData[] {
    const spans = [...this.#open.keys()].flatMap((slot) =>
      this.#end(slot, at, null, { "pawl.step.outcome": "abandoned" }, []),
    );
    this.#plans.clear();
    return spans;
  }

  #ended(status: string, at: number, payload: unknown): SpanData {
    const { id, workflow, parent, origin, createdAt } = this.#run;
    const { error, stopReason } =
      status === "succeeded" ? { error: null, stopReason: "completed" } : (payload as Ended);
    const code = status === "failed" ? errorType(error) : null;
    return {
      kind: "run",
      name: `run ${workflow}`,
      spanId: runSpanId(id),
      parentId: parent === null ? null : runSpanId(parent.run),
      startAt: createdAt,
      endAt: at,
      attributes: {
        ...this.#common,
        "pawl.run.status": status,
        "pawl.run.stop_reason": stopReason,
        ...(origin !== null && { "pawl.run.origin": origin }),
        ...(code !== null && { "error.type": code }),
      },
      events: [...this.#events, { name: "run_ended", at, attributes: { "pawl.run.stop_reason": stopReason } }],
      error: code,
    };
  }

  get #common(): Attributes {
    const { id, workflow, version, traceId } = this.#run;
    return {
      "pawl.run.id": id,
      "pawl.workflow.name": workflow,
      "pawl.workflow.version": version,
      "pawl.trace.id": traceId,
      "pawl.redaction": this.#hasContent ? "content" : "no_content",
    };
  }

  #note(name: string, at: number, attributes: Attributes): void {
    this.#events.push({ name, at, attributes });
  }

  #mark(slot: string, event: SpanEvent): void {
    const open = this.#open.get(slot);
    if (open === undefined) this.#events.push(event);
    else this.#open.set(slot, { ...open, events: [...open.events, event] });
  }

  #describe(slot: string, attributes: Attributes): void {
    const open = this.#open.get(slot);
    if (open !== undefined) this.#open.set(slot, { ...open, attributes: { ...open.attributes, ...attributes } });
  }
}

/** The policy's word on an effect: somebody has approved it, or nobody had to. */
function planAttributes({ class: kind, key, guard, approval }: EffectPlanned): Attributes {
  return {
    "pawl.effect.class": kind,
    "pawl.effect.key": key,
    "pawl.effect.guard": guard,
    "pawl.policy.decision": approval === undefined ? "not_required" : "approved",
    ...(approval !== undefined && { "pawl.approval.id": approval }),
  };
}

function escalated(at: number, { event, level }: ApprovalEscalated): SpanEvent {
  const names = {
    reminder: "approval_reminder",
    level: "approval_escalated",
    timeout: "approval_timeout",
    expiry: "approval_timeout",
  };
  return { name: names[event], at, attributes: { "pawl.approval.level": level } };
}

function spentAttributes(spent: unknown): Attributes {
  if (typeof spent !== "object" || spent === null) return {};
  const units = Object.entries(spent).filter((unit): unit is [string, number] => typeof unit[1] === "number");
  return Object.fromEntries(units.map(([unit, amount]) => [`pawl.spent.${unit}`, amount]));
}

/** A code or a name: what an error says may hold anything (RT2). */
function errorType(error: unknown): string {
  const code = readProperty(error, "code");
  const name = readProperty(error, "name");
  return typeof code === "string" ? code : typeof name === "string" ? name : "error";
}
