import type { ErrorCode } from "../base/errors.ts";

/** What the command tells the shell. Scripts rely on these numbers: they never change meaning. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  waiting: 4,
  unavailable: 5,
  fault: 70,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_CODES: readonly { readonly code: ExitCode; readonly meaning: string }[] = [
  { code: EXIT.ok, meaning: "done" },
  { code: EXIT.failed, meaning: "the run failed or was cancelled; a check found faults; diff: a difference" },
  { code: EXIT.usage, meaning: "bad usage or bad input: nothing was changed" },
  { code: EXIT.notFound, meaning: "no such run, workflow or approval" },
  {
    code: EXIT.waiting,
    meaning: "the run is parked, blocked, waits with --no-wait, or needs a worker",
  },
  { code: EXIT.unavailable, meaning: "the store cannot be used" },
  { code: EXIT.fault, meaning: "a fault in Pawl itself: please report it" },
  { code: EXIT.interrupted, meaning: "interrupted; a run keeps its progress" },
];

export const EXIT_CODES_HELP: string = [
  "Exit codes:",
  ...EXIT_CODES.map(({ code, meaning }) => `  ${String(code).padEnd(3)}  ${meaning}`),
].join("\n");

const BY_ERROR: Partial<Record<ErrorCode, ExitCode>> = {
  alert_not_found: EXIT.notFound,
  approval_not_found: EXIT.notFound,
  callback_not_found: EXIT.notFound,
  run_not_found: EXIT.notFound,
  unknown_workflow: EXIT.notFound,
  run_parked: EXIT.waiting,
  phase_blocked: EXIT.waiting,
  storage_unavailable: EXIT.unavailable,
  not_a_store: EXIT.unavailable,
  newer_schema: EXIT.unavailable,
  newer_journal: EXIT.unavailable,
  sqlite_too_old: EXIT.unavailable,
  corrupted_journal: EXIT.unavailable,
  journal_entry_missing: EXIT.unavailable,
  corrupt_value: EXIT.unavailable,
  unknown_outcome: EXIT.unavailable,
  worker_directory_busy: EXIT.unavailable,
};

/** The code for an operating error; every other one means that what was asked for cannot be done. */
export function exitCodeOf(code: ErrorCode): ExitCode {
  return BY_ERROR[code] ?? EXIT.usage;
}
