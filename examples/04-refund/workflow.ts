import { workflow } from "pawl";
import { mailer, type RefundRequest, refunds } from "../fakes.ts";

/** Part of what is approved: under another policy somebody has to approve again. */
const POLICY = "refunds-2026-03";

export const refund = workflow({ name: "refund", deadline: "7 days" }, async (ctx, request: RefundRequest) => {
  const { draft } = await ctx.effect("draft", {
    class: "draft",
    idempotent: true,
    do: ({ key }) => refunds.draft(request, key),
    undo: (drafted, { key, undoes }) => refunds.withdraw(drafted?.draft ?? undoes, key),
  });
  const { risk, finding } = await ctx.step("review", ({ key }) => refunds.review(request, key), { kind: "model" });

  const action = { tool: "refunds.issue", version: "1", arguments: { draft, cents: request.cents } };
  const approval = await ctx.approve("issue", {
    action,
    approvers: ["role:support-lead"],
    actor: request.agent,
    fourEyes: true,
    evidence: { request, finding },
    risk,
    policyVersion: POLICY,
    timeout: "72h",
    escalate: [
      { after: "24h", action: "notify" },
      { after: "36h", action: "escalate", to: ["role:finance-head"] },
      { after: "48h", action: "notify", notify: ["role:finance-head"] },
    ],
  });

  const { payment } = await ctx.effect("issue", {
    class: "execute",
    idempotent: true,
    needs: { approval, action },
    do: ({ key }) => refunds.issue(draft, request.cents, key),
    undo: (issued, { key, undoes }) => refunds.reverse(issued?.payment ?? undoes, key),
  });
  await ctx.effect("tell", {
    class: "write",
    idempotent: true,
    do: ({ key }) => mailer.send(request.email, `${request.cents / 100} EUR are on their way: ${payment}.`, key),
  });
  return { order: request.order, payment, approvedBy: approval.by };
});
