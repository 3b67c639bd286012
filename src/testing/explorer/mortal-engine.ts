// An engine that can be killed, frozen, or left without an answer
// It stands for one process: it has its own view of the store and of the clocks, and a host of its own. Everything that an engine does goes
// through one of them.
//
//   ME1. Nothing that a dead engine still does reaches the store or a step; it is never told anything again.
//   ME2. A frozen engine does nothing until it is thawed; then everything happens that it has missed, in order.
//   ME3. A step's function that has begun goes on whatever becomes of its engine: user code cannot be stopped, only its outcome.
import type { Clock } from "../../base/clock.ts";
import { jsonCodec } from "../../base/envelope.ts";
import { PawlError } from "../../base/errors.ts";
import { type SeededRandom, seededRandom } from "../../base/random.ts";
import type { EncryptionOptions } from "../../client/keyring.ts";
import { onMachine } from "../../client/machine.ts";
import { Pawl } from "../../client/pawl.ts";
import type { StepCall } from "../../core/call.ts";
import type { Log, StepInfo } from "../../core/context.ts";
import type { Frame, Host } from "../../core/host.ts";
import type { Commit, Store, Verdict } from "../../core/store.ts";
import type { Workflow } from "../../core/workflow.ts";
import { nodeHost } from "../../worker/node-host.ts";
import { processIdentity } from "../../worker/process-identity.ts";
import { type CrashMode, describeCommit, type PointKind } from "./crash-point.ts";
import { TEST_SECRET } from "./test-secret.ts";
import { LEASE_MS, LEASE_STEP_MS } from "./virtual-time.ts";

/** A step's function that was started. */
export interface BodyStart {
  readonly run: string;
  /** Key of the step in its run. */
  readonly step: string;
  /** Its idempotency key. */
  readonly key: string;
  readonly attempt: number;
  /** The arguments, where the step was given some. */
  readonly input: unknown;
  readonly engine: number;
  usedKey: boolean;
}

/** What an engine tells of itself. */
export interface EngineEvents {
  /** A point is reached; answers what happens there. `isSync`: the end of a function that has come to it without waiting for anything. */
  point(engine: MortalEngine, kind: PointKind, label: () => string, isSync?: true): CrashMode | null;
  started(engine: MortalEngine, body: BodyStart): void;
  ended(body: BodyStart, outcome: { readonly value: unknown } | null): void;
  /** Code of a body runs in this engine. */
  body(engine: MortalEngine, frame: Frame): void;
  readonly log: Log;
}

export interface EngineSetup {
  readonly store: Store;
  readonly workflows: readonly Workflow<never, unknown>[];
  readonly encryption?: EncryptionOptions | undefined;
  /** 0 for the first engine of a history. */
  readonly number: number;
  readonly seed: string;
  commitNumber(): number;
  /** What runs in place of a step's function. Default: the function. */
  instead?(call: StepCall, info: StepInfo, frame: Frame, fn: () => unknown): unknown;
}

// Reading it from the system each time would cost more than most histories.
const identity = processIdentity();

type State = "alive" | "frozen" | "dead";

export class MortalEngine {
  readonly number: number;
  readonly workers: string[] = [];
  readonly #setup: EngineSetup;
  readonly #events: EngineEvents;
  readonly #store: Store;
  #state: State = "alive";
  #held: (() => void)[] = [];
  /** Turns of the event loop that it has asked for. */
  #pending = 0;
  pawl: Pawl | null = null;

  constructor(setup: EngineSetup, events: EngineEvents) {
    this.number = setup.number;
    this.#setup = setup;
    this.#events = events;
    this.#store = this.#ownStore(setup.store);
  }

  get state(): State {
    return this.#state;
  }

  get isBusy(): boolean {
    return this.#state === "alive" && this.#pending > 0;
  }

  async open(): Promise<Pawl> {
    const { workflows, seed, encryption } = this.#setup;
    const chance = seededRandom(`${seed} engine ${this.number}`);
    const options = {
      workflows,
      handleSignals: false,
      retention: false as const,
      alerts: false as const,
      codec: jsonCodec,
      ...(encryption !== undefined && { encryption }),
      lease: LEASE_MS,
      poll: LEASE_STEP_MS,
      name: `engine ${this.number}`,
      secret: TEST_SECRET,
    };
    const machine = {
      host: this.#host(),
      random: () => chance.next(),
      randomBytes: (count: number) => bytesFrom(chance, count),
      // As if each engine ran in a container of its own: that one is gone only its lease tells.
      log: this.#events.log,
      identity: () => ({ ...identity, pidNamespace: `engine ${this.number}` }),
      // The explorer watches over the globals itself, once for all engines.
      protect: () => () => {},
    };
    this.pawl = await Pawl.open(this.#store, onMachine(options, machine));
    return this.pawl;
  }

  die(): void {
    this.#state = "dead";
    this.#held = [];
  }

  freeze(): void {
    this.#state = "frozen";
  }

  thaw(): void {
    if (this.#state !== "frozen") return;
    this.#state = "alive";
    for (const fn of this.#held.splice(0)) fn();
  }

  /** Runs `fn` now, when the engine is thawed, or never. */
  #do(fn: () => void): void {
    if (this.#state === "alive") fn();
    else if (this.#state === "frozen") this.#held.push(fn);
  }

  /** Resolves when the engine is thawed; never if it is dead. */
  #revived(): Promise<void> {
    return new Promise((resolve) => this.#do(resolve));
  }

  // The store

  #ownStore(store: Store): Store {
    const call =
      <A extends readonly unknown[], R>(method: (...args: A) => Promise<R>) =>
      (...args: A): Promise<R> => {
        const asked = this.#state === "alive" ? method(...args) : this.#revived().then(() => method(...args));
        return asked.then((answer) => this.#answer(answer));
      };
    const { pulse: _, backup: __, ...methods } = store;
    return {
      ...methods,
      clock: this.#ownClock(store.clock),
      leaseClock: this.#ownClock(store.leaseClock),
      open: async () => {},
      close: async () => {},
      register: call((worker) => {
        this.workers.push(worker.id);
        return store.register(worker);
      }),
      fence: call((request) => {
        if (request.successor !== undefined) this.workers.push(request.successor.id);
        return store.fence(request);
      }),
      heartbeat: call(store.heartbeat),
      workers: call(store.workers),
      owners: call(store.owners),
      retire: call(store.retire),
      nextWake: call(store.nextWake),
      take: call(store.take),
      owned: call(store.owned),
      run: call(store.run),
      journal: call(store.journal),
      unclaimed: call(store.unclaimed),
      orphans: call(store.orphans),
      adopt: call(store.adopt),
      purge: call(store.purge),
      emit: call(store.emit),
      chunks: call(store.chunks),
      hints: (listener) => store.hints((hint) => this.#do(() => listener(hint))),
      claim: async (request) => {
        if (this.#state !== "alive") await this.#revived();
        const claimed = await store.claim(request);
        if (claimed.length === 0) return this.#answer(claimed);
        const label = () => `wake of ${claimed.map(({ row }) => row.workflow).join(", ")}`;
        return this.#answer(claimed, this.#events.point(this, "wake", label));
      },
      deliver: async (message) => {
        if (this.#state !== "alive") await this.#revived();
        const delivery = await store.deliver(message);
        const label = () => (message.kind === "signal" ? `signal "${message.name}"` : message.kind);
        return this.#answer(delivery, this.#events.point(this, "signal", label));
      },
      commit: (commit) =>
        this.#state === "alive" ? this.#commit(commit) : this.#revived().then(() => this.#commit(commit)),
    };
  }

  /** Most of what an engine does to its store: it makes as few promises as it can. */
  #commit(commit: Commit): Promise<Verdict[]> {
    const { store, commitNumber } = this.#setup;
    const number = commitNumber();
    const label = () => `commit ${number} (${describeCommit(commit)})`;
    const carryOut = () =>
      store.commit(commit).then((verdicts) => {
        const mode = this.#events.point(this, "after-commit", () => `after ${label()}`);
        return this.#answer(verdicts, mode);
      });
    const mode = this.#events.point(this, "before-commit", () => `before ${label()}`);
    return mode === null ? carryOut() : Promise.resolve(this.#answer(undefined, mode)).then(carryOut);
  }

  /** The store's answer, after what is to happen at the point. Without anything to wait for it is given at once: that is the usual case. */
  #answer<T>(answer: T, mode: CrashMode | null = null): T | Promise<T> {
    if (mode === "lost-answer")
      throw new PawlError("unknown_outcome", "The explorer lost the answer: it may have been done, or not.");
    if (mode === "kill") this.die();
    if (mode === "take-over") this.freeze();
    return this.#state === "alive" ? answer : this.#revived().then(() => answer);
  }

  #ownClock(clock: Clock): Clock {
    return {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      at: (time, fire) => clock.at(time, () => this.#do(fire)),
      after: (ms, fire) => clock.after(ms, () => this.#do(fire)),
    };
  }

  // The host

  #host(): Host {
    return {
      ...nodeHost,
      immediate: (fn) => {
        this.#pending++;
        nodeHost.immediate(() => {
          this.#pending--;
          this.#do(fn);
        });
      },
      enter: <T, A>(frame: Frame | undefined, fn: (arg: A) => T, arg?: A): T => {
        if (frame?.where === "step" && arg !== undefined) {
          return nodeHost.enter(frame, () => this.#runStep(frame, fn as (info: unknown) => unknown, arg) as T);
        }
        if (frame?.where === "body") this.#events.body(this, frame);
        return nodeHost.enter(frame, fn, arg as A);
      },
    };
  }

  #runStep(frame: Frame, fn: (info: unknown) => unknown, attempt: unknown): unknown {
    if (this.#state === "dead") return never();
    const call = frame.step?.call as StepCall;
    const info = attempt as StepInfo;
    const mode = this.#events.point(this, "step", () => `start of step "${call.key}"`);
    if (mode === "kill") {
      this.die();
      return never();
    }
    const body: BodyStart = {
      run: frame.run,
      step: call.key,
      key: call.idempotencyKey,
      attempt: info.attempt,
      input: call.input?.value,
      engine: this.number,
      usedKey: false,
    };
    this.#events.started(this, body);
    if (mode !== null) this.freeze();
    const { instead } = this.#setup;
    const act = instead === undefined ? fn : (given: unknown) => instead(call, info, frame, () => fn(given));
    return this.#settle(body, act, watched(info, body));
  }

  /** The outcome of a function, held back if that is the point of this history. */
  #settle(body: BodyStart, fn: (info: unknown) => unknown, info: unknown): unknown {
    let result: unknown;
    try {
      result = fn(info);
    } catch (error) {
      if (this.#isOverAtEnd(body, null, true)) return never();
      throw error;
    }
    if (!isThenable(result)) return this.#isOverAtEnd(body, { value: result }, true) ? never() : result;
    return result.then(
      (value) => (this.#isOverAtEnd(body, { value }) ? never() : value),
      (error: unknown) => {
        if (this.#isOverAtEnd(body, null)) return never();
        throw error;
      },
    );
  }

  #isOverAtEnd(body: BodyStart, outcome: { readonly value: unknown } | null, isSync?: true): boolean {
    this.#events.ended(body, outcome);
    if (this.#state !== "alive") return this.#state === "dead";
    const mode = this.#events.point(this, "step", () => `end of step "${body.step}"`, isSync);
    if (mode === "kill") this.die();
    if (mode === "take-over") this.freeze();
    return mode === "kill";
  }
}

/** The same info, which knows whether its key was asked for. */
function watched(info: StepInfo, body: BodyStart): StepInfo {
  return new Proxy(info, {
    get(target, name) {
      if (name === "key") body.usedKey = true;
      return Reflect.get(target, name, target) as unknown;
    },
  });
}

/** Numbers that differ are good enough. Many are asked for at once and few used, so they are made four bytes at a time. */
function bytesFrom(chance: SeededRandom, count: number): Uint8Array {
  const words = new Uint32Array(Math.ceil(count / 4));
  let state = Math.floor(chance.next() * 2 ** 32) | 1;
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state;
  }
  return new Uint8Array(words.buffer, 0, count);
}

function isThenable(value: unknown): value is Promise<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

function never(): Promise<never> {
  return new Promise(() => {});
}
