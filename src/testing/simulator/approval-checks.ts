// The rules of approvals, looked at entry by entry (I15, Q6)
// What was asked, what people said and when it reached the store, and what was decided. Whether a decision is right is worked out here once more,
// from the request and the votes alone.
import { encode } from "../../base/codec.ts";
import { jsonCodec } from "../../base/envelope.ts";
import type { ApprovalDecided, ApprovalEscalated, ApprovalRequested } from "../../core/approval-request.ts";
import type { CastVote } from "../../core/approval-votes.ts";
import type { Entry } from "../../core/journal.ts";
import type { Message } from "../../core/store.ts";
import { openValue } from "../../core/values.ts";
import { ACTOR, type Leave } from "./deeds.ts";
import type { Situation } from "./situations.ts";

export interface ApprovalPorts {
  readonly areClocksRight: boolean;
  hasLost(): boolean;
  /** Something is asked: those who were named will hear of it. */
  asked(run: string, request: ApprovalRequested): void;
  violated(invariant: string, what: string): void;
  sometimes(what: Situation): void;
}

interface Vote extends CastVote {
  readonly at: number;
}

interface Asked {
  readonly run: string;
  /** Those that have inherited it. */
  readonly heirs: Set<string>;
  readonly request: ApprovalRequested;
  /** As they reached the store. */
  readonly votes: Vote[];
  decided: ApprovalDecided | null;
}

/** What people are, beside who they are. */
export const ROLES: Readonly<Record<string, readonly string[]>> = { gil: ["boss"] };

export class ApprovalChecks {
  readonly #ports: ApprovalPorts;
  readonly #asked = new Map<string, Asked>();

  constructor(ports: ApprovalPorts) {
    this.#ports = ports;
  }

  forget(): void {
    this.#asked.clear();
  }

  took(run: string, { type, payload }: Entry): void {
    if (type === "approval.requested") this.#requested(run, payload as ApprovalRequested);
    if (type === "approval.decided") this.#decided(run, payload as ApprovalDecided);
    if (type === "approval.escalated") this.#escalated(run, payload as ApprovalEscalated);
  }

  /** What was decided about in the source counts here; what was not is asked again, under an id of its own. */
  inherited(run: string, { type, payload }: Entry): void {
    if (type !== "approval.requested") return;
    const known = this.#asked.get((payload as ApprovalRequested).id);
    if (known === undefined) return this.#requested(run, payload as ApprovalRequested);
    known.heirs.add(run);
    this.#ports.sometimes("a retry inherited an approval");
  }

  #requested(run: string, request: ApprovalRequested): void {
    this.#asked.set(request.id, { run, heirs: new Set(), request, votes: [], decided: null });
    this.#ports.asked(run, request);
  }

  #escalated(run: string, { id, due, event, action }: ApprovalEscalated): void {
    const asked = this.#asked.get(id);
    if (asked === undefined || asked.decided !== null)
      return this.#violated("T-22", `run ${run} escalates approval ${id}, which is not open`);
    if (event === "level") this.#ports.sometimes("a level of escalation was reached");
    if (action === "cancel" || event === "expiry") this.#ports.sometimes("an approval cancelled its run");
    const early = this.#deciding(asked);
    if (early !== null && early.at < due && this.#ports.areClocksRight && !this.#ports.hasLost())
      this.#violated("S4-37", `approval ${id} escalates, though ${early.by} had decided in time`);
  }

  /** A vote has reached the store. */
  mailed({ to, id, name, data }: Message, at: number): void {
    const asked = this.#asked.get(name);
    if (asked === undefined) return;
    const vote = openValue(jsonCodec, data as string, { run: to, seq: -1, field: `inbox:${id}` }) as CastVote;
    asked.votes.push({ ...vote, at });
  }

  #decided(run: string, decided: ApprovalDecided): void {
    const { id, decision, by } = decided;
    const asked = this.#asked.get(id);
    if (asked === undefined || asked.run !== run)
      return this.#violated("I15", `run ${run} decides approval ${id}, which it did not ask for`);
    if (asked.decided !== null)
      return this.#violated("I15", `approval ${id} is decided twice: ${asked.decided.decision}, then ${decision}`);
    asked.decided = decided;
    this.#count(asked, decided);
    // What was delivered before a power cut is not known any more.
    if (this.#ports.hasLost()) return;
    const due = this.#deciding(asked);
    if (by === null || by === "policy") return this.#withoutPerson(asked, decided, due);
    if (due === null || due.by !== by || due.decision !== decision || due.at !== decided.at)
      this.#violated("I15", `approval ${id} is ${decision} by ${by}; the votes say ${due?.decision} by ${due?.by}`);
  }

  #count({ request }: Asked, { decision, by }: ApprovalDecided): void {
    if (by === "policy") this.#ports.sometimes("a policy decided");
    else if (decision === "approved" && request.quorum > 1) this.#ports.sometimes("a quorum approved");
    else this.#ports.sometimes(`an approval ended as: ${decision}`);
  }

  /** S4-36, S4-37: the clock or a level decides only at its time, and only where nobody has. */
  #withoutPerson({ request }: Asked, { id, decision, by, at }: ApprovalDecided, due: Vote | null): void {
    const level = request.levels.find((one) => one.due === at);
    const isOfLevel = by === "policy" && { approve: "approved", deny: "denied" }[String(level?.action)] === decision;
    const isExpiry = by === null && decision === "expired" && at === request.expiresAt;
    if (!isOfLevel && !isExpiry) this.#violated("I15", `approval ${id} is ${decision} by ${by}, and nothing says so`);
    // Times are whole milliseconds: of a vote in the very one in which it closed, nobody can tell whether it came first.
    if (due !== null && due.at < at && this.#ports.areClocksRight)
      this.#violated("S4-37", `approval ${id} is ${decision} by ${by}, though ${due.by} had decided in time`);
  }

  /** The vote that decides: the first that is no approval, or the one that makes the quorum full. */
  #deciding({ request, votes }: Asked): Vote | null {
    const approved = new Set<string>();
    for (const vote of votes) {
      if (!mayDecide(request, vote.by, vote.at) || vote.at > closesAt(request) || vote.hash !== request.hash) continue;
      if (approved.has(vote.by)) continue;
      if (vote.decision !== "approved") return vote;
      approved.add(vote.by);
      if (approved.size >= request.quorum) return vote;
    }
    return null;
  }

  /** Q6: why nobody may do that by this approval; `null` if one may. */
  uncovered(run: string, { approval, action }: Leave): string | null {
    const asked = this.#asked.get(approval);
    if (asked === undefined || (asked.run !== run && !asked.heirs.has(run)))
      return `run ${run} never asked for approval ${approval}`;
    if (asked.decided?.decision !== "approved") return `approval ${approval} is ${asked.decided?.decision ?? "open"}`;
    const { tool, arguments: given } = asked.request.action;
    if (tool === action.tool && encode(given) === encode(action.arguments)) return null;
    return `approval ${approval} is about ${encode(given)} and not ${encode(action.arguments)}`;
  }

  /** Whether what somebody was told of their vote is true: it counts, or it can count no more. */
  isKept(id: string, by: string): boolean {
    const asked = this.#asked.get(id);
    return asked === undefined || this.#ports.hasLost() || asked.votes.some((vote) => vote.by === by);
  }

  /** Whether somebody could have decided at this time. */
  couldDecide(id: string, by: string, at: number): boolean {
    const asked = this.#asked.get(id);
    return asked !== undefined && this.#ports.areClocksRight && mayDecide(asked.request, by, at);
  }

  #violated(invariant: string, what: string): void {
    this.#ports.violated(invariant, what);
  }
}

function mayDecide({ approvers, levels, fourEyes }: ApprovalRequested, by: string, at: number): boolean {
  if (fourEyes && by === ACTOR) return false;
  let names = approvers;
  for (const { due, action, to, revoke } of levels)
    if (due <= at && action === "escalate") names = revoke ? to : [...names, ...to];
  // Whoever passes for a role by name is nobody.
  const isNamed = !by.startsWith("role:") && names.includes(by);
  return isNamed || (ROLES[by] ?? []).some((role) => names.includes(`role:${role}`));
}

function closesAt({ levels, expiresAt }: ApprovalRequested): number {
  const deciding = levels.find(({ action }) => action === "approve" || action === "deny" || action === "cancel");
  return Math.min(expiresAt, deciding?.due ?? expiresAt);
}
