// Migrating a run that somebody has decided to migrate: here, if this process has the functions, or by a worker that has them.
import { Draft } from "../core/draft.ts";
import { writePark } from "../core/endings.ts";
import type { Parked, Resolved } from "../core/journal.ts";
import type { ClaimedRun, RunCommit, RunRow, Store } from "../core/store.ts";
import { pendingMigration } from "../core/version-mismatch.ts";
import { migrationMissing } from "../worker/version-keeper.ts";
import { notWritten } from "./rewrite.ts";
import type { StartPorts } from "./start.ts";

export async function migrateRun(ports: StartPorts, row: RunRow, park: Parked, by: string): Promise<void> {
  const { registry, worker, store } = ports;
  const { id, workflow, version } = row;
  const isHere = registry.migrationFrom(workflow, version) !== null;
  if (!isHere && !(await isElsewhere(store, row))) throw migrationMissing(id, workflow, version, currentOf(park));
  const outcome = isHere
    ? await worker.versions.migrate(id, { by, reason: 'It was resolved with "migrate".' })
    : await worker.takeOver.write(id, (claimed) => pending(ports, claimed, park, by));
  if (outcome.kind !== "written") throw await notWritten(store, id, outcome);
  worker.hint();
}

/** Whether a live worker says that it can. */
async function isElsewhere(store: Store, { workflow, version }: RunRow): Promise<boolean> {
  const line = version.split(".").slice(0, 2).join(".");
  const live = (await store.workers()).filter(({ leaseLeftMs }) => leaseLeftMs > 0);
  return live
    .flatMap(({ handles }) => handles)
    .some(
      (one) => one.workflow === workflow && one.migrates?.some((from) => from === version || from === line) === true,
    );
}

function currentOf({ detail }: Parked): string | null {
  const current = detail?.["current"];
  return typeof current === "string" ? current : null;
}

/** Kept in the run itself: whoever has the functions finds it, whenever it comes. */
function pending({ store, host, codec }: StartPorts, claimed: ClaimedRun, park: Parked, by: string): RunCommit {
  const { run, row, journal, head, inbox } = claimed;
  const last = journal.at(-1);
  const draft = new Draft(run, { head, hash: last?.hash ?? run, at: last?.at ?? 0 }, host, codec);
  const now = store.clock.now();
  draft.append(now, "run.resolved", null, { choice: "migrate", value: { by } } satisfies Resolved);
  for (const { id, kind } of inbox) if (kind === "decision") draft.consume(id);
  const current = currentOf(park) ?? "a newer version";
  writePark(draft, row, now, pendingMigration({ run, workflow: row.workflow, saved: row.version, current }, by));
  return draft.take().commit;
}
