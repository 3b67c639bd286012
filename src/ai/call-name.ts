import { createHash } from "node:crypto";
import { isName } from "../base/ids.ts";

/** Leaves room for what stands before it: a name has at most 256 bytes. */
const MOST_BYTES = 96;

/** The name of a tool call's step. An id that comes again gets a number from the engine: `tool.search.call_1#2`. */
export function callName(kind: string, tool: string, callId: string): string {
  return `${kind}.${safeName(tool)}.${safeName(callId)}`;
}

/** A text of a model or a provider as a part of a name: what names cannot have is replaced, and what is too long is cut and told apart by its digest. */
export function safeName(text: string): string {
  const clean = text.replaceAll(/[^\p{L}\p{N}\p{M} ._:@+=,()[\]{}|~!$%&*'"<>?^-]/gu, "_").trim();
  if (isName(clean) && Buffer.byteLength(clean) <= MOST_BYTES) return clean;
  return `${[...clean].slice(0, 16).join("").trim()}~${createHash("sha256").update(text).digest("base64url").slice(0, 16)}`;
}
