// Where a journal has come to
// A fold of everything that a run carries from one generation to the next.
import type { Amounts, Budget } from "./budget.ts";
import type { Cost } from "./context.ts";
import type {
  ChildEnded,
  ChildStarted,
  Continued,
  DryPolicy,
  Entry,
  Forked,
  Reserved,
  RunStarted,
  StatePatched,
  StepStarted,
  Uses,
  VersionChanged,
} from "./journal.ts";
import { isOutline, OUTLINE } from "./outline.ts";
import { generationSeed } from "./seeds.ts";
import { standingOf } from "./state-document.ts";

/** How a run stands at the end of its journal. */
export interface Generation {
  readonly generation: number;
  readonly input: unknown;
  readonly state: Readonly<Record<string, unknown>>;
  readonly cost: Cost;
  readonly seed: string;
  readonly budgets: readonly Budget[] | undefined;
  /** What was done before; of a run made of phases, also what it has done itself: the next generation must not do it again. */
  readonly adopted: unknown;
  readonly structure: string | null;
  readonly uses: Uses | null;
  /** Reserved by attempts whose end nobody recorded, by their key. */
  readonly reserved: ReadonlyMap<string, Amounts>;
  /** Called and not heard of since. */
  readonly children: readonly string[];
  readonly isParked: boolean;
  /** How it is dry; `null`: it is not. */
  readonly effects: DryPolicy | null;
}

/** What both kinds of first entries say. */
type First = Partial<Pick<RunStarted, "input" | "budgets" | "adopted" | "structure" | "uses" | "effects">> & {
  readonly generation?: number;
};

/** Reads where a journal has come to. */
export function generationOf(run: string, entries: readonly Entry[]): Generation {
  const fold = new Fold(run);
  for (const entry of entries) fold.take(entry);
  const result = fold.result();
  return isOutline(result.state[OUTLINE]) ? { ...result, adopted: standingOf(entries) } : result;
}

class Fold {
  readonly #run: string;
  readonly #state = new Map<string, unknown>();
  readonly #cost = new Map<string, number>();
  readonly #reserved = new Map<string, Amounts>();
  readonly #children = new Set<string>();
  #first: First = {};
  #seed: string;
  #structure: string | null = null;
  #uses: Uses | null = null;
  #isParked = false;
  #effects: DryPolicy | null = null;

  constructor(run: string) {
    this.#run = run;
    this.#seed = run;
  }

  take(entry: Entry): void {
    const { type, key, payload } = entry;
    if (type === "run.started") this.#begin(payload as RunStarted, (payload as RunStarted).seed);
    else if (type === "run.continued") this.#continue(payload as Continued);
    else if (type === "run.forked") this.#fork(payload as Forked);
    else if (type === "version.changed") this.#change(payload as VersionChanged);
    else if (type === "run.parked" || type === "run.resolved") this.#isParked = type === "run.parked";
    else if (type === "state.patched" && key !== null) this.#state.set(key, (payload as StatePatched).value);
    else if (type === "cost") this.#spend(payload as Cost);
    else if (type === "child.started") this.#call(payload as ChildStarted);
    else if (type === "child.ended") this.#children.delete((payload as ChildEnded).child);
    else if (key !== null) this.#reserve(entry, key);
  }

  #begin(first: First, seed: string): void {
    this.#first = first;
    this.#seed = seed;
    this.#structure = first.structure ?? null;
    this.#uses = first.uses ?? null;
    this.#effects = first.effects ?? null;
  }

  #continue(continued: Continued): void {
    for (const held of [this.#state, this.#cost, this.#reserved, this.#children]) held.clear();
    for (const [key, value] of Object.entries(continued.state)) this.#state.set(key, value);
    this.#spend(continued.cost);
    this.#begin(continued, continued.seed ?? generationSeed(this.#run, continued.generation));
  }

  #fork({ seed, effects }: Forked): void {
    this.#seed = seed;
    this.#effects = effects ?? this.#effects;
    // A fork has reserved nothing.
    this.#reserved.clear();
  }

  #change({ structure, uses }: VersionChanged): void {
    if (structure !== undefined) this.#structure = structure.to;
    this.#uses ??= uses ?? null;
  }

  #call({ child, detached }: ChildStarted): void {
    if (!detached) this.#children.add(child);
  }

  #spend(amounts: Amounts): void {
    for (const [unit, amount] of Object.entries(amounts)) this.#cost.set(unit, (this.#cost.get(unit) ?? 0) + amount);
  }

  #reserve({ type, payload }: Entry, key: string): void {
    const spend = type === "step.reserved" ? (payload as Reserved).spend : (payload as StepStarted)?.spend;
    const isBegun = type === "step.started" || type === "effect.planned" || type === "step.reserved";
    if (isBegun && spend != null) this.#reserved.set(key, spend);
    if (type === "step.spent" || type === "step.refused") this.#reserved.delete(key);
    if (type === "step.spent") this.#spend(payload as Amounts);
  }

  result(): Generation {
    const { generation = 0, input, adopted, budgets } = this.#first;
    return {
      generation,
      input,
      adopted,
      budgets,
      state: Object.fromEntries(this.#state),
      cost: Object.fromEntries(this.#cost),
      seed: this.#seed,
      structure: this.#structure,
      uses: this.#uses,
      reserved: this.#reserved,
      children: [...this.#children],
      isParked: this.#isParked,
      effects: this.#effects,
    };
  }
}
