// The outline of a run
// What a run that is made of phases says about itself in its run state, so that its state document can show what has not begun yet. Whoever
// writes these keys and whoever folds them agree here, and nowhere else.

import { MACHINE_KEY } from "./machine-position.ts";

/** All keys of run state that are the engine's own begin with this, and so do signals that only its methods send; a state document shows the keys in other places. */
export const OWN = "pawl.";

/** Where the outline is. */
export const OUTLINE = "pawl.outline";

/** Why a run does not go on before a person decides, while it does not. */
export const BLOCKED = "pawl.blocked";

export interface OutlinedStep {
  readonly name: string;
  /** The file that its result goes to. */
  readonly output?: string;
}

export interface OutlinedPhase extends OutlinedStep {
  readonly steps?: readonly OutlinedStep[];
}

/** Set once, before the first phase begins. */
export interface Outline {
  /** The field of the document that holds the key of the business. */
  readonly correlation: string | null;
  readonly phases: readonly OutlinedPhase[];
}

/** What the journal keeps of a result that is in a file. */
export interface OutputFile {
  /** Relative to the folder of the run's output files. */
  readonly file: string;
  /** SHA-256 of its bytes, as hex. */
  readonly sha256: string;
  readonly bytes: number;
  /** How it is read back. */
  readonly as: "json" | "text" | "bytes";
}

/** What is true of a phase or step that its entries do not say: it waits, or somebody has skipped it. */
export interface PhaseMark {
  readonly status?: "pending" | "in_progress" | "done" | "failed";
  readonly skipped?: string;
  readonly error?: string;
  readonly output?: unknown;
  /** Who has done it, where that was somebody outside. */
  readonly by?: string;
}

/** Why nothing goes on, and what a person may choose. */
export interface Block {
  /** Tells this wait from every other one of the run: what is decided is decided about one of them. */
  readonly ticket: string;
  readonly reason: "phase_blocked" | "output_missing";
  /** What failed: a phase, or a step as `phase.step`. */
  readonly at: string;
  /** With `output_missing`: whose output is gone. */
  readonly of?: string;
  readonly error: string;
  readonly choices: readonly string[];
}

/** Where a machine is has no other place: it is shown as it stands. */
export function isOwnKey(key: string): boolean {
  return key.startsWith(OWN) && key !== MACHINE_KEY;
}

/** The key of run state for what is true of a phase, or of a step: `phase.step`. */
export function markKey(at: string): string {
  return `pawl.phase.${at}`;
}

/** The phase or step that a key of run state is about. */
export function markedBy(key: string): string | null {
  const prefix = markKey("");
  return key.startsWith(prefix) ? key.slice(prefix.length) : null;
}

/** How a step is called in the journal. */
export function stepKey(phase: string, step?: string): string {
  return step === undefined ? phase : `${phase}.${step}`;
}

/** What is asked about a phase or step before it begins: is it on the way, was it satisfied already, what is it to be called with. */
export type Question = "when" | "satisfied" | "with";

/** The name of the step that asks. */
export function questionKey(at: string, question: Question): string {
  return `${at}:${question}`;
}

const SUBJECT = /^(.*?)(?::(when|satisfied|with|\d+))?(?:#\d+)?$/s;

/** What a key of the journal is about: without its counter, and with the question that it asks, if it asks one. */
export function subjectOf(key: string): { readonly at: string; readonly question: Question | null } {
  const [, at = key, suffix] = SUBJECT.exec(key) ?? [];
  return { at, question: suffix === undefined || /^\d/.test(suffix) ? null : (suffix as Question) };
}

/** Signals that only the engine's own methods send. Each says which of the waits it is for, by its ticket. */
export const DECISION_SIGNAL = "pawl.decision";
export const ADVANCE_SIGNAL = "pawl.advance";
export const MANUAL_SIGNAL = "pawl.manual";

/** The tag of a run that begins no phase before it is told to. */
export const ADVANCE_TAG = "pawl.advance";

/** Where a run that goes phase by phase stands: before which phase. */
export const GATE = "pawl.gate";

export interface Gate {
  readonly ticket: string;
  /** The phase that was executed last, since somebody said that one should be. */
  readonly after: string | null;
  readonly phase: string;
}

/** Where a step that is done outside stands. */
export const MANUAL = "pawl.manual";

/** Work that a person or an outside agent does. */
export interface ManualWork {
  readonly ticket: string;
  /** `phase.step`, or the phase. */
  readonly at: string;
  readonly instructions: string;
  /** The files that must be there when it is done. */
  readonly outputs: readonly string[];
  readonly begunBy?: string;
}

/** What is said about a blocked run, a gate or manual work, on its way in. */
export interface DecisionMessage {
  readonly ticket: string;
  readonly choice: string;
  readonly reason?: string;
}

export interface AdvanceMessage {
  readonly ticket: string;
  readonly to: "phase" | "end";
}

export type ManualMessage = { readonly ticket: string; readonly by: string } & (
  | { readonly action: "begin" }
  | { readonly action: "done"; readonly outputs: readonly OutputFile[] }
  | { readonly action: "fail"; readonly reason: string }
);

export function isOutputFile(value: unknown): value is OutputFile {
  if (typeof value !== "object" || value === null) return false;
  const { file, sha256, bytes } = value as Record<string, unknown>;
  return typeof file === "string" && typeof sha256 === "string" && typeof bytes === "number";
}

export function isOutline(value: unknown): value is Outline {
  return typeof value === "object" && value !== null && Array.isArray((value as Record<string, unknown>)["phases"]);
}
