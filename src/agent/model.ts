// The model port
// What Pawl asks of a language model, by shape alone: models of the AI SDK (specifications v3 and v4) fit as they are, and so does any object
// with these methods. Nothing of the SDK is imported.
import type { Amounts } from "../core/budget.ts";

/** A language model: any provider's of the AI SDK, or `scriptedModel` in tests. */
export interface Model {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  doGenerate(request: ModelRequest): PromiseLike<GeneratedReply>;
  doStream(request: ModelRequest): PromiseLike<StreamedReply>;
}

/** What a model is asked: the conversation so far, and the tools it may call. */
export interface ModelRequest {
  readonly prompt: readonly ModelMessage[];
  readonly tools?: readonly ModelTool[];
  readonly toolChoice?: { readonly type: string };
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly seed?: number;
  readonly responseFormat?: { readonly type: string; readonly schema?: unknown };
  readonly abortSignal?: AbortSignal;
  readonly providerOptions?: unknown;
}

export type ModelMessage = (
  | { readonly role: "system"; readonly content: string }
  | { readonly role: "user" | "assistant" | "tool"; readonly content: readonly ModelPart[] }
) & { readonly providerOptions?: unknown };

/** A part of a message. `type` says which of the others it has: "text", "reasoning", "tool-call", "tool-result". */
export interface ModelPart {
  readonly type: string;
  readonly text?: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly input?: unknown;
  readonly output?: unknown;
  readonly providerExecuted?: boolean;
  readonly providerOptions?: unknown;
}

/** A tool as models are told of it. */
export interface ModelTool {
  readonly type: string;
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: unknown;
}

/** What `doGenerate` gives, as far as it is read. */
export interface GeneratedReply {
  readonly content: readonly GeneratedPart[];
  readonly finishReason: GivenFinish;
  readonly usage: GivenUsage;
}

/** A part of what a model has generated. */
export interface GeneratedPart {
  readonly type: string;
  readonly text?: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
  /** Of a tool call: JSON as text. */
  readonly input?: string;
  readonly result?: unknown;
  readonly isError?: boolean;
  readonly providerExecuted?: boolean;
  readonly providerMetadata?: unknown;
}

/** What `doStream` gives. */
export interface StreamedReply {
  readonly stream: AsyncIterable<StreamedPart> | ReadableStreamOf<StreamedPart>;
}

/** A web stream, as far as it is read. */
export interface ReadableStreamOf<T> {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: T | undefined }>;
    releaseLock(): void;
    cancel(reason?: unknown): Promise<void>;
  };
}

/** A part of a stream: a piece of text, a tool call, the end. */
export interface StreamedPart extends GeneratedPart {
  readonly id?: string;
  readonly delta?: string;
  readonly error?: unknown;
  readonly finishReason?: GivenFinish;
  readonly usage?: GivenUsage;
}

/** Why it stopped: a word, or the word with the provider's own. */
export type GivenFinish = string | { readonly unified: string };

/** Tokens, as numbers or with their parts. */
export interface GivenUsage {
  readonly inputTokens?:
    | number
    | undefined
    | { readonly total?: number | undefined; readonly cacheRead?: number | undefined };
  readonly outputTokens?:
    | number
    | undefined
    | { readonly total?: number | undefined; readonly reasoning?: number | undefined };
}

/** Why a model stopped. */
export type FinishReason = "stop" | "length" | "content-filter" | "tool-calls" | "error" | "other";

/** Tokens of one call, or the sum of several. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Of the input, those that the provider had in its cache. */
  readonly cachedTokens?: number;
  /** Of the output, those that were spent on reasoning. */
  readonly reasoningTokens?: number;
}

/** One answer of a model: all that is recorded of a call. What was asked is the conversation before it, and is recorded nowhere again. */
export interface ModelReply {
  /** In order, as it is sent back with the next request. */
  readonly content: readonly ModelPart[];
  readonly finish: FinishReason;
  readonly usage: Usage;
  /** "provider:model". */
  readonly model: string;
  /** The hash of the rendered prompt that it was asked with. */
  readonly prompt?: string;
  /** What was found about its tool calls when they came, by their place in `content`. None: they are as the model gave them. */
  readonly verdicts?: Readonly<Record<number, CallVerdict>>;
}

/** What was found about a tool call when it came. */
export interface CallVerdict {
  /** The arguments as the tool's schema has made them, where that is not what the model wrote. */
  readonly args?: unknown;
  /** Why it is not done. */
  readonly refused?: string;
}

/** A piece of an answer while it comes. */
export type ModelChunk =
  | { readonly type: "text" | "reasoning"; readonly text: string }
  | { readonly type: "tool-call"; readonly id: string; readonly name: string };

/** What a call costs, made of its tokens: `{ usd: 0.01 }`. A pure function. */
export type Price = (usage: Usage) => Amounts;

/** What a model has said, without reasoning and tool calls. */
export function textOf({ content }: Pick<ModelReply, "content">): string {
  return content.map((part) => (part.type === "text" ? (part.text ?? "") : "")).join("");
}
