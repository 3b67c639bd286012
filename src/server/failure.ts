import { type ErrorCode, PawlError } from "../base/errors.ts";
import { jsonable } from "../base/jsonable.ts";

/** What an error is in the words of HTTP. Every other one is a fault of the server. */
const STATUS: Partial<Record<ErrorCode, number>> = {
  invalid_argument: 400,
  invalid_name: 400,
  invalid_playbook: 400,
  invalid_state_document: 400,
  not_serializable: 400,
  unauthenticated: 401,
  forbidden: 403,
  approval_refused: 403,
  approval_not_found: 404,
  callback_not_found: 404,
  not_found: 404,
  run_not_found: 404,
  unknown_workflow: 404,
  approval_decided: 409,
  approval_expired: 409,
  approval_mismatch: 409,
  budget_exceeded: 409,
  callback_answered: 409,
  callback_expired: 409,
  cancelled: 409,
  compensation_incomplete: 409,
  definition_changed: 409,
  idempotency_conflict: 409,
  illegal_transition: 409,
  invalid_transition: 409,
  key_reused: 409,
  lease_lost: 409,
  mailbox_full: 409,
  output_missing: 409,
  phase_blocked: 409,
  run_busy: 409,
  run_ended: 409,
  run_parked: 409,
  unsafe_retry: 409,
  version_mismatch: 409,
  cursor_expired: 410,
  too_large: 413,
  unsupported_media_type: 415,
  schema_mismatch: 422,
  rate_limited: 429,
  closed: 503,
  storage_unavailable: 503,
  unknown_outcome: 503,
};

/** What a program is told about an error. */
export interface Failure {
  readonly status: number;
  readonly body: { readonly error: { readonly code: string; readonly message: string; readonly fields?: unknown } };
  /** Seconds until it is worth coming again. */
  readonly retryAfter: number | null;
}

/** A fault of the server says nothing about its inside; `note` is what the log has it under. */
export function failureOf(error: unknown, note: string): Failure {
  if (!(error instanceof PawlError)) {
    const message = `The server could not do this. Its log has more, under ${note}.`;
    return { status: 500, body: { error: { code: "fault", message } }, retryAfter: null };
  }
  const { code, message, fields } = error;
  const status = STATUS[code] ?? 500;
  const { retryAfter } = fields;
  return {
    status,
    body: { error: { code, message, ...(Object.keys(fields).length > 0 && { fields: jsonable(fields) }) } },
    retryAfter: typeof retryAfter === "number" ? retryAfter : null,
  };
}

export function unauthenticated(message: string): PawlError {
  return new PawlError("unauthenticated", message);
}

export function forbidden(message: string, fields: Readonly<Record<string, unknown>> = {}): PawlError {
  return new PawlError("forbidden", message, { fields });
}

export function notFound(what: string): PawlError {
  return new PawlError("not_found", `There is no ${what} here.`);
}
