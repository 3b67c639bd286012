// What operators leave: holds, the audit log, and what workers have said about their workflows.
import { type AuditHead, type AuditQuery, type AuditRecord, auditDigest, type NewAudit } from "../../core/audit.ts";
import type { WorkflowFacts, WorkflowRow } from "../../core/catalogue.ts";
import type { HoldQuery, HoldRow, NewHold } from "../../core/holds.ts";
import { checkAudit, checkFacts, checkHold } from "../operator-fault.ts";
import { sha256 } from "../sha256.ts";
import { textsText } from "./array-text.ts";
import { Conditions } from "./conditions.ts";
import type { Row } from "./driver.ts";
import type { Link } from "./link.ts";
import { limitOf } from "./queries.ts";

type Time = number | null;

export async function addHold(link: Link, s: string, run: string, hold: NewHold, now: Time): Promise<HoldRow | null> {
  checkHold(run, hold);
  const values = [run, hold.who, hold.why, now];
  const [row] = await link.query(`select who, why, at from ${s}.hold_1($1, $2, $3, $4)`, values);
  return row === undefined ? null : holdRow({ ...row, run });
}

export async function removeHold(link: Link, s: string, run: string): Promise<HoldRow | null> {
  const [row] = await link.query(`select who, why, at from ${s}.release_hold_1($1)`, [run]);
  return row === undefined ? null : holdRow({ ...row, run });
}

export async function listHolds(link: Link, s: string, { run, after, limit }: HoldQuery): Promise<HoldRow[]> {
  const where = new Conditions();
  where.add("runs.id = ?", run);
  where.add("runs.id > ?", after);
  const rows = await link.read(
    `select runs.id as run, kept.who, kept.why, kept.at from ${s}.kept join ${s}.runs on runs.n = kept.run
     where ${where.text} order by runs.id limit ${limitOf(limit)}`,
    where.values,
  );
  return rows.map(holdRow);
}

function holdRow({ run, who, why, at }: Row): HoldRow {
  return { run, who, why, at } as HoldRow;
}

export async function addAudit(link: Link, s: string, entry: NewAudit, at: number): Promise<AuditRecord> {
  checkAudit(entry);
  const { who, action, subject, from, outcome, payload, detail } = entry;
  const [row] = await link.query(`select n, hash from ${s}.record_1($1, $2, $3, $4, $5, $6, $7, $8, $9)`, [
    auditDigest(sha256, at, entry),
    at,
    who,
    action,
    subject,
    from,
    outcome,
    payload,
    detail,
  ]);
  const { n, hash } = row as unknown as AuditHead;
  return { n, at, who, action, subject, from, outcome, payload, detail, hash };
}

export async function listAudits(link: Link, s: string, { after, limit }: AuditQuery): Promise<AuditRecord[]> {
  const rows = await link.read(
    `select n, at, who, action, subject, origin as "from", outcome, payload, detail, hash from ${s}.audits
     where n > $1 order by n limit ${limitOf(limit)}`,
    [after],
  );
  return rows.map((row) => ({ ...row }) as unknown as AuditRecord);
}

export async function auditHead(link: Link, s: string): Promise<AuditHead> {
  const [row] = await link.read(`select n, hash from ${s}.audit_head`);
  return { ...row } as unknown as AuditHead;
}

export async function addFacts(link: Link, s: string, workflows: readonly WorkflowFacts[], now: Time): Promise<void> {
  checkFacts(workflows);
  await link.query(`select ${s}.describe_1($1, $2, $3, $4)`, [
    textsText(workflows.map(({ name }) => name)),
    textsText(workflows.map(({ version }) => version)),
    textsText(workflows.map(({ facts }) => facts)),
    now,
  ]);
}

export async function listFacts(link: Link, s: string): Promise<WorkflowRow[]> {
  const rows = await link.read(`select name, version, facts, at from ${s}.workflows order by name, version`);
  return rows.map((row) => ({ ...row }) as unknown as WorkflowRow);
}
