import type { Resource } from "../resource.ts";
import type { WireStatus, WireTimeline } from "../wire.ts";
import type { RunAction } from "./actions.tsx";

/** What every view of a run is given. */
export interface RunView {
  readonly run: WireStatus;
  readonly line: Resource<WireTimeline>;
  /** Raised with every change that is seen. */
  readonly change: number;
  ask(action: RunAction): void;
}
