import { type Clock, systemClock } from "../base/clock.ts";

// Captured at load: the determinism guard replaces the globals later.
const { setTimeout: startTimer, clearTimeout: stopTimer } = globalThis;

/** A real timer of ours must not keep the process alive; the clock's own timers do. */
export function afterQuietly(clock: Clock, ms: number, fire: () => void): () => void {
  if (clock !== systemClock) return clock.after(ms, fire);
  const timer = startTimer(fire, ms);
  timer.unref();
  return () => stopTimer(timer);
}
