import type { Delivery, Message } from "../../core/store.ts";
import { copyData, isOver, type MemoryRun, patchRow, type Tables } from "./tables.ts";

/** Puts a message into its receiver's inbox and wakes it, or says why not (P18). A cancel is a mark on the run instead (P19). */
export function deliver(tables: Tables, message: Message, now: number): Delivery {
  const run = tables.runs.get(message.to);
  if (run === undefined) return "missing";
  if (isOver(run)) return "ended";
  if (message.kind === "cancel") {
    if (run.row.cancel !== null) return "duplicate";
    patchRow(run, { cancel: typeof message.data === "string" ? message.data : message.name });
  } else {
    if (run.inbox.some(({ row }) => row.id === message.id)) return "duplicate";
    const { id, kind, name } = message;
    const row = { n: run.inbox.length + 1, id, kind, name, data: copyData(message.data), at: now };
    run.inbox.push({ row: Object.freeze(row), isConsumed: false });
  }
  patchRow(run, { wake: run.row.wake + 1 });
  if (isWokenBy(run, message.kind)) patchRow(run, { readyAt: Math.min(run.row.readyAt ?? now, now) });
  return "delivered";
}

/** A parked run moves only for a decision or a cancel; one that is to start later starts then, unless it is cancelled. */
function isWokenBy({ row }: MemoryRun, kind: Message["kind"]): boolean {
  if (row.owner !== null) return false;
  if (kind === "cancel") return true;
  if (row.state === "parked") return kind === "decision";
  return row.state !== "accepted";
}
