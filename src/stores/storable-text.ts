import { PawlError } from "../base/errors.ts";

// Native since Node 20, but not in the type library of our target. It is instant for text without wide characters.
type NativeText = string & { isWellFormed(): boolean };

/**
 * True for text that every store gives back as it was. A NUL ends the text in one SQLite driver, so that two ids would become
 * one, and a lone surrogate has no UTF-8.
 */
export function isStorable(text: string): boolean {
  return !text.includes("\0") && (text as NativeText).isWellFormed();
}

/** Refuses text that some store would not give back as it was. */
export function assertStorable(...texts: readonly string[]): void {
  for (const text of texts) if (!isStorable(text)) throw unstorable(text);
}

export function unstorable(text: string): PawlError {
  const shown = JSON.stringify(text.slice(0, 60));
  return new PawlError(
    "invalid_argument",
    `The text ${shown} cannot be stored: it contains a NUL character or half of a surrogate pair. Remove it, or encode the text.`,
    { fields: { text: shown } },
  );
}
