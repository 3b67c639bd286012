import { createHmac, timingSafeEqual } from "node:crypto";
import { PawlError } from "../base/errors.ts";
import type { CallbackSecrets } from "../core/callback.ts";

/** Shorter ones can be guessed. */
const LEAST_CHARACTERS = 32;
/** Enough to tell the secrets of one store apart. */
const NAME_CHARACTERS = 8;

/** Tokens by HMAC-SHA-256: the first secret makes new ones, the others are known for those that were made before it. */
export function callbackSecrets(given: string | readonly string[] | undefined): CallbackSecrets | null {
  if (given === undefined) return null;
  const secrets = typeof given === "string" ? [given] : given;
  secrets.forEach(assertSecret);
  const [first] = secrets;
  if (first === undefined) throw invalid("is an empty list");
  // Made when they are asked for: most processes never use a callback.
  let names: ReadonlyMap<string, string> | null = null;
  const byName = () => {
    names ??= new Map(secrets.map((secret) => [nameOf(secret), secret]));
    return names;
  };
  const proof = (secret: string, id: string) => mac(secret, `pawl callback\n${id}`);
  return {
    get current() {
      return nameOf(first);
    },
    proof: (name, id) => {
      const secret = byName().get(name);
      return secret === undefined ? null : proof(secret, id);
    },
    isProof: (id, text) => secrets.some((secret) => isEqual(proof(secret, id), text)),
  };
}

function assertSecret(secret: unknown, index: number): void {
  if (typeof secret === "string" && secret.length >= LEAST_CHARACTERS) return;
  // What it is stays unsaid: errors are written to logs.
  throw invalid(`has ${typeof secret === "string" ? "too short a text" : "no text"} at place ${index + 1}`);
}

function invalid(what: string): PawlError {
  return new PawlError(
    "invalid_argument",
    `\`secret\` ${what}. Give at least ${LEAST_CHARACTERS} characters that nobody can guess, such as \`openssl rand -base64 32\` prints.`,
    { fields: { option: "secret" } },
  );
}

/** A name says which secret it is and nothing about it. */
function nameOf(secret: string): string {
  return mac(secret, "pawl secret").slice(0, NAME_CHARACTERS);
}

function mac(secret: string, text: string): string {
  return createHmac("sha256", secret).update(text).digest("base64url");
}

function isEqual(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)];
  return a.length === b.length && timingSafeEqual(a, b);
}
