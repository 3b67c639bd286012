// What operators leave: holds, the audit log, and what workers have said about their workflows. What writes must run inside a write transaction.
import type { AuditHead, AuditQuery, AuditRecord, NewAudit } from "../../core/audit.ts";
import type { WorkflowFacts, WorkflowRow } from "../../core/catalogue.ts";
import type { HoldQuery, HoldRow, NewHold } from "../../core/holds.ts";
import { nextAudit } from "../memory/operators.ts";
import type { Connection } from "./connection.ts";
import { limitOf, numberOf } from "./queries.ts";

const HOLDS = "select runs.id as run, kept.who, kept.why, kept.at from kept join runs on runs.n = kept.run";
const ADD_HOLD = "insert or ignore into kept (run, who, why, at) values (?, ?, ?, ?)";
const REMOVE_HOLD = "delete from kept where run = (select n from runs where id = ?)";

export function addHold(db: Connection, run: string, { who, why }: NewHold, now: number): HoldRow | null {
  const n = numberOf(db, run);
  if (n === null) return null;
  db.run(ADD_HOLD, n, who, why, now);
  return holdOf(db, run);
}

export function removeHold(db: Connection, run: string): HoldRow | null {
  const hold = holdOf(db, run);
  if (hold !== null) db.run(REMOVE_HOLD, run);
  return hold;
}

function holdOf(db: Connection, run: string): HoldRow | null {
  return listHolds(db, { run, limit: 1 })[0] ?? null;
}

export function listHolds(db: Connection, { run, after, limit }: HoldQuery): HoldRow[] {
  const rows =
    run === undefined
      ? db.all(`${HOLDS} where runs.id > ? order by runs.id limit ?`, after ?? "", limitOf(limit))
      : db.all(`${HOLDS} where runs.id = ? and runs.id > ? limit ?`, run, after ?? "", limitOf(limit));
  return rows.map((row) => ({ ...row }) as unknown as HoldRow);
}

const HEAD = "select n, hash from audit_head";
const MOVE_HEAD = "update audit_head set n = ?, hash = ?";
const ADD_AUDIT = `insert into audits (n, at, who, action, subject, origin, outcome, payload, detail, hash)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const AUDITS = `select n, at, who, action, subject, origin as "from", outcome, payload, detail, hash from audits
  where n > ? order by n limit ?`;

export function addAudit(db: Connection, entry: NewAudit, now: number): AuditRecord {
  const record = nextAudit(auditHead(db), entry, now);
  const { n, at, who, action, subject, from, outcome, payload, detail, hash } = record;
  db.run(ADD_AUDIT, n, at, who, action, subject, from, outcome, payload, detail, hash);
  db.run(MOVE_HEAD, n, hash);
  return record;
}

export function auditHead(db: Connection): AuditHead {
  return { ...db.get(HEAD) } as unknown as AuditHead;
}

export function listAudits(db: Connection, { after, limit }: AuditQuery): AuditRecord[] {
  return db.all(AUDITS, after, limitOf(limit)).map((row) => ({ ...row }) as unknown as AuditRecord);
}

const ADD_FACTS = "insert or replace into workflows (name, version, facts, at) values (?, ?, ?, ?)";
const FACTS = "select name, version, facts, at from workflows order by name, version";

export function addFacts(db: Connection, workflows: readonly WorkflowFacts[], now: number): void {
  for (const { name, version, facts } of workflows) db.run(ADD_FACTS, name, version, facts, now);
}

export function listFacts(db: Connection): WorkflowRow[] {
  return db.all(FACTS).map((row) => ({ ...row }) as unknown as WorkflowRow);
}
