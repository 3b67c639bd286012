// The published schema of eval cases. The loader reads cases by it, so that what is published is what holds.
import { CASE_STATUSES } from "./final-status.ts";
import { TRACE_WORDS } from "./trace-words.ts";

/** As much of JSON schema as the format of cases needs. */
export interface JsonSchema {
  readonly $schema?: string;
  readonly $id?: string;
  readonly title?: string;
  readonly description?: string;
  readonly type?: "object" | "array" | "string" | "number" | "integer" | "boolean";
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly minItems?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
}

const text: JsonSchema = { type: "string", pattern: "\\S" };
const anything: JsonSchema = {};
const texts: JsonSchema = { type: "array", items: text };
const flag: JsonSchema = { type: "boolean" };
const duration: JsonSchema = {
  anyOf: [
    { type: "string", pattern: "^\\s*\\d" },
    { type: "number", minimum: 0 },
  ],
  description: 'milliseconds, or a text such as "36h"',
};

function event(type: string, properties: Readonly<Record<string, JsonSchema>>, ...required: string[]): JsonSchema {
  return {
    type: "object",
    properties: { type: { const: type }, ...properties },
    required: ["type", ...required],
    additionalProperties: false,
  };
}

const decision = { approval_id: text, by: text, roles: texts, reason: text };

/** What can happen to a run, by the type of the event. */
export const EVENTS: Readonly<Record<string, JsonSchema>> = {
  tool_success: event("tool_success", { tool: text, output: anything, times: { type: "integer", minimum: 1 } }, "tool"),
  tool_failure: event(
    "tool_failure",
    {
      tool: text,
      retryable: flag,
      kind: { enum: ["retryable", "fatal"] },
      error: { anyOf: [text, { type: "object", properties: { message: text, name: text, code: text } }] },
      times: { type: "integer", minimum: 1 },
    },
    "tool",
  ),
  approval_granted: event("approval_granted", decision),
  approval_denied: event("approval_denied", decision),
  approval_timeout: event("approval_timeout", { approval_id: text, until: { enum: ["escalated", "expired"] } }),
  signal: event("signal", { name: text, payload: anything, id: text }, "name"),
  duplicate_event: event("duplicate_event", { of: { enum: ["start", "previous"] } }),
  crash: event("crash", { tool: text }),
  deploy: event("deploy", { version: { type: "string", pattern: "^\\d+\\.\\d+\\.\\d+" } }),
  cancel: event("cancel", { reason: text, compensate: flag }),
  resolve: event("resolve", { choice: text, value: anything, step: text }, "choice"),
  time_passes: event("time_passes", { time: duration }, "time"),
};

const STATUS_PATTERN = `^(${CASE_STATUSES.join("|")})(_or_(${CASE_STATUSES.join("|")}))*$`;
const status: JsonSchema = {
  anyOf: [
    { type: "string", pattern: STATUS_PATTERN },
    { type: "array", minItems: 1, items: { enum: CASE_STATUSES } },
  ],
  description: `one of ${CASE_STATUSES.join(", ")}; several are joined by _or_, or a list`,
};

const expected: JsonSchema = {
  type: "object",
  properties: {
    final_status: status,
    stop_reason: text,
    output: anything,
    effects: {
      type: "object",
      additionalProperties: { enum: ["planned", "executed", "compensated", "unknown", "failed", "absent"] },
    },
    must_not: texts,
    must_not_end_as: {
      type: "object",
      properties: { status: { enum: CASE_STATUSES }, stop_reason: text, error: text, output: anything },
      required: ["status"],
      additionalProperties: false,
    },
    requires_checkpoint: texts,
    required_trace_events: { type: "array", items: { enum: Object.keys(TRACE_WORDS) } },
    replays: flag,
  },
  patternProperties: { "^must_not_": flag },
  additionalProperties: false,
};

const mapping: JsonSchema = {
  type: "object",
  description: "what the case calls things, and what the workflow calls them",
  properties: {
    tools: { type: "object", additionalProperties: text },
    steps: { type: "object", additionalProperties: text },
    approvals: { type: "object", additionalProperties: text },
    flags: { type: "object", additionalProperties: texts },
  },
  additionalProperties: false,
};

export const EVAL_CASE_SCHEMA: JsonSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "Pawl eval case",
  description: "A workflow, what happens to it, and what must come of it.",
  type: "object",
  properties: {
    $schema: text,
    case_id: text,
    description: text,
    workflow: text,
    input: anything,
    initial_step: text,
    events: {
      type: "array",
      items: { anyOf: Object.values(EVENTS) },
    },
    expected,
    map: mapping,
    events_may_be_left: {
      type: "boolean",
      description: "what the run no longer asks for is no fault: for cases made from runs",
    },
    tools: { type: "object", description: "what tools answer that no event speaks of", additionalProperties: anything },
    owner: text,
    status: { enum: ["draft", "active", "retired"] },
    expires: { type: "string", pattern: "^\\d{4}-\\d{2}-\\d{2}" },
    source: { type: "object", description: "where the case comes from" },
  },
  required: ["case_id", "events", "expected"],
  additionalProperties: false,
};
