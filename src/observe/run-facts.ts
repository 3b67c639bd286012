// Facts of a run
// What one journal says that metrics count, as a fold. Of a run that has ended it never changes.
import { type ApprovalDecided, type ApprovalRequested, approversAt } from "../core/approval-request.ts";
import type {
  Continued,
  EffectPlanned,
  Entry,
  Forked,
  Parked,
  ParkReason,
  RunStarted,
  StepFailed,
  StepStarted,
} from "../core/journal.ts";
import type { RunRow } from "../core/store.ts";
import { isTerminal, type RunState } from "../core/transition.ts";
import { sharedActionOf, UNDO_SUFFIX } from "../core/undoable-call.ts";

export interface ApprovalFact {
  /** Who could decide when it was decided. */
  readonly approvers: readonly string[];
  readonly waitedMs: number;
}

/** An action that somebody else may do as well, and the effect that did it. */
export interface ActionFact {
  readonly action: string;
  readonly effect: string;
  readonly at: number;
}

export interface RunFacts {
  readonly run: string;
  readonly workflow: string;
  readonly state: RunState;
  /** It went on after a crash, a park or a retry; `clean`: it then came to an end, and nobody had to repair it. */
  readonly resumed: "no" | "clean" | "repaired" | "open";
  readonly retried: { readonly total: number; readonly succeeded: number };
  readonly undone: { readonly started: number; readonly completed: number };
  readonly approvals: readonly ApprovalFact[];
  /** `null` for a run that was not cancelled; `late`: something was done outside after that. */
  readonly cancelled: "clean" | "late" | null;
  readonly replays: { readonly total: number; readonly failed: number };
  readonly actions: readonly ActionFact[];
}

/** Parks that say that a journal could not be replayed. */
const FAILED_REPLAY: ReadonlySet<ParkReason> = new Set<ParkReason>([
  "replay_drift",
  "replay_stalled",
  "corrupted_journal",
  "foreign_await",
  "definition_changed",
]);

type FactRow = Pick<RunRow, "id" | "workflow" | "state" | "origin" | "stopReason">;

export function factsOf(row: FactRow, entries: readonly Entry[]): RunFacts {
  const fold = new FactFold(row);
  for (const entry of entries) fold.take(entry);
  return fold.facts;
}

class FactFold {
  readonly #row: FactRow;
  #seed = "";
  #crashes = 0;
  #parks = 0;
  #repairs = 0;
  #failedReplays = 0;
  #isCancelled = false;
  #isLate = false;
  #undosStarted = new Set<string>();
  #undosDone = 0;
  /** Steps that were tried again, and whether they succeeded. */
  readonly #retried = new Map<string, boolean>();
  readonly #planned = new Map<string, EffectPlanned>();
  readonly #asked = new Map<string, ApprovalRequested>();
  readonly #approvals: ApprovalFact[] = [];
  readonly #actions: ActionFact[] = [];

  constructor(row: FactRow) {
    this.#row = row;
  }

  take(entry: Entry): void {
    const { type, key, payload, at } = entry;
    switch (type) {
      case "run.started":
        this.#seed = (payload as RunStarted).seed;
        return;
      case "run.forked":
        this.#inherited(payload as Forked);
        return;
      case "run.continued":
        return this.#continued(payload as Continued);
      case "run.parked":
        this.#parks++;
        if (FAILED_REPLAY.has((payload as Parked).reason)) this.#failedReplays++;
        return;
      case "run.resolved":
        this.#repairs++;
        return;
      case "run.cancelling":
        this.#isCancelled = true;
        return;
      default:
        if (key !== null) this.#takeCall(type, key, payload, at);
    }
  }

  /** What came before was copied: the run that it was forked from counts it. */
  #inherited({ seed }: Forked): void {
    this.#seed = seed;
    this.#crashes = this.#parks = this.#repairs = this.#failedReplays = this.#undosDone = 0;
    this.#isCancelled = this.#isLate = false;
    this.#undosStarted.clear();
    this.#retried.clear();
    this.#approvals.length = 0;
    this.#actions.length = 0;
  }

  #continued({ cause }: Continued): void {
    if (cause === "edit" || cause === "migration" || cause === "accept") this.#repairs++;
    this.#planned.clear();
    this.#asked.clear();
  }

  #takeCall(type: Entry["type"], key: string, payload: unknown, at: number): void {
    switch (type) {
      case "effect.planned":
        this.#planned.set(key, payload as EffectPlanned);
        this.#isLate ||= this.#isCancelled;
        return;
      case "step.started":
        return this.#started(key, payload as StepStarted);
      case "step.failed":
        if ((payload as StepFailed).retryAt !== null) this.#retried.set(key, false);
        return;
      case "step.completed":
        return this.#succeeded(key);
      case "effect.executed":
        this.#succeeded(key);
        this.#isLate ||= this.#isCancelled;
        return this.#executed(key, at);
      case "effect.compensated":
        this.#succeeded(key);
        this.#undosDone++;
        return;
      case "effect.unknown":
        if ((payload as { error?: unknown }).error === undefined) this.#crashes++;
        return;
      case "approval.requested":
        this.#asked.set(key, payload as ApprovalRequested);
        return;
      case "approval.decided":
        return this.#decided(key, payload as ApprovalDecided);
    }
  }

  #started(key: string, started: StepStarted): void {
    if (started?.rerun === true) this.#crashes++;
    if (key.endsWith(UNDO_SUFFIX)) this.#undosStarted.add(key);
  }

  #succeeded(key: string): void {
    if (this.#retried.has(key)) this.#retried.set(key, true);
  }

  #executed(key: string, at: number): void {
    const planned = this.#planned.get(key);
    // In a dry run nothing was done.
    if (planned === undefined || planned.dry === true) return;
    const name = key.replace(/#\d+$/, "");
    const action = sharedActionOf(name, { ...planned, key: this.#isDerived(planned.key, key) ? null : planned.key });
    if (action !== null) this.#actions.push({ action, effect: key, at });
  }

  /** A key of the business is a name, and so has none of what joins the parts of the others. */
  #isDerived(given: string, key: string): boolean {
    return given === this.#seed || given.includes("#") || given.endsWith(`/${key}`);
  }

  #decided(key: string, { at, waitedMs }: ApprovalDecided): void {
    const request = this.#asked.get(key);
    const approvers = request === undefined ? [] : approversAt(request, at);
    this.#approvals.push({ approvers, waitedMs });
  }

  get facts(): RunFacts {
    const { id: run, workflow, state } = this.#row;
    const retried = [...this.#retried.values()];
    const replays = this.#crashes + this.#repairs + this.#failedReplays;
    return {
      run,
      workflow,
      state,
      resumed: this.#resumed(state),
      retried: { total: retried.length, succeeded: retried.filter(Boolean).length },
      undone: { started: this.#undosStarted.size, completed: this.#undosDone },
      approvals: this.#approvals,
      cancelled: state !== "cancelled" ? null : this.#isLate ? "late" : "clean",
      replays: { total: replays, failed: this.#failedReplays },
      actions: this.#actions,
    };
  }

  #resumed(state: RunState): RunFacts["resumed"] {
    const wasResumed = this.#crashes + this.#repairs + this.#parks > 0 || this.#row.origin !== null;
    if (!wasResumed) return "no";
    if (this.#repairs > 0 || state === "parked") return "repaired";
    return isTerminal(state) ? "clean" : "open";
  }
}
