// Status words
// One internal machine, and what each of its states is called elsewhere: on the public surface, in the state document, in a plan.
import { type PublicStatus, publicStatus, RUN_STATES, type RunState } from "./transition.ts";

export const DOCUMENT_STATUSES = ["pending", "in_progress", "done", "failed"] as const;

/** What a state document says of a run, a phase or a step. */
export type DocumentStatus = (typeof DOCUMENT_STATUSES)[number];

/** Which field of the state document says more than its status. */
export type DocumentFlag = "waiting_for" | "compensating" | "cancelled";

/** The words for one state. */
export interface StatusWords {
  readonly internal: RunState;
  readonly public: PublicStatus;
  readonly document: DocumentStatus;
  readonly flag: DocumentFlag | null;
  /** `null`: a plan has no word for it. */
  readonly plan: "active" | "in_progress" | "completed" | null;
  /** Whether a worker owns the run meanwhile. */
  readonly holdsLease: boolean;
}

export type StatusFormat = "internal" | "public" | "document";

const ROWS: Readonly<Record<RunState, Pick<StatusWords, "document" | "flag" | "plan" | "holdsLease">>> = {
  accepted: { document: "pending", flag: null, plan: null, holdsLease: false },
  running: { document: "in_progress", flag: null, plan: "in_progress", holdsLease: true },
  retrying: { document: "in_progress", flag: null, plan: "in_progress", holdsLease: false },
  waiting: { document: "in_progress", flag: "waiting_for", plan: "in_progress", holdsLease: false },
  compensating: { document: "in_progress", flag: "compensating", plan: null, holdsLease: true },
  parked: { document: "in_progress", flag: "waiting_for", plan: "in_progress", holdsLease: false },
  succeeded: { document: "done", flag: null, plan: "completed", holdsLease: false },
  failed: { document: "failed", flag: null, plan: "active", holdsLease: false },
  cancelled: { document: "failed", flag: "cancelled", plan: "active", holdsLease: false },
};

/** The whole table, a row for each state. */
export const STATUS_WORDS: readonly StatusWords[] = RUN_STATES.map((internal) => ({
  internal,
  public: publicStatus(internal),
  ...ROWS[internal],
}));

/** What a state is called in a vocabulary. */
export function statusIn(format: "internal", state: RunState): RunState;
export function statusIn(format: "public", state: RunState): PublicStatus;
export function statusIn(format: "document", state: RunState): DocumentStatus;
export function statusIn(format: StatusFormat, state: RunState): string;
export function statusIn(format: StatusFormat, state: RunState): string {
  return wordsFor(state)[format];
}

/** Which states a word stands for. With the flag of a document, those that set it; `null`: those that set none. */
export function statesCalled(format: StatusFormat, word: string, flag?: DocumentFlag | null): readonly RunState[] {
  return STATUS_WORDS.filter((row) => row[format] === word && (flag === undefined || row.flag === flag)).map(
    ({ internal }) => internal,
  );
}

/** The row of a state. */
export function wordsFor(state: RunState): StatusWords {
  return STATUS_WORDS[RUN_STATES.indexOf(state)]!;
}
