import { ALERT } from "../answers.ts";
import { type Route, route } from "../route.ts";
import { listOf, object, oneOf, optional } from "../shape.ts";

export const alertRoutes: readonly Route[] = [
  route(
    {
      method: "GET",
      path: "/api/alerts",
      role: "viewer",
      summary: "Lists what somebody should look at, newest first.",
      query: {
        status: optional(oneOf("Default: those that are not resolved.", ["firing", "acknowledged", "resolved", "all"])),
      },
      answer: object("Alerts.", { alerts: listOf("Newest first.", ALERT) }),
    },
    async ({ pawl, query }) => ({ alerts: await pawl.alerts.list(query) }),
  ),
  route(
    {
      method: "POST",
      path: "/api/alerts/:id/acknowledge",
      role: "operator",
      summary: "Says that somebody sees to it: it stays quiet until it is over.",
      answer: object("The alert.", { alert: ALERT }),
    },
    async ({ pawl, params, who }) => ({ alert: await pawl.alerts.acknowledge(params.id, { by: who.name }) }),
  ),
  route(
    {
      method: "POST",
      path: "/api/alerts/:id/resolve",
      role: "operator",
      summary: "Says that somebody has seen to it.",
      answer: object("The alert.", { alert: ALERT }),
    },
    async ({ pawl, params, who }) => ({ alert: await pawl.alerts.resolve(params.id, { by: who.name }) }),
  ),
];
