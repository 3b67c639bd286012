// What now?
// The answer to that question, from a state document alone: whoever asks needs no memory of what it did before.
import { stepKey } from "./outline.ts";
import type { PhaseRecord, StateDocument, StepRecord } from "./state-document.ts";
import { type GivenDocument, readStateDocument } from "./state-document-reader.ts";

/** What comes next in a run. */
export interface NextMove {
  readonly run: string;
  /** "run": the step below is next. "do": it is done outside, by whoever asks. "decide": somebody must choose. "wait": it goes on by itself, or when what it waits for comes. "nothing": it has ended. */
  readonly action: "run" | "do" | "decide" | "wait" | "nothing";
  readonly phase: string | null;
  readonly step: string | null;
  /** The output files that are there for it, by phase or `phase.step`. */
  readonly inputs: Readonly<Record<string, string>>;
  /** What keeps it from going on. */
  readonly blocked: { readonly at: string; readonly error: string; readonly choices: readonly string[] } | null;
  readonly waiting_for: NonNullable<StateDocument["waiting_for"]>;
  /** Pointers that contradict the statuses, and the like. */
  readonly warnings: readonly string[];
}

const CHOICES = ["retry", "skip", "abort"] as const;

/** Reads a state document and tells what comes next; the same answer in every process. */
export function nextOf(value: unknown): NextMove {
  const { document, warnings } = readStateDocument(value);
  const current = orderOf(document).find(({ record }) => record.status !== "done");
  const waits = document.waiting_for ?? [];
  const blocked = current === undefined || isEnded(document) ? null : blockOf(current, waits);
  return {
    run: document.workflow_id,
    action: actionOf(document, current !== undefined, blocked !== null, waits.length > 0),
    phase: current?.phase ?? null,
    step: current?.step ?? null,
    inputs: inputsOf(document),
    blocked,
    waiting_for: waits,
    warnings,
  };
}

interface Unit {
  readonly phase: string;
  readonly step: string | null;
  readonly record: StepRecord;
}

function actionOf(document: GivenDocument, isLeft: boolean, isBlocked: boolean, waits: boolean): NextMove["action"] {
  if (isEnded(document) || (!isLeft && document.status === undefined)) return "nothing";
  if (isBlocked || document.waiting_for?.some(({ kind }) => kind === "decision") === true) return "decide";
  const kinds = new Set(document.waiting_for?.map(({ kind }) => kind));
  if (kinds.has("manual")) return "do";
  return (waits && !kinds.has("advance")) || !isLeft ? "wait" : "run";
}

function isEnded({ status, cancelled }: GivenDocument): boolean {
  return status === "done" || status === "failed" || cancelled === true;
}

function blockOf({ phase, step, record }: Unit, waits: NextMove["waiting_for"]): NextMove["blocked"] {
  if (record.status !== "failed") return null;
  const choices = waits.find(({ kind }) => kind === "decision")?.choices ?? CHOICES;
  return { at: stepKey(phase, step ?? undefined), error: record.error ?? "it failed", choices };
}

/** Steps in the order of the definition where the document has it, otherwise in its own. A phase that is done or failed counts as a whole. */
function orderOf({ phases, phase_order }: GivenDocument): Unit[] {
  return ordered(phases, phase_order).flatMap(([phase, record]): Unit[] => {
    const steps = record.status === "done" ? [] : ordered(record.steps ?? {}, record.step_order);
    const units = steps.map(([step, one]) => ({ phase, step, record: one }));
    const isSpent = units.every(({ record: one }) => one.status === "done");
    return units.length === 0 || isSpent ? [{ phase, step: null, record }] : units;
  });
}

function ordered<T extends PhaseRecord | StepRecord>(
  records: Readonly<Record<string, T>>,
  order: readonly string[] | undefined,
): [string, T][] {
  const listed = (order ?? []).flatMap((name) =>
    records[name] === undefined ? [] : [[name, records[name]] as [string, T]],
  );
  const others = Object.entries(records).filter(([name]) => order?.includes(name) !== true);
  return [...listed, ...others.sort(([a], [b]) => byNumbers(a, b))];
}

/** Keys in a document have no order that means anything: names say more, `phase_10` after `phase_9`. */
function byNumbers(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}

function inputsOf({ phases }: GivenDocument): Record<string, string> {
  const found = Object.entries(phases).flatMap(([phase, record]) => [
    [stepKey(phase), record] as const,
    ...Object.entries(record.steps ?? {}).map(([step, one]) => [stepKey(phase, step), one] as const),
  ]);
  const files = found.flatMap(([at, { status, output_file }]) =>
    status === "done" && output_file !== undefined ? [[at, output_file] as const] : [],
  );
  return Object.fromEntries(files.sort(([a], [b]) => byNumbers(a, b)));
}
