// Rewrites
// A run goes on from something that its own journal does not lead to: an edit, a migration, a document that was taken over. Journals are never
// edited; what is new is a generation of its own (P10), written in one commit by whoever owns the run at that moment.
//
//   RW1. What the generation before it was told to wait for is over: waits are closed, open children go, as with `continueAs`.
//   RW2. It draws from the seed of the generation before: what was begun and not recorded keeps its idempotency key.
//   RW3. A park that is open is resolved by it: nobody is asked about what is over.
import { cancelText } from "../base/cancel-text.ts";
import { type Amounts, type Budget, COUNTERS, toCount } from "./budget.ts";
import type { Cost } from "./context.ts";
import { type Draft, encodePayload, encodeRecord } from "./draft.ts";
import type {
  ChildEnded,
  ChildStarted,
  Continued,
  Entry,
  Forked,
  Reserved,
  Resolved,
  RewriteCause,
  RunStarted,
  StatePatched,
  StepStarted,
  Uses,
  VersionChanged,
} from "./journal.ts";
import type { PassPorts } from "./pass-ports.ts";
import { generationSeed } from "./seeds.ts";
import type { ClaimedRun, Needs } from "./store.ts";
import { transition } from "./transition.ts";
import { sealValue } from "./values.ts";

/** How a run stands at the end of its journal. */
export interface Generation {
  readonly generation: number;
  readonly input: unknown;
  readonly state: Readonly<Record<string, unknown>>;
  readonly cost: Cost;
  readonly seed: string;
  readonly budgets: readonly Budget[] | undefined;
  readonly adopted: unknown;
  readonly structure: string | null;
  readonly uses: Uses | null;
  /** Reserved by attempts whose end nobody recorded, by their key. */
  readonly reserved: ReadonlyMap<string, Amounts>;
  /** Called and not heard of since. */
  readonly children: readonly string[];
  readonly isParked: boolean;
}

/** What a run is to go on from; what is absent stays as it is. */
export interface Rewriting {
  readonly cause: RewriteCause;
  readonly by: string;
  readonly reason: string;
  readonly input?: unknown;
  /** All of it: what is not in it is gone. */
  readonly state?: Readonly<Record<string, unknown>>;
  readonly adopted?: unknown;
  readonly version?: string;
  /** Of the definition that it goes on with, where that is known. */
  readonly structure?: string;
  readonly uses?: Uses;
  readonly needs?: Needs;
}

/** What both kinds of first entries say. */
type First = Partial<Pick<RunStarted, "input" | "budgets" | "adopted" | "structure" | "uses">> & {
  readonly generation?: number;
};

/** Reads where a journal has come to. */
export function generationOf(run: string, entries: readonly Entry[]): Generation {
  const fold = new Fold(run);
  for (const entry of entries) fold.take(entry);
  return fold.result();
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
  }

  #continue(continued: Continued): void {
    for (const held of [this.#state, this.#cost, this.#reserved, this.#children]) held.clear();
    for (const [key, value] of Object.entries(continued.state)) this.#state.set(key, value);
    this.#spend(continued.cost);
    this.#begin(continued, continued.seed ?? generationSeed(this.#run, continued.generation));
  }

  #fork({ seed }: Forked): void {
    this.#seed = seed;
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
    };
  }
}

/** Writes the next generation of a run that nobody works on, and lets it go. */
export function writeRewrite(
  draft: Draft,
  claimed: ClaimedRun,
  before: Generation,
  rewriting: Rewriting,
  { clock, codec }: Pick<PassPorts, "clock" | "codec">,
): void {
  const { row } = claimed;
  const now = clock.now();
  const { cause, by, reason } = rewriting;
  if (before.isParked) {
    const choice = cause === "migration" ? "migrate" : cause;
    draft.append(now, "run.resolved", null, { choice, value: { by, reason } } satisfies Resolved);
  }
  const cost = settle(draft, before, now);
  const continued = nextGeneration({ ...before, cost }, rewriting);
  encodePayload(continued.input, "input");
  encodePayload(continued.adopted, "adopted");
  draft.appendText(now, "run.continued", null, encodeRecord(continued, "run state and input"));
  draft.wait({ closeAll: true });
  const left = `Its parent ${row.id} goes on from another state (${cause}).`;
  const data = cancelText({ reason: left, compensate: true });
  for (const to of before.children) draft.send({ to, id: `cancel:${row.id}`, kind: "cancel", name: "", data });
  // What a person has said about an open park is no longer asked.
  for (const { id, kind } of claimed.inbox) if (kind === "decision") draft.consume(id);
  for (const [key, value] of changedState(before.state, continued.state))
    draft.state({ key, data: sealValue(codec, value, { run: row.id, seq: -1, field: `state:${key}` }, key) });
  const { head, hash } = draft.chain;
  draft.row({
    ...(row.state !== "accepted" && { state: transition(row.id, row.state, "running") }),
    release: true,
    readyAt: now,
    wakeAt: null,
    claims: 0,
    head,
    headHash: hash,
    ...(Object.keys(cost).length > 0 && { cost: JSON.stringify(cost) }),
    ...(rewriting.version !== undefined && { version: rewriting.version }),
    ...(rewriting.needs !== undefined && { needs: rewriting.needs }),
  });
}

function nextGeneration(before: Generation, rewriting: Rewriting): Continued {
  const { cause, by, reason, version } = rewriting;
  const changesCode = version !== undefined;
  const structure = rewriting.structure ?? (changesCode ? null : before.structure);
  const uses = rewriting.uses ?? (changesCode ? null : before.uses);
  const adopted = "adopted" in rewriting ? rewriting.adopted : before.adopted;
  return {
    generation: before.generation + 1,
    input: "input" in rewriting ? rewriting.input : before.input,
    state: rewriting.state ?? before.state,
    cost: before.cost,
    seed: before.seed,
    ...(before.budgets !== undefined && { budgets: before.budgets }),
    ...(adopted !== undefined && { adopted }),
    ...(structure !== null && { structure }),
    ...(uses !== null && { uses }),
    cause,
    ...(version !== undefined && { version }),
    by,
    reason,
  };
}

/** What was under way may have spent all that it reserved. Gives what the run has cost with it. */
function settle(draft: Draft, { reserved, budgets, cost }: Generation, now: number): Cost {
  const costs = { ...cost } as Record<string, number>;
  for (const [key, amounts] of reserved) {
    const { calls: _, ...spent } = amounts;
    draft.append(now, "step.spent", key, spent);
    for (const [unit, amount] of Object.entries(spent)) costs[unit] = (costs[unit] ?? 0) + amount;
    for (const { run: of, limits } of budgets ?? [])
      for (const unit of Object.keys(limits)) giveBack(draft, of, unit, amounts[unit] ?? 0);
  }
  return costs;
}

function giveBack(draft: Draft, of: string, unit: string, amount: number): void {
  const by = unit === "time" ? 0 : -toCount(unit, amount);
  if (by !== 0) draft.counter({ key: COUNTERS.reserved(unit), of, by, max: null, held: true });
}

/** What differs; what is gone is undefined from now on. */
function changedState(before: Generation["state"], after: Generation["state"]): [string, unknown][] {
  const gone = Object.keys(before).filter((key) => !(key in after));
  const changed = Object.entries(after).filter(([key, value]) => {
    return !(key in before) || encodePayload(before[key], key) !== encodePayload(value, key);
  });
  return [...changed, ...gone.map((key): [string, unknown] => [key, undefined])];
}
