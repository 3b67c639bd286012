// The request of an approval
// What the journal keeps of it, fixed once and for all when the call is recorded: the action and its hash, who may decide, and every due time.
import { formatMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import type {
  ApprovalAction,
  ApprovalDenials,
  ApprovalHandoff,
  ApprovalKind,
  ApprovalRecord,
  ApprovalVote,
  ApproveOptions,
  LevelAction,
  Risk,
} from "./approval.ts";
import { isPlainRecord, stableDigest } from "./stable-digest.ts";

type Rule<Field extends "onDenied" | "onExpired" | "onChanges"> = NonNullable<ApproveOptions[Field]>;

/** What is asked for, with its defaults; durations are not due times yet. */
export interface ApprovalSpec {
  readonly name: string;
  readonly action: ApprovalAction;
  readonly approvers: readonly string[];
  readonly evidence: unknown;
  readonly risk: Risk;
  readonly kind: ApprovalKind;
  readonly quorum: number;
  readonly fourEyes: boolean;
  /** Absent: nobody. */
  readonly notBy?: readonly string[];
  readonly actor: string | null;
  readonly policyVersion: string | null;
  readonly timeoutMs: number;
  readonly validForMs: number | null;
  readonly remindMs: number | null;
  readonly levels: readonly LevelSpec[];
  readonly maxDenials: ApprovalDenials;
  readonly onDenied: Rule<"onDenied">;
  readonly onExpired: Rule<"onExpired">;
  readonly onChanges: Rule<"onChanges">;
}

interface LevelRule {
  readonly action: LevelAction;
  readonly to: readonly string[];
  /** `null`: everybody who may decide then. */
  readonly notify: readonly string[] | null;
  readonly revoke: boolean;
}

export interface LevelSpec extends LevelRule {
  readonly afterMs: number;
}

export interface RequestedLevel extends LevelRule {
  readonly due: number;
}

/** The payload of `approval.requested`. */
export interface ApprovalRequested extends Omit<ApprovalSpec, "timeoutMs" | "levels" | "maxDenials"> {
  readonly id: string;
  readonly hash: string;
  /** Of what replay compares: tool, arguments, resources. A new policy or a new version of a tool is no drift. */
  readonly digest: string;
  /** Those before it. */
  readonly denials: ApprovalDenials;
  /** When it was asked for: what all times below count from. */
  readonly at: number;
  readonly levels: readonly RequestedLevel[];
  /** When the first ones asked are out of time, and when everybody is. */
  readonly timeoutAt: number;
  readonly expiresAt: number;
  /** The first of everything that falls due. */
  readonly due: number;
}

/** The payload of `approval.escalated`: something fell due and nobody had decided. */
export interface ApprovalEscalated {
  readonly id: string;
  readonly event: "reminder" | "level" | "timeout" | "expiry";
  /** The level that is reached by now; 0 for none. */
  readonly level: number;
  readonly action: LevelAction | null;
  /** Where others are asked: who could decide until then. */
  readonly from?: readonly string[];
  readonly to: readonly string[];
  readonly due: number;
  /** What falls due after it. */
  readonly next: number | null;
  readonly waitedMs: number;
}

/** The payload of `approval.decided`. */
export interface ApprovalDecided
  extends Pick<
    ApprovalRecord,
    "id" | "decision" | "by" | "at" | "from" | "reason" | "arguments" | "level" | "waitedMs"
  > {
  readonly votes: readonly ApprovalVote[];
}

/** What is bound by an approval besides the action itself. */
export interface ApprovalScope {
  readonly workflow: string;
  readonly actor: string | null;
  readonly policyVersion: string | null;
}

type Digest = (text: string) => string;

export function approvalHash(digest: Digest, action: ApprovalAction, scope: ApprovalScope): string {
  const { workflow, actor, policyVersion } = scope;
  return stableDigest(digest, {
    ...plainAction(action),
    version: action.version ?? null,
    workflow,
    actor,
    policyVersion,
  });
}

/** What replay compares a call by. */
export function actionDigest(digest: Digest, action: ApprovalAction): string {
  return stableDigest(digest, plainAction(action));
}

function plainAction({ tool, arguments: given, resources }: ApprovalAction) {
  return { tool, arguments: given, resources: [...(resources ?? [])].sort() };
}

/** Whoever is involved does not decide, whatever else allows it. */
export function isInvolved(
  { fourEyes, actor, notBy = [] }: Pick<ApprovalSpec, "fourEyes" | "actor" | "notBy">,
  person: string,
): boolean {
  return (fourEyes && person === actor) || notBy.includes(person);
}

/** Who may decide at a time: those who were asked first, and those it was escalated to by then. */
export function approversAt({ approvers, levels }: ApprovalRequested, at: number): readonly string[] {
  let allowed = approvers;
  for (const level of levels) if (isHandoff(level, at)) allowed = afterHandoff(allowed, level);
  return allowed;
}

/** The levels up to a time that asked others. */
export function handoffsAt(request: ApprovalRequested, at: number): ApprovalHandoff[] {
  let from = request.approvers;
  return request.levels.flatMap((level, index) => {
    if (!isHandoff(level, at)) return [];
    const { to, due, revoke } = level;
    const reason = `Nobody had decided after ${formatMs(due - request.at)}.`;
    const handoff = { level: index + 1, from, to, at: due, reason, revoke };
    from = afterHandoff(from, level);
    return [handoff];
  });
}

function isHandoff({ action, due }: RequestedLevel, at: number): boolean {
  return action === "escalate" && due <= at;
}

function afterHandoff(allowed: readonly string[], { revoke, to }: RequestedLevel): readonly string[] {
  return revoke ? to : [...new Set([...allowed, ...to])];
}

/** The level that is reached at a time; 0 for none. */
export function levelAt({ levels }: ApprovalRequested, at: number): number {
  return levels.filter((level) => level.due <= at).length;
}

/** The record of a decision, as the body gets it. Nobody can change it afterwards (I15). */
export function recordOf(request: ApprovalRequested, decided: ApprovalDecided): ApprovalRecord {
  const { id, name, hash, action, actor, policyVersion, validForMs } = request;
  const record: ApprovalRecord = {
    ...decided,
    id,
    name,
    hash,
    action,
    approvers: approversAt(request, decided.at),
    handoffs: handoffsAt(request, decided.at),
    ...(actor === null ? {} : { actor }),
    ...(policyVersion === null ? {} : { policyVersion }),
    ...(validForMs === null ? {} : { validUntil: decided.at + validForMs }),
  };
  return freeze(record);
}

function freeze<T>(value: T): T {
  if (!Array.isArray(value) && !isPlainRecord(value)) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}

/** A call that was recorded or adopted has its request. */
export function requestOf(call: {
  readonly key: string;
  readonly request: ApprovalRequested | null;
}): ApprovalRequested {
  if (call.request !== null) return call.request;
  throw new PawlError("corrupted_journal", `Approval "${call.key}" is open and has no request.`);
}
