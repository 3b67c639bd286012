import { isSameBoot } from "../base/boot.ts";
import { LONG_DEAD_MS } from "../core/store.ts";

/** The monotonic clock begins with the machine's start; what lies further ahead than this was stamped before the last one. */
const AHEAD_MS = 1000;

export interface Lease {
  readonly boot: string;
  /** Monotonic time of the last renewal. */
  readonly renewedAt: number;
  readonly leaseMs: number;
}

/**
 * How much of a lease is left. `boot` is the boot id of the last worker that registered through this store; without one, only the clock can tell.
 * `now` must be read after the lease: a renewal in between would look like one from another boot (P29).
 */
export function leaseLeftMs(lease: Lease, now: number, boot: string | null): number {
  const isOfAnotherBoot = boot === null ? lease.renewedAt > now + AHEAD_MS : !isSameBoot(lease.boot, boot);
  if (isOfAnotherBoot) return LONG_DEAD_MS;
  return lease.renewedAt + lease.leaseMs - now;
}
