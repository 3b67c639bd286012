// Where a process kills itself: at a point that it reaches for the n-th time. The points are "before-commit" and "after-commit" of every
// transaction that SQLite is asked for, whatever for, "effect", which is in a step, behind its outside effect, and in charges.mjs "call", before it.
let armed = null;

/** How often each point was reached since then. */
export let reached = {};

/** `kill` is { point, n }, or undefined for a process that lives. */
export function arm(kill) {
  armed = kill ?? null;
  reached = {};
}

export function reach(point) {
  reached[point] = (reached[point] ?? 0) + 1;
  if (point === armed?.point && reached[point] === armed.n) process.kill(process.pid, "SIGKILL");
}
