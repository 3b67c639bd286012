// Lists and counts of runs
// Runs are listed by age, which is the order of their numbers. Whatever narrows a list most is asked of an index first; SQLite keeps no statistics
// here, so where its own choice could be a walk through all runs, the statement leaves it none. What a great many runs have is not asked of an index:
// among the newest there are soon enough of them.
import { PawlError } from "../../base/errors.ts";
import type { RunCounts, RunFilter, RunQuery } from "../../core/run-query.ts";
import type { RunRow } from "../../core/store.ts";
import { RUN_STATES, type RunState } from "../../core/transition.ts";
import { endOfPrefix } from "../counters.ts";
import { countsOf } from "../run-counts.ts";
import { isPlain, partsOf, type RunPart } from "../run-parts.ts";
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
  const found = numbersOf(db, where, query.search, limit);
  const text = `select ${RUN_COLUMNS} from runs where n in (${found.text}) order by n desc limit ?`;
  return db.all(text, ...found.values, limit);
}

// Counts

/** So many rows are looked at in one go before each state is counted by itself. */
const MANY = 50_000;

/** Must run inside one snapshot. */
export function countRuns(db: Connection, filter: RunFilter, bound: number): RunCounts {
  const parts = partsOf({ ...filter, states: filter.states ?? RUN_STATES });
  const found = isPlain(filter)
    ? countByIndex(db, filter, parts, bound)
    : (countAtOnce(db, filter, parts) ?? countByPart(db, filter, parts, bound));
  return countsOf(found, bound);
}

const WORKFLOWS = `with recursive names (name) as (select min(workflow) from runs
  union all select (select min(workflow) from runs where workflow > name) from names where name is not null)
  select name from names where name is not null`;
const COUNT = "select count(*) as count from (select 1 from runs where workflow = ? and state = ? limit ?)";

/** One index has it all: each state of each workflow is counted up to the bound. */
function countByIndex(
  db: Connection,
  { except = [] }: RunFilter,
  parts: readonly RunPart[],
  bound: number,
): Map<RunState, number> {
  const all = parts.some(({ workflow }) => workflow === null)
    ? db.all(WORKFLOWS).map(({ name }) => name as string)
    : [];
  const isMeant = (workflow: string) => !except.includes(workflow);
  return sums(
    parts.flatMap(({ workflow, state }) =>
      (workflow === null ? all : [workflow])
        .filter(isMeant)
        .map((name) => [state as RunState, db.get(COUNT, name, state, limitOf(bound + 1))?.count as number] as const),
    ),
  );
}

/** Counts all states in one go, where few enough runs are in question; `null`: there are too many. */
function countAtOnce(db: Connection, filter: RunFilter, parts: readonly RunPart[]): Map<RunState, number> | null {
  const { workflow = null, tag, parent, slot, search } = filter;
  const isNarrow = [workflow ?? undefined, tag, parent, slot, search].some((one) => one !== undefined);
  if (!isNarrow || (search !== undefined && SOURCES.some((source) => isDense(db, source, search)))) return null;
  const where = conditionsOf(filter, { workflow, state: null });
  const found = search === undefined ? null : numbersOf(db, where, search, -1);
  const from = found === null ? `${where.tables} ${where.clause}` : `runs where n in (${found.text})`;
  const rows = db.all(
    `select workflow, state, count(*) as count from (select runs.workflow, runs.state from ${from} limit ${MANY}) group by 1, 2`,
    ...(found?.values ?? where.values),
  );
  if (rows.reduce((sum, { count }) => sum + (count as number), 0) === MANY) return null;
  const isMeant = (row: Row) =>
    parts.some((part) => part.state === row.state && (part.workflow === null || part.workflow === row.workflow));
  return sums(rows.filter(isMeant).map(({ state, count }) => [state as RunState, count as number]));
}

function countByPart(
  db: Connection,
  filter: RunFilter,
  parts: readonly RunPart[],
  bound: number,
): Map<RunState, number> {
  const { search } = filter;
  return sums(
    parts.map((part) => {
      // By state: a workflow with so many runs is no help.
      const where = conditionsOf(filter, part, part.state !== "succeeded");
      if (search !== undefined)
        where.addAny(
          SOURCES.map((source) => source.walked),
          search,
        );
      const text = `select count(*) as count from (select 1 from ${where.tables} ${where.clause} limit ?)`;
      const count = db.get(text, ...where.values, limitOf(bound + 1))?.count as number;
      return [part.state as RunState, count];
    }),
  );
}

function sums(counts: readonly (readonly [RunState, number])[]): Map<RunState, number> {
  const found = new Map<RunState, number>();
  for (const [state, count] of counts) found.set(state, (found.get(state) ?? 0) + count);
  return found;
}

// Searches

/** A text of runs that a search looks at. */
interface Source {
  readonly tables: string;
  readonly column: string;
  /** The same condition where runs are walked, and no index is to be used. */
  readonly walked: string;
}

const beginsWith = (column: string) => `${column} >= ?1 and ${column} < ?2 and substr(${column}, 1, length(?1)) = ?1`;

const SOURCES: readonly Source[] = [
  ...["runs.id", "runs.workflow", "runs.key"].map((column) => ({
    tables: "runs",
    column,
    walked: beginsWith(`+${column}`),
  })),
  {
    tables: "tags as found cross join runs on runs.n = found.run",
    column: "found.tag",
    walked: `exists (select 1 from json_each(runs.tags) as own where ${beginsWith("own.value")})`,
  },
];

/** So many runs have a text that begins with this that their index is no help. */
function isDense(db: Connection, { tables, column }: Source, search: string): boolean {
  const [table = ""] = tables.split(" cross join ");
  const text = `select count(*) as count from (select 1 from ${table} where ${beginsWith(column)} limit ${DENSE})`;
  return db.get(text, search, endOfPrefix(search))?.count === DENSE;
}

const DENSE = 10_000;

/** Numbers of runs of which some text begins with this, each once: the newest of each kind of text. */
function numbersOf(db: Connection, where: Conditions, search: string, limit: number): Statement {
  const values: SqlValue[] = [];
  const selects = SOURCES.map((source) => {
    const isWalked = isDense(db, source, search);
    const [tables, order] = isWalked ? ["runs", "runs.n"] : [source.tables, "+runs.n"];
    const isIn = isWalked ? source.walked : beginsWith(source.column);
    values.push(...boundBy(isIn, search), ...where.values, limit);
    return `select n from (select runs.n from ${tables} where ${plain(isIn)} and ${where.text} order by ${order} desc limit ?)`;
  });
  return { text: selects.join(" union "), values };
}

/** The values of a condition with numbered places, one for each place. */
function boundBy(condition: string, search: string): string[] {
  const places = condition.match(/\?[12]/g) ?? [];
  return places.map((place) => (place === "?1" ? search : endOfPrefix(search)));
}

function plain(condition: string): string {
  return condition.replace(/\?[12]/g, "?");
}

interface Statement {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

// Conditions

function conditionsOf(filter: RunFilter, { workflow, state }: RunPart, isByState = false): Conditions {
  const isByTag = filter.tag !== undefined && filter.search === undefined;
  const where = new Conditions(isByTag ? "tags cross join runs on runs.n = tags.run" : "runs");
  where.add(isByTag ? "tags.tag = ?" : "exists (select 1 from tags where tag = ? and run = runs.n)", filter.tag);
  // The second half repeats the condition of the index, which SQLite cannot see in a bound value.
  if (state === "succeeded") where.add("state = ?", state);
  else if (state !== null) where.add("state = ? and state <> 'succeeded'", state);
  where.add(isByState ? "+workflow = ?" : "workflow = ?", workflow ?? undefined);
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

  /** One of these conditions of a search. */
  addAny(texts: readonly string[], search: string): void {
    this.#texts.push(`(${texts.map((text) => `(${plain(text)})`).join(" or ")})`);
    this.values.push(...texts.flatMap((text) => boundBy(text, search)));
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
