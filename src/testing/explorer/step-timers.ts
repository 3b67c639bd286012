// Timers that are set through the global functions, by steps and their fakes
// Node tells how many timers a process has, not whose they are: one of the test runner's that ends hides one that a step sets. These are
// known one by one.

type Timer = ReturnType<typeof globalThis.setTimeout>;

const pending = new Set<Timer>();
let watchers = 0;
let unwatch: () => void = () => {};

/** Whether one of them is still to fire and keeps the process alive. */
export function hasPendingTimers(): boolean {
  for (const timer of pending) if (timer.hasRef()) return true;
  return false;
}

/** Those that are pending do not count any more. */
export function forgetTimers(): void {
  pending.clear();
}

/** Keeps count of timers until the returned function is called. */
export function watchTimers(): () => void {
  if (watchers++ === 0) unwatch = wrapGlobals();
  let isWatching = true;
  return () => {
    if (!isWatching) return;
    isWatching = false;
    if (--watchers === 0) unwatch();
  };
}

function wrapGlobals(): () => void {
  const { setTimeout, clearTimeout } = globalThis;
  // Proxies: the functions keep their own properties, such as the promisified form.
  const setWatched = new Proxy(setTimeout, {
    apply(target, self, [callback, ...rest]: [(...args: unknown[]) => void, ...unknown[]]) {
      const fire = (...args: unknown[]) => {
        pending.delete(timer);
        callback(...args);
      };
      const timer = Reflect.apply(target, self, [typeof callback === "function" ? fire : callback, ...rest]) as Timer;
      pending.add(timer);
      return timer;
    },
  });
  const clearWatched = new Proxy(clearTimeout, {
    apply(target, self, args: [Timer]) {
      pending.delete(args[0]);
      return Reflect.apply(target, self, args) as unknown;
    },
  });
  Object.assign(globalThis, { setTimeout: setWatched, clearTimeout: clearWatched });
  return () => {
    forgetTimers();
    // Somebody who has wrapped them since puts back what was there, or has done so already.
    if (globalThis.setTimeout === setWatched) globalThis.setTimeout = setTimeout;
    if (globalThis.clearTimeout === clearWatched) globalThis.clearTimeout = clearTimeout;
  };
}
