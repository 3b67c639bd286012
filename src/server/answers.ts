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
  responsible: optional(text("Who has to see to it.")),
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
    hold: optional(object("Who keeps it from retention, and why.", {}, { open: true })),
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

export const OBJECT: Shape = object("An object.", {}, { open: true });

const ITEM = {
  seq: whole("Position of the entry that began it.", 0),
  key: text("Its key."),
  name: text("The key without its counter."),
  startedAt: whole("In milliseconds since 1970.", 0),
  endedAt: nullable(whole("In milliseconds since 1970.", 0)),
  status: text("Where it stands."),
};

export const TIMELINE: Shape = object(
  "A run as what happened in it.",
  {
    workflow: nullable(text("The name of its workflow.")),
    version: nullable(text("Its version.")),
    status: oneOf("How it ended, if it has.", ["unfinished", "succeeded", "failed", "cancelled"]),
    steps: listOf(
      "Its steps.",
      object("A step.", { ...ITEM, attempts: listOf("Its attempts.", OBJECT) }, { open: true }),
    ),
    waits: listOf("What it waited for.", object("A wait.", ITEM, { open: true })),
    children: listOf("Runs that it started.", object("A child.", { ...ITEM, child: text("Its id.") }, { open: true })),
    notes: listOf("What happened to the run itself.", OBJECT),
    entries: whole("How many entries its journal has.", 0),
  },
  { open: true },
);

export const EFFECTS: Shape = listOf(
  "In the order in which they were planned.",
  object(
    "An effect.",
    {
      effect: text("The key of its step."),
      status: text("planned, executed, compensated, unknown, failed …"),
      class: text("What kind of action it is."),
      key: { schema: { type: "string" }, isOptional: false },
      attempts: whole("How often it was tried.", 0),
      plannedAt: moment("When it was planned."),
    },
    { open: true },
  ),
);

const LINES = listOf("Sentences.", text("A sentence.", { max: 100_000 }));

export const WHY: Shape = object(
  "Where a run stands.",
  {
    run: text("The run."),
    status: oneOf("Where it stands.", STATUSES),
    summary: text("One sentence.", { max: 100_000 }),
    past: LINES,
    present: LINES,
    next: LINES,
    isStranded: flag("No live worker can take it."),
    text: listOf("All of it, line by line.", { schema: { type: "string" }, isOptional: false }),
  },
  { open: true },
);

export const GRAPH: Shape = object("A graph and a way through it.", {
  graph: object(
    "What may follow what.",
    { nodes: listOf("Nodes.", OBJECT), edges: listOf("Edges.", OBJECT) },
    { open: true },
  ),
  way: object("Where the run has come by.", {
    nodes: mapOf("By the id of a node.", text("done, current, failed, skipped or undone")),
    edges: listOf("From and to.", listOf("Two ids.", text("An id."))),
  }),
});

export const EXPORT: Shape = object(
  "A recorded run.",
  { format: text("pawl-run"), run: OBJECT, entries: listOf("Its journal.", OBJECT) },
  { open: true },
);

export const APPROVAL: Shape = object(
  "An approval and where it stands.",
  {
    id: text("Its id."),
    name: text("Its name."),
    run: text("The run that asks."),
    workflow: text("Its workflow."),
    status: oneOf("Where it stands.", ["open", "decided", "closed"]),
    hash: text("Of the action: who decides says which one they saw."),
    action: anything("Exactly what is asked for."),
    approvers: listOf("Who may decide now.", text("A name, or role:name.")),
    since: moment("Since when."),
    due: moment("Until when people may decide."),
    votes: listOf("Votes so far.", OBJECT),
    decision: nullable(OBJECT),
  },
  { open: true },
);

export const APPROVAL_PAGE: Shape = object("A page of approvals.", {
  approvals: listOf("Those of the oldest runs first.", APPROVAL),
  cursor: nullable(text("For the next page; null at the end.")),
});

export const RECEIPT: Shape = object("A decision that was recorded.", {
  approval: text("The approval."),
  run: text("Its run."),
  decision: text("What was decided."),
  missing: whole("How many more people must approve.", 0),
});

export const SCHEDULE: Shape = object(
  "A schedule as it is now.",
  {
    name: text("Its name."),
    workflow: text("What it starts."),
    paused: flag("Its slots start nothing."),
    next: nullable(moment("The next slot.")),
    lastSlot: nullable(moment("The last slot that started a run.")),
    lastRun: nullable(text("That run.")),
  },
  { open: true },
);

export const WORKERS: Shape = object("The workers of a store, and runs that none of them can take.", {
  workers: listOf(
    "Workers.",
    object("A worker.", {
      id: text("Of this incarnation."),
      name: text("For people."),
      pid: whole("Its process.", 0),
      startedAt: moment("When it began."),
      health: oneOf("How it is.", ["live", "late", "expired", "dead", "stopped"]),
      leaseLeftMs: amount("How long its lease runs."),
      leaseMs: amount("How long a lease is."),
      runs: whole("How many runs it has.", 0),
      workflows: listOf("What it can run.", object("A workflow.", { name: text("Name."), version: text("Version.") })),
    }),
  ),
  stranded: listOf("By workflow and version.", OBJECT),
  isComplete: flag("Whether all unfinished runs were looked at."),
});
