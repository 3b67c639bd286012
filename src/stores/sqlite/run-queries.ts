// Lists and counts of runs
// Runs are listed by age, which is the order of their numbers. Whatever narrows a list most is asked of an index first; SQLite keeps no statistics
// here, so where its own choice could be a walk through all runs, the statement leaves it none.
import { PawlError } from "../../base/errors.ts";
import type { RunCounts, RunFilter, RunQuery } from "../../core/run-query.ts";
import type { RunRow } from "../../core/store.ts";
import { RUN_STATES, type RunState } from "../../core/transition.ts";
import { endOfPrefix } from "../counters.ts";
import { countsOf } from "../run-counts.ts";
import { partsOf, type RunPart } from "../run-parts.ts";
import type { Connection, Row } from "./connection.ts";
import type { SqlValue } from "./driver.ts";
import { limitOf, numberOf } from "./queries.ts";
import { RUN_COLUMNS, runRow } from "./rows.ts";

/** Must run inside one snapshot: it asks once per state, so that each question has an index. */
export function listRuns(db: Connection, query: RunQuery): RunRow[] {
  if (query.before !== undefined) assertCursor(db, query.before);
  return partsOf(query)
    .flatMap((part) => listPart(db, query, part))
    .sort((a, b) => (b.n as number) - (a.n as number))
    .slice(0, query.limit)
    .map(runRow);
}

function assertCursor(db: Connection, id: string): void {
  if (numberOf(db, id) !== null) return;
  throw new PawlError(
    "run_not_found",
    `The page cursor ${id} names a run that is gone. List again from the first page.`,
    {
      fields: { run: id },
    },
  );
}

const COLUMNS = RUN_COLUMNS.split(",")
  .map((column) => `runs.${column.trim()}`)
  .join(", ");

function listPart(db: Connection, query: RunQuery, part: RunPart): Row[] {
  const where = conditionsOf(query, part);
  where.add("runs.n < (select n from runs where id = ?)", query.before);
  const limit = limitOf(query.limit);
  if (query.search === undefined)
    return db.all(
      `select ${COLUMNS} from ${where.tables} ${where.clause} order by ${where.order} desc limit ?`,
      ...where.values,
      limit,
    );
  // Numbers alone are found in the indexes; the rows of those that are on the page are read last.
  const found = searched(where, query.search, "order by +runs.n desc limit ?", limit);
  const text = `select ${RUN_COLUMNS} from runs where n in (${found.text}) order by n desc limit ?`;
  return db.all(text, ...found.values, limit);
}

/** Must run inside one snapshot. */
export function countRuns(db: Connection, filter: RunFilter, bound: number): RunCounts {
  const states: readonly RunState[] = filter.states ?? RUN_STATES;
  const found = new Map<RunState, number>();
  for (const part of partsOf({ ...filter, states })) {
    const state = part.state as RunState;
    found.set(state, (found.get(state) ?? 0) + countPart(db, filter, part, limitOf(bound + 1)));
  }
  return countsOf(found, bound);
}

function countPart(db: Connection, filter: RunFilter, part: RunPart, limit: number): number {
  const where = conditionsOf(filter, part);
  const plain = {
    text: `select runs.n from ${where.tables} ${where.clause} limit ?`,
    values: [...where.values, limit],
  };
  const { text, values } = filter.search === undefined ? plain : searched(where, filter.search, "limit ?", limit);
  return db.get(`select count(*) as count from (${text})`, ...values)?.count as number;
}

/** Numbers of runs of which some text begins with this, each once: an index for each kind of text, and the end of the list for each of them. */
function searched(where: Conditions, search: string, end: string, limit: number): Statement {
  const range = [search, endOfPrefix(search), search];
  const sources = ["runs.id", "runs.workflow", "runs.key", "found.tag"].map((column) => {
    const isIn = `${column} >= ? and ${column} < ? and substr(${column}, 1, length(?)) = ?`;
    const tables = column === "found.tag" ? "tags as found cross join runs on runs.n = found.run" : "runs";
    return `select n from (select runs.n from ${tables} where ${isIn} and ${where.text} ${end})`;
  });
  const values = sources.flatMap(() => [...range, search, ...where.values, limit]);
  return { text: sources.join(" union "), values };
}

interface Statement {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

function conditionsOf(filter: RunFilter, { workflow, state }: RunPart): Conditions {
  const isByTag = filter.tag !== undefined && filter.search === undefined;
  const where = new Conditions(isByTag ? "tags cross join runs on runs.n = tags.run" : "runs");
  where.add(isByTag ? "tags.tag = ?" : "exists (select 1 from tags where tag = ? and run = runs.n)", filter.tag);
  // The second half repeats the condition of the index, which SQLite cannot see in a bound value.
  if (state === "succeeded") where.add("state = ?", state);
  else if (state !== null) where.add("state = ? and state <> 'succeeded'", state);
  where.add("workflow = ?", workflow ?? undefined);
  for (const other of filter.except ?? []) where.add("workflow <> ?", other);
  where.add("parent = ?", filter.parent);
  where.add("slot = ? and slot <> '' and owner is not null", filter.slot);
  where.add("created_at > ?", filter.createdAfter);
  where.add("created_at < ?", filter.createdBefore);
  return where;
}

/** Conditions that hold together, with their values. */
class Conditions {
  readonly tables: string;
  readonly #texts: string[] = [];
  readonly values: SqlValue[] = [];

  constructor(tables: string) {
    this.tables = tables;
  }

  /** Leaves it out where the value is absent. */
  add(text: string, value: SqlValue | undefined): void {
    if (value === undefined) return;
    this.#texts.push(text);
    this.values.push(value);
  }

  get text(): string {
    return this.#texts.length === 0 ? "true" : this.#texts.join(" and ");
  }

  get clause(): string {
    return this.#texts.length === 0 ? "" : `where ${this.text}`;
  }

  /** What the tables are walked in the order of. */
  get order(): string {
    return this.tables === "runs" ? "runs.n" : "tags.run";
  }
}
