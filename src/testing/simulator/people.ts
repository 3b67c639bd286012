// People
// Those who approve and deny, and those who look at what a run asks them about. They say what they find outside, and are told what became of it.
import { hasCode, readProperty } from "../../base/errors.ts";
import type { Pawl } from "../../client/pawl.ts";
import type { ApprovalRequested } from "../../core/approval-request.ts";
import type { Parked } from "../../core/journal.ts";
import { ROLES } from "./approval-checks.ts";
import { receiptOf } from "./bank.ts";
import type { Checks } from "./checks.ts";
import type { Evidence, VotePlan } from "./deeds.ts";
import type { Disk } from "./disk.ts";
import type { Answer, Task } from "./driver.ts";
import type { Situation } from "./situations.ts";
import type { VirtualTime } from "./virtual-time.ts";

export interface PeoplePorts {
  readonly time: VirtualTime;
  readonly disk: Disk;
  readonly checks: Checks;
  add(task: Task): void;
  violated(invariant: string, what: string): void;
  sometimes(what: Situation): void;
}

/** How long somebody takes to look at a run that is parked. */
const LOOK_MS = 2000;
/** What says that nobody waits for a decision any more. */
const TOO_LATE = ["invalid_argument", "run_ended", "run_not_found", "idempotency_conflict"] as const;

export class People {
  readonly #ports: PeoplePorts;
  readonly #looking = new Set<string>();
  #votes = 0;

  constructor(ports: PeoplePorts) {
    this.#ports = ports;
  }

  /** A run asks for leave: everybody says what they have in mind, when its time has come. */
  asked(run: string, request: ApprovalRequested): void {
    for (const vote of (request.evidence as Evidence).votes)
      this.#ports.add({
        name: `${vote.by} says ${vote.decision} about "${request.name}" of ${run}`,
        at: vote.afterMs,
        by: this.#votes++,
        do: (pawl) => this.#vote(request, vote, pawl),
        failed: (error) => this.#refused(request, vote, error),
      });
  }

  async #vote({ id }: ApprovalRequested, { by, decision }: VotePlan, pawl: Pawl): Promise<Answer> {
    const roles = ROLES[by] ?? [];
    const changed = decision === "changes_requested" ? { arguments: { amount: 7 } } : {};
    await pawl.approvals.decide(id, { decision, by, roles, ...changed });
    if (!this.#ports.checks.deeds.approvals.isKept(id, by))
      this.#ports.violated("I1", `the vote of ${by} about approval ${id} was acknowledged, and it is not there`);
    return "done";
  }

  #refused({ id }: ApprovalRequested, { by }: VotePlan, error: unknown): Answer {
    const { time, checks, sometimes, violated } = this.#ports;
    if (hasCode(error, "approval_decided")) sometimes("somebody decided second and was told");
    else if (hasCode(error, "approval_expired")) sometimes("somebody decided too late and was told");
    else if (hasCode(error, "approval_mismatch")) {
      sometimes("somebody who may not decide was refused");
      if (checks.deeds.approvals.couldDecide(id, by, time.wall()) && readProperty(error, "fields") !== undefined)
        violated("I15", `${by} was refused by approval ${id}, and may decide about it`);
    } else if (!hasCode(error, "run_ended") && !hasCode(error, "approval_not_found")) return "again";
    return "done";
  }

  /** A run waits for a decision: somebody looks at it after a while. */
  parked(run: string): void {
    if (this.#looking.has(run)) return;
    this.#looking.add(run);
    this.#ports.add({
      name: `resolve ${run}`,
      at: LOOK_MS,
      by: 0,
      do: async (pawl) => {
        this.#looking.delete(run);
        const park = this.#parkOf(run);
        if (park !== null) await this.#decide(run, park, pawl);
        return "done";
      },
      failed: (error) => (TOO_LATE.some((code) => hasCode(error, code)) ? "done" : "again"),
    });
  }

  #parkOf(run: string): Parked | null {
    const waits = this.#ports.disk.tables.runs.get(run)?.waits.values() ?? [];
    const detail = [...waits].find((wait) => wait.kind === "decision")?.detail;
    return typeof detail === "string" ? (JSON.parse(detail) as Parked) : null;
  }

  async #decide(run: string, park: Parked, pawl: Pawl): Promise<void> {
    if (park.reason === "unknown_outcome") return pawl.resolve(run, this.#truth(run, park));
    if (park.reason === "budget_exceeded") return pawl.resolve(run, this.#money(park));
    return pawl.resolve(run, "retry");
  }

  /** Most say what they find outside; some have had enough. */
  #truth(run: string, { detail }: Parked) {
    const { checks } = this.#ports;
    const key = String(detail?.["key"]);
    const step = String(detail?.["step"]);
    const patience = checks.journalOf(run).length % 7;
    if (patience === 0) return "compensate";
    if (patience === 1) return "abort";
    if (checks.deeds.bank.has(key)) return { choice: "happened", value: receiptOf(key), step };
    return { choice: "did-not-happen", step };
  }

  #money({ detail }: Parked) {
    const { unit, limit, asked, budget } = detail as { unit: string; limit: number; asked: number; budget: string };
    const decision = this.#ports.checks.inputOf(budget)?.budget?.decision ?? "raise";
    if (decision !== "raise") return decision;
    this.#ports.sometimes("a budget was raised");
    return { choice: "raise", value: { [unit]: limit + 3 * asked } };
  }
}
