// A model's reply
// The same record for both ways to ask: a stream is gathered into the parts it was made of, and a recorded reply is told as a stream again.
import { RetryableError } from "../base/errors.ts";
import type { ModelReply, Part, RawReply } from "./language-model.ts";

/** What a reply has that its provider did not say: the SDK would make it up in the body, another one in each replay. */
export interface ReplyDefaults {
  readonly id: string;
  readonly at: number;
  readonly modelId: string;
}

/** What is recorded of a reply. */
export function replyOf(raw: RawReply, { id, at, modelId }: ReplyDefaults): ModelReply {
  const { content, finishReason, usage, warnings = [], providerMetadata, response } = raw;
  return {
    content,
    finishReason,
    usage,
    warnings,
    ...(providerMetadata !== undefined && { providerMetadata }),
    response: {
      id: response?.id ?? id,
      timestamp: response?.timestamp ?? new Date(at),
      modelId: response?.modelId ?? modelId,
    },
  };
}

/** Reads a stream to its end. Each part is handed on as it comes. */
export async function gather(stream: ReadableStream<Part>, onPart: (part: Part) => void): Promise<RawReply> {
  const gathering = new Gathering();
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return gathering.reply();
    onPart(value);
    gathering.take(value);
  }
}

/** Parts of a text that come one after the other, by what they are of. */
const TEXTS: Readonly<Record<string, string>> = { text: "text", reasoning: "reasoning" };

class Gathering {
  readonly #content: Part[] = [];
  /** Where the texts that are under way stand in the content. */
  readonly #open = new Map<string, number>();
  #facts: Partial<RawReply> = {};
  #isFinished = false;

  take(part: Part): void {
    const { type, ...fields } = part;
    const [, kind = "", step = ""] = /^(.+)-(start|delta|end)$/.exec(type) ?? [];
    if (kind in TEXTS) this.#text(kind, step, part);
    else if (type === "stream-start") this.#facts = { ...this.#facts, ...fields };
    else if (type === "response-metadata") this.#facts = { ...this.#facts, response: fields };
    else if (type === "finish") this.#finish(fields);
    else if (type === "error") throw part["error"];
    // A tool's input comes as a whole in its tool-call, and raw chunks are the provider's own.
    else if (kind !== "tool-input" && type !== "raw") this.#content.push(part);
  }

  #text(kind: string, step: string, { id, delta, providerMetadata }: Part): void {
    const key = `${kind} ${String(id)}`;
    if (step === "start") this.#open.set(key, this.#content.push({ type: kind, text: "" }) - 1);
    const at = this.#open.get(key);
    if (at === undefined) return;
    const before = this.#content[at] as Part;
    const text = `${String(before["text"])}${step === "delta" ? String(delta) : ""}`;
    this.#content[at] = { ...before, text, ...(providerMetadata !== undefined && { providerMetadata }) };
    if (step === "end") this.#open.delete(key);
  }

  #finish(fields: object): void {
    this.#facts = { ...this.#facts, ...fields };
    this.#isFinished = true;
  }

  reply(): RawReply {
    if (!this.#isFinished) throw new RetryableError("The model's stream ended before the model had finished.");
    const { finishReason, usage, warnings = [], providerMetadata, response } = this.#facts;
    return { content: this.#content, finishReason, usage, warnings, providerMetadata, response };
  }
}

/** A recorded reply as the stream that it could have come in. */
export function streamOf(reply: ModelReply): ReadableStream<Part> {
  return new ReadableStream<Part>({
    start(controller) {
      for (const part of partsOf(reply)) controller.enqueue(part);
      controller.close();
    },
  });
}

function* partsOf({ content, finishReason, usage, warnings, providerMetadata, response }: ModelReply): Generator<Part> {
  yield { type: "stream-start", warnings };
  yield { type: "response-metadata", ...response };
  for (const [index, part] of content.entries()) yield* streamed(part, String(index));
  yield { type: "finish", finishReason, usage, ...(providerMetadata !== undefined && { providerMetadata }) };
}

function* streamed(part: Part, id: string): Generator<Part> {
  const { type, text, providerMetadata } = part;
  const metadata = providerMetadata !== undefined && { providerMetadata };
  if (type in TEXTS) {
    yield { type: `${type}-start`, id, ...metadata };
    yield { type: `${type}-delta`, id, delta: text };
    yield { type: `${type}-end`, id, ...metadata };
    return;
  }
  if (type === "tool-call") yield* streamedInput(part);
  yield part;
}

function* streamedInput({ toolCallId: id, toolName, input, providerExecuted, dynamic }: Part): Generator<Part> {
  const facts = {
    ...(providerExecuted !== undefined && { providerExecuted }),
    ...(dynamic !== undefined && { dynamic }),
  };
  yield { type: "tool-input-start", id, toolName, ...facts };
  yield { type: "tool-input-delta", id, delta: input };
  yield { type: "tool-input-end", id };
}
