// The conversation of an evaluation
// What the model was told and has said since the prompt. It lives in memory alone: replay builds it again from recorded answers. Its hash rolls from
// message to message, so that neither hash nor journal grows with its length.
import { digestOf } from "./digest.ts";
import type { ModelMessage, ModelPart, ModelReply } from "./model.ts";
import type { ToolRecord } from "./tool.ts";

/** An answer to a tool call. */
export interface Answer {
  readonly id: string;
  readonly name: string;
  readonly record: ToolRecord;
}

export class Conversation {
  readonly #messages: ModelMessage[] = [];
  #hash = "";
  /** What the hash does not have yet: it is made once a round. */
  #fresh: string;
  #length = 0;

  constructor(about: string) {
    this.#fresh = about;
  }

  /** Of everything so far. */
  get hash(): string {
    if (this.#fresh !== "") this.#hash = digestOf(`${this.#hash}${this.#fresh}`);
    this.#fresh = "";
    return this.#hash;
  }

  /** In characters, roughly: for estimates. */
  get length(): number {
    return this.#length;
  }

  get messages(): readonly ModelMessage[] {
    return this.#messages;
  }

  tell(text: string): void {
    this.#add({ role: "user", content: [{ type: "text", text }] });
  }

  addReply({ content }: ModelReply): void {
    this.#add({ role: "assistant", content: content.map(sendable) });
  }

  addAnswers(answers: readonly Answer[]): void {
    this.#add({ role: "tool", content: answers.map(resultPart) });
  }

  #add(message: ModelMessage): void {
    const text = JSON.stringify(message);
    this.#messages.push(message);
    this.#fresh += text;
    this.#length += text.length;
  }
}

/** Arguments that were no JSON were refused; some providers do not even take them back. */
function sendable(part: ModelPart): ModelPart {
  return part.type === "tool-call" && typeof part.input === "string" ? { ...part, input: {} } : part;
}

function resultPart({ id, name, record }: Answer): ModelPart {
  return {
    type: "tool-result",
    toolCallId: id,
    toolName: name,
    output: { type: record.success ? "text" : "error-text", value: record.message },
  };
}
