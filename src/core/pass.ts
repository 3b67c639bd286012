// A pass
// One stay of a run in memory: replays the recorded journal through the body, then goes on live, until the run ends or waits.
// It writes only into its draft; the committer takes batches from it and tells what became of them.
//
//   PA1. One outcome per turn. It joins the journal when its turn begins, the calls it causes right after it (P2).
//   PA2. A call is matched against the recorded one at its place, or the pass ends as diverged. It is never repaired (P3).
//   PA3. A call outside a turn is held in replay, and live refused unless nothing else is pending (P4).
//   PA4. At most one batch is in flight; what follows waits in the draft (P15).
//   PA5. After the end, a park or a suspension has joined, nothing else does (P12).
import { messageOf, PawlError, readProperty } from "../base/errors.ts";
import { type SeededRandom, seededRandom } from "../base/random.ts";
import { BodyContext } from "./body-context.ts";
import { type Call, rejectCall } from "./call.ts";
import { callSite } from "./call-site.ts";
import { type Divergence, driftOf, foreignAwait, stallOf } from "./divergence.ts";
import { type Batch, Draft, encodePayload } from "./draft.ts";
import { type BodyResult, cancelError, continueRun, endRun, parkRun, recordCancel, runEnded } from "./endings.ts";
import type { Frame } from "./host.ts";
import { recordCall } from "./issue.ts";
import type { Cancelling, Continued, Entry, OutcomeType, Parked, Resolved, RunStarted } from "./journal.ts";
import { KeyScope } from "./key-scope.ts";
import { LIMITS } from "./limits.ts";
import { Mailbox, type MailState } from "./mailbox.ts";
import { Notes } from "./notes.ts";
import { OpenCalls } from "./open-calls.ts";
import { deliverOutcome } from "./outcomes.ts";
import { Outgoing } from "./outgoing.ts";
import type { PassEnd, PassInput, PassPorts } from "./pass-ports.ts";
import { recoverSteps } from "./recovery.ts";
import { type HeldCall, Replay } from "./replay.ts";
import { lingers, setAlarm, suspension } from "./rest.ts";
import { Steps } from "./steps.ts";
import type { InboxRow, RunRow } from "./store.ts";
import type { TurnTaker } from "./turns.ts";
import { recordWakeup } from "./wakeup-delivery.ts";
import { nextWakeup, READ_INBOX, type Wakeup } from "./wakeups.ts";
import type { Workflow } from "./workflow.ts";

export class Pass implements TurnTaker {
  readonly id: string;
  readonly row: RunRow;
  readonly workflow: Workflow;
  readonly generation: number;
  readonly ports: PassPorts;
  readonly frame: Frame;
  readonly draft: Draft;
  readonly calls: OpenCalls = new OpenCalls();
  readonly notes: Notes;
  readonly steps: Steps;
  readonly mailbox: Mailbox;
  /** Time of the last delivered outcome (P8). */
  now: number;
  cancelling: Cancelling | null = null;
  readonly #replay: Replay;
  readonly #outgoing: Outgoing;
  #controller: AbortController | null = null;
  #seed: string;
  #chance: SeededRandom | null = null;
  #isLive = false;
  #isOver = false;
  #isDraining = false;
  #hasForgotten = false;
  #begunWith = 0;
  #hasProgressed = false;
  #turnOpen = false;
  #requested = false;
  #bodyResult: BodyResult | null = null;
  #hasEndedInTurn = false;
  #final: PassEnd | null = null;
  #progress: string | null = null;
  #forgetWatchdog: () => void = forgetNothing;

  constructor(input: PassInput, ports: PassPorts) {
    this.id = input.row.id;
    this.row = input.row;
    this.workflow = input.workflow;
    this.generation = input.generation;
    this.ports = ports;
    const scope = new KeyScope("");
    this.frame = { where: "body", run: this.id, pass: this, scope, guard: input.workflow.definition.guard };
    this.draft = input.draft ?? new Draft(this.id, input.chain, ports.host, ports.codec);
    this.#outgoing = new Outgoing(this.draft);
    const isLenient = input.workflow.definition.onMissing === "execute";
    this.#replay = new Replay(input.entries, isLenient, this.calls, this);
    this.notes = new Notes(this, this.#replay);
    this.mailbox = new Mailbox(input.mail, input.readAt);
    this.steps = new Steps(this);
    this.#seed = this.id;
    this.now = input.row.createdAt;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.cancelling !== null) this.#controller.abort(cancelError(this.id, this.cancelling));
    return this.#controller.signal;
  }

  /** Past the last recorded entry. */
  get isLive(): boolean {
    return this.#isLive;
  }

  /** Nothing may join the journal any more (PA5). */
  get isClosed(): boolean {
    return this.#isOver || this.#final !== null;
  }

  /** A cancel or the deadline has its turn next: nothing begins before it (I16, E-8). */
  get isStopping(): boolean {
    if (this.cancelling !== null) return true;
    return this.mailbox.cancel !== null || (this.row.deadline !== null && this.ports.clock.now() >= this.row.deadline);
  }

  /** Its last word is a park: it will wait for a person. */
  get isParking(): boolean {
    return this.#final?.kind === "parked";
  }

  /** Nothing happens in this process any more: the run was lost, or its last commit is durable. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** What keys are derived from at this point: a fork has its own from its fork point on (P10). */
  get seed(): string {
    this.#replay.cursor.peek();
    return this.#replay.forkSeed ?? this.#seed;
  }

  get chance(): SeededRandom {
    this.#replay.cursor.peek();
    this.#chance ??= seededRandom(this.#seed);
    return this.#chance;
  }

  get inFlight(): Batch | null {
    return this.#outgoing.inFlight;
  }

  get durableHead(): number {
    return this.#outgoing.durableHead;
  }

  /** Whether an outcome was recorded in this pass (P28). */
  get hasProgressed(): boolean {
    return this.#hasProgressed;
  }

  /** Nothing of it runs or waits for a turn or a commit. */
  get isQuiet(): boolean {
    if (this.#isOver) return true;
    const isStill = !this.#turnOpen && !this.#requested && this.steps.isQuiet;
    return isStill && this.#outgoing.isEmpty;
  }

  /** It waits in memory for something that is not this process's doing. */
  get isResting(): boolean {
    return this.#isOver || (this.isQuiet && this.#isIdle() && this.#wakeup() === null);
  }

  begin(): void {
    this.#begunWith = this.draft.size;
    this.#replayOn();
  }

  /** What runs may finish and be recorded; nothing new begins, so that the run can be handed back. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Forgets the run: somebody else owns it, or this process stops. */
  drop(reason: PawlError): void {
    if (this.#isOver) return;
    this.#close();
    this.steps.abortAll(() => reason);
  }

  // Turns

  openTurn(): void {
    this.#requested = false;
    if (this.isClosed || this.#hasForgotten) return;
    this.#turnOpen = true;
    try {
      if (this.#isLive) this.#deliverNext();
      else this.#deliverRecorded();
    } catch (error) {
      this.#break(error);
    }
  }

  closeTurn(): void {
    this.#turnOpen = false;
    if (this.#isLive) this.evaluate();
    else this.guarded(() => this.#replayOn());
  }

  guarded(part: () => void): void {
    try {
      part();
    } catch (error) {
      this.#break(error);
    }
  }

  /** Whatever a journal holds or a codec does, it may stop its own run but not the worker. */
  #break(error: unknown): void {
    // A draft that was cut short must not be written.
    if (this.#isLive || this.draft.size > this.#begunWith) return this.ports.broken(this, error);
    const message = `Run ${this.id} cannot go on: ${messageOf(error)} Restore its journal, or fork it before the entry in question.`;
    const detail = { error: messageOf(error), code: readProperty(error, "code") ?? null };
    this.park({ reason: "corrupted_journal", message, choices: ["retry", "cancel"], detail });
  }

  /** Asks for one turn; once is enough. */
  requestTurn(): void {
    if (this.#requested || this.#turnOpen) return;
    this.#requested = true;
    this.ports.turns.request(this);
  }

  // Issuing calls

  /** Issues a call of the body: matched in replay, recorded when it is new, refused when it betrays a foreign await. */
  issue(call: Call): Promise<unknown> {
    if (this.isClosed) {
      this.#tellOfLateCall(call);
      return call.promise;
    }
    if (this.cancelling !== null) rejectCall(call, cancelError(this.id, this.cancelling));
    else if (this.#turnOpen) this.#placeInTurn(call);
    else this.#issueOutsideTurn(call, callSite());
    return call.promise;
  }

  #placeInTurn(call: Call): void {
    try {
      this.#place(call, null);
    } catch (error) {
      this.#break(error);
    }
  }

  /** Only a foreign await in a parallel branch can outlast a suspension: what it leads to is lost, and somebody should know (P4). */
  #tellOfLateCall(call: Call): void {
    if (this.#final?.kind !== "suspended") return;
    const { parked } = foreignAwait(this.id, call, this.calls.all(), callSite());
    this.ports.log.error(`${parked.message} The run was suspended meanwhile, and the call is lost.`, { run: this.id });
  }

  #issueOutsideTurn(call: Call, site: string): void {
    if (this.#replay.cursor.peek() !== null) {
      this.#replay.hold({ call, site, burst: this.#replay.burst(this.ports.host) });
      this.#replayOn();
    } else if (this.calls.size > 0 || this.steps.hasOutcome) this.#refuseForeign(call, site);
    else this.#inBurst(() => this.#place(call, site));
  }

  #refuseForeign(call: Call, site: string): void {
    const { error, parked } = foreignAwait(this.id, call, this.calls.all(), site);
    rejectCall(call, error);
    this.park(parked);
  }

  /** What follows in the same microtasks belongs together: it is one turn, though nobody opened it. */
  #inBurst(place: () => void): void {
    this.#turnOpen = true;
    this.guarded(place);
    this.ports.host.tick(() => this.closeTurn());
  }

  #place(call: Call, site: string | null): void {
    const placed = this.#replay.place(call);
    if (placed === "recorded") return;
    if (placed !== "new") return this.#diverge({ ...placed, site: site ?? callSite() });
    if (!this.#isDraining) this.#record(call);
    else this.#putOff(call);
  }

  /** Nothing begins any more. The last calls are forgotten; one that outcomes will follow is recorded, or replay would miss it (P3). */
  #putOff(call: Call): void {
    if (this.calls.areAllWaiting) {
      this.#hasForgotten = true;
      return;
    }
    this.calls.add(call);
    recordCall(this, call);
    if (call.type === "step.started") this.steps.putOff(call);
    this.ports.dirty(this);
  }

  #record(call: Call): void {
    this.calls.add(call);
    recordCall(this, call);
    if (call.type === "step.started") this.steps.startBehindBarrier(call);
    this.ports.dirty(this);
  }

  // Replay

  #replayOn(): void {
    if (this.isClosed || this.#turnOpen) return;
    const next = this.#replay.cursor.peek();
    if (next === null) return this.#goLive();
    // The end joins in the turn that leads to it: only a cancel that overtook it can follow (P19).
    if (this.#hasEndedInTurn && next.entry.type !== "run.cancelling")
      return this.#diverge({ recorded: next.entry, issued: null, site: null });
    if (next.kind !== "call") return this.requestTurn();
    const held = this.#replay.takeHeld(next.entry);
    if (held.length > 0) return this.#placeTogether(held);
    if (this.#bodyResult !== null) return this.#diverge({ recorded: next.entry, issued: null, site: null });
    this.#watch(next.entry);
  }

  /** A body that never issues a recorded call may be slow in something of its own, but not for ever (P3). */
  #watch(recorded: Entry): void {
    this.#forgetWatchdog();
    this.#forgetWatchdog = this.ports.leaseClock.after(LIMITS.replayStallMs, () => {
      if (this.#replay.cursor.peek()?.entry === recorded) this.park(stallOf(this.id, recorded));
    });
  }

  #deliverRecorded(): void {
    this.#forgetWatchdog();
    const next = this.#replay.cursor.peek();
    if (next === null || next.kind === "call") return;
    const { entry } = next;
    if (next.kind === "end") return this.#diverge({ recorded: entry, issued: null, site: null });
    this.#replay.cursor.pass();
    this.#replay.cursor.openWindow();
    this.now = entry.at;
    const isAwaited = this.#deliver(entry.type as OutcomeType, entry.key, entry.payload);
    if (!isAwaited) this.#diverge({ recorded: entry, issued: null, site: null });
  }

  #diverge(divergence: Divergence): void {
    this.park(driftOf(this.id, divergence));
  }

  reseed(seed: string): void {
    this.#seed = seed;
    this.#chance = null;
  }

  #goLive(): void {
    this.#isLive = true;
    this.#forgetWatchdog();
    if (!this.draft.isEmpty) this.ports.dirty(this);
    if (this.#bodyResult !== null) return this.#end(this.#bodyResult);
    if (this.#isDraining) return;
    recoverSteps(this, this.#replay.takeInterrupted());
    if (this.#replay.hasHeld) return this.#releaseHeld();
    this.evaluate();
  }

  /** Calls that were made together pass together; what was made elsewhere meets them as pending. */
  #releaseHeld(): void {
    if (this.calls.size === 0 && !this.steps.hasOutcome) this.#placeTogether(this.#replay.takeBurst());
    const [next] = this.isClosed ? [] : this.#replay.takeBurst();
    if (next !== undefined) this.#refuseForeign(next.call, next.site);
  }

  #placeTogether(held: readonly HeldCall[]): void {
    this.#inBurst(() => {
      for (const { call, site } of held) if (!this.isClosed) this.#place(call, site);
    });
  }

  // Going on live

  /** Looks for the next thing to do: a turn, a retry that is due, or nothing, which ends in a suspension. */
  evaluate(): void {
    if (!this.#isLive || this.#turnOpen || this.isClosed || this.#hasForgotten) return;
    try {
      this.#evaluate();
    } catch (error) {
      this.#break(error);
    }
  }

  #evaluate(): void {
    if (this.#replay.hasInterrupted && !this.#isDraining) recoverSteps(this, this.#replay.takeInterrupted());
    if (this.#replay.hasFound || this.steps.hasOutcome || this.#wakeup() !== null) return this.requestTurn();
    if (!this.#isDraining) this.steps.startDueRetries();
    if (this.#isIdle() && !lingers(this)) this.ports.dirty(this);
    else setAlarm(this);
  }

  #deliverNext(): void {
    const wakeup = this.#wakeup();
    if (wakeup === "cancel" || wakeup === "deadline")
      return this.#delivered("run.cancelling", null, recordCancel(this, wakeup));
    const found = this.#replay.takeFound();
    if (found !== undefined) {
      this.now = Math.max(this.now, found.at);
      this.#deliver(found.type as OutcomeType, found.key, found.payload);
      return;
    }
    const outcome = this.steps.takeOutcome();
    if (outcome !== undefined) {
      const { call, type, text, payload } = outcome;
      this.draft.appendText(this.ports.clock.now(), type, call.key, text);
      this.#delivered(type, call.key, payload);
    } else if (wakeup !== null) {
      const recorded = recordWakeup(this, wakeup);
      if (recorded !== null) this.#delivered(recorded.type, recorded.key, recorded.payload);
    }
  }

  #delivered(type: OutcomeType, key: string | null, payload: unknown): void {
    this.now = this.draft.at;
    this.#hasProgressed = true;
    this.#deliver(type, key, payload);
    this.ports.dirty(this);
  }

  #wakeup(): "cancel" | "deadline" | Wakeup | null {
    if (this.cancelling !== null) return null;
    if (this.mailbox.cancel !== null) return "cancel";
    if (this.row.deadline === null && !this.calls.hasWaits) return null;
    const now = this.ports.clock.now();
    if (this.row.deadline !== null && now >= this.row.deadline) return "deadline";
    if (!this.calls.hasWaits) return null;
    const { rows, readAt } = this.mailbox;
    const wakeup = nextWakeup({ calls: this.calls.waits(), inbox: rows, now, inboxReadAt: readAt });
    if (wakeup !== READ_INBOX) return wakeup;
    this.#askForMail();
    return null;
  }

  #askForMail(): void {
    if (this.mailbox.isBeingRead) return;
    this.mailbox.isBeingRead = true;
    this.ports.readMail(this);
  }

  /** What the store says of the run's inbox, counter and cancel, read at store time `readAt`. */
  mail(mail: MailState, readAt: number): void {
    this.mailbox.update(mail, readAt);
    this.evaluate();
  }

  /** A person's decision takes effect: it is recorded in the commit that acts on it. */
  resolved(row: InboxRow, decision: Resolved): void {
    this.draft.append(this.ports.clock.now(), "run.resolved", null, decision);
    this.draft.wait({ close: "decision" });
    this.mailbox.consume(row, this.draft);
    this.ports.dirty(this);
  }

  /** False for an outcome that no open call is waiting for. */
  #deliver(type: OutcomeType, key: string | null, payload: unknown): boolean {
    if (type === "run.started") {
      this.reseed((payload as RunStarted).seed);
      this.#startBody((payload as RunStarted).input);
    } else if (type === "run.continued") {
      const continued = payload as Continued;
      this.reseed(continued.seed ?? `${this.id}.${continued.generation}`);
      this.notes.inherit(continued);
      this.#startBody(continued.input);
    } else if (type === "run.cancelling") this.#cancelled(payload as Cancelling);
    else return deliverOutcome(this.id, this.calls, type, key, payload);
    return true;
  }

  #cancelled(cancelling: Cancelling): void {
    this.cancelling = cancelling;
    const error = cancelError(this.id, cancelling);
    this.steps.forgetOutcomes();
    this.calls.rejectAll(error);
    this.#controller?.abort(error);
    if (this.#bodyResult !== null && this.#isLive) return this.#end(this.#bodyResult);
    // A body that does not end after its cancel is closed without it, so that cancelling always ends.
    this.#forgetWatchdog = this.ports.leaseClock.after(LIMITS.cancelGraceMs, () =>
      this.guarded(() => this.#end({ ok: false, error })),
    );
  }

  // The body

  #startBody(input: unknown): void {
    const { handler } = this.workflow.definition;
    const body = this.ports.host.enter(this.frame, async () => handler(new BodyContext(this), input));
    body.then(
      (value) => this.#bodySettled({ ok: true, value }),
      (error: unknown) => this.#bodySettled({ ok: false, error }),
    );
  }

  #bodySettled(result: BodyResult): void {
    if (this.isClosed) return;
    this.#bodyResult = result;
    this.#hasEndedInTurn = this.#turnOpen;
    this.guarded(() => {
      if (this.#replay.cursor.peek() === null) this.#end(result);
      else if (!this.#turnOpen) this.#replayOn();
    });
  }

  #end(result: BodyResult): void {
    if (this.isClosed) return;
    const unfinished = this.steps.running;
    if (unfinished.length > 0 && this.cancelling === null) {
      const message = `Run ${this.id} ended while steps were still running: ${unfinished.join(", ")}. Their results are dropped; await them.`;
      this.ports.log.warn(message, { run: this.id });
    }
    this.#isLive = true;
    this.#finish(endRun(this, result), () => runEnded(this.id));
  }

  /** Ends this generation; the next one starts in a pass of its own. */
  continueAs(input: unknown): void {
    if (this.isClosed) return;
    const next = this.#replay.cursor.peek();
    if (next !== null) return this.#diverge({ recorded: next.entry, issued: null, site: callSite() });
    this.#finish(continueRun(this, input), () => runEnded(this.id));
  }

  park(parked: Parked): void {
    if (this.isClosed) return;
    const error = () => new PawlError("run_parked", parked.message, { fields: { run: this.id } });
    this.#finish(parkRun(this, parked), error);
    this.ports.log.error(parked.message, { run: this.id, reason: parked.reason });
  }

  #finish(final: PassEnd, why: () => PawlError): void {
    this.#forgetWatchdog();
    this.#final = final;
    this.draft.onDurable(() => this.steps.abortAll(why));
    this.ports.dirty(this);
  }

  /** Latest progress: written with the next commit, and by itself at most every so often. */
  progress(value: unknown): void {
    // What cannot be recorded is refused in replay as well, or the body would take another way there.
    const text = encodePayload(value, "progress");
    if (!this.#isLive || this.isClosed) return;
    const isFirst = this.#progress === null;
    this.#progress = text;
    if (isFirst) this.ports.leaseClock.after(LIMITS.progressEveryMs, () => this.ports.dirty(this));
  }

  /** Runs `fn` once everything that led here is durable; never in replay (P13). */
  whenDurable(fn: () => void): void {
    if (this.#isOver || this.#replay.cursor.peek() !== null) return;
    if (this.#outgoing.isEmpty) fn();
    else this.draft.onDurable(fn);
  }

  // Suspension and commits

  #isIdle(): boolean {
    if (
      !this.#isLive ||
      this.#hasForgotten ||
      this.calls.size === 0 ||
      this.#bodyResult !== null ||
      this.cancelling !== null
    )
      return false;
    if (this.#turnOpen || this.#requested || this.steps.hasOutcome || this.mailbox.isBeingRead) return false;
    return this.calls.areAllWaiting;
  }

  /** What the committer is to write now, or `null` for nothing. */
  take(): Batch | null {
    return this.#isOver ? null : this.#outgoing.take(this);
  }

  nextBatch(): Batch | null {
    if (this.#progress !== null) {
      this.draft.row({ progress: this.#progress });
      this.#progress = null;
    }
    if (!this.isClosed && this.#isIdle()) {
      if (this.#wakeup() === null && !lingers(this)) {
        this.#final = { kind: "suspended" };
        return this.draft.take({ ifWake: this.mailbox.wake, row: suspension(this) });
      }
      // Its time has come, or nearly, since it asked to be suspended: it goes on in memory.
      this.evaluate();
    }
    return this.draft.isEmpty ? null : this.draft.take();
  }

  /** The batch is durable: what waited for it may happen. */
  applied(): void {
    const batch = this.#outgoing.land();
    if (batch === null) return;
    for (const fn of batch.after) fn();
    if (!this.#outgoing.isEmpty) this.ports.dirty(this);
    else if (this.#final !== null) {
      this.#close();
      this.ports.over(this, this.#final);
    }
  }

  /** Mail came before the suspension, or a cancel before the end: nothing was applied, and the run goes on from there. */
  overtaken(why: "wake" | "cancel"): void {
    const batch = this.#outgoing.land();
    this.#final = null;
    if (batch === null) return;
    if (why === "cancel") this.draft.reopen(batch);
    else if (batch.withoutSuspension !== null) {
      this.#outgoing.offerAgain({ ...batch, commit: batch.withoutSuspension, withoutSuspension: null });
    }
    this.#askForMail();
    this.ports.dirty(this);
  }

  /** The store has nothing of the batch in flight: the same bytes again (P17). */
  offerAgain(): void {
    const batch = this.#outgoing.land();
    if (batch !== null) this.#outgoing.offerAgain(batch);
    this.ports.dirty(this);
  }

  #close(): void {
    this.#isOver = true;
    this.ports.alarms.clear(this);
    this.#forgetWatchdog();
  }
}

function forgetNothing(): void {}
