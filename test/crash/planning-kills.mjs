// Makes "planning" a point where an engine's process can be killed; it has no workflows.
import { reach } from "./kill-point.mjs";
import { watchPlanning } from "./planning-points.mjs";

watchPlanning(() => reach("planning"));
