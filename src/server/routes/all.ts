// The table of everything that the server answers. A file for each subject; this one joins them. Where two paths fit, the first counts.
import type { Route } from "../route.ts";
import { actionRoutes } from "./actions.ts";
import { alertRoutes } from "./alerts.ts";
import { approvalRoutes } from "./approvals.ts";
import { auditRoutes } from "./audit.ts";
import { diffRoutes } from "./diff.ts";
import { documentRoutes } from "./document.ts";
import { eventRoutes } from "./events.ts";
import { fleetRoutes } from "./fleet.ts";
import { healthRoutes } from "./health.ts";
import { hookRoutes } from "./hooks.ts";
import { linkPages, linkRoutes } from "./links.ts";
import { liveRoutes } from "./live.ts";
import { metricsRoutes } from "./metrics.ts";
import { runViewRoutes } from "./run-views.ts";
import { runsRoutes } from "./runs.ts";
import { scheduleRoutes } from "./schedules.ts";
import { sessionRoutes } from "./session.ts";

export const ALL_ROUTES: readonly Route[] = [
  ...healthRoutes,
  ...documentRoutes,
  ...sessionRoutes,
  ...runsRoutes,
  ...runViewRoutes,
  ...diffRoutes,
  ...actionRoutes,
  ...liveRoutes,
  ...linkRoutes,
  ...approvalRoutes,
  ...fleetRoutes,
  ...scheduleRoutes,
  ...hookRoutes,
  ...eventRoutes,
  ...auditRoutes,
  ...alertRoutes,
  ...metricsRoutes,
];

/** What the server shows besides the API and the dashboard. */
export const PAGES: readonly Route[] = linkPages;
