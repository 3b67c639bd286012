// Replay
// What is recorded of a run, as its body re-executes: which call a recorded entry belongs to, which outcome comes next, what was left open.
import type { ApprovalEscalated } from "./approval-request.ts";
import { adoptEscalated } from "./approvals.ts";
import type { Amounts } from "./budget.ts";
import type { Call, StepCall } from "./call.ts";
import { Cursor } from "./cursor.ts";
import type { Divergence } from "./divergence.ts";
import type { Host } from "./host.ts";
import { adoptRecorded, matches } from "./issue.ts";
import type { Checkpoint, EffectPlanned, Entry, Forked, StepFailed, StepStarted } from "./journal.ts";
import { LenientJournal } from "./lenient.ts";
import type { OpenCalls } from "./open-calls.ts";
import { adoptRunMark, adoptSpendingMark } from "./spending-state.ts";

export interface HeldCall {
  readonly call: Call;
  readonly site: string;
  /** Calls of the same burst were made in the same microtasks. */
  readonly burst: number;
}

export class Replay {
  readonly cursor: Cursor;
  readonly lenient: LenientJournal | null;
  /** Lenient replay has no place for a fork point: what is new belongs to the fork. */
  readonly forkSeed: string | null;
  /** Ids of approvals that a fork has not taken with it, as far as the journal was read. */
  leftApprovals: readonly string[] = [];
  readonly #calls: OpenCalls;
  readonly #owner: { reseed(seed: string): void };
  readonly #held: HeldCall[] = [];
  #interrupted: StepCall[] = [];
  readonly #found: Entry[] = [];
  /** What the run has spent goes there. */
  notes: { addSpent(amounts: Amounts, isNew: boolean): void } | null = null;
  #burst: { readonly n: number; isOver: boolean } = { n: 0, isOver: true };

  constructor(entries: readonly Entry[], isLenient: boolean, calls: OpenCalls, owner: { reseed(seed: string): void }) {
    this.#calls = calls;
    this.#owner = owner;
    this.lenient = isLenient ? new LenientJournal(entries) : null;
    const forks = isLenient ? entries.filter((entry) => entry.type === "run.forked") : [];
    for (const { payload } of forks) this.#leave(payload as Forked);
    this.forkSeed = (forks.at(-1)?.payload as Forked | undefined)?.seed ?? null;
    this.cursor = new Cursor(isLenient ? entries.slice(0, 1) : entries, this);
  }

  /** Opens the call as the recorded one at its place; says "new" past the end, or how it differs. */
  place(call: Call): "recorded" | "new" | Pick<Divergence, "recorded" | "issued"> {
    const next = this.cursor.peek();
    if (next === null) return this.#find(call) ? "recorded" : "new";
    if (next.kind !== "call" || !matches(next.entry, call)) return { recorded: next.entry, issued: call };
    this.cursor.pass();
    this.#adopt(call, next.entry);
    return "recorded";
  }

  /** Whether a record of this very call lies ahead. */
  knows(call: Call): boolean {
    return this.lenient?.has(call) ?? this.cursor.has((entry) => matches(entry, call));
  }

  /** Whether the record of an effect that rests on this approval lies ahead. */
  plans(key: string, approval: string): boolean {
    const isIt = (entry: Entry) =>
      entry.type === "effect.planned" && entry.key === key && (entry.payload as EffectPlanned).approval === approval;
    return this.lenient?.holds(isIt) ?? this.cursor.has(isIt);
  }

  /** Lenient: takes over what the journal has of a call, wherever it stands. */
  #find(call: Call): boolean {
    const recorded = this.lenient?.take(call);
    if (recorded === undefined) return false;
    this.#adopt(call, recorded.call);
    for (const mark of recorded.marks) this.mark(mark);
    if (recorded.outcome !== null) this.#found.push(recorded.outcome);
    this.#found.sort((a, b) => a.seq - b.seq);
    return true;
  }

  #adopt(call: Call, entry: Entry): void {
    adoptRecorded(call, entry);
    this.#calls.add(call);
    if (call.type === "step.started") this.#interrupted.push(call);
  }

  /** A number for the microtasks that run now: calls made in them were made together. */
  burst(host: Host): number {
    if (this.#burst.isOver) {
      const burst = { n: this.#burst.n + 1, isOver: false };
      this.#burst = burst;
      host.tick(() => {
        burst.isOver = true;
      });
    }
    return this.#burst.n;
  }

  /** Keeps a call that came out of a foreign await until the journal reaches it (P4). */
  hold(held: HeldCall): void {
    this.#held.push(held);
  }

  /** The held call that this entry records, with those that were made together with it; none if there is no such call. */
  takeHeld(entry: Entry): HeldCall[] {
    const first = this.#held.find((held) => matches(entry, held.call));
    return first === undefined ? [] : this.takeBurst(first.burst);
  }

  /** The oldest held calls that were made together. */
  takeBurst(burst: number | undefined = this.#held[0]?.burst): HeldCall[] {
    const together = this.#held.filter((held) => held.burst === burst);
    for (const held of together) this.#held.splice(this.#held.indexOf(held), 1);
    return together;
  }

  get hasHeld(): boolean {
    return this.#held.length > 0;
  }

  /** Outcomes that lenient replay has found for open calls, in journal order. */
  get hasFound(): boolean {
    return this.#found.length > 0;
  }

  takeFound(): Entry | undefined {
    return this.#found.shift();
  }

  get hasInterrupted(): boolean {
    return this.#interrupted.length > 0;
  }

  /** Steps that were started and whose outcome nobody recorded; each is given out once. */
  takeInterrupted(): StepCall[] {
    const recorded = this.#interrupted;
    this.#interrupted = [];
    const awaited = new Set(this.#found.map((outcome) => outcome.key));
    return recorded.filter((call) => call.open && call.retryAt === null && !awaited.has(call.key));
  }

  mark(entry: Entry): void {
    if (entry.type === "run.forked") {
      this.#owner.reseed((entry.payload as Forked).seed);
      this.#leave(entry.payload as Forked);
    }
    if (entry.type === "approval.escalated") return this.#escalated(entry as Entry<ApprovalEscalated>);
    if (entry.type === "run.forked" || entry.type === "run.resolved") adoptRunMark(this.#calls.steps(), entry);
    if (entry.type === "step.spent") this.notes?.addSpent(entry.payload as Amounts, false);
    const call = this.#calls.step(entry.key);
    if (call === undefined) return;
    adoptSpendingMark(call, entry);
    if (entry.type === "checkpoint") call.saved = { payload: entry.payload as Checkpoint };
    call.marked(entry.type, entry.payload);
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

  #leave({ leaves = [] }: Forked): void {
    if (leaves.length > 0) this.leftApprovals = [...this.leftApprovals, ...leaves];
  }

  /** What fell due while an approval waited happens once (S4-38). */
  #escalated({ key, payload }: Entry<ApprovalEscalated>): void {
    for (const call of this.#calls.waits())
      if (call.type === "approval.requested" && call.key === key) adoptEscalated(call, payload);
  }
}
