import { hasCode } from "../base/errors.ts";

/** `null` while the store is away: whoever waits for a run goes on waiting. */
export async function patiently<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (hasCode(error, "storage_unavailable")) return null;
    throw error;
  }
}
