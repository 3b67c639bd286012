import { createHmac } from "node:crypto";
import { PawlError } from "../base/errors.ts";

const PREFIX = "whsec_";
/** Standard Webhooks asks for 24 to 64 bytes of chance. */
const LEAST_BYTES = 24;

/** The `webhook-signature` of a message by Standard Webhooks: one for each secret, so that secrets can be changed without a gap. */
export function signWebhook(
  secrets: readonly string[],
  message: { readonly id: string; readonly timestamp: number; readonly body: string | Uint8Array },
): string {
  const { id, timestamp, body } = message;
  const sign = (secret: string) =>
    createHmac("sha256", keyOf(secret)).update(`${id}.${timestamp}.`).update(body).digest("base64");
  return secrets.map((secret) => `v1,${sign(secret)}`).join(" ");
}

/** The bytes of a secret: base64, usually with "whsec_" in front. */
export function keyOf(secret: string): Uint8Array {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  const key = Buffer.from(text, "base64");
  if (/^[A-Za-z0-9+/]+={0,2}$/.test(text) && key.length >= LEAST_BYTES) return key;
  throw new PawlError(
    "invalid_argument",
    `A secret of a webhook is "${PREFIX}" and at least ${LEAST_BYTES} random bytes in base64. Make one with: openssl rand -base64 32`,
  );
}
