// The table of everything that the server answers. A file for each subject; this one joins them.
import type { Route } from "../route.ts";
import { healthRoutes } from "./health.ts";
import { runsRoutes } from "./runs.ts";
import { sessionRoutes } from "./session.ts";

export const ALL_ROUTES: readonly Route[] = [...healthRoutes, ...sessionRoutes, ...runsRoutes];
