// The ledger: one JSON object a line, appended by any process. A line that was appended survives the death of whoever appended it.
import { appendFileSync, closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";

/** Milliseconds on the one clock that all processes of this machine share and nobody can set. */
export const monotonic = () => Number(process.hrtime.bigint()) / 1e6;

export class Ledger {
  #file;
  #gate;
  #readUpTo = 0;

  /** `gate` says when this process has looked at its lease, on the same clock; it is booked with every start. */
  constructor(file, gate = null) {
    this.#file = file;
    this.#gate = gate;
  }

  book(what, facts) {
    const gate = what === "start" && this.#gate !== null ? { gate: this.#gate() } : {};
    const line = { what, ...facts, ...gate, pid: process.pid, mono: monotonic() };
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`);
  }

  /** What was appended since the last call, by anybody. */
  news() {
    if (!existsSync(this.#file)) return [];
    const file = openSync(this.#file, "r");
    const bytes = Buffer.alloc(fstatSync(file).size - this.#readUpTo);
    readSync(file, bytes, 0, bytes.length, this.#readUpTo);
    closeSync(file);
    // Somebody may be in the middle of a line.
    const whole = bytes.subarray(0, bytes.lastIndexOf("\n") + 1);
    this.#readUpTo += whole.length;
    return whole
      .toString()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  }
}
