import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../core/context.ts";
import type { Host } from "../core/host.ts";

/** Waits for a store that is away, longer each time, and says so now and then. */
export async function waitOut(
  clock: Clock,
  { log, random }: { readonly log: Log; random(): number },
  error: unknown,
  failures: number,
): Promise<void> {
  if (failures === 1 || failures % 20 === 0) {
    log.error(`The store cannot be written to; runs wait and go on by themselves when it can. ${messageOf(error)}`, {
      failures,
    });
  }
  const ms = backoffMs(Math.min(failures, 10), { baseMs: 20, factor: 2, capMs: 1000, jitter: true }, random);
  await new Promise<void>((resolve) => clock.after(Math.max(5, ms), resolve));
}

/** Looks again and again, at first with every round of the event loop. */
export async function waitUntil(isTrue: () => boolean, timeoutMs: number, clock: Clock, host: Host): Promise<void> {
  const end = clock.monotonic() + timeoutMs;
  for (let round = 0; !isTrue() && clock.monotonic() < end; round++) {
    await new Promise<void>((resolve) => {
      if (round < 50) host.immediate(resolve);
      else clock.after(2, resolve);
    });
  }
}
