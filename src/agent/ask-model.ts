// Asking a model
// Makes one call and brings the answer into one shape, whatever the provider's specification is, streamed or not.
import { messageOf, PawlError, RetryableError, readProperty } from "../base/errors.ts";
import { factsOf, isTransient } from "../core/retry.ts";
import type {
  FinishReason,
  GeneratedPart,
  GeneratedReply,
  GivenFinish,
  GivenUsage,
  Model,
  ModelChunk,
  ModelPart,
  ModelReply,
  ModelRequest,
  StreamedPart,
  StreamedReply,
  Usage,
} from "./model.ts";

export interface AskOptions {
  /** Called for each piece of the answer as it comes; with it, the model is asked to stream. */
  readonly onChunk?: (chunk: ModelChunk) => void;
}

/**
 * Asks a model once. What fails becomes `prompt_evaluation` with phase "request"; it is worth another attempt if the provider says so, or by its
 * HTTP status.
 */
export async function askModel(model: Model, request: ModelRequest, options: AskOptions = {}): Promise<ModelReply> {
  const { content, finishReason, usage } = await generate(model, request, options);
  return {
    content: content.flatMap(partOf),
    finish: finishOf(finishReason),
    usage: usageOf(usage),
    model: `${model.provider}:${model.modelId}`,
  };
}

async function generate(model: Model, request: ModelRequest, { onChunk }: AskOptions): Promise<GeneratedReply> {
  try {
    const reply =
      onChunk === undefined ? await model.doGenerate(request) : await collected(await model.doStream(request), onChunk);
    if (!Array.isArray(reply?.content)) throw new TypeError("its answer has no list `content`");
    return reply;
  } catch (error) {
    // Whoever has stopped it knows why.
    if (request.abortSignal?.aborted === true) throw request.abortSignal.reason ?? error;
    throw failed(model, error);
  }
}

// One shape

const FINISHES: ReadonlySet<string> = new Set<FinishReason>([
  "stop",
  "length",
  "content-filter",
  "tool-calls",
  "error",
  "other",
]);

function finishOf(given: GivenFinish): FinishReason {
  const word = typeof given === "string" ? given : given?.unified;
  return FINISHES.has(word) ? (word as FinishReason) : "other";
}

/** What a provider does not tell, or tells as nonsense, is 0: an answer that is paid for is not thrown away for that. */
function usageOf(given: GivenUsage | undefined): Usage {
  const { inputTokens: input, outputTokens: output } = given ?? {};
  const cached = countOf(readProperty(input, "cacheRead"));
  const reasoning = countOf(readProperty(output, "reasoning"));
  return {
    inputTokens: countOf(readProperty(input, "total") ?? input) ?? 0,
    outputTokens: countOf(readProperty(output, "total") ?? output) ?? 0,
    ...(cached !== undefined && { cachedTokens: cached }),
    ...(reasoning !== undefined && { reasoningTokens: reasoning }),
  };
}

function countOf(value: unknown): number | undefined {
  return typeof value === "number" && value >= 0 && value < Number.POSITIVE_INFINITY ? value : undefined;
}

/** What is kept of a generated part: as much as the model must be shown again. Sources and files are for people. */
function partOf(part: GeneratedPart): ModelPart[] {
  const { toolCallId = "", toolName = "", providerExecuted, providerMetadata } = part;
  const options = {
    ...(providerExecuted === true && { providerExecuted }),
    ...(providerMetadata !== undefined && { providerOptions: providerMetadata }),
  };
  switch (part.type) {
    case "text":
    case "reasoning":
      return [{ type: part.type, text: part.text ?? "", ...options }];
    case "tool-call":
      return [{ type: "tool-call", toolCallId, toolName, input: inputOf(part.input), ...options }];
    case "tool-result":
      // The provider's own tools answer in the same message.
      return [
        {
          type: "tool-result",
          toolCallId,
          toolName,
          output: { type: part.isError === true ? "error-json" : "json", value: part.result ?? null },
          ...(providerMetadata !== undefined && { providerOptions: providerMetadata }),
        },
      ];
    default:
      return [];
  }
}

/** Arguments come as JSON; what is none is kept as text, for the verdict on the call to say so. */
function inputOf(text: unknown): unknown {
  if (typeof text !== "string") return text ?? {};
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

// Streams

async function collected({ stream }: StreamedReply, onChunk: (chunk: ModelChunk) => void): Promise<GeneratedReply> {
  const content: GeneratedPart[] = [];
  const open = new Map<string, number>();
  let end: StreamedPart | null = null;
  for await (const part of partsOf(stream)) {
    if (part.type === "error") throw part.error;
    if (part.type === "finish") end = part;
    else take(part, content, open, onChunk);
  }
  if (end === null) throw new RetryableError("the stream ended before the model had finished");
  return { content, finishReason: end.finishReason ?? "other", usage: end.usage ?? {} };
}

const PIECES = /^(text|reasoning)-(start|delta|end)$/;

function take(
  part: StreamedPart,
  content: GeneratedPart[],
  open: Map<string, number>,
  onChunk: (chunk: ModelChunk) => void,
): void {
  const [, type, piece] = PIECES.exec(part.type) ?? [];
  if (type === undefined) {
    if (part.type === "tool-call" && part.providerExecuted !== true)
      onChunk({ type: "tool-call", id: part.toolCallId ?? "", name: part.toolName ?? "" });
    if (WHOLE.has(part.type)) content.push(part);
    return;
  }
  const id = `${type}:${part.id ?? ""}`;
  if (piece === "start" || !open.has(id)) {
    open.set(id, content.length);
    content.push({ type, text: "" });
  }
  const at = open.get(id)!;
  const before = content[at]!;
  const text = piece === "delta" ? (part.delta ?? "") : "";
  const { providerMetadata = before.providerMetadata } = part;
  content[at] = {
    ...before,
    text: `${before.text ?? ""}${text}`,
    ...(providerMetadata !== undefined && { providerMetadata }),
  };
  if (piece === "end") open.delete(id);
  if (text !== "") onChunk({ type: type as "text" | "reasoning", text });
}

/** Parts that come in one piece. */
const WHOLE: ReadonlySet<string> = new Set(["tool-call", "tool-result"]);

async function* partsOf(stream: StreamedReply["stream"]): AsyncIterable<StreamedPart> {
  if (Symbol.asyncIterator in stream) return yield* stream;
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      if (value !== undefined) yield value;
    }
  } finally {
    reader.releaseLock();
  }
}

// Errors

/** Without the request and the response, which providers put into their errors: the journal would keep the conversation with every attempt. */
function failed({ provider, modelId }: Model, error: unknown): PawlError {
  const facts = factsOf(error);
  const isWorthAnother = readProperty(error, "isRetryable") === true || isTransient(facts);
  const { status } = facts;
  const made = new PawlError(
    "prompt_evaluation",
    `Model ${provider}:${modelId} did not answer: ${messageOf(error)}. ${isWorthAnother ? "Another attempt may succeed." : "Check the request, the key and the model's name."}`,
    {
      fields: { phase: "request", model: `${provider}:${modelId}`, ...(typeof status === "number" && { status }) },
    },
  );
  // What marks an error as transient for the engine, after a restart as well.
  if (isWorthAnother) Object.assign(made, { name: "RetryableError" }, whenAgain(error));
  return made;
}

/** When the provider wants to be asked again, in the words that the engine knows. */
function whenAgain(error: unknown): { readonly retryAfter?: number | string; readonly headers?: object } {
  const own = readProperty(error, "retryAfter");
  if (typeof own === "number" || typeof own === "string") return { retryAfter: own };
  const headers = readProperty(error, "responseHeaders");
  const ms = Number(readProperty(headers, "retry-after-ms") ?? Number.NaN);
  if (ms >= 0) return { retryAfter: ms };
  const after = readProperty(headers, "retry-after");
  return typeof after === "string" ? { headers: { "retry-after": after } } : {};
}
