import { PawlError } from "../base/errors.ts";
import { utf8Length } from "../base/utf8.ts";
import { LIMITS } from "../core/limits.ts";
import type { CancelOptions } from "./run.ts";

/** Why somebody cancels, checked: it is copied to every child. */
export function reasonOf({ reason = "" }: CancelOptions): string {
  if (typeof reason !== "string")
    throw new PawlError("invalid_argument", `The reason of a cancel is text, not ${typeof reason}. Give a sentence.`);
  if (utf8Length(reason) <= LIMITS.reasonBytes) return reason;
  throw new PawlError(
    "too_large",
    `The reason takes more than ${LIMITS.reasonBytes} bytes. Give a sentence, and keep the rest elsewhere.`,
    { fields: { path: "reason", maxBytes: LIMITS.reasonBytes } },
  );
}
