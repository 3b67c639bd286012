import { type Call, dueOf, isWaiting, rejectCall } from "./call.ts";

/** The identity of a call among the open ones: keys are counted per kind (P6). */
export function callId(call: Pick<Call, "type" | "key">): string {
  return `${call.type} ${call.key}`;
}

/** The open calls of a run, in order of issue. */
export class OpenCalls {
  readonly #calls = new Map<string, Call>();
  #waits = 0;

  get size(): number {
    return this.#calls.size;
  }

  /** Whether something other than a step is open: only then can anything but a step wake the run. */
  get hasWaits(): boolean {
    return this.#waits > 0;
  }

  add(call: Call): void {
    // A spawned child is nobody's to wait for.
    if (call.type === "child.started" && call.spec.detached) {
      call.open = false;
      return;
    }
    this.#calls.set(callId(call), call);
    if (call.type !== "step.started") this.#waits++;
  }

  get(id: string): Call | undefined {
    return this.#calls.get(id);
  }

  values(): IterableIterator<Call> {
    return this.#calls.values();
  }

  /** Closes a call whose outcome is being delivered. */
  settle(id: string): Call | undefined {
    const call = this.#calls.get(id);
    if (call === undefined) return undefined;
    call.open = false;
    this.#calls.delete(id);
    if (call.type !== "step.started") this.#waits--;
    return call;
  }

  /** Rejects every pending call in order of issue (P19). */
  rejectAll(error: unknown): void {
    const pending = [...this.#calls.values()];
    this.#calls.clear();
    this.#waits = 0;
    for (const call of pending) {
      call.open = false;
      rejectCall(call, error);
    }
  }

  /** Whether none of them needs anything done in this process. */
  get areAllWaiting(): boolean {
    for (const call of this.#calls.values()) if (!isWaiting(call)) return false;
    return true;
  }

  /** The earliest due time among them and `other`. */
  nextDue(other: number | null): number | null {
    let first = other;
    for (const call of this.#calls.values()) {
      const due = dueOf(call);
      if (due !== null && (first === null || due < first)) first = due;
    }
    return first;
  }
}
