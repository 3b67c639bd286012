import { hash } from "node:crypto";

/** A collision-free digest of a text, in 22 characters that any key may have. */
export function digestOf(text: string): string {
  return hash("sha256", text, "base64url").slice(0, 22);
}
