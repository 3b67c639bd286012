// Calls in a journal
// Each model call is a step and each tool call a step or an effect of the run, with an approval before it where a policy says so. After a crash, what
// was recorded is given back and nothing of it is begun again.
//
//   JC1. A model call is compared in replay by the hash of the conversation before it.
//   JC2. A tool that needs an approval begins only with the decision about this very call, with these very arguments (I26).
//   JC3. What is wrong with a tool goes to the model; what is wrong with the run ends it.
import { AsyncResource } from "node:async_hooks";
import { hasCode, messageWithCause, readProperty } from "../base/errors.ts";
import { readableJson } from "../base/storable.ts";
import type { ApprovalAction, ApprovalRecord } from "../core/approval.ts";
import type { Context, StepInfo, StepOptions } from "../core/context.ts";
import type { EffectOptions, EffectSpec, NeededApproval } from "../core/effect.ts";
import type { EffectClass } from "../core/journal.ts";
import type { Duration, Retry } from "../core/retry.ts";
import type { Escalation } from "../flows/machine-plan.ts";
import { type EventBus, handlerFailed } from "./bus.ts";
import type { Calls, ToolCall } from "./calls.ts";
import type { AnsweredBy, ApprovalPolicy, Tool, ToolRecord } from "./tool.ts";
import { asRecord, failure, recordOf } from "./tool-call.ts";

/** Who is asked before tools of a class begin. */
export type ClassPolicies = Readonly<Partial<Record<EffectClass, ApprovalPolicy>>>;

export interface JournalCallsOptions {
  /** What the keys begin with, where a body has other steps as well. Default: nothing. */
  readonly prefix?: string;
  readonly approvals?: ClassPolicies;
  /** Who is asked when the agent escalates. Default: nobody. */
  readonly escalation?: Escalation;
  readonly bus?: EventBus;
  /** Of model calls. */
  readonly retry?: Retry;
  readonly timeout?: Duration;
  /** The circuit breaker of model calls. */
  readonly breaker?: string;
}

/** Whoever listens does so outside the body: what they do with clocks and files is no business of replay. */
const OUTSIDE = new AsyncResource("pawl.agent.bus");

/** Calls that are recorded one by one in the run of this context. */
export function journalCalls(ctx: Context, options: JournalCallsOptions = {}): Calls {
  const { prefix = "", approvals = {}, escalation, bus, retry, timeout, breaker } = options;
  const rules: StepOptions = {
    kind: "model",
    ...(retry !== undefined && { retry }),
    ...(timeout !== undefined && { timeout }),
    ...(breaker !== undefined && { breaker }),
  };
  return {
    asksPeople: true,
    model: ({ inputHash, spend }, run) =>
      ctx.step(`${prefix}model`, run, { ...rules, input: inputHash, ...(spend !== undefined && { spend }) }),
    tool: (call, tool, run) =>
      new JournalledTool(ctx, { ...call, key: `${prefix}${call.key}` }, tool, run).done(policyFor(tool, approvals)),
    ...(escalation !== undefined && {
      escalate: (reason) => escalated(ctx, `${prefix}escalation`, escalation, reason),
    }),
    checkpoint: () => Promise.resolve(),
    publish: async (event) => {
      if (bus === undefined) return;
      const { log } = ctx;
      OUTSIDE.runInAsyncScope(() => {
        void bus.publish(event).then(({ failures }) => {
          for (const { type, message } of failures) log.warn(handlerFailed(type, message));
        });
      });
    },
    now: () => ctx.now(),
    uuid: () => ctx.uuid(),
    note: (text) => ctx.note(text),
  };
}

async function escalated(ctx: Context, name: string, people: Escalation, reason: string): Promise<string | null> {
  const action = { tool: `${ctx.run.workflow}.${name}`, arguments: { reason } };
  const rules = { onDenied: "branch", onExpired: "branch", onChanges: "branch" } as const;
  const said = await ctx.approve(name, { ...people, ...rules, kind: "escalation", action });
  if (said.decision === "denied" || said.decision === "expired") return null;
  return `${said.by} says: ${said.reason ?? "go on."}`;
}

/** The tool's own policy, or the one for its class; `null`: nobody is asked. */
export function policyFor({ approval, class: kind }: Tool, approvals: ClassPolicies): ApprovalPolicy | null {
  if (approval === false) return null;
  return approval ?? approvals[kind] ?? null;
}

class JournalledTool {
  readonly #ctx: Context;
  readonly #call: ToolCall;
  readonly #tool: Tool;
  readonly #run: (info: StepInfo) => Promise<ToolRecord>;

  constructor(ctx: Context, call: ToolCall, tool: Tool, run: (info: StepInfo) => Promise<ToolRecord>) {
    this.#ctx = ctx;
    this.#call = call;
    this.#tool = tool;
    this.#run = run;
  }

  /** The first call of the context is made at once, so that all of a round share a turn (CA2). */
  async done(policy: ApprovalPolicy | null): Promise<ToolRecord> {
    const { answeredBy } = this.#tool;
    if (answeredBy !== undefined) return this.#told(this.#answer(answeredBy));
    if (policy === null) return this.#told(this.#begin());
    const { name, version } = this.#tool;
    const action: ApprovalAction = {
      tool: name,
      ...(version !== undefined && { version }),
      arguments: this.#call.args,
    };
    const asked = this.#ctx.approve(this.#call.key, {
      onExpired: "branch",
      ...policy,
      action,
      onDenied: "branch",
      onChanges: "branch",
    });
    return this.#told(this.#approved(asked, action));
  }

  async #answer({ signal, ...options }: AnsweredBy): Promise<ToolRecord> {
    return recordOf(this.#tool, await this.#ctx.waitFor(signal, options), null);
  }

  async #approved(asked: Promise<ApprovalRecord>, action: ApprovalAction): Promise<ToolRecord> {
    const approval = await asked;
    if (approval.decision !== "approved") return failure(said(this.#tool.name, approval));
    return this.#begin({ approval, action });
  }

  #begin(needs?: NeededApproval): Promise<ToolRecord> {
    const { timeout, retry, breaker, spend } = this.#tool;
    const options: EffectOptions = {
      kind: "api",
      ...(timeout !== undefined && { timeout }),
      ...(retry !== undefined && { retry }),
      ...(breaker !== undefined && { breaker }),
      ...(spend !== undefined && { spend }),
    };
    // To read needs no place in the ledger, unless somebody was asked.
    if (this.#tool.class === "read" && needs === undefined)
      return this.#ctx.step(this.#call.key, this.#run, options as StepOptions);
    return this.#ctx.effect(this.#call.key, this.#effect(needs), options);
  }

  #effect(needs: NeededApproval | undefined): EffectSpec<ToolRecord> {
    const { args } = this.#call;
    const { class: kind, idempotent, detect, undo } = this.#tool;
    const tool = this.#tool;
    return {
      do: this.#run,
      class: kind,
      ...(idempotent !== undefined && { idempotent }),
      ...(detect !== undefined && {
        detect: async (info: StepInfo) => {
          const found = await detect.call(tool, args, info);
          return found?.found === true ? { found: true, value: recordOf(tool, found.value, null) } : found;
        },
      }),
      ...(undo !== undefined && {
        undo: (record, info) =>
          undo.call(tool, args, record === undefined ? undefined : asRecord(tool, record).value, info),
      }),
      ...(needs !== undefined && { needs }),
    };
  }

  async #told(done: Promise<ToolRecord>): Promise<ToolRecord> {
    try {
      return asRecord(this.#tool, await done);
    } catch (error) {
      if (this.#endsRun(error)) throw error;
      return failure(`Tool "${this.#tool.name}" failed: ${messageWithCause(error)}`);
    }
  }

  /** By the run: a tool may throw what has the same code and tells of something else, such as another run that it waited for. */
  #endsRun(error: unknown): boolean {
    if (!hasCode(error, "cancelled") && !hasCode(error, "deadline_exceeded")) return false;
    return readProperty(readProperty(error, "fields"), "run") === this.#ctx.run.id;
  }
}

/** What the model is told of a decision that was no approval. */
function said(tool: string, { decision, by, reason, ...record }: ApprovalRecord): string {
  const why = reason === undefined ? "" : `: ${reason}`;
  if (decision === "expired")
    return `Nobody has decided in time whether "${tool}" may be called like this. Do not repeat it.`;
  if (decision === "denied") return `${by} has denied this call of "${tool}"${why}. Do not repeat it.`;
  const wanted = "arguments" in record ? ` with these arguments: ${readableJson(record.arguments)}` : "";
  return `${by} has not approved this call of "${tool}" and asks for changes${why}. You may call it again${wanted}.`;
}
