import { ALERTS_WORKFLOW } from "./alert.ts";
import { LIMITS } from "./limits.ts";
import type { PurgeRequest } from "./run-query.ts";

/** How long finished runs are kept. */
export interface KeptFor {
  readonly succeededMs: number;
  readonly failedMs: number;
}

/** `false`: for ever. */
export type RetentionMs = KeptFor | false;

interface OwnRetention {
  readonly retention: RetentionMs | null;
}

/** What the next run of the alerts knows is of no use to anybody. */
const ALERTS_KEPT: KeptFor = { succeededMs: LIMITS.alertKeptMs, failedMs: LIMITS.alertKeptMs };

/**
 * What to purge, so that workflows with a retention of their own keep to that and all others to the usual one; `null`: nothing of users' runs. Those of the
 * alerts go soon in any case.
 */
export function purgesFor(
  usual: KeptFor | null,
  facts: ReadonlyMap<string, OwnRetention>,
  now: number,
): Omit<PurgeRequest, "limit">[] {
  const alerts = { ...endedBefore(ALERTS_KEPT, now), workflow: ALERTS_WORKFLOW };
  if (usual === null) return [alerts];
  const own = [...facts].flatMap(([workflow, { retention }]) => (retention === null ? [] : [{ workflow, retention }]));
  const except = [ALERTS_WORKFLOW, ...own.map(({ workflow }) => workflow)];
  return [
    { ...endedBefore(usual, now), except },
    alerts,
    ...own.flatMap(({ workflow, retention }) =>
      retention === false ? [] : [{ ...endedBefore(retention, now), workflow }],
    ),
  ];
}

export function endedBefore(
  { succeededMs, failedMs }: KeptFor,
  now: number,
): Pick<PurgeRequest, "succeededBefore" | "failedBefore"> {
  return { succeededBefore: now - succeededMs, failedBefore: now - failedMs };
}
