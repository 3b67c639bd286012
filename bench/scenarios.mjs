import { manyRuns } from "./scenarios/many-runs.mjs";
import { oneLongRun } from "./scenarios/one-long-run.mjs";
import { restart } from "./scenarios/restart.mjs";
import { resume } from "./scenarios/resume.mjs";
import { sleeping } from "./scenarios/sleeping.mjs";
import { startLatency } from "./scenarios/start-latency.mjs";

export const SCENARIOS = {
  "many-runs": manyRuns,
  "one-long-run": oneLongRun,
  "start-latency": startLatency,
  restart,
  resume,
  sleeping,
};
