import type { PurgeRequest } from "../../core/run-query.ts";
import type { OrphanRow, StoreReport, UnclaimedQuery, UnclaimedRow } from "../../core/store.ts";
import type { Link } from "./link.ts";
import { LATEST_SCHEMA } from "./schema.ts";
import { IS_FREE } from "./unclaimed-function.ts";

export async function orphans(link: Link, s: string): Promise<OrphanRow[]> {
  const rows = await link.read(`select run, state, why from ${s}.orphans_1()`);
  return rows.map(({ run, state, why }) => ({ run, state, why }) as OrphanRow);
}

export async function unclaimed(link: Link, s: string, query: UnclaimedQuery): Promise<UnclaimedRow[]> {
  const workflows = query.workflows ?? (await unclaimedWorkflows(link, s));
  const rows = await link.read(`select workflow, version, runs from ${s}.unclaimed_1($1, $2)`, [
    [...new Set(workflows)],
    query.limit,
  ]);
  return rows.map(({ workflow, version, runs }) => ({ workflow, version, runs }) as UnclaimedRow);
}

/** From one workflow to the next, each of which is one step into the index of such runs. */
async function unclaimedWorkflows(link: Link, s: string): Promise<string[]> {
  const next = (after: string) =>
    `(select r.workflow from ${s}.runs as r where ${IS_FREE} and r.workflow > ${after} order by r.workflow limit 1)`;
  const rows = await link.read(
    `with recursive names (workflow) as (
       select ${next("''")} union all select ${next("names.workflow")} from names where names.workflow is not null
     ) select workflow from names where workflow is not null order by workflow collate "C"`,
  );
  return rows.map(({ workflow }) => workflow as string);
}

export async function adopt(link: Link, s: string, runs: readonly string[], now: number | null): Promise<number> {
  const [row] = await link.query(`select ${s}.adopt_1($1, $2) as adopted`, [runs, now]);
  return row?.["adopted"] as number;
}

/** Partitions whose last run is gone go as a whole. */
export async function purge(link: Link, s: string, request: PurgeRequest, now: number | null): Promise<number> {
  const { succeededBefore, failedBefore, limit, workflow = null, except = [] } = request;
  const [row] = await link.query(
    `select ${s}.purge_2($1, $2, $3, $4, $5, $6, $7) as purged, ${s}.drop_partitions_1()`,
    [succeededBefore, failedBefore, limit, now, workflow, except, request.dryRun === true],
  );
  return row?.["purged"] as number;
}

const SETTINGS = ["fsync", "full_page_writes", "synchronous_commit", "max_connections"];

/** Settings with which an acknowledged commit may be lost, and what that means. */
const DANGERS: readonly (readonly [setting: string, value: string, what: string])[] = [
  ["fsync", "off", "The server does not sync its files (fsync is off): a crash of its machine can destroy them"],
  [
    "full_page_writes",
    "off",
    "The server does not protect pages that are half written (full_page_writes is off): a crash of its machine can destroy them",
  ],
  [
    "synchronous_commit",
    "off",
    "The server answers before it has synced (synchronous_commit is off): a crash of it loses what was acknowledged",
  ],
];

export async function inspect(link: Link, s: string, where: string): Promise<StoreReport> {
  const columns = SETTINGS.map((name) => `current_setting('${name}') as ${name}`).join(", ");
  const [row = {}] = await link.read(
    `select ${columns}, current_setting('server_version') as version,
       (select value from ${s}.meta where key = 'schema_version') as schema,
       (select count(*) from ${s}.workers) as workers,
       pg_postmaster_start_time()::text as server_started`,
  );
  const { version, schema, ...settings } = row as Record<string, string | number>;
  const faults = DANGERS.filter(([name, value]) => row[name] === value).map(([, , what]) => `${what}. Turn it on.`);
  return {
    store: "postgres",
    version: String(version),
    schema: Number(schema ?? LATEST_SCHEMA),
    settings: { database: where, schema: s, ...settings },
    faults,
  };
}
