// What answers look like: the values of the library as JSON has them.
import { RUN_STATES } from "../core/transition.ts";
import {
  amount,
  anything,
  flag,
  listOf,
  mapOf,
  moment,
  nullable,
  object,
  oneOf,
  optional,
  type Shape,
  text,
  whole,
} from "./shape.ts";

export const STATUSES = ["running", "waiting", "succeeded", "failed", "cancelled"] as const;

const SUMMARY_FIELDS = {
  id: text("The run's id."),
  workflow: text("The name of its workflow."),
  version: text("The version of its workflow."),
  status: oneOf("Where it stands, in public words.", STATUSES),
  state: oneOf("Where it stands, in the engine's words.", RUN_STATES),
  createdAt: moment("When it was started."),
  endedAt: nullable(moment("When it ended.")),
  key: nullable(text("The key that it was started with.")),
  tags: listOf("To find it by.", text("A tag.")),
  parent: nullable(text("The run that started it.")),
  stopReason: nullable(text("Why it ended.")),
};

export const RUN_SUMMARY: Shape = object("A line of a list of runs.", SUMMARY_FIELDS, { open: true });

export const RUN_PAGE: Shape = object("A page of runs.", {
  runs: listOf("Newest first.", RUN_SUMMARY),
  cursor: nullable(text("For the next page; null at the end.")),
});

const WAIT = object(
  "What it waits for.",
  {
    kind: text("timer, signal, approval, child …"),
    key: text("The key of the call."),
    name: { schema: { type: "string" }, isOptional: false },
    due: nullable(moment("Until when.")),
  },
  { open: true },
);

export const RUN_STATUS: Shape = object(
  "Everything about a run but its journal.",
  {
    ...SUMMARY_FIELDS,
    input: optional(anything("What it was started with.")),
    waits: listOf("What it waits for.", WAIT),
    parked: optional(
      object(
        "Why it waits for a person, and what that person may choose.",
        {
          reason: text("A word."),
          message: text("A sentence.", { max: 100_000 }),
          choices: listOf("One of these.", text("A choice.")),
        },
        { open: true },
      ),
    ),
    output: optional(anything("What it returned.")),
    error: optional(anything("What ended it.")),
    progress: optional(anything("What it last said about its progress.")),
    cost: optional(mapOf("What it has spent.", amount("In this unit."))),
    budget: optional(anything("How the nearest budget stands.")),
    data: mapOf("What it has made readable.", anything("A value.")),
    traceId: text("Of its trace."),
    deadline: nullable(moment("When it fails if it has not ended.")),
    owner: nullable(text("The worker that has it.")),
    origin: nullable(text("The run it was retried or forked from.")),
  },
  { open: true },
);

export const OK: Shape = object("It is there.", { ok: flag("Always true.") });

export const STARTED: Shape = object("A run that was started.", { id: text("Its id.") });

export const DONE: Shape = object("It is recorded.", { ok: flag("Always true.") });

export const ENTRY: Shape = object("A journal entry.", {
  seq: whole("Its position, from 0.", 0),
  at: whole("When it was written, in milliseconds since 1970.", 0),
  type: text("What it records: step.completed …"),
  key: nullable({ schema: { type: "string" }, isOptional: false }),
  payload: optional(anything("What belongs to it.")),
});
