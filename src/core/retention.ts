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

/** What to purge, so that workflows with a retention of their own keep to that and all others to the usual one. */
export function purgesFor(
  usual: KeptFor,
  facts: ReadonlyMap<string, OwnRetention>,
  now: number,
): Omit<PurgeRequest, "limit">[] {
  const own = [...facts].flatMap(([workflow, { retention }]) => (retention === null ? [] : [{ workflow, retention }]));
  const except = own.map(({ workflow }) => workflow);
  return [
    { ...endedBefore(usual, now), ...(except.length > 0 && { except }) },
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
