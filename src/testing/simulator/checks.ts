// The invariants, looked at after every event
// Fed with what the store has applied and with every start of a step's function. It keeps its own copy of all journals, made from the commits
// that were applied, and compares the store with that.

import { hasCode } from "../../base/errors.ts";
import type { ApprovalRequested } from "../../core/approval-request.ts";
import type { StepInfo } from "../../core/context.ts";
import {
  type Cancelling,
  type Checkpoint,
  type Continued,
  type Ended,
  type Entry,
  isStepSuccess,
  type Parked,
  type RunStarted,
  type SignalReceived,
  type StepFailed,
  type StepStarted,
  type StoredEntry,
} from "../../core/journal.ts";
import { BEFORE_BODY } from "../../core/put-off.ts";
import type { ClaimedRun, Commit, Delivery, FenceRequest, Message, Verdict } from "../../core/store.ts";
import { leaseLeftMs } from "../../stores/lease.ts";
import { orphans } from "../../stores/memory/orphans.ts";
import type { MemoryWorker } from "../../stores/memory/tables.ts";
import { DeedChecks } from "./deed-checks.ts";
import type { Disk } from "./disk.ts";
import { FoldedRun } from "./folded-run.ts";
import { ForkChecks, inheritedIn } from "./fork-checks.ts";
import type { Life } from "./life.ts";
import type { Ledger } from "./outside.ts";
import { OutsideNames } from "./outside-names.ts";
import { isAllowedFailure, isAllowedResult, type OfBurst, type ProgramInput } from "./program.ts";
import { SignalChecks } from "./signal-checks.ts";
import type { Situation } from "./situations.ts";
import { SlotChecks } from "./slot-checks.ts";
import type { Method } from "./store-call.ts";

export interface CheckPorts {
  readonly disk: Disk;
  readonly ledger: Ledger;
  /** Nobody's clock is off or set: due times and arrivals can be compared. */
  readonly areClocksRight: boolean;
  /** How many runs may be under way at a time. */
  readonly slots: number | null;
  violated(invariant: string, what: string): void;
  sometimes(what: Situation): void;
  /** A run waits for a person's decision. */
  parked(run: string): void;
  /** A run asks people for leave. */
  asked(run: string, request: ApprovalRequested): void;
  /** A run has come from another one. */
  forked(run: string): void;
  /** A start of a burst has made a run of its own. */
  burst(run: string, of: OfBurst): void;
}

interface StepRecord {
  attempts: number;
  isOver: boolean;
}

interface KnownRun {
  readonly fold: FoldedRun;
  input: ProgramInput | null;
  readonly steps: Map<string, StepRecord>;
  readonly names: OutsideNames;
  /** An approval has cancelled it. */
  isCancelledByItself?: boolean;
}

export class Checks {
  readonly deeds: DeedChecks;
  readonly forks: ForkChecks;
  readonly signals: SignalChecks;
  readonly #ports: CheckPorts;
  readonly #runs = new Map<string, KnownRun>();
  /** Workers that the fence under way names although their lease runs. */
  #leased: readonly string[] = [];
  /** Where each run's journal ended when somebody got hold of it last, and the runs that were cancelled right there, without their body. */
  readonly #takenAt = new Map<string, number>();
  readonly #cancelledThere = new Set<string>();
  #interrupted = false;
  #began = new Set<string>();
  #unfinished = 0;
  /** Attempts that follow a crash or a lost lease. */
  reruns = 0;
  readonly #slots: SlotChecks | null;

  constructor(ports: CheckPorts) {
    this.#ports = ports;
    this.deeds = new DeedChecks(ports);
    this.signals = new SignalChecks(ports);
    this.#slots = ports.slots === null ? null : new SlotChecks(ports.slots, ports);
    this.forks = new ForkChecks({ ...ports, journalOf: (run) => this.journalOf(run), endOf: (run) => this.endOf(run) });
  }

  /** Its body may have had no part in its end. */
  mayHaveEndedWithoutBody(run: string): boolean {
    return this.#cancelledThere.has(run);
  }

  get unfinished(): number {
    return this.#unfinished;
  }

  applying(life: Life, method: Method, args: readonly unknown[]): void {
    if (method !== "fence") return;
    const { workers } = args[0] as FenceRequest;
    const named = workers.flatMap((id) => this.#ports.disk.tables.workers.get(id) ?? []);
    const isOwn = (one: MemoryWorker) => one.worker.process.pid === life.pid;
    if (named.some(isOwn)) this.#ports.sometimes("a worker fenced itself");
    this.#interrupted = named.some((one) => !isOwn(one) && this.#ports.ledger.isBusy(one.worker.process.pid));
    this.#leased = named
      .filter((one) => !isOwn(one) && this.#leaseLeftMs(one, life) >= 0)
      .map(({ worker }) => worker.id);
  }

  #leaseLeftMs({ worker, renewedAt }: MemoryWorker, { boot }: Life): number {
    const lease = { boot: worker.process.boot, leaseMs: worker.leaseMs, renewedAt };
    return leaseLeftMs(lease, this.#ports.disk.monotonic(), boot);
  }

  /** I9: nobody is declared dead whose lease still runs. */
  #fenced(life: Life): void {
    const { workers } = this.#ports.disk.tables;
    const wronged = this.#leased.find((id) => !workers.has(id));
    if (wronged !== undefined) this.#violated("I9", `${life.name} fenced worker ${wronged}, whose lease still ran`);
    else if (this.#leased.length > 0) this.#ports.sometimes("a worker that was found silent had been heard of since");
    else this.#ports.sometimes("a worker was fenced by another");
    if (this.#interrupted) this.#ports.sometimes("a lease was lost in the middle of a step");
  }

  applied(life: Life, method: Method, args: readonly unknown[], result: unknown): void {
    if (method === "fence" && (args[0] as FenceRequest).successor === undefined) this.#fenced(life);
    if (method === "claim" || method === "take")
      for (const claimed of [result as ClaimedRun[] | ClaimedRun | null].flat())
        if (claimed !== null) this.#taken(claimed);
    if (method === "commit") this.#committed(args[0] as Commit, result as readonly Verdict[]);
    if (method === "deliver") this.#mailed(args[0] as Message, result as Delivery);
    if (method === "heartbeat" && !(result as { alive: boolean }).alive)
      this.#ports.sometimes("a heartbeat came from a fenced worker");
    if (method === "commit" || method === "fence" || method === "retire" || method === "take") this.#noOrphans();
    if (["claim", "take", "fence", "commit"].includes(method)) this.#slots?.compare();
  }

  #taken({ run, head, row }: ClaimedRun): void {
    this.#takenAt.set(run, head);
    if (row.state === "running" && this.isPutOff(run)) this.#ports.sometimes("a run was claimed before its time");
  }

  #committed({ runs }: Commit, verdicts: readonly Verdict[]): void {
    for (let i = 0; i < runs.length; i++) {
      const part = runs[i] as Commit["runs"][number];
      const verdict = verdicts[i] as Verdict;
      if (verdict.kind !== "applied") {
        this.#refused(verdict);
        if (verdict.kind === "failed")
          this.#violated("I3", `the store could not take a commit of run ${part.run}: ${verdict.error}`);
        continue;
      }
      this.#append(part.run, part.head, part.entries);
      if (part.create !== undefined) this.#created(part);
      const isCancel = part.entries[0]?.type === "run.cancelling" && part.entries[1]?.type === "run.cancelled";
      if (isCancel && part.head === this.#takenAt.get(part.run)) this.#cancelledThere.add(part.run);
      for (const child of part.children ?? [])
        if (!this.#runs.has(child.run)) this.#append(child.run, 0, [child.entry]);
      for (const message of part.messages ?? [])
        if (message.kind === "signal") this.#violated("I14", "a run sent a signal");
    }
    // One that was refused may be owned by somebody who has not said so yet: a run that is taken keeps its word until its next commit.
    for (let i = 0; i < runs.length; i++)
      if (verdicts[i]?.kind === "applied") this.#compare((runs[i] as Commit["runs"][number]).run);
  }

  #created(part: Commit["runs"][number]): void {
    this.forks.created(part);
    if (part.create?.origin != null) this.#ports.forked(part.run);
    const of = this.inputOf(part.run)?.of;
    if (of !== undefined) this.#ports.burst(part.run, of);
  }

  #refused(verdict: Exclude<Verdict, { kind: "applied" }>): void {
    if (verdict.kind === "conflict") return this.#ports.sometimes("a commit met: conflict");
    if (verdict.kind === "refused") this.#ports.sometimes(`a commit met: ${verdict.why}`);
  }

  #append(run: string, head: number, entries: readonly StoredEntry[]): void {
    const known = this.#runs.get(run) ?? this.#newRun(run);
    if (head !== known.fold.entries.length && entries.length > 0)
      this.#violated("I3", `entries of run ${run} went to ${head}, its journal had ${known.fold.entries.length}`);
    const inherited = inheritedIn(entries);
    for (const [i, entry] of entries.entries()) {
      if (entry.seq !== known.fold.entries.length)
        this.#violated("I3", `entry ${entry.seq} of run ${run} stands at ${known.fold.entries.length}`);
      if (known.fold.end !== null)
        this.#violated("I16", `${entry.type} of run ${run} was recorded after its end, ${known.fold.end}`);
      const due = entry.type === "timer.fired" && i >= inherited ? known.fold.dueOf(entry.key as string) : null;
      if (i >= inherited) this.#inTime(known.fold, entry);
      this.#take(known, entry, i < inherited);
      if (due !== null) this.#fired(known, entry, due);
    }
    this.deeds.batchOver(run);
  }

  /** I13: no body begins before its time. */
  #inTime({ id, notBefore }: FoldedRun, { type, at }: StoredEntry): void {
    const isOfBody = !BEFORE_BODY.has(type) && type !== "run.cancelling" && type !== "run.cancelled";
    if (this.#ports.areClocksRight && isOfBody && notBefore !== null && at < notBefore)
      this.#violated("I13", `run ${id} had begun with ${type}, ${notBefore - at} ms too early`);
  }

  /** I13: nothing fires before its time. I14: no timeout beats a signal that was there in time. */
  #fired({ fold }: KnownRun, { key, at }: StoredEntry, due: number): void {
    if (at < due) this.#violated("I13", `timer ${key} of run ${fold.id} fired ${due - at} ms too early`);
    const name = (key as string).split("/").at(-1)?.split("#")[0];
    const stored = this.#ports.disk.tables.runs.get(fold.id);
    if (stored === undefined || !this.#ports.areClocksRight) return;
    const isOpen = [...stored.waits.values()].some((wait) => wait.kind === "signal" && wait.name === name);
    // Times are whole milliseconds: of a signal in the very one in which the time was over, nobody can tell whether it came first.
    const inTime = stored.inbox.find(
      ({ row, isConsumed }) => row.name === name && row.at < due && !isConsumed && !this.signals.has(fold.id, row.id),
    );
    if (inTime !== undefined && !isOpen)
      this.#violated("I14", `run ${fold.id} gave up wait ${key}, though signal ${inTime.row.id} had come in time`);
  }

  #newRun(run: string): KnownRun {
    const fold = new FoldedRun(run);
    const names = new OutsideNames(run);
    const known: KnownRun = { fold, input: null, steps: new Map(), names };
    this.#runs.set(run, known);
    this.#unfinished++;
    return known;
  }

  #take(known: KnownRun, stored: StoredEntry, isInherited: boolean): void {
    const entry = known.fold.take(stored);
    known.names.take(entry);
    this.deeds.took(known.fold.id, entry, isStart(entry) ? known.names.of(entry.key as string) : null, isInherited);
    if (isInherited) this.#inherit(known, entry);
    else this.#look(known, entry);
  }

  /** What happened to another run has not happened again; but its steps are over, and its signals received. */
  #inherit(known: KnownRun, entry: Entry): void {
    const { type, key, payload } = entry;
    const step = key === null ? "" : known.names.of(key);
    if (type === "run.started") known.input = (payload as RunStarted).input as ProgramInput;
    if (isStart(entry)) known.steps.set(step, { attempts: (payload as StepStarted)?.attempt ?? 1, isOver: false });
    const isFinal = type === "step.failed" && (payload as StepFailed).retryAt === null;
    if (isStepSuccess(type) || isFinal) this.#stepOver(known, entry);
    if (type === "checkpoint") this.#saved(known, entry as Entry<Checkpoint>);
    if (type === "signal.received") this.signals.inherited(known.fold.id, (payload as SignalReceived).id);
  }

  #look(known: KnownRun, entry: Entry): void {
    const { id } = known.fold;
    switch (entry.type) {
      case "run.started":
        known.input = (entry.payload as RunStarted).input as ProgramInput;
        return;
      case "run.continued":
        return this.#continued(known, entry.payload as Continued);
      case "version.changed":
        return this.#ports.sometimes("newer code took a run over");
      case "step.started":
      case "effect.planned":
        return this.#stepStarted(known, entry);
      case "step.completed":
      case "effect.executed":
      case "effect.compensated":
        return this.#stepOver(known, entry);
      case "step.failed":
        return (entry.payload as StepFailed).retryAt === null ? this.#stepOver(known, entry) : undefined;
      case "checkpoint":
        return this.#saved(known, entry as Entry<Checkpoint>);
      case "timer.fired":
        return this.#ports.sometimes(entry.payload === null ? "a timer fired" : "a wait timed out");
      case "signal.received":
        return this.signals.received(id, (entry.payload as SignalReceived).id);
      case "run.cancelling":
        return this.#cancelling(known, entry.payload as Cancelling);
      case "run.parked":
        return this.#parked(id, entry.payload as Parked);
      case "run.succeeded":
        return this.#succeeded(known, entry.payload);
      case "run.failed":
        return this.#failed(known, entry.payload as Ended);
      case "run.cancelled":
        return this.#cancelled(known);
      default:
    }
  }

  #continued(known: KnownRun, { replaces, input }: Continued): void {
    if (!replaces) return this.#ports.sometimes("a run continued");
    known.input = input as ProgramInput;
    this.#ports.sometimes("a start became part of a burst");
  }

  #stepStarted(known: KnownRun, { key, payload }: Entry): void {
    const step = known.names.of(key as string);
    const attempt = (payload as StepStarted)?.attempt ?? 1;
    const record = known.steps.get(step);
    if (record?.isOver) this.#violated("I6", `step ${step} was started again after its outcome`);
    if ((payload as { rerun?: true } | null)?.rerun === true) {
      this.reruns++;
      this.#ports.sometimes("a step was run again after a crash");
    }
    known.steps.set(step, { attempts: attempt, isOver: false });
  }

  #stepOver(known: KnownRun, { key, type }: Entry): void {
    const step = known.names.of(key as string);
    const record = known.steps.get(step);
    if (record === undefined) return this.#violated("I6", `step ${step} has an outcome and was never started`);
    if (record.isOver) this.#violated("I6", `step ${step} has two outcomes`);
    record.isOver = true;
    const isAdd = (key as string).split("/").at(-1)?.startsWith("add") === true;
    if (isAdd && type === "step.completed" && !this.#ports.ledger.hasActed(step))
      this.#violated("I1", `step ${step} is recorded as completed, but did nothing outside`);
  }

  #saved(known: KnownRun, { key, payload }: Entry<Checkpoint>): void {
    const step = known.names.of(key as string);
    const record = known.steps.get(step);
    const isStopped = known.fold.isCancelling || known.fold.isCompensating;
    const isUnderWay = record !== undefined && !record.isOver && !isStopped;
    this.deeds.saves.took(known.fold.id, step, payload, isUnderWay ? record.attempts : 0);
  }

  #parked(run: string, park: Parked): void {
    if (park.reason === "poisoned") this.#ports.sometimes("a run that died too often was parked");
    else if (!this.deeds.mayPark(park)) return this.#violated("I5", `run ${run} is parked: ${park.message}`);
    this.#ports.parked(run);
  }

  #cancelling(known: KnownRun, { cause, reason }: Cancelling): void {
    this.#ports.sometimes("a run was cancelled while it ran");
    known.isCancelledByItself = cause === "cancel" && reason.startsWith('Approval "');
  }

  #succeeded({ fold, input }: KnownRun, output: unknown): void {
    this.#unfinished--;
    if (this.#ports.disk.tables.runs.get(fold.id)?.row.cancel != null)
      this.#violated("I16", `run ${fold.id} succeeded, though its cancel was accepted before`);
    if (input === null || !isAllowedResult(input, output))
      this.#violated("I5", `run ${fold.id} ended with ${JSON.stringify(output)}, which its program cannot give`);
  }

  #failed({ fold, input }: KnownRun, { error }: Ended): void {
    this.#unfinished--;
    const isIncomplete = hasCode(error, "compensation_incomplete");
    if (this.#ports.disk.tables.runs.get(fold.id)?.row.cancel != null && !isIncomplete)
      this.#violated("I16", `run ${fold.id} failed, though its cancel was accepted before`);
    // What was done under an approval and undone, a retry may not do again under it.
    const isRefused = hasCode(error, "approval_mismatch") && inheritedIn(fold.entries) > 0;
    if (input === null || (!isRefused && !isAllowedFailure(input, error)))
      this.#violated("I5", `run ${fold.id} failed: ${String(error)}`);
    this.#ports.sometimes("a run failed");
  }

  #cancelled({ fold, isCancelledByItself }: KnownRun): void {
    this.#unfinished--;
    if (this.#ports.disk.tables.runs.get(fold.id)?.row.cancel == null && isCancelledByItself !== true)
      this.#violated("I16", `run ${fold.id} is cancelled, though nobody asked for it`);
  }

  #mailed(message: Message, delivery: Delivery): void {
    if (message.kind === "cancel" || message.kind === "decision") return;
    if (message.kind === "approval") return delivery === "delivered" ? this.deeds.mailed(message) : undefined;
    this.signals.mailed(message, delivery);
  }

  /** I4: rows, waits and alarms are folds of the journal. */
  #compare(run: string): void {
    const stored = this.#ports.disk.tables.runs.get(run);
    const known = this.#runs.get(run);
    if (stored === undefined || known === undefined) return;
    const fault = known.fold.faultOf(stored);
    if (fault !== null) this.#violated("I4", `run ${run} after ${known.fold.entries.at(-1)?.type}: ${fault}`);
    this.deeds.budgets.compare(run);
  }

  /** I10: everything unfinished has somebody or something that moves it on. */
  #noOrphans(): void {
    const [orphan] = orphans(this.#ports.disk.tables);
    if (orphan !== undefined) this.#violated("I10", `run ${orphan.run} (${orphan.state}) is an orphan: ${orphan.why}`);
  }

  /** I6, I8, I9, I16, P13, P37: a step's function begins. */
  began(life: Life, run: string, { key, attempt }: StepInfo): void {
    const { disk } = this.#ports;
    const known = this.#runs.get(run);
    const stored = disk.tables.runs.get(run);
    const record = known?.steps.get(key);
    const what = `attempt ${attempt} of step ${key} began in ${life.name}`;
    if (known === undefined || stored === undefined || record === undefined || record.attempts < attempt)
      return this.#violated("P13", `${what} before that was recorded`);
    if (record.isOver) return this.#violated("I6", `${what} after its outcome was recorded`);
    if (record.attempts > attempt) return this.#violated("I6", `${what} after attempt ${record.attempts} was recorded`);
    if (known.fold.end !== null) return this.#violated("I16", `${what} after the run's end`);
    const isUndo = key.endsWith("/undo");
    if (known.fold.isCompensating !== isUndo) return this.#violated("CO2", `${what}, and the run's state is another`);
    if (known.fold.isCancelling && !isUndo) return this.#violated("I16", `${what} after the run was cancelled`);
    const { owner, slot } = stored.row;
    if (this.#ports.slots !== null && slot === null) return this.#violated("I18", `${what} without a slot`);
    const worker = owner === null ? undefined : disk.tables.workers.get(owner);
    if (worker?.worker.process.pid !== life.pid)
      return this.#violated("I9", `${what}, but the run belongs to ${worker?.worker.name ?? "nobody"}`);
    // A fork begins what it has inherited under the same key as its source.
    if (this.#began.has(`${run} ${key}@${attempt}`)) return this.#violated("I6", `${what} a second time`);
    this.#began.add(`${run} ${key}@${attempt}`);
  }

  /** A power cut took acknowledged writes: what is known now is what the store still has. */
  forgetLost(): void {
    const { runs } = this.#ports.disk.tables;
    this.#runs.clear();
    this.deeds.forget();
    this.forks.forget();
    this.signals.forget();
    this.#began.clear();
    this.#unfinished = 0;
    for (const id of [...this.#cancelledThere]) if (!runs.get(id)?.row.endedAt) this.#cancelledThere.delete(id);
    for (const [id, stored] of runs) {
      const known = this.#newRun(id);
      const inherited = inheritedIn(stored.journal);
      for (const [i, entry] of stored.journal.entries()) this.#take(known, entry, i < inherited);
      this.deeds.batchOver(id);
    }
    this.signals.forgetLost((run) => this.endOf(run) !== null);
  }

  /** At the end: the store has what was applied, all of it and nothing else (I1, I3). */
  atEnd(): void {
    const { runs } = this.#ports.disk.tables;
    for (const [id, { fold }] of this.#runs) {
      const journal = runs.get(id)?.journal ?? [];
      const differs = fold.entries.findIndex(
        (entry, i) => entry.hash !== journal[i]?.hash || entry.data !== journal[i]?.data,
      );
      if (differs >= 0 || journal.length !== fold.entries.length)
        this.#violated("I1", `the journal of run ${id} is no longer what was applied, from entry ${differs} on`);
      this.deeds.atRest(id, journal);
    }
    this.forks.atEnd();
    for (const id of runs.keys()) if (!this.#runs.has(id)) this.#violated("I3", `run ${id} came from nowhere`);
  }

  /** The journal of a run as it was applied. */
  journalOf(run: string): readonly StoredEntry[] {
    return this.#runs.get(run)?.fold.entries ?? [];
  }

  inputOf(run: string): ProgramInput | null {
    return this.#runs.get(run)?.input ?? null;
  }

  /** Whether its time has surely not come. */
  isPutOff(run: string): boolean {
    const { fold } = this.#runs.get(run) ?? {};
    const cancel = this.#ports.disk.tables.runs.get(run)?.row.cancel ?? null;
    if (fold === undefined || fold.end !== null || cancel !== null || !this.#ports.areClocksRight) return false;
    return fold.notBefore !== null && this.#ports.disk.now() < fold.notBefore;
  }

  isCancelling(run: string): boolean {
    return this.#runs.get(run)?.fold.isCancelling === true;
  }

  endOf(run: string): string | null {
    return this.#runs.get(run)?.fold.end ?? null;
  }

  ids(): string[] {
    return [...this.#runs.keys()];
  }

  #violated(invariant: string, what: string): void {
    this.#ports.violated(invariant, what);
  }
}

/** An attempt of a step or an effect begins with it. */
function isStart({ type }: Entry): boolean {
  return type === "step.started" || type === "effect.planned";
}
