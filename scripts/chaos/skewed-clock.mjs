// A wall clock that is off, and is set back and forth while the process lives. The monotonic clock stays what it is: nobody can set that one.

const LOOK_EVERY_MS = 100;

/** `offsetMs` from the start; `steps` are { afterMs, byMs }, counted from the start. */
export function skewedClock(clock, { offsetMs, steps }) {
  const startedAt = clock.monotonic();
  const offset = () => {
    const age = clock.monotonic() - startedAt;
    return steps.reduce((sum, { afterMs, byMs }) => (age >= afterMs ? sum + byMs : sum), offsetMs);
  };
  const now = () => clock.now() + offset();
  return {
    ...clock,
    now,
    at(time, fire) {
      let forget;
      const look = () => {
        const left = time - now();
        if (left <= 0) fire();
        // A step may come at any time.
        else forget = clock.after(Math.min(left, LOOK_EVERY_MS), look);
      };
      forget = clock.after(Math.max(0, Math.min(time - now(), LOOK_EVERY_MS)), look);
      return () => forget();
    },
  };
}
