// What is told as it happens.

import { PawlError } from "../../base/errors.ts";
import { rowOf } from "../../client/run.ts";
import { assertFollows } from "../../client/run-events.ts";
import type { ServerEvent } from "../event-stream.ts";
import { type Route, route } from "../route.ts";
import { changesOf } from "../run-changes.ts";
import { RUN_FILTER, selectionOf } from "../run-filter.ts";
import { optional, text, whole } from "../shape.ts";

/** Rows of a list that stays up to date: a screen or two. */
const LIVE_ROWS = 50;
const LIVE_ROWS_MAX = 200;

export const liveRoutes: readonly Route[] = [
  route(
    {
      method: "GET",
      path: "/api/runs/:id/events",
      role: "viewer",
      summary:
        "Its journal as it grows: `entry` for each entry, `end` when the run has ended. Goes on behind Last-Event-ID.",
      query: { after: optional(whole("Go on behind the entry at this position.", 0)) },
      answers: "text/event-stream",
    },
    async (call) => {
      const { pawl, params, query, headers, server } = call;
      await rowOf(params.id, pawl.store);
      const after = lastPosition(headers.get("last-event-id")) ?? query.after;
      if (after !== undefined) await assertFollows(pawl.store, params.id, after);
      const run = pawl.get(params.id);
      return server.streams.answer(call, async function* (): AsyncGenerator<ServerEvent> {
        for await (const entry of run.events(after === undefined ? {} : { after }))
          yield { event: "entry", id: String(entry.seq), data: entry };
        yield { event: "end", data: {} };
      });
    },
  ),
  route(
    {
      method: "GET",
      path: "/api/runs/:id/stream",
      role: "viewer",
      summary:
        "What its steps emit: `chunk`, `retract` and `end` of a step, then `end` of the run. Goes on behind Last-Event-ID.",
      query: {
        after: optional(text("Go on behind the event that had this cursor.", { max: 10_000 })),
        key: optional(text("Only what this step emits.")),
      },
      answers: "text/event-stream",
    },
    async (call) => {
      const { pawl, params, query, headers, server } = call;
      await rowOf(params.id, pawl.store);
      const after = headers.get("last-event-id") ?? query.after;
      const { key } = query;
      const events = pawl
        .get(params.id)
        .stream({ ...(after !== undefined && { after }), ...(key !== undefined && { key }) });
      return server.streams.answer(call, async function* (): AsyncGenerator<ServerEvent> {
        for await (const event of events) yield { event: "stream", id: event.cursor, data: event };
        yield { event: "end", data: {} };
      });
    },
  ),
  route(
    {
      method: "GET",
      path: "/api/changes",
      role: "viewer",
      summary: "A list of runs that stays up to date: `runs` with the whole first page, then with those that changed.",
      query: { ...RUN_FILTER, limit: optional(whole("How many rows.", 1, LIVE_ROWS_MAX)) },
      answers: "text/event-stream",
    },
    (call) => {
      const { pawl, query, server } = call;
      const { limit = LIVE_ROWS, ...filter } = query;
      return server.streams.answer(call, async function* (signal): AsyncGenerator<ServerEvent> {
        for await (const runs of changesOf(pawl, { ...selectionOf(filter), limit }, server.clock, signal))
          yield { event: "runs", data: { runs } };
      });
    },
  ),
];

function lastPosition(text: string | null): number | undefined {
  if (text === null || text === "") return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new PawlError("invalid_argument", "Last-Event-ID is no position of a journal. Send the last id that came.", {
    fields: { field: "last-event-id" },
  });
}
