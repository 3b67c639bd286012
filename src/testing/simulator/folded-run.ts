// What a run's rows must say, as a fold of its journal (I4)
// Written to be obviously right, and to be fed entry by entry: after each commit only what is new is looked at.
import { encode } from "../../base/codec.ts";
import { jsonCodec } from "../../base/envelope.ts";
import type { ApprovalEscalated, ApprovalRequested } from "../../core/approval-request.ts";
import type { CallbackOpened } from "../../core/callback.ts";
import type {
  ChildStarted,
  Continued,
  Entry,
  RunStarted,
  SignalAwaited,
  StatePatched,
  StepFailed,
  StepStarted,
  StoredEntry,
  TimerSet,
} from "../../core/journal.ts";
import { BEFORE_BODY } from "../../core/put-off.ts";
import { isTerminal } from "../../core/transition.ts";
import { openEntry, openValue } from "../../core/values.ts";
import type { MemoryRun } from "../../stores/memory/tables.ts";

/** Nothing here looks at what steps and children have returned. */
const LARGE: ReadonlySet<string> = new Set(["step.completed", "child.ended", "note"]);

/** What a store keeps of a run. */
export type StoredRows = Pick<MemoryRun, "row" | "journal" | "waits" | "state">;

export class FoldedRun {
  readonly id: string;
  readonly entries: StoredEntry[] = [];
  /** Due times of the open waits, by their keys. */
  readonly waits: Map<string, number | null> = new Map();
  /** Steps that a budget has refused: they are parked, or tried again by and by. */
  readonly #refused = new Set<string>();
  readonly state: Map<string, unknown> = new Map();
  readonly cost: Map<string, number> = new Map();
  end: string | null = null;
  isParked = false;
  isCancelling = false;
  isCompensating = false;
  generation = 0;
  /** When it may begin, while it has not; `null`: at any time, or it has begun. */
  notBefore: number | null = null;

  constructor(id: string) {
    this.id = id;
  }

  /** When the timer or the wait of this key is due. */
  dueOf(key: string): number | null {
    return this.waits.get(`timer:${key}`) ?? this.waits.get(`signal:${key}`) ?? null;
  }

  /** Takes the next entry in. */
  take(stored: StoredEntry): Entry {
    this.entries.push(stored);
    const entry = LARGE.has(stored.type) ? { ...stored, payload: null } : openEntry(jsonCodec, this.id, stored);
    this.#fold(entry);
    return entry;
  }

  #fold({ type, key, payload }: Entry): void {
    const { waits } = this;
    if (!BEFORE_BODY.has(type)) this.notBefore = null;
    else this.notBefore = (payload as Partial<RunStarted & Continued>).notBefore ?? this.notBefore;
    if (type === "step.refused") this.#refused.add(key as string);
    else if (key !== null && type.startsWith("step.")) this.#refused.delete(key);
    else if (type === "run.continued" || type === "run.cancelling" || type === "run.compensating")
      this.#refused.clear();
    switch (type) {
      case "timer.set":
        return void waits.set(`timer:${key}`, (payload as TimerSet).due);
      case "signal.awaited":
        return void waits.set(`signal:${key}`, (payload as SignalAwaited).due);
      case "child.started":
        return (payload as ChildStarted).detached ? undefined : void waits.set(`child:${key}`, null);
      case "approval.requested":
        return void waits.set(`approval:${key}`, (payload as ApprovalRequested).due);
      case "approval.escalated":
        return void waits.set(`approval:${key}`, (payload as ApprovalEscalated).next);
      case "approval.decided":
        return void waits.delete(`approval:${key}`);
      case "callback.opened":
        return void waits.set(`callback:${key}`, (payload as CallbackOpened).due);
      case "callback.ended":
        return void waits.delete(`callback:${key}`);
      case "timer.fired":
        return void waits.delete(`${payload === null ? "timer" : "signal"}:${key}`);
      case "signal.received":
        return void waits.delete(`signal:${key}`);
      case "child.ended":
        return void waits.delete(`child:${key}`);
      case "step.started":
        return ((payload as StepStarted)?.attempt ?? 1) > 1 ? void waits.delete(`retry:${key}`) : undefined;
      case "step.failed": {
        const { retryAt } = payload as StepFailed;
        return void (retryAt === null ? waits.delete(`retry:${key}`) : waits.set(`retry:${key}`, retryAt));
      }
      case "step.completed":
      case "effect.executed":
      case "effect.compensated":
        return void waits.delete(`retry:${key}`);
      case "run.parked":
        this.isParked = true;
        return void waits.set("decision", null);
      case "run.resolved":
        this.isParked = false;
        return void waits.delete("decision");
      case "state.patched":
        return void this.state.set(key as string, (payload as StatePatched).value);
      case "cost":
      case "step.spent":
        for (const [unit, by] of Object.entries(payload as Record<string, number>))
          this.cost.set(unit, (this.cost.get(unit) ?? 0) + by);
        return;
      case "run.continued":
        this.generation++;
        return waits.clear();
      case "run.cancelling":
        this.isCancelling = true;
        this.isParked = false;
        // What is being undone is undone.
        return this.isCompensating ? undefined : waits.clear();
      case "run.compensating":
        this.isCompensating = true;
        return waits.clear();
      case "run.succeeded":
      case "run.failed":
      case "run.cancelled":
        this.end = type.slice("run.".length);
        return waits.clear();
      default:
    }
  }

  /** What the store's rows say that the journal does not, in plain words; `null` if they agree. */
  faultOf(stored: StoredRows): string | null {
    const { row, journal } = stored;
    if (journal.length !== this.entries.length)
      return `its journal has ${journal.length} entries, ${this.entries.length} were applied`;
    if (journal.at(-1)?.hash !== this.entries.at(-1)?.hash) return "its last entry is not the one that was applied";
    if (row.head > journal.length || row.headHash !== journal[row.head - 1]?.hash)
      return `its row knows an entry ${row.head - 1} that is not there`;
    return this.#waitFault(stored) ?? this.#stateFault(stored) ?? this.#wordFault(stored) ?? this.#alarmFault(stored);
  }

  #waitFault({ waits }: StoredRows): string | null {
    const said = (list: Iterable<readonly [string, number | null]>) =>
      [...list]
        .map(([key, due]) => `${key} ${due}`)
        .sort()
        .join(", ");
    const stored = said([...waits.values()].map(({ key, due }) => [key, due] as const));
    const folded = said(this.waits);
    return stored === folded ? null : `its waits are [${stored}], its journal says [${folded}]`;
  }

  #stateFault({ state }: StoredRows): string | null {
    for (const [key, value] of this.state) {
      const row = state.get(key);
      const kept =
        row === undefined
          ? undefined
          : openValue(jsonCodec, row.data, { run: this.id, seq: -1, field: `state:${key}` });
      if (encode(kept) !== encode(value))
        return `its state "${key}" is ${String(kept)}, its journal says ${String(value)}`;
    }
    return null;
  }

  /** Only an owner may be between two words. */
  #wordFault({ row, waits }: StoredRows): string | null {
    const fitting = (): readonly string[] => {
      if (this.end !== null) return [this.end];
      if (row.owner !== null) return this.isCompensating ? ["running", "compensating"] : ["running", "parked"];
      if (this.isParked) return ["parked"];
      if (this.isCompensating) return row.readyAt === null ? ["compensating"] : ["running", "compensating"];
      if (row.readyAt !== null) return ["accepted", "running", "waiting", "retrying"];
      if (row.wakeAt !== null && waits.size === 0) return this.#refused.size > 0 ? ["retrying"] : ["accepted"];
      const word = [...waits.values()].some(({ kind }) => kind !== "retry") ? "waiting" : "retrying";
      // A fork has waits before anybody works on it, which is later if whoever has forked it has a clock that is ahead.
      const mayBeNew = row.wakeAt !== null && this.entries.at(-1)?.type === "run.forked";
      return mayBeNew ? [word, "accepted"] : [word];
    };
    const words = fitting();
    return words.includes(row.state) ? null : `its row says ${row.state}, its journal ${words.join(" or ")}`;
  }

  /** Who sleeps has an alarm at the first moment that something of it falls due. */
  #alarmFault({ row }: StoredRows): string | null {
    if (row.owner !== null || row.readyAt !== null || isTerminal(row.state) || row.state === "accepted") return null;
    const due = [this.isCompensating ? null : row.deadline, ...this.waits.values()].filter((time) => time !== null);
    const first = row.state === "parked" || due.length === 0 ? null : Math.min(...due);
    const mayBeEarlier = this.#refused.size > 0 && row.wakeAt !== null && row.wakeAt <= (first ?? row.wakeAt);
    return row.wakeAt === first || mayBeEarlier ? null : `its alarm is set to ${row.wakeAt} instead of ${first}`;
  }
}
