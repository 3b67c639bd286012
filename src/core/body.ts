// The body
// The user's code of one pass: how outcomes reach it, live and in replay alike, and what became of it.
import { BodyContext } from "./body-context.ts";
import { type Budget, budgetsFor } from "./budget.ts";
import { Cancellation } from "./cancellation.ts";
import type { BodyResult } from "./endings.ts";
import type { Cancelling, Continued, OutcomeType, RunStarted } from "./journal.ts";
import { deliverOutcome } from "./outcomes.ts";
import type { Pass } from "./pass.ts";
import { generationSeed, type Seeds } from "./seeds.ts";

const NO_BUDGETS: readonly Budget[] = [];

export class Body {
  readonly #pass: Pass;
  readonly #seeds: Seeds;
  readonly cancellation: Cancellation;
  /** What it returned or threw. */
  result: BodyResult | null = null;
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
    if (this.result !== null && this.#pass.isLive) return this.#pass.end(this.result);
    this.cancellation.giveGrace((error) => this.#pass.guarded(() => this.#pass.end({ ok: false, error })));
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
    if (this.#pass.isClosed) return;
    this.result = result;
    this.hasEndedInTurn = this.#pass.isInTurn;
    this.#pass.guarded(() => this.#pass.bodyEnded(result));
  }
}
