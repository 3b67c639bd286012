import type { RunRow, Store } from "../core/store.ts";
import { isHandled } from "../stores/version-line.ts";

/** Whether a live worker could go on with this run. If not, it is stranded. */
export async function isCovered(
  store: Store,
  { workflow, version }: Pick<RunRow, "workflow" | "version">,
): Promise<boolean> {
  const workers = await store.workers();
  return workers.some(({ leaseLeftMs, handles }) => leaseLeftMs > 0 && isHandled(handles, workflow, version));
}
