// What a definition says to people and to those who look after the store, as the catalogue keeps it: owners and retention.
import { compareVersions, isVersion, parseVersion } from "../base/semver.ts";
import type { WorkflowFacts, WorkflowRow } from "./catalogue.ts";
import { MATTERS, type Owners } from "./owners.ts";
import type { RetentionMs } from "./retention.ts";
import type { Workflow } from "./workflow.ts";

export interface Facts {
  readonly owners: Owners;
  /** `null`: as long as those of any other workflow. */
  readonly retention: RetentionMs | null;
}

/** What the catalogue is told of these; those that say nothing are not in it. */
export function factsOf(workflows: readonly Workflow[]): WorkflowFacts[] {
  return workflows.flatMap(({ name, version, definition: { owners, retention } }) => {
    const isSilent = retention === null && MATTERS.every((matter) => owners[matter] === null);
    return isSilent ? [] : [{ name, version, facts: JSON.stringify({ owners, retention } satisfies Facts) }];
  });
}

/** What the newest version of each workflow says. What cannot be read says nothing. */
export function readFacts(rows: readonly WorkflowRow[]): ReadonlyMap<string, Facts> {
  const newest = new Map<string, WorkflowRow>();
  for (const row of rows) {
    const before = newest.get(row.name);
    if (isVersion(row.version) && (before === undefined || isNewer(row, before))) newest.set(row.name, row);
  }
  return new Map(
    [...newest].flatMap(([name, { facts }]) => (isFacts(facts) ? [[name, JSON.parse(facts) as Facts]] : [])),
  );
}

function isNewer(a: WorkflowRow, b: WorkflowRow): boolean {
  return compareVersions(parseVersion(a.version), parseVersion(b.version)) > 0;
}

function isFacts(text: string): boolean {
  try {
    const { owners, retention } = JSON.parse(text) as Facts;
    const isName = (owner: unknown) => owner === null || typeof owner === "string";
    return MATTERS.every((matter) => isName(owners[matter])) && isRetention(retention);
  } catch {
    return false;
  }
}

function isRetention(value: unknown): boolean {
  if (value === null || value === false) return true;
  const { succeededMs, failedMs } = value as Record<string, unknown>;
  return Number.isFinite(succeededMs) && Number.isFinite(failedMs);
}
