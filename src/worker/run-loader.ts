// The run loader
// Brings runs that this worker owns into memory, and writes what is to be written of those whose body is not needed.
//
//   RL1. A run is loaded only by the incarnation that owns it, and only once: of an answer that comes late, what was loaded since the question
//        was put does not count. It may be over by then, and gone.
//   RL2. What cannot be loaded keeps no other from it; it is tried again with the next heartbeat (P23).
import type { Draft } from "../core/draft.ts";
import type { PassPorts } from "../core/pass-ports.ts";
import { notBeforeIn } from "../core/put-off.ts";
import type { ClaimedRun, RowPatch, RunCommit, RunRow, Store, Verdict } from "../core/store.ts";
import { isTerminal } from "../core/transition.ts";
import { openEntry } from "../core/values.ts";
import type { Claims } from "./claims.ts";
import type { Committer } from "./committer.ts";
import type { Lease } from "./lease.ts";
import { isParked, loadRun, parkRefused } from "./load-run.ts";
import type { PassTable } from "./pass-table.ts";
import type { Registry } from "./registry.ts";
import type { Tending } from "./schedule-keeper.ts";
import { TakeOver } from "./take-over.ts";
import { VersionKeeper } from "./version-keeper.ts";

/** Looks after runs without a body. */
export interface Keeper {
  tend(claimed: ClaimedRun, draft: Draft): Promise<Tending>;
}

export interface RunLoaderParts {
  readonly store: Store;
  readonly registry: Registry;
  readonly lease: Lease;
  readonly committer: Committer;
  readonly passes: PassTable;
  readonly claims: Claims;
  readonly ports: PassPorts;
  /** By the workflows of those that they look after. */
  readonly keepers: ReadonlyMap<string, Keeper>;
  readonly versionGraceMs: number;
  /** Registered with the store, and dead owners were looked for. */
  ready(): Promise<void>;
  isStopping(): boolean;
  /** Something about this run has changed, durably. */
  changed(run: string): void;
  /** Runs a duty; if it fails, that is told, and it is tried again some time. */
  guarded(what: string, body: () => Promise<void>): Promise<void>;
  guardedNow(what: string, body: () => void): void;
}

/** "begun": it has begun or is over; "busy": somebody else writes to it right now. */
export type Amended = "written" | "busy" | "begun";

export class RunLoader {
  readonly #parts: RunLoaderParts;
  /** Runs that are owned and are being written without a pass. */
  readonly #held = new Set<string>();
  /** Runs without a body that are being looked after; true: one was claimed again meanwhile. */
  readonly #tended = new Map<string, boolean>();
  /** Runs that were taken without their slot, for all that this worker was told. */
  readonly #slotless = new Set<string>();
  /** Of each question that is not answered yet: what was loaded since. */
  readonly #asking = new Set<Set<string>>();

  /** Writes to runs that nobody works on. */
  readonly takeOver: TakeOver;
  readonly versions: VersionKeeper;

  constructor(parts: RunLoaderParts) {
    this.#parts = parts;
    this.takeOver = new TakeOver({
      ...parts,
      // Nothing of it will run: it needs no slot.
      take: (worker, run) => this.#takeAside(worker, run, true),
      hold: (run, body) => this.#hold(run, body),
      giveBack: (claimed) => this.#giveBack(claimed),
    });
    this.versions = new VersionKeeper({ ...parts, takeOver: this.takeOver });
  }

  /** Asks the store for runs, and leaves out those that the answer is too late for (RL1). */
  async ask(question: () => Promise<ClaimedRun[]>): Promise<ClaimedRun[]> {
    const loaded = new Set<string>();
    this.#asking.add(loaded);
    try {
      return (await question()).filter(({ run }) => !loaded.has(run));
    } finally {
      this.#asking.delete(loaded);
    }
  }

  /** A run without a body is being looked after. */
  get isTending(): boolean {
    return this.#tended.size > 0;
  }

  load(claimed: ClaimedRun, readAt: number, worker: string): void {
    const { lease, passes, claims, registry, ports, keepers, guarded, guardedNow } = this.#parts;
    const { run, row } = claimed;
    if (worker !== lease.id || passes.has(run)) return;
    this.#noteLoaded(run);
    guardedNow(`load run ${run}`, () => {
      const keeper = keepers.get(row.workflow);
      // Nothing of it needs a body, its end neither.
      const isOver = keeper !== undefined && claimed.cancel !== null;
      const workflow = isOver ? undefined : registry.forRun(row.workflow, row.version);
      const loaded = loadRun(claimed, workflow, ports, readAt);
      if (loaded.kind === "childless")
        return void guarded("end a run", async () => void (await this.cancelWithoutBody(run)));
      if (loaded.kind === "pass" && keeper !== undefined) return void this.#tend(keeper, claimed, loaded.pass.draft);
      if (loaded.kind === "bodied") return void this.#giveBack(claimed);
      if (loaded.kind === "needy") return void this.#giveBack(claimed, { needs: loaded.needs });
      // One that was taken, not claimed, has no slot (I18).
      const wasTaken = this.#slotless.delete(run) || row.state !== "running";
      const isUninvited = row.slot !== null && wasTaken;
      if (loaded.kind === "pass" && (claims.isFull || isUninvited)) return void this.#giveBack(claimed);
      claims.begun(run, row.claims);
      if (loaded.kind === "pass") {
        passes.hold(loaded.pass);
        loaded.pass.begin();
      } else void this.#writeAndLetGo(loaded.commit, row);
    });
  }

  /** Has it looked after and lets it go. One at a time: a claim may be answered before the commit that made it possible. */
  async #tend(keeper: Keeper, claimed: ClaimedRun, draft: Draft): Promise<void> {
    const { committer, claims, changed, guarded } = this.#parts;
    const { run } = claimed;
    if (this.#tended.has(run)) return void this.#tended.set(run, true);
    this.#tended.set(run, false);
    await guarded(`look after run ${run} of ${claimed.row.workflow}`, async () => {
      const { commit, tell } = await keeper.tend(claimed, draft);
      const verdict = await committer.write(commit);
      if (verdict.kind === "applied") tell();
      else this.#tended.set(run, true);
    });
    const isAgain = this.#tended.get(run);
    this.#tended.delete(run);
    changed(run);
    claims.left(run, true);
    if (isAgain) await guarded(`load run ${run}`, () => this.#reload(run));
  }

  /** It cannot stay here, say because others came first: it goes to whoever has room, as if nobody had claimed it. */
  handBack(run: string, head: number, claims: number, more: Pick<RowPatch, "needs" | "state"> = {}): Promise<void> {
    const readyAt = this.#parts.store.clock.now();
    const row = { release: true, readyAt, claims: Math.max(0, claims - 1), ...more };
    return this.#writeAndLetGo({ run, head, entries: [], row });
  }

  /** Nothing was done with it. A claim has called it running: one that is parked says so again (I4). */
  #giveBack({ run, head, row, journal }: ClaimedRun, more: Pick<RowPatch, "needs"> = {}): Promise<void> {
    return this.handBack(run, head, row.claims, { ...more, ...(isParked(journal) && { state: "parked" }) });
  }

  async #writeAndLetGo(commit: RunCommit, row: RunRow | null = null): Promise<void> {
    const { committer, claims, changed, guarded } = this.#parts;
    let isNews = false;
    this.#held.add(commit.run);
    await guarded("end a run", async () => {
      const verdict = await committer.write(commit, row);
      if (verdict.kind === "refused" && verdict.why === "cancel") await this.cancelWithoutBody(commit.run);
      isNews = verdict.kind === "refused" && verdict.why === "wake";
    });
    this.#held.delete(commit.run);
    claims.left(commit.run, true);
    changed(commit.run);
    if (isNews) await guarded(`load run ${commit.run}`, () => this.#reload(commit.run));
  }

  /** Takes a run that nobody is working on, to end it without its body (P19). False: it cannot be had; "bodied": only its code can end it. */
  async cancelWithoutBody(run: string, isLost = false): Promise<boolean | "bodied"> {
    const { store, lease, committer, ports, registry, changed } = this.#parts;
    const worker = lease.id;
    const claimed = worker === null ? null : await this.#takeAside(worker, run);
    if (claimed === null || claimed.cancel === null) return false;
    this.#held.add(run);
    try {
      const children = (await store.waits({ run, kind: "child" })).map((wait) => wait.name);
      const owner = registry.newest(claimed.row.workflow)?.definition.owners.compensating ?? null;
      const loaded = loadRun(claimed, undefined, ports, store.clock.now(), { children, isLost, owner });
      if (loaded.kind === "bodied") {
        await this.#giveBack(claimed);
        return "bodied";
      }
      if (loaded.kind !== "write") return false;
      const verdict = await committer.write(loaded.commit, claimed.row);
      changed(run);
      // It has left somebody a notification.
      if (loaded.commit.children !== undefined) ports.mailed();
      return verdict.kind === "applied";
    } finally {
      this.#held.delete(run);
    }
  }

  /** Writes to a run that has not begun, without beginning it. */
  async amend(run: string, build: (claimed: ClaimedRun) => RunCommit): Promise<Amended> {
    const { store, lease } = this.#parts;
    const row = await store.run(run);
    if (row === null || row.cancel !== null) return "begun";
    if (row.state !== "accepted") return (await this.#isEarly(row)) ? "busy" : "begun";
    const worker = lease.id;
    if (worker === null || row.owner !== null || this.#held.has(run)) return "busy";
    return this.#hold(run, async () => {
      const claimed = await this.#takeAside(worker, run);
      if (claimed === null) return "busy";
      // This worker has claimed it since, or somebody cancels it: the next look tells what becomes of it.
      const { kind } = await this.takeOver.writeTo(claimed, (taken) =>
        taken.row.state === "accepted" ? build(taken) : null,
      );
      return kind === "written" ? "written" : "busy";
    });
  }

  /** Whoever has claimed it is about to put it off again: its time has not come. */
  async #isEarly({ id, head, state }: RunRow): Promise<boolean> {
    const { store, ports } = this.#parts;
    if (isTerminal(state)) return false;
    const last = await store.journal(id, { from: Math.max(0, head - 1), limit: 2 });
    try {
      const notBefore = notBeforeIn(last.map((entry) => openEntry(ports.codec, id, entry)));
      return notBefore !== null && store.clock.now() < notBefore;
    } catch {
      // Nobody here can read it: whoever has it decides what becomes of it.
      return false;
    }
  }

  /** Goes on with a run whose commit was refused and whose pass was dropped for it; `isLost`: it had not come to the end of its journal. */
  async afterRefusal(run: string, verdict: Verdict, isLost: boolean): Promise<void> {
    // A park that a cancel has overtaken: nobody is left to decide anything (P19).
    if (verdict.kind === "refused" && verdict.why === "cancel") return void (await this.cancelWithoutBody(run, isLost));
    if (verdict.kind !== "failed") return this.#reload(run);
    // Replay would lead to the same commit, again and again.
    const claimed = await this.#take(run);
    if (claimed !== null)
      await this.#writeAndLetGo(parkRefused(claimed, this.#parts.ports, verdict.error), claimed.row);
  }

  async #reload(run: string): Promise<void> {
    const worker = this.#parts.lease.id;
    const readAt = this.#parts.store.clock.now();
    const claimed = await this.#take(run);
    if (claimed !== null) this.load(claimed, readAt, worker as string);
  }

  async #take(run: string): Promise<ClaimedRun | null> {
    const { lease, isStopping } = this.#parts;
    return lease.id === null || isStopping() ? null : this.#takeAs(lease.id, run);
  }

  /** Keeps it from being loaded while it is written to. */
  async #hold<T>(run: string, body: () => Promise<T>): Promise<T> {
    this.#held.add(run);
    try {
      return await body();
    } finally {
      this.#held.delete(run);
    }
  }

  /** Loads one of this worker's, or takes one that nobody owns. */
  async #takeAs(worker: string, run: string, slotless = false): Promise<ClaimedRun | null> {
    if (slotless) this.#slotless.add(run);
    const [claimed = null] = await this.ask(async () => {
      const taken = await this.#parts.store.take(worker, run, { slotless });
      return taken === null ? [] : [taken];
    });
    if (slotless) this.#slotless.delete(run);
    return claimed;
  }

  /** Takes a run to write to it without a pass; not one that has a pass here, and a claim of it that is not answered yet does not make one (RL1). */
  async #takeAside(worker: string, run: string, slotless = false): Promise<ClaimedRun | null> {
    if (this.#parts.passes.has(run)) return null;
    const claimed = await this.#takeAs(worker, run, slotless);
    if (claimed !== null) this.#noteLoaded(run);
    return claimed;
  }

  #noteLoaded(run: string): void {
    for (const loaded of this.#asking) loaded.add(run);
  }

  /** Loads what this worker owns and does not hold (P23). */
  async compareWithStore(): Promise<void> {
    const { store, lease, passes, guarded } = this.#parts;
    const worker = lease.id;
    if (worker === null) return;
    for (const { run } of await store.owned(worker, { news: false })) {
      if (worker !== lease.id || passes.has(run) || this.#held.has(run) || this.#tended.has(run)) continue;
      await guarded(`load run ${run}`, () => this.#reload(run));
    }
  }
}
