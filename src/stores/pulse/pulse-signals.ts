// What the main thread and the pulse thread tell each other, in memory both see.
// Every value is read and written atomically; the time is kept in whole nanoseconds for that reason.

const STOP = 0;
const BEATS = 1;
const OTHERS = 2;
const DONE = 3;
const UP = 4;

/** No time of a monotonic clock is negative. */
const FENCED = -1n;

// In every Node that Pawl runs on, but not in the type library of our target.
const { waitAsync } = Atomics as unknown as {
  waitAsync(
    numbers: Int32Array,
    index: number,
    value: number,
    ms: number,
  ): { readonly value: Promise<string> | string };
};

export interface PulseMemory {
  readonly numbers: SharedArrayBuffer;
  readonly time: SharedArrayBuffer;
}

export function pulseMemory(confirmedAt: number): PulseMemory {
  const memory = { numbers: new SharedArrayBuffer(20), time: new SharedArrayBuffer(8) };
  new PulseSignals(memory).confirm(confirmedAt, 0);
  return memory;
}

export class PulseSignals {
  readonly #numbers: Int32Array;
  readonly #time: BigInt64Array;

  constructor({ numbers, time }: PulseMemory) {
    this.#numbers = new Int32Array(numbers);
    this.#time = new BigInt64Array(time);
  }

  /** Lease-clock time at which the last confirmed heartbeat was sent; -Infinity once the worker was found fenced. */
  confirmedAt(): number {
    const time = Atomics.load(this.#time, 0);
    return time === FENCED ? Number.NEGATIVE_INFINITY : Number(time) / 1e6;
  }

  /** How many other workers the last heartbeat saw. */
  others(): number {
    return Atomics.load(this.#numbers, OTHERS);
  }

  /** Both threads may do this while the pulse starts: the latest one counts, and none after the worker was found fenced. */
  confirm(sentAt: number, others: number): void {
    Atomics.store(this.#numbers, OTHERS, others);
    const time = BigInt(Math.floor(sentAt * 1e6));
    for (let known = Atomics.load(this.#time, 0); known !== FENCED && known < time; ) {
      const found = Atomics.compareExchange(this.#time, 0, known, time);
      if (found === known) return;
      known = found;
    }
  }

  fenced(): void {
    Atomics.store(this.#time, 0, FENCED);
  }

  beat(): void {
    Atomics.add(this.#numbers, BEATS, 1);
  }

  beats(): number {
    return Atomics.load(this.#numbers, BEATS);
  }

  /** The thread has started, and has renewed the lease once. */
  up(): void {
    Atomics.store(this.#numbers, UP, 1);
  }

  get isUp(): boolean {
    return Atomics.load(this.#numbers, UP) === 1;
  }

  stop(): void {
    Atomics.store(this.#numbers, STOP, 1);
    Atomics.notify(this.#numbers, STOP);
  }

  get isToStop(): boolean {
    return Atomics.load(this.#numbers, STOP) === 1;
  }

  /** The thread has let go of the file. */
  done(): void {
    Atomics.store(this.#numbers, DONE, 1);
    Atomics.notify(this.#numbers, DONE);
  }

  /** Blocks this thread until the other one is done, but not for ever. */
  waitForDone(ms: number): void {
    Atomics.wait(this.#numbers, DONE, 0, ms);
  }

  /** Like `waitForStop`, for a thread that has other things to do meanwhile. */
  async stopWithin(ms: number): Promise<boolean> {
    if (!this.isToStop) await waitAsync(this.#numbers, STOP, 0, ms).value;
    return this.isToStop;
  }

  /** Blocks this thread for so long, or until it is to stop; returns whether it is. */
  waitForStop(ms: number): boolean {
    Atomics.wait(this.#numbers, STOP, 0, ms);
    return this.isToStop;
  }
}
