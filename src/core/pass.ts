// A pass
// One stay of a run in memory: replays the recorded journal through the body, then goes on live, until the run ends or waits.
// It writes only into its draft; the committer takes batches from it and tells what became of them.
//
//   PA1. One outcome per turn. It joins the journal when its turn begins, the calls it causes right after it (P2).
//   PA2. A call is matched against the recorded one at its place, or the pass ends as diverged. It is never repaired (P3).
//   PA3. A call outside a turn is held in replay, and live refused unless nothing else is pending (P4).
//   PA4. At most one batch is in flight; what follows waits in the draft (P15).
//   PA5. After the end, a park or a suspension has joined, nothing else does (P12).
import { PawlError } from "../base/errors.ts";
import { type SeededRandom, seededRandom } from "../base/random.ts";
import { Attempts } from "./attempts.ts";
import { BodyContext } from "./body-context.ts";
import { type Call, dueOf, isWaiting, rejectCall, type StepCall } from "./call.ts";
import { callSite } from "./call-site.ts";
import type { Cost } from "./context.ts";
import { Cursor } from "./cursor.ts";
import { type Divergence, describeCall, describeDivergence } from "./divergence.ts";
import { type Batch, type Chain, Draft, decodePayload, encodePayload } from "./draft.ts";
import { type BodyResult, cancelError, endRun, parkRun, runEnded } from "./endings.ts";
import type { Frame } from "./host.ts";
import { adoptRecorded, callId, matches, recordCall } from "./issue.ts";
import type {
  Cancelling,
  ChildEnded,
  Continued,
  Entry,
  Forked,
  NoteType,
  OutcomeType,
  Parked,
  Resolved,
  RunStarted,
  SignalReceived,
  StatePatched,
  StepFailed,
  StepStarted,
} from "./journal.ts";
import { LIMITS } from "./limits.ts";
import type { PassEnd, PassPorts } from "./pass-ports.ts";
import { recoverSteps, stepFailure } from "./recovery.ts";
import { isRetryable, retryDelayMs } from "./retry.ts";
import type { InboxRow, Mail, RowPatch, RunRow } from "./store.ts";
import { transition } from "./transition.ts";
import type { TurnTaker } from "./turns.ts";
import { encodeFailure } from "./values.ts";
import { recordWakeup } from "./wakeup-delivery.ts";
import { nextWakeup, type Wakeup } from "./wakeups.ts";
import type { Workflow } from "./workflow.ts";

export interface PassInput {
  readonly row: RunRow;
  readonly workflow: Workflow;
  /** The recorded entries of the current generation. */
  readonly entries: readonly Entry[];
  readonly generation: number;
  /** Where the journal ends, or will end once `draft` is written. */
  readonly chain: Chain;
  /** Entries that are not durable yet, for a run that starts on the spot. */
  readonly draft?: Draft;
  readonly mail: Pick<Mail, "wake" | "cancel" | "inbox">;
  /** Store time when the mail was read. */
  readonly readAt: number;
}

/** An outcome in hand, waiting for its turn. */
export interface Outcome {
  readonly call: Call;
  readonly type: OutcomeType;
  readonly text: string | null;
  readonly payload: unknown;
}

export class Pass implements TurnTaker {
  readonly id: string;
  readonly row: RunRow;
  readonly workflow: Workflow;
  readonly generation: number;
  readonly ports: PassPorts;
  readonly frame: Frame;
  readonly draft: Draft;
  readonly calls: Map<string, Call> = new Map();
  readonly state: Map<string, unknown> = new Map();
  readonly costs: Map<string, number> = new Map();
  readonly #cursor: Cursor;
  readonly #attempts: Attempts;
  readonly #recorded = new Set<Call>();
  readonly #held: { readonly call: Call; readonly at: string }[] = [];
  readonly #ready: Outcome[] = [];
  readonly #consumed = new Set<string>();
  readonly #controller = new AbortController();
  #seed: string;
  #chance: SeededRandom;
  now: number;
  inbox: InboxRow[];
  cancelling: Cancelling | null = null;
  #wakeSeen: number;
  #cancel: string | null;
  #inboxReadAt: number;
  #isLive = false;
  #isOver = false;
  #isDraining = false;
  #hasProgressed = false;
  #turnOpen = false;
  #requested = false;
  #readingMail = false;
  #bodyResult: BodyResult | null = null;
  #final: PassEnd | null = null;
  #inFlight: Batch | null = null;
  #offer: Batch | null = null;
  #progress: { readonly value: unknown } | undefined;
  #alarm: { readonly due: number; readonly forget: () => void } | null = null;
  #forgetWatchdog: () => void = () => {};

  constructor(input: PassInput, ports: PassPorts) {
    this.id = input.row.id;
    this.row = input.row;
    this.workflow = input.workflow;
    this.generation = input.generation;
    this.ports = ports;
    const scope = { prefix: "", uses: new Map<string, number>() };
    this.frame = { where: "body", run: this.id, pass: this, scope, guard: input.workflow.definition.guard };
    this.draft = input.draft ?? new Draft(this.id, input.chain, ports.host, ports.codec);
    this.#cursor = new Cursor(input.entries, (entry) => this.#mark(entry));
    this.#attempts = new Attempts(ports, this.frame, {
      completed: (call, value) => this.#stepCompleted(call, value),
      failed: (call, error) => this.#stepFailed(call, error),
      heartbeat: (detail) => this.progress(detail),
      isClosed: () => this.#isOver || this.#final !== null,
    });
    this.#seed = this.id;
    this.#chance = seededRandom(this.#seed);
    this.now = input.row.createdAt;
    this.inbox = [...input.mail.inbox];
    this.#wakeSeen = input.mail.wake;
    this.#cancel = input.mail.cancel;
    this.#inboxReadAt = input.readAt;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isLive(): boolean {
    return this.#isLive;
  }

  /** What keys and chance are derived from at this point: a fork has its own from its fork point on (P10). */
  get seed(): string {
    this.#cursor.peek();
    return this.#seed;
  }

  get chance(): SeededRandom {
    this.#cursor.peek();
    return this.#chance;
  }

  /** Nothing happens in this process any more: the run was lost, or its last commit is durable. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get inFlight(): Batch | null {
    return this.#inFlight;
  }

  /** Where the journal ends in the store when nothing is in flight. */
  get durableHead(): number {
    return this.draft.from.head;
  }

  /** Whether an outcome was recorded in this pass (P28). */
  get hasProgressed(): boolean {
    return this.#hasProgressed;
  }

  /** Nothing of it runs or waits for a turn or a commit. */
  get isQuiet(): boolean {
    const isStill = !this.#turnOpen && !this.#requested && this.#ready.length === 0 && this.#attempts.names.length === 0;
    return this.#isOver || (isStill && this.#inFlight === null && this.#offer === null && this.draft.isEmpty);
  }

  /** It waits in memory for something that is not this process's doing. */
  get isResting(): boolean {
    return this.isQuiet && (this.#isOver || this.#isIdle()) && this.#wakeup() === null;
  }

  /** What runs may finish and be recorded; nothing new begins, so that the run can be handed back (shutdown). */
  drain(): void {
    this.#isDraining = true;
  }

  begin(): void {
    this.#replayOn();
  }

  /** Forgets the run: somebody else owns it, or this process stops. */
  drop(reason: PawlError): void {
    if (this.#isOver) return;
    this.#close();
    this.#attempts.abortAll(reason);
  }

  // Turns

  openTurn(): void {
    this.#requested = false;
    if (this.#isOver) return;
    this.#turnOpen = true;
    if (this.#isLive) this.#deliverNext();
    else this.#deliverRecorded();
  }

  closeTurn(): void {
    this.#turnOpen = false;
    if (this.#isLive) this.evaluate();
    else this.#replayOn();
  }

  #requestTurn(): void {
    if (this.#requested || this.#turnOpen) return;
    this.#requested = true;
    this.ports.turns.request(this);
  }

  // Issuing calls

  /** Issues a call of the body: matched in replay, recorded when it is new, refused when it betrays a foreign await. */
  issue(call: Call): Promise<unknown> {
    if (this.#isOver || this.#final !== null) return call.promise;
    if (this.cancelling !== null) {
      rejectCall(call, cancelError(this.id, this.cancelling));
      return call.promise;
    }
    if (this.#turnOpen) this.#place(call, null);
    else this.#issueOutsideTurn(call);
    return call.promise;
  }

  #issueOutsideTurn(call: Call): void {
    const site = callSite();
    if (this.#cursor.peek() !== null) {
      this.#held.push({ call, at: site });
      this.#replayOn();
    } else if (this.calls.size > 0 || this.#ready.length > 0) this.#refuseForeign(call, site);
    else this.#inBurst(() => this.#place(call, site));
  }

  /** What follows in the same microtasks belongs together: it is one turn, though nobody opened it. */
  #inBurst(place: () => void): void {
    this.#turnOpen = true;
    place();
    this.ports.host.tick(() => this.closeTurn());
  }

  #place(call: Call, site: string | null): void {
    const next = this.#cursor.peek();
    if (next === null && this.#isDraining) return;
    if (next === null) return this.#record(call);
    if (next.kind === "call" && matches(next.entry, call)) {
      this.#cursor.pass();
      adoptRecorded(call, next.entry);
      this.#recorded.add(call);
      this.#open(call);
      return;
    }
    this.#diverge({ recorded: next.entry, issued: call, site: site ?? callSite() });
  }

  #record(call: Call): void {
    this.#open(call);
    recordCall(this, call);
    if (call.type === "step.started") this.draft.then(() => this.#attempts.start(call));
    this.ports.dirty(this);
  }

  #open(call: Call): void {
    // A spawned child is nobody's to wait for.
    if (call.type === "child.started" && call.detached) call.open = false;
    else this.calls.set(callId(call), call);
  }

  #refuseForeign(call: Call, site: string): void {
    const message =
      `Run ${this.id} called ${describeCall(call)} at ${site} after awaiting something that is not a Pawl call, while ${[...this.calls.values()].map(describeCall).join(", ") || "an outcome"} was still pending. ` +
      "In parallel branches that order cannot be replayed. Move the foreign await into a ctx.step, deploy, and resolve the run with \"retry\".";
    rejectCall(call, new PawlError("foreign_await", message, { fields: { run: this.id, call: call.key, site } }));
    this.park({ reason: "foreign_await", message, choices: ["retry", "cancel"], detail: { call: call.key, site } });
  }

  // Replay

  #replayOn(): void {
    if (this.#isOver || this.#final !== null || this.#turnOpen) return;
    const next = this.#cursor.peek();
    if (next === null) return this.#goLive();
    if (next.kind !== "call") return this.#requestTurn();
    const index = this.#held.findIndex((held) => matches(next.entry, held.call));
    const [held] = index < 0 ? [] : this.#held.splice(index, 1);
    if (held !== undefined) return this.#inBurst(() => this.#place(held.call, held.at));
    if (this.#bodyResult !== null) return this.#diverge({ recorded: next.entry, issued: null, site: null });
    this.#watch(next.entry);
  }

  /** A body that never issues a recorded call may be slow in something of its own, but not for ever (P3). */
  #watch(recorded: Entry): void {
    this.#forgetWatchdog();
    this.#forgetWatchdog = this.ports.leaseClock.after(LIMITS.replayStallMs, () => {
      if (this.#isOver || this.#cursor.peek()?.entry !== recorded) return;
      const message = describeDivergence(this.id, { recorded, issued: null, site: null });
      this.park({ reason: "replay_stalled", message: `${message} It has been quiet for ${LIMITS.replayStallMs / 1000} s.`, choices: ["retry", "cancel"], detail: { seq: recorded.seq } });
    });
  }

  #deliverRecorded(): void {
    this.#forgetWatchdog();
    const next = this.#cursor.peek();
    if (next === null || next.kind === "call") return;
    const { entry } = next;
    this.#cursor.pass();
    this.#cursor.openWindow();
    this.now = entry.at;
    this.deliver(entry.type as OutcomeType, entry.key, entry.payload);
  }

  #diverge(divergence: Divergence): void {
    const message = describeDivergence(this.id, divergence);
    const { recorded, issued, site } = divergence;
    this.park({
      reason: "replay_drift",
      message,
      choices: ["retry", "cancel"],
      detail: { seq: recorded.seq, recorded: `${recorded.type} ${recorded.key}`, issued: issued === null ? null : describeCall(issued), site },
    });
  }

  #mark(entry: Entry): void {
    if (entry.type === "run.forked") this.#reseed((entry.payload as Forked).seed);
    const call = this.calls.get(`step.started ${entry.key}`);
    if (call?.type !== "step.started") return;
    if (entry.type === "step.started") {
      call.attempt = (entry.payload as NonNullable<StepStarted>).attempt;
      call.retryAt = null;
    }
    if (entry.type === "step.failed") {
      const failed = entry.payload as StepFailed;
      call.failures = failed.isRetried ? 0 : call.failures + 1;
      call.attempt = failed.attempt;
      call.retryAt = failed.retryAt;
    }
  }

  #reseed(seed: string): void {
    this.#seed = seed;
    this.#chance = seededRandom(seed);
  }

  #goLive(): void {
    this.#isLive = true;
    this.#forgetWatchdog();
    const held = this.#held.splice(0);
    recoverSteps(this, this.#interrupted());
    this.#recorded.clear();
    if (this.#bodyResult !== null) return this.#end(this.#bodyResult);
    for (const { call } of held) this.#issueOutsideTurn(call);
    this.evaluate();
  }

  /** Steps that were started and whose outcome nobody recorded. */
  #interrupted(): StepCall[] {
    return [...this.#recorded].filter((call): call is StepCall => call.type === "step.started" && call.open && call.retryAt === null);
  }

  // Going on live

  /** Looks for the next thing to do: a turn, a retry that is due, or nothing, which ends in a suspension. */
  evaluate(): void {
    if (this.#isOver || !this.#isLive || this.#turnOpen || this.#final !== null) return;
    if (this.#ready.length > 0 || this.#wakeup() !== null) return this.#requestTurn();
    this.#startDueRetries();
    if (this.#isIdle() && !this.#lingers()) this.ports.dirty(this);
    else this.#setAlarm();
  }

  #deliverNext(): void {
    const wakeup = this.#wakeup();
    const outcome = wakeup === "cancel" || wakeup === "deadline" ? undefined : this.#ready.shift();
    if (outcome !== undefined) {
      if (!outcome.call.open) return;
      this.draft.appendText(this.ports.clock.now(), outcome.type, outcome.call.key, outcome.text);
      this.#delivered(outcome.type, outcome.call.key, outcome.payload);
    } else if (wakeup === "cancel" || wakeup === "deadline") this.#deliverCancel(wakeup);
    else if (wakeup !== null) {
      const delivered = recordWakeup(this, wakeup);
      this.#delivered(delivered.type, delivered.key, delivered.payload);
    }
  }

  #delivered(type: OutcomeType, key: string | null, payload: unknown): void {
    this.now = this.draft.chain.at;
    this.#hasProgressed = true;
    this.deliver(type, key, payload);
    this.ports.dirty(this);
  }

  #wakeup(): "cancel" | "deadline" | Exclude<Wakeup, { kind: "read-inbox" }> | null {
    if (this.cancelling === null && this.#cancel !== null) return "cancel";
    const now = this.ports.clock.now();
    if (this.cancelling === null && this.row.deadline !== null && now >= this.row.deadline) return "deadline";
    if (this.calls.size === 0 || this.cancelling !== null) return null;
    const wakeup = nextWakeup({ calls: this.calls.values(), inbox: this.inbox, now, inboxReadAt: this.#inboxReadAt });
    if (wakeup?.kind !== "read-inbox") return wakeup;
    this.#askForMail();
    return null;
  }

  #askForMail(): void {
    if (this.#readingMail) return;
    this.#readingMail = true;
    this.ports.readMail(this);
  }

  /** What the store says of the run's inbox, counter and cancel, read at store time `readAt`. */
  mail(mail: Pick<Mail, "wake" | "cancel" | "inbox">, readAt: number): void {
    this.#readingMail = false;
    this.#wakeSeen = mail.wake;
    this.#cancel = mail.cancel;
    this.#inboxReadAt = readAt;
    // A consumption may still be in flight: the store then shows a row that this pass has used already (P5).
    this.inbox = mail.inbox.filter((row) => !this.#consumed.has(row.id));
    this.evaluate();
  }

  consume(row: InboxRow): void {
    this.#consumed.add(row.id);
    this.inbox = this.inbox.filter((one) => one.id !== row.id);
    this.draft.consume(row.id);
  }

  #deliverCancel(cause: "cancel" | "deadline"): void {
    const reason = cause === "cancel" ? (this.#cancel ?? "") : `The run's deadline has passed.`;
    const payload: Cancelling = { cause, reason };
    this.draft.append(this.ports.clock.now(), "run.cancelling", null, payload);
    this.draft.wait({ closeAll: true });
    for (const call of this.calls.values()) {
      if (call.type === "child.started") this.sendCancel(call.child, reason);
    }
    const error = cancelError(this.id, payload);
    this.draft.then(() => this.#attempts.abortAll(error));
    this.#delivered("run.cancelling", null, payload);
  }

  /** A person's decision takes effect: it is recorded in the commit that acts on it. */
  resolved(row: InboxRow, decision: Resolved): void {
    this.draft.append(this.ports.clock.now(), "run.resolved", null, decision);
    this.draft.wait({ close: "decision" });
    this.consume(row);
    this.ports.dirty(this);
  }

  sendCancel(child: string, reason: string): void {
    this.draft.send({ to: child, id: `cancel:${this.id}`, kind: "cancel", name: "", data: reason });
    this.draft.then(() => this.ports.mailed([child]));
  }

  // Delivering outcomes, live and in replay alike

  deliver(type: OutcomeType, key: string | null, payload: unknown): void {
    switch (type) {
      case "run.started":
        this.#reseed((payload as RunStarted).seed);
        return this.#startBody((payload as RunStarted).input);
      case "run.continued":
        return this.#continueBody(payload as Continued);
      case "step.completed":
        return this.#settled(`step.started ${key}`)?.resolve(payload);
      case "step.failed":
        return this.#reject(`step.started ${key}`, (payload as StepFailed).error);
      case "timer.fired":
        return payload === null ? this.#settled(`timer.set ${key}`)?.resolve(undefined) : this.#waitTimedOut(key);
      case "signal.received":
        return this.#signalReceived(key, payload as SignalReceived & { error?: unknown });
      case "child.ended":
        return this.#childEnded(key, payload as ChildEnded);
      case "run.cancelling":
        return this.#cancelled(payload as Cancelling);
    }
  }

  #settled(id: string): Call | undefined {
    const call = this.calls.get(id);
    if (call === undefined) return undefined;
    call.open = false;
    this.calls.delete(id);
    return call;
  }

  #reject(id: string, error: unknown): void {
    const call = this.#settled(id);
    if (call !== undefined) rejectCall(call, error);
  }

  #waitTimedOut(key: string | null): void {
    const call = this.#settled(`signal.awaited ${key}`);
    if (call?.type !== "signal.awaited") return;
    if (call.fallback !== null) return call.resolve(call.fallback.value);
    const message = `No signal "${call.name}" reached run ${this.id} in time. Give waitFor a \`default\`, a longer \`timeout\`, or catch this error.`;
    rejectCall(call, new PawlError("wait_timeout", message, { fields: { run: this.id, signal: call.name } }));
  }

  #signalReceived(key: string | null, received: SignalReceived & { error?: unknown }): void {
    if (received.error !== undefined) return this.#reject(`signal.awaited ${key}`, received.error);
    this.#settled(`signal.awaited ${key}`)?.resolve(received.payload);
  }

  #childEnded(key: string | null, ended: ChildEnded): void {
    if (ended.status === "succeeded") return this.#settled(`child.started ${key}`)?.resolve(ended.value);
    const message = `Child run ${ended.child} (${key}) of run ${this.id} ${ended.status}. Its error is the cause; \`pawl why ${ended.child}\` tells more.`;
    this.#reject(
      `child.started ${key}`,
      new PawlError("child_failed", message, { fields: { run: this.id, child: ended.child, status: ended.status }, cause: ended.value }),
    );
  }

  #cancelled(cancelling: Cancelling): void {
    this.cancelling = cancelling;
    const error = cancelError(this.id, cancelling);
    this.#ready.length = 0;
    const pending = [...this.calls.values()];
    this.calls.clear();
    for (const call of pending) {
      call.open = false;
      rejectCall(call, error);
    }
    this.#controller.abort(error);
    if (this.#bodyResult !== null) this.#end(this.#bodyResult);
    else this.#giveGrace(error);
  }

  /** A body that does not end after its cancel is closed without it, so that cancelling always ends. */
  #giveGrace(error: PawlError): void {
    this.#forgetWatchdog = this.ports.leaseClock.after(LIMITS.cancelGraceMs, () => {
      if (!this.#isOver && this.#final === null) this.#end({ ok: false, error });
    });
  }

  // The body

  #startBody(input: unknown): void {
    const ctx = new BodyContext(this);
    const { handler } = this.workflow.definition;
    const body = this.ports.host.enter(this.frame, async () => handler(ctx, input));
    body.then(
      (value) => this.#bodySettled({ ok: true, value }),
      (error: unknown) => this.#bodySettled({ ok: false, error }),
    );
  }

  #continueBody(continued: Continued): void {
    this.#reseed(`${this.#seed}.${continued.generation}`);
    for (const [key, value] of Object.entries(continued.state)) this.state.set(key, value);
    for (const [unit, amount] of Object.entries(continued.cost)) this.costs.set(unit, amount);
    this.#startBody(continued.input);
  }

  #bodySettled(result: BodyResult): void {
    if (this.#isOver || this.#final !== null) return;
    this.#bodyResult = result;
    if (this.#cursor.peek() === null) this.#end(result);
    else if (!this.#turnOpen) this.#replayOn();
  }

  #end(result: BodyResult): void {
    if (this.#final !== null) return;
    const unfinished = this.#attempts.names;
    if (unfinished.length > 0 && this.cancelling === null) {
      this.ports.log.warn(`Run ${this.id} ended while steps were still running: ${unfinished.join(", ")}. Their results are dropped; await them.`, { run: this.id });
    }
    this.#isLive = true;
    this.#final = endRun(this, result);
    this.draft.then(() => this.#attempts.abortAll(runEnded(this.id)));
    this.ports.dirty(this);
  }

  /** Ends this generation; the next one starts in a pass of its own. */
  continueAs(input: unknown): void {
    const state = Object.fromEntries(this.state);
    const payload: Continued = { generation: this.generation + 1, input, state, cost: Object.fromEntries(this.costs) };
    const text = encodePayload(payload, "continueAs");
    for (const call of this.calls.values()) {
      if (call.type === "child.started") this.sendCancel(call.child, "The parent continued as a new generation.");
    }
    this.draft.wait({ closeAll: true });
    const seq = this.draft.appendText(this.ports.clock.now(), "run.continued", null, text);
    const entry: Entry = { seq, at: this.draft.chain.at, type: "run.continued", key: null, payload };
    const mail = { wake: this.#wakeSeen, cancel: this.#cancel, inbox: this.inbox };
    this.#final = { kind: "continued", entry, chain: this.draft.chain, mail, readAt: this.#inboxReadAt };
    this.draft.then(() => this.#attempts.abortAll(runEnded(this.id)));
    this.ports.dirty(this);
  }

  park(parked: Parked): void {
    if (this.#final !== null || this.#isOver) return;
    this.#forgetWatchdog();
    this.#final = parkRun(this, parked);
    this.draft.then(() => this.#attempts.abortAll(new PawlError("run_parked", parked.message, { fields: { run: this.id } })));
    this.ports.log.error(parked.message, { run: this.id, reason: parked.reason });
    this.ports.dirty(this);
  }

  // Steps

  #stepCompleted(call: StepCall, value: unknown): void {
    if (this.#isOver || !call.open) return;
    let text: string;
    try {
      text = encodePayload(value, `result of step "${call.key}"`);
    } catch (error) {
      return this.#stepFailed(call, error);
    }
    this.settle({ call, type: "step.completed", text, payload: isPlain(value) ? value : decodePayload(text) });
  }

  #stepFailed(call: StepCall, error: unknown): void {
    if (this.#isOver || !call.open) return;
    const delayMs = this.cancelling === null ? retryDelayMs(call.retry, call.failures + 1, error, () => this.ports.random()) : null;
    if (delayMs === null || this.#final !== null) {
      const isExhausted = call.failures > 0 && isRetryable(call.retry, error);
      return this.settle(stepFailure(this.id, call, error, isExhausted));
    }
    call.failures++;
    call.retryAt = this.ports.clock.now() + Math.ceil(delayMs);
    const mark: StepFailed = { attempt: call.attempt, error, retryAt: call.retryAt };
    this.draft.appendText(this.ports.clock.now(), "step.failed", call.key, encodeFailure(mark));
    this.draft.wait({ open: { key: `retry:${call.key}`, kind: "retry", name: call.name, due: call.retryAt, detail: null } });
    this.ports.dirty(this);
    this.evaluate();
  }

  /** Puts an outcome in line for its turn. */
  settle(outcome: Outcome): void {
    if (this.#final !== null || this.cancelling !== null) return;
    this.#ready.push(outcome);
    if (this.#isLive) this.#requestTurn();
  }

  #startDueRetries(): void {
    const now = this.ports.clock.now();
    for (const call of this.calls.values()) {
      if (call.type !== "step.started" || call.retryAt === null || call.retryAt > now) continue;
      this.draft.wait({ close: `retry:${call.key}` });
      this.startAgain(call, {});
    }
  }

  /** Begins another attempt, behind a barrier of its own. A rerun follows a crash and uses up no retry (P28). */
  startAgain(call: StepCall, how: { readonly rerun?: true }): void {
    call.attempt++;
    call.retryAt = null;
    const mark: StepStarted = { attempt: call.attempt, ...how };
    this.draft.append(this.ports.clock.now(), "step.started", call.key, mark);
    this.draft.then(() => this.#attempts.start(call));
    this.ports.dirty(this);
  }

  // Notes

  /** Records something the body says about itself: once, whatever the number of replays (P9). */
  note(type: NoteType, key: string | null, payload: unknown): void {
    if (this.#isOver || this.#final !== null) return;
    if (!this.#isLive && (this.#cursor.takeNote(type) !== undefined || !this.#cursor.isLastTurn)) return;
    const text = encodePayload(payload, key === null ? type : `${type} "${key}"`);
    this.draft.appendText(this.ports.clock.now(), type, key, text);
    if (type === "state.patched" && key !== null) {
      this.draft.state({ key, data: this.ports.codec.seal(encodePayload((payload as StatePatched).value, key), { run: this.id, seq: -1, field: `state:${key}` }) });
    }
    this.ports.dirty(this);
  }

  /** True where new code is reached for the first time, false where older code has gone past (P9). */
  patched(id: string): boolean {
    if (!this.#isLive && this.#cursor.takeNote("patched") !== undefined) return true;
    if (this.#cursor.peek() !== null) return false;
    this.draft.append(this.ports.clock.now(), "patched", id, null);
    this.ports.dirty(this);
    return true;
  }

  addCost(amounts: Cost): void {
    for (const [unit, amount] of Object.entries(amounts)) this.costs.set(unit, (this.costs.get(unit) ?? 0) + amount);
    const before = this.draft.size;
    this.note("cost", null, amounts);
    if (this.draft.size > before) this.draft.row({ cost: JSON.stringify(Object.fromEntries(this.costs)) });
  }

  /** Latest progress: written with the next commit, and by itself at most every so often. */
  progress(value: unknown): void {
    if (!this.#isLive || this.#isOver) return;
    const isFirst = this.#progress === undefined;
    this.#progress = { value };
    if (isFirst) this.ports.leaseClock.after(LIMITS.progressEveryMs, () => this.ports.dirty(this));
  }

  /** Runs `fn` once everything that led here is durable; never in replay (P13). */
  whenDurable(fn: () => void): void {
    if (this.#isOver || this.#cursor.peek() !== null) return;
    if (this.draft.isEmpty && this.#inFlight === null) fn();
    else this.draft.then(fn);
  }

  // Suspension and commits

  #isIdle(): boolean {
    if (this.calls.size === 0 || this.#bodyResult !== null || this.cancelling !== null) return false;
    if (this.#turnOpen || this.#requested || this.#ready.length > 0 || this.#readingMail) return false;
    for (const call of this.calls.values()) if (!isWaiting(call)) return false;
    return true;
  }

  /** A run that wakes soon, or waits for a child that runs right here, is dearer to load again than to keep (P33). */
  #lingers(): boolean {
    const horizon = this.ports.clock.now() + LIMITS.lingerMs;
    for (const call of this.calls.values()) {
      const due = dueOf(call);
      if (due !== null && due <= horizon) return true;
      if (call.type === "child.started" && this.ports.isHere(call.child)) return true;
    }
    return false;
  }

  #nextDue(): number | null {
    let first = this.row.deadline;
    for (const call of this.calls.values()) {
      const due = dueOf(call);
      if (due !== null && (first === null || due < first)) first = due;
    }
    return first;
  }

  #setAlarm(): void {
    const due = this.#nextDue();
    if (due === null || this.#alarm?.due === due) return;
    this.#alarm?.forget();
    const forget = this.ports.clock.at(due, () => {
      this.#alarm = null;
      this.evaluate();
    });
    this.#alarm = { due, forget };
  }

  /** What the committer is to write now, or `null` for nothing. */
  take(): Batch | null {
    if (this.#inFlight !== null || this.#isOver) return null;
    this.#inFlight = this.#offer ?? this.#nextBatch();
    this.#offer = null;
    return this.#inFlight;
  }

  #nextBatch(): Batch | null {
    if (this.#progress !== undefined) {
      this.draft.row({ progress: encodePayload(this.#progress.value, "progress") });
      this.#progress = undefined;
    }
    if (this.#isLive && this.#final === null && this.#isIdle() && this.#wakeup() === null && !this.#lingers()) {
      this.#final = { kind: "suspended" };
      return this.draft.take({ ifWake: this.#wakeSeen, row: this.#suspension() });
    }
    return this.draft.isEmpty ? null : this.draft.take();
  }

  #suspension(): RowPatch {
    const isRetrying = [...this.calls.values()].every((call) => call.type === "step.started");
    const state = transition(this.id, "running", isRetrying ? "retrying" : "waiting");
    const { head, hash } = this.draft.chain;
    return { state, release: true, readyAt: null, wakeAt: this.#nextDue(), claims: 0, head, headHash: hash };
  }

  /** The batch is durable: what waited for it may happen. */
  applied(): void {
    const batch = this.#inFlight;
    this.#inFlight = null;
    if (batch === null) return;
    for (const fn of batch.after) fn();
    if (!this.draft.isEmpty) this.ports.dirty(this);
    else if (this.#final !== null) {
      this.#close();
      this.ports.over(this, this.#final);
    }
  }

  /** Mail came before the suspension, or a cancel before the end: nothing was applied, and the run goes on from there. */
  overtaken(why: "wake" | "cancel"): void {
    const batch = this.#inFlight;
    this.#inFlight = null;
    this.#final = null;
    if (batch === null) return;
    if (why === "cancel") this.draft.reopen(batch);
    else if (batch.withoutSuspension !== null) this.#offer = { ...batch, commit: batch.withoutSuspension, withoutSuspension: null };
    this.#askForMail();
    this.ports.dirty(this);
  }

  /** The answer was lost and the store has nothing of the batch: the same bytes again (P17). */
  offerAgain(): void {
    this.#offer = this.#inFlight;
    this.#inFlight = null;
    this.ports.dirty(this);
  }

  #close(): void {
    this.#isOver = true;
    this.#alarm?.forget();
    this.#forgetWatchdog();
  }
}

/** Values that are the same before and after the codec need no second look. */
function isPlain(value: unknown): boolean {
  return value === null || value === undefined || typeof value === "string" || typeof value === "boolean";
}
