// What no store can keep of what operators do, found before anything is written.
import { assertAudit, type NewAudit } from "../core/audit.ts";
import type { WorkflowFacts } from "../core/catalogue.ts";
import { assertHold, type NewHold } from "../core/holds.ts";
import type { RunQuery } from "../core/run-query.ts";
import { assertStorable } from "./storable-text.ts";

export function checkAudit(entry: NewAudit): void {
  assertAudit(entry);
  const { who, action, subject, from, payload, detail } = entry;
  assertStorable(...[who, action, subject, from, payload, detail].filter((text) => text !== null));
}

export function checkHold(run: string, hold: NewHold): void {
  assertHold(hold);
  assertStorable(run, hold.who, hold.why);
}

export function checkFacts(workflows: readonly WorkflowFacts[]): void {
  for (const { name, version, facts } of workflows) assertStorable(name, version, facts);
}

/** Refuses a question about text that no store can hold: one would find nothing, another would fail. */
export function checkQuery(query: Partial<RunQuery>): void {
  const { workflow, tag, parent, before, search, except = [], among = [] } = query;
  const single = [workflow, tag, parent, before, search].filter((text) => text !== undefined);
  assertStorable(...single, ...except, ...among.map((one) => one.workflow));
}
