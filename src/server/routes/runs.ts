import type { RunStarted } from "../../core/journal.ts";
import { LIMITS } from "../../core/limits.ts";
import { RUN_PAGE, RUN_STATUS } from "../answers.ts";
import { type Route, route } from "../route.ts";
import { queryOf, RUN_FILTER } from "../run-filter.ts";
import { optional, text, whole } from "../shape.ts";

export const runsRoutes: readonly Route[] = [
  route(
    {
      method: "GET",
      path: "/api/runs",
      role: "viewer",
      summary: "Lists runs, newest first.",
      query: {
        ...RUN_FILTER,
        cursor: optional(text("Of the page before.")),
        limit: optional(whole("How many on a page.", 1, LIMITS.listPageMax)),
      },
      answer: RUN_PAGE,
    },
    ({ pawl, query: { cursor, limit, ...filter } }) =>
      pawl.list({
        ...queryOf(filter),
        ...(cursor !== undefined && { cursor }),
        ...(limit !== undefined && { limit }),
      }),
  ),
  route(
    {
      method: "GET",
      path: "/api/runs/:id",
      role: "viewer",
      summary: "Everything about a run but its journal.",
      answer: RUN_STATUS,
    },
    async ({ pawl, params: { id } }) => {
      const run = pawl.get(id);
      const [status, [first]] = await Promise.all([run.status(), run.journal({ limit: 1 })]);
      return { ...status, input: (first?.payload as RunStarted | undefined)?.input };
    },
  ),
];
