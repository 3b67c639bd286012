// Agents
// A model with a prompt, a session and tools, as a workflow: each of its calls is recorded, or it is one step that goes on from its last checkpoint.
import { hasCode, PawlError, readProperty } from "../base/errors.ts";
import { type Amounts, budgetPlan } from "../core/budget.ts";
import type { Context, StepInfo, StepOptions } from "../core/context.ts";
import type { SchemaInput, SchemaOutput, StandardSchema } from "../core/schema.ts";
import { type Workflow, type WorkflowOptions, workflow } from "../core/workflow.ts";
import type { Escalation } from "../flows/machine-plan.ts";
import { modelAdapter, type PromptResponse } from "./adapter.ts";
import { EventBus } from "./bus.ts";
import type { Calls } from "./calls.ts";
import { observeCheckpoints } from "./checkpoint-observer.ts";
import { type Completion, missingOf } from "./completion.ts";
import { digestOf } from "./digest.ts";
import { directCalls } from "./direct-calls.ts";
import { applyPending, EffectCalls, effectsSlice } from "./effect-record.ts";
import type { RoundOptions } from "./evaluate.ts";
import { type ClassPolicies, journalCalls, policyFor } from "./journal-calls.ts";
import type { Model } from "./model.ts";
import { type AgentOutcome, stopError } from "./outcome.ts";
import { OUTCOME_TOOLS } from "./outcome-tools.ts";
import { plan } from "./plan.ts";
import type { BoundPrompt } from "./prompt.ts";
import type { Section } from "./section.ts";
import { Session } from "./session.ts";
import { parseSnapshot, snapshotText } from "./snapshot.ts";
import { spentSlice } from "./spent.ts";
import { isUnsafeTool, needsPeople, type Tool } from "./tool.ts";
import { checkpointTrigger, type Trigger } from "./trigger.ts";

/** What a new session is made of. */
export interface SessionFacts<I = unknown> {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly request: I;
}

/** How an agent survives a crash. */
export type AgentDurability = "perCall" | "snapshot" | "whole";

/** Options of an agent, beside those of every workflow. */
export interface AgentOptions<I, O> extends WorkflowOptions<I>, RoundOptions {
  /** Any model of the AI SDK, or `scriptedModel` in tests. */
  readonly model: Model;
  /** What the model is told, made of the request and the session. A pure function. */
  prompt(request: I, session: Session): BoundPrompt<O>;
  /** Makes the session. A pure function. Default: one with a plan. */
  session?(facts: SessionFacts<I>): Session;
  /**
   * "perCall": every model and tool call is recorded, and nothing recorded is done again (default). "snapshot": one step, which goes on from its last
   * checkpoint. "whole": one step, from the beginning.
   */
  readonly durability?: AgentDurability;
  /** With "snapshot": when the session is saved. Default: when a step of the plan is done. */
  readonly checkpoint?: Trigger;
  /** When the work is done. Default: when all steps of the plan are, if the prompt has planning tools; otherwise when the model has answered. */
  readonly completion?: Completion<O>;
  /** Who is asked before tools of a class begin. Default: nobody, unless the tool says so. */
  readonly approvals?: ClassPolicies;
  /** Who is asked when the agent escalates; what they say goes back to it. Default: nobody, and the run fails. */
  readonly escalation?: Escalation;
  /** Whether the model may refuse, say that it is not sure, and escalate. Default true. */
  readonly outcomeTools?: boolean;
  /** Hears of prompts and tool calls. Default: nobody. */
  readonly bus?: EventBus;
  /** The circuit breaker of model calls. */
  readonly breaker?: string;
}

/** An agent: a workflow, whose runs succeed only with a result, and a part of other workflows. */
export interface Agent<I, O> extends Workflow<I, O> {
  /** Works as one step of another workflow: `ctx.step("review", (info) => reviewer.evaluate(info, request))`. It goes on from what `info` has saved. */
  evaluate(info: StepInfo, request: I): Promise<AgentOutcome<O>>;
  /** Works call by call in the body of another workflow. */
  play(ctx: Context, request: I): Promise<AgentOutcome<O>>;
}

/**
 * Defines an agent.
 *
 * ```ts
 * const researcher = agent({
 *   name: "researcher",
 *   model: anthropic("claude-sonnet-4-5"),
 *   tools: [search, publish],
 *   approvals: { write: { approvers: ["role:editor"] } },
 *   prompt: (question: string) => research.bind({ question }),
 * });
 * const answer = await pawl.run(researcher, "Which birds winter here?");
 * ```
 */
export function agent<S extends StandardSchema, O>(
  options: AgentOptions<SchemaOutput<S>, O> & { readonly input: S },
): Agent<SchemaInput<S>, O>;
export function agent<I, O>(options: AgentOptions<I, O>): Agent<I, O>;
export function agent<I, O>(options: AgentOptions<I, O>): Agent<I, O> {
  const made = new AgentWork(options);
  const plain = workflow<I, O>(options, (ctx, request) => made.run(ctx, request));
  return {
    ...plain,
    evaluate: (info, request) => outcomeOf(() => made.evaluate(info, request)),
    play: (ctx, request) => outcomeOf(() => made.play(ctx, request, `${options.name}.`)),
  };
}

/** How one agent works. */
class AgentWork<I, O> {
  readonly #options: AgentOptions<I, O>;
  readonly #rounds: RoundOptions;
  /** Of its budget, what can be counted where no call reserves by itself. */
  readonly #limits: Amounts;

  constructor(options: AgentOptions<I, O>) {
    this.#options = options;
    assertOptions(options);
    const { outcomeTools = true, tools = [] } = options;
    const { time: _, ...limits } = budgetPlan(options.budget, `agent "${options.name}"`)?.limits ?? {};
    this.#limits = limits;
    this.#rounds = { ...options, tools: [...tools, ...(outcomeTools ? OUTCOME_TOOLS : [])] };
  }

  /** A run of its own: anything but a result fails it. */
  async run(ctx: Context, request: I): Promise<O> {
    const { durability = "perCall", name } = this.#options;
    const outcome = durability === "perCall" ? await this.play(ctx, request, "") : await this.#asStep(ctx, request);
    if (outcome.outcome === "result") return outcome.value;
    throw stopError(name, ctx.run.id, outcome);
  }

  /** Every call is a step of this body. */
  async play(ctx: Context, request: I, prefix: string): Promise<AgentOutcome<O>> {
    const { session: _, ...rest } = this.#options;
    const calls = journalCalls(ctx, { ...rest, prefix });
    const session = this.#newSession({ id: ctx.uuid(), createdAt: ctx.now(), request });
    return this.#work(session, request, { calls, bus: this.#options.bus });
  }

  #asStep(ctx: Context, request: I): Promise<AgentOutcome<O>> {
    const { durability, reserve = A_TRACE } = this.#options;
    const session = this.#newSession({ id: ctx.uuid(), createdAt: ctx.now(), request });
    const tools = this.#allTools(request, session);
    // From the beginning, everything would be done once more.
    const isUnsafe = durability === "whole" && tools.some(isUnsafeTool);
    const options: StepOptions = {
      kind: "model",
      spend: reserve,
      ...(isUnsafe && { recovery: "ask", retry: false }),
      // In a dry run its tools would act: nobody could hold one of them back.
      ...(tools.some((tool) => tool.class !== "read") && { dry: "recorded" }),
    };
    const work = (info: StepInfo): Promise<AgentOutcome<O>> => this.evaluate(info, request);
    return ctx.step<AgentOutcome<O>>("evaluate", work, options);
  }

  /** Its own, and those of its prompt. */
  #allTools(request: I, session: Session): readonly Tool[] {
    const sections = this.#options.prompt(request, session).prompt.sections as readonly Section<unknown>[];
    return [...((this.#options.tools ?? []) as readonly Tool[]), ...sections.flatMap(({ tools }) => tools)];
  }

  /** One step: what is kept of it is the session. */
  async evaluate(info: StepInfo, request: I): Promise<AgentOutcome<O>> {
    const { bus = new EventBus(), retry, timeout } = this.#options;
    // Unlike that of any other attempt: calls of an earlier one are not those of this one.
    const execution = `${info.key}.${info.attempt}`;
    const calls = directCalls({
      execution,
      bus,
      signal: info.signal,
      heartbeat: () => info.heartbeat(),
      spent: info.spent,
      emit: info.emit,
      ...(retry !== undefined && { retry }),
      ...(timeout !== undefined && { timeout }),
    });
    const session = this.#newSession({ id: digestOf(info.key), createdAt: calls.now(), request });
    this.#assertNobodyIsAsked(request, session);
    if (this.#options.durability === "whole") return this.#fromBeginning(info, request, session, { calls, bus });
    return this.#fromCheckpoint(info, request, session, { calls, bus, prefix: execution });
  }

  /** What earlier attempts have spent is all that is kept of them. */
  #fromBeginning(info: StepInfo, request: I, session: Session, { calls, bus }: Working): Promise<AgentOutcome<O>> {
    const { saved } = info;
    if (saved !== undefined) session.dispatch(spentSlice.initialised([saved as Amounts]));
    const save = () => info.save(session.query(spentSlice).latest() ?? {});
    return this.#work(session, request, { calls: this.#counting(calls, save), bus, budget: this.#limits });
  }

  /** Where there is a limit, what was spent is durable before more is: a crash forgets no more than the call under way (I26). */
  #counting(calls: Calls, save: () => Promise<void>): Calls {
    if (Object.keys(this.#limits).length === 0) return calls;
    return {
      ...calls,
      model: async (call, run) => {
        await save();
        return calls.model(call, run);
      },
    };
  }

  /** Goes on where the last attempt has saved the session, and saves it at milestones and around effects. */
  async #fromCheckpoint(
    info: StepInfo,
    request: I,
    session: Session,
    { calls, bus, prefix }: Working & { readonly bus: EventBus; readonly prefix: string },
  ): Promise<AgentOutcome<O>> {
    const { checkpoint: trigger = checkpointTrigger() } = this.#options;
    session.register(effectsSlice);
    if (typeof info.saved === "string") session.restore(parseSnapshot(info.saved));
    applyPending(session);
    const save = (saved: Session) => info.save(snapshotText(saved.snapshot()));
    const effects = new EffectCalls({ calls, session, prefix, trigger, floor: save, begin: async () => {} });
    const remove = observeCheckpoints({ bus, session, trigger, since: calls.now(), save });
    try {
      const counting = this.#counting(effects.calls, () => save(session));
      const outcome = await this.#work(session, request, { calls: counting, bus, budget: this.#limits });
      const doubt = effects.doubt();
      return doubt === null || doubt.kind === "finished" ? outcome : { outcome: doubt.kind, reason: doubt.reason };
    } finally {
      remove();
    }
  }

  async #work(session: Session, request: I, { calls, bus, budget = {} }: Working): Promise<AgentOutcome<O>> {
    const { model, prompt, completion } = this.#options;
    const bound = prompt.call(this.#options, request, session);
    const options = { session, calls, budget, ...(bus !== undefined && { bus }) };
    const response = await modelAdapter(model, this.#rounds).evaluate(bound, options);
    return judgedBy(completion, bound, session, response);
  }

  #newSession(facts: SessionFacts<I>): Session {
    const { id, createdAt } = facts;
    const session = this.#options.session?.(facts) ?? new Session({ id, createdAt, slices: [plan] });
    session.register(spentSlice);
    // Before anything is restored into it.
    for (const { output } of this.#allTools(facts.request, session)) if (output !== undefined) session.register(output);
    return session;
  }

  /** A step cannot wait for people. */
  #assertNobodyIsAsked(request: I, session: Session): void {
    const { approvals = {}, name } = this.#options;
    const all = this.#allTools(request, session);
    const asking = all.find((tool) => needsPeople(tool) || policyFor(tool, approvals) !== null);
    if (asking === undefined) return;
    throw new PawlError(
      "invalid_argument",
      `Tool "${asking.name}" of agent "${name}" needs people who say something, and the agent is one step, which cannot wait for them. ` +
        'Use durability "perCall", ctx.call or play(ctx, …) instead.',
      { fields: { agent: name, tool: asking.name, field: "durability" } },
    );
  }
}

/** With what an agent works. */
interface Working {
  readonly calls: Calls;
  readonly bus: EventBus | undefined;
  /** What its session may spend. Default: no limit, as the run's budgets hold for each call. */
  readonly budget?: Amounts;
}

/** So that it does not begin behind a limit that is used up. */
const A_TRACE: Amounts = { tokens: 1 };

function judgedBy<O>(
  completion: Completion<O> | undefined,
  bound: BoundPrompt<O>,
  session: Session,
  response: PromptResponse<O>,
): AgentOutcome<O> {
  const { ending, output } = response;
  if (ending.kind !== "finished") return { outcome: ending.kind, reason: ending.reason };
  const missing = missingOf(completion, bound, session, response);
  if (missing !== null) return { outcome: "incomplete", reason: missing };
  return { outcome: "result", value: output as O };
}

/** Errors that are the model's, or its provider's: for whoever uses the agent, it could not do its work. */
const OF_THE_MODEL = ["prompt_evaluation", "max_retries_exceeded", "circuit_open", "step_timeout"] as const;

async function outcomeOf<O>(work: () => Promise<AgentOutcome<O>>): Promise<AgentOutcome<O>> {
  try {
    return await work();
  } catch (error) {
    const code = OF_THE_MODEL.find((one) => hasCode(error, one));
    if (code === undefined) throw error;
    return { outcome: "error", reason: String(readProperty(error, "message")), code };
  }
}

const DURABILITIES: readonly AgentDurability[] = ["perCall", "snapshot", "whole"];

function assertOptions<I, O>({ name, model, prompt, durability = "perCall" }: AgentOptions<I, O>): void {
  const invalid = (field: string, advice: string) =>
    new PawlError("invalid_argument", `\`${field}\` of agent "${name}" cannot be used. ${advice}.`, {
      fields: { agent: name, field },
    });
  if (typeof model?.doGenerate !== "function")
    throw invalid("model", "Give a model of the AI SDK, such as anthropic(…), or scriptedModel(…)");
  if (typeof prompt !== "function") throw invalid("prompt", "Give a function (request, session) => prompt.bind(…)");
  if (!DURABILITIES.includes(durability)) throw invalid("durability", `Give one of ${DURABILITIES.join(", ")}`);
}
