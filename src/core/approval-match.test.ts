import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { ApprovalRecord } from "./approval.ts";
import { matchApproval, type PendingAction } from "./approval-match.ts";
import { approvalHash } from "./approval-request.ts";

const digest = (text: string): string => createHash("sha256").update(text).digest("base64url");

const action = { tool: "refunds.issue", version: "2", arguments: { order: "o-1", cents: 4200 }, resources: ["a", "b"] };
const scope = { workflow: "refund", actor: "bot", policyVersion: "7" };
const approved: ApprovalRecord = {
  id: "a1",
  name: "refund",
  hash: approvalHash(digest, action, scope),
  action,
  decision: "approved",
  by: "ann",
  at: 1000,
  votes: [{ by: "ann", roles: ["manager"], decision: "approved", at: 1000 }],
  level: 0,
  waitedMs: 10,
  approvers: ["ann"],
  handoffs: [],
  actor: "bot",
  policyVersion: "7",
  validUntil: 5000,
};
const pending: PendingAction = { action, workflow: "refund", now: 2000, isConsumed: false };

function reasonOf(record: Partial<ApprovalRecord>, about: Partial<PendingAction>): unknown {
  const error = matchApproval(digest, { ...approved, ...record }, { ...pending, ...about });
  if (error === null) return null;
  expect(error.code).toBe("approval_mismatch");
  expect(error.message).toMatch(/ctx\.approve/);
  return error.fields["reason"];
}

describe("an approval and the action it is for", () => {
  it("X-23 Q6 covers the very action, however its properties and resources are ordered", () => {
    expect(reasonOf({}, {})).toBe(null);
    const reordered = {
      resources: ["b", "a"],
      arguments: { cents: 4200, order: "o-1" },
      version: "2",
      tool: action.tool,
    };
    expect(reasonOf({}, { action: reordered, actor: "bot", policyVersion: "7", approvers: ["role:manager"] })).toBe(
      null,
    );
  });

  it.each([
    ["not_approved", { decision: "denied" }, {}],
    ["not_approved", { decision: "expired" }, {}],
    ["consumed", {}, { isConsumed: true }],
    ["expired", {}, { now: 5001 }],
    ["policy_changed", {}, { policyVersion: "8" }],
    ["wrong_role", {}, { approvers: ["role:head"] }],
    ["wrong_role", { by: "policy", votes: [] }, { approvers: ["role:head"] }],
    ["changed_action", {}, { action: { ...action, arguments: { order: "o-1", cents: 4201 } } }],
    ["changed_action", {}, { action: { ...action, tool: "refunds.draft" } }],
    ["changed_action", {}, { action: { ...action, version: "3" } }],
    ["changed_action", {}, { action: { ...action, resources: ["a"] } }],
    ["changed_action", {}, { actor: "eve" }],
    ["changed_action", {}, { workflow: "other" }],
  ] as const)("X-23 E-14 says %s for %j and %j", (reason, record, about) => {
    expect(reasonOf(record as Partial<ApprovalRecord>, about)).toBe(reason);
  });

  it("a name that is a number, or `__proto__`, is part of the action like any other", () => {
    const hashOf = (text: string) => approvalHash(digest, { tool: "t", arguments: JSON.parse(text) }, scope);
    expect(hashOf('{"2":1,"10":2}')).toBe(hashOf('{"10":2,"2":1}'));
    expect(hashOf('{"__proto__":1}')).not.toBe(hashOf("{}"));
    expect(hashOf('[["a",1]]')).not.toBe(hashOf('{"a":1}'));
  });

  it("Q6 I15 no list reads like an object, whatever is in it", () => {
    const hashOf = (text: string) => approvalHash(digest, { tool: "t", arguments: JSON.parse(text) }, scope);
    expect(hashOf('["{",["a",1]]')).not.toBe(hashOf('{"a":1}'));
    expect(hashOf('{"":[["a",1]]}')).not.toBe(hashOf('{"a":1}'));
    expect(hashOf('[{"a":1}]')).not.toBe(hashOf('[["{",["a",1]]]'));
  });

  it("X-23 what a policy has approved is nobody's approval, also if some had voted for it before", () => {
    expect(reasonOf({ by: "policy" }, { approvers: ["role:manager"] })).toBe("wrong_role");
    expect(reasonOf({ by: "policy" }, { approvers: ["role:manager", "policy"] })).toBe(null);
  });
});
