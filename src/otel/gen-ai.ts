// Calls of models and tools
// What their steps have recorded, in the words of OpenTelemetry's conventions for generative AI. Models are known by the shape of what they
// answered, tools by the names of their steps.
import { readProperty } from "../base/errors.ts";
import type { Attributes } from "./span-data.ts";

/** What is said of a step that asked a model; `null` if it did not. */
export function modelAttributes(value: unknown, hasContent: boolean): Attributes | null {
  const usage = readProperty(value, "usage");
  const content = readProperty(value, "content");
  const model = readProperty(value, "model") ?? readProperty(readProperty(value, "response"), "modelId");
  if (typeof usage !== "object" || usage === null || !Array.isArray(content) || typeof model !== "string") return null;
  const [provider, name] = model.includes(":") ? splitOnce(model) : [null, model];
  const finish = readProperty(value, "finish") ?? readProperty(value, "finishReason");
  const calls = content.filter((part) => readProperty(part, "type") === "tool-call");
  return {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": name,
    "gen_ai.response.model": name,
    ...(provider !== null && { "gen_ai.provider.name": provider }),
    ...countOf("gen_ai.usage.input_tokens", readProperty(usage, "inputTokens")),
    ...countOf("gen_ai.usage.output_tokens", readProperty(usage, "outputTokens")),
    ...(typeof finish === "string" && { "gen_ai.response.finish_reasons": [finish] }),
    ...(calls.length > 0 && { "pawl.model.proposed_tools": calls.map(toolOf) }),
    ...(hasContent && { "gen_ai.output.messages": JSON.stringify([{ role: "assistant", parts: content }]) }),
  };
}

/** What is said of a step that called a tool; `null` if it did not. */
export function toolAttributes(key: string, value: unknown, hasContent: boolean): Attributes | null {
  const found = /(?:^|[./])tool\.([^.]+)\.(.+?)(?:#\d+)?$/.exec(key);
  if (found === null) return null;
  const [, name = "", id = ""] = found;
  return {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": name,
    "gen_ai.tool.call.id": id,
    ...(hasContent && { "gen_ai.tool.call.result": JSON.stringify(value) ?? "null" }),
  };
}

function toolOf(part: unknown): string {
  return String(readProperty(part, "toolName") ?? readProperty(part, "name") ?? "");
}

/** A number, or what the AI SDK makes of it. */
function countOf(name: string, given: unknown): Attributes {
  const count = typeof given === "number" ? given : readProperty(given, "total");
  return typeof count === "number" ? { [name]: count } : {};
}

function splitOnce(model: string): [string, string] {
  const at = model.indexOf(":");
  return [model.slice(0, at), model.slice(at + 1)];
}
