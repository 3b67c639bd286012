// Claims
// Looks for work while there is room for it: when something may have changed, when the next sleeper is due, and by polling.
//
//   CL1. A claim never brings more than there is room for; places that were promised to children are taken.
//   CL2. At most one suspect is claimed at a time: the next one once it has made progress or left (P28).
//   CL3. From the moment a look for work finds no room, nobody stays in memory just because it is due soon (P33, I19).
import { hasCode } from "../base/errors.ts";
import { LIMITS } from "../core/limits.ts";
import type { ClaimedRun, Store } from "../core/store.ts";
import { Loop } from "./loop.ts";
import type { PassTable } from "./pass-table.ts";
import type { Registry } from "./registry.ts";

export interface ClaimsOptions {
  readonly registry: Registry;
  readonly concurrency: number;
  readonly pollMs: number;
}

export interface ClaimsPorts {
  /** The incarnation that may claim now; `null` while none may. */
  worker(): string | null;
  /** Puts a question to the store whose answer may come late. */
  ask(question: () => Promise<ClaimedRun[]>): Promise<ClaimedRun[]>;
  /** Takes on what was claimed; its mail is as old as `readAt`. */
  load(claimed: ClaimedRun, readAt: number, worker: string): void;
  /** Nobody knows what a claim has brought. */
  unknown(): void;
  guarded(what: string, body: () => Promise<void>): Promise<void>;
  /** So many were claimed. */
  claimed(runs: number): void;
}

export class Claims {
  readonly #store: Store;
  readonly #options: ClaimsOptions;
  readonly #passes: PassTable;
  readonly #ports: ClaimsPorts;
  readonly #loop: Loop;
  readonly #suspects = new Set<string>();
  /** Children that will be taken on the spot once they are durable. */
  #promised = 0;
  #mayHaveMore = true;
  #isCrowded = false;
  #alarm: { readonly due: number; readonly forget: () => void } | null = null;
  /** The due time of an alarm that is over, if the store still has it. */
  #rung: number | null = null;

  constructor(store: Store, options: ClaimsOptions, passes: PassTable, ports: ClaimsPorts) {
    this.#store = store;
    this.#options = options;
    this.#passes = passes;
    this.#ports = ports;
    this.#loop = new Loop(store.leaseClock, options.pollMs, () => ports.guarded("claim", () => this.#claim()));
  }

  start(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
    this.#setAlarm(null);
  }

  /** Looks for work now; resolves when that is done. */
  tick(): Promise<void> {
    return this.#loop.tick();
  }

  /** Whether one more run could be taken on. */
  get hasRoom(): boolean {
    return this.#free > 0;
  }

  get isFull(): boolean {
    return this.#passes.size >= this.#options.concurrency;
  }

  /** Whether others may be waiting for a place here (CL3). */
  get isCrowded(): boolean {
    return this.#isCrowded;
  }

  get #free(): number {
    return this.#options.concurrency - this.#passes.size - this.#promised;
  }

  /** Keeps a place for a child that is about to be written. */
  promise(): void {
    this.#promised++;
  }

  redeem(): void {
    this.#promised = Math.max(0, this.#promised - 1);
  }

  /** A run that was claimed so many times without progress is begun here. */
  begun(run: string, claims: number): void {
    if (claims > LIMITS.deathsAmongOthers) this.#suspects.add(run);
  }

  /** A run has recorded an outcome. */
  progressed(run: string): void {
    if (this.#suspects.delete(run)) void this.tick();
  }

  /** A run was lost, and with it perhaps the children that it was promised places for. */
  lost(run: string): void {
    this.#promised = 0;
    this.#suspects.delete(run);
  }

  /** A run has left. Looks for more work if there may be some: a look costs as much as a step, and hints tell of what is new. */
  left(run: string, mayWake: boolean): void {
    const wasSuspect = this.#suspects.delete(run);
    if (mayWake || wasSuspect || this.#mayHaveMore) void this.tick();
  }

  async #claim(): Promise<void> {
    const worker = this.#ports.worker();
    if (worker === null) return;
    const room = Math.min(LIMITS.claimBatch, this.#free);
    // Whoever leaves asks again.
    this.#mayHaveMore = true;
    if (room <= 0) {
      this.#makeRoom();
      return this.#setAlarm(null);
    }
    // The mail that comes along is as old as the question (P5).
    const readAt = this.#store.clock.now();
    const suspect = this.#suspects.size === 0;
    const claimed = await this.#ports.ask(() => this.#ask(worker, room, suspect));
    for (const run of claimed) this.#ports.load(run, readAt, worker);
    if (claimed.length > 0) this.#ports.claimed(claimed.length);
    const mayHaveMore = claimed.length === room;
    this.#mayHaveMore = mayHaveMore || !suspect || this.#suspects.size > 0;
    if (mayHaveMore) void this.tick();
    else this.#isCrowded = false;
    this.#setAlarm(this.#worthWaking(await this.#store.nextWake()));
  }

  /** One that has rung before and brought nothing is somebody else's, or this worker was fenced: the poll will do. */
  #worthWaking(due: number | null): number | null {
    const hasRung = due !== null && due === this.#rung;
    this.#rung = due !== null && due <= this.#store.clock.now() ? due : null;
    return hasRung ? null : due;
  }

  async #ask(worker: string, limit: number, suspect: boolean): Promise<ClaimedRun[]> {
    const { handles } = this.#options.registry;
    try {
      return await this.#store.claim({ worker, handles, limit, suspect });
    } catch (error) {
      if (!hasCode(error, "storage_unavailable")) this.#ports.unknown();
      throw error;
    }
  }

  /** Those that only wait here for their time leave, so that others get in; from now on none comes to stay (CL3). */
  #makeRoom(): void {
    if (this.#isCrowded) return;
    this.#isCrowded = true;
    for (const pass of this.#passes.all()) pass.evaluate();
  }

  /** The next sleeping run anywhere in the store wakes this worker, without polling for it. */
  #setAlarm(due: number | null): void {
    if (due === this.#alarm?.due) return;
    this.#alarm?.forget();
    this.#alarm = null;
    if (due === null) return;
    const forget = this.#store.clock.at(due, () => {
      this.#alarm = null;
      void this.tick();
    });
    this.#alarm = { due, forget };
  }
}
