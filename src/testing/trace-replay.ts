// Trace replay
// Retells a run from its trace alone, entry by entry, without any code: what happened, and how things stood then.
import { decode } from "../base/codec.ts";
import { type ExportedRun, readExport } from "../client/export.ts";
import { describeEntry } from "../core/divergence.ts";
import { type Entry, entryKind } from "../core/journal.ts";
import { ledgerOf } from "../core/ledger.ts";

/** One moment of a run. */
export interface TraceFrame {
  readonly seq: number;
  readonly at: Date;
  readonly what: string;
  /** Calls that had no outcome yet. */
  readonly open: readonly string[];
  /** What it had done outside, by effect. */
  readonly effects: Readonly<Record<string, string>>;
  readonly cost: Readonly<Record<string, number>>;
  readonly status: "running" | "succeeded" | "failed" | "cancelled";
}

/** Goes through a recorded run. */
export function* traceReplay(recorded: ExportedRun): Generator<TraceFrame> {
  const { entries } = readExport(recorded);
  const seen: Entry[] = [];
  const open = new Map<string, string>();
  const cost: Record<string, number> = {};
  let effects: Record<string, string> = {};
  for (const { value, ...rest } of entries) {
    const entry: Entry = { ...rest, payload: decode(JSON.stringify(value)) };
    seen.push(entry);
    track(open, entry);
    if (isLedgerEntry(entry))
      effects = Object.fromEntries(ledgerOf(seen).map(({ effect, status }) => [effect, status]));
    if (entry.type === "cost" || entry.type === "step.spent")
      for (const [unit, amount] of Object.entries(entry.payload as Record<string, number>))
        cost[unit] = (cost[unit] ?? 0) + amount;
    yield {
      seq: entry.seq,
      at: new Date(entry.at),
      what: describeEntry(entry),
      open: [...open.values()],
      effects,
      cost: { ...cost },
      status: statusAt(entry),
    };
  }
}

function track(open: Map<string, string>, entry: Entry): void {
  const kind = entryKind(entry);
  const id = `${entry.key}`;
  if (kind === "call") open.set(id, describeEntry(entry));
  if (kind === "outcome") open.delete(id);
  if (kind === "end" || entry.type === "run.continued") open.clear();
}

function isLedgerEntry({ type }: Entry): boolean {
  return type.startsWith("effect.") || type.startsWith("step.") || type.startsWith("run.");
}

function statusAt({ type }: Entry): TraceFrame["status"] {
  return type === "run.succeeded"
    ? "succeeded"
    : type === "run.failed"
      ? "failed"
      : type === "run.cancelled"
        ? "cancelled"
        : "running";
}
