import type { MetricsQuery } from "../../client/metrics.ts";
import { prometheusText } from "../../observe/prometheus.ts";
import { METRICS } from "../answers.ts";
import { type Route, route } from "../route.ts";
import { moment, optional, text, type ValuesOf } from "../shape.ts";

const QUERY = {
  since: optional(moment("Only runs that were created since then. Default: 7 days ago.")),
  workflow: optional(text("Only runs of this workflow.")),
};

export const metricsRoutes: readonly Route[] = [
  route(
    {
      method: "GET",
      path: "/api/metrics",
      role: "viewer",
      summary: "Tells how runs have fared, each number with the runs behind it.",
      query: QUERY,
      answer: METRICS,
    },
    ({ pawl, query }) => pawl.metrics(queryOf(query)),
  ),
  route(
    {
      method: "GET",
      path: "/metrics",
      role: "viewer",
      summary: "The same for a scraper.",
      query: QUERY,
      answers: "text/plain",
    },
    async ({ pawl, query }) => {
      const body = prometheusText(await pawl.metrics(queryOf(query)));
      return new Response(body, { headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" } });
    },
  ),
];

function queryOf({ since, workflow }: ValuesOf<typeof QUERY>): MetricsQuery {
  return { ...(since !== undefined && { since: new Date(since) }), ...(workflow !== undefined && { workflow }) };
}
