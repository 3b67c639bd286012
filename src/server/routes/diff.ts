import { diffRuns } from "../../client/diff.ts";
import { OBJECT } from "../answers.ts";
import { type Route, route } from "../route.ts";
import { flag, listOf, nullable, object } from "../shape.ts";

export const diffRoutes: readonly Route[] = [
  route(
    {
      method: "GET",
      path: "/api/runs/:id/diff/:other",
      role: "viewer",
      summary: "Two runs side by side: their calls, the first difference, effects, cost, times and outcome.",
      answer: object("Two runs, and where they differ.", {
        a: OBJECT,
        b: OBJECT,
        isSame: flag("Both came to the same."),
        rows: listOf("Their calls, in the order in which either came to them.", OBJECT),
        first: nullable(OBJECT),
        effects: listOf("What the ledgers do not agree on.", OBJECT),
        sameInput: flag("Both were given the same."),
        sameOutcome: flag("Both ended in the same way, with the same."),
      }),
    },
    ({ pawl, params: { id, other } }) => diffRuns(pawl, id, other),
  ),
];
