import { OBJECT } from "../answers.ts";
import { apiDocument } from "../openapi.ts";
import { type Route, route } from "../route.ts";

export const documentRoutes: readonly Route[] = [
  route(
    {
      method: "GET",
      path: "/api/openapi.json",
      role: "viewer",
      summary: "This document.",
      answer: OBJECT,
    },
    ({ server }) => apiDocument(server.routes, server.version),
  ),
];
