// The test engine
// A whole engine in memory, whose time moves by itself while somebody waits for a result, and stands still otherwise.
import { type ManualClock, manualClock } from "../base/clock.ts";
import { type Duration, toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import type { Approvals, Decision } from "../client/approvals.ts";
import type { Callbacks } from "../client/callbacks.ts";
import type { ForkOptions } from "../client/fork-effects.ts";
import type { StepReport } from "../client/manual.ts";
import { Pawl } from "../client/pawl.ts";
import type { PawlOptions } from "../client/pawl-options.ts";
import type { Choice } from "../client/resolve.ts";
import type { CancelOptions, CancelOutcome, Run, SignalOptions } from "../client/run.ts";
import type { StartOptions } from "../client/start.ts";
import type { ApprovalRequested } from "../core/approval-request.ts";
import type { Store } from "../core/store.ts";
import type { Workflow } from "../core/workflow.ts";
import { memoryStore } from "../stores/memory/memory-store.ts";
import { watchTimers } from "./explorer/step-timers.ts";
import { nextRound, Stillness } from "./explorer/stillness.ts";
import { TEST_SECRET } from "./explorer/test-secret.ts";
import { type ClientTime, LEASE_MS, LEASE_STEP_MS, VirtualTime } from "./explorer/virtual-time.ts";

export interface TestEngineOptions
  extends Pick<
    PawlOptions,
    | "alerts"
    | "codec"
    | "concurrency"
    | "encryption"
    | "logger"
    | "notifiers"
    | "observers"
    | "redact"
    | "retention"
    | "secret"
    | "secrets"
  > {
  /** The workflows under test, children included. */
  readonly workflows: readonly Workflow<never, unknown>[];
  /** Wall time. Default: a clock of its own, which begins in 2026. */
  readonly clock?: ManualClock;
}

type Input<I> = undefined extends I ? [input?: I, options?: StartOptions] : [input: I, options?: StartOptions];

/** An engine on a memory store, in virtual time. */
export interface TestEngine {
  readonly store: Store;
  readonly clock: ManualClock;
  /** Starts a run. Waiting for its `result()` lets time pass. */
  start<I, O>(workflow: Workflow<I, O>, ...args: Input<I>): Promise<Run<O>>;
  /**
   * Starts a run and waits for its result, however long it sleeps. As the `result()` of a run, it rejects with `run_parked` if the run is parked and
   * nothing is left that could happen.
   */
  run<I, O>(workflow: Workflow<I, O>, ...args: Input<I>): Promise<O>;
  /** A handle on any run, children included. */
  get<O = unknown>(id: string): Run<O>;
  signal(id: string, name: string, payload?: unknown, options?: SignalOptions): Promise<void>;
  cancel(id: string, options?: CancelOptions): Promise<CancelOutcome>;
  /** Starts a new run that inherits the journal of this one up to a point. */
  fork(id: string, options: ForkOptions): Promise<Run>;
  /** Decides about a run that is parked or blocked. */
  resolve(id: string, choice: Choice): Promise<void>;
  /** Says that a step which is done outside was begun, is done or has failed. */
  report(id: string, step: string, report: StepReport): Promise<void>;
  readonly approvals: Pick<Approvals, "decide" | "get" | "list">;
  readonly callbacks: Pick<Callbacks, "answer" | "fail" | "revoke">;
  /** Waits until the run has asked for the last approval of this name, and decides about it. */
  decide(id: string, name: string, decision: Decision): Promise<void>;
  /** Resolves when everything that needs no time has happened. */
  settle(): Promise<void>;
  /** Lets so much time pass. */
  advance(time: Duration): Promise<void>;
  /** Lets time pass until this holds, or nothing is left that could happen. */
  until(condition: () => boolean | Promise<boolean>): Promise<void>;
  /** Closes the engine; rejects if it leaves a run that nothing would ever wake. */
  close(): Promise<void>;
}

/** Opens an engine on a memory store whose time skips to the next due moment while somebody waits for a result. */
export async function testEngine(options: TestEngineOptions): Promise<TestEngine> {
  assertWorkflows(options);
  const { clock = manualClock(), ...rest } = options;
  const leaseClock = manualClock();
  const store = memoryStore({ clock, leaseClock });
  const stillness = new Stillness();
  const time = new VirtualTime(clock, leaseClock);
  const unwatch = watchTimers();
  const pawl = await Pawl.open(store, {
    retention: false,
    // They are not what most tests are about: `alerts: {}` has them looked for.
    alerts: false,
    secret: TEST_SECRET,
    ...rest,
    lease: LEASE_MS,
    poll: LEASE_STEP_MS,
    handleSignals: false,
  });
  const driver = new Driver(time, stillness);
  const handle = handleOf(
    pawl,
    time.for(() => true),
    driver,
  );
  const known = <W extends { readonly name: string }>(workflow: W): W => assertKnown(workflow, options.workflows);
  return {
    ...handle,
    start: async (workflow, ...args) => handle.start(known(workflow), ...args),
    run: async (workflow, ...args) => handle.run(known(workflow), ...args),
    store,
    clock,
    close: () => closeChecked(pawl, store).finally(unwatch),
  };
}

function assertWorkflows(options: Partial<TestEngineOptions> | undefined): void {
  if (Array.isArray(options?.workflows)) return;
  throw new PawlError(
    "invalid_argument",
    "testEngine needs `workflows`, a list of those under test: testEngine({ workflows: [order] }).",
  );
}

/** No other worker will ever come: a run that this engine does not know would wait for ever. */
function assertKnown<W extends { readonly name: string }>(workflow: W, known: TestEngineOptions["workflows"]): W {
  const { name } = workflow;
  if (known.some((one) => one.name === name)) return workflow;
  throw new PawlError(
    "unknown_workflow",
    `Workflow "${name}" is not among the \`workflows\` of this test engine. Add it: testEngine({ workflows: [${name}, …] }).`,
    { fields: { workflow: name } },
  );
}

/** What a script or a test does with an engine, over the engine's own methods. */
export function handleOf(
  pawl: Pawl,
  time: ClientTime,
  driver: Pick<Driver, "drive">,
): Omit<TestEngine, "store" | "clock" | "close"> {
  const watched = <O>(run: Run<O>): Run<O> => ({
    id: run.id,
    result: () => driver.drive(run.result(), () => whyParked(run)),
    status: () => run.status(),
    signal: (name, payload, how) => run.signal(name, payload, how),
    cancel: (how) => driver.drive(run.cancel(how)),
    journal: () => run.journal(),
    effects: () => run.effects(),
    document: () => run.document(),
    events: () => run.events(),
    stream: (how) => driven(run.stream(how)),
  });
  /** Whoever waits for what comes next lets time pass. */
  const driven = <T>(events: AsyncIterable<T>): AsyncIterable<T> => ({
    async *[Symbol.asyncIterator]() {
      const all = events[Symbol.asyncIterator]();
      try {
        for (;;) {
          const { done, value } = await driver.drive(all.next());
          if (done === true) return;
          yield value;
        }
      } finally {
        await all.return?.();
      }
    },
  });
  return {
    start: async (workflow, ...args) => watched(await pawl.start(workflow, ...args)),
    run: async (workflow, ...args) => watched(await pawl.start(workflow, ...args)).result(),
    get: (id) => watched(pawl.get(id)),
    signal: (id, name, payload, how) => pawl.signal(id, name, payload, how),
    cancel: (id, how) => driver.drive(pawl.cancel(id, how)),
    fork: async (id, how) => watched(await driver.drive(pawl.fork(id, how))),
    resolve: (id, choice) => driver.drive(pawl.resolve(id, choice)),
    report: (id, step, report) => pawl.report(id, step, report),
    approvals: pawl.approvals,
    callbacks: pawl.callbacks,
    decide: async (id, name, decision) => {
      let approval: string | null = null;
      const isAsked = async () => {
        approval = await askedFor(pawl, id, name);
        return approval !== null;
      };
      await driver.drive(time.until(isAsked));
      await pawl.approvals.decide(approval ?? `"${name}" of run ${id}`, decision);
    },
    settle: () => driver.drive(time.settled()),
    advance: (ms) => driver.drive(time.advance(toMs(ms, "time"))),
    until: (condition) => driver.drive(time.until(condition)),
  };
}

/** What a test is told that waits for a run about which somebody has to decide first; `null`: this one is not parked. */
async function whyParked(run: Run): Promise<PawlError | null> {
  const { parked, workflow } = await run.status();
  if (parked === undefined) return null;
  const { reason, message, choices } = parked;
  const next = `Decide about it with engine.resolve("${run.id}", choice), and wait for its result after that.`;
  return new PawlError("run_parked", `Run ${run.id} of "${workflow}" is parked (${reason}). ${message} ${next}`, {
    fields: { run: run.id, reason, choices },
  });
}

/** The id of the last approval of this name that a run has asked for. */
async function askedFor(pawl: Pawl, run: string, name: string): Promise<string | null> {
  const asked = (await pawl.get(run).journal()).filter(({ type }) => type === "approval.requested");
  const requests = asked.map(({ payload }) => payload as ApprovalRequested);
  return requests.findLast((one) => one.name === name)?.id ?? null;
}

/** So often nothing was left that could happen: whoever is about to do something has had occasion to. */
const IDLE_TIMES = 3;

interface Waiting {
  /** Why there is no use in waiting if nothing happens by itself any more; `null`: none is known. */
  whyNot(): Promise<PawlError | null>;
  giveUp(error: PawlError): void;
}

/** Moves time while anybody waits for something that may need it. */
export class Driver {
  readonly #time: VirtualTime;
  readonly #stillness: Stillness;
  readonly #waiting = new Set<Waiting>();
  #isDriving = false;
  /** How often nothing was left since somebody has begun or ended to wait. */
  #idle = 0;

  constructor(time: VirtualTime, stillness: Stillness) {
    this.#time = time;
    this.#stillness = stillness;
  }

  async drive<T>(promise: Promise<T>, whyNot: Waiting["whyNot"] = async () => null): Promise<T> {
    let giveUp: Waiting["giveUp"] = () => {};
    const givenUp = new Promise<never>((_, reject) => {
      giveUp = reject;
    });
    const waiting = { whyNot, giveUp };
    this.#waiting.add(waiting);
    this.#idle = 0;
    void this.#go();
    try {
      return await Promise.race([promise, givenUp]);
    } finally {
      this.#waiting.delete(waiting);
      this.#idle = 0;
    }
  }

  async #go(): Promise<void> {
    if (this.#isDriving) return;
    this.#isDriving = true;
    while (this.#waiting.size > 0) {
      await nextRound();
      if (this.#waiting.size === 0 || !this.#stillness.isStill()) continue;
      if (!(await this.#time.step()) && ++this.#idle % IDLE_TIMES === 0) await this.#giveUp();
    }
    this.#isDriving = false;
  }

  async #giveUp(): Promise<void> {
    for (const { whyNot, giveUp } of this.#waiting) {
      const error = await whyNot().catch(() => null);
      if (error !== null) giveUp(error);
    }
  }
}

async function closeChecked(pawl: Pawl, store: Store): Promise<void> {
  await pawl.close({ drain: 0 });
  const orphans = await store.orphans();
  if (orphans.length === 0) return;
  throw new PawlError(
    "illegal_transition",
    `${orphans.length} runs were left with nothing that would ever wake them: ${orphans.map(({ run, why }) => `${run} (${why})`).join(", ")}. Please report this.`,
    { fields: { runs: orphans.map(({ run }) => run) } },
  );
}
