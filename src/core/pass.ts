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
import type { SeededRandom } from "../base/random.ts";
import { Body, mayFollowEnd } from "./body.ts";
import { type Call, rejectCall } from "./call.ts";
import { callSite } from "./call-site.ts";
import { deliverNext } from "./deliver-next.ts";
import { type Divergence, driftOf } from "./divergence.ts";
import { type Batch, Draft } from "./draft.ts";
import { type DryCalls, dryCallsIn } from "./dry.ts";
import { type BodyResult, cancelError, continuedText, continueRun, endRun, parkRun, runEnded } from "./endings.ts";
import { issueOutsideTurn, placeTogether, releaseHeld, tellOfLostCall } from "./foreign-calls.ts";
import type { Frame } from "./host.ts";
import { recordCall } from "./issue.ts";
import type { Cancelling, OutcomeType, Parked, Resolved } from "./journal.ts";
import { KeyScope } from "./key-scope.ts";
import { Mailbox, type MailState } from "./mailbox.ts";
import { Notes } from "./notes.ts";
import { OpenCalls } from "./open-calls.ts";
import { Outgoing } from "./outgoing.ts";
import type { PassEnd, PassInput, PassPorts } from "./pass-ports.ts";
import { askForMail, wakeupOf } from "./pass-wakeup.ts";
import { type Pins, pinsOf } from "./pins.ts";
import { Progress } from "./progress.ts";
import { recoverSteps } from "./recovery.ts";
import type { Redactor } from "./redactor.ts";
import { Replay } from "./replay.ts";
import { lingers, setAlarm, suspension } from "./rest.ts";
import { Seeds } from "./seeds.ts";
import { Steps } from "./steps.ts";
import type { InboxRow, RunRow } from "./store.ts";
import type { TurnTaker } from "./turns.ts";
import { tellOfUnfinished } from "./unfinished.ts";
import { Watchdog } from "./watchdog.ts";
import type { Workflow } from "./workflow.ts";

export class Pass implements TurnTaker {
  readonly id: string;
  readonly row: RunRow;
  readonly workflow: Workflow;
  readonly generation: number;
  readonly pins: Pins;
  /** What it does instead of acting outside; `null`: it acts. */
  readonly dry: DryCalls | null;
  readonly ports: PassPorts;
  readonly frame: Frame;
  readonly draft: Draft;
  readonly calls: OpenCalls = new OpenCalls();
  readonly notes: Notes;
  readonly steps: Steps;
  readonly mailbox: Mailbox;
  readonly body: Body;
  /** Time of the last delivered outcome (P8). */
  now: number;
  readonly replay: Replay;
  readonly redactor: Redactor | null;
  readonly #outgoing: Outgoing;
  readonly #seeds: Seeds;
  #isLive = false;
  #isOver = false;
  #isDraining = false;
  #hasForgotten = false;
  #begunWith = 0;
  /** Whether an outcome or a checkpoint was recorded in this pass (P28). */
  hasProgressed = false;
  #turnOpen = false;
  #requested = false;
  #final: PassEnd | null = null;
  // Made on demand: most runs report no progress, and most passes never wait for a recorded call.
  #progress: Progress | null = null;
  #watchdog: Watchdog | null = null;

  constructor(input: PassInput, ports: PassPorts) {
    this.id = input.row.id;
    this.row = input.row;
    this.workflow = input.workflow;
    this.generation = input.generation;
    this.pins = pinsOf(input.entries, input.workflow.definition);
    this.dry = dryCallsIn(this.id, input.entries);
    this.ports = ports;
    const scope = new KeyScope("");
    this.frame = { where: "body", run: this.id, pass: this, scope, guard: input.workflow.definition.guard };
    this.draft = input.draft ?? new Draft(this.id, input.chain, ports.host, ports.codec);
    this.redactor = ports.redaction.for(input.workflow.definition);
    this.draft.redactor = this.redactor;
    this.#outgoing = new Outgoing(this.draft);
    const isLenient = input.workflow.definition.onMissing === "execute";
    this.#seeds = new Seeds(this.id);
    this.replay = new Replay(input.entries, isLenient, this.calls, this.#seeds);
    this.notes = new Notes(this, this.replay);
    this.body = new Body(this, this.#seeds);
    this.mailbox = new Mailbox(input.mail, input.readAt);
    this.steps = new Steps(this);
    this.now = input.row.createdAt;
  }

  get cancelling(): Cancelling | null {
    return this.body.cancellation.cancelling;
  }

  get signal(): AbortSignal {
    return this.body.cancellation.signal;
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
    if (this.cancelling !== null || this.body.isCompensating) return !this.body.isCompensating;
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

  get seed(): string {
    return this.#seeds.seed(this.replay);
  }

  get chance(): SeededRandom {
    return this.#seeds.chance(this.replay);
  }

  get outgoing(): Outgoing {
    return this.#outgoing;
  }

  get durableHead(): number {
    return this.#outgoing.durableHead;
  }

  get isInTurn(): boolean {
    return this.#turnOpen;
  }

  /** Nothing of it runs or waits for a turn or a commit. */
  get isQuiet(): boolean {
    if (this.#isOver) return true;
    const isStill = !this.#turnOpen && !this.#requested && this.steps.isQuiet;
    return isStill && this.#outgoing.isEmpty;
  }

  /** It waits in memory for something that is not this process's doing. */
  get isResting(): boolean {
    return this.#isOver || (this.isQuiet && this.#isIdle() && wakeupOf(this) === null);
  }

  begin(): void {
    this.#begunWith = this.draft.size;
    this.replayOn();
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
    if (this.isClosed || this.#hasForgotten || this.draft.isHeld) return;
    this.#turnOpen = true;
    try {
      if (this.#isLive) deliverNext(this);
      else this.#deliverRecorded();
    } catch (error) {
      this.#break(error);
    }
  }

  closeTurn(): void {
    this.#turnOpen = false;
    if (this.#isLive) this.evaluate();
    else this.guarded(() => this.replayOn());
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
      if (this.#final?.kind === "suspended") tellOfLostCall(this, call);
      return call.promise;
    }
    // A branch that outlived its body: as the end closed the journal to it, so must an end that a cancel took back, or replay (P19).
    if (this.body.isDeaf) return call.promise;
    if (this.cancelling !== null) rejectCall(call, cancelError(this.id, this.cancelling));
    else if (this.#turnOpen) this.#placeInTurn(call);
    else issueOutsideTurn(this, call);
    return call.promise;
  }

  #placeInTurn(call: Call): void {
    try {
      this.place(call, null);
    } catch (error) {
      this.#break(error);
    }
  }

  /** What follows in the same microtasks belongs together: it is one turn, though nobody opened it. */
  inBurst(place: () => void): void {
    this.#turnOpen = true;
    this.guarded(place);
    this.ports.host.tick(() => this.closeTurn());
  }

  /** Matches a call, or records it as new; `site` is known for one that came from outside a turn. */
  place(call: Call, site: string | null): void {
    const placed = this.replay.place(call);
    if (placed === "recorded") return;
    if (placed !== "new") return this.#diverge({ ...placed, site: site ?? callSite() });
    // Where nothing begins any more the last calls are forgotten; one that outcomes will follow is recorded, or replay would miss it (P3).
    if (this.#isDraining && this.calls.areAllWaiting) this.#hasForgotten = true;
    else this.#record(call);
  }

  #record(call: Call): void {
    this.calls.add(call);
    recordCall(this, call);
    if (call.type === "step.started") this.#isDraining ? this.steps.putOff(call) : this.steps.startBehindBarrier(call);
    this.ports.dirty(this);
  }

  // Replay

  /** Goes on to the next recorded entry, as far as that needs nothing of the body. */
  replayOn(): void {
    if (this.isClosed || this.#turnOpen) return;
    const next = this.replay.cursor.peek();
    if (next === null) return this.#goLive();
    // The end joins in the turn that leads to it: only a cancel that overtook it can follow (P19).
    if (this.body.hasEndedInTurn && !mayFollowEnd(next.entry.type))
      return this.#diverge({ recorded: next.entry, issued: null, site: null });
    if (next.kind !== "call") return this.requestTurn();
    const held = this.replay.takeHeld(next.entry);
    if (held.length > 0) return placeTogether(this, held);
    // Also a body that has ended after a foreign await: a branch that it left alone may be slower this time.
    this.#watchdog ??= new Watchdog(this);
    this.#watchdog.watch(next.entry);
  }

  #deliverRecorded(): void {
    this.#watchdog?.forget();
    const next = this.replay.cursor.peek();
    if (next === null || next.kind === "call") return;
    const { entry } = next;
    if (next.kind === "end") return this.#diverge({ recorded: entry, issued: null, site: null });
    this.replay.cursor.pass();
    this.replay.cursor.openWindow();
    this.now = entry.at;
    const isAwaited = this.body.deliver(entry.type as OutcomeType, entry.key, entry.payload);
    if (!isAwaited) this.#diverge({ recorded: entry, issued: null, site: null });
  }

  #diverge(divergence: Divergence): void {
    this.park(driftOf(this.id, divergence));
  }

  #goLive(): void {
    this.#isLive = true;
    this.#watchdog?.forget();
    if (!this.draft.isEmpty) this.ports.dirty(this);
    if (this.body.result !== null) return this.end(this.body.result);
    if (this.body.failed !== null) return this.requestTurn();
    if (this.#isDraining) return;
    recoverSteps(this, this.replay.takeInterrupted());
    if (this.replay.hasHeld) return releaseHeld(this);
    this.evaluate();
  }

  // Going on live

  /** Looks for the next thing to do: a turn, a retry that is due, or nothing, which ends in a suspension. */
  evaluate(): void {
    if (!this.#isLive || this.#turnOpen || this.isClosed || this.#hasForgotten) return;
    try {
      this.steps.goOn();
      if (!this.draft.isHeld && !this.isClosed) this.#evaluate();
    } catch (error) {
      this.#break(error);
    }
  }

  #evaluate(): void {
    if (this.replay.hasInterrupted && !this.#isDraining) recoverSteps(this, this.replay.takeInterrupted());
    const wakeup = wakeupOf(this);
    // A cancel took the end back, and the mail will tell of it. Until then nothing joins the journal: replay ends where the body did (P19).
    if (this.body.result !== null && wakeup !== "cancel" && wakeup !== "deadline") return;
    if (this.replay.hasFound || this.steps.hasOutcome || wakeup !== null || this.body.failed !== null)
      return this.requestTurn();
    if (!this.#isDraining) this.steps.startDueRetries();
    if (this.#isIdle() && !lingers(this)) this.ports.dirty(this);
    else setAlarm(this, { retries: !this.#isDraining });
  }

  /** Hands over an outcome that has just joined the journal. */
  delivered(type: OutcomeType, key: string | null, payload: unknown): void {
    this.now = this.draft.at;
    this.hasProgressed = true;
    this.body.deliver(type, key, payload);
    this.ports.dirty(this);
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

  // Ends

  /** The body has returned or thrown. */
  bodyEnded(): void {
    const isRecorded = this.replay.cursor.peek() !== null;
    if (isRecorded && !this.#turnOpen) this.replayOn();
    if (isRecorded) return;
    if (this.body.result !== null) this.end(this.body.result);
    else this.requestTurn();
  }

  end(result: BodyResult): void {
    if (this.isClosed) return;
    if (this.cancelling === null) tellOfUnfinished(this);
    this.#isLive = true;
    this.#finish(endRun(this, result), () => runEnded(this.id));
  }

  /** Ends this generation; the next one starts in a pass of its own. */
  continueAs(input: unknown): void {
    if (this.isClosed) return;
    // What cannot be recorded is refused in replay as well, or the body would take another way there.
    const text = continuedText(this, input);
    const next = this.replay.cursor.peek();
    if (next !== null) return this.#diverge({ recorded: next.entry, issued: null, site: callSite() });
    this.#finish(continueRun(this, text), () => runEnded(this.id));
  }

  park(parked: Parked): void {
    if (this.isClosed) return;
    const error = () => new PawlError("run_parked", parked.message, { fields: { run: this.id } });
    this.#finish(parkRun(this, parked), error);
  }

  #finish(final: PassEnd, why: () => PawlError): void {
    this.#forgetTimers();
    this.#final = final;
    this.draft.onDurable(() => this.steps.abortAll(why));
    this.ports.dirty(this);
  }

  progress(value: unknown): void {
    this.#progress ??= new Progress(this);
    this.#progress.report(value);
  }

  /** Runs `fn` once everything that led here is durable; never in replay (P13). */
  whenDurable(fn: () => void): void {
    if (this.#isOver || this.replay.cursor.peek() !== null) return;
    if (this.#outgoing.isEmpty) fn();
    else this.draft.onDurable(fn);
  }

  // Suspension and commits

  #isIdle(): boolean {
    if (!this.#isLive || this.#hasForgotten || this.calls.size === 0 || this.body.isOver) return false;
    if (this.#turnOpen || this.#requested || this.steps.hasOutcome || this.mailbox.isBeingRead) return false;
    return this.calls.areAllWaiting;
  }

  /** What the committer is to write now, or `null` for nothing. */
  take(): Batch | null {
    if (this.#isOver) return null;
    try {
      return this.#outgoing.take(this);
    } catch (error) {
      this.#break(error);
      return null;
    }
  }

  nextBatch(): Batch | null {
    this.#progress?.write();
    if (!this.isClosed && this.#isIdle()) {
      if (wakeupOf(this) === null && !lingers(this)) {
        this.#final = { kind: "suspended" };
        return this.draft.take({ ifWake: this.mailbox.wake, row: suspension(this) });
      }
      // Its time has come, or nearly, since it asked to be suspended: it goes on in memory.
      this.evaluate();
    }
    return this.#isOver || this.draft.isEmpty ? null : this.draft.take();
  }

  /** The batch is durable: what waited for it may happen. */
  applied(): void {
    const batch = this.#outgoing.land();
    if (batch === null) return;
    this.ports.committed(this, batch.commit);
    for (const fn of batch.after) fn();
    this.steps.goOn();
    // What was asked for while the last batch was under way has nothing else to wait for.
    if (this.#final !== null && this.draft.size === 0) for (const fn of this.draft.takeCallbacks()) fn();
    if (!this.#outgoing.isEmpty) this.ports.dirty(this);
    else if (this.#final !== null) {
      this.#close();
      this.ports.over(this, this.#final);
    } else if (this.#outgoing.wasOffered || batch.isTransaction) this.evaluate();
  }

  /** Mail came before the suspension, or a cancel before the end: nothing was applied, and the run goes on from there. */
  overtaken(why: "wake" | "cancel"): void {
    this.#final = null;
    if (!this.#outgoing.overtaken(why)) return;
    askForMail(this);
    this.ports.dirty(this);
  }

  /** The store has nothing of the batch in flight: the same bytes again (P17). */
  offerAgain(): void {
    this.#outgoing.offerAgain();
    this.ports.dirty(this);
  }

  #close(): void {
    this.#isOver = true;
    this.ports.alarms.clear(this);
    this.#forgetTimers();
  }

  #forgetTimers(): void {
    this.#watchdog?.forget();
    this.body.cancellation.forget();
  }
}
