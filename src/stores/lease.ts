import { isSameBoot } from "../base/boot.ts";
import { LONG_DEAD_MS } from "../core/store.ts";

/** The monotonic clock is one per machine; what lies further ahead than this was stamped before the last start. */
const AHEAD_MS = 1000;

export interface Lease {
  readonly boot: string;
  /** Monotonic time of the last renewal. */
  readonly renewedAt: number;
  readonly leaseMs: number;
}

/**
 * How much of a lease is left. `boot` is the boot id of the last worker that registered through this store, if one did.
 * `now` must be read after the lease: a renewal in between would look like one from another boot (P29).
 */
export function leaseLeftMs(lease: Lease, now: number, boot: string | null): number {
  if (boot !== null && !isSameBoot(lease.boot, boot)) return LONG_DEAD_MS;
  if (lease.renewedAt > now + AHEAD_MS) return LONG_DEAD_MS;
  return lease.renewedAt + lease.leaseMs - now;
}
