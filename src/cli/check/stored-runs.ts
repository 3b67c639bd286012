// What the runs of a store show of a workflow: all of them by their rows, the failed ones by a replay, and some by their journals.
import { messageOf } from "../../base/errors.ts";
import { type ExportedRun, exportRun } from "../../client/export.ts";
import type { Pawl } from "../../client/pawl.ts";
import type { RunRow } from "../../core/store.ts";
import { type ReplayResult, replay } from "../../testing/replay.ts";
import type { Registry } from "../../worker/registry.ts";

export interface StoredRuns {
  readonly looked: number;
  /** Runs that somebody has started without saying which one it is. */
  readonly unkeyed: readonly string[];
  readonly untraced: readonly string[];
  readonly failed: readonly { readonly run: string; readonly replay: ReplayResult }[];
  /** The newest ones that have ended. */
  readonly samples: readonly ExportedRun[];
}

const PAGE = 500;
const SAMPLES = 20;
/** As `createIds` makes them. */
const MADE = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export async function storedRuns(pawl: Pawl, workflow: string, registry: Registry): Promise<StoredRuns> {
  const rows = await allRows(pawl, workflow);
  const failed = [];
  for (const { id } of rows.filter(({ state }) => state === "failed"))
    failed.push({ run: id, replay: await followed(pawl, id, registry) });
  const samples = [];
  for (const { id } of rows.filter(({ endedAt }) => endedAt !== null).slice(0, SAMPLES))
    samples.push(await exportRun(pawl, id));
  return {
    looked: rows.length,
    unkeyed: rows.filter(isUnkeyed).map(({ id }) => id),
    untraced: rows.filter(({ traceId }) => traceId === "").map(({ id }) => id),
    failed,
    samples,
  };
}

async function allRows(pawl: Pawl, workflow: string): Promise<RunRow[]> {
  const all: RunRow[] = [];
  for (let before: string | undefined; ; ) {
    const rows = await pawl.store.runs({ workflow, limit: PAGE, ...(before !== undefined && { before }) });
    all.push(...rows);
    before = rows.at(-1)?.id;
    if (rows.length < PAGE) return all;
  }
}

/** A child, a retry and a fork are known by where they come from. */
function isUnkeyed({ id, key, parent, origin }: RunRow): boolean {
  return key === null && parent === null && origin === null && MADE.test(id);
}

async function followed(pawl: Pawl, id: string, registry: Registry): Promise<ReplayResult> {
  try {
    const exported = await exportRun(pawl, id);
    const code = registry.forRun(exported.run.workflow, exported.run.version) ?? registry.newest(exported.run.workflow);
    if (code === undefined) return { ok: false, message: "its workflow is not in these files" } as ReplayResult;
    return await replay(code, exported);
  } catch (error) {
    return { ok: false, message: messageOf(error) } as ReplayResult;
  }
}
