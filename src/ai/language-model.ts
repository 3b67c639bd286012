// The AI SDK's language model, by its shape
// Version 3 is what ai 6 speaks, version 4 is that of ai 7. They agree in all that matters here, so both are known by the same few fields, and what
// a provider adds to them travels along untouched.

/** A language model as the AI SDK's providers make it. */
export interface LanguageModelLike {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: unknown;
  doGenerate(options: never): PromiseLike<unknown>;
  doStream(options: never): PromiseLike<unknown>;
}

/** One message of a prompt. */
export interface PromptMessage {
  readonly role: string;
  readonly content: unknown;
}

/** What the SDK asks a model with, as far as it is looked at. */
export interface ModelRequest {
  readonly prompt: readonly PromptMessage[];
  readonly abortSignal?: AbortSignal | undefined;
}

/** A part of what the model said, or of the stream in which it says so. */
export interface Part {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** What a model has produced: all that is recorded of a call. The prompt is no part of it. */
export interface ModelReply {
  readonly content: readonly Part[];
  readonly finishReason: unknown;
  readonly usage: unknown;
  readonly warnings: readonly unknown[];
  readonly providerMetadata?: unknown;
  readonly response: { readonly id: string; readonly timestamp: Date; readonly modelId: string };
}

/** A reply as a provider gives it: with the request, headers and body, which are not kept. */
export interface RawReply extends Omit<ModelReply, "response"> {
  readonly response?: Partial<ModelReply["response"]> | undefined;
}

/** The same model, called in the SDK's way. */
export interface CallableModel {
  doGenerate(request: ModelRequest): PromiseLike<RawReply>;
  doStream(request: ModelRequest): PromiseLike<{ readonly stream: ReadableStream<Part> }>;
}
