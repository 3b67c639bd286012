// The one query that finds runs which nothing will ever wake (I10), and their rescue.
import type { OrphanRow } from "../../core/store.ts";
import type { RunState } from "../../core/transition.ts";
import { childMessageId } from "../../core/wakeups.ts";
import type { Connection, Row } from "./connection.ts";

const ENDED = "('succeeded', 'failed', 'cancelled')";

// Of the waits, a timer and a retry have their source in `wake_at`; a child must be unfinished, or its message unread.
const HAS_SOURCE = `exists (select 1 from waits where waits.run = runs.n and (kind not in ('timer', 'retry', 'child') or (kind = 'child'
  and (exists (select 1 from runs as child where child.id = waits.name and child.state not in ${ENDED})
    or exists (select 1 from inbox where inbox.run = runs.n and inbox.id = ?1 || waits.name and consumed = 0)))))`;

// Two halves, because each has an index that holds almost nothing; the order asked for would tempt SQLite away from it.
const FORSAKEN = `select n, id, state, 'its owner is gone' as why from runs indexed by runs_owner
  where owner is not null and state not in ${ENDED} and owner not in (select id from workers)`;
const UNARMED = `select n, id, state, 'nothing will wake it' as why from runs indexed by runs_unarmed
  where owner is null and ready_at is null and wake_at is null
    and state not in ('parked', 'succeeded', 'failed', 'cancelled') and not ${HAS_SOURCE}`;

const CHILD_MESSAGE = childMessageId("");
const ALL = `${FORSAKEN} union all ${UNARMED} order by n`;
const ONE = `select n from (${FORSAKEN} union all ${UNARMED}) where id = ?2`;
const ADOPT = "update runs set owner = null, ready_at = ? where n = ?";

export function orphans(db: Connection): OrphanRow[] {
  return db.all(ALL, CHILD_MESSAGE).map((row: Row) => ({
    run: row.id as string,
    state: row.state as RunState,
    why: row.why as string,
  }));
}

/** Only what is still an orphan is made claimable: the list may be old (B18). Must run inside a write transaction. */
export function adopt(db: Connection, ids: readonly string[], now: number): number {
  return ids.filter((id) => {
    const row = db.get(ONE, CHILD_MESSAGE, id);
    return row !== undefined && db.run(ADOPT, now, row.n as number) === 1;
  }).length;
}
