// A worker
// Holds the passes of this process and repeats what keeps them going: claim, mail, heartbeat, sweep. It decides nothing about a run:
// the pass does, the committer writes, the store applies.
//
//   W1. A run is in memory here only while this incarnation owns it in the store.
//   W2. Memory and store are compared with each heartbeat: what is owned and not held is loaded (P23).
//   W3. After an unknown outcome a pass lives on exactly if its run was moved and its head is what was acknowledged or the end of its
//       batch in flight (P17).
import type { Codec } from "../base/envelope.ts";
import { hasCode, messageOf } from "../base/errors.ts";
import { Alarms } from "../core/alarms.ts";
import type { AlertRules } from "../core/alert.ts";
import type { CallbackSecrets } from "../core/callback.ts";
import type { Log } from "../core/context.ts";
import type { Draft } from "../core/draft.ts";
import type { Host } from "../core/host.ts";
import type { Entry } from "../core/journal.ts";
import { NOTIFY_WORKFLOW } from "../core/notification.ts";
import { isOvertaken } from "../core/outgoing.ts";
import { Pass } from "../core/pass.ts";
import type { AdoptedChild, PassEnd, PassPorts } from "../core/pass-ports.ts";
import type { Redactors } from "../core/redactor.ts";
import type { SecretSource } from "../core/secret-source.ts";
import { takeRefusal } from "../core/spending.ts";
import type { ClaimedRun, NewRun, ProcessIdentity, RunCommit, Store, Verdict } from "../core/store.ts";
import { Timeouts } from "../core/timeouts.ts";
import { openEntry } from "../core/values.ts";
import type { Workflow } from "../core/workflow.ts";
import { Claims } from "./claims.ts";
import { Committer } from "./committer.ts";
import { keepersOf } from "./keepers.ts";
import { Lease } from "./lease.ts";
import { Loop } from "./loop.ts";
import { MailReader } from "./mail-reader.ts";
import { firstInput } from "./new-row.ts";
import { PassTable, type Started } from "./pass-table.ts";
import type { Registry } from "./registry.ts";
import { type Amended, RunLoader } from "./run-loader.ts";
import { SelfFence } from "./self-fence.ts";
import { startRefusal } from "./start-refusal.ts";
import { StreamWriter } from "./stream-writer.ts";
import { Sweeper } from "./sweeper.ts";
import type { TakeOver } from "./take-over.ts";
import { Transactor } from "./transactor.ts";
import type { VersionKeeper } from "./version-keeper.ts";
import { waitOut, waitUntil } from "./waiting.ts";
import { observeCommit, type WorkerEvents } from "./worker-events.ts";

export interface WorkerOptions {
  readonly name: string;
  readonly registry: Registry;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly stallMs: number;
  readonly pollMs: number;
  readonly sweepMs: number;
  readonly housekeepingMs: number;
  readonly versionGraceMs: number;
  readonly retention: { readonly succeededMs: number; readonly failedMs: number } | null;
  readonly codec: Codec;
  readonly host: Host;
  readonly redaction: Redactors;
  readonly secrets: SecretSource | null;
  readonly callbackSecrets: CallbackSecrets | null;
  /** What fires alerts; `null`: this process looks for none. */
  readonly alerts: AlertRules | null;
  /** Runs that go on between two commits (C5). */
  readonly sliceRuns: number;
  readonly log: Log;
  newId(): string;
  random(): number;
  identity(): ProcessIdentity;
}

export class Worker {
  readonly committer: Committer;
  readonly ports: PassPorts;
  readonly #store: Store;
  readonly #options: WorkerOptions;
  readonly #events: WorkerEvents;
  readonly #lease: Lease;
  readonly #claims: Claims;
  readonly #selfFence: SelfFence;
  readonly #loader: RunLoader;
  readonly #mail: Loop;
  readonly #sweeper: Sweeper;
  readonly #passes: PassTable;
  readonly #mailReader: MailReader;
  readonly #transactor: Transactor;
  readonly #streams: StreamWriter;
  #isStarted = false;
  #isStopping = false;
  #forgetHints: () => void = () => {};

  constructor(store: Store, options: WorkerOptions, events: WorkerEvents) {
    this.#store = store;
    this.#options = options;
    this.#events = events;
    const { log, leaseMs, stallMs, name, registry, newId, identity } = options;
    this.#passes = new PassTable({
      verdict: (pass, verdict, started) => this.#verdict(pass, verdict, started),
      dropped: (pass) => this.#dropped(pass),
    });
    this.#mailReader = new MailReader(store, this.#passes, () => void this.#mail.tick());
    this.committer = new Committer(store, options, {
      unavailable: (error, failures) => this.#unavailable(error, failures),
      unknown: (error, sources) => this.#selfFence.cutOff(error, sources),
      fenced: (sources) => this.#selfFence.cutOff(null, sources),
      written: (commit, run) => observeCommit(events, run, commit),
      took: (size) => events.took(size),
    });
    this.#lease = new Lease(store, {
      name,
      leaseMs,
      stallMs,
      handles: registry.handles,
      log,
      newId,
      identity,
      lost: () => this.#selfFence.begin("its lease was taken away"),
      beat: () => this.#compareWithStore(),
    });
    this.#selfFence = new SelfFence({
      store,
      lease: this.#lease,
      committer: this.committer,
      passes: this.#passes,
      log,
      isStopping: () => this.#isStopping,
      unavailable: (error, failures) => this.#unavailable(error, failures),
      renewed: () => this.#renewed(),
    });
    this.#transactor = new Transactor({
      store,
      committer: this.committer,
      selfFence: this.#selfFence,
      leaseMs,
      unavailable: (error, failures) => this.#unavailable(error, failures),
      verdict: (pass, verdict) => this.#verdict(pass, verdict, () => {}),
    });
    this.#streams = new StreamWriter(store, options, {
      unavailable: (error, failures) => this.#unavailable(error, failures),
      stored: (run) => events.changed(run),
    });
    this.#claims = new Claims(store, options, this.#passes, {
      worker: () => (this.#isStopping || this.committer.isPaused ? null : this.#lease.id),
      ask: (question) => this.#loader.ask(question),
      load: (claimed, readAt, worker) => this.#loader.load(claimed, readAt, worker),
      unknown: () => void this.#guarded("compare with the store", () => this.#compareWithStore()),
      guarded: (what, body) => this.#guarded(what, body),
      claimed: (runs) => events.claimed(runs),
    });
    this.#mail = new Loop(store.leaseClock, options.pollMs, () => this.#guarded("read mail", () => this.#readMail()));
    this.#sweeper = new Sweeper(store, this.#lease, options, {
      released: () => void this.#claims.tick(),
      orphaned: (runs) => events.orphaned(runs),
      died: () => events.died(),
      swept: () => this.versions.look(),
    });
    this.ports = this.#makePorts();
    this.#loader = new RunLoader({
      store,
      registry,
      lease: this.#lease,
      committer: this.committer,
      passes: this.#passes,
      claims: this.#claims,
      ports: this.ports,
      keepers: keepersOf(store, options, this.ports),
      versionGraceMs: options.versionGraceMs,
      ready: () => this.#ready(),
      isStopping: () => this.#isStopping,
      changed: (run) => events.changed(run),
      guarded: (what, body) => this.#guarded(what, body),
      guardedNow: (what, body) => this.#guardedNow(what, body),
    });
  }

  get takeOver(): TakeOver {
    return this.#loader.takeOver;
  }

  get versions(): VersionKeeper {
    return this.#loader.versions;
  }

  get id(): string | null {
    return this.#lease.id;
  }

  get isWorking(): boolean {
    return this.#isStarted && !this.#isStopping;
  }

  /** Registers with the store. A client without workflows does so only when it needs to own something. */
  async start(): Promise<void> {
    if (this.#isStarted) return;
    this.#isStarted = true;
    try {
      this.committer.worker = await this.#lease.start();
    } catch (error) {
      this.#isStarted = false;
      throw error;
    }
    this.#forgetHints = this.#store.hints(({ isWork }) => {
      if (isWork) this.hint();
    });
    if (this.#options.registry.handles.length === 0) return;
    this.#claims.start();
    this.#mail.start();
    // What a dead predecessor on this machine has left is taken over at once (P27).
    await this.#sweeper.start();
    await this.#claims.tick();
  }

  /** Lets running steps finish for up to `drainMs`, then hands all runs back. */
  async stop(drainMs: number): Promise<void> {
    if (!this.#isStarted) this.committer.close();
    if (!this.#isStarted || this.#isStopping) return;
    this.#isStopping = true;
    this.#forgetHints();
    await Promise.all([this.#claims.stop(), this.#mail.stop(), this.#sweeper.stop()]);
    for (const pass of this.#passes.all()) pass.drain();
    if (drainMs > 0) await this.#until(() => this.#areQuiet(), drainMs);
    await this.#until(() => !this.committer.isBusy && !this.#loader.isTending, drainMs);
    for (const pass of this.#passes.all()) this.#passes.drop(pass);
    this.committer.close();
    await this.#streams.stop();
    await this.#selfFence.done();
    await this.#lease.stop();
  }

  /** Whether no run has anything under way. Until then, those that have not go back already: they need not wait for the others. */
  #areQuiet(): boolean {
    const passes = this.#passes.all();
    const quiet = passes.filter((pass) => pass.isQuiet);
    if (quiet.length === passes.length) return true;
    for (const pass of quiet) {
      const { id, durableHead } = pass;
      if (durableHead === 0) continue;
      this.#passes.drop(pass);
      void this.#loader.handBack(id, durableHead, 1);
    }
    return false;
  }

  /** Resolves when no run here has anything to do but wait. */
  async idle(): Promise<void> {
    while (!this.#isStopping) {
      await this.#until(() => this.#isStopping || this.#isResting(), Number.POSITIVE_INFINITY);
      // What is claimed now may be over again before the look for mail is.
      const before = this.#passes.taken;
      await this.#claims.tick();
      await this.#mail.tick();
      await new Promise<void>((resolve) => this.#options.host.immediate(resolve));
      if (this.#isResting() && this.#passes.taken === before) return;
    }
  }

  #isResting(): boolean {
    if (this.#selfFence.isUnderWay || this.#mailReader.isWanted || this.committer.isBusy || this.#loader.isTending)
      return false;
    for (const pass of this.#passes.all()) if (!pass.isResting) return false;
    return true;
  }

  /** Something may have changed outside this process. */
  hint(): void {
    if (this.#isStopping) return;
    void this.#claims.tick();
    void this.#mail.tick();
  }

  /** Whether this run is in memory here. */
  holds(run: string): boolean {
    return this.#passes.has(run);
  }

  /** Whether a run of this workflow could be taken on right now. */
  hasRoomFor(workflow: string, version: string): boolean {
    return (
      this.isWorking &&
      !this.committer.isPaused &&
      this.#claims.hasRoom &&
      this.#options.registry.forRun(workflow, version) !== undefined
    );
  }

  /** Begins a run on the spot: its first turn runs ahead of its own first commit (P13). Resolves with its id when that is durable. */
  begin(run: string, workflow: Workflow, create: NewRun, draft: Draft, started: Entry): Promise<string> {
    return new Promise((resolve, reject) => {
      const input = firstInput(run, workflow, create, started, draft.chain, this.#lease.id);
      const pass = new Pass({ ...input, draft }, this.ports);
      this.#passes.hold(pass, (refusal) => (refusal === null ? resolve(run) : reject(refusal)));
      pass.begin();
    });
  }

  /** Goes on with a run that was created, durably, as owned by this worker. */
  adopt({ run, workflow, create, entry }: AdoptedChild): void {
    if (this.#isStopping || this.#passes.has(run)) return;
    if (this.#claims.isFull) return void this.#loader.handBack(run, 1, 1);
    this.#guardedNow(`begin run ${run}`, () => {
      const chain = { head: 1, hash: entry.hash, at: entry.at };
      const started = openEntry(this.#options.codec, run, entry);
      const pass = new Pass(firstInput(run, workflow, create, started, chain, this.#lease.id), this.ports);
      this.#passes.hold(pass);
      pass.begin();
    });
  }

  /** Takes a run that nobody is working on, to end it without its body (P19). False: it cannot be had. */
  async cancelWithoutBody(run: string): Promise<boolean | "bodied"> {
    await this.#ready();
    return this.#loader.cancelWithoutBody(run);
  }

  /** May take runs: registered, and where an owner is dead and nobody else was there to find out, that is found. */
  async #ready(): Promise<void> {
    await this.start();
    await this.#sweeper.sweep();
  }

  /** Writes to a run that has not begun, without beginning it. */
  async amend(run: string, build: (claimed: ClaimedRun) => RunCommit): Promise<Amended> {
    await this.start();
    const outcome = await this.#loader.amend(run, build);
    if (outcome === "written") this.hint();
    return outcome;
  }

  #dropped(pass: Pass): void {
    this.#mailReader.forget(pass);
    this.#claims.lost(pass.id);
    this.#events.left(pass.id, null);
  }

  #forget(pass: Pass): void {
    this.#passes.forget(pass);
    this.#mailReader.forget(pass);
  }

  #verdict(pass: Pass, verdict: Verdict, started: Started): void {
    if (pass.isOver) return;
    if (verdict.kind === "applied") {
      pass.applied();
      if (pass.hasProgressed) this.#claims.progressed(pass.id);
      this.#mailReader.landed(pass);
      return this.#events.changed(pass.id);
    }
    if (verdict.kind === "refused" && isOvertaken(pass, verdict.why)) return pass.overtaken(verdict.why);
    if (verdict.kind === "refused" && verdict.why === "counter" && takeRefusal(pass, verdict)) return;
    started(startRefusal(pass.id, verdict));
    this.#passes.drop(pass);
    this.#options.log.warn(`Run ${pass.id} is loaded again: its commit was ${verdict.kind}.`, {
      event: "run.reloaded",
      run: pass.id,
      verdict: JSON.stringify(verdict),
    });
    void this.#guarded("reload", () => this.#loader.afterRefusal(pass.id, verdict, !pass.isLive));
  }

  #unavailable(error: unknown, failures: number): Promise<void> {
    return waitOut(this.#store.leaseClock, this.#options, error, failures);
  }

  /** What a lost answer may have given this worker is loaded now, not with the next heartbeat (P23). */
  #renewed(): void {
    this.#events.renewed();
    void this.#claims.tick();
    void this.#guarded("compare with the store", () => this.#compareWithStore());
  }

  async #readMail(): Promise<void> {
    const worker = this.#lease.id;
    if (worker !== null) await this.#mailReader.read(worker);
  }

  /** Loads what this worker owns and does not hold (P23). */
  async #compareWithStore(): Promise<void> {
    if (this.#isStopping || this.committer.isPaused || this.#selfFence.isUnderWay) return;
    await this.#loader.compareWithStore();
  }

  #makePorts(): PassPorts {
    const { host, codec, log, random, callbackSecrets, redaction, secrets } = this.#options;
    const timeouts = new Timeouts(host);
    return {
      host,
      files: this.#store.files ?? null,
      codec,
      log,
      redaction,
      secrets,
      random,
      callbackSecrets,
      turns: this.committer.turns,
      alarms: new Alarms(this.#store.clock, timeouts),
      timeouts,
      clock: this.#store.clock,
      leaseClock: this.#store.leaseClock,
      streams: this.#streams,
      dirty: (pass) => {
        const source = this.#passes.sourceOf(pass);
        if (source !== undefined) this.committer.dirty(source);
      },
      mayStart: () => this.#lease.isSure && !this.#selfFence.isUnderWay,
      whenSafe: (fn) => this.#selfFence.whenSafe(fn),
      transactions: this.#store.transactions ?? null,
      transact: (pass, call, work) => this.#transactor.run(pass, call, work),
      readMail: (pass) => {
        this.#mailReader.want(pass);
        void this.#mail.tick();
      },
      adopts: (workflow, version) => {
        if (!this.hasRoomFor(workflow, version)) return false;
        this.#claims.promise();
        return true;
      },
      adopt: (child) => {
        this.#claims.redeem();
        this.adopt(child);
      },
      committed: (pass, commit) => observeCommit(this.#events, pass.row, commit),
      executed: (pass, effect, action) => this.#events.executed(pass.row, effect, action),
      mailed: () => this.hint(),
      notifies: this.#options.registry.newest(NOTIFY_WORKFLOW) !== undefined,
      isHere: (run) => this.holds(run),
      mayLinger: () => !this.#claims.isCrowded,
      over: (pass, how) => this.#over(pass, how),
      broken: (pass, error) => {
        this.#options.log.error(`Run ${pass.id} cannot go on here and is loaded again later. ${messageOf(error)}`, {
          run: pass.id,
        });
        this.#passes.drop(pass);
      },
    };
  }

  #over(pass: Pass, how: PassEnd): void {
    this.#forget(pass);
    if (how.kind === "continued") {
      if (this.#isStopping) return;
      const { entry, chain } = how;
      const { state: mail, readAt } = pass.mailbox;
      const next = new Pass(
        {
          row: pass.row,
          workflow: pass.workflow,
          entries: [entry],
          generation: pass.generation + 1,
          chain,
          mail,
          readAt,
        },
        this.ports,
      );
      this.#passes.hold(next);
      return next.begin();
    }
    this.#events.left(pass.id, how.kind === "ended" ? how : null);
    // A run that sleeps may be the next to wake, and a slot lets another in; one that has ended leaves nothing else to look for.
    this.#claims.left(pass.id, how.kind === "suspended" || pass.row.slot !== null);
    const parent = pass.row.parent === null ? undefined : this.#passes.get(pass.row.parent.run);
    if (parent !== undefined) parent.evaluate();
    if (pass.row.parent !== null) this.hint();
  }

  async #guarded(what: string, body: () => Promise<void>): Promise<void> {
    try {
      await body();
    } catch (error) {
      this.#tell(what, error);
    }
  }

  #guardedNow(what: string, body: () => void): void {
    try {
      body();
    } catch (error) {
      this.#tell(what, error);
    }
  }

  #tell(what: string, error: unknown): void {
    if (this.#isStopping || hasCode(error, "closed")) return;
    this.#options.log.error(`Worker ${this.#lease.id} could not ${what}; it will try again. ${messageOf(error)}`);
  }

  #until(isTrue: () => boolean, timeoutMs: number): Promise<void> {
    return waitUntil(isTrue, timeoutMs, this.#store.leaseClock, this.#options.host);
  }
}
