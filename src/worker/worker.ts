// A worker
// Holds the passes of this process and repeats what keeps them going: claim, mail, heartbeat, sweep. It decides nothing about a run:
// the pass does, the committer writes, the store applies.
//
//   W1. A run is in memory here only while this incarnation owns it in the store.
//   W2. Memory and store are compared with each heartbeat: what is owned and not held is loaded (P23).
//   W3. After an unknown outcome a pass lives on exactly if its run was moved and its head is what was acknowledged or the end of its
//       batch in flight (P17).
import { backoffMs } from "../base/backoff.ts";
import type { Codec } from "../base/envelope.ts";
import { hasCode, messageOf, PawlError } from "../base/errors.ts";
import { Alarms } from "../core/alarms.ts";
import type { Log } from "../core/context.ts";
import type { Chain, Draft } from "../core/draft.ts";
import type { Host } from "../core/host.ts";
import type { Entry } from "../core/journal.ts";
import { LIMITS } from "../core/limits.ts";
import { Pass } from "../core/pass.ts";
import type { AdoptedChild, PassEnd, PassPorts } from "../core/pass-ports.ts";
import type { ClaimedRun, NewRun, Store, Verdict } from "../core/store.ts";
import { Timeouts } from "../core/timeouts.ts";
import { openEntry } from "../core/values.ts";
import type { Workflow } from "../core/workflow.ts";
import { type CommitSource, Committer } from "./committer.ts";
import { Lease } from "./lease.ts";
import { loadRun, parkRefused } from "./load-run.ts";
import { Loop } from "./loop.ts";
import { MailReader } from "./mail-reader.ts";
import { newRow } from "./new-row.ts";
import { PassTable, type Started } from "./pass-table.ts";
import type { Registry } from "./registry.ts";
import { Sweeper } from "./sweeper.ts";

export interface WorkerOptions {
  readonly name: string;
  readonly registry: Registry;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly stallMs: number;
  readonly pollMs: number;
  readonly sweepMs: number;
  readonly housekeepingMs: number;
  readonly retention: { readonly succeededMs: number; readonly failedMs: number } | null;
  readonly codec: Codec;
  readonly host: Host;
  readonly log: Log;
  newId(): string;
  random(): number;
}

/** What others may want to know of the runs of this process, always after it is durable. */
export interface WorkerEvents {
  /** Something about this run has changed. */
  changed(run: string): void;
  ended(run: string, end: Extract<PassEnd, { kind: "ended" }>): void;
}

export class Worker {
  readonly committer: Committer;
  readonly ports: PassPorts;
  readonly #store: Store;
  readonly #options: WorkerOptions;
  readonly #events: WorkerEvents;
  readonly #lease: Lease;
  readonly #claims: Loop;
  readonly #mail: Loop;
  readonly #sweeper: Sweeper;
  readonly #passes: PassTable;
  readonly #mailReader: MailReader;
  readonly #held = new Set<string>();
  #waitingForLease: (() => void)[] = [];
  #fencing: Promise<void> | null = null;
  #suspect: string | null = null;
  /** Children that will be taken on the spot once they are durable. */
  #promised = 0;
  #mayHaveMore = true;
  #isStarted = false;
  #isStopping = false;
  #forgetHints: () => void = () => {};
  #alarm: { readonly due: number; readonly forget: () => void } | null = null;

  constructor(store: Store, options: WorkerOptions, events: WorkerEvents) {
    this.#store = store;
    this.#options = options;
    this.#events = events;
    const { log, leaseMs, stallMs, name, registry, newId } = options;
    this.#passes = new PassTable({
      verdict: (pass, verdict, started) => this.#verdict(pass, verdict, started),
      dropped: (pass) => this.#dropped(pass),
    });
    this.#mailReader = new MailReader(store, this.#passes);
    this.committer = new Committer(store, options.host, {
      unavailable: (error, failures) => this.#unavailable(error, failures),
      unknown: (error, sources) => this.#cutOff(error, sources),
      fenced: (sources) => this.#cutOff(null, sources),
    });
    this.#lease = new Lease(store, {
      name,
      leaseMs,
      stallMs,
      handles: registry.handles,
      log,
      newId,
      lost: () => void this.#fenceSelf("its lease was taken away"),
      beat: () => this.#compareWithStore(),
    });
    this.#claims = new Loop(store.leaseClock, options.pollMs, () => this.#guarded("claim", () => this.#claim()));
    this.#mail = new Loop(store.leaseClock, options.pollMs, () => this.#guarded("read mail", () => this.#readMail()));
    this.#sweeper = new Sweeper(store, this.#lease, options, () => void this.#claims.tick());
    this.ports = this.#makePorts();
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
    this.#forgetHints = this.#store.hints(() => this.hint());
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
    this.#alarm?.forget();
    await Promise.all([this.#claims.stop(), this.#mail.stop(), this.#sweeper.stop()]);
    for (const pass of this.#passes.all()) pass.drain();
    await this.#until(() => this.#passes.all().every((pass) => pass.isQuiet), drainMs);
    await this.#until(() => !this.committer.isBusy, drainMs);
    for (const pass of this.#passes.all()) this.#passes.drop(pass);
    this.committer.close();
    await this.#fencing;
    await this.#lease.stop();
  }

  /** Resolves when no run here has anything to do but wait. */
  async idle(): Promise<void> {
    while (!this.#isStopping) {
      await this.#until(() => this.#isStopping || this.#isResting(), Number.POSITIVE_INFINITY);
      const before = this.#passes.size;
      await this.#claims.tick();
      await this.#mail.tick();
      await new Promise<void>((resolve) => this.#options.host.immediate(resolve));
      if (this.#isResting() && this.#passes.size <= before) return;
    }
  }

  #isResting(): boolean {
    if (this.#fencing !== null || this.#mailReader.isWanted || this.committer.isBusy) return false;
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
      this.#passes.size + this.#promised < this.#options.concurrency &&
      this.#options.registry.forRun(workflow, version) !== undefined
    );
  }

  /** Begins a run on the spot: its first turn runs ahead of its own first commit (P13). Resolves when that is durable. */
  begin(run: string, workflow: Workflow, create: NewRun, draft: Draft, started: Entry): Promise<void> {
    return new Promise((resolve, reject) => {
      draft.onDurable(resolve);
      const pass = this.#newPass(run, workflow, create, [started], draft.chain, draft);
      this.#passes.hold(pass, (refusal) => (refusal === null ? resolve() : reject(refusal)));
      pass.begin();
    });
  }

  /** Goes on with a run that was created, durably, as owned by this worker. */
  adopt({ run, workflow, create, entry }: AdoptedChild): void {
    if (this.#isStopping || this.#passes.has(run)) return;
    if (this.#isFull) return void this.#handBack(run, 1, 1);
    this.#guardedNow(`begin run ${run}`, () => {
      const chain = { head: 1, hash: entry.hash, at: entry.at };
      const pass = this.#newPass(run, workflow, create, [openEntry(this.#options.codec, run, entry)], chain);
      this.#passes.hold(pass);
      pass.begin();
    });
  }

  /** Others came first since this run was promised a place: it goes to whoever has room, as if nobody had claimed it. */
  #handBack(run: string, head: number, claims: number): Promise<void> {
    const row = { release: true, readyAt: this.#store.clock.now(), claims: Math.max(0, claims - 1) };
    return this.#writeAndLetGo({ run, head, entries: [], row });
  }

  get #isFull(): boolean {
    return this.#passes.size >= this.#options.concurrency;
  }

  /** Takes a run that nobody is working on, to end it without its body (P19). False: it cannot be had. */
  async cancelWithoutBody(run: string): Promise<boolean> {
    await this.start();
    // Its owner may be dead, and nobody else there to find out.
    await this.#sweeper.sweep();
    const worker = this.#lease.id;
    const claimed = worker === null || this.#passes.has(run) ? null : await this.#store.take(worker, run);
    if (claimed === null || claimed.cancel === null) return false;
    this.#held.add(run);
    try {
      const loaded = loadRun(claimed, undefined, this.ports, this.#store.clock.now());
      if (loaded.kind === "pass") return false;
      const verdict = await this.committer.write(loaded.commit);
      this.#events.changed(run);
      return verdict.kind === "applied";
    } finally {
      this.#held.delete(run);
    }
  }

  // Claims

  async #claim(): Promise<void> {
    const worker = this.#lease.id;
    if (worker === null || this.#isStopping || this.committer.isPaused) return;
    const room = Math.min(LIMITS.claimBatch, this.#options.concurrency - this.#passes.size - this.#promised);
    // Whoever leaves asks again.
    this.#mayHaveMore = true;
    if (room <= 0) return this.#setAlarm(null);
    const { handles } = this.#options.registry;
    // The mail that comes along is as old as the question (P5).
    const readAt = this.#store.clock.now();
    const suspect = this.#suspect === null;
    const claimed = await this.#store.claim({ worker, handles, limit: room, suspect });
    for (const run of claimed) this.#load(run, readAt, worker);
    this.#mayHaveMore = claimed.length === room || !suspect || this.#suspect !== null;
    if (claimed.length === room) void this.#claims.tick();
    this.#setAlarm(await this.#store.nextWake());
  }

  /** The next sleeping run anywhere in the store wakes this worker, without polling for it. */
  #setAlarm(due: number | null): void {
    if (due === this.#alarm?.due || this.#isStopping) return;
    this.#alarm?.forget();
    this.#alarm = null;
    if (due === null) return;
    const forget = this.#store.clock.at(due, () => {
      this.#alarm = null;
      void this.#claims.tick();
    });
    this.#alarm = { due, forget };
  }

  #load(claimed: ClaimedRun, readAt: number, worker: string): void {
    if (worker !== this.#lease.id || this.#passes.has(claimed.run)) return;
    // What cannot be loaded must not keep others from it; it is tried again with the next heartbeat (P23).
    this.#guardedNow(`load run ${claimed.run}`, () => {
      const workflow = this.#options.registry.forRun(claimed.row.workflow, claimed.row.version);
      const loaded = loadRun(claimed, workflow, this.ports, readAt);
      if (loaded.kind === "pass" && this.#isFull)
        return void this.#handBack(claimed.run, claimed.head, claimed.row.claims);
      if (claimed.row.claims >= 2) this.#suspect = claimed.run;
      if (loaded.kind === "pass") {
        this.#passes.hold(loaded.pass);
        loaded.pass.begin();
      } else void this.#writeAndLetGo(loaded.commit);
    });
  }

  async #writeAndLetGo(commit: Parameters<Committer["write"]>[0]): Promise<void> {
    this.#held.add(commit.run);
    await this.#guarded("end a run", async () => {
      const verdict = await this.committer.write(commit);
      if (verdict.kind === "refused" && verdict.why === "cancel") await this.cancelWithoutBody(commit.run);
    });
    this.#held.delete(commit.run);
    this.#letGo(commit.run, true);
    this.#events.changed(commit.run);
  }

  /** Looks for more work if there may be some: a look costs as much as a step, and hints tell of what is new. */
  #letGo(run: string, mayWake: boolean): void {
    if (this.#suspect === run) this.#suspect = null;
    const isWorker = this.isWorking && this.#options.registry.handles.length > 0;
    if (isWorker && (mayWake || this.#mayHaveMore)) void this.#claims.tick();
  }

  #newPass(
    run: string,
    workflow: Workflow,
    create: NewRun,
    entries: readonly Entry[],
    chain: Chain,
    draft?: Draft,
  ): Pass {
    const row = newRow(run, create, chain, entries[0]?.at ?? 0, this.#lease.id);
    const mail = { wake: 0, cancel: null, inbox: [] };
    return new Pass(
      {
        row,
        workflow,
        entries,
        generation: 0,
        chain,
        mail,
        readAt: row.createdAt,
        ...(draft === undefined ? {} : { draft }),
      },
      this.ports,
    );
  }

  #dropped(pass: Pass): void {
    this.#mailReader.forget(pass);
    this.#promised = 0;
    if (this.#suspect === pass.id) this.#suspect = null;
  }

  #forget(pass: Pass): void {
    this.#passes.forget(pass);
    this.#mailReader.forget(pass);
  }

  // Commits

  #verdict(pass: Pass, verdict: Verdict, started: Started): void {
    if (pass.isOver) return;
    if (verdict.kind === "applied") {
      pass.applied();
      if (this.#suspect === pass.id && pass.hasProgressed) this.#suspect = null;
      return this.#events.changed(pass.id);
    }
    if (verdict.kind === "refused" && (verdict.why === "wake" || (verdict.why === "cancel" && !pass.isParking)))
      return pass.overtaken(verdict.why);
    started(startRefusal(pass.id, verdict));
    this.#passes.drop(pass);
    this.#options.log.warn(`Run ${pass.id} is loaded again: its commit was ${verdict.kind}.`, {
      run: pass.id,
      verdict: JSON.stringify(verdict),
    });
    void this.#guarded("reload", () => this.#afterRefusal(pass.id, verdict));
  }

  async #afterRefusal(run: string, verdict: Verdict): Promise<void> {
    // A park that a cancel has overtaken: nobody is left to decide anything (P19).
    if (verdict.kind === "refused" && verdict.why === "cancel") return void (await this.cancelWithoutBody(run));
    if (verdict.kind !== "failed") return this.#reload(run);
    // Replay would lead to the same commit, again and again.
    const worker = this.#lease.id;
    const claimed = worker === null || this.#isStopping ? null : await this.#store.take(worker, run);
    if (claimed !== null) await this.#writeAndLetGo(parkRefused(claimed, this.ports, verdict.error));
  }

  async #reload(run: string): Promise<void> {
    const worker = this.#lease.id;
    if (worker === null || this.#isStopping) return;
    const readAt = this.#store.clock.now();
    const claimed = await this.#store.take(worker, run);
    if (claimed !== null) this.#load(claimed, readAt, worker);
  }

  async #unavailable(error: unknown, failures: number): Promise<void> {
    if (failures === 1 || failures % 20 === 0) {
      this.#options.log.error(
        `The store cannot be written to; runs wait and go on by themselves when it can. ${messageOf(error)}`,
        { failures },
      );
    }
    const ms = backoffMs(
      Math.min(failures, 10),
      { baseMs: 20, factor: 2, capMs: 1000, jitter: true },
      this.#options.random,
    );
    await new Promise<void>((resolve) => this.#store.leaseClock.after(Math.max(5, ms), resolve));
  }

  // Fencing

  #cutOff(error: unknown, sources: readonly CommitSource[]): void {
    const why = error === null ? "it was fenced" : `the outcome of a commit is unknown (${messageOf(error)})`;
    void this.#fenceSelf(why, sources);
  }

  /** Takes a new incarnation and settles every pass by what the store then says (P17). */
  #fenceSelf(why: string, unsettled: readonly CommitSource[] = []): Promise<void> {
    this.#fencing ??= this.#takeNewIncarnation(why, unsettled).finally(() => {
      this.#fencing = null;
      const waiting = this.#waitingForLease;
      this.#waitingForLease = [];
      for (const fn of waiting) fn();
    });
    return this.#fencing;
  }

  async #takeNewIncarnation(why: string, unsettled: readonly CommitSource[]): Promise<void> {
    // Whatever is still under way belongs to the old incarnation: its answer no longer counts (P17).
    const cutOff = [...unsettled, ...this.committer.pause()];
    this.#options.log.warn(`Worker ${this.#lease.id} takes a new incarnation: ${why}.`);
    for (let failures = 1; ; failures++) {
      try {
        const readAt = this.#store.clock.now();
        const { moved } = await this.#lease.renew();
        this.#passes.settle(new Map(moved.map((mail) => [mail.run, mail])), readAt);
        this.#settleWrites(cutOff);
        break;
      } catch (error) {
        if (this.#isStopping && failures > 3) return;
        await this.#unavailable(error, failures);
      }
    }
    this.committer.worker = this.#lease.id;
    this.committer.resume();
    void this.#claims.tick();
  }

  /** Single writes have no pass: offered again, they meet their own traces if they were applied (ST2). */
  #settleWrites(unsettled: readonly CommitSource[]): void {
    for (const source of new Set(unsettled)) {
      if (this.#passes.owns(source)) continue;
      source.offerAgain();
      this.committer.dirty(source);
    }
  }

  // Mail

  async #readMail(): Promise<void> {
    const worker = this.#lease.id;
    if (worker !== null) await this.#mailReader.read(worker);
  }

  /** Loads what this worker owns and does not hold (P23). */
  async #compareWithStore(): Promise<void> {
    const worker = this.#lease.id;
    if (worker === null || this.#isStopping || this.committer.isPaused || this.#fencing !== null) return;
    const owned = await this.#store.owned(worker, { news: false });
    for (const { run } of owned) {
      if (worker !== this.#lease.id || this.#passes.has(run) || this.#held.has(run)) continue;
      await this.#guarded(`load run ${run}`, () => this.#reload(run));
    }
  }

  // What passes ask for

  #makePorts(): PassPorts {
    const { host, codec, log, random } = this.#options;
    return {
      host,
      codec,
      log,
      random,
      turns: this.committer.turns,
      alarms: new Alarms(this.#store.clock),
      timeouts: new Timeouts(host),
      clock: this.#store.clock,
      leaseClock: this.#store.leaseClock,
      dirty: (pass) => {
        const source = this.#passes.sourceOf(pass);
        if (source !== undefined) this.committer.dirty(source);
      },
      mayStart: () => this.#lease.isSure && this.#fencing === null,
      whenSafe: (fn) => {
        this.#waitingForLease.push(fn);
        void this.#fenceSelf("its lease ran out before a step began");
      },
      readMail: (pass) => {
        this.#mailReader.want(pass);
        void this.#mail.tick();
      },
      adopts: (workflow, version) => {
        if (!this.hasRoomFor(workflow, version)) return false;
        this.#promised++;
        return true;
      },
      adopt: (child) => {
        this.#promised = Math.max(0, this.#promised - 1);
        this.adopt(child);
      },
      mailed: () => this.hint(),
      isHere: (run) => this.holds(run),
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
    if (how.kind === "ended") this.#events.ended(pass.id, how);
    // A run that sleeps may be the next to wake; one that has ended leaves nothing to look for.
    this.#letGo(pass.id, how.kind === "suspended");
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

  async #until(isTrue: () => boolean, timeoutMs: number): Promise<void> {
    const end = this.#store.leaseClock.monotonic() + timeoutMs;
    for (let round = 0; !isTrue() && this.#store.leaseClock.monotonic() < end; round++) {
      await new Promise<void>((resolve) => {
        if (round < 50) this.#options.host.immediate(resolve);
        else this.#store.leaseClock.after(2, resolve);
      });
    }
  }
}

/** A run id that exists already is our own earlier write: its answer was lost (I2). */
function startRefusal(run: string, verdict: Verdict): PawlError | null {
  if (verdict.kind === "refused" && verdict.why === "exists") return null;
  return new PawlError(
    "storage_unavailable",
    `Run ${run} could not be started: the store answered "${verdict.kind}". Start it again.`,
    verdict.kind === "failed" ? { cause: verdict.error } : {},
  );
}
