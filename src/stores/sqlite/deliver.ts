// Messages to a run: an inbox row, a raised counter, and a run that can be claimed, in one transaction (P18).
import type { Delivery, Message } from "../../core/store.ts";
import type { Connection } from "./connection.ts";

const FIND = "select n, state in ('succeeded', 'failed', 'cancelled') as has_ended, cancel from runs where id = ?";
const IS_KNOWN = "select 1 from inbox where run = ? and id = ?";

const INSERT = `insert into inbox (run, n, id, kind, name, data, at)
  values (?1, (select coalesce(max(n), 0) + 1 from inbox where run = ?1), ?2, ?3, ?4, ?5, ?6)`;

// A parked run moves only for a decision or a cancel; one that is to start later starts then, unless it is cancelled.
const WAKE = `update runs set wake = wake + 1, unread = max(unread, 0) + 1,
  ready_at = case when owner is null and (case state when 'parked' then ?2 = 'decision' else state <> 'accepted' end)
    then min(coalesce(ready_at, ?3), ?3) else ready_at end
  where n = ?1`;

const CANCEL = `update runs set wake = wake + 1, cancel = ?2,
  ready_at = case when owner is null then min(coalesce(ready_at, ?3), ?3) else ready_at end
  where n = ?1`;

/** Must run inside a write transaction. */
export function deliver(db: Connection, message: Message, now: number): Delivery {
  const run = db.get(FIND, message.to);
  if (run === undefined) return "missing";
  if (run.has_ended === 1) return "ended";
  const n = run.n as number;
  if (message.kind === "cancel") {
    if (run.cancel !== null) return "duplicate";
    db.run(CANCEL, n, typeof message.data === "string" ? message.data : message.name, now);
    return "delivered";
  }
  if (db.get(IS_KNOWN, n, message.id) !== undefined) return "duplicate";
  db.run(INSERT, n, message.id, message.kind, message.name, message.data, now);
  db.run(WAKE, n, message.kind, now);
  return "delivered";
}
