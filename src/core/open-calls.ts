import { type Call, dueOf, isWaiting, rejectCall, type StepCall } from "./call.ts";
import type { CallType } from "./journal.ts";

type WaitCall = Exclude<Call, StepCall>;

/**
 * The open calls of a run. Keys are counted per kind (P6); steps, by far the most, are found by their key alone, and the one step that most
 * runs have open at a time without a table.
 */
export class OpenCalls {
  #single: StepCall | null = null;
  #steps: Map<string, StepCall> | null = null;
  #waits: Map<string, WaitCall> | null = null;
  #issued = 0;

  get size(): number {
    return (this.#single === null ? 0 : 1) + (this.#steps?.size ?? 0) + (this.#waits?.size ?? 0);
  }

  /** Whether something other than a step is open: only then can anything but a step wake the run. */
  get hasWaits(): boolean {
    return this.#waits !== null && this.#waits.size > 0;
  }

  /** Whether a step may wait for its next attempt. */
  get hasRetries(): boolean {
    return this.#steps !== null || (this.#single !== null && this.#single.retryAt !== null);
  }

  add(call: Call): void {
    call.order = this.#issued++;
    if (call.type === "step.started") return this.#addStep(call);
    // A spawned child is nobody's to wait for.
    if (call.type === "child.started" && call.spec.detached) {
      call.open = false;
      return;
    }
    this.#waits ??= new Map();
    this.#waits.set(`${call.type} ${call.key}`, call);
  }

  #addStep(call: StepCall): void {
    if (this.#single === null) {
      this.#single = call;
      return;
    }
    this.#steps ??= new Map();
    this.#steps.set(call.key, call);
  }

  step(key: string | null): StepCall | undefined {
    if (key === null) return undefined;
    return this.#single?.key === key ? this.#single : this.#steps?.get(key);
  }

  steps(): StepCall[] {
    const first = this.#single === null ? [] : [this.#single];
    return this.#steps === null ? first : [...first, ...this.#steps.values()];
  }

  /** All but steps, in order of issue. */
  waits(): Iterable<WaitCall> {
    return this.#waits?.values() ?? [];
  }

  /** All, in order of issue. */
  all(): Call[] {
    return [...this.steps(), ...this.waits()].sort((a, b) => a.order - b.order);
  }

  /** Closes a call whose outcome is being delivered. */
  settle(type: CallType, key: string): Call | undefined {
    const call = type === "step.started" ? this.#takeStep(key) : this.#takeWait(`${type} ${key}`);
    if (call !== undefined) call.open = false;
    return call;
  }

  #takeStep(key: string): StepCall | undefined {
    const call = this.step(key);
    if (call === this.#single) this.#single = null;
    else this.#steps?.delete(key);
    return call;
  }

  #takeWait(id: string): WaitCall | undefined {
    const call = this.#waits?.get(id);
    this.#waits?.delete(id);
    return call;
  }

  /** Rejects every pending call in order of issue (P19). */
  rejectAll(error: unknown): void {
    for (const call of this.dropAll()) rejectCall(call, error);
  }

  /** Nobody waits for any of them any more. */
  dropAll(): Call[] {
    const pending = this.all();
    this.#single = null;
    this.#steps = null;
    this.#waits = null;
    for (const call of pending) call.open = false;
    return pending;
  }

  /** Whether none of them needs anything done in this process. */
  get areAllWaiting(): boolean {
    if (this.#single !== null && !isWaiting(this.#single)) return false;
    if (this.#steps !== null) for (const call of this.#steps.values()) if (!isWaiting(call)) return false;
    return true;
  }

  /** The earliest due time among them and `other`. */
  nextDue(other: number | null): number | null {
    let first = earlier(this.nextWakeup(other), this.#single?.retryAt ?? null);
    if (this.#steps !== null) for (const call of this.#steps.values()) first = earlier(first, call.retryAt);
    return first;
  }

  /** The same without the next attempts of steps. */
  nextWakeup(other: number | null): number | null {
    let first = other;
    if (this.#waits !== null) for (const call of this.#waits.values()) first = earlier(first, dueOf(call));
    return first;
  }
}

function earlier(a: number | null, b: number | null): number | null {
  if (a === null) return b;
  return b === null || a < b ? a : b;
}
