// The rules of effects and compensation, looked at entry by entry
// A fold of its own, apart from the engine's: what each run has done, what became of it, and what was taken back. At the end the world outside and
// the engine's ledger are compared with it.
import { hasCode, readProperty } from "../../base/errors.ts";
import type { Cancelling, EffectPlanned, Ended, Entry, Resolved, StepFailed, StepStarted } from "../../core/journal.ts";
import { ledgerOf } from "../../core/ledger.ts";
import type { Bank } from "./bank.ts";
import type { Situation } from "./situations.ts";

export interface EffectPorts {
  readonly bank: Bank;
  /** Acknowledged writes were lost: things may have happened that nobody remembers. */
  hasLost(): boolean;
  violated(invariant: string, what: string): void;
  sometimes(what: Situation): void;
}

interface Action {
  /** Its key in the journal, and what the outside knows it by. */
  readonly step: string;
  readonly key: string;
  readonly plan: Pick<EffectPlanned, "class" | "guard" | "undo">;
  status: "planned" | "executed" | "unknown" | "failed" | "compensated";
  /** An attempt has begun, and its end is not recorded. */
  isUnderWay: boolean;
  /** An earlier attempt may have taken place. */
  mayHaveHappened: boolean;
  /** Its undo has failed for good. */
  isLeft: boolean;
}

interface Doings {
  /** Of the present generation, in the order of their plans. */
  actions: Action[];
  readonly past: Action[];
  isCompensating: boolean;
  cancelling: Cancelling | null;
}

const UNDO = "/undo";

export class EffectChecks {
  readonly #ports: EffectPorts;
  readonly #runs = new Map<string, Doings>();
  /** What a person has been wrong about: they had looked before it happened. */
  readonly #misjudged = new Set<string>();

  /** What more than one run has in its journal: one of them may have taken it back. */
  readonly #shared = new Set<string>();

  constructor(ports: EffectPorts) {
    this.#ports = ports;
  }

  /** A retry has inherited it. */
  share(key: string): void {
    this.#shared.add(key);
  }

  forget(): void {
    this.#runs.clear();
  }

  mayHappenTwice(key: string): boolean {
    return this.#ports.hasLost() || this.#misjudged.has(key);
  }

  isCompensating(run: string): boolean {
    return this.#runs.get(run)?.isCompensating === true;
  }

  /** Takes the next entry of a run in. `key` is what the outside knows its step by. */
  took(run: string, entry: Entry, key: string | null): void {
    switch (entry.type) {
      case "effect.planned":
        return this.#planned(run, entry, key as string, entry.payload as EffectPlanned);
      case "step.started":
        return this.#started(run, entry, key as string);
      case "effect.executed":
      case "step.completed":
        return this.#became(run, entry.key, "executed");
      case "effect.unknown":
        return this.#became(run, entry.key, "unknown");
      case "effect.compensated":
        return this.#compensated(run, entry.key as string);
      case "step.failed":
        return this.#failed(run, entry);
      case "run.resolved":
        return this.#resolved(run, entry.payload as Resolved);
      case "run.continued":
        return this.#continued(run);
      case "run.compensating":
        return this.#compensating(run);
      case "run.cancelling":
        return this.#cancelling(run, entry.payload as Cancelling);
      case "run.succeeded":
      case "run.failed":
      case "run.cancelled":
        this.#ended(run, entry);
        return leaveOpen(this.#runs.get(run)?.actions ?? []);
      default:
    }
  }

  #doings(run: string): Doings {
    const known = this.#runs.get(run);
    if (known !== undefined) return known;
    const made: Doings = { actions: [], past: [], isCompensating: false, cancelling: null };
    this.#runs.set(run, made);
    return made;
  }

  #find(run: string, step: string | null): Action | undefined {
    return this.#runs.get(run)?.actions.find((action) => action.step === step);
  }

  #planned(run: string, { key: step }: Entry, key: string, plan: Action["plan"]): void {
    const action: Action = {
      step: step as string,
      key,
      plan,
      status: "planned",
      isUnderWay: true,
      mayHaveHappened: false,
      isLeft: false,
    };
    this.#doings(run).actions.push(action);
  }

  #started(run: string, entry: Entry, key: string): void {
    const started = entry.payload as StepStarted;
    const step = entry.key as string;
    if (step.endsWith(UNDO)) return this.#undoStarted(run, step.slice(0, -UNDO.length), started);
    if (started?.undo === true && (started.attempt ?? 1) === 1)
      return this.#planned(run, entry, key, { class: "write", guard: "idempotent", undo: true });
    const action = this.#find(run, step);
    if (action === undefined) return;
    if (started?.rerun === true && isUnsafe(action) && action.status !== "unknown")
      this.#violated("E-13", `effect ${step} of run ${run} is repeated, and nobody was asked`);
    // Whoever was asked has said that it did not happen.
    if (started?.rerun === true && action.status !== "unknown") action.mayHaveHappened = true;
    action.status = "planned";
    action.isUnderWay = true;
  }

  /** CO1, CO3: only what was done, or may have been, and the last first. */
  #undoStarted(run: string, step: string, started: StepStarted): void {
    const { actions, isCompensating } = this.#doings(run);
    if (!isCompensating) this.#violated("CO2", `run ${run} undoes ${step} and has not said that it undoes anything`);
    const action = this.#find(run, step);
    if (action === undefined || !isToUndo(action))
      return this.#violated("CO1", `run ${run} undoes ${step}, which is ${action?.status ?? "not known"}`);
    const later = actions.slice(actions.indexOf(action) + 1).find((one) => isToUndo(one) && !one.isLeft);
    if (later !== undefined)
      this.#violated("CO1", `run ${run} undoes ${step} before ${later.step}, which came after it`);
    if (started?.rerun === true) this.#ports.sometimes("an undo was run again after a crash");
  }

  #became(run: string, step: string | null, status: Action["status"]): void {
    const action = this.#find(run, step);
    if (action !== undefined) action.status = status;
  }

  #compensated(run: string, undo: string): void {
    this.#became(run, undo.slice(0, -UNDO.length), "compensated");
    this.#ports.sometimes("an effect was undone");
  }

  #failed(run: string, { key, payload }: Entry): void {
    const { error, retryAt, isRetried, hasBegun } = payload as StepFailed;
    const step = key as string;
    if (step.endsWith(UNDO)) {
      const undone = this.#find(run, step.slice(0, -UNDO.length));
      if (retryAt !== null || undone === undefined) return;
      undone.isLeft = true;
      return this.#ports.sometimes("an undo failed for good");
    }
    const action = this.#find(run, step);
    if (action === undefined) return;
    action.isUnderWay = false;
    if (isOpen(error) && hasBegun !== false) action.mayHaveHappened = true;
    if (retryAt !== null && isUnsafe(action) && isOpen(error) && isRetried !== true)
      this.#violated("E-13", `effect ${step} of run ${run} is to be tried again, and nothing guards it`);
    if (retryAt === null) action.status = action.mayHaveHappened ? "unknown" : "failed";
  }

  #resolved(run: string, { choice }: Resolved): void {
    const { bank } = this.#ports;
    for (const action of this.#doings(run).actions) {
      if (action.status !== "unknown") continue;
      if (choice === "happened" ? !bank.has(action.key) : choice === "did-not-happen" && bank.has(action.key))
        this.#misjudged.add(action.key);
    }
  }

  #continued(run: string): void {
    const doings = this.#doings(run);
    leaveOpen(doings.actions);
    doings.past.push(...doings.actions);
    doings.actions = [];
  }

  #compensating(run: string): void {
    this.#doings(run).isCompensating = true;
    this.#ports.sometimes("a run undid what it had done");
  }

  #cancelling(run: string, cancelling: Cancelling): void {
    const doings = this.#doings(run);
    doings.cancelling = cancelling;
    if (doings.isCompensating) this.#ports.sometimes("a run was cancelled while it undid");
  }

  /** C-15, CO3: what has to be undone is, or is listed. */
  #ended(run: string, { type, payload }: Entry): void {
    const doings = this.#runs.get(run);
    if (doings === undefined) return;
    const { actions, isCompensating, cancelling } = doings;
    const error = type === "run.succeeded" ? null : (payload as Ended).error;
    const left = actions.filter(isToUndo).map(({ step }) => step);
    if (hasCode(error, "compensation_incomplete")) return this.#incomplete(run, left, error);
    const isExempt = readProperty(readProperty(error, "fields"), "compensate") === false;
    const mustUndo = cancelling === null ? type === "run.failed" && !isExempt : cancelling.compensate === true;
    if (left.length > 0 && (mustUndo || isCompensating))
      this.#violated("CO1", `run ${run} ended as ${type}, and ${left.join(", ")} was not undone`);
    const isUndone = actions.some(({ status }) => status === "compensated");
    if (isUndone && type === "run.succeeded") this.#violated("CO2", `run ${run} succeeded and has undone something`);
  }

  #incomplete(run: string, left: readonly string[], error: unknown): void {
    const remaining = readProperty(readProperty(error, "fields"), "remaining") as readonly { effect: string }[];
    const listed = remaining.map(({ effect }) => effect);
    if ([...listed].sort().join() !== [...left].sort().join())
      this.#violated("CO3", `run ${run} lists ${listed.join(", ")} as left, and ${left.join(", ")} is`);
    this.#ports.sometimes("a run ended with something left undone");
  }

  /** At the end: the world outside is what the rules say, and the ledger says the same. */
  atRest(run: string, entries: readonly Entry[]): void {
    const doings = this.#runs.get(run);
    if (doings === undefined || this.#ports.hasLost()) return;
    const actions = [...doings.past, ...doings.actions];
    for (const action of actions) this.#compare(run, action);
    const said = (list: readonly { readonly name: string; readonly status: string }[]) =>
      list.map(({ name, status }) => `${name} ${status}`).join(", ");
    const folded = said(actions.map(({ step, status }) => ({ name: step, status })));
    const ledger = said(ledgerOf(entries).map(({ effect, status }) => ({ name: effect, status })));
    if (folded !== ledger)
      this.#violated("T-15", `the ledger of run ${run} says [${ledger}], what it did is [${folded}]`);
  }

  #compare(run: string, { step, key, status, plan }: Action): void {
    if (plan.class === "read" || this.#misjudged.has(key) || this.#shared.has(key)) return;
    const { bank } = this.#ports;
    if (status === "executed" && !bank.has(key))
      this.#violated("I1", `${step} of run ${run} is recorded as executed, and it is not there`);
    if (status === "failed" && bank.knows(key))
      this.#violated("CO1", `${step} of run ${run} is recorded as failed, and it had happened`);
    if (status === "compensated" && bank.has(key))
      this.#violated("CO1", `${step} of run ${run} is recorded as compensated, and it is still there`);
  }

  #violated(invariant: string, what: string): void {
    this.#ports.violated(invariant, what);
  }
}

/** The run goes on, or ends, without them: what was under way may have happened. */
function leaveOpen(actions: readonly Action[]): void {
  for (const action of actions)
    if (action.status === "planned") action.status = action.isUnderWay || action.mayHaveHappened ? "unknown" : "failed";
}

/** It was done, or nobody can tell, and it can be undone. */
function isToUndo({ plan, status }: Action): boolean {
  return plan.undo && status !== "failed" && status !== "compensated";
}

function isUnsafe({ plan }: Action): boolean {
  return plan.guard === "none" && (plan.class === "write" || plan.class === "execute");
}

/** After which nobody can tell whether it happened. */
function isOpen(error: unknown): boolean {
  const code = readProperty(error, "code");
  if (code === "unsafe_retry" || code === "max_retries_exceeded") return isOpen(readProperty(error, "cause"));
  if (code === "step_interrupted" || code === "step_timeout") return true;
  return readProperty(error, "name") === "RetryableError";
}
