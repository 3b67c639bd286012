// What operators leave in a store: holds, the audit log, and what workers have said about their workflows.
import {
  type AuditHead,
  type AuditQuery,
  type AuditRecord,
  auditDigest,
  auditHash,
  type NewAudit,
  NO_AUDITS,
} from "../../core/audit.ts";
import type { WorkflowFacts, WorkflowRow } from "../../core/catalogue.ts";
import type { HoldQuery, HoldRow, NewHold } from "../../core/holds.ts";
import { sha256 } from "../sha256.ts";
import { byText } from "./by-text.ts";

export interface Operators {
  /** By the id of their run. */
  readonly holds: Map<string, HoldRow>;
  readonly audits: AuditRecord[];
  /** By name and version. */
  readonly workflows: Map<string, WorkflowRow>;
}

export function emptyOperators(): Operators {
  return { holds: new Map(), audits: [], workflows: new Map() };
}

export function copyOperators({ holds, audits, workflows }: Operators): Operators {
  return { holds: new Map(holds), audits: [...audits], workflows: new Map(workflows) };
}

/** The hold that stands: the first one. */
export function addHold(holds: Operators["holds"], run: string, { who, why }: NewHold, at: number): HoldRow {
  const hold = holds.get(run) ?? Object.freeze({ run, who, why, at });
  holds.set(run, hold);
  return hold;
}

export function removeHold(holds: Operators["holds"], run: string): HoldRow | null {
  const hold = holds.get(run) ?? null;
  holds.delete(run);
  return hold;
}

export function listHolds(holds: Operators["holds"], { run, after, limit }: HoldQuery): HoldRow[] {
  return [...holds.values()]
    .filter((hold) => run === undefined || hold.run === run)
    .filter((hold) => after === undefined || byText(hold.run, after) > 0)
    .sort((a, b) => byText(a.run, b.run))
    .slice(0, limit);
}

/** The record that follows this one. */
export function nextAudit(last: AuditHead, entry: NewAudit, at: number): AuditRecord {
  const n = last.n + 1;
  const { who, action, subject, from, outcome, payload, detail } = entry;
  const hash = auditHash(sha256, last.hash, n, auditDigest(sha256, at, entry));
  return Object.freeze({ n, at, who, action, subject, from, outcome, payload, detail, hash });
}

export function addAudit(audits: AuditRecord[], entry: NewAudit, at: number): AuditRecord {
  const record = nextAudit(headOfAudits(audits), entry, at);
  audits.push(record);
  return record;
}

export function headOfAudits(audits: readonly AuditRecord[]): AuditHead {
  const { n, hash } = audits.at(-1) ?? NO_AUDITS;
  return { n, hash };
}

export function listAudits(audits: readonly AuditRecord[], { after, limit }: AuditQuery): AuditRecord[] {
  return audits.filter(({ n }) => n > after).slice(0, limit);
}

export function addFacts(rows: Operators["workflows"], workflows: readonly WorkflowFacts[], at: number): void {
  for (const { name, version, facts } of workflows)
    rows.set(JSON.stringify([name, version]), Object.freeze({ name, version, facts, at }));
}

export function listFacts(rows: Operators["workflows"]): WorkflowRow[] {
  return [...rows.values()].sort((a, b) => byText(a.name, b.name) || byText(a.version, b.version));
}
