import { type Route, route } from "../route.ts";
import { anything, listOf, object, optional, text } from "../shape.ts";

export const eventRoutes: readonly Route[] = [
  route(
    {
      method: "POST",
      path: "/api/events",
      role: "operator",
      summary: "Starts a run of each workflow that has a trigger for this event. The same event again starts nothing.",
      body: {
        type: text("What has happened."),
        id: text("Unique among the events of its sender."),
        data: optional(anything("What is known about it.")),
      },
      answer: object("The runs of this event.", { runs: listOf("Their ids.", text("A run.")) }),
    },
    async ({ pawl, body }) => ({ runs: (await pawl.emit(body)).runs.map(({ run }) => run) }),
  ),
];
