import { type Call, dueOf, isWaiting, rejectCall, type StepCall } from "./call.ts";
import type { CallType } from "./journal.ts";

type WaitCall = Exclude<Call, StepCall>;

/** The open calls of a run. Keys are counted per kind (P6); steps, by far the most, are found by their key alone. */
export class OpenCalls {
  readonly #steps = new Map<string, StepCall>();
  readonly #waits = new Map<string, WaitCall>();
  #issued = 0;

  get size(): number {
    return this.#steps.size + this.#waits.size;
  }

  /** Whether something other than a step is open: only then can anything but a step wake the run. */
  get hasWaits(): boolean {
    return this.#waits.size > 0;
  }

  add(call: Call): void {
    call.order = this.#issued++;
    if (call.type === "step.started") this.#steps.set(call.key, call);
    // A spawned child is nobody's to wait for.
    else if (call.type === "child.started" && call.spec.detached) call.open = false;
    else this.#waits.set(`${call.type} ${call.key}`, call);
  }

  step(key: string | null): StepCall | undefined {
    return key === null ? undefined : this.#steps.get(key);
  }

  steps(): IterableIterator<StepCall> {
    return this.#steps.values();
  }

  /** All but steps, in order of issue. */
  waits(): IterableIterator<WaitCall> {
    return this.#waits.values();
  }

  /** All, in order of issue. */
  all(): Call[] {
    return [...this.#steps.values(), ...this.#waits.values()].sort((a, b) => a.order - b.order);
  }

  /** Closes a call whose outcome is being delivered. */
  settle(type: CallType, key: string): Call | undefined {
    const call = type === "step.started" ? this.#steps.get(key) : this.#waits.get(`${type} ${key}`);
    if (call === undefined) return undefined;
    call.open = false;
    if (call.type === "step.started") this.#steps.delete(key);
    else this.#waits.delete(`${type} ${key}`);
    return call;
  }

  /** Rejects every pending call in order of issue (P19). */
  rejectAll(error: unknown): void {
    const pending = this.all();
    this.#steps.clear();
    this.#waits.clear();
    for (const call of pending) {
      call.open = false;
      rejectCall(call, error);
    }
  }

  /** Whether none of them needs anything done in this process. */
  get areAllWaiting(): boolean {
    for (const call of this.#steps.values()) if (!isWaiting(call)) return false;
    return true;
  }

  /** The earliest due time among them and `other`. */
  nextDue(other: number | null): number | null {
    let first = other;
    for (const calls of [this.#steps, this.#waits]) {
      for (const call of calls.values()) {
        const due = dueOf(call);
        if (due !== null && (first === null || due < first)) first = due;
      }
    }
    return first;
  }
}
