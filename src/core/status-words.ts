// Status words
// What a run is doing, in each of the vocabularies that people read: the engine's own, the public one, and that of state documents.
import { PUBLIC_STATUS, type PublicStatus, RUN_STATES, type RunState } from "./transition.ts";

export const DOCUMENT_STATUSES = ["pending", "in_progress", "done", "failed"] as const;

/** What a document says of a run, a phase or a step. */
export type DocumentStatus = (typeof DOCUMENT_STATUSES)[number];

/** A document's status, and the field beside it that tells states apart which share one. */
export interface DocumentWords {
  readonly status: DocumentStatus;
  readonly beside?: "waiting_for" | "compensating" | "cancelled";
}

const DOCUMENT: Readonly<Record<RunState, DocumentWords>> = {
  accepted: { status: "pending" },
  running: { status: "in_progress" },
  retrying: { status: "in_progress" },
  waiting: { status: "in_progress", beside: "waiting_for" },
  parked: { status: "in_progress", beside: "waiting_for" },
  compensating: { status: "in_progress", beside: "compensating" },
  succeeded: { status: "done" },
  failed: { status: "failed" },
  cancelled: { status: "failed", beside: "cancelled" },
};

/** One line for each state of a run. */
export const STATUS_WORDS: readonly {
  readonly state: RunState;
  readonly public: PublicStatus;
  readonly document: DocumentWords;
}[] = RUN_STATES.map((state) => ({ state, public: PUBLIC_STATUS[state], document: DOCUMENT[state] }));

export function documentWords(state: RunState): DocumentWords {
  return DOCUMENT[state];
}

/** The states that a document with these words can stand for: more than one where the vocabularies cannot tell them apart. */
export function statesOf({ status, beside }: DocumentWords): RunState[] {
  return RUN_STATES.filter((state) => DOCUMENT[state].status === status && DOCUMENT[state].beside === beside);
}
