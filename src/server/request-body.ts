// Bodies of requests
// Nothing is parsed before it is known to be small, and no text is made a value before it is known to be flat enough.
import { PawlError } from "../base/errors.ts";
import type { Reads } from "./route.ts";
import type { ServerLimits } from "./server-limits.ts";

/** The whole body, or `too_large` as soon as it is: by what it says of itself, or by what has come. */
export async function readBytes(request: Request, { bodyBytes }: ServerLimits): Promise<Uint8Array> {
  const said = request.headers.get("content-length");
  if (said !== null && Number(said) > bodyBytes) throw tooLarge(bodyBytes);
  const { body } = request;
  if (body === null) return new Uint8Array();
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch(brokenOff);
    if (done) return joined(parts, length);
    length += value.length;
    parts.push(value);
    if (length <= bodyBytes) continue;
    await reader.cancel();
    throw tooLarge(bodyBytes);
  }
}

function brokenOff(cause: unknown): never {
  throw new PawlError("invalid_argument", "The body broke off before its end. Send it again.", { cause });
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const TYPES: Readonly<Record<Exclude<Reads, "bytes">, string>> = {
  json: "application/json",
  form: "application/x-www-form-urlencoded",
};

/** Forms of other people's pages can send a few types without asking; exactly this one is none of them (Q2). */
export function assertType(headers: Headers, reads: Exclude<Reads, "bytes">): void {
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  if (type.trim().toLowerCase() === TYPES[reads]) return;
  throw new PawlError(
    "unsupported_media_type",
    `The body of this request must be ${TYPES[reads]}. Say so in its content-type.`,
  );
}

export function parseBody(bytes: Uint8Array, reads: Exclude<Reads, "bytes">, { jsonDepth }: ServerLimits): unknown {
  const text = utf8(bytes);
  if (reads === "form") return Object.fromEntries(new URLSearchParams(text));
  if (text.trim() === "") return {};
  if (depthOf(text) > jsonDepth)
    throw new PawlError("invalid_argument", `The body is nested deeper than ${jsonDepth} levels. Send flatter JSON.`);
  try {
    return JSON.parse(text);
  } catch {
    throw new PawlError("invalid_argument", "The body is no JSON. Correct it and send it again.");
  }
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new PawlError("invalid_argument", "The body is no UTF-8 text. Send it as UTF-8.");
  }
}

/** How deep brackets are nested, whatever else the text may be. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let isText = false;
  for (let i = 0; i < text.length; i++) {
    const mark = text.charCodeAt(i);
    if (isText) {
      if (mark === 92) i++;
      else if (mark === 34) isText = false;
    } else if (mark === 34) isText = true;
    else if (mark === 123 || mark === 91) deepest = Math.max(deepest, ++depth);
    else if (mark === 125 || mark === 93) depth--;
  }
  return deepest;
}

function tooLarge(bodyBytes: number): PawlError {
  return new PawlError(
    "too_large",
    `The body takes more than ${bodyBytes.toLocaleString("en")} bytes. Keep large values elsewhere and send where they are.`,
    { fields: { maxBytes: bodyBytes } },
  );
}
