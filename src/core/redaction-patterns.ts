// Texts that give themselves away: what a card number, a bearer token or the key of a service looks like.
import { REDACTED_TEXT } from "../base/redacted.ts";

export type PatternName = "card" | "bearer" | "key";

/** By what those numbers begin with: a time in milliseconds is as long, and has the right check digit once in ten times. */
const CARD = /(?<![\w.-])(?:3[0-9]|4\d|5[1-5]|2[2-7]|6\d)(?:[ -]?\d){12,17}(?![\w-])/g;
const BEARER = /\b(bearer|basic)\s+[A-Za-z0-9._~+/-]{8,}=*/gi;
/** Web tokens, and keys whose makers have given them a beginning of their own. */
const KEYS = [
  /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g,
  /\b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)?[-_]?[A-Za-z0-9_-]{16,}/g,
  /\b(?:ghp|gho|ghu|ghs|ghr|github_pat|glpat|npm|xox[abeprs])[-_][A-Za-z0-9_-]{16,}/g,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  /\bAIza[\w-]{35}/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
];

const NAMED: Readonly<Record<PatternName, (text: string) => string>> = {
  card: (text) => text.replaceAll(CARD, (found) => (isCardNumber(found) ? REDACTED_TEXT : found)),
  bearer: (text) => text.replaceAll(BEARER, (_found, scheme: string) => `${scheme} ${REDACTED_TEXT}`),
  key: (text) => KEYS.reduce((rest, pattern) => rest.replaceAll(pattern, REDACTED_TEXT), text),
};

export function isPatternName(name: unknown): name is PatternName {
  return typeof name === "string" && Object.hasOwn(NAMED, name);
}

export function redactPattern(text: string, pattern: PatternName | RegExp): string {
  if (typeof pattern === "string") return NAMED[pattern](text);
  // An expression of the user's may be for the first match only, or remember where it was.
  const all = new RegExp(pattern.source, pattern.flags.includes("g") ? pattern.flags : `${pattern.flags}g`);
  return text.replaceAll(all, REDACTED_TEXT);
}

/** By its check digit: most long numbers are none. */
function isCardNumber(text: string): boolean {
  const digits = [...text].filter((letter) => letter >= "0" && letter <= "9").map(Number);
  const sum = digits.reverse().reduce((total, digit, index) => {
    const doubled = index % 2 === 1 ? digit * 2 : digit;
    return total + (doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return sum % 10 === 0;
}
