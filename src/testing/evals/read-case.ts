// Reading a case
// Checks a value against the published schema. An error names the path and what would be allowed there; nothing is guessed.
import { messageOf, PawlError } from "../../base/errors.ts";
import { EVAL_CASE_SCHEMA, EVENTS, type JsonSchema } from "./case-schema.ts";

interface ToolEvent {
  readonly tool: string;
  /** How many calls it answers. Default 1. */
  readonly times?: number;
}

interface DecisionEvent {
  readonly approval_id?: string;
  readonly by?: string;
  readonly roles?: readonly string[];
  readonly reason?: string;
}

/** Something that happens to a run. */
export type EvalEvent =
  | ({ readonly type: "tool_success"; readonly output?: unknown } & ToolEvent)
  | ({
      readonly type: "tool_failure";
      readonly retryable?: boolean;
      readonly kind?: "retryable" | "fatal";
      readonly error?: string | { readonly message?: string; readonly name?: string; readonly code?: string };
    } & ToolEvent)
  | ({ readonly type: "approval_granted" | "approval_denied" } & DecisionEvent)
  | { readonly type: "approval_timeout"; readonly approval_id?: string; readonly until?: "escalated" | "expired" }
  | { readonly type: "signal"; readonly name: string; readonly payload?: unknown; readonly id?: string }
  | { readonly type: "duplicate_event"; readonly of?: "start" | "previous" }
  | { readonly type: "crash"; readonly tool?: string }
  | { readonly type: "deploy"; readonly version?: string }
  | { readonly type: "cancel"; readonly reason?: string; readonly compensate?: boolean }
  | { readonly type: "resolve"; readonly choice: string; readonly value?: unknown; readonly step?: string }
  | { readonly type: "time_passes"; readonly time: string | number };

/** What a run must not end as: what is not named may be anything. */
export interface BadEnd {
  readonly status: string;
  readonly stop_reason?: string;
  readonly error?: string;
  readonly output?: unknown;
}

/** What must come of it. */
export interface EvalExpectations {
  readonly final_status?: string | readonly string[];
  readonly stop_reason?: string;
  readonly output?: unknown;
  readonly effects?: Readonly<Record<string, string>>;
  readonly must_not?: readonly string[];
  readonly must_not_end_as?: BadEnd;
  readonly requires_checkpoint?: readonly string[];
  readonly required_trace_events?: readonly string[];
  /** The run can be exported, and the code reproduces it. */
  readonly replays?: boolean;
  readonly [mustNot: `must_not_${string}`]: unknown;
}

/** One eval case, as its file has it. */
export interface EvalCase {
  readonly $schema?: string;
  readonly case_id: string;
  readonly description?: string;
  readonly workflow?: string;
  readonly input?: unknown;
  /** The step with which the events begin. Whatever comes before it has its usual answers. */
  readonly initial_step?: string;
  readonly events: readonly EvalEvent[];
  readonly expected: EvalExpectations;
  readonly map?: {
    readonly tools?: Readonly<Record<string, string>>;
    readonly steps?: Readonly<Record<string, string>>;
    readonly approvals?: Readonly<Record<string, string>>;
    readonly flags?: Readonly<Record<string, readonly string[]>>;
  };
  /** What the run no longer asks for is no fault: for cases that were made from runs. */
  readonly events_may_be_left?: boolean;
  readonly tools?: Readonly<Record<string, unknown>>;
  readonly owner?: string;
  readonly status?: "draft" | "active" | "retired";
  readonly expires?: string;
  readonly source?: Readonly<Record<string, unknown>>;
}

/** Checks that a value is an eval case; names the first place that is not what it must be. */
export function readEvalCase(value: unknown): EvalCase {
  check(EVAL_CASE_SCHEMA, value, "");
  const { events } = value as EvalCase;
  for (const [index, event] of events.entries()) checkEvent(event, events, index);
  return value as EvalCase;
}

/** The text of a file as a case. */
export function parseEvalCase(text: string): EvalCase {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw invalid("", `is no JSON (${messageOf(cause)})`, "a JSON object with case_id, events and expected");
  }
  return readEvalCase(value);
}

function checkEvent(event: EvalEvent, events: readonly EvalEvent[], index: number): void {
  const path = `events[${index}]`;
  if (event.type === "tool_failure" && event.kind !== undefined && event.retryable !== undefined)
    throw invalid(`${path}.retryable`, "is given together with kind", "one of them");
  if (event.type === "duplicate_event" && event.of !== "start" && !isRepeatable(events[index - 1]))
    throw invalid(
      path,
      "repeats nothing",
      'of: "start", or a signal, an approval_granted or an approval_denied right before it',
    );
}

function isRepeatable(event: EvalEvent | undefined): boolean {
  return event?.type === "signal" || event?.type === "approval_granted" || event?.type === "approval_denied";
}

function check(schema: JsonSchema, value: unknown, path: string): void {
  if (schema.anyOf !== undefined) return checkAny(schema, schema.anyOf, value, path);
  if ("const" in schema && value !== schema.const) throw invalid(path, shown(value), JSON.stringify(schema.const));
  if (schema.enum !== undefined && !schema.enum.includes(value)) throw invalid(path, shown(value), listOf(schema.enum));
  if (schema.type !== undefined && !isOf(schema.type, value))
    throw invalid(path, shown(value), `${article(schema.type)}`);
  if (typeof value === "string" && schema.pattern !== undefined && !new RegExp(schema.pattern).test(value))
    throw invalid(
      path,
      shown(value),
      schema.pattern === "\\S" ? "a text that is not empty" : `a text that fits ${schema.pattern}`,
    );
  if (typeof value === "number" && schema.minimum !== undefined && value < schema.minimum)
    throw invalid(path, shown(value), `at least ${schema.minimum}`);
  if (Array.isArray(value)) checkItems(schema, value, path);
  else if (schema.type === "object") checkProperties(schema, value as Record<string, unknown>, path);
}

function checkItems(schema: JsonSchema, items: readonly unknown[], path: string): void {
  if (items.length < (schema.minItems ?? 0)) throw invalid(path, "is empty", `at least ${schema.minItems} item`);
  for (const [index, item] of items.entries())
    if (schema.items !== undefined) check(schema.items, item, `${path}[${index}]`);
}

function checkProperties(schema: JsonSchema, value: Record<string, unknown>, path: string): void {
  const at = (name: string) => (path === "" ? name : `${path}.${name}`);
  for (const name of schema.required ?? [])
    if (!(name in value)) throw invalid(at(name), "is missing", "a value for it");
  for (const [name, inner] of Object.entries(value)) {
    const fitting = Object.entries(schema.patternProperties ?? {}).find(([pattern]) =>
      new RegExp(pattern).test(name),
    )?.[1];
    const own = Object.hasOwn(schema.properties ?? {}, name) ? schema.properties?.[name] : fitting;
    if (own !== undefined) check(own, inner, at(name));
    else if (typeof schema.additionalProperties === "object") check(schema.additionalProperties, inner, at(name));
    else if (schema.additionalProperties === false) throw invalid(at(name), "is not known", listOf(namesIn(schema)));
  }
}

function namesIn({ properties = {}, patternProperties = {} }: JsonSchema): string[] {
  return [...Object.keys(properties), ...Object.keys(patternProperties).map((pattern) => `${pattern.slice(1)}…`)];
}

/** Of alternatives that tell each other apart by their type, the one that is meant says what is wrong. */
function checkAny(schema: JsonSchema, any: readonly JsonSchema[], value: unknown, path: string): void {
  const isEvent = any.every((one) => one.properties?.["type"]?.const !== undefined);
  if (!isEvent) {
    if (any.some((one) => isValid(one, value))) return;
    throw invalid(
      path,
      shown(value),
      schema.description ?? any.map((one) => article(one.type ?? "value")).join(" or "),
    );
  }
  if (!isOf("object", value)) throw invalid(path, shown(value), "an object with a type");
  const type = (value as { readonly type?: unknown }).type;
  const meant = typeof type === "string" && Object.hasOwn(EVENTS, type) ? EVENTS[type] : undefined;
  if (meant === undefined) throw invalid(`${path}.type`, shown(type), listOf(Object.keys(EVENTS)));
  check(meant, value, path);
}

function isValid(schema: JsonSchema, value: unknown): boolean {
  try {
    check(schema, value, "");
    return true;
  } catch {
    return false;
  }
}

function isOf(type: NonNullable<JsonSchema["type"]>, value: unknown): boolean {
  if (type === "array") return Array.isArray(value);
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  return typeof value === type;
}

function article(type: string): string {
  return /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`;
}

function shown(value: unknown): string {
  if (value === undefined) return "is missing";
  const text = JSON.stringify(value);
  return `is ${text.length > 60 ? `${text.slice(0, 60)}…` : text}`;
}

function listOf(values: readonly unknown[]): string {
  return `one of ${values.map(String).join(", ")}`;
}

function invalid(path: string, problem: string, allowed: string): PawlError {
  const where = path === "" ? "The case" : path;
  return new PawlError("invalid_argument", `${where} ${problem}. Give ${allowed}.`, {
    fields: { field: path, allowed },
  });
}
