// The durable agent
// The SDK's own ToolLoopAgent over durable models and tools. It is given what its loop would otherwise make up in the body (ids), does not wait there
// (retries are the engine's), and stops with the run.
import {
  gateway,
  type InferGenerateOutput,
  type InferStreamOutput,
  type LanguageModel,
  type OutputInterface,
  ToolLoopAgent,
  type ToolLoopAgentSettings,
  type ToolSet,
} from "ai";
import type { Amounts } from "../core/budget.ts";
import type { Context } from "../core/context.ts";
import { durableDownload } from "./durable-download.ts";
import { type DurableModelOptions, durableModel, signalOf } from "./durable-model.ts";
import { assertKnown, type DurableToolsOptions, type Rulings, wrapTools } from "./durable-tools.ts";
import type { LanguageModelLike } from "./language-model.ts";
import { rulingsOf } from "./tool-rulings.ts";
import { unguarded } from "./unguarded.ts";
import type { Price } from "./usage.ts";

// The third type parameter of the SDK's agent is its output in ai 6; in ai 7 that is the fourth. So only the first two are given here, and what
// depends on the output is said again.
type Settings<C, T extends ToolSet> = ToolLoopAgentSettings<C, T>;
type Generated<C, T extends ToolSet> = Awaited<ReturnType<ToolLoopAgent<C, T>["generate"]>>;
type Streamed<C, T extends ToolSet> = Awaited<ReturnType<ToolLoopAgent<C, T>["stream"]>>;

/** What `generate` of the SDK's agent is called with. */
export type AgentCall<C, T extends ToolSet> = Parameters<ToolLoopAgent<C, T>["generate"]>[0];
/** What `stream` of the SDK's agent is called with. */
export type AgentStreamCall<C, T extends ToolSet> = Parameters<ToolLoopAgent<C, T>["stream"]>[0];

/** What `generate` of the SDK's agent gives. */
export type AgentResult<C, T extends ToolSet, O extends OutputInterface> = Omit<Generated<C, T>, "output"> & {
  readonly output: InferGenerateOutput<O>;
};

/** What `stream` of the SDK's agent gives. */
export type AgentStream<C, T extends ToolSet, O extends OutputInterface> = Omit<
  Streamed<C, T>,
  "output" | "partialOutputStream"
> & {
  readonly output: PromiseLike<InferGenerateOutput<O>>;
  readonly partialOutputStream: AsyncIterable<InferStreamOutput<O>>;
};

/** Settings of the SDK's `ToolLoopAgent`, and what makes it durable. */
export type DurableAgentSettings<C, T extends ToolSet, O extends OutputInterface> = Omit<
  Settings<C, T>,
  "tools" | "output"
> &
  DurableToolsOptions<T> & {
    readonly tools?: T;
    readonly output?: O;
    /** What a call of the model costs, for `cost` and the run's budgets. Default: its tokens are counted, nothing else. */
    readonly price?: Price;
    /** What each call of the model reserves of the run's budgets. Default: a trace. */
    readonly spend?: Amounts;
  };

/**
 * An agent of the AI SDK that goes on where it was after any crash: `ToolLoopAgent` in shape and behaviour, for the body of a workflow.
 *
 * ```ts
 * const research = workflow("research", async (ctx, question: string) => {
 *   const agent = new DurableAgent(ctx, { model, instructions, tools: { search }, effects: { search: "read" } });
 *   return (await agent.generate({ prompt: question })).text;
 * });
 * ```
 */
export class DurableAgent<C = never, T extends ToolSet = Record<never, never>, O extends OutputInterface = never> {
  readonly version = "agent-v1" as const;
  readonly #ctx: Context;
  readonly #agent: ToolLoopAgent<C, T>;

  constructor(ctx: Context, settings: DurableAgentSettings<C, T, O>) {
    this.#ctx = ctx;
    this.#agent = new ToolLoopAgent(durableSettings(ctx, settings as unknown as SomeSettings) as Settings<C, T>);
  }

  get id(): string | undefined {
    return this.#agent.id;
  }

  /** As the loop has them: durable. */
  get tools(): T {
    return this.#agent.tools;
  }

  generate(call: AgentCall<C, T>): Promise<AgentResult<C, T, O>> {
    return this.#agent.generate(this.#stopping(call)) as Promise<AgentResult<C, T, O>>;
  }

  /** What it streams comes in whole replies, as they are recorded. Who wants to see them being written reads the run's stream. */
  stream(call: AgentStreamCall<C, T>): Promise<AgentStream<C, T, O>> {
    return unguarded(() => this.#agent.stream(this.#stopping(call))) as Promise<AgentStream<C, T, O>>;
  }

  #stopping<A extends { abortSignal?: AbortSignal }>(call: A): A {
    return { ...call, abortSignal: signalOf(this.#ctx.signal, call.abortSignal) };
  }
}

/** What of the settings is looked at here; all else goes to the SDK as it is. Its own types of these differ between its versions. */
interface SomeSettings extends DurableToolsOptions<ToolSet>, Chosen {
  readonly price?: Price;
  readonly spend?: Amounts;
  /** Of ai 7. */
  readonly toolApproval?: unknown;
  readonly prepareStep?: Preparing;
  readonly prepareCall?: Preparing;
}

/** Where a model and tools are named: in the settings, and in what is prepared for a call or a round. */
interface Chosen {
  readonly model?: LanguageModel;
  readonly tools?: ToolSet;
}

type Preparing = (given: unknown) => Chosen | undefined | PromiseLike<Chosen | undefined>;

function durableSettings(ctx: Context, settings: SomeSettings): object {
  const { effects, approvals, price, spend, toolApproval, prepareStep, prepareCall, ...rest } = settings;
  const ruled = toolApproval === undefined ? null : rulingsOf(toolApproval);
  const making: Making = {
    ctx,
    model: { ...(price !== undefined && { price }), ...(spend !== undefined && { spend }) },
    tools: { ...(effects !== undefined && { effects }), ...(approvals !== undefined && { approvals }) },
    rulings: ruled?.rulings ?? null,
  };
  if (rest.tools !== undefined) assertKnown(rest.tools, effects);
  const prepared = (prepare: Preparing): Preparing => {
    return async (given) => {
      const chosen = await prepare(given);
      return chosen === undefined ? undefined : made(making, chosen);
    };
  };
  return {
    experimental_download: durableDownload(ctx),
    ...made(making, rest),
    ...(prepareStep !== undefined && { prepareStep: prepared(prepareStep) }),
    ...(prepareCall !== undefined && { prepareCall: prepared(prepareCall) }),
    ...(ruled !== null && { toolApproval: ruled.toolApproval }),
    // The engine repeats a call, at a recorded time; the SDK would wait for that in the body.
    maxRetries: 0,
    _internal: ownIds(ctx),
  };
}

/** With what models and tools are made durable, wherever some are named. */
interface Making {
  readonly ctx: Context;
  readonly model: DurableModelOptions;
  readonly tools: DurableToolsOptions<ToolSet>;
  readonly rulings: Rulings | null;
}

/** The same, with durable models and tools. What is durable already stays as it is. */
function made({ ctx, model, tools, rulings }: Making, chosen: Chosen): Chosen {
  return {
    ...chosen,
    ...(chosen.model !== undefined && { model: durableModel(ctx, resolved(chosen.model), model) as LanguageModel }),
    ...(chosen.tools !== undefined && { tools: wrapTools(ctx, chosen.tools, tools, rulings) }),
  };
}

/** A model that is only named is looked up as the SDK does it: by the default provider of the program, or by the gateway. */
function resolved(model: LanguageModel): LanguageModelLike {
  return typeof model === "string" ? (globalThis.AI_SDK_DEFAULT_PROVIDER ?? gateway).languageModel(model) : model;
}

/** Ids by the run and by their order. Each would otherwise be another one in each replay. */
function ownIds(ctx: Context): { generateId(): string; generateCallId(): string } {
  const stem = ctx.uuid();
  let ids = 0;
  const next = () => `${stem}-${++ids}`;
  return { generateId: next, generateCallId: next };
}
