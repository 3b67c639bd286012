// The body
// The user's code of one pass: how outcomes reach it, live and in replay alike, and what became of it.
import { BodyContext } from "./body-context.ts";
import { type Budget, budgetsFor } from "./budget.ts";
import { Cancellation } from "./cancellation.ts";
import { Compensation } from "./compensation.ts";
import type { BodyResult } from "./endings.ts";
import type { Cancelling, Compensating, Continued, OutcomeType, RunStarted } from "./journal.ts";
import { deliverOutcome } from "./outcomes.ts";
import type { Pass } from "./pass.ts";
import { generationSeed, type Seeds } from "./seeds.ts";
import type { UndoableCall } from "./undoable-call.ts";

/** What may still be in the journal after the body's end: a cancel that overtook it, or that what it did is undone. */
export function mayFollowEnd(type: string): boolean {
  return type === "run.cancelling" || type === "run.compensating";
}

const NO_BUDGETS: readonly Budget[] = [];

export class Body {
  readonly #pass: Pass;
  readonly #seeds: Seeds;
  readonly cancellation: Cancellation;
  /** What it returned or threw. */
  result: BodyResult | null = null;
  /** How it ended, if that has to be undone and is not yet. */
  failed: BodyResult | null = null;
  /** Made on demand: most runs do nothing that could be undone. */
  #compensation: Compensation | null = null;
  /** It ended while a turn was open, as it did when that was first recorded. */
  hasEndedInTurn = false;
  /** Those that hold for the run, outermost first. */
  budgets: readonly Budget[] = NO_BUDGETS;

  constructor(pass: Pass, seeds: Seeds) {
    this.#pass = pass;
    this.#seeds = seeds;
    this.cancellation = new Cancellation(pass);
  }

  /** False for an outcome that no open call is waiting for. */
  deliver(type: OutcomeType, key: string | null, payload: unknown): boolean {
    if (type === "run.started") {
      this.#seeds.reseed((payload as RunStarted).seed);
      this.#takeBudgets(payload as RunStarted);
      this.#start((payload as RunStarted).input);
    } else if (type === "run.continued") this.#continue(payload as Continued);
    else if (type === "run.cancelling") this.#cancel(payload as Cancelling);
    else if (type === "run.compensating") return this.#compensate(payload as Compensating);
    else return deliverOutcome(this.#pass.id, this.#pass.calls, type, key, payload);
    return true;
  }

  #continue(continued: Continued): void {
    this.#seeds.reseed(continued.seed ?? generationSeed(this.#pass.id, continued.generation));
    this.#pass.notes.inherit(continued);
    this.#takeBudgets(continued);
    this.#start(continued.input);
  }

  /** Who knows no more than the name of a workflow starts its runs without: they have the budget that it says. */
  #takeBudgets({ budgets }: Pick<RunStarted, "budgets">): void {
    const { id, row, workflow } = this.#pass;
    const { budget } = workflow.definition;
    if (budgets !== undefined) this.budgets = budgets;
    else if (budget !== null) this.budgets = budgetsFor(id, { ...budget, isImplied: true }, row.createdAt);
  }

  #cancel(cancelling: Cancelling): void {
    this.cancellation.begin(cancelling);
    const ended = this.result ?? this.failed;
    if (ended !== null) return this.#takeBack(ended);
    if (this.isCompensating) return;
    this.cancellation.giveGrace((error) => this.#pass.guarded(() => this.#close({ ok: false, error })));
  }

  /** A cancel overtook the end: there may be something to undo now, or not any more. In replay the journal says what followed. */
  #takeBack(ended: BodyResult): void {
    if (this.#isDue(ended)) return this.#put(ended);
    this.result = ended;
    this.failed = null;
    if (this.#pass.isLive) this.#pass.end(ended);
  }

  /** Waits for nothing more of the body. */
  #close(ended: BodyResult): void {
    if (this.#isDue(ended)) this.#put(ended);
    else this.#pass.end(ended);
  }

  /** The next turn begins to undo what was done. */
  #put(ended: BodyResult): void {
    this.failed = ended;
    this.result = null;
    this.#pass.requestTurn();
  }

  #isDue(ended: BodyResult): boolean {
    return !this.isCompensating && this.#compensation?.isDue(ended, this.cancellation.cancelling) === true;
  }

  /** Keeps in mind what may have to be undone. */
  remember(call: UndoableCall): void {
    this.#compensation ??= new Compensation(this.#pass);
    this.#compensation.add(call);
  }

  get isCompensating(): boolean {
    return this.#compensation?.isUnderWay === true;
  }

  /** Something could not be undone. */
  get isIncomplete(): boolean {
    return this.#compensation?.isIncomplete === true;
  }

  /** It has ended or was stopped, and nothing is being undone: the run has nothing to wait for. */
  get isOver(): boolean {
    if (this.result !== null || this.failed !== null) return true;
    return this.cancellation.cancelling !== null && !this.isCompensating;
  }

  /** Nothing that it still asks for counts: it has ended, or what it did is being undone (CO2). */
  get isDeaf(): boolean {
    return this.hasEndedInTurn || this.isCompensating;
  }

  #compensate(compensating: Compensating): boolean {
    if (this.result !== null || this.#compensation === null) return false;
    this.failed = null;
    // What follows in the journal is no longer the body's.
    this.hasEndedInTurn = false;
    this.cancellation.forget();
    void this.#compensation.begin(compensating, (result) => this.#settle(result, true));
    return true;
  }

  #start(input: unknown): void {
    const { workflow, frame, ports } = this.#pass;
    const { definition } = workflow;
    const threw = (error: unknown) => this.#settled({ ok: false, error });
    try {
      // Inside the frame: the `then` of what is returned may be the user's code as well.
      ports.host
        .enter(frame, () => Promise.resolve(definition.handler(new BodyContext(this.#pass), input)))
        .then((value) => this.#settled({ ok: true, value }), threw);
    } catch (error) {
      Promise.reject(error).catch(threw);
    }
  }

  #settled(result: BodyResult): void {
    if (this.#pass.isClosed || this.isCompensating || this.failed !== null) return;
    if (!this.#isDue(result)) return this.#settle(result, this.#pass.isInTurn);
    this.hasEndedInTurn = this.#pass.isInTurn;
    this.failed = result;
    this.#pass.guarded(() => this.#pass.bodyEnded());
  }

  #settle(result: BodyResult, isInTurn: boolean): void {
    this.result = result;
    this.hasEndedInTurn = isInTurn;
    this.#pass.guarded(() => this.#pass.bodyEnded());
  }
}
