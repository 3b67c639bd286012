// Deeds and the audit log
// Whoever acts on a store from outside is recorded before and after: that somebody begins, and what became of it. So nothing is done that the log does
// not know of, also where the process dies in between (Q20).
import { createHash } from "node:crypto";
import { hasCode, messageOf, PawlError } from "../base/errors.ts";
import type { AuditOutcome, AuditRecord } from "../core/audit.ts";
import type { Store } from "../core/store.ts";

/** What somebody does. */
export interface Deed {
  /** Who: the name of a credential, or of a user of a machine. */
  readonly who: string;
  /** What, such as "pawl cancel" or "POST /api/runs/:id/cancel". */
  readonly action: string;
  /** To what: the id of a run, of an approval, the name of a schedule. */
  readonly subject: string | null;
  /** Where they are: an address and a browser, or a machine; `null`: nobody said. */
  readonly from: string | null;
  /** What was given, of which the hash is kept. */
  readonly payload: string | Uint8Array | null;
  /** What else people should know. */
  readonly detail?: Readonly<Record<string, unknown>>;
}

type Recorder = Pick<Store, "record">;

/** Does what is recorded first. What cannot be recorded is not done. */
export async function audited<T>(
  store: Recorder,
  deed: Deed,
  work: () => Promise<T>,
  tell: (message: string, error: unknown) => void,
): Promise<T> {
  const { n } = await begin(store, deed);
  const end = async (outcome: AuditOutcome, detail: object) => {
    try {
      await record(store, { ...deed, detail: { ...deed.detail, ...detail, begun: n } }, outcome);
    } catch (error) {
      // It is done, and the log has its beginning: to refuse it now would say something else.
      tell(`Record ${n} of the audit log has no end: what became of it could not be written.`, error);
    }
  };
  try {
    const value = await work();
    await end("done", {});
    return value;
  } catch (error) {
    await end(error instanceof PawlError ? "refused" : "failed", whyOf(error));
    throw error;
  }
}

async function begin(store: Recorder, deed: Deed): Promise<AuditRecord> {
  try {
    return await record(store, deed, "begun");
  } catch (cause) {
    if (hasCode(cause, "invalid_argument")) throw cause;
    throw new PawlError(
      "storage_unavailable",
      "Nothing was done: the audit log could not be written. Look after the store and do it again.",
      { cause },
    );
  }
}

/** Records an attempt that came to nothing. */
export async function recordRefusal(store: Recorder, deed: Deed, error: unknown): Promise<void> {
  await record(store, { ...deed, detail: { ...deed.detail, ...whyOf(error) } }, "refused");
}

function whyOf(error: unknown): object {
  const code = error instanceof PawlError ? { code: error.code } : {};
  return { ...code, error: messageOf(error).slice(0, TEXT_LENGTH) };
}

/** Beyond that nobody reads, and the log refuses it. */
const TEXT_LENGTH = 1000;

function record(store: Recorder, deed: Deed, outcome: AuditOutcome): Promise<AuditRecord> {
  const { who, action, subject, from, payload, detail } = deed;
  return store.record({
    who: who.slice(0, TEXT_LENGTH),
    action: action.slice(0, TEXT_LENGTH),
    subject: subject?.slice(0, TEXT_LENGTH) ?? null,
    from: from?.slice(0, TEXT_LENGTH) ?? null,
    outcome,
    payload: payload === null || payload.length === 0 ? null : sha256(payload),
    detail: detail === undefined ? null : JSON.stringify(detail),
  });
}

function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}
