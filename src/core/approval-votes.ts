// Votes
// What people say about an approval, and what follows from it. Pure: whoever sends a vote asks here first, and the owner of the run asks again (I15).
import { PawlError } from "../base/errors.ts";
import { type ApprovalVote, VOTES, type VoteDecision, type VoteLink } from "./approval.ts";
import { type ApprovalDecided, type ApprovalRequested, approversAt, isInvolved, levelAt } from "./approval-request.ts";
import { closesAt } from "./approval-times.ts";
import type { InboxRow } from "./store.ts";

/** A vote as it lies in the inbox; the store adds the time. */
export interface CastVote {
  readonly approval: string;
  /** Of the action that the person has seen. */
  readonly hash: string;
  readonly decision: VoteDecision;
  readonly by: string;
  readonly roles: readonly string[];
  readonly from?: string;
  readonly reason?: string;
  readonly arguments?: unknown;
  readonly link?: VoteLink;
}

export interface TimedVote extends CastVote {
  readonly at: number;
}

export function isVote(value: unknown): value is CastVote {
  if (typeof value !== "object" || value === null) return false;
  const { approval, hash, decision, by, roles } = value as Partial<CastVote>;
  const areTexts = [approval, hash, decision, by].every((one) => typeof one === "string");
  return areTexts && VOTES.includes(decision as VoteDecision) && Array.isArray(roles);
}

/** The id of a vote. One vote decides where the quorum is one: then there is one id, and of two people one comes first. */
export function voteId(
  { id, quorum }: Pick<ApprovalRequested, "id" | "quorum">,
  by: string,
  refusedBefore: number,
): string {
  const slot = quorum === 1 ? `approval:${id}` : `approval:${id}:${by}`;
  // No name holds a "#".
  return refusedBefore === 0 ? slot : `${slot}#${refusedBefore + 1}`;
}

/** Why a vote does not count; `null` if it does. */
export function refusalOf(run: string, request: ApprovalRequested, vote: TimedVote): PawlError | null {
  const { id, name, hash, fourEyes, actor } = request;
  const fields = { run, approval: id, name, by: vote.by };
  // At that very moment it closes: whoever looked for votes then has not seen those that came later in it.
  if (vote.at >= closesAt(request)) {
    const message = `Approval ${id} ("${name}" of run ${run}) was open until ${timeText(closesAt(request))}: it is too late to decide. \`pawl why ${run}\` tells what the run does now.`;
    return new PawlError("approval_expired", message, { fields: { ...fields, reason: "expired" } });
  }
  if (vote.hash !== hash) {
    const message = `What ${vote.by} has decided about is not what approval ${id} ("${name}" of run ${run}) is about: the action differs. Look at it again and decide about that.`;
    return new PawlError("approval_mismatch", message, { fields: { ...fields, reason: "changed_action", hash } });
  }
  if (isInvolved(request, vote.by)) {
    const part = vote.by === actor ? "is the actor of" : "has done the work of";
    const message = `${vote.by} ${part} approval ${id} ("${name}" of run ${run}) and may not decide about it: it needs four eyes. Ask somebody else.`;
    return new PawlError("approval_mismatch", message, { fields: { ...fields, reason: "wrong_role", fourEyes } });
  }
  const approvers = approversAt(request, vote.at);
  if (mayDecide(approvers, vote.by, vote.roles)) return null;
  const message = `${vote.by} may not decide about approval ${id} ("${name}" of run ${run}). Ask one of: ${approvers.join(", ")}.`;
  return new PawlError("approval_mismatch", message, { fields: { ...fields, reason: "wrong_role", approvers } });
}

/** Who approves or denies where a level does: no person goes by that name. */
export const POLICY = "policy";

/** What the name of a role begins with, among approvers. */
export const ROLE = "role:";

/** Nobody gets a role by going by its name. */
export function mayDecide(approvers: readonly string[], by: string, roles: readonly string[]): boolean {
  if (by === POLICY || by.startsWith(ROLE)) return false;
  return approvers.includes(by) || roles.some((role) => approvers.includes(roleName(role)));
}

/** "physician" and "role:physician" are the same role. */
function roleName(role: string): string {
  return role.startsWith(ROLE) ? role : `${ROLE}${role}`;
}

/** What the votes have decided, in the order in which they came; `null` while more are needed. One that is no approval decides at once. */
export function decisionOf(
  run: string,
  request: ApprovalRequested,
  votes: readonly TimedVote[],
): ApprovalDecided | null {
  const counted: TimedVote[] = [];
  for (const vote of votes) {
    if (refusalOf(run, request, vote) !== null || counted.some(({ by }) => by === vote.by)) continue;
    counted.push(vote);
    if (vote.decision !== "approved" || counted.length >= request.quorum) return decided(request, vote, counted);
  }
  return null;
}

/** The votes that count so far. */
export function votesOf(run: string, request: ApprovalRequested, votes: readonly TimedVote[]): ApprovalVote[] {
  return votes.filter((vote) => refusalOf(run, request, vote) === null).map(plainVote);
}

function decided(request: ApprovalRequested, last: TimedVote, votes: readonly TimedVote[]): ApprovalDecided {
  const { decision, by, at, from, reason } = last;
  return {
    id: request.id,
    decision,
    by,
    at,
    ...(from === undefined ? {} : { from }),
    ...(reason === undefined ? {} : { reason }),
    ...(decision === "changes_requested" && "arguments" in last ? { arguments: last.arguments } : {}),
    votes: votes.map(plainVote),
    level: levelAt(request, at),
    waitedMs: Math.max(0, at - request.at),
  };
}

function plainVote({ by, roles, decision, at, from, reason, link }: TimedVote): ApprovalVote {
  return {
    by,
    roles,
    decision,
    at,
    ...(from === undefined ? {} : { from }),
    ...(reason === undefined ? {} : { reason }),
    ...(link === undefined ? {} : { link }),
  };
}

/** The votes about one approval among an inbox, as `read` opens them; what cannot be read is left out. */
export function votesIn(
  inbox: readonly InboxRow[],
  approval: string,
  read: (row: InboxRow) => CastVote | null,
): TimedVote[] {
  return inbox.flatMap((row) => {
    if (row.kind !== "approval" || row.name !== approval) return [];
    const vote = read(row);
    return vote === null ? [] : [{ ...vote, at: row.at }];
  });
}

function timeText(time: number): string {
  return new Date(time).toISOString();
}
