// Following a run's journal
// Everything recorded so far, then what follows, until the run ends.
//
//   RE1. Entries come in the order of their positions, none twice, and none is left out: a reader that would miss one gets `cursor_expired` instead.
//   RE2. A reader who goes on behind the position of the last entry that it had gets all that follows.
import { PawlError } from "../base/errors.ts";
import type { Entry } from "../core/journal.ts";
import { LIMITS } from "../core/limits.ts";
import type { RunRow, Store } from "../core/store.ts";
import { isTerminal } from "../core/transition.ts";
import { openEntry } from "../core/values.ts";
import { patiently } from "./patiently.ts";
import type { RunSource } from "./run.ts";

export interface EventsOptions {
  /** Go on behind the entry at this position. */
  readonly after?: number;
}

/** The journal of a run as it grows; `readRow` reads the run's row. */
export async function* eventsOf(
  { store, codec, changes, assertOpen }: RunSource,
  id: string,
  readRow: () => Promise<RunRow>,
  { after }: EventsOptions = {},
): AsyncGenerator<Entry, void, void> {
  const listener = changes.listen(id);
  let from = after === undefined ? 0 : after + 1;
  try {
    if (after !== undefined) await assertFollows(store, id, after);
    for (;;) {
      assertOpen();
      const row = await patiently(readRow());
      const page = (await patiently(store.journal(id, { from, limit: LIMITS.streamPage }))) ?? [];
      for (const stored of page) {
        if (from > 0 && stored.seq !== from) throw expired(id, from - 1, "what followed it is not kept any more");
        from = stored.seq + 1;
        yield openEntry(codec, id, stored);
      }
      if (page.length === LIMITS.streamPage) continue;
      // The row may be older than the entries, and the entries may not have been read: only both together say that this was all.
      if (row !== null && isTerminal(row.state) && from >= row.head) return;
      await listener.next({ polls: true });
    }
  } finally {
    listener.stop();
  }
}

/** Throws `cursor_expired` unless the entry at this position is there, or all that follow it. */
export async function assertFollows(store: Store, run: string, after: number): Promise<void> {
  if (!Number.isSafeInteger(after) || after < 0)
    throw new PawlError("invalid_argument", `\`after\` is ${after}. Give the position of the last entry you have.`, {
      fields: { run, field: "after" },
    });
  const [first] = await store.journal(run, { from: after, limit: 1 });
  if (first === undefined)
    throw expired(run, after, "the journal ends before it, so the store was put back to an earlier state");
  if (first.seq > after + 1) throw expired(run, after, "what followed it is not kept any more");
}

function expired(run: string, after: number, why: string): PawlError {
  return new PawlError(
    "cursor_expired",
    `Nobody can go on behind entry ${after} of run ${run}: ${why}. Read the run again from its beginning.`,
    { fields: { run, after } },
  );
}
