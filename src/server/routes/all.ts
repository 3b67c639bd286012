// The table of everything that the server answers. A file for each subject; this one joins them.
import type { Route } from "../route.ts";
import { auditRoutes } from "./audit.ts";
import { eventRoutes } from "./events.ts";
import { healthRoutes } from "./health.ts";
import { hookRoutes } from "./hooks.ts";
import { linkRoutes } from "./links.ts";
import { runsRoutes } from "./runs.ts";
import { sessionRoutes } from "./session.ts";

export const ALL_ROUTES: readonly Route[] = [
  ...healthRoutes,
  ...sessionRoutes,
  ...runsRoutes,
  ...linkRoutes,
  ...hookRoutes,
  ...eventRoutes,
  ...auditRoutes,
];
