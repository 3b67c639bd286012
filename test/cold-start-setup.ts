import { watchEngines } from "./cold-start.ts";

watchEngines();
