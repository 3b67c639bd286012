// What there is to know about one run.
import { exportRun } from "../../client/export.ts";
import { wayFacts, wayOf, wayTaken } from "../../client/run-way.ts";
import { timeline } from "../../client/timeline.ts";
import { why } from "../../client/why.ts";
import type { Graph } from "../../core/graph.ts";
import { EFFECTS, ENTRY, EXPORT, GRAPH, OBJECT, TIMELINE, WHY } from "../answers.ts";
import { type Route, route, type SignedCall } from "../route.ts";
import { flag, listOf, nullable, object, optional, whole } from "../shape.ts";

const PAGE = 200;
const PAGE_MAX = 2000;

export const runViewRoutes: readonly Route[] = [
  route(
    {
      method: "GET",
      path: "/api/runs/:id/timeline",
      role: "viewer",
      summary: "Which steps ran, how often and for how long, what it waits for, and which children it has.",
      answer: TIMELINE,
    },
    async ({ pawl, params: { id } }) => timeline(await pawl.get(id).journal()),
  ),
  route(
    {
      method: "GET",
      path: "/api/runs/:id/journal",
      role: "viewer",
      summary: "A page of its journal, oldest first.",
      query: {
        from: optional(whole("The first position.", 0)),
        limit: optional(whole("How many on a page.", 1, PAGE_MAX)),
      },
      answer: object("A page of a journal.", {
        entries: listOf("In the order of their positions.", ENTRY),
        next: nullable(whole("Where the next page begins; null if nothing follows yet.", 0)),
      }),
    },
    async ({ pawl, params: { id }, query: { from = 0, limit = PAGE } }) => {
      const found = await pawl.get(id).journal({ from, limit: limit + 1 });
      return { entries: found.slice(0, limit), next: found[limit]?.seq ?? null };
    },
  ),
  route(
    {
      method: "GET",
      path: "/api/runs/:id/effects",
      role: "viewer",
      summary: "What it has done outside, and what became of it.",
      answer: EFFECTS,
    },
    ({ pawl, params: { id } }) => pawl.get(id).effects(),
  ),
  route(
    {
      method: "GET",
      path: "/api/runs/:id/document",
      role: "viewer",
      summary: "Its state document: phases, steps and statuses.",
      answer: OBJECT,
    },
    ({ pawl, params: { id } }) => pawl.get(id).document(),
  ),
  route(
    {
      method: "GET",
      path: "/api/runs/:id/why",
      role: "viewer",
      summary: "Where it stands, in plain words, and what to do.",
      answer: WHY,
    },
    ({ pawl, params: { id } }) => why(pawl, id),
  ),
  route(
    {
      method: "GET",
      path: "/api/runs/:id/graph",
      role: "viewer",
      summary: "The graph of its workflow and its way through it; of a plain function, what it has done.",
      answer: GRAPH,
    },
    async (call) => {
      const { pawl, params } = call;
      const run = pawl.get(params.id);
      const [{ workflow, version }, entries] = await Promise.all([run.status(), run.journal()]);
      const graph = graphOf(call, workflow, version);
      if (graph !== null) return { graph, way: wayFacts(wayOf(graph, entries)) };
      const taken = wayTaken(entries);
      return { graph: taken.graph, way: wayFacts(taken.way) };
    },
  ),
  route(
    {
      method: "GET",
      path: "/api/runs/:id/export",
      role: "viewer",
      summary: "The run with its journal as one portable file, as an attachment.",
      query: { redact: optional(flag("Leave all values out.")) },
      answer: EXPORT,
    },
    async ({ pawl, params: { id }, query: { redact } }) => {
      const exported = await exportRun(pawl, id, redact === true ? { redact: "all" } : {});
      // An id may hold marks that mean something in a header.
      const name = encodeURIComponent(`${id}.json`).replaceAll("'", "%27");
      return Response.json(exported, {
        headers: { "content-disposition": `attachment; filename="run.json"; filename*=UTF-8''${name}` },
      });
    },
  ),
];

/** The graph of a workflow whose code this server has, of that very version or else of the newest. */
function graphOf({ server }: SignedCall, name: string, version: string): Graph | null {
  const known = server.workflows.filter((one) => one.name === name);
  const found = known.find((one) => one.version === version) ?? known.at(-1);
  return found?.definition.graph ?? null;
}
