import type { PurgeRequest } from "../../core/run-query.ts";
import { counterRange } from "../counters.ts";
import type { Connection, Row } from "./connection.ts";
import { readTags } from "./rows.ts";

const FIND = `select n, id, tags from runs where ended_at is not null and ended_at < max(?1, ?2)
  and ((state = 'succeeded' and ended_at < ?1) or (state in ('failed', 'cancelled') and ended_at < ?2))
  and n not in (select run from kept) and (?4 is null or workflow = ?4)
  and workflow not in (select value from json_each(?5)) order by ended_at, n limit ?3`;

const FORGET_STARTS = "delete from starts where until <= ?";
const DELETE_TAG = "delete from tags where tag = ? and run = ?";
const DELETE_ALL_TAGS = "delete from tags where run = ?";
const DELETE_COUNTERS = "delete from counters where key >= ? and key < ?";
const DELETES = [
  "delete from journal where run = ?",
  "delete from state where run = ?",
  "delete from keys where run = ?",
  "delete from chunks where run = ?",
  "delete from runs where n = ?",
];

/** Deletes the runs that ended first, with all that is still kept of them. Must run inside a write transaction. */
export function purge(db: Connection, request: PurgeRequest, now: number): number {
  const { succeededBefore, failedBefore, limit, workflow = null, except = [] } = request;
  const gone = db.all(FIND, succeededBefore, failedBefore, limit, workflow, JSON.stringify(except));
  if (request.dryRun === true) return gone.length;
  db.run(FORGET_STARTS, now);
  for (const row of gone) purgeRun(db, row);
  return gone.length;
}

function purgeRun(db: Connection, { n, id, tags }: Row): void {
  const { from, to } = counterRange(id as string);
  db.run(DELETE_COUNTERS, from, to);
  const listed = readTags(tags);
  // Without the list, which names the rows, all of them are walked.
  if (listed === null) db.run(DELETE_ALL_TAGS, n as number);
  for (const tag of listed ?? []) db.run(DELETE_TAG, tag, n as number);
  for (const sql of DELETES) db.run(sql, n as number);
}
