// Lists and counts of runs
// Runs are listed by age, which is the order of their numbers. A question for each state has an index; for a list of them it would not be in order.
import { PawlError } from "../../base/errors.ts";
import type { RunCounts, RunFilter, RunQuery } from "../../core/run-query.ts";
import type { RunRow } from "../../core/store.ts";
import { RUN_STATES, type RunState } from "../../core/transition.ts";
import { endOfPrefix } from "../counters.ts";
import { checkQuery } from "../operator-fault.ts";
import { countsOf } from "../run-counts.ts";
import { isPlain, partsOf, type RunPart } from "../run-parts.ts";
import { textsText } from "./array-text.ts";
import { Conditions } from "./conditions.ts";
import type { Link } from "./link.ts";
import { limitOf } from "./queries.ts";
import { runRow } from "./rows.ts";

export async function listRuns(link: Link, s: string, query: RunQuery): Promise<RunRow[]> {
  if (query.before !== undefined) await assertCursor(link, s, query.before);
  const parts = partsOf(query);
  if (parts.length === 0) return [];
  const where = new Conditions();
  addFilter(where, s, query);
  where.add(`n < (select n from ${s}.runs where id = ?)`, query.before);
  const end = `order by n desc limit ${limitOf(query.limit)}`;
  const numbers = numbersOf(where, s, query, parts, end);
  const text = `select * from ${s}.runs where n in (select n from (${numbers}) as found ${end}) order by n desc`;
  return (await link.read(text, where.values)).map(runRow);
}

async function assertCursor(link: Link, s: string, id: string): Promise<void> {
  const rows = await link.read(`select 1 from ${s}.runs where id = $1`, [id]);
  if (rows.length > 0) return;
  throw new PawlError(
    "run_not_found",
    `The page cursor ${id} names a run that is gone. List again from the first page.`,
    { fields: { run: id } },
  );
}

export async function countRuns(link: Link, s: string, filter: RunFilter, bound: number): Promise<RunCounts> {
  checkQuery(filter);
  const parts = partsOf({ ...filter, states: filter.states ?? RUN_STATES });
  if (parts.length === 0) return countsOf(new Map(), bound);
  if (isPlain(filter)) return countByIndex(link, s, filter, parts, bound);
  const where = new Conditions();
  addFilter(where, s, filter);
  const end = `limit ${limitOf(bound + 1)}`;
  const selects = parts.map((part) => {
    const numbers = numbersOf(where, s, filter, [part], end);
    return `select '${part.state}' as state, count(*) as count from (${numbers}) as found`;
  });
  const found = new Map<RunState, number>();
  for (const { state, count } of await link.read(selects.join(" union all "), where.values))
    found.set(state as RunState, (found.get(state as RunState) ?? 0) + (count as number));
  return countsOf(found, bound);
}

/** One index has it all: each state of each workflow is counted up to the bound. */
async function countByIndex(
  link: Link,
  s: string,
  { except = [] }: RunFilter,
  parts: readonly RunPart[],
  bound: number,
): Promise<RunCounts> {
  const rows = await link.read(
    `with recursive names (name) as (select min(workflow) from ${s}.runs
       union all select (select min(workflow) from ${s}.runs where workflow > name) from names where name is not null)
     select part.state, sum(found.count) as count
     from unnest($1::text[], $2::text[]) as part (workflow, state)
     join names on name is not null and (part.workflow is null or part.workflow = name) and name <> all ($3::text[])
     cross join lateral (select count(*) from (
       select 1 from ${s}.runs where runs.workflow = name and runs.state = part.state limit ${limitOf(bound + 1)}) as few) as found
     group by part.state`,
    [textsText(parts.map(({ workflow }) => workflow)), textsText(parts.map(({ state }) => state)), [...except]],
  );
  return countsOf(new Map(rows.map(({ state, count }) => [state as RunState, Number(count)])), bound);
}

/** Numbers of the runs that fit, each once; `end` ends the list of each part by itself. */
function numbersOf(
  where: Conditions,
  s: string,
  { search }: RunFilter,
  parts: readonly RunPart[],
  end: string,
): string {
  const sources = search === undefined ? [`${s}.runs where true`] : searchedSources(where, s, search);
  const selects = parts.flatMap(({ workflow, state }) => {
    const isWorkflow = workflow === null ? "true" : `workflow = ${where.bind(workflow)}`;
    // The second half repeats the condition of the index.
    const isState =
      state === null ? "true" : `state = '${state}'${state === "succeeded" ? "" : " and state <> 'succeeded'"}`;
    return sources.map(
      (source) => `(select runs.n from ${source} and ${isWorkflow} and ${isState} and ${where.text} ${end})`,
    );
  });
  return selects.join(search === undefined ? " union all " : " union ");
}

/** Runs of which some text begins with this: an index for each kind of text. */
function searchedSources(where: Conditions, s: string, search: string): string[] {
  const [from, to] = [where.bind(search), where.bind(endOfPrefix(search))];
  const begins = (column: string) => `${column} >= ${from} and ${column} < ${to} and starts_with(${column}, ${from})`;
  return [
    `${s}.runs where ${begins("id")}`,
    `${s}.runs where ${begins("workflow")}`,
    `${s}.runs where ${begins('key collate "C"')}`,
    `${s}.tags as found join ${s}.runs on runs.n = found.run where ${begins("found.tag")}`,
  ];
}

function addFilter(where: Conditions, s: string, filter: RunFilter): void {
  where.add(`n in (select run from ${s}.tags where tag = ?)`, filter.tag);
  for (const other of filter.except ?? []) where.add("workflow <> ?", other);
  where.add("parent = ?", filter.parent);
  where.add("slot = ? and slot <> '' and owner is not null", filter.slot);
  where.add("created_at > ?", filter.createdAfter);
  where.add("created_at < ?", filter.createdBefore);
}
