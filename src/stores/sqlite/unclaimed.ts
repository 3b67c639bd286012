// Runs that nobody owns, by version. Of each version only the first is looked for, and some of its runs: a million that sleep cost as much as one.
import type { UnclaimedQuery, UnclaimedRow } from "../../core/store.ts";
import type { Connection, Row } from "./connection.ts";

const ALL_FREE = `runs indexed by runs_unclaimed
  where owner is null and state not in ('parked', 'succeeded', 'failed', 'cancelled')`;
const FREE = `${ALL_FREE} and workflow = ?`;

const NEXT_WORKFLOW = `select workflow from ${ALL_FREE} and workflow > ? order by workflow limit 1`;

// Two questions, each of which is one step into the index.
const NEXT_PATCH = `select version, line, patch from ${FREE} and line = ? and patch > ? order by patch limit 1`;
const NEXT_LINE = `select version, line, patch from ${FREE} and line > ? order by line, patch limit 1`;
const SOME = `select id from ${FREE} and line = ? and patch = ? order by n limit ?`;

/** Must run inside one snapshot. */
export function listUnclaimed(db: Connection, { workflows, limit }: UnclaimedQuery): UnclaimedRow[] {
  return [...new Set(workflows ?? allWorkflows(db))].flatMap((workflow) => versionsOf(db, workflow, limit));
}

function allWorkflows(db: Connection): string[] {
  const found: string[] = [];
  for (let next = db.get(NEXT_WORKFLOW, ""); next !== undefined; next = db.get(NEXT_WORKFLOW, found.at(-1) as string))
    found.push(next.workflow as string);
  return found;
}

function versionsOf(db: Connection, workflow: string, limit: number): UnclaimedRow[] {
  const found: UnclaimedRow[] = [];
  for (let next = db.get(NEXT_LINE, workflow, ""); next !== undefined; next = after(db, workflow, next)) {
    const runs = db.all(SOME, workflow, next.line as string, next.patch as number, limit);
    found.push({ workflow, version: next.version as string, runs: runs.map(({ id }) => id as string) });
  }
  return found;
}

function after(db: Connection, workflow: string, { line, patch }: Row): Row | undefined {
  return db.get(NEXT_PATCH, workflow, line as string, patch as number) ?? db.get(NEXT_LINE, workflow, line as string);
}
