import type { Clock } from "../../base/clock.ts";
import type { AuditKeeper } from "../../core/audit.ts";
import type { CatalogueKeeper } from "../../core/catalogue.ts";
import type { HoldKeeper } from "../../core/holds.ts";
import { checkAudit, checkFacts, checkHold } from "../operator-fault.ts";
import { assertStorable } from "../storable-text.ts";
import type { Directory } from "./directory.ts";
import { blockedRun, viewOf } from "./holdings.ts";
import type { OperatorFiles } from "./operator-files.ts";

/** The methods of the port that operators use. */
export function operatorMethods(
  files: OperatorFiles,
  directory: Directory,
  clock: Clock,
): HoldKeeper & AuditKeeper & CatalogueKeeper {
  return {
    async hold(run, hold) {
      checkHold(run, hold);
      return files.hold(run, hold, clock.now(), () => isThere(directory, run));
    },
    async releaseHold(run) {
      assertStorable(run);
      return files.releaseHold(run);
    },
    async holds(query) {
      return files.holds(query);
    },
    async record(entry) {
      checkAudit(entry);
      return files.record(entry, clock.now());
    },
    async audits(query) {
      return files.audits(query);
    },
    async auditHead() {
      return files.auditHead();
    },
    async describe(workflows) {
      checkFacts(workflows);
      await files.describe(workflows, clock.now());
    },
    async workflows() {
      return files.workflows();
    },
  };
}

/** A run whose document cannot be believed is there as well. */
function isThere(directory: Directory, run: string): boolean {
  const holdings = directory.look(run);
  return blockedRun(holdings, run) !== null || viewOf(holdings).runs.has(run);
}
