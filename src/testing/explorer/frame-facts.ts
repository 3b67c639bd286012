import type { Frame } from "../../core/host.ts";
import type { Pass } from "../../core/pass.ts";

/** Whether the run that code of this frame belongs to has been told that it is cancelled, or that its deadline has passed. */
export function isCancelling(frame: Frame): boolean {
  return (frame.pass as Pass).cancelling !== null;
}
