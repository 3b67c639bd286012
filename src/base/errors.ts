/** The stable codes of every error Pawl raises. Code may branch on them; they never change meaning. */
export type ErrorCode =
  | "alert_not_found"
  | "alert_resolved"
  | "approval_decided"
  | "approval_denied"
  | "approval_expired"
  | "approval_mismatch"
  | "approval_not_found"
  | "approval_refused"
  | "attempt_over"
  | "budget_exceeded"
  | "call_in_step"
  | "callback_answered"
  | "callback_expired"
  | "callback_failed"
  | "callback_not_found"
  | "cancelled"
  | "changes_requested"
  | "child_failed"
  | "circuit_open"
  | "closed"
  | "compensation_incomplete"
  | "corrupt_value"
  | "corrupted_journal"
  | "cursor_expired"
  | "deadline_exceeded"
  | "definition_changed"
  | "determinism_hazard"
  | "duplicate_workflow"
  | "effect_not_recorded"
  | "forbidden"
  | "foreign_await"
  | "idempotency_conflict"
  | "illegal_transition"
  | "invalid_argument"
  | "invalid_name"
  | "invalid_playbook"
  | "invalid_state_document"
  | "invalid_transition"
  | "journal_entry_missing"
  | "key_missing"
  | "key_reused"
  | "lease_lost"
  | "link_refused"
  | "mailbox_full"
  | "max_retries_exceeded"
  | "newer_journal"
  | "newer_schema"
  | "no_progress"
  | "not_a_store"
  | "not_found"
  | "not_serializable"
  | "notification_failed"
  | "output_missing"
  | "patch_conflict"
  | "phase_blocked"
  | "poisoned"
  | "prompt_evaluation"
  | "prompt_render"
  | "rate_limited"
  | "replay_drift"
  | "replay_stalled"
  | "retry_budget_exceeded"
  | "run_busy"
  | "run_ended"
  | "run_not_found"
  | "run_parked"
  | "schema_mismatch"
  | "secret_missing"
  | "snapshot_restore"
  | "snapshot_serialization"
  | "sqlite_too_old"
  | "step_interrupted"
  | "step_timeout"
  | "storage_unavailable"
  | "too_large"
  | "transaction_failed"
  | "unauthenticated"
  | "unknown_outcome"
  | "unknown_workflow"
  | "unsafe_retry"
  | "unsupported_media_type"
  | "version_mismatch"
  | "wait_timeout"
  | "webhook_refused"
  | "worker_directory_busy";

export interface PawlErrorOptions {
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/** An operating error of the engine: a stable `code`, the ids it is about in `fields`, and a message that says what to do next. */
export class PawlError extends Error {
  readonly code: ErrorCode;
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: PawlErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "PawlError";
    this.code = code;
    this.fields = options.fields ?? {};
  }
}

/** Thrown by user code to end a step at once, whatever its retry policy says. */
export class TerminalError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "TerminalError";
  }
}

export interface RetryableErrorOptions extends ErrorOptions {
  /** Milliseconds, or a duration such as "30s", before the next attempt. */
  readonly retryAfter?: number | string;
}

/** Thrown by user code to say that another attempt may succeed. */
export class RetryableError extends Error {
  readonly retryAfter?: number | string;

  constructor(message: string, options: RetryableErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "RetryableError";
    if (options.retryAfter !== undefined) this.retryAfter = options.retryAfter;
  }
}

/** True for an error with this code. Use it instead of `instanceof`, which breaks across duplicate installs and decoding. */
export function hasCode(error: unknown, code: ErrorCode): boolean {
  return readProperty(error, "code") === code;
}

/** The message of whatever was thrown, also of what cannot be read. */
export function messageOf(error: unknown): string {
  const message = readProperty(error, "message");
  if (typeof message === "string") return message;
  try {
    return String(error);
  } catch {
    return "an error that cannot be read";
  }
}

/** The same, with what caused it: an error that only says that retries are used up helps nobody. */
export function messageWithCause(error: unknown): string {
  const cause = readProperty(error, "cause");
  return cause == null ? messageOf(error) : `${messageOf(error)} It was: ${messageOf(cause)}`;
}

/** A property of whatever was thrown; `undefined` where there is none, or a getter or proxy refuses to tell. */
export function readProperty(thrown: unknown, key: string): unknown {
  if (typeof thrown !== "object" || thrown === null) return undefined;
  try {
    return (thrown as Record<string, unknown>)[key];
  } catch {
    return undefined;
  }
}
