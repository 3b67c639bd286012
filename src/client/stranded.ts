import { parseVersion, sameMinor } from "../base/semver.ts";
import type { Handle, RunRow, Store } from "../core/store.ts";

/** Whether a worker with this handle may run a run of that version (P34). */
export function covers(handle: Handle, run: Pick<RunRow, "workflow" | "version">): boolean {
  if (handle.workflow !== run.workflow) return false;
  const [offered, wanted] = [parseVersion(handle.version), parseVersion(run.version)];
  return sameMinor(offered, wanted) && offered.patch >= wanted.patch;
}

/** Whether a live worker could go on with this run. If not, it is stranded. */
export async function isCovered(store: Store, run: Pick<RunRow, "workflow" | "version">): Promise<boolean> {
  const workers = await store.workers();
  return workers.some((worker) => worker.leaseLeftMs > 0 && worker.handles.some((handle) => covers(handle, run)));
}
