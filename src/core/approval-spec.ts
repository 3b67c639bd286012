// What `ctx.approve` accepts
// Everything is checked at the call, so that a mistake shows when the workflow is tried and not two days later, when a level falls due (T-24).
import { toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import {
  APPROVAL_KINDS,
  type ApprovalAction,
  type ApprovalDenials,
  type ApproveOptions,
  type EscalationLevel,
  LEVEL_ACTIONS,
  type MaxDenials,
  RISKS,
  type Risk,
} from "./approval.ts";
import { type ApprovalRequested, type ApprovalSpec, isInvolved, type LevelSpec } from "./approval-request.ts";
import { nextDue } from "./approval-times.ts";
import { POLICY, ROLE } from "./approval-votes.ts";
import { encodePayload } from "./draft.ts";
import { DEFAULTS, LIMITS } from "./limits.ts";
import { DEFAULT_RISK, withServiceLevel } from "./service-levels.ts";

const ON_DENIED = ["compensate", "fail", "branch"] as const;
const ON_EXPIRED = ["escalate", "compensate", "cancel", "fail", "branch"] as const;
/** Nothing above is ever approved without a person (S4-36). */
const HIGHEST_AUTO_RISK = ["low", "medium"] as const;

export function approvalSpec(name: string, given: ApproveOptions): ApprovalSpec {
  assertName("name of ctx.approve", name);
  if (typeof given !== "object" || given === null)
    throw invalid(name, "options", given, "Give at least { action, approvers }");
  const options = withServiceLevel(name, given, (one) => approvalSpec(name, one));
  const { evidence = null, quorum = 1, fourEyes = false, actor = null, policyVersion = null } = options;
  const risk = options.risk ?? DEFAULT_RISK;
  const kind = options.kind ?? "authorisation";
  const onDenied = options.onDenied ?? "compensate";
  const onExpired = options.onExpired ?? "escalate";
  const onChanges = options.onChanges ?? "compensate";
  const approvers = people(name, "approvers", options.approvers);
  oneOf(name, "risk", risk, RISKS);
  oneOf(name, "kind", kind, APPROVAL_KINDS);
  oneOf(name, "onDenied", onDenied, ON_DENIED);
  oneOf(name, "onExpired", onExpired, ON_EXPIRED);
  oneOf(name, "onChanges", onChanges, ON_DENIED);
  const notBy = options.notBy ?? [];
  if (!Array.isArray(notBy)) throw invalid(name, "notBy", notBy, "Give a list of people");
  for (const one of notBy) assertName(`notBy of approval "${name}"`, one);
  if (actor !== null) assertName(`actor of approval "${name}"`, actor);
  if (policyVersion !== null) assertName(`policyVersion of approval "${name}"`, policyVersion);
  encodePayload(evidence, `evidence of approval "${name}"`);
  const timeoutMs = duration(name, "timeout", options.timeout ?? DEFAULTS.approvalMs, 1);
  const spec: ApprovalSpec = {
    name,
    action: actionOf(name, options.action),
    approvers,
    evidence,
    risk,
    kind,
    quorum,
    fourEyes,
    ...(notBy.length > 0 && { notBy: [...new Set(notBy)] }),
    actor,
    policyVersion,
    timeoutMs,
    validForMs: options.validFor === undefined ? null : duration(name, "validFor", options.validFor, 1),
    remindMs: options.remind === undefined ? null : duration(name, "remind", options.remind, LIMITS.remindMs),
    levels: levelsOf(name, options, risk, timeoutMs, onExpired),
    maxDenials: maxDenialsOf(name, options.maxDenials),
    onDenied,
    onExpired,
    onChanges,
  };
  assertDecidable(spec);
  return spec;
}

/** What is recorded: every duration becomes a due time, once (B44). */
export function requestedAt(
  spec: ApprovalSpec,
  at: number,
  ids: Pick<ApprovalRequested, "id" | "hash" | "digest" | "denials">,
): ApprovalRequested {
  const { timeoutMs, levels: specs, maxDenials: _, ...rest } = spec;
  const levels = specs.map(({ afterMs, ...level }) => ({ ...level, due: Math.ceil(at + afterMs) }));
  const times = { at, remindMs: spec.remindMs, levels, timeoutAt: Math.ceil(at + timeoutMs), expiresAt: 0 };
  const expiresAt = Math.ceil(at + expiryMs(spec));
  const request = { ...rest, ...ids, ...times, expiresAt, due: expiresAt };
  return { ...request, due: nextDue(request, at) ?? expiresAt };
}

/** The same request, asked for later and under another id. */
export function shifted(request: ApprovalRequested, id: string, byMs: number): ApprovalRequested {
  return {
    ...request,
    id,
    at: request.at + byMs,
    levels: request.levels.map((level) => ({ ...level, due: level.due + byMs })),
    timeoutAt: request.timeoutAt + byMs,
    expiresAt: request.expiresAt + byMs,
    due: request.due + byMs,
  };
}

/** Whoever it is escalated to has as long as the first ones had, and no level is cut off, unless something else is to happen on time. */
function expiryMs({ timeoutMs, levels, onExpired }: ApprovalSpec): number {
  if (onExpired !== "escalate") return timeoutMs;
  const ends = levels.map(({ afterMs, action }) => (action === "escalate" ? afterMs + timeoutMs : afterMs));
  return Math.max(timeoutMs, ...ends);
}

function maxDenialsOf(name: string, given: MaxDenials = {}): ApprovalDenials {
  const { action = DEFAULTS.maxDenials, tool = Number.POSITIVE_INFINITY } = given ?? {};
  for (const [field, most] of Object.entries({ action, tool }))
    if (most !== Number.POSITIVE_INFINITY && !(Number.isInteger(most) && most >= 1))
      throw invalid(name, `maxDenials.${field}`, most, "Give a whole number from 1, or Infinity to ask however often");
  return { action, tool };
}

function actionOf(name: string, action: ApprovalAction): ApprovalAction {
  if (typeof action !== "object" || action === null || !("arguments" in action))
    throw invalid(name, "action", action, "Give { tool, arguments }, with version and resources if there are any");
  const { tool, version, resources } = action;
  assertName(`action.tool of approval "${name}"`, tool);
  if (version !== undefined) assertName(`action.version of approval "${name}"`, version);
  if (resources !== undefined && !(Array.isArray(resources) && resources.every((one) => typeof one === "string")))
    throw invalid(name, "action.resources", resources, "Give a list of texts");
  encodePayload(action.arguments, `action.arguments of approval "${name}"`);
  return {
    tool,
    arguments: action.arguments,
    ...(version === undefined ? {} : { version }),
    ...(resources === undefined ? {} : { resources: [...resources] }),
  };
}

function people(name: string, field: string, given: unknown): readonly string[] {
  if (!Array.isArray(given) || given.length === 0)
    throw invalid(name, field, given, 'Name at least one person such as "ann" or role such as "role:physician"');
  for (const one of given) assertName(`${field} of approval "${name}"`, one);
  if (given.includes(POLICY)) throw invalid(name, field, given, `"${POLICY}" is no person: a level decides by policy`);
  return [...new Set(given as readonly string[])];
}

function levelsOf(
  name: string,
  { escalate = [], autoApprove = false }: ApproveOptions,
  risk: Risk,
  timeoutMs: number,
  onExpired: ApprovalSpec["onExpired"],
): LevelSpec[] {
  if (!Array.isArray(escalate)) throw invalid(name, "escalate", escalate, "Give a list of levels");
  if (autoApprove !== false) oneOf(name, "autoApprove.maxRisk", autoApprove?.maxRisk, HIGHEST_AUTO_RISK);
  let before = 0;
  return escalate.map((level: EscalationLevel, index) => {
    const field = `escalate[${index}]`;
    const spec = levelOf(name, field, level);
    if (spec.afterMs <= before)
      throw invalid(name, `${field}.after`, level.after, "Each level must be later than the one before");
    if (onExpired !== "escalate" && spec.afterMs > timeoutMs)
      throw invalid(
        name,
        `${field}.after`,
        level.after,
        'It lies after `timeout`: only onExpired "escalate" waits for it',
      );
    if (spec.action === "approve") assertAutoApproval(name, `${field}.action`, autoApprove, risk);
    before = spec.afterMs;
    return spec;
  });
}

function levelOf(name: string, field: string, level: EscalationLevel): LevelSpec {
  if (typeof level !== "object" || level === null) throw invalid(name, field, level, "Give { after, action }");
  const { after, action, to, notify, revoke = false } = level;
  oneOf(name, `${field}.action`, action, LEVEL_ACTIONS);
  const isEscalation = action === "escalate";
  if (!isEscalation && to !== undefined)
    throw invalid(name, `${field}.to`, to, 'Only "escalate" asks others; use `notify` for those who are told');
  if (!isEscalation && revoke) throw invalid(name, `${field}.revoke`, revoke, 'It belongs to "escalate"');
  return {
    afterMs: duration(name, `${field}.after`, after, 1),
    action,
    to: isEscalation ? people(name, `${field}.to`, to) : [],
    notify: notify === undefined ? null : people(name, `${field}.notify`, notify),
    revoke,
  };
}

function assertAutoApproval(
  name: string,
  field: string,
  autoApprove: NonNullable<ApproveOptions["autoApprove"]>,
  risk: Risk,
): void {
  if (autoApprove === false)
    throw invalid(name, field, "approve", "Nothing is approved without a person unless `autoApprove` allows it");
  if (RISKS.indexOf(risk) > RISKS.indexOf(autoApprove.maxRisk))
    throw invalid(
      name,
      field,
      "approve",
      `The risk is "${risk}" and autoApprove.maxRisk "${autoApprove.maxRisk}": such an action needs a person`,
    );
}

/** A question that nobody could answer is a mistake. */
function assertDecidable(spec: ApprovalSpec): void {
  const { name, quorum, fourEyes, actor, approvers, levels } = spec;
  if (!Number.isInteger(quorum) || quorum < 1) throw invalid(name, "quorum", quorum, "Give a whole number of people");
  if (typeof fourEyes !== "boolean") throw invalid(name, "fourEyes", fourEyes, "Give true or false");
  if (fourEyes && actor === null && spec.notBy === undefined)
    throw invalid(name, "actor", actor, "`fourEyes` keeps the actor from deciding: say who that is");
  const everybody = [...approvers, ...levels.flatMap(({ to }) => to)];
  if (everybody.some((one) => one.startsWith(ROLE))) return;
  const deciders = everybody.filter((one) => !isInvolved(spec, one));
  if (new Set(deciders).size < quorum)
    throw invalid(
      name,
      "approvers",
      approvers,
      `Only ${deciders.length} may decide, and ${quorum} must: name more people`,
    );
}

function duration(name: string, field: string, given: string | number, leastMs: number): number {
  const ms = toMs(given, `${field} of approval "${name}"`);
  if (ms < leastMs)
    throw invalid(name, field, given, leastMs > 1 ? "Give at least a minute" : "Give more than nothing");
  return ms;
}

function oneOf(name: string, field: string, given: unknown, allowed: readonly string[]): void {
  if (!allowed.includes(given as string))
    throw invalid(name, field, given, `Give one of: ${allowed.map((one) => `"${one}"`).join(", ")}`);
}

function invalid(name: string, field: string, given: unknown, action: string): PawlError {
  const shown = typeof given === "object" && given !== null ? JSON.stringify(given) : String(given);
  return new PawlError("invalid_argument", `\`${field}\` of approval "${name}" is ${shown.slice(0, 100)}. ${action}.`, {
    fields: { approval: name, field },
  });
}
