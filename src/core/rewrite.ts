// Rewrites
// A run goes on from something that its own journal does not lead to: an edit, a migration, a document that was taken over. Journals are never
// edited; what is new is a generation of its own (P10), written in one commit by whoever owns the run at that moment.
//
//   RW1. What the generation before it was told to wait for is over: waits are closed, open children go, as with `continueAs`.
//   RW2. It draws from the seed of the generation before: what was begun and not recorded keeps its idempotency key.
//   RW3. A park that is open is resolved by it: nobody is asked about what is over.
import { cancelText } from "../base/cancel-text.ts";
import { PawlError } from "../base/errors.ts";
import { COUNTERS, toCount } from "./budget.ts";
import type { Cost } from "./context.ts";
import { Draft, encodePayload, encodeRecord } from "./draft.ts";
import { needsOf } from "./flow-control.ts";
import { type Generation, generationOf } from "./generation.ts";
import type { Continued, Entry, Resolved, RewriteCause, Uses } from "./journal.ts";
import { BLOCKED, GATE, MANUAL } from "./outline.ts";
import type { PassPorts } from "./pass-ports.ts";
import type { ClaimedRun, Needs, RunCommit } from "./store.ts";
import { transition } from "./transition.ts";
import { openJournal, sealValue } from "./values.ts";
import type { Workflow } from "./workflow.ts";

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

/** The commit that rewrites a run; throws if it stands where it must not be rewritten. */
export function rewriteCommit(
  claimed: ClaimedRun,
  rewriting: Rewriting,
  workflow: Workflow | null,
  { clock, host, codec }: Pick<PassPorts, "clock" | "host" | "codec">,
): RunCommit {
  const { run, row, journal } = claimed;
  const entries = openJournal(host, codec, row, journal, false);
  assertNotStopping(run, entries);
  const last = journal.at(-1);
  const draft = new Draft(run, { head: claimed.head, hash: last?.hash ?? run, at: last?.at ?? 0 }, host, codec);
  const before = generationOf(run, entries);
  const input = "input" in rewriting ? rewriting.input : before.input;
  const needs = workflow === null ? null : needsOf(workflow, input);
  writeRewrite(draft, claimed, before, { ...rewriting, ...(needs !== null && { needs }) }, { clock, codec });
  return draft.take().commit;
}

/** What is being undone must be undone: a new generation would know nothing of it. */
function assertNotStopping(run: string, entries: readonly Entry[]): void {
  const last = entries.findLast(({ type }) => /^run\.(compensating|cancelling|continued)$/.test(type));
  if (last === undefined || last.type === "run.continued") return;
  const what = last.type === "run.compensating" ? "is undoing what it has done" : "is being cancelled";
  throw new PawlError("run_busy", `Run ${run} ${what}: it cannot be given another state. Wait until it has ended.`, {
    fields: { run },
  });
}

/** Writes the next generation of a run that nobody works on, and lets it go. */
function writeRewrite(
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
    state: row.state === "accepted" ? row.state : transition(row.id, row.state, "running"),
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
    state: withoutQuestions(rewriting.state ?? before.state),
    cost: before.cost,
    seed: before.seed,
    ...(before.budgets !== undefined && { budgets: before.budgets }),
    ...(adopted !== undefined && { adopted }),
    ...(structure !== null && { structure }),
    ...(uses !== null && { uses }),
    ...(before.effects !== null && { effects: before.effects }),
    cause,
    ...(version !== undefined && { version }),
    by,
    reason,
  };
}

/** What the generation before has asked people and waited for: an answer would reach nobody. */
function withoutQuestions(state: Generation["state"]): Generation["state"] {
  return Object.fromEntries(Object.entries(state).filter(([key]) => ![BLOCKED, GATE, MANUAL].includes(key)));
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
