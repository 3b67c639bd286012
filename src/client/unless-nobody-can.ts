import { setTimeout as pause } from "node:timers/promises";
import { isTerminal } from "../core/transition.ts";
import type { Pawl } from "./pawl.ts";
import { isCovered } from "./stranded.ts";

const LOOK_EVERY_MS = 300;
/** A worker that has just been started, or ends such a run by itself, is given this many looks. */
const LOOKS = 3;

/**
 * What a cancel came to; `null` if it is kept in the store and no live worker can carry it out: only the code of a run knows how to undo what it
 * has done, and to wait for somebody to start it would be to wait for ever.
 */
export async function unlessNobodyCan<T>(
  pawl: Pawl,
  run: string,
  cancel: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const isOver = new AbortController();
  const cancelling = cancel(isOver.signal);
  try {
    return await Promise.race([cancelling, nobodyCan(pawl, run, isOver.signal)]);
  } finally {
    isOver.abort();
    cancelling.catch(() => {});
  }
}

async function nobodyCan({ store }: Pawl, run: string, signal: AbortSignal): Promise<null> {
  for (let seen = 0; seen < LOOKS && !signal.aborted; ) {
    await pause(LOOK_EVERY_MS);
    const row = await store.run(run);
    const isStuck = row !== null && !isTerminal(row.state) && row.cancel !== null && !(await isCovered(store, row));
    seen = isStuck ? seen + 1 : 0;
  }
  return null;
}
