import { RISKS, VOTES } from "../../core/approval.ts";
import { LIMITS } from "../../core/limits.ts";
import { APPROVAL, APPROVAL_PAGE, RECEIPT } from "../answers.ts";
import { type Route, route } from "../route.ts";
import { anything, flag, oneOf, optional, text, whole } from "../shape.ts";

export const approvalRoutes: readonly Route[] = [
  route(
    {
      method: "GET",
      path: "/api/approvals",
      role: "viewer",
      summary: "Lists open approvals, those of the oldest runs first.",
      query: {
        run: optional(text("Only those of this run.")),
        risk: optional(oneOf("Only those of this risk.", RISKS)),
        mine: optional(flag("Only what whoever asks may decide.")),
        cursor: optional(text("Of the page before.")),
        limit: optional(whole("How many on a page.", 1, LIMITS.listPage)),
      },
      answer: APPROVAL_PAGE,
    },
    ({ pawl, who, query: { mine, ...query } }) =>
      pawl.approvals.list({ ...query, ...(mine === true && { by: who.name, roles: who.groups }) }),
  ),
  route(
    {
      method: "GET",
      path: "/api/approvals/:id",
      role: "viewer",
      summary: "One approval, open or decided, with the whole action.",
      answer: APPROVAL,
    },
    ({ pawl, params: { id } }) => pawl.approvals.get(id),
  ),
  route(
    {
      method: "POST",
      path: "/api/approvals/:id/decide",
      role: "approver",
      summary: "Records a decision. Who decides, and as what, comes from the credential.",
      body: {
        decision: oneOf("What is decided.", VOTES),
        hash: text("Of the action that was shown: another one is refused."),
        reason: optional(text("Why.", { max: LIMITS.reasonBytes })),
        arguments: optional(anything("With changes_requested: the arguments as they should be.")),
      },
      answer: RECEIPT,
    },
    ({ pawl, who, params: { id }, body, from }) =>
      pawl.approvals.decide(id, { ...body, by: who.name, roles: who.groups, from }),
  ),
];
