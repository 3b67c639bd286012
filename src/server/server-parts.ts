import type { Clock } from "../base/clock.ts";
import type { Pawl } from "../client/pawl.ts";
import type { Log } from "../core/context.ts";
import type { Workflow } from "../core/workflow.ts";
import type { Credentials } from "./credentials.ts";
import type { EventStreams } from "./event-stream.ts";
import type { Refusals } from "./refusals.ts";
import type { Route } from "./route.ts";
import type { ServerLimits } from "./server-limits.ts";
import type { Sessions } from "./sessions.ts";
import type { KnownHook } from "./webhooks.ts";

/** What routes share: everything that lives as long as the server. */
export interface ServerParts {
  /** The stores, by the name that credentials call them. */
  readonly tenants: ReadonlyMap<string, Pawl>;
  readonly credentials: Credentials;
  readonly sessions: Sessions;
  readonly streams: EventStreams;
  readonly refusals: Refusals;
  /** Webhooks that are taken, by their names. */
  readonly hooks: ReadonlyMap<string, KnownHook>;
  readonly routes: readonly Route[];
  /** Whose code is known here: their graphs can be drawn. */
  readonly workflows: readonly Workflow[];
  /** Where people reach the server, if it was told: `https://pawl.example.com`. */
  readonly publicUrl: string | null;
  /** Of this package. */
  readonly version: string;
  readonly limits: ServerLimits;
  readonly clock: Clock;
  readonly log: Log;
}
