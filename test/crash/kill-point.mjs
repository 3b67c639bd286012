// Where a process kills itself: at a point that a life in it reaches for the n-th time. The points are "before-commit" and "after-commit" of every
// transaction that SQLite is asked for, whatever for, "effect", which is in a step, behind its outside effect, and in charges.mjs "call", before it.
//
// A process is dear, so one may have many lives in it, each with an engine, a store and a point of its own. A life that has come to its point halts: its
// store neither does nor answers anything from then on, so nothing of it can go on. The last one to come kills the process where it stands. No engine
// was closed, and every store is as the kill would have left it at its life's point.
import { AsyncLocalStorage } from "node:async_hooks";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const current = new AsyncLocalStorage();
/** Those that are to be killed. */
const lives = [];
/** Whatever happens in no life of its own. */
let common = null;

export class Life {
  /** How often each point was reached. */
  reached = {};
  /** Resolves when it has come to its point. */
  halted;
  #kill;
  #tellHalted;
  #state = "goes on";

  /** `kill` is { point, n }, or undefined for a life that ends by itself. */
  constructor(kill) {
    this.#kill = kill;
    this.halted = new Promise((resolve) => {
      this.#tellHalted = resolve;
    });
    if (kill !== undefined) lives.push(this);
  }

  get isHalted() {
    return this.#state === "halted";
  }

  /** Counts the point, and says whether the life may go on. */
  reach(point) {
    if (this.isHalted) return false;
    this.reached[point] = (this.reached[point] ?? 0) + 1;
    if (point === this.#kill?.point && this.reached[point] === this.#kill.n) this.#stop("halted");
    return !this.isHalted;
  }

  /** It was over before it came to its point. */
  end() {
    this.#stop("ended");
  }

  within(work) {
    return current.run(this, work);
  }

  #stop(state) {
    this.#state = state;
    if (this.isHalted) this.#tellHalted();
    const isLast = lives.every((life) => life.#state !== "goes on");
    if (isLast && lives.some(({ isHalted }) => isHalted)) process.kill(process.pid, "SIGKILL");
  }
}

/** One life for all that has none of its own: `kill` may come late, and counts from then on. */
export function arm(kill) {
  common = new Life(kill);
  return common;
}

/** The life that this is called in comes to the point. */
export function reach(point) {
  if ((current.getStore() ?? common)?.reach(point) === false) throw halt();
}

/** Nobody gets to see it: whoever wants to do something about it asks the store. */
const halt = () => new Error("This life has come to its point.");

// What the outside does is a line of a ledger: a step beside the one that has come to the point does nothing there any more.
const { appendFileSync } = fs;
fs.appendFileSync = (...args) => {
  if (current.getStore()?.isHalted) throw halt();
  appendFileSync(...args);
};
syncBuiltinESMExports();

/** Whether the life that this is called in has come to its point. */
export function isHalted() {
  return current.getStore()?.isHalted === true;
}

/** For a store of SQLite. Behind a commit nothing is thrown, which would close the file: whatever comes next finds that the life has halted. */
export function faultOf(life) {
  return (point) => {
    const wasHalted = life.isHalted;
    if (!life.reach(point) && (wasHalted || point !== "after-commit")) throw halt();
  };
}

/** The store of a life: when that has halted, no question is answered any more. */
export function mortal(store, life) {
  const silence = () => new Promise(() => {});
  const call = (method, args) => {
    if (life.isHalted) return silence();
    const answer = method.apply(store, args);
    if (!(answer instanceof Promise)) return answer;
    return answer.then(
      (value) => (life.isHalted ? silence() : value),
      (error) => {
        if (life.isHalted) return silence();
        throw error;
      },
    );
  };
  const methods = Object.entries(store).filter(([, value]) => typeof value === "function");
  return { ...store, ...Object.fromEntries(methods.map(([name, method]) => [name, (...args) => call(method, args)])) };
}
