// The world outside, as far as it remembers what was done in it
// It recognises keys as a good provider does, for those who rely on that, and does again what it is told twice for those who do not. So what a
// guard is for shows: without it things would be here twice.
import type { StepInfo } from "../../core/context.ts";
import type { Detected } from "../../core/undoable-call.ts";
import type { Deal, Leave } from "./deeds.ts";
import type { Situation } from "./situations.ts";

export interface BankPorts {
  /** What is wrong with an action that rests on this approval; `null` if it was approved. */
  uncovered(run: string, leave: Leave): string | null;
  /** Acknowledged writes were lost, or a person was wrong about it: nobody can promise that it happens once. */
  mayHappenTwice(key: string): boolean;
  violated(invariant: string, what: string): void;
  sometimes(what: Situation): void;
}

/** Something that was done. */
interface Booking {
  times: number;
  isTakenBack: boolean;
}

export class Bank {
  readonly #ports: BankPorts;
  readonly #bookings = new Map<string, Booking>();
  /** Which action has used an approval. */
  readonly #used = new Map<string, string>();

  constructor(ports: BankPorts) {
    this.#ports = ports;
  }

  /** It happens: again, unless it is recognised. */
  book(run: string, { key }: StepInfo, deal: Deal, leave: Leave | null): string {
    const value = receiptOf(key);
    if (leave !== null) this.#covered(run, key, leave);
    if (deal.class === "read") return value;
    const booking = this.#bookings.get(key);
    if (booking === undefined) {
      this.#bookings.set(key, { times: 1, isTakenBack: false });
      return value;
    }
    if (booking.isTakenBack) this.#violated("CO2", `${key} was done again after it had been taken back`, key);
    if (deal.guard === "idempotent" || deal.guard === "step") {
      this.#ports.sometimes("an effect was recognised by its key");
      return value;
    }
    booking.times++;
    if (deal.guard === "detect" || deal.class !== "draft") this.#violated("C-3", `${key} was done twice`, key);
    return value;
  }

  /** Q6: there is a recorded approval of this very action, and nothing else rests on it. */
  #covered(run: string, key: string, leave: Leave): void {
    const why = this.#ports.uncovered(run, leave);
    if (why !== null) return this.#violated("Q6", `${key} was done, and ${why}`, key);
    const other = this.#used.get(leave.approval);
    if (other !== undefined && other !== key)
      this.#violated("Q6", `${key} rests on approval ${leave.approval}, which ${other} has used`, key);
    this.#used.set(leave.approval, key);
  }

  look(key: string): Detected<string> {
    return this.has(key) ? { found: true, value: receiptOf(key) } : { found: false };
  }

  /** It is there, and nobody has taken it back. */
  has(key: string): boolean {
    return this.#bookings.get(key)?.isTakenBack === false;
  }

  /** It has been there, at least for a while. */
  knows(key: string): boolean {
    return this.#bookings.has(key);
  }

  /** Takes it back, if it is there; doing so twice is as good as once. */
  takeBack(key: string, value: unknown): void {
    if (value !== undefined && value !== receiptOf(key))
      this.#violated("X-27", `the undo of ${key} was given ${String(value)} instead of its result`, key);
    if (value === undefined) this.#ports.sometimes("an effect of unknown outcome was undone");
    const booking = this.#bookings.get(key);
    if (booking !== undefined) booking.isTakenBack = true;
  }

  #violated(invariant: string, what: string, key: string): void {
    if (!this.#ports.mayHappenTwice(key)) this.#ports.violated(invariant, what);
  }
}

/** What the outside says of an action. */
export function receiptOf(key: string): string {
  return `done ${key}`;
}
