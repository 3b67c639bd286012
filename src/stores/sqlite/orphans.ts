// The questions that find runs which nothing will ever wake, or not in time (I10), and their rescue.
import type { OrphanRow } from "../../core/store.ts";
import type { RunState } from "../../core/transition.ts";
import { childMessageId } from "../../core/wakeups.ts";
import { WHY_ORPHAN } from "../why-orphan.ts";
import type { Connection, Row } from "./connection.ts";

const ENDED = "('succeeded', 'failed', 'cancelled')";
/** The states in which a run lets go to wait. */
const SUSPENDED: readonly RunState[] = ["running", "retrying", "waiting", "compensating"];
/** How many sleeping runs are looked at in one go: a million of them must not hold up everything else. */
const LOOK_AT_ONCE = 20_000;

// Of the waits, a timer and a retry have their source in `wake_at`; a child must be unfinished, or its message unread.
const HAS_SOURCE = `exists (select 1 from waits where waits.run = runs.n and (kind not in ('timer', 'retry', 'child') or (kind = 'child'
  and (exists (select 1 from runs as child where child.id = waits.name and child.state not in ${ENDED})
    or exists (select 1 from inbox where inbox.run = runs.n and inbox.id = '${childMessageId("")}' || waits.name and consumed = 0)))))`;

// Whatever else a run waits for, what falls due and its deadline need an alarm that comes no later.
const HAS_TIME =
  "(deadline is not null or exists (select 1 from waits where waits.run = runs.n and waits.due is not null))";
const IS_OVERSLEPT =
  "(wake_at > deadline or exists (select 1 from waits where waits.run = runs.n and waits.due < wake_at))";

const IS_FORSAKEN = `owner is not null and state not in ${ENDED} and owner not in (select id from workers)`;
const IS_UNARMED = `owner is null and ready_at is null and wake_at is null
  and state not in ('parked', 'succeeded', 'failed', 'cancelled')`;
const IS_FORGOTTEN = `${IS_UNARMED} and (not ${HAS_SOURCE} or (state <> 'accepted' and ${HAS_TIME}))`;
const IS_LATE = `owner is null and ready_at is null and wake_at is not null and ${IS_OVERSLEPT}`;

// Two halves, because each has an index that holds almost nothing; the order asked for would tempt SQLite away from it.
const LOST = `select n, id, state, '${WHY_ORPHAN.owner}' as why from runs indexed by runs_owner where ${IS_FORSAKEN}
  union all
  select n, id, state, case when ${HAS_SOURCE} then '${WHY_ORPHAN.alarm}' else '${WHY_ORPHAN.source}' end as why
    from runs indexed by runs_unarmed where ${IS_FORGOTTEN}`;

const ASLEEP = "runs indexed by runs_state where state = ?1 and state <> 'succeeded' and n > ?2";
const END_OF_LOOK = `select n from ${ASLEEP} order by n limit 1 offset ${LOOK_AT_ONCE - 1}`;
const LATE = `select n, id, state, '${WHY_ORPHAN.alarm}' as why from ${ASLEEP} and n <= ?3 and ${IS_LATE}`;

const ONE = `select n from runs where id = ? and ((${IS_FORSAKEN}) or (${IS_FORGOTTEN})
  or (state in (${SUSPENDED.map((state) => `'${state}'`).join(", ")}) and ${IS_LATE}))`;
const ADOPT = "update runs set owner = null, ready_at = ?, wake_at = null where n = ?";

// Captured at load: the determinism guard replaces the globals later.
const { setImmediate: nextRound } = globalThis;

export async function orphans(db: Connection): Promise<OrphanRow[]> {
  const found = await db.read(() => db.all(LOST));
  for (const state of SUSPENDED) found.push(...(await lateAlarms(db, state)));
  return found
    .sort((a, b) => (a.n as number) - (b.n as number))
    .map((row) => ({ run: row.id as string, state: row.state as RunState, why: row.why as string }));
}

/** There is no index of these: all sleeping runs are looked at, some at a time. */
async function lateAlarms(db: Connection, state: RunState): Promise<Row[]> {
  const late: Row[] = [];
  for (let from = -1; ; ) {
    const to = await db.read(() => (db.get(END_OF_LOOK, state, from)?.n as number | undefined) ?? null);
    late.push(...(await db.read(() => db.all(LATE, state, from, to ?? Number.MAX_SAFE_INTEGER))));
    if (to === null) return late;
    from = to;
    await new Promise<void>((resolve) => nextRound(resolve));
  }
}

/** Only what is still an orphan is made claimable: the list may be old (B18). Must run inside a write transaction. */
export function adopt(db: Connection, ids: readonly string[], now: number): number {
  return ids.filter((id) => {
    const row = db.get(ONE, id);
    return row !== undefined && db.run(ADOPT, now, row.n as number) === 1;
  }).length;
}
