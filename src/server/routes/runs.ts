import type { RunStarted } from "../../core/journal.ts";
import { LIMITS } from "../../core/limits.ts";
import { RUN_PAGE, RUN_STATUS } from "../answers.ts";
import { notFound } from "../failure.ts";
import { type Route, route } from "../route.ts";
import { RUN_FILTER, selectionOf } from "../run-filter.ts";
import { flag, listOf, moment, object, oneOf, optional, type Shape, text, whole } from "../shape.ts";

const HOLD: Shape = object("A hold.", {
  run: text("The run."),
  by: text("Who holds it."),
  reason: text("Why."),
  at: moment("Since when."),
});

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
        ...selectionOf(filter),
        ...(cursor !== undefined && { cursor }),
        ...(limit !== undefined && { limit }),
      }),
  ),
  route(
    {
      method: "GET",
      path: "/api/runs/counts",
      role: "viewer",
      summary: "How many runs fit, by status; each is counted up to a bound.",
      query: RUN_FILTER,
      answer: object("How many there are.", {
        counts: object("By status.", {
          running: whole("Under way.", 0),
          waiting: whole("For a timer, a signal, a person.", 0),
          parked: whole("Until somebody decides.", 0),
          succeeded: whole("Ended well.", 0),
          failed: whole("Ended with an error.", 0),
          cancelled: whole("Stopped.", 0),
        }),
        atLeast: flag("Some are more: counting ended at its bound."),
      }),
    },
    ({ pawl, query }) => pawl.operations.count(selectionOf(query)),
  ),
  route(
    {
      method: "POST",
      path: "/api/runs/bulk",
      role: "admin",
      summary:
        "Cancels or retries every run that fits. With dryRun it only counts them. Cut off, it may be sent again.",
      body: {
        action: oneOf("What is done.", ["cancel", "retry"]),
        filter: object("Which runs.", RUN_FILTER),
        dryRun: flag("Only tell how many there are."),
        reason: optional(text("Why.", { max: LIMITS.reasonBytes })),
      },
      answer: object("What was done.", {
        matched: whole("Runs that fit.", 0),
        done: whole("Cancelled or retried by this request.", 0),
        already: whole("Cancelled or retried before, or ended meanwhile.", 0),
        failed: listOf(
          "Runs that could not be.",
          object("A run.", { id: text("Its id."), error: text("Why.", { max: 100_000 }) }),
        ),
        dryRun: flag("Nothing was changed."),
      }),
    },
    ({ pawl, who, from, signal, body: { filter, ...request } }) =>
      pawl.operations.bulk({ ...request, filter: selectionOf(filter), by: who.name, from, signal }),
  ),
  route(
    {
      method: "POST",
      path: "/api/runs/:id/hold",
      role: "admin",
      summary: "Keeps a run from retention, with the reason.",
      body: { reason: text("Why.", { max: 1000 }) },
      answer: HOLD,
    },
    ({ pawl, who, from, params: { id }, body: { reason } }) => pawl.operations.hold(id, { by: who.name, from, reason }),
  ),
  route(
    {
      method: "DELETE",
      path: "/api/runs/:id/hold",
      role: "admin",
      summary: "Ends a hold: from now on retention applies to the run again.",
      answer: HOLD,
    },
    async ({ pawl, who, from, params: { id } }) => {
      const released = await pawl.operations.release(id, { by: who.name, from });
      if (released === null) throw notFound(`hold of run ${id}`);
      return released;
    },
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
      const [status, [first], [hold]] = await Promise.all([
        run.status(),
        run.journal({ limit: 1 }),
        pawl.operations.holds({ run: id }),
      ]);
      return {
        ...status,
        input: (first?.payload as RunStarted | undefined)?.input,
        ...(hold !== undefined && { hold }),
      };
    },
  ),
];
