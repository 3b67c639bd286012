import { cancelText } from "../base/cancel-text.ts";
import { type Duration, toMs } from "../base/duration.ts";
import type { Codec } from "../base/envelope.ts";
import { PawlError } from "../base/errors.ts";
import { assertName, createIds, type Ids } from "../base/ids.ts";
import type { Log } from "../core/context.ts";
import { encodePayload } from "../core/draft.ts";
import { ENDS } from "../core/journal.ts";
import { DEFAULTS } from "../core/limits.ts";
import { assertNotAlerts } from "../core/own-workflows.ts";
import { Redactors } from "../core/redactor.ts";
import type { Store } from "../core/store.ts";
import { isTerminal, publicStatus } from "../core/transition.ts";
import type { PawlEvent } from "../core/trigger.ts";
import type { Workflow } from "../core/workflow.ts";
import { factsOf } from "../core/workflow-facts.ts";
import type { Metrics } from "../observe/metrics.ts";
import { Registry } from "../worker/registry.ts";
import { Worker } from "../worker/worker.ts";
import { type Advanced, type AdvanceOptions, advanceRun } from "./advance.ts";
import { alertRules } from "./alert-options.ts";
import { Alerts } from "./alerts.ts";
import { ApprovalLinks } from "./approval-links.ts";
import { Approvals } from "./approvals.ts";
import { callbackSecrets } from "./callback-secrets.ts";
import { Callbacks } from "./callbacks.ts";
import { reasonOf } from "./cancel-reason.ts";
import { Changes } from "./changes.ts";
import { codecOf } from "./codec-of.ts";
import { harmless } from "./console-log.ts";
import { assertSameCancel } from "./decision.ts";
import { Documents } from "./documents.ts";
import { type Emitted, Events } from "./events.ts";
import type { ForkOptions } from "./fork-effects.ts";
import { forkRun, retryRun } from "./fork-run.ts";
import { assertImported, type ImportOptions, readImport } from "./import.ts";
import { Keyring } from "./keyring.ts";
import { type Machine, machineOf } from "./machine.ts";
import { reportStep, type StepReport } from "./manual.ts";
import { type MetricsQuery, readMetrics } from "./metrics.ts";
import { withLinks } from "./notification-links.ts";
import { Observation } from "./observation.ts";
import { DEFAULT_STORE, storeOf } from "./open-store.ts";
import { Operations } from "./operations.ts";
import { assertReceiver, assertSignalId, assertSignalName, type SendPorts } from "./own-signals.ts";
import { withOwn } from "./own-workflows.ts";
import type { PawlOptions } from "./pawl-options.ts";
import { type Choice, resolveRun } from "./resolve.ts";
import { type RewriteOptions, rewriteRun } from "./rewrite.ts";
import {
  type CancelOptions,
  type CancelOutcome,
  type Run,
  RunHandle,
  type RunSource,
  type RunSummary,
  resultOf,
  rowOf,
  runHasEnded,
  runNotFound,
  type SignalOptions,
} from "./run.ts";
import { listRuns, type Page, type RunQuery } from "./run-list.ts";
import { type ScheduleOptions, type ScheduleSummary, Schedules } from "./schedules.ts";
import { sealedStore } from "./sealed-store.ts";
import { secretSource } from "./secrets.ts";
import { type StartOptions, type StartPorts, startRun, startSpace } from "./start.ts";
import { onStopSignals } from "./stop-signals.ts";
import { isCovered } from "./stranded.ts";
import { examineWorkers, type WorkerStatus } from "./worker-health.ts";
import { workerOptions } from "./worker-options.ts";

type StartInput<I> = undefined extends I ? [input?: I, options?: StartOptions] : [input: I, options?: StartOptions];

type InputOf<I> = undefined extends I ? { readonly input?: NoInfer<I> } : { readonly input: NoInfer<I> };

/** The engine: starts runs, works on them, and tells about them. */
export class Pawl {
  readonly store: Store;
  /** Questions to people: `list` them, `get` one, `decide`. */
  readonly approvals: Approvals;
  /** Links that let one person decide about one approval: `create`, `open`, `decide`, `revoke`, `list`. */
  readonly links: ApprovalLinks;
  /** Answers of outside systems: `answer` a token of `ctx.callback`, `fail` it, or `revoke` it by its id. */
  readonly callbacks: Callbacks;
  /** Documents of a `file:` store that somebody has edited or that are damaged: `held`, `accept`, `rebuild`, `fresh`. */
  readonly documents: Documents;
  /** For operators: `count`, `bulk`, `hold`, `release`, `purge`, and the `audit` log. */
  readonly operations: Operations;
  /** What somebody should look at: `list` it, `acknowledge`, `resolve`, or have it looked for now with `check`. */
  readonly alerts: Alerts;
  readonly #observation: Observation;
  readonly #registry: Registry;
  readonly #codec: Codec;
  readonly #redaction: Redactors;
  readonly #log: Log;
  readonly #machine: Machine;
  readonly #ids: Ids;
  readonly #changes: Changes;
  readonly #worker: Worker;
  readonly #ports: StartPorts;
  readonly #source: RunSource;
  readonly #schedules: Schedules;
  readonly #events: Events;
  readonly #undo: (() => void)[] = [];
  #closing: Promise<void> | null = null;

  /** Opens a store, by default `.pawl/pawl.db`, and with `workflows` begins to work on their runs. */
  static async open(url?: string | Store | PawlOptions, options: PawlOptions = {}): Promise<Pawl> {
    if (typeof url === "object" && !isStore(url)) return Pawl.open(undefined, url);
    const keyring =
      options.encryption === undefined ? null : new Keyring(options.encryption, machineOf(options).randomBytes);
    const plain = isStore(url) ? url : storeOf(url ?? DEFAULT_STORE, options);
    const store = keyring === null ? plain : sealedStore(plain, keyring);
    const pawl = new Pawl(store, options, keyring);
    await store.open();
    try {
      await pawl.#begin(options);
    } catch (error) {
      await pawl.close({ drain: 0 });
      throw error;
    }
    return pawl;
  }

  private constructor(store: Store, options: PawlOptions, keyring: Keyring | null) {
    this.store = store;
    const rules = alertRules(options.alerts);
    const complete = withLinks(options.publicUrl, () => this.links);
    this.#registry = new Registry(withOwn(options, { complete, hasAlerts: rules !== null }));
    const sources = secretSource(options.secrets);
    this.#redaction = new Redactors(options.redact, sources);
    this.#machine = machineOf(options);
    const log = harmless(options.logger ?? this.#machine.log);
    this.#log = this.#redaction.common?.log(log) ?? log;
    this.#codec = codecOf(options, keyring, this.#redaction.common);
    const { randomBytes } = this.#machine;
    const secrets = callbackSecrets(options.secret);
    this.#ids = createIds({ now: () => store.clock.now(), randomBytes });
    const pollMs = options.poll === undefined ? DEFAULTS.pollMs : toMs(options.poll, "poll");
    this.#changes = new Changes(store.leaseClock, pollMs);
    this.#observation = new Observation(options, {
      store,
      codec: this.#codec,
      host: this.#machine.host,
      ids: this.#ids,
      log: this.#log,
      registry: this.#registry,
      rules,
      sent: () => this.#worker.hint(),
    });
    const host = this.#observation.host;
    const own = {
      registry: this.#registry,
      codec: this.#codec,
      log: this.#log,
      host,
      pollMs,
      callbackSecrets: secrets,
      redaction: this.#redaction,
      secrets: sources,
    };
    const ids = { alerts: rules, newId: () => this.#ids.next() };
    this.#worker = new Worker(store, workerOptions(options, this.#machine, { ...own, ...ids }), {
      ...this.#observation.events,
      changed: (run) => this.#changes.tell(run),
      left: (run, end) => {
        this.#changes.tellLeft(run, end === null ? null : { ok: end.state === "succeeded", text: end.text });
      },
    });
    this.#ports = {
      store,
      host,
      codec: this.#codec,
      ids: this.#ids,
      registry: this.#registry,
      worker: this.#worker,
      duplicate: (run) => this.#observation.duplicate(run),
      redaction: this.#redaction,
    };
    this.#source = {
      store,
      codec: this.#codec,
      changes: this.#changes,
      signal: (id, name, payload, how) => this.signal(id, name, payload, how),
      cancel: (id, how) => this.cancel(id, how),
      isHere: (id) => this.#worker.holds(id),
      assertOpen: () => this.#assertOpen(),
    };
    const outside = {
      store,
      codec: this.#codec,
      assertOpen: () => this.#assertOpen(),
      sent: () => this.#worker.hint(),
    };
    this.approvals = new Approvals(outside);
    this.callbacks = new Callbacks({ ...outside, host, secrets });
    this.alerts = new Alerts(this.#observation, outside);
    this.documents = new Documents({ ...this.#ports, assertOpen: () => this.#assertOpen() });
    this.operations = new Operations({
      ...outside,
      log: this.#log,
      newId: () => this.#ids.next(),
      retryOnce: (id) => retryRun(this.#ports, id, { isOnly: true }),
    });
    this.links = new ApprovalLinks({
      ...this.#ports,
      approvals: this.approvals,
      cancel: (run, reason) => this.cancel(run, { reason }),
      assertOpen: () => this.#assertOpen(),
    });
    this.#events = new Events(this.#ports, options.triggers);
    const cancel = (run: string, reason: string) => this.cancel(run, { reason });
    this.#schedules = new Schedules({ ...this.#ports, log: this.#log, cancel });
  }

  async #begin(options: PawlOptions): Promise<void> {
    this.#undo.push(this.store.hints(({ runs }) => this.#changes.tellHinted(runs)));
    if (this.#registry.handles.length === 0) return;
    this.#undo.push(this.#machine.protect(this.#log));
    if (options.handleSignals ?? true) this.#undo.push(onStopSignals(() => this.close()));
    await this.#worker.start();
    const facts = factsOf(options.workflows as readonly Workflow[]);
    if (facts.length > 0) await this.store.describe(facts);
    this.#observation.start();
    void this.#tellOfFaults();
  }

  /** What is wrong with the store is told at the start, not when something was lost by it (P36). */
  async #tellOfFaults(): Promise<void> {
    try {
      for (const fault of (await this.store.inspect({ quick: true })).faults) this.#log.warn(fault);
    } catch {
      // Whoever needs the store next finds out by itself.
    }
  }

  /** Accepts a run, durably. With `key` or `id` a repeated start gives the same run. */
  async start<I, O>(workflow: Workflow<I, O>, ...args: StartInput<I>): Promise<Run<O>>;
  async start(workflow: string, input?: unknown, options?: StartOptions): Promise<Run>;
  async start(workflow: Workflow | string, input?: unknown, options: StartOptions = {}): Promise<Run> {
    this.#assertOpen();
    return new RunHandle(await startRun(this.#ports, workflow, input, options), this.#source);
  }

  /** Starts a run and waits for its result. */
  run<I, O>(workflow: Workflow<I, O>, ...[input, options]: StartInput<I>): Promise<O> {
    const start = () => {
      this.#assertOpen();
      return startRun(this.#ports, workflow as unknown as Workflow, input, options ?? {});
    };
    return resultOf<O>(start, this.#source);
  }

  get<O = unknown>(id: string): Run<O> {
    assertName("run id", id);
    return new RunHandle(id, this.#source);
  }

  /** The run that was started with this key; `null` if there is none, or none any more. */
  async find<I, O>(workflow: Workflow<I, O> | string, key: string): Promise<Run<O> | null> {
    this.#assertOpen();
    const name = typeof workflow === "string" ? workflow : workflow.name;
    const holder = await this.store.key(startSpace(name), key);
    return holder === null ? null : this.get(holder.run);
  }

  /** Newest first. A cursor neither skips nor repeats runs that were there all along. */
  async list(query: RunQuery = {}): Promise<Page<RunSummary>> {
    this.#assertOpen();
    return listRuns(this.store, query);
  }

  /** Sends a durable message to a run. Delivered once, whether it waits for it yet or not. */
  async signal(id: string, name: string, payload?: unknown, options: SignalOptions = {}): Promise<void> {
    this.#assertOpen();
    assertName("run id", id);
    assertSignalName(name);
    const messageId = options.id ?? this.#ids.next();
    assertSignalId(messageId);
    await assertReceiver(this.store, id, name);
    const text = encodePayload(payload, `signal "${name}"`);
    const clean = this.#redaction.common?.value(text) ?? text;
    const data = this.#codec.seal(clean, { run: id, seq: -1, field: `inbox:${messageId}` });
    const delivery = await this.store.deliver({ to: id, id: messageId, kind: "signal", name, data });
    if (delivery === "missing") throw runNotFound(id);
    if (delivery === "ended") throw runHasEnded(id, `signal "${name}"`);
    if (delivery === "duplicate") this.#observation.duplicate(id);
    this.#worker.hint();
  }

  /** Starts a run of each workflow that has a trigger for this event. The same event again starts nothing. */
  async emit(event: PawlEvent): Promise<Emitted> {
    this.#assertOpen();
    return this.#events.emit(event);
  }

  /** Stops a run. Resolves when that is recorded, or tells how it had ended before. */
  async cancel(id: string, options: CancelOptions = {}): Promise<CancelOutcome> {
    this.#assertOpen();
    assertName("run id", id);
    assertNotAlerts(id);
    const given = reasonOf(options);
    const reason = this.#redaction.common?.text(given) ?? given;
    const listener = this.#changes.listen(id);
    try {
      const delivery = await this.store.deliver({
        to: id,
        id: this.#ids.next(),
        kind: "cancel",
        name: "",
        data: cancelText({ reason, compensate: options.compensate === true }),
      });
      if (delivery === "missing") throw runNotFound(id);
      if (delivery === "duplicate") await assertSameCancel(this.#source, id, options.compensate);
      this.#worker.hint();
      for (let from = 0, needsBody = false; ; ) {
        const row = await rowOf(id, this.store);
        if (isTerminal(row.state)) return { outcome: publicStatus(row.state) as CancelOutcome["outcome"] };
        const entries = await this.store.journal(id, { from });
        // The row may have been read before the commit that the journal shows.
        const end = ENDS.find((type) => type === entries.at(-1)?.type);
        if (end !== undefined) return { outcome: end.slice("run.".length) as CancelOutcome["outcome"] };
        if (entries.some((entry) => entry.type === "run.cancelling")) return { outcome: "cancelling" };
        from += entries.length;
        // One that has not begun need not stand in line for its end.
        const isInLine = row.slot !== null && row.state === "accepted" && row.owner === null;
        const mayTry: boolean = !needsBody && (isInLine || !(await isCovered(this.store, row)));
        const ended: boolean | "bodied" = mayTry && (await this.#worker.cancelWithoutBody(id));
        if (ended === true) continue;
        needsBody ||= ended === "bodied";
        await listener.next({ polls: true });
        options.signal?.throwIfAborted();
        this.#assertOpen();
      }
    } finally {
      listener.stop();
    }
  }

  /** Starts a new run that inherits the journal up to the failure that ended this one; the start key moves along. */
  async retry(id: string): Promise<Run> {
    this.#assertOpen();
    return this.get((await retryRun(this.#ports, id)) as string);
  }

  /** Starts a new run that inherits the journal up to a step's key or an entry's position. */
  async fork(id: string, options: ForkOptions): Promise<Run> {
    this.#assertOpen();
    return this.get(await forkRun(this.#ports, id, options));
  }

  /** Decides about a parked run; `run.status()` lists the choices. */
  async resolve(id: string, choice: Choice): Promise<void> {
    this.#assertOpen();
    assertNotAlerts(id);
    await resolveRun({ ...this.#sending, starting: this.#ports }, id, choice);
  }

  /** Executes one phase of a run that was started with `advance`, or all that are left, and tells where it stands. Throws `phase_blocked` if one has failed. */
  async advance(id: string, options?: AdvanceOptions): Promise<Advanced> {
    this.#assertOpen();
    assertName("run id", id);
    return advanceRun(this.#sending, id, options);
  }

  /** Says that a step which is done outside was begun, is done or has failed. */
  async report(id: string, step: string, report: StepReport): Promise<void> {
    this.#assertOpen();
    assertName("run id", id);
    await reportStep(this.#sending, id, step, report);
  }

  /** Makes a state document a run, with its output files, and goes on where it stands. */
  async import<I>(document: unknown, options: ImportOptions<I>): Promise<{ run: Run; warnings: readonly string[] }> {
    this.#assertOpen();
    const { input, options: how, warnings } = await readImport(this.store, document, options as ImportOptions);
    const id = await startRun(this.#ports, options.workflow as unknown as Workflow, input, how);
    assertImported(how, id);
    return { run: this.get(id), warnings };
  }

  get #sending(): SendPorts {
    return { ...this.#source, sent: () => this.#worker.hint() };
  }

  /** Makes a run that nobody works on go on from another state, as a new generation: recorded, with who did it and why. */
  async rewrite(id: string, options: RewriteOptions): Promise<void> {
    this.#assertOpen();
    await rewriteRun(this.#ports, id, options);
  }

  /** Starts a run of a workflow at each slot, durably. The same definition again changes nothing, another one replaces it. */
  async schedule<I, O>(name: string, workflow: Workflow<I, O>, options: ScheduleOptions & InputOf<I>): Promise<void>;
  async schedule(name: string, workflow: string, options: ScheduleOptions): Promise<void>;
  async schedule(name: string, workflow: Workflow | string, options: ScheduleOptions): Promise<void> {
    this.#assertOpen();
    await this.#schedules.define(name, workflow, options);
  }

  /** Ends a schedule; false if there is none. Runs that it has started go on. */
  async unschedule(name: string): Promise<boolean> {
    this.#assertOpen();
    return this.#schedules.remove(name);
  }

  /** Stops a schedule for a while: slots that come meanwhile start nothing, later either. False if there is none. */
  async pauseSchedule(name: string): Promise<boolean> {
    this.#assertOpen();
    return this.#schedules.pause(name, true);
  }

  /** Goes on with the next slot of a paused schedule. False if there is none. */
  async resumeSchedule(name: string): Promise<boolean> {
    this.#assertOpen();
    return this.#schedules.pause(name, false);
  }

  /** All schedules of the store, by name. */
  async schedules(): Promise<ScheduleSummary[]> {
    this.#assertOpen();
    return this.#schedules.list();
  }

  /** Every worker of this store: what it can run, how many runs it holds, and how it is. */
  async workers(): Promise<WorkerStatus[]> {
    return examineWorkers(this.store, this.#machine.identity());
  }

  /** How the runs of this store have fared, each number with the runs behind it, and what this process has done. */
  metrics(query: MetricsQuery = {}): Promise<Metrics> {
    this.#assertOpen();
    return readMetrics(this.#observation, query);
  }

  /** Resolves when nothing runnable is left in this process: every run has ended or waits. */
  idle(): Promise<void> {
    return this.#worker.idle();
  }

  /** Lets running steps finish for a while, hands runs back, and closes the store. */
  close(options: { readonly drain?: Duration } = {}): Promise<void> {
    this.#closing ??= this.#close(options.drain === undefined ? DEFAULTS.drainMs : toMs(options.drain, "drain"));
    return this.#closing;
  }

  async #close(drainMs: number): Promise<void> {
    await this.#worker.stop(drainMs);
    await this.#observation.stop();
    for (const undo of this.#undo.splice(0)) undo();
    this.#changes.tellAll();
    await this.store.close();
  }

  #assertOpen(): void {
    if (this.#closing !== null)
      throw new PawlError("closed", "This Pawl was closed. Open a new one with Pawl.open(…).");
  }
}

function isStore(value: unknown): value is Store {
  return typeof value === "object" && value !== null && typeof (value as { commit?: unknown }).commit === "function";
}
