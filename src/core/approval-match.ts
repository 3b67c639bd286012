// Does an approval fit what is about to be done
// Pure: whoever is about to act asks here, with the record that `ctx.approve` gave and the action as it is now (Q6, E-14).
import { PawlError, readProperty } from "../base/errors.ts";
import type { ApprovalAction, ApprovalRecord } from "./approval.ts";
import { approvalHash } from "./approval-request.ts";
import { mayDecide, POLICY } from "./approval-votes.ts";
import type { ApprovalCall } from "./call.ts";

/** Why an approval does not cover an action. */
export type MismatchReason =
  | "not_approved"
  | "consumed"
  | "expired"
  | "policy_changed"
  | "wrong_role"
  | "changed_action";

/** An action that is about to be done, and what is known around it. */
export interface PendingAction {
  readonly action: ApprovalAction;
  readonly workflow: string;
  readonly actor?: string;
  /** The policy that is in force now. Absent: the one of the approval. */
  readonly policyVersion?: string;
  /** Who must have approved by the rules of today. Absent: whoever was asked. */
  readonly approvers?: readonly string[];
  /** Store time. */
  readonly now: number;
  /** Something has been done with this approval before. */
  readonly isConsumed: boolean;
}

/** `null` if the approval covers the action; otherwise an `approval_mismatch` whose `fields.reason` says why not. */
export function matchApproval(
  digest: (text: string) => string,
  approval: ApprovalRecord,
  pending: PendingAction,
): PawlError | null {
  const reason = reasonOf(digest, approval, pending);
  if (reason === null) return null;
  const { id, name, hash } = approval;
  const { tool } = pending.action;
  return new PawlError("approval_mismatch", `Approval ${id} ("${name}") does not cover ${tool}: ${WHY[reason]}`, {
    fields: { reason, approval: id, name, tool, hash },
  });
}

/** The approval as this run was given it, whatever somebody may have made of it on the way. */
export function givenApproval(asked: readonly ApprovalCall[], named: unknown, effect: string): ApprovalRecord {
  const id = readProperty(named, "id");
  const given = asked.find(({ record }) => record !== null && record.id === id)?.record;
  if (given != null) return given;
  throw notGiven(effect, id);
}

/** An approval that is not this run's to use. */
export function notGiven(effect: string, id: unknown): PawlError {
  const what = typeof id === "string" ? `Approval ${id}` : "`needs.approval`";
  return new PawlError(
    "approval_mismatch",
    `${what} of effect "${effect}" is none that this run was given: ${WHY.not_approved} An approval counts in the run that has asked for it, until that continues as new; a fork asks for its own.`,
    { fields: { reason: "not_approved", effect, ...(typeof id === "string" && { approval: id }) } },
  );
}

function reasonOf(
  digest: (text: string) => string,
  approval: ApprovalRecord,
  { action, workflow, actor, policyVersion, approvers, now, isConsumed }: PendingAction,
): MismatchReason | null {
  if (approval.decision !== "approved") return "not_approved";
  if (isConsumed) return "consumed";
  if (approval.validUntil !== undefined && now > approval.validUntil) return "expired";
  if (policyVersion !== undefined && policyVersion !== approval.policyVersion) return "policy_changed";
  if (approvers !== undefined && !isApprovedBy(approval, approvers)) return "wrong_role";
  const scope = {
    workflow,
    actor: actor ?? approval.actor ?? null,
    policyVersion: policyVersion ?? approval.policyVersion ?? null,
  };
  return approvalHash(digest, action, scope) === approval.hash ? null : "changed_action";
}

function isApprovedBy({ by, votes }: ApprovalRecord, approvers: readonly string[]): boolean {
  // What people had said before a policy decided was not enough.
  if (votes.length === 0 || by === POLICY) return by !== null && approvers.includes(by);
  return votes.every((vote) => mayDecide(approvers, vote.by, vote.roles));
}

const WHY: Readonly<Record<MismatchReason, string>> = {
  not_approved: "it was not approved. Ask again with ctx.approve, or do not do it.",
  consumed: "it was used before, and counts once. Ask for another one with ctx.approve.",
  expired: "it was given too long ago. Ask for another one with ctx.approve, or give a longer `validFor`.",
  policy_changed: "the policy has changed since. Ask again with ctx.approve under the policy of today.",
  wrong_role: "whoever approved it may not, by the rules of today. Ask those who may, with ctx.approve.",
  changed_action: "the action is not the one that was approved. Ask again with ctx.approve for this one.",
};
