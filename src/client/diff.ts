// Two runs side by side
// Their calls in the order in which either came to them, what became of each, and where the ways part. A fork shares its first entries with
// its source; two runs of one workflow share the keys of their calls.
import { decode, encode } from "../base/codec.ts";
import { messageWithCause } from "../base/errors.ts";
import type { ApprovalDecided } from "../core/approval-request.ts";
import { type Ended, type Entry, entryKind, isStepSuccess, type StepFailed } from "../core/journal.ts";
import { ledgerOf } from "../core/ledger.ts";
import { publicStatus } from "../core/transition.ts";
import type { ExportedRun } from "./export.ts";
import { type ExportSource, exportRun } from "./export.ts";

/** What became of a call in one of the runs. */
export interface DiffSide {
  readonly seq: number;
  readonly status: "open" | "done" | "failed";
  readonly attempts: number;
  /** As tagged JSON; of a failure its message. */
  readonly value: unknown;
  readonly tookMs: number | null;
}

/** A call of either run. */
export interface DiffRow {
  /** `step`, `effect`, `timer`, `signal`, `child`, `approval` or `callback`. */
  readonly kind: string;
  readonly key: string;
  readonly a: DiffSide | null;
  readonly b: DiffSide | null;
  /** Both have it, and it came to the same. */
  readonly isSame: boolean;
}

export interface DiffedRun {
  readonly id: string;
  readonly workflow: string;
  readonly version: string;
  readonly status: string;
  readonly stopReason: string | null;
  /** The output, or the message of the error; `null` for a run that has not ended. */
  readonly outcome: unknown;
  readonly cost: Readonly<Record<string, number>>;
  readonly tookMs: number;
  readonly entries: number;
}

/** Two runs, and where they differ. */
export interface RunDiff {
  readonly a: DiffedRun;
  readonly b: DiffedRun;
  readonly isSame: boolean;
  readonly rows: readonly DiffRow[];
  /** The first call that differs; `null`: none does. */
  readonly first: DiffRow | null;
  /** What the ledgers do not agree on. */
  readonly effects: readonly { readonly effect: string; readonly a: string | null; readonly b: string | null }[];
  readonly sameInput: boolean;
  readonly sameOutcome: boolean;
}

/** Compares two runs of a store. */
export async function diffRuns(pawl: ExportSource, a: string, b: string): Promise<RunDiff> {
  return diffExports(await exportRun(pawl, a), await exportRun(pawl, b));
}

/** Compares two exported runs. */
export function diffExports(a: ExportedRun, b: ExportedRun): RunDiff {
  const [one, other] = [new Told(a), new Told(b)];
  const keys = [...new Set([...one.calls.keys(), ...other.calls.keys()])].sort(
    (x, y) => one.placeOf(x, other) - one.placeOf(y, other),
  );
  const rows = keys.map((key) => rowOf(key, one.calls.get(key) ?? null, other.calls.get(key) ?? null));
  const effects = differingEffects(one, other);
  const sameInput = one.input === other.input;
  const sameOutcome = one.end === other.end;
  const first = rows.find(({ isSame }) => !isSame) ?? null;
  const isSame = first === null && effects.length === 0 && sameInput && sameOutcome;
  return { a: one.summary, b: other.summary, isSame, rows, first, effects, sameInput, sameOutcome };
}

const KINDS: Readonly<Record<string, string>> = {
  "step.started": "step",
  "effect.planned": "effect",
  "timer.set": "timer",
};

/** A run as its journal tells it. */
class Told {
  readonly calls = new Map<string, DiffSide>();
  readonly entries: readonly Entry[];
  readonly summary: DiffedRun;
  readonly input: string;
  readonly end: string;

  constructor(exported: ExportedRun) {
    const { run } = exported;
    this.entries = exported.entries.map(({ value, ...entry }) => ({
      ...entry,
      payload: decode(JSON.stringify(value)),
    }));
    const [first, last] = [this.entries[0], this.entries.at(-1)];
    for (const entry of this.entries) this.#take(entry);
    const outcome = outcomeOf(last);
    this.input = encode((first?.payload as { readonly input?: unknown } | undefined)?.input);
    this.end = encode([publicStatus(run.state), run.stopReason, outcome]);
    this.summary = {
      id: run.id,
      workflow: run.workflow,
      version: run.version,
      status: publicStatus(run.state),
      stopReason: run.stopReason,
      outcome,
      cost: this.#cost(),
      tookMs: (last?.at ?? 0) - (first?.at ?? 0),
      entries: this.entries.length,
    };
  }

  /** Where a call stands: among the calls of this run, or before the next one that both have. */
  placeOf(key: string, other: Told): number {
    const own = this.calls.get(key);
    if (own !== undefined) return own.seq;
    const there = other.calls.get(key)?.seq ?? 0;
    const shared = [...other.calls].filter(([name, { seq }]) => seq < there && this.calls.has(name));
    const before = Math.max(-1, ...shared.map(([name]) => this.calls.get(name)?.seq ?? -1));
    return before + there / (there + 1e9) + 1e-9;
  }

  #take(entry: Entry): void {
    const { type, key, at, payload } = entry;
    if (key === null) return;
    const kind = entryKind(entry);
    if (kind === "call") {
      const name = `${KINDS[type] ?? type.split(".")[0]} ${key}`;
      this.calls.set(name, { seq: entry.seq, status: "open", attempts: 1, value: null, tookMs: -at });
      return;
    }
    const found = this.#openCall(entry);
    if (found === null) return;
    const [name, side] = found;
    if (type === "step.started") this.calls.set(name, { ...side, attempts: side.attempts + 1 });
    if (kind !== "outcome") return;
    const isFailed = type === "step.failed" || hasFailed(payload);
    const value = isFailed ? failureText(type, payload) : givenBy(type, payload);
    this.calls.set(name, { ...side, status: isFailed ? "failed" : "done", value, tookMs: at + (side.tookMs ?? 0) });
  }

  #openCall({ type, key }: Entry): [string, DiffSide] | null {
    const kinds =
      type.startsWith("step.") || isStepSuccess(type)
        ? ["step", "effect"]
        : type === "timer.fired"
          ? ["timer", "signal"]
          : [type.split(".")[0] ?? ""];
    for (const kind of kinds) {
      const side = this.calls.get(`${kind} ${key}`);
      if (side !== undefined) return [`${kind} ${key}`, side];
    }
    return null;
  }

  #cost(): Record<string, number> {
    const cost: Record<string, number> = {};
    for (const { type, payload } of this.entries) {
      if (type !== "cost" && type !== "step.spent") continue;
      for (const [unit, amount] of Object.entries(payload as Record<string, number>))
        cost[unit] = (cost[unit] ?? 0) + amount;
    }
    return cost;
  }
}

function rowOf(name: string, a: DiffSide | null, b: DiffSide | null): DiffRow {
  const [kind = "", ...key] = name.split(" ");
  const closed = (side: DiffSide | null) =>
    side === null || side.status !== "open" ? side : { ...side, tookMs: null };
  const isSame = a !== null && b !== null && a.status === b.status && encode(a.value) === encode(b.value);
  return { kind, key: key.join(" "), a: closed(a), b: closed(b), isSame };
}

function outcomeOf(last: Entry | undefined): unknown {
  if (last === undefined || entryKind(last) !== "end") return null;
  return last.type === "run.succeeded" ? plain(last.payload) : messageWithCause((last.payload as Ended).error);
}

function hasFailed(payload: unknown): boolean {
  const { status, decision } = (payload ?? {}) as { readonly status?: unknown; readonly decision?: unknown };
  if (decision !== undefined) return decision !== "approved";
  return status === "failed" || status === "cancelled" || status === "expired";
}

function failureText(type: string, payload: unknown): string {
  if (type === "step.failed") return messageWithCause((payload as StepFailed).error);
  if (type === "approval.decided") return (payload as ApprovalDecided).decision;
  return String((payload as { readonly status?: unknown }).status);
}

/** What the body was given. Ids of runs and messages are no part of it: they differ by nature. */
function givenBy(type: string, payload: unknown): unknown {
  if (type === "signal.received") return plain((payload as { readonly payload: unknown }).payload);
  if (type === "child.ended" || type === "callback.ended")
    return plain((payload as { readonly value?: unknown }).value);
  if (type === "approval.decided") return (payload as ApprovalDecided).decision;
  return type === "timer.fired" || type === "effect.compensated" ? null : plain(payload);
}

function plain(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(encode(value));
}

function differingEffects(a: Told, b: Told): RunDiff["effects"] {
  const [one, other] = [statusesIn(a), statusesIn(b)];
  const names = [...new Set([...one.keys(), ...other.keys()])];
  const both = names.map((effect) => ({ effect, a: one.get(effect) ?? null, b: other.get(effect) ?? null }));
  return both.filter((row) => row.a !== row.b);
}

function statusesIn({ entries }: Told): Map<string, string> {
  return new Map(
    ledgerOf(entries).map(({ effect, status, dry }) => [effect, dry === true ? `${status} (dry)` : status]),
  );
}
