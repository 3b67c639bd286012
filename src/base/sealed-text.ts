// What an encrypted value looks like where it is kept: v1.<key id>.<nonce>.<ciphertext>.<tag>, the last three as base64url. It is text, so that
// anybody can see in SQL which key a row needs, and nobody more than that.
import type { FieldAddress } from "./envelope.ts";
import { PawlError } from "./errors.ts";

const KEY_ID = /^[A-Za-z0-9_-]{1,32}$/;
const NONCE = /^[A-Za-z0-9_-]{16}$/;
const CIPHERTEXT = /^[A-Za-z0-9_-]*$/;
const TAG = /^[A-Za-z0-9_-]{22}$/;

export interface SealedText {
  readonly key: string;
  readonly nonce: string;
  readonly ciphertext: string;
  readonly tag: string;
}

export function isKeyId(id: unknown): id is string {
  return typeof id === "string" && KEY_ID.test(id);
}

/** The parts of a sealed text; `null` for any other. No JSON begins like one, so what was kept before encryption was switched on stays readable. */
export function readSealed(text: string): SealedText | null {
  if (!text.startsWith("v1.")) return null;
  const [, key = "", nonce = "", ciphertext = "", tag = "", ...rest] = text.split(".");
  const isSealed =
    rest.length === 0 && isKeyId(key) && NONCE.test(nonce) && CIPHERTEXT.test(ciphertext) && TAG.test(tag);
  return isSealed ? { key, nonce, ciphertext, tag } : null;
}

/** The id of the key that stored data is sealed with; `null` if it is not. */
export function keyOf(data: string | Uint8Array | null): string | null {
  return typeof data === "string" ? (readSealed(data)?.key ?? null) : null;
}

/** Nobody has done anything wrong but the one who started this process: the value is whole, and the key is elsewhere. */
export function keyMissing(key: string, { run, seq, field }: FieldAddress): PawlError {
  const what = seq === -1 ? field : `entry ${seq}`;
  return new PawlError(
    "key_missing",
    `In run ${run}, ${what} is sealed with key "${key}", which this process does not have. Give it that key, Pawl.open({ encryption: { keys } }) or PAWL_KEYS for the command line; one that was replaced has to follow the new one in the list as long as \`pawl keys\` says that it is in use.`,
    { fields: { run, seq, field, key } },
  );
}
