import { messageOf, PawlError } from "../base/errors.ts";
import type { StandardSchema } from "../core/schema.ts";
import { validate } from "../core/schema.ts";
import type { BoundPrompt } from "./prompt.ts";

/**
 * What a model's answer means: JSON that fits the prompt's `output`, also in a code block; without `output` the text itself.
 * Throws `prompt_evaluation` with phase "response".
 */
export async function parseOutput<O>(bound: BoundPrompt<O>, text: string): Promise<O> {
  const { output, name } = bound.prompt;
  if (output === null) return text as O;
  const json = jsonOf(text);
  if (json === null) throw unusable(name, "it holds no JSON value.");
  try {
    return (await validate(output as StandardSchema, json.value, "The answer")) as O;
  } catch (cause) {
    throw unusable(name, messageOf(cause), cause);
  }
}

function unusable(prompt: string, why: string, cause?: unknown): PawlError {
  return new PawlError(
    "prompt_evaluation",
    `The answer to prompt "${prompt}" cannot be used: ${why} Ask the model again, or relax \`output\` of the prompt.`,
    { fields: { phase: "response", prompt }, cause },
  );
}

interface Json {
  readonly value: unknown;
}

/** The JSON of an answer: all of it, else its last code block. */
function jsonOf(text: string): Json | null {
  const blocks = [...text.matchAll(/```(?:json)?[ \t]*\r?\n([\s\S]*?)```/gi)].map((match) => match[1] ?? "");
  for (const candidate of [text, ...blocks.reverse()]) {
    const json = parsed(candidate);
    if (json !== null) return json;
  }
  return null;
}

function parsed(text: string): Json | null {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
}
