// Approvals, as people see them: what a workflow asks for with `ctx.approve`, and what it is given.
import type { Duration } from "./retry.ts";

export const RISKS = ["low", "medium", "high", "critical"] as const;
/** How bad it would be if the action were wrong. */
export type Risk = (typeof RISKS)[number];

export const APPROVAL_KINDS = [
  "confirmation",
  "review",
  "authorisation",
  "escalation",
  "break-glass",
  "batch",
] as const;
/** What is asked of the approver. */
export type ApprovalKind = (typeof APPROVAL_KINDS)[number];

export const LEVEL_ACTIONS = ["notify", "escalate", "approve", "cancel", "deny"] as const;
/** What a level of escalation does: tell people, ask others, or decide itself. */
export type LevelAction = (typeof LEVEL_ACTIONS)[number];

/** The one exact thing that an approval is about. */
export interface ApprovalAction {
  /** What will be called, such as "refunds.issue". */
  readonly tool: string;
  /** Of the tool: another version is another action. */
  readonly version?: string;
  /** What it will be called with: another value is another action, and needs another approval. */
  readonly arguments: unknown;
  /** What it touches, for people and for the hash. */
  readonly resources?: readonly string[];
}

export interface EscalationLevel {
  /** Time waited when this level is reached; each later than the one before. */
  readonly after: Duration;
  /** Tell people, ask others, or decide: "approve" needs `autoApprove`, "cancel" stops the run. */
  readonly action: LevelAction;
  /** With "escalate": who may decide from here on. */
  readonly to?: readonly string[];
  /** Who is told. Default: everybody who may decide then. */
  readonly notify?: readonly string[];
  /** With "escalate": those who were asked before may no longer decide. Default false. */
  readonly revoke?: boolean;
}

/** How soon people are to answer, and what happens while they do not. */
export interface ServiceLevel {
  /** How long the decision may take. */
  readonly timeout?: Duration;
  /** The time between reminders, at least a minute. */
  readonly remind?: Duration;
  /** What happens while nobody decides, level by level. */
  readonly escalate?: readonly EscalationLevel[];
}

/** `Infinity`: however often. */
export interface MaxDenials {
  /** To the same tool, arguments and resources. */
  readonly action?: number;
  /** To the same tool and actor, whatever the arguments. */
  readonly tool?: number;
}

/** How often people had said no in this run when they were asked. */
export interface ApprovalDenials {
  /** To the same tool, arguments and resources. */
  readonly action: number;
  /** To the same tool and actor, whatever the arguments. */
  readonly tool: number;
}

export interface ApproveOptions {
  /** The exact action: tool, version, arguments, resources. */
  readonly action: ApprovalAction;
  /** Who may decide: persons such as "ann", or roles such as "role:physician". */
  readonly approvers: readonly string[];
  /** What the approver should see before deciding. */
  readonly evidence?: unknown;
  /** How bad a wrong decision would be. */
  readonly risk?: Risk;
  /** What is asked of the approver, for people. */
  readonly kind?: ApprovalKind;
  /** How many different people must approve. One denial denies. */
  readonly quorum?: number;
  /** The `actor` may not decide. */
  readonly fourEyes?: boolean;
  /** Nor may these, whatever roles they have: those who have done the work. */
  readonly notBy?: readonly string[];
  /** On whose behalf the action is done. */
  readonly actor?: string;
  /** The policy under which the approval is asked for: under another one it no longer counts. */
  readonly policyVersion?: string;
  /** How long the decision may take; whoever it is escalated to has as long again. */
  readonly timeout?: Duration;
  /** How long an approval may be used after it was given. */
  readonly validFor?: Duration;
  /** The time between reminders, at least a minute. */
  readonly remind?: Duration;
  /** What happens while nobody decides, level by level. */
  readonly escalate?: readonly EscalationLevel[];
  /** By risk: for such an action they take the place of `timeout`, `remind` and `escalate`. */
  readonly serviceLevels?: Readonly<Partial<Record<Risk, ServiceLevel>>>;
  /** Whether a level may approve by itself, and up to which risk; never above "medium". */
  readonly autoApprove?: false | { readonly maxRisk: "low" | "medium" };
  /** How often people may say no in this run before they are not asked any more: `ctx.approve` then rejects with `approval_refused`. */
  readonly maxDenials?: MaxDenials;
  /** Fail and undo what was done, fail and leave it, or give the decision back as a value. */
  readonly onDenied?: "compensate" | "fail" | "branch";
  /** "escalate" waits for all levels first, then fails as "compensate" does; "cancel" cancels the run. */
  readonly onExpired?: "escalate" | "compensate" | "cancel" | "fail" | "branch";
  /** As `onDenied`, for a request of changes. */
  readonly onChanges?: "compensate" | "fail" | "branch";
}

export const VOTES = ["approved", "denied", "changes_requested"] as const;
/** What a person may say. */
export type VoteDecision = (typeof VOTES)[number];

/** The link that a person decided with. */
export interface VoteLink {
  readonly id: string;
  /** Whom it was made for: a person or a role. */
  readonly for: string;
}

/** What one person has said. */
export interface ApprovalVote {
  readonly by: string;
  readonly roles: readonly string[];
  readonly decision: VoteDecision;
  /** Store time. */
  readonly at: number;
  readonly from?: string;
  readonly reason?: string;
  /** Absent: without a link. */
  readonly link?: VoteLink;
}

/** An escalation that asked others: who handed over to whom, when and why. */
export interface ApprovalHandoff {
  readonly level: number;
  /** Who could decide until then. */
  readonly from: readonly string[];
  readonly to: readonly string[];
  /** Store time at which it fell due. */
  readonly at: number;
  readonly reason: string;
  /** Those before may no longer decide. */
  readonly revoke: boolean;
}

/** A decision: immutable, with who, when, from where and why. */
export interface ApprovalRecord {
  readonly id: string;
  readonly name: string;
  /** Digest of tool, version, arguments, resources, actor, workflow and policy version. */
  readonly hash: string;
  readonly action: ApprovalAction;
  readonly decision: VoteDecision | "expired";
  /** The person whose vote decided; "policy" for a level, `null` for an expiry. */
  readonly by: string | null;
  /** Store time. */
  readonly at: number;
  readonly from?: string;
  readonly reason?: string;
  /** With "changes_requested": the arguments as the approver would have them. They are another action. */
  readonly arguments?: unknown;
  readonly votes: readonly ApprovalVote[];
  /** The level of escalation that was reached; 0 for none. */
  readonly level: number;
  /** How long it took. */
  readonly waitedMs: number;
  /** Who could decide at that time. */
  readonly approvers: readonly string[];
  /** How it came to them, if others were asked first. */
  readonly handoffs: readonly ApprovalHandoff[];
  readonly actor?: string;
  readonly policyVersion?: string;
  /** Store time after which it may no longer be used. */
  readonly validUntil?: number;
}

/** What `ctx.approve` resolves with. */
export type Approved = ApprovalRecord & { readonly decision: "approved" };
