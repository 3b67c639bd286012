// The state document
// The readable JSON view of a run: where it stands, phase by phase and step by step. A pure fold of its row and its journal; its statuses are
// four words and nothing else. Field names are those of the published schema, `docs/reference/state-document.schema.json`.
import { encode } from "../base/codec.ts";
import { messageWithCause } from "../base/errors.ts";
import { type AdoptedPhase, adoptedPhases } from "./adopted-phases.ts";
import { DocumentFold, type Line, type OpenWait } from "./document-fold.ts";
import type { Entry } from "./journal.ts";
import { type EffectRecord, ledgerOf } from "./ledger.ts";
import {
  ADVANCE_SIGNAL,
  BLOCKED,
  type Block,
  DECISION_SIGNAL,
  GATE,
  type Gate,
  isOutputFile,
  isOwnKey,
  MANUAL,
  MANUAL_SIGNAL,
  type ManualWork,
  type OutlinedPhase,
  type OutlinedStep,
  type OutputFile,
  stepKey,
} from "./outline.ts";
import { type DocumentStatus, wordsFor } from "./status-words.ts";
import type { RunRow } from "./store.ts";
import { isTerminal, type RunState } from "./transition.ts";

export const DOCUMENT_VERSION = 1;

/** The phase that holds the steps of a run which is not made of phases. */
const ONLY_PHASE = "run";

/** One step of a phase. What does not apply is not there. */
export interface StepRecord {
  readonly status: DocumentStatus;
  readonly started_at?: string;
  readonly completed_at?: string;
  /** How often it was begun. */
  readonly attempts?: number;
  /** Relative to the folder of the run's output files. */
  readonly output_file?: string;
  /** `sha256:` and the digest of the file. */
  readonly output_hash?: string;
  readonly output_size?: number;
  /** How the file is read, where its name does not tell. */
  readonly output_form?: "bytes";
  /** Where it has several. */
  readonly output_files?: readonly DocumentFile[];
  /** What it gave, where that is not in a file. */
  readonly output?: unknown;
  readonly input?: unknown;
  readonly error?: string;
  /** Who has done it, where that was somebody outside. */
  readonly done_by?: string;
  /** Why it counts as done though it was not executed. */
  readonly skipped?: string;
}

export interface DocumentFile {
  readonly file: string;
  readonly hash?: string;
  readonly size?: number;
  readonly form?: "bytes";
}

export interface PhaseRecord extends StepRecord {
  /** The first step that is not done; informative, the statuses decide. */
  readonly step?: string;
  /** The order of the steps; that of the keys below means nothing. */
  readonly step_order?: readonly string[];
  readonly steps?: Readonly<Record<string, StepRecord>>;
}

export interface DocumentWait {
  readonly kind: string;
  readonly name: string;
  readonly due?: string;
  /** What a person may choose, where one is waited for. */
  readonly choices?: readonly string[];
  /** Of work that is done outside: what is to be done, the files that it is for, and who has begun. */
  readonly instructions?: string;
  readonly outputs?: readonly string[];
  readonly begun_by?: string;
}

export interface DocumentEffect {
  readonly effect: string;
  readonly status: EffectRecord["status"];
  readonly class: string;
  readonly key: string;
  readonly attempts: number;
  readonly planned_at: string;
  readonly executed_at?: string;
  readonly compensated_at?: string;
  readonly error?: string;
}

export interface DocumentApproval {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly approvers: readonly string[];
  readonly requested_at: string;
  readonly expires_at: string;
  readonly decided_at?: string;
  readonly decided_by?: string;
  readonly reason?: string;
}

export interface StateDocument {
  readonly workflow_id: string;
  readonly workflow: string;
  readonly workflow_version: string;
  /** Of this format. */
  readonly schema_version: number;
  /** The field that holds the key of the business, such as "jira_key". */
  readonly correlation_field?: string;
  readonly started_at: string;
  readonly updated_at: string;
  /** How many entries of the journal are in it. */
  readonly sequence: number;
  readonly status: DocumentStatus;
  readonly waiting_for?: readonly DocumentWait[];
  readonly compensating?: true;
  readonly cancelled?: true;
  /** The first phase that is not done; informative, the statuses decide. */
  readonly phase: string | null;
  /** How many steps are done. */
  readonly step_number: number;
  /** The order of the phases, as their definition says it; that of the keys below means nothing. */
  readonly phase_order: readonly string[];
  readonly phases: Readonly<Record<string, PhaseRecord>>;
  readonly effects?: readonly DocumentEffect[];
  readonly approvals?: readonly DocumentApproval[];
  readonly input: unknown;
  /** What the run has made readable with `ctx.set`. */
  readonly state: Readonly<Record<string, unknown>>;
  readonly cost?: Readonly<Record<string, number>>;
  readonly result?: unknown;
  readonly error?: string;
  readonly stop_reason?: string;
  readonly trace_id: string;
  /** The run that has started it. */
  readonly caller?: string;
  readonly deadline?: string;
  /** The key of the business stands under a name that the author has chosen. */
  readonly [correlation: string]: unknown;
}

export type DocumentRow = Pick<
  RunRow,
  "id" | "workflow" | "version" | "state" | "key" | "traceId" | "createdAt" | "deadline" | "parent" | "cost"
>;

/** The document of a run as it stands in its journal. */
export function stateDocument(row: DocumentRow, entries: readonly Entry[]): StateDocument {
  const fold = new DocumentFold();
  for (const entry of entries) fold.add(entry);
  return documentOf(row, fold, ledgerOf(entries));
}

/** What a run made of phases has done so far, as another generation of it adopts it. */
export function standingOf(entries: readonly Entry[]): object {
  const fold = new DocumentFold();
  for (const entry of entries) fold.add(entry);
  const { phases, startedAt, effects } = adoptedPhases(fold.adopted);
  return {
    started_at: startedAt ?? timeText(fold.startedAt ?? 0),
    phases: phasesOf(fold, phases),
    ...(effects.length > 0 && { effects }),
  };
}

function documentOf(row: DocumentRow, fold: DocumentFold, ledger: readonly EffectRecord[]): StateDocument {
  const adopted = adoptedPhases(fold.adopted);
  const phases = phasesOf(fold, adopted.phases);
  const state = stateOf(row, fold);
  const effects = [...adopted.effects, ...ledger.map(effectRecord)];
  const field = fold.outline?.correlation ?? null;
  const key = field === null ? null : (row.key ?? textIn(fold.input, field));
  return {
    workflow_id: row.id,
    workflow: row.workflow,
    workflow_version: row.version,
    schema_version: DOCUMENT_VERSION,
    ...(field !== null && key !== null && { correlation_field: field, [field]: key }),
    started_at: adopted.startedAt === null ? timeText(fold.startedAt ?? row.createdAt) : inUtc(adopted.startedAt),
    updated_at: timeText(fold.updatedAt ?? row.createdAt),
    sequence: fold.sequence,
    ...statusFields(state, fold),
    phase: pointer(Object.entries(phases)),
    step_number: countDone(phases),
    phase_order: Object.keys(phases),
    phases,
    ...(effects.length > 0 && { effects }),
    ...(fold.approvals.size > 0 && { approvals: approvalRecords(fold) }),
    input: plain(fold.input),
    state: ownState(fold),
    ...costOf(row),
    ...endFields(fold),
    trace_id: row.traceId,
    ...(row.parent !== null && { caller: row.parent.run }),
    ...(row.deadline !== null && { deadline: timeText(row.deadline) }),
  };
}

/** The journal knows of an end, and of a beginning, before the row does. */
function stateOf(row: DocumentRow, fold: DocumentFold): RunState {
  if (fold.ended !== null) return fold.ended.type.slice("run.".length) as RunState;
  return row.state === "accepted" && fold.sequence > 1 ? "running" : row.state;
}

function statusFields(state: RunState, fold: DocumentFold) {
  const { document: status, flag } = wordsFor(state);
  return {
    status,
    ...(flag === "waiting_for" && { waiting_for: waitsOf(fold) }),
    ...((flag === "compensating" || (fold.isCompensating && !isTerminal(state))) && { compensating: true as const }),
    ...(flag === "cancelled" && { cancelled: true as const }),
  };
}

function waitsOf(fold: DocumentFold): DocumentWait[] {
  const { parked } = fold;
  const waits = [...fold.waits.values()].map((wait) => ownWait(wait.name, fold.state) ?? plainWait(wait));
  return parked === null ? waits : [{ kind: "decision", name: parked.reason, choices: parked.choices }, ...waits];
}

function plainWait({ kind, name, due }: OpenWait): DocumentWait {
  return { kind, name, ...(due !== null && { due: timeText(due) }) };
}

/** Waits for one of the engine's own signals, by what they are about. */
function ownWait(signal: string, state: ReadonlyMap<string, unknown>): DocumentWait | null {
  const block = state.get(BLOCKED) as Block | undefined;
  const gate = state.get(GATE) as Gate | undefined;
  const work = state.get(MANUAL) as ManualWork | undefined;
  if (signal === DECISION_SIGNAL && block !== undefined)
    return { kind: "decision", name: block.reason, choices: block.choices };
  if (signal === ADVANCE_SIGNAL && gate !== undefined) return { kind: "advance", name: gate.phase };
  if (signal !== MANUAL_SIGNAL || work === undefined) return null;
  const { at, instructions, outputs, begunBy } = work;
  return { kind: "manual", name: at, instructions, outputs, ...(begunBy !== undefined && { begun_by: begunBy }) };
}

// Phases and steps

type Adopted = Readonly<Record<string, AdoptedPhase>>;

function phasesOf(fold: DocumentFold, adopted: Adopted): Record<string, PhaseRecord> {
  const outlined = fold.outline?.phases ?? null;
  if (outlined === null) return onlyPhase(fold);
  return Object.fromEntries(outlined.map((phase) => [phase.name, phaseRecord(phase, fold, adopted[phase.name])]));
}

/** A run without phases: all its steps in one, once there is a step. */
function onlyPhase(fold: DocumentFold): Record<string, PhaseRecord> {
  if (fold.lines.size === 0) return {};
  const steps = Object.fromEntries([...fold.lines].map(([key, line]) => [key, recordOf(line, false)]));
  const isEnded = fold.ended !== null;
  const status = !isEnded ? "in_progress" : fold.ended?.type === "run.succeeded" ? "done" : "failed";
  return { [ONLY_PHASE]: { status, ...stepFields(steps, status) } };
}

function phaseRecord(phase: OutlinedPhase, fold: DocumentFold, adopted: AdoptedPhase | undefined): PhaseRecord {
  const own = recordFor(phase, phase.name, fold, adopted);
  if (phase.steps === undefined || own.skipped !== undefined) return own;
  const steps = Object.fromEntries(
    phase.steps.map((step) => [step.name, stepRecord(phase, step, fold, adopted)] as const),
  );
  const status = statusOf(Object.values(steps), own.status);
  return {
    ...own,
    status,
    ...spanOf(Object.values(steps), status),
    ...errorOf(steps, own),
    ...stepFields(steps, status),
  };
}

function stepRecord(
  phase: OutlinedPhase,
  step: OutlinedStep,
  fold: DocumentFold,
  adopted: AdoptedPhase | undefined,
): StepRecord {
  const before = adopted?.steps?.[step.name];
  // All steps of a phase that was done are done, whether they were listed or not.
  const implied = before === undefined && adopted?.status === "done" ? ({ status: "done" } as const) : before;
  return recordFor(step, stepKey(phase.name, step.name), fold, implied);
}

function recordFor(named: OutlinedStep, at: string, fold: DocumentFold, adopted: StepRecord | undefined): StepRecord {
  const line = fold.lines.get(at);
  if (line !== undefined) return recordOf(line, named.output !== undefined);
  return adopted === undefined ? { status: "pending" } : adoptedRecord(adopted);
}

/** What it says about this run: how often it was tried elsewhere, and when it began there, is another run's. */
function adoptedRecord({ started_at: _began, attempts: _tries, input: _input, ...record }: PhaseRecord): StepRecord {
  const { step: _step, steps: _steps, step_order: _order, completed_at, ...rest } = record;
  return { ...rest, ...(completed_at !== undefined && { completed_at: inUtc(completed_at) }) };
}

function recordOf(line: Line, isInFile: boolean): StepRecord {
  const { status, startedAt, completedAt, attempts, skipped, error, input, output, doneBy } = line;
  return {
    status,
    ...(startedAt !== undefined && { started_at: timeText(startedAt) }),
    ...(completedAt !== undefined && { completed_at: timeText(completedAt) }),
    ...(attempts > 0 && { attempts }),
    ...(input !== undefined && { input: plain(input) }),
    ...(output !== undefined && outputFields(output.value, isInFile)),
    ...(error !== undefined && { error }),
    ...(doneBy !== undefined && { done_by: doneBy }),
    ...(skipped !== undefined && { skipped }),
  };
}

function outputFields(value: unknown, isInFile: boolean): Partial<StepRecord> {
  const files = Array.isArray(value) ? value : [value];
  if (isInFile && files.length > 0 && files.every(isOutputFile)) {
    const [first, ...others] = files.map(fileRecord);
    if (others.length > 0) return { output_files: [first as DocumentFile, ...others] };
    const { file, hash, size, form } = first as Required<DocumentFile>;
    return {
      output_file: file,
      output_hash: hash,
      output_size: size,
      ...(form !== undefined && { output_form: form }),
    };
  }
  return value === null || value === undefined || files.length === 0 ? {} : { output: plain(value) };
}

function fileRecord({ file, sha256, bytes, as }: OutputFile): DocumentFile {
  return { file, hash: `sha256:${sha256}`, size: bytes, ...(as === "bytes" && { form: as }) };
}

/** Failed and unfinished steps decide; a phase is done when all of them are. `own`: what is said of the phase itself. */
function statusOf(steps: readonly StepRecord[], own: DocumentStatus): DocumentStatus {
  if (own === "failed" || steps.some(({ status }) => status === "failed")) return "failed";
  if (steps.length > 0 && steps.every(({ status }) => status === "done")) return "done";
  return steps.some(({ status }) => status !== "pending") || own !== "pending" ? "in_progress" : "pending";
}

/** When the first of them began and the last one ended. Times in one zone and format compare as text. */
function spanOf(steps: readonly StepRecord[], status: DocumentStatus): Partial<PhaseRecord> {
  const began = steps.flatMap(({ started_at }) => (started_at === undefined ? [] : [started_at])).sort();
  const ended = steps.flatMap(({ completed_at }) => (completed_at === undefined ? [] : [completed_at])).sort();
  return {
    ...(began[0] !== undefined && { started_at: began[0] }),
    ...(status === "done" && ended.length > 0 && { completed_at: ended[ended.length - 1] as string }),
  };
}

function errorOf(steps: Readonly<Record<string, StepRecord>>, own: StepRecord): Partial<PhaseRecord> {
  const error = own.error ?? Object.values(steps).find(({ status }) => status === "failed")?.error;
  return error === undefined ? {} : { error };
}

function stepFields(steps: Readonly<Record<string, StepRecord>>, status: DocumentStatus): Partial<PhaseRecord> {
  const current = status === "pending" || status === "done" ? null : pointer(Object.entries(steps));
  return { ...(current !== null && { step: current }), step_order: Object.keys(steps), steps };
}

/** The first that is not done, or the last one. */
function pointer(records: readonly (readonly [string, StepRecord])[]): string | null {
  return (records.find(([, { status }]) => status !== "done") ?? records.at(-1))?.[0] ?? null;
}

function countDone(phases: Readonly<Record<string, PhaseRecord>>): number {
  const units = Object.values(phases).flatMap((phase) => Object.values(phase.steps ?? { own: phase }));
  return units.filter(({ status }) => status === "done").length;
}

// What stands beside them

function effectRecord(record: EffectRecord): DocumentEffect {
  const { effect, status, key, attempts, plannedAt, executedAt, compensatedAt, error } = record;
  return {
    effect,
    status,
    class: record.class,
    key,
    attempts,
    planned_at: timeText(plannedAt.getTime()),
    ...(executedAt !== null && { executed_at: timeText(executedAt.getTime()) }),
    ...(compensatedAt !== null && { compensated_at: timeText(compensatedAt.getTime()) }),
    ...(error !== undefined && { error }),
  };
}

function approvalRecords(fold: DocumentFold): DocumentApproval[] {
  return [...fold.approvals.values()].map(({ request, decided }) => ({
    id: request.id,
    name: request.name,
    status: decided?.decision ?? "requested",
    approvers: request.approvers,
    requested_at: timeText(request.at),
    expires_at: timeText(request.expiresAt),
    ...(decided !== null && { decided_at: timeText(decided.at) }),
    ...(decided?.by != null && { decided_by: decided.by }),
    ...(decided?.reason !== undefined && { reason: decided.reason }),
  }));
}

function ownState({ state }: DocumentFold): Record<string, unknown> {
  return Object.fromEntries([...state].filter(([key]) => !isOwnKey(key)).map(([key, value]) => [key, plain(value)]));
}

function costOf({ cost }: DocumentRow): Pick<StateDocument, "cost"> | object {
  return cost === null ? {} : { cost: JSON.parse(cost) as Record<string, number> };
}

function endFields(fold: DocumentFold): Pick<StateDocument, "result" | "error" | "stop_reason"> {
  const { result, error, stopReason } = fold.end;
  return {
    ...(result !== undefined && { result: plain(result) }),
    ...(error !== undefined && { error: messageWithCause(error) }),
    ...(stopReason !== undefined && { stop_reason: stopReason }),
  };
}

/** A value as JSON; what JSON cannot say stands in it as the codec writes it. */
function plain(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(encode(value));
}

function textIn(value: unknown, field: string): string | null {
  const text = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[field] : null;
  return typeof text === "string" ? text : null;
}

function inUtc(text: string): string {
  const at = Date.parse(text);
  return Number.isNaN(at) ? text : timeText(at);
}

/** ISO 8601 in UTC, with the offset spelled out. */
export function timeText(at: number): string {
  return new Date(at).toISOString().replace("Z", "+00:00");
}
