import { PawlError } from "../../base/errors.ts";
import type { ScheduleOptions } from "../../client/schedules.ts";
import { DONE, SCHEDULE } from "../answers.ts";
import { type Route, route } from "../route.ts";
import { anything, listOf, moment, object, oneOf, optional, text, type ValuesOf, whole } from "../shape.ts";

const DEFINITION = {
  workflow: text("What it starts."),
  cron: optional(text("Five or six fields, or a word such as @daily. Either this or `every`.")),
  every: optional(text('The time from one slot to the next: "15m".')),
  zone: optional(text("The time zone of `cron`.")),
  anchor: optional(moment("A moment that `every` counts from.")),
  input: optional(anything("The input of every run.")),
  overlap: optional(oneOf("What happens while the run before goes on.", ["allow", "skip", "queue", "cancel"])),
  misfire: optional(oneOf("What happens to slots that were missed.", ["fireOnce", "skip", "catchUp"])),
  tags: optional(listOf("Of every run.", text("A tag."), { max: 100 })),
  priority: optional(whole("Of every run.", -1_000_000_000, 1_000_000_000)),
  deadline: optional(text('How long each run may take: "2h".')),
  version: optional(text("Of the workflow. Default: the newest when the slot comes.")),
};

export const scheduleRoutes: readonly Route[] = [
  route(
    {
      method: "GET",
      path: "/api/schedules",
      role: "viewer",
      summary: "Lists schedules, by name.",
      answer: object("Schedules.", { schedules: listOf("By name.", SCHEDULE) }),
    },
    async ({ pawl }) => ({ schedules: await pawl.schedules() }),
  ),
  route(
    {
      method: "PUT",
      path: "/api/schedules/:name",
      role: "operator",
      summary: "Makes a schedule, or replaces it. The same definition again changes nothing.",
      body: DEFINITION,
      answer: DONE,
    },
    async ({ pawl, params: { name }, body: { workflow, ...rest } }) => {
      await pawl.schedule(name, workflow, optionsOf(rest));
      return { ok: true };
    },
  ),
  route(
    {
      method: "DELETE",
      path: "/api/schedules/:name",
      role: "operator",
      summary: "Ends a schedule. Runs that it has started go on.",
      answer: DONE,
    },
    async ({ pawl, params: { name } }) => found(name, await pawl.unschedule(name)),
  ),
  route(
    {
      method: "POST",
      path: "/api/schedules/:name/pause",
      role: "operator",
      summary: "Stops a schedule for a while: its slots start nothing.",
      answer: DONE,
    },
    async ({ pawl, params: { name } }) => found(name, await pawl.pauseSchedule(name)),
  ),
  route(
    {
      method: "POST",
      path: "/api/schedules/:name/resume",
      role: "operator",
      summary: "Goes on with the next slot of a paused schedule.",
      answer: DONE,
    },
    async ({ pawl, params: { name } }) => found(name, await pawl.resumeSchedule(name)),
  ),
];

function optionsOf({ anchor, ...rest }: Omit<ValuesOf<typeof DEFINITION>, "workflow">): ScheduleOptions {
  return { ...rest, ...(anchor !== undefined && { anchor: new Date(anchor) }) };
}

function found(name: string, isThere: boolean): { readonly ok: true } {
  if (isThere) return { ok: true };
  throw new PawlError("not_found", `There is no schedule "${name}" in this store. GET /api/schedules lists them.`, {
    fields: { schedule: name },
  });
}
