import { OUTCOMES, type StoredEntry } from "../core/journal.ts";

/** How a final failure reads in the sealed text; a failure that will be retried is a mark. */
export const FINAL_FAILURE = '"retryAt":null';

export const PROGRESS_TYPES: readonly string[] = OUTCOMES;

/**
 * Whether an entry shows that the run moved on, so that an earlier death of its worker no longer counts (P28). A failure that
 * is compressed or encrypted cannot be read here and counts as progress: retries have a limit of their own.
 */
export function isProgress(entry: StoredEntry): boolean {
  if (entry.type !== "step.failed") return PROGRESS_TYPES.includes(entry.type);
  return typeof entry.data !== "string" || entry.data.includes(FINAL_FAILURE);
}
