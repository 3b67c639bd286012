/** The one seam through which Pawl sees time. */
export interface Clock {
  /** Wall time in whole milliseconds: due times, timestamps. It may step. */
  now(): number;
  /** Milliseconds that only ever grow, alike in every process since the machine started: leases. */
  monotonic(): number;
  /** Calls `fire` once, as soon as `now()` has reached `time`. Returns a function that forgets it. */
  at(time: number, fire: () => void): () => void;
  /** Calls `fire` once, after `ms` of real waiting. Returns a function that forgets it. */
  after(ms: number, fire: () => void): () => void;
}

// setTimeout turns anything above 2^31-1 ms into 1 ms, so long waits are walked in legs; a leg of at most a
// minute also notices a wall clock that was set while we slept.
const LEG_MS = 60_000;

// Captured at load: the determinism guard replaces the globals later, and the engine must not trip over it.
const { setTimeout: startTimer, clearTimeout: stopTimer } = globalThis;
const wallNow = Date.now;
// The same clock in every process of this machine; read through `performance`, which makes no BigInt of it.
const { performance } = globalThis;
const sinceBoot = Number(process.hrtime.bigint()) / 1e6 - performance.now();
const monotonicNow = () => sinceBoot + performance.now();

export const systemClock: Clock = {
  now: () => wallNow(),
  monotonic: monotonicNow,
  at(time, fire) {
    let timer: NodeJS.Timeout;
    const walk = () => {
      const left = time - wallNow();
      if (left <= 0) fire();
      else timer = startTimer(walk, Math.min(left, LEG_MS));
    };
    timer = startTimer(walk, Math.max(0, Math.min(time - wallNow(), LEG_MS)));
    return () => stopTimer(timer);
  },
  after(ms, fire) {
    if (ms <= LEG_MS) {
      const timer = startTimer(fire, ms);
      return () => stopTimer(timer);
    }
    const end = monotonicNow() + ms;
    let timer: NodeJS.Timeout;
    const walk = () => {
      const left = end - monotonicNow();
      if (left <= 0) fire();
      else timer = startTimer(walk, Math.min(left, LEG_MS));
    };
    timer = startTimer(walk, LEG_MS);
    return () => stopTimer(timer);
  },
};

/** A clock that stands still until it is moved. */
export interface ManualClock extends Clock {
  /** Moves wall and monotonic time forward, firing what falls due in order of due time. */
  advance(ms: number): void;
  /** Moves to the next due moment, if there is one; returns whether there was. */
  skip(): boolean;
  /** The next moment at which something is due; Infinity if nothing is. */
  nextDue(): number;
  /** Steps the wall clock alone, back or forth, as an administrator or NTP would. */
  step(ms: number): void;
}

interface Alarm {
  readonly due: number;
  readonly fire: () => void;
  readonly order: number;
}

/** The test double of the system clock. Durations and due times both follow its own hand. */
export function manualClock(start: number = Date.UTC(2026, 0, 1)): ManualClock {
  let wall = start;
  let mono = 1_000_000;
  let order = 0;
  const alarms = new Set<Alarm>();
  const next = (): Alarm | undefined => {
    let first: Alarm | undefined;
    for (const alarm of alarms) {
      if (first === undefined || alarm.due < first.due || (alarm.due === first.due && alarm.order < first.order)) {
        first = alarm;
      }
    }
    return first;
  };
  const set = (due: number, fire: () => void) => {
    const alarm: Alarm = { due, fire, order: order++ };
    alarms.add(alarm);
    return () => void alarms.delete(alarm);
  };
  const moveTo = (time: number) => {
    const by = Math.max(0, time - wall);
    wall += by;
    mono += by;
  };
  const fireDue = (until: number) => {
    for (let alarm = next(); alarm !== undefined && alarm.due <= until; alarm = next()) {
      alarms.delete(alarm);
      moveTo(alarm.due);
      alarm.fire();
    }
  };
  return {
    now: () => Math.floor(wall),
    monotonic: () => mono,
    at: set,
    after: (ms, fire) => set(wall + ms, fire),
    advance(ms) {
      const until = wall + ms;
      fireDue(until);
      moveTo(until);
    },
    skip() {
      const alarm = next();
      if (alarm === undefined) return false;
      fireDue(Math.max(wall, alarm.due));
      return true;
    },
    nextDue: () => next()?.due ?? Number.POSITIVE_INFINITY,
    step(ms) {
      wall += ms;
      fireDue(wall);
    },
  };
}
