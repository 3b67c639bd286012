import { createHmac, randomBytes } from "node:crypto";
import { isSameSecret } from "./sessions.ts";

/** What a form was made for: the same link, what it showed, and whoever looked at it. */
export interface FormFacts {
  readonly token: string;
  /** Of the action that the page shows; empty where it shows none. */
  readonly hash: string;
  /** Empty where nobody has signed in. */
  readonly user: string;
}

/** A value that only the page of this link has in its form: a post without it was made by no page of ours. */
export function newNonce(facts: FormFacts): string {
  return nonceWith(randomBytes(12).toString("base64url"), facts);
}

export function isNonce(given: string, facts: FormFacts): boolean {
  const [salt = ""] = given.split(".");
  return salt !== "" && isSameSecret(given, nonceWith(salt, facts));
}

/** The token is secret and long: it makes a good key, and every process of a server has it where it is needed. */
function nonceWith(salt: string, { token, hash, user }: FormFacts): string {
  const mac = createHmac("sha256", token).update(`pawl form\n${salt}\n${hash}\n${user}`).digest("base64url");
  return `${salt}.${mac}`;
}
