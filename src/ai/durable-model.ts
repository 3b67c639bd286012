// Durable models
// A language model for the body of a workflow: each call is one step, and in replay its record answers.
import { PawlError } from "../base/errors.ts";
import type { Amounts } from "../core/budget.ts";
import type { Context, StepInfo, StepOptions } from "../core/context.ts";
import { conversationDigest } from "./conversation.ts";
import type { CallableModel, LanguageModelLike, ModelReply, ModelRequest, RawReply } from "./language-model.ts";
import { gather, replyOf, streamOf } from "./model-reply.ts";
import { retriesOf, withoutRequest } from "./provider-error.ts";
import { tell } from "./side-stream.ts";
import { leastSpend, type Price, spentBy } from "./usage.ts";

export interface DurableModelOptions extends Pick<StepOptions, "timeout" | "retry" | "breaker"> {
  /** The name of its steps. Default "model". */
  readonly name?: string;
  /** What a call costs, for `cost` and the run's budgets. Default: its tokens are counted, nothing else. */
  readonly price?: Price;
  /** What each call reserves of the run's budgets. Default: a trace, so that a call may go over a limit, and none begins behind it. */
  readonly spend?: Amounts;
}

/** What the AI SDK uses of a model, and no more of it. */
export type DurableModel<M extends LanguageModelLike> = Pick<
  M,
  "specificationVersion" | "provider" | "modelId" | "supportedUrls" | "doGenerate" | "doStream"
>;

const DURABLE = new WeakSet<object>();

/**
 * Makes a language model of the AI SDK durable: for `generateText`, `streamText`, `generateObject` and agents in the body of a workflow. Each call is
 * a step of kind "model", whose record is what the model produced.
 *
 * ```ts
 * const summary = workflow("summary", async (ctx, text: string) => {
 *   const result = await generateText({ model: durableModel(ctx, openai("gpt-5")), prompt: `Summarise: ${text}` });
 *   return result.text;
 * });
 * ```
 */
export function durableModel<M extends LanguageModelLike>(
  ctx: Context,
  model: M,
  options: DurableModelOptions = {},
): DurableModel<M> {
  if (isDurableModel(model)) return model;
  assertModel(model);
  const calls = new ModelCalls(ctx, model, options);
  const durable = {
    specificationVersion: model.specificationVersion,
    provider: model.provider,
    modelId: model.modelId,
    get supportedUrls() {
      return model.supportedUrls;
    },
    doGenerate: (request: ModelRequest) => calls.generate(request),
    doStream: async (request: ModelRequest) => ({ stream: streamOf(await calls.stream(request)) }),
  };
  DURABLE.add(durable);
  // The SDK's own types, which differ between its versions: in and out go what the given model takes and gives.
  return durable as unknown as DurableModel<M>;
}

/** Made here: it is not made durable twice. */
export function isDurableModel(model: object): boolean {
  return DURABLE.has(model);
}

/** What is no part of the answer; an error may hold the whole request. */
const NOT_TOLD: ReadonlySet<string> = new Set(["stream-start", "response-metadata", "raw", "error", "finish"]);

class ModelCalls {
  readonly #ctx: Context;
  readonly #modelId: string;
  readonly #model: CallableModel;
  readonly #options: DurableModelOptions;
  readonly #spend: Amounts;

  constructor(ctx: Context, model: LanguageModelLike, options: DurableModelOptions) {
    this.#ctx = ctx;
    this.#modelId = model.modelId;
    this.#model = model as unknown as CallableModel;
    this.#options = options;
    this.#spend = options.spend ?? leastSpend(options.price);
  }

  generate(request: ModelRequest): Promise<ModelReply> {
    return this.#step(request, (aborting) => this.#model.doGenerate(aborting));
  }

  /** The body gets the reply once it is recorded, and as a whole: pieces that come in their own time would be another way in each replay. */
  stream(request: ModelRequest): Promise<ModelReply> {
    return this.#step(request, async (aborting, info) => {
      const { stream } = await this.#model.doStream(aborting);
      return gather(stream, (part) => {
        info.heartbeat();
        if (!NOT_TOLD.has(part.type)) tell(info, part);
      });
    });
  }

  #step(
    request: ModelRequest,
    ask: (request: ModelRequest, info: StepInfo) => PromiseLike<RawReply>,
  ): Promise<ModelReply> {
    const { name = "model", timeout, retry, breaker } = this.#options;
    const { abortSignal } = request;
    const call = async (info: StepInfo): Promise<ModelReply> => {
      try {
        const raw = await ask({ ...request, abortSignal: signalOf(info.signal, abortSignal) }, info);
        info.spent(spentBy(raw.usage, this.#options.price));
        return replyOf(raw, { id: this.#ctx.uuid(), at: this.#ctx.now(), modelId: this.#modelId });
      } catch (error) {
        throw withoutRequest(error);
      }
    };
    return this.#ctx.step(name, call, {
      kind: "model",
      input: conversationDigest(request.prompt),
      spend: this.#spend,
      retry: retriesOf(retry, () => abortSignal?.aborted === true),
      ...(timeout !== undefined && { timeout }),
      ...(breaker !== undefined && { breaker }),
    });
  }
}

/** Fires when the step is to stop, or whoever asked has given up. */
export function signalOf(own: AbortSignal, given: AbortSignal | undefined): AbortSignal {
  return given === undefined ? own : AbortSignal.any([own, given]);
}

function assertModel(model: unknown): void {
  const { doGenerate, doStream } = (typeof model === "object" && model !== null ? model : {}) as Partial<CallableModel>;
  if (typeof doGenerate === "function" && typeof doStream === "function") return;
  const what = typeof model === "string" ? `the name "${model}"` : typeof model;
  throw new PawlError(
    "invalid_argument",
    `durableModel was given ${what}. Give it a model as a provider makes it, such as openai("gpt-5") or gateway("openai/gpt-5").`,
    { fields: { field: "model" } },
  );
}
