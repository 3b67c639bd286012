// The context a body sees
// Turns what user code asks for into calls of the pass. It checks arguments and assigns keys; the pass does the rest.

import { toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import type { SeededRandom } from "../base/random.ts";
import type { Approved, ApproveOptions } from "./approval.ts";
import { BodyApprovals } from "./body-approvals.ts";
import { amountsOf, budgetPlan } from "./budget.ts";
import { ChildCall, SignalCall, StepCall, type StepPolicy, TimerCall, TransactionCall } from "./call.ts";
import type { Callback } from "./callback.ts";
import { callbackOf, newCallbackCall } from "./callbacks.ts";
import type {
  CallOptions,
  Context,
  Cost,
  Log,
  MapOptions,
  RunFacts,
  StepInfo,
  StepOptions,
  UndoableStepOptions,
  WaitOptions,
} from "./context.ts";
import { encodePayload } from "./draft.ts";
import { assertDry } from "./dry.ts";
import { type EffectOptions, type EffectSpec, type NeededApproval, planOf, recoveryOf } from "./effect.ts";
import { cancelError } from "./endings.ts";
import { needsOf } from "./flow-control.ts";
import { assertInOrder } from "./foreign-calls.ts";
import type { Frame } from "./host.ts";
import { childId } from "./issue.ts";
import type { CallType, Uses } from "./journal.ts";
import { KeyScope } from "./key-scope.ts";
import { STEP_TIMEOUTS_MS } from "./limits.ts";
import { mapItems } from "./map-items.ts";
import { Streaks } from "./no-progress.ts";
import type { Pass } from "./pass.ts";
import { type Duration, retryPolicy } from "./retry.ts";
import { type StandardSchema, validateNow } from "./schema.ts";
import { slotOf } from "./slot-run.ts";
import type { Isolation, Sql, TransactionOptions } from "./sql.ts";
import { assertFunction } from "./transaction-function.ts";
import { EffectCall, type Undo, UndoableCall } from "./undoable-call.ts";
import { waitSpec } from "./wait-spec.ts";
import type { Workflow } from "./workflow.ts";

const LAST_DATE_MS = 8.64e15;

type AnyFunction = (...args: readonly unknown[]) => unknown;

export class BodyContext implements Context {
  readonly #pass: Pass;
  #run: RunFacts | null = null;
  #log: Log | null = null;
  #approvals: BodyApprovals | null = null;
  #streaks: Streaks | null = null;

  constructor(pass: Pass) {
    this.#pass = pass;
  }

  get run(): RunFacts {
    this.#run ??= factsOf(this.#pass);
    return this.#run;
  }

  get log(): Log {
    this.#log ??= silentInReplay(this.#pass);
    return this.#log;
  }

  get signal(): AbortSignal {
    return this.#pass.signal;
  }

  step<T>(nameOrFn: string | AnyFunction, ...rest: readonly unknown[]): Promise<T> {
    if (typeof nameOrFn === "function") return this.#stepWithArguments(nameOrFn, rest) as Promise<T>;
    const [fn, options] = rest;
    if (typeof fn !== "function") {
      throw new PawlError(
        "invalid_argument",
        `ctx.step("${nameOrFn}") needs a function as second argument: ctx.step("${nameOrFn}", async () => …).`,
      );
    }
    const given = (options ?? {}) as StepOptions;
    const input = given.input === undefined ? null : { digest: this.#digest(given.input, `input of ${nameOrFn}`) };
    return this.#step(nameOrFn, fn as (info: StepInfo) => unknown, given, input) as Promise<T>;
  }

  #digest(value: unknown, what: string): string {
    return this.#pass.ports.host.digest(encodePayload(value, what));
  }

  #stepWithArguments(fn: AnyFunction, args: readonly unknown[]): Promise<unknown> {
    const name = fn.name.replace(/^bound /, "");
    if (name === "") {
      throw new PawlError(
        "invalid_argument",
        "ctx.step(fn, ...args) needs a named function. Name it, or use ctx.step(name, () => fn(...args)).",
      );
    }
    const input = { value: args, digest: this.#digest(args, `arguments of ${name}`) };
    return this.#step(name, () => fn(...args), {}, input);
  }

  #step(
    name: string,
    fn: (info: StepInfo) => unknown,
    options: StepOptions,
    input: StepCall["input"],
  ): Promise<unknown> {
    const { undo, recovery } = options as Partial<UndoableStepOptions<unknown>>;
    if (undo !== undefined || recovery === "compensate") assertUndo(name, undo);
    const key = this.#key("step.started", name, options.key);
    const policy = this.#policy(name, options);
    const { seed } = this.#pass;
    const call =
      undo === undefined
        ? new StepCall(key, name, fn, policy, input, seed)
        : new UndoableCall(key, name, fn, policy, input, seed, undo);
    const issue = () => (call instanceof UndoableCall ? this.#undoable(call) : this.#pass.issue(call));
    if (options.noProgress === undefined) return issue();
    this.#streaks ??= new Streaks(this.#pass.id, this.#pass.ports.host);
    return this.#streaks.watch(this.#scope().prefix + name, options.noProgress, issue);
  }

  #undoable(call: UndoableCall): Promise<unknown> {
    if (call.undo !== null) this.#pass.body.remember(call);
    return this.#pass.issue(call);
  }

  effect<T>(name: string, spec: EffectSpec<T>, options: EffectOptions = {}): Promise<T> {
    this.#assertInBody("effect");
    const { seed, replay } = this.#pass;
    const plan = planOf(name, spec as EffectSpec<unknown>, seed, replay.lenient !== null);
    const recovery = recoveryOf(name, plan, spec as EffectSpec<unknown>, options);
    const dry = spec.dry ?? (plan.class === "read" ? "run" : undefined);
    const how = { kind: "api" as const, ...options, recovery: "rerun" as const, ...(dry !== undefined && { dry }) };
    const policy = { ...this.#policy(name, how), recovery };
    const key = this.#key("step.started", name);
    // A call that is refused for another reason uses no approval up.
    const assertCovered = spec.needs === undefined ? null : this.#useApproval(name, key, spec.needs);
    const undo = spec.undo === undefined ? null : (spec.undo.bind(spec) as Undo);
    const run = (info: StepInfo) => {
      assertCovered?.();
      return spec.do(info);
    };
    return this.#undoable(new EffectCall(key, name, run, policy, seed, undo, plan)) as Promise<T>;
  }

  /** Without an approval that fits, the call was never made: its key is free. */
  #useApproval(name: string, key: string, needs: NeededApproval): () => void {
    try {
      return this.#ownApprovals().use(name, key, needs);
    } catch (error) {
      this.#scope().giveBack("step.started", name);
      throw error;
    }
  }

  #policy(name: string, { kind, timeout, retry, recovery, spend, breaker, dry: said }: StepOptions): StepPolicy {
    const { definition } = this.#pass.workflow;
    assertDry(`Step "${name}"`, said);
    const dry = said ?? (kind === "model" ? "run" : undefined);
    const isGuarded = spend !== undefined || breaker !== undefined || dry !== undefined;
    if (kind === undefined && timeout === undefined && retry === undefined && recovery === undefined && !isGuarded) {
      return definition.stepPolicy;
    }
    if (breaker !== undefined) assertName("breaker", breaker);
    return {
      timeoutMs:
        timeout === undefined
          ? (definition.timeoutMs ?? STEP_TIMEOUTS_MS[kind ?? "code"])
          : toMs(timeout, `timeout of step "${name}"`),
      retry: retryPolicy(retry, definition.stepPolicy.retry),
      recovery: recovery ?? "rerun",
      ...(spend !== undefined && { spend: amountsOf(spend, `spend of step "${name}"`) }),
      ...(breaker !== undefined && { breaker }),
      ...(dry !== undefined && { dry }),
    };
  }

  transaction<T>(
    name: string,
    fn: (sql: Sql, info: StepInfo) => T | Promise<T>,
    options: TransactionOptions = {},
  ): Promise<T> {
    assertFunction(name, fn);
    const { key: explicit, timeout, retry, dry } = options;
    const isolation = isolationOf(options.isolation);
    const key = this.#key("step.started", name, explicit);
    const policy = this.#policy(name, {
      kind: "database",
      ...(timeout !== undefined && { timeout }),
      ...(retry !== undefined && { retry }),
      ...(dry !== undefined && { dry }),
    });
    return this.#pass.issue(new TransactionCall(key, name, fn, policy, isolation, this.#pass.seed)) as Promise<T>;
  }

  sleep(duration: Duration): Promise<void> {
    return this.#sleep({ afterMs: toMs(duration, "sleep") });
  }

  sleepUntil(time: Date | number): Promise<void> {
    const due = typeof time === "string" ? Number.NaN : Number(time);
    // Times end with the Date type; what lies behind it is a mistake of units.
    if (!(Math.abs(due) <= LAST_DATE_MS)) {
      const message = "ctx.sleepUntil needs a valid Date or a time in milliseconds since 1970.";
      return Promise.reject(new PawlError("invalid_argument", message, { fields: { time } }));
    }
    return this.#sleep({ due: Math.ceil(due) });
  }

  #sleep(time: ConstructorParameters<typeof TimerCall>[1]): Promise<void> {
    return this.#pass.issue(new TimerCall(this.#key("timer.set", "sleep"), time)) as Promise<void>;
  }

  waitFor<T>(signal: string, options: WaitOptions<unknown, StandardSchema> = {}): Promise<T> {
    const spec = waitSpec("waitFor", signal, options);
    const key = this.#key("signal.awaited", signal);
    return this.#pass.issue(new SignalCall(key, spec)) as Promise<T>;
  }

  callback<T>(name: string, options: WaitOptions<unknown, StandardSchema> = {}): Callback<T> {
    const spec = waitSpec("callback", name, options);
    const call = newCallbackCall(this.#pass, this.#key("callback.opened", name), spec);
    return callbackOf(this.#pass, call, this.#pass.issue(call));
  }

  approve(name: string, options: ApproveOptions): Promise<Approved> {
    const take = () => this.#key("approval.requested", name);
    return this.#ownApprovals().ask(name, options, { take, giveBack: (type) => this.#scope().giveBack(type, name) });
  }

  call<O>(workflow: Workflow<never, O>, input?: unknown, options: CallOptions = {}): Promise<O> {
    return this.#child(workflow as Workflow, input, options, false).settled as Promise<O>;
  }

  async spawn(workflow: Workflow<never>, input?: unknown, options: CallOptions = {}): Promise<{ readonly id: string }> {
    this.#assertNotCancelled();
    return { id: this.#child(workflow as Workflow, input, options, true).id };
  }

  #child(
    workflow: Workflow,
    input: unknown,
    options: CallOptions,
    detached: boolean,
  ): { id: string; settled: Promise<unknown> } {
    if (typeof workflow?.definition?.handler !== "function") {
      throw new PawlError(
        "invalid_argument",
        "ctx.call and ctx.spawn take a workflow made by workflow(…) as first argument.",
      );
    }
    checkCallOptions(options);
    const { host } = this.#pass.ports;
    const digest = host.digest(encodePayload(input, `input of child "${workflow.name}"`));
    const key = this.#key("child.started", workflow.name, options.key);
    const child = childId(host, this.#pass.seed, this.#pass.generation, key);
    const call = new ChildCall(key, child, input, { workflow, options, digest, detached });
    this.#checkInput(call);
    return { settled: this.#pass.issue(call), id: call.child };
  }

  /** Asks the child's schema and limits, unless the call is in the journal: they were asked then (P7). A call that they refuse was never made. */
  #checkInput(call: ChildCall): void {
    const { workflow, options } = call.spec;
    const { input, flow } = workflow.definition;
    if ((input === undefined && flow === null) || this.#pass.replay.knows(call)) return;
    try {
      call.input = validateNow(input, call.input, `The input of workflow "${workflow.name}"`);
      call.needs = needsOf(workflow, call.input);
    } catch (error) {
      this.#scope().giveBack(call.type, options.key ?? workflow.name);
      throw error;
    }
  }

  map<T, R>(items: readonly T[], fn: (item: T, index: number) => Promise<R>, options?: MapOptions): Promise<R[]>;
  map<T, R>(
    items: readonly T[],
    fn: (item: T, index: number) => Promise<R>,
    options: MapOptions & { readonly partial: true },
  ): Promise<PromiseSettledResult<R>[]>;
  map<T, R>(
    items: readonly T[],
    fn: (item: T, index: number) => Promise<R>,
    options: MapOptions & { readonly partial?: true } = {},
  ): Promise<R[] | PromiseSettledResult<R>[]> {
    this.#assertPlaced("map");
    const scope = this.#scope();
    const prefix = `${scope.next("map", "map", "map")}/`;
    const { host } = this.#pass.ports;
    const run = (item: T, index: number) => {
      const frame: Frame = { ...this.#pass.frame, scope: new KeyScope(`${prefix}${index}/`) };
      return host.enter(frame, async () => fn(item, index));
    };
    return mapItems(items, run, options);
  }

  now(): number {
    return this.#stepFrame() === undefined ? this.#pass.now : this.#pass.ports.clock.now();
  }

  random(): number {
    return this.#stepFrame()?.random() ?? this.#chance("random").next();
  }

  uuid(): string {
    return this.#stepFrame()?.uuid() ?? this.#chance("uuid").uuid();
  }

  #chance(draw: string): SeededRandom {
    assertInOrder(this.#pass, `ctx.${draw}`);
    return this.#pass.chance;
  }

  set(key: string, value: unknown): void {
    this.#assertPlaced("set");
    assertName("state key", key);
    this.#pass.notes.set(key, value);
  }

  get<T>(key: string): T | undefined {
    return this.#pass.notes.get(key) as T | undefined;
  }

  progress(value: unknown): void {
    this.#pass.progress(value);
  }

  cost(amounts: Cost): void {
    this.#assertPlaced("cost");
    for (const [unit, amount] of Object.entries(amounts)) {
      if (typeof amount !== "number" || !Number.isFinite(amount)) {
        throw new PawlError(
          "invalid_argument",
          `ctx.cost: ${unit} is ${String(amount)}. Give finite numbers, such as { usd: 0.02, tokens: 1200 }.`,
          { fields: { unit } },
        );
      }
    }
    this.#pass.notes.addCost(amounts);
  }

  note(text: string): void {
    this.#assertPlaced("note");
    this.#pass.notes.note(String(text));
  }

  async continueAs(input: unknown): Promise<never> {
    this.#assertInBody("continueAs");
    this.#assertNotCancelled();
    const { name, definition } = this.#pass.workflow;
    this.#pass.continueAs(validateNow(definition.input, input, `The input of workflow "${name}"`));
    return new Promise<never>(() => {});
  }

  patched(id: string): boolean {
    this.#assertPlaced("patched");
    assertName("patch id", id);
    return this.#pass.notes.patched(id);
  }

  #stepFrame() {
    const frame = this.#pass.ports.host.frame();
    return frame?.pass === this.#pass ? frame.step : undefined;
  }

  #scope(): KeyScope {
    const frame = this.#pass.ports.host.frame();
    return frame?.pass === this.#pass ? frame.scope : this.#pass.frame.scope;
  }

  #ownApprovals(): BodyApprovals {
    this.#approvals ??= new BodyApprovals(this.#pass);
    return this.#approvals;
  }

  /** After a cancel nothing new begins, whatever the body tries (P19). */
  #assertNotCancelled(): void {
    const { id, cancelling } = this.#pass;
    if (cancelling !== null) throw cancelError(id, cancelling);
  }

  /** Where the order of what the body does can be replayed. */
  #assertPlaced(what: string): void {
    this.#assertInBody(what);
    assertInOrder(this.#pass, `ctx.${what}`);
  }

  #assertInBody(what: string): void {
    const step = this.#stepFrame();
    if (step === undefined) return;
    throw new PawlError(
      "call_in_step",
      `ctx.${what} was called inside step "${step.call.key}" of run ${this.#pass.id}. Call it in the workflow's body, before or after the step.`,
      {
        fields: { run: this.#pass.id, step: step.call.key },
      },
    );
  }

  /** Assigned at issue: the n-th use of a name is `name#n`; an explicit key may be used once (P6). */
  #key(type: CallType, name: string, explicit?: string): string {
    this.#assertInBody(CALL_NAMES[type]);
    if (explicit === undefined) return this.#scope().next(type, name, NAME_OF[type]);
    const key = this.#scope().choose(type, explicit);
    if (key !== null) return key;
    throw new PawlError(
      "key_reused",
      `The key "${explicit}" was used before in run ${this.#pass.id}. Give each call a key of its own.`,
      { fields: { run: this.#pass.id, key: explicit } },
    );
  }
}

function assertUndo(name: string, undo: unknown): void {
  if (typeof undo === "function") return;
  const message = `ctx.step("${name}"): \`undo\` is ${typeof undo}. Give a function that takes the step back; recovery "compensate" needs one.`;
  throw new PawlError("invalid_argument", message, { fields: { step: name } });
}

const ISOLATIONS: readonly Isolation[] = ["read committed", "repeatable read", "serializable"];

function isolationOf(given: Isolation = "read committed"): Isolation {
  if (ISOLATIONS.includes(given)) return given;
  const message = `isolation is "${given}". Give one of ${ISOLATIONS.map((one) => `"${one}"`).join(", ")}.`;
  throw new PawlError("invalid_argument", message, { fields: { isolation: given } });
}

function checkCallOptions({ tags, priority, budget }: CallOptions): void {
  budgetPlan(budget, "the child");
  for (const tag of tags ?? []) assertName("tag", tag);
  if (priority === undefined || Number.isInteger(priority)) return;
  throw new PawlError("invalid_argument", `priority is ${priority}. Give a whole number; higher goes first.`, {
    fields: { priority },
  });
}

const CALL_NAMES: Readonly<Record<CallType, string>> = {
  "step.started": "step",
  "effect.planned": "effect",
  "timer.set": "sleep",
  "signal.awaited": "waitFor",
  "child.started": "call",
  "approval.requested": "approve",
  "callback.opened": "callback",
};

/** What a name names, for the error about one that is none. */
const NAME_OF: Readonly<Record<CallType, string>> = {
  "step.started": "name of ctx.step",
  "effect.planned": "name of ctx.effect",
  "timer.set": "name of ctx.sleep",
  "signal.awaited": "name of ctx.waitFor",
  "child.started": "name of ctx.call",
  "approval.requested": "name of ctx.approve",
  "callback.opened": "name of ctx.callback",
};

const NO_USES: Uses = {};

function factsOf(pass: Pass): RunFacts {
  const { row } = pass;
  const schedule = slotOf(row.tags);
  const facts = {
    id: row.id,
    workflow: row.workflow,
    version: pass.workflow.version,
    traceId: row.traceId,
    attempt: Math.max(1, row.claims),
    tags: row.tags,
    ...(row.key === null ? {} : { key: row.key }),
    ...(row.deadline === null ? {} : { deadline: new Date(row.deadline) }),
    ...(schedule === null ? {} : { schedule }),
    ...(pass.pins.adopted === undefined ? {} : { adopted: pass.pins.adopted }),
    uses: pass.pins.uses ?? NO_USES,
  };
  // A matter of the store, not of the run: what is made of all its facts must not depend on it.
  const outputs = pass.ports.files?.outputs(row.id);
  return outputs === undefined ? facts : Object.defineProperty(facts, "outputs", { value: outputs });
}

/** Log lines appear once, and only when what led to them is durable (P13). */
function silentInReplay(pass: Pass): Log {
  const { host } = pass.ports;
  const log = pass.redactor === null ? pass.ports.log : pass.redactor.log(pass.ports.log);
  const write = (level: keyof Log) => (message: string, fields?: Readonly<Record<string, unknown>>) => {
    pass.whenDurable(() => host.enter(undefined, () => log[level](message, { run: pass.id, ...fields })));
  };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}
