// The engine that a case is played on
// A memory store in virtual time, and one process after the other on it: one may die, or be replaced by a newer deployment.
import { type ManualClock, manualClock } from "../../base/clock.ts";
import { PawlError } from "../../base/errors.ts";
import type { Pawl } from "../../client/pawl.ts";
import type { StepCall } from "../../core/call.ts";
import type { Log, StepInfo } from "../../core/context.ts";
import type { Frame } from "../../core/host.ts";
import type { Store } from "../../core/store.ts";
import type { Workflow } from "../../core/workflow.ts";
import { memoryStore } from "../../stores/memory/memory-store.ts";
import { shieldRejections } from "../../worker/rejections.ts";
import { MortalEngine } from "../explorer/mortal-engine.ts";
import { watchTimers } from "../explorer/step-timers.ts";
import { Stillness } from "../explorer/stillness.ts";
import { VirtualTime } from "../explorer/virtual-time.ts";
import { Driver, handleOf } from "../test-engine.ts";

type Workflows = readonly Workflow<never, unknown>[];
type Handle = ReturnType<typeof handleOf>;
type Answer = (call: StepCall, info: StepInfo, frame: Frame, fn: () => unknown) => unknown;

const START = Date.UTC(2026, 0, 1);
/** More retries than that nobody waits for. */
const MOST_RETRIES = 1000;

const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export class EvalEngine {
  readonly clock: ManualClock = manualClock(START);
  readonly store: Store;
  readonly #leaseClock = manualClock(START);
  readonly #time: VirtualTime;
  readonly #driver: Driver;
  readonly #answer: Answer;
  readonly #leave: readonly (() => void)[];
  #workflows: Workflows;
  #engine: MortalEngine | null = null;
  #handle: Handle | null = null;
  #opened = 0;
  #commits = 0;

  static async open(workflows: Workflows, answer: Answer): Promise<EvalEngine> {
    const engine = new EvalEngine(workflows, answer);
    await engine.#open();
    return engine;
  }

  private constructor(workflows: Workflows, answer: Answer) {
    this.#workflows = workflows;
    this.#answer = answer;
    this.store = memoryStore({ clock: this.clock, leaseClock: this.#leaseClock });
    this.#time = new VirtualTime(this.clock, this.#leaseClock);
    this.#driver = new Driver(this.#time, new Stillness());
    this.#leave = [watchTimers(), shieldRejections()];
  }

  get pawl(): Pawl {
    const pawl = this.#engine?.pawl ?? null;
    if (pawl === null) throw new Error("the engine of a case is open while it is played");
    return pawl;
  }

  get handle(): Handle {
    if (this.#handle === null) throw new Error("the engine of a case is open while it is played");
    return this.#handle;
  }

  get isDead(): boolean {
    return this.#engine?.state === "dead";
  }

  async #open(): Promise<void> {
    const number = this.#opened++;
    const engine = new MortalEngine(
      {
        store: this.store,
        workflows: this.#workflows,
        number,
        seed: "eval",
        commitNumber: () => ++this.#commits,
        instead: this.#answer,
      },
      { point: () => null, started: () => {}, ended: () => {}, body: () => {}, log: silent },
    );
    const pawl = await engine.open();
    this.#engine = engine;
    this.#handle = handleOf(
      pawl,
      // Also while a process is dead, its watcher is not.
      this.#time.for(() => true),
      this.#driver,
    );
  }

  /** The process dies at this very instant. */
  die(): void {
    this.#engine?.die();
  }

  /** Another process finds what a dead one has left. */
  async recover(): Promise<void> {
    this.die();
    await this.store.fence({ workers: this.#engine?.workers ?? [] });
    await this.#open();
  }

  /** A process with other code takes the place of this one. */
  async deploy(workflows: Workflows): Promise<void> {
    await this.#driver.drive(this.pawl.close({ drain: 0 }));
    this.#workflows = workflows;
    await this.#open();
  }

  /** Everything happens that needs no time, and retries when they are due. Nothing else lets time pass. */
  async calm(): Promise<void> {
    for (let n = 0; n < MOST_RETRIES; n++) {
      if (this.isDead) return;
      await this.handle.settle();
      const retries = await this.store.waits({ kind: "retry" });
      const due = Math.min(...retries.map((wait) => wait.due ?? Number.POSITIVE_INFINITY));
      if (this.isDead || !Number.isFinite(due)) return;
      await this.handle.advance(Math.max(1, due - this.clock.now()));
    }
    throw new PawlError(
      "invalid_argument",
      `The case has come to ${MOST_RETRIES} retries. Give its tools an end that is one.`,
    );
  }

  async close(): Promise<void> {
    try {
      if (!this.isDead) await this.#driver.drive(this.pawl.close({ drain: 0 }));
    } finally {
      for (const leave of this.#leave) leave();
    }
  }
}
