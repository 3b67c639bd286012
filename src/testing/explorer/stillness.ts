// Stillness
// Virtual time may only move when nothing is left to do at the present moment. Engines tell what they have under way; whatever else the
// process waits for (timers, files, sockets of a step) Node tells. Without that a step that takes a real millisecond would be timed out.
// Node tells kinds and numbers only, so timers are watched besides (see step-timers.ts).
import { forgetTimers, hasPendingTimers } from "./step-timers.ts";

// Captured at load: the determinism guard replaces the globals later.
const { setImmediate: startImmediate, performance } = globalThis;

/** How long something of the process's own may take before time moves on all the same: a socket that stays open must not stop it. */
const PATIENCE_MS = 2000;
/** What comes to its end by itself may be late on a busy machine: time that moves on takes it for hung, and it acts in a later history. */
const ENDING_PATIENCE_MS = 30_000;
const ENDING: readonly string[] = ["FSReqCallback", "FSReqPromise", "ProcessWrap"];

/** What takes longer than this is not waited for by going round and round: a child process needs the processor, too. */
const BRIEF_MS = 2;
const PAUSE_MS = 0.5;
const nobody = new Int32Array(new SharedArrayBuffer(4));

/** Stands still. A timer would be one more thing that the process waits for. */
function pause(): void {
  Atomics.wait(nobody, 0, 0, PAUSE_MS);
}

/** Goes once round the event loop: all microtasks and everything that was queued before have run. */
export function nextRound(): Promise<void> {
  return new Promise((resolve) => startImmediate(resolve));
}

/** Goes round the event loop, at least once, until the condition holds. Thousands of rounds make no promise each. */
export function roundsUntil(isOver: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = () => {
      try {
        if (isOver()) resolve();
        else startImmediate(look);
      } catch (error) {
        reject(error);
      }
    };
    startImmediate(look);
  });
}

export class Stillness {
  /** What the process waits for anyway: the test runner's own timers and pipes. */
  #usual: Map<string, number>;
  #busySince: number | null = null;
  readonly #ending: Set<string> = new Set(ENDING);

  constructor() {
    this.#usual = resources();
    this.#usual.delete("Immediate");
  }

  /** To be asked from a fresh round: whether the process waits for nothing that it did not wait for in the beginning. */
  isStill(): boolean {
    const patienceMs = this.#patienceMs();
    if (patienceMs === 0) {
      this.#busySince = null;
      return true;
    }
    const now = performance.now();
    this.#busySince ??= now;
    const busyMs = now - this.#busySince;
    if (busyMs < patienceMs) {
      if (busyMs > BRIEF_MS) pause();
      return false;
    }
    this.#busySince = null;
    // It is not waited for again: there are thousands of moments, and what has outlasted this one outlasts them all.
    this.#usual = resources();
    forgetTimers();
    // Nor so patiently: where one goes on for ever, each history may leave another one.
    if (patienceMs === ENDING_PATIENCE_MS) this.#ending.clear();
    return true;
  }

  /** 0: nothing is waited for. */
  #patienceMs(): number {
    const current = resources();
    let patienceMs = hasPendingTimers() ? PATIENCE_MS : 0;
    for (const [kind, count] of current) {
      if (count <= (this.#usual.get(kind) ?? 0)) continue;
      patienceMs = Math.max(patienceMs, this.#ending.has(kind) ? ENDING_PATIENCE_MS : PATIENCE_MS);
    }
    for (const [kind, count] of this.#usual) {
      const left = current.get(kind) ?? 0;
      if (left < count) this.#usual.set(kind, left);
    }
    return patienceMs;
  }
}

function resources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}
