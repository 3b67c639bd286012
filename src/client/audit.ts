// The audit log as people use it: who does something says so, and anybody can check that the log is whole.
import { type AuditFault, type AuditOutcome, type AuditRecord, auditFault, NO_AUDITS } from "../core/audit.ts";
import type { Store } from "../core/store.ts";
import { sha256 } from "../stores/sha256.ts";
import { plainStoreOf } from "./sealed-store.ts";

/** Who does something, and from where: what the audit log says of it. */
export interface AuditedBy {
  readonly by: string;
  readonly from?: string;
}

export interface AuditCheck {
  /** How many records were read. */
  readonly records: number;
  /** The first record that is not as it was written; `null`: the log is whole. */
  readonly fault: AuditFault | null;
}

type Recording = (outcome: AuditOutcome, detail?: object) => Promise<AuditRecord>;

/** Writes records about one thing that somebody does. */
export function recordOf(store: Store, { by, from }: AuditedBy, action: string, subject: string | null): Recording {
  return (outcome, detail) =>
    store.record({
      who: by,
      action,
      subject,
      from: from ?? null,
      outcome,
      payload: null,
      detail: detail === undefined ? null : JSON.stringify(detail),
    });
}

const PAGE = 500;

/** Reads the whole log and says where it is not as it was written: an edited record, or one that is missing, at its end as well. */
export async function checkAudit(given: Store): Promise<AuditCheck> {
  // The chain is over what is kept, sealed or not.
  const store = plainStoreOf(given);
  // The head first: what is recorded meanwhile is behind it.
  const head = await store.auditHead();
  let last = NO_AUDITS;
  for (;;) {
    const records = await store.audits({ after: last.n, limit: PAGE });
    const fault = auditFault(sha256, last, records);
    if (fault !== null) return { records: fault.n - 1, fault };
    if (head.n > last.n && head.n <= last.n + records.length) {
      const at = records[head.n - last.n - 1];
      if (at?.hash !== head.hash) return { records: head.n - 1, fault: { n: head.n, what: "edited" } };
    }
    last = records.at(-1) ?? last;
    if (records.length < PAGE) break;
  }
  const isShort = last.n < head.n;
  return { records: last.n, fault: isShort ? { n: last.n + 1, what: "missing" } : null };
}
