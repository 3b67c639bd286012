// The audit log
// What people and their programs have done to a store, beside the journals of its runs: who, what, to what, from where (Q20).
//
//   AU1. Records are numbered from 1 without a gap, and each carries a hash over itself and the hash before it: one that was edited, taken away or
//        put in between is found and named (Q15).
//   AU2. How far the log has come is kept apart from it: records that are missing at its end are found as well.
//   AU3. A record is durable when it is answered. It is never changed, and retention of runs does not touch it.
import { PawlError } from "../base/errors.ts";
import { keyOf } from "../base/sealed-text.ts";

export interface AuditKeeper {
  /** Adds a record; answers it as it is kept. */
  record(entry: NewAudit): Promise<AuditRecord>;
  /** Records behind number `after` (0: all), oldest first. */
  audits(query: AuditQuery): Promise<AuditRecord[]>;
  /** How far the log has come (AU2): it has this record, and may have more. */
  auditHead(): Promise<AuditHead>;
}

export interface NewAudit {
  /** Who did it: a user of the server, or of the machine that the command was given on. */
  readonly who: string;
  /** What was done, such as "run.cancel" or "approval.decide". */
  readonly action: string;
  /** To what: the id of a run, an approval, a schedule. */
  readonly subject: string | null;
  /** From where: an address, or "pawl cancel" on a machine. */
  readonly from: string | null;
  readonly outcome: AuditOutcome;
  /** SHA-256 of what was given, where that is not to be kept itself. */
  readonly payload: string | null;
  /** What else people should know, as JSON. */
  readonly detail: string | null;
}

/** `begun` stands before what takes long, so that it is known of even if it never ends. */
export type AuditOutcome = "begun" | "done" | "refused" | "failed";

export interface AuditRecord extends NewAudit {
  readonly n: number;
  /** Store time, as the process that recorded it estimates it. */
  readonly at: number;
  readonly hash: string;
}

export interface AuditQuery {
  readonly after: number;
  readonly limit: number;
}

export interface AuditHead {
  readonly n: number;
  readonly hash: string;
}

/** Of a log without records. */
export const NO_AUDITS: AuditHead = { n: 0, hash: "" };

const LONGEST_TEXT = 1000;
const LONGEST_DETAIL = 65_536;
const OUTCOMES: readonly string[] = ["begun", "done", "refused", "failed"] satisfies AuditOutcome[];

/** Refuses what is too long to be read by people, or says nothing. */
export function assertAudit(entry: NewAudit): void {
  const { who, action, subject, from, payload, detail, outcome } = entry;
  const texts = { who, action, subject, from, payload };
  for (const [field, text] of Object.entries(texts))
    if (text !== null && text.length > LONGEST_TEXT) throw unfit(field, `longer than ${LONGEST_TEXT} characters`);
  // What is sealed was looked at before, and is longer for it.
  if (detail !== null && detail.length > LONGEST_DETAIL && keyOf(detail) === null)
    throw unfit("detail", `longer than ${LONGEST_DETAIL} characters`);
  if (who === "" || action === "") throw unfit(who === "" ? "who" : "action", "empty");
  if (!OUTCOMES.includes(outcome)) throw unfit("outcome", `none of ${OUTCOMES.join(", ")}`);
}

function unfit(field: string, what: string): PawlError {
  return new PawlError("invalid_argument", `\`${field}\` of an audit record is ${what}. Give another one.`, {
    fields: { field },
  });
}

/** SHA-256 of a text, in hexadecimal digits. */
type Sha256 = (text: string) => string;

/** What of a record does not depend on where it stands. */
export function auditDigest(sha256: Sha256, at: number, entry: NewAudit): string {
  const { who, action, subject, from, outcome, payload, detail } = entry;
  return sha256(JSON.stringify([at, who, action, subject, from, outcome, payload, detail]));
}

/** The hash of a record: over its number, its content and the hash before it. PostgreSQL computes the same. */
export function auditHash(sha256: Sha256, previous: string, n: number, digest: string): string {
  return sha256(`${previous}\n${n}\n${digest}`);
}

/** A record that does not stand where its hash says, or is not what it says. */
export interface AuditFault {
  readonly n: number;
  readonly what: "edited" | "missing";
}

/** What is wrong with a page of the log that follows `previous`, in order; nothing behind the first fault of a page is believed. */
export function auditFault(sha256: Sha256, previous: AuditHead, records: readonly AuditRecord[]): AuditFault | null {
  let { n, hash } = previous;
  for (const record of records) {
    n += 1;
    if (record.n !== n) return { n, what: "missing" };
    hash = auditHash(sha256, hash, n, auditDigest(sha256, record.at, record));
    if (hash !== record.hash) return { n, what: "edited" };
  }
  return null;
}
