// What a model call is about
// The digest that replay compares: of what was said, and of nothing else.
import { createHash } from "node:crypto";
import type { PromptMessage } from "./language-model.ts";

/** What providers attach to messages and parts: it says how, not what. */
const NOT_SAID: ReadonlySet<string> = new Set(["providerOptions", "providerMetadata"]);

/**
 * A digest of the conversation. Another one in replay means that the body took another way. The system prompt is left out, as are tools and
 * settings: they are the program's text, which a deployment may change under a run, and what was answered to the old one still is what happened.
 */
export function conversationDigest(prompt: readonly PromptMessage[]): string {
  const hash = createHash("sha256");
  for (const { role, content } of prompt) if (role !== "system") hash.update(`${role} ${canonical(content)}\n`);
  return hash.digest("base64url");
}

/** The same text for the same value, whatever the order of its fields. */
function canonical(value: unknown): string {
  if (value instanceof Uint8Array) return `bytes ${createHash("sha256").update(value).digest("base64url")}`;
  if (value instanceof URL || value instanceof Date || typeof value !== "object" || value === null)
    return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const fields = Object.entries(value).filter(([name, field]) => field !== undefined && !NOT_SAID.has(name));
  fields.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonical(field)}`).join(",")}}`;
}
