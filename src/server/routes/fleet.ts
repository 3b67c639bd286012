// Workers, what stands in line for them, and what they can run.
import { examineRuns } from "../../client/doctor.ts";
import { examineQueues } from "../../client/queues.ts";
import { workerFacts } from "../../client/worker-health.ts";
import { WORKERS } from "../answers.ts";
import { type Route, route } from "../route.ts";
import { flag, listOf, mapOf, moment, nullable, object, oneOf, text, whole } from "../shape.ts";
import { workflowsOf } from "../workflow-list.ts";

/** Runs that are looked at for versions that nobody has: `pawl doctor` looks at all of them. */
const MOST_RUNS = 1000;

export const fleetRoutes: readonly Route[] = [
  route(
    {
      method: "GET",
      path: "/api/workers",
      role: "viewer",
      summary: "Lists workers: what they can run, how many runs they have, how they are.",
      answer: WORKERS,
    },
    async ({ pawl }) => {
      const workers = await pawl.workers();
      const { stranded, isComplete } = await examineRuns(pawl.store, workers, MOST_RUNS);
      return { workers: workers.map(workerFacts), stranded, isComplete };
    },
  ),
  route(
    {
      method: "GET",
      path: "/api/queues",
      role: "viewer",
      summary: "Lists what stands in line: for a worker, a slot or a rate.",
      answer: object("Lines of runs.", {
        queues: listOf(
          "Those that have runs in them.",
          object("A line.", {
            kind: oneOf("What its runs need.", ["workflow", "slot", "rate"]),
            name: text("The workflow, and behind a slash the key."),
            limit: nullable(whole("How many may be under way, or begin in perMs.", 0)),
            perMs: nullable(whole("The span of a rate.", 0)),
            running: whole("Runs that a worker has.", 0),
            waiting: whole("Runs that stand in line.", 0),
            since: nullable(moment("Since when the first of them could go on.")),
          }),
        ),
        isComplete: flag("Whether all unfinished runs were looked at."),
      }),
    },
    ({ pawl }) => examineQueues(pawl.store),
  ),
  route(
    {
      method: "GET",
      path: "/api/workflows",
      role: "viewer",
      summary: "Lists workflows: their versions, who answers for them, and which workers have them.",
      answer: object("Workflows.", {
        workflows: listOf(
          "By name.",
          object("A workflow.", {
            name: text("Its name."),
            owners: nullable(object("Who has to see to its runs.", {}, { open: true })),
            versions: listOf(
              "Those that are known.",
              object("A version.", {
                version: text("The version."),
                workers: listOf("Workers that have it.", text("An id.")),
              }),
            ),
            counts: mapOf("Its runs, by status.", whole("How many.", 0)),
            atLeast: flag("Some are more: counting ended at its bound."),
          }),
        ),
      }),
    },
    async ({ pawl, server }) => ({ workflows: await workflowsOf(pawl, server.workflows) }),
  ),
];
