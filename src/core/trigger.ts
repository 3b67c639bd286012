// Triggers
// Which events start a run of a workflow. Plain data, so that a worker can tell it to others who only have the store.
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import { isPlainRecord } from "./stable-digest.ts";

/** Something that has happened outside. The same id is the same event. */
export interface PawlEvent {
  /** What has happened, such as "order.paid". */
  readonly type: string;
  /** Unique among the events of its sender: a second one with it starts nothing. */
  readonly id: string;
  /** What is known about it. */
  readonly data?: unknown;
}

type Plain = string | number | boolean | null;

/** All that is named must hold. */
export interface Condition {
  readonly eq?: Plain;
  /** One of these. */
  readonly in?: readonly Plain[];
  /** Whether the field is there, whatever it holds. */
  readonly exists?: boolean;
  readonly gt?: number;
  readonly gte?: number;
  readonly lt?: number;
  readonly lte?: number;
}

/** By the path of a field in the event's data, such as "customer.country": the value itself, or a condition. */
export type EventFilter = Readonly<Record<string, Plain | Condition>>;

export interface Trigger {
  /** The type of event that starts a run. */
  readonly event: string;
  /** Only events whose data has these fields. All must hold. */
  readonly where?: EventFilter;
  /** What the run gets: the event's data, or the whole event with its type and id. */
  readonly input?: "data" | "event";
}

/** Whether an event starts a run. */
export function fires({ event, where = {} }: Trigger, { type, data }: PawlEvent): boolean {
  return event === type && Object.entries(where).every(([path, wanted]) => holds(fieldAt(data, path), wanted));
}

/** What a run that it starts is given. */
export function inputFor({ input = "data" }: Trigger, { type, id, data }: PawlEvent): unknown {
  return input === "data" ? data : { type, id, data };
}

interface Field {
  readonly value: unknown;
}

/** Own properties only: nobody asks for what every object inherits (Q9). */
function fieldAt(data: unknown, path: string): Field | null {
  let value = data;
  for (const part of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return null;
    value = (value as Record<string, unknown>)[part];
  }
  return { value };
}

function holds(field: Field | null, wanted: Plain | Condition): boolean {
  if (!isPlainRecord(wanted)) return field !== null && field.value === wanted;
  return CHECKS.every(([name, check]) => !(name in wanted) || check(field, wanted[name]));
}

const compared =
  (isSo: (value: number, limit: number) => boolean): Check =>
  (field, limit) =>
    typeof field?.value === "number" && isSo(field.value, limit as number);

type Check = (field: Field | null, wanted: unknown) => boolean;

const CHECKS: readonly (readonly [keyof Condition, Check])[] = [
  ["eq", (field, wanted) => field !== null && field.value === wanted],
  ["in", (field, wanted) => field !== null && (wanted as readonly unknown[]).includes(field.value)],
  ["exists", (field, wanted) => (field !== null) === wanted],
  ["gt", compared((value, limit) => value > limit)],
  ["gte", compared((value, limit) => value >= limit)],
  ["lt", compared((value, limit) => value < limit)],
  ["lte", compared((value, limit) => value <= limit)],
];

/** Triggers as they were declared, checked: a filter with a mistake would start nothing, and nobody would know why. */
export function triggersOf(given: Trigger | readonly Trigger[] | undefined, where: string): readonly Trigger[] {
  if (given === undefined) return [];
  const triggers = Array.isArray(given) ? (given as readonly Trigger[]) : [given as Trigger];
  for (const trigger of triggers) assertTrigger(trigger, where);
  return triggers;
}

function assertTrigger(trigger: Trigger, where: string): void {
  if (!isPlainRecord(trigger)) throw invalid(where, "a trigger", 'Give { event: "order.paid" }');
  assertName(`event of a trigger of ${where}`, trigger.event);
  if (trigger.input !== undefined && trigger.input !== "data" && trigger.input !== "event")
    throw invalid(where, "`input` of a trigger", 'Give "data" or "event"');
  const filter = trigger.where ?? {};
  if (!isPlainRecord(filter)) throw invalid(where, "`where` of a trigger", "Give { field: value }");
  for (const [path, wanted] of Object.entries(filter)) assertCondition(where, path, wanted);
}

function assertCondition(where: string, path: string, wanted: unknown): void {
  if (path === "" || path.split(".").includes(""))
    throw invalid(where, `The field "${path}"`, 'Write its path, such as "customer.country"');
  if (isPlain(wanted)) return;
  if (!isPlainRecord(wanted) || Object.keys(wanted).length === 0)
    throw invalid(where, `\`where\` for "${path}"`, "Give a text, a number, true, false, null or a condition");
  for (const [name, value] of Object.entries(wanted))
    if (!isCondition(name, value))
      throw invalid(where, `"${name}" for "${path}"`, `Give one of: ${CHECKS.map(([known]) => known).join(", ")}`);
}

function isCondition(name: string, value: unknown): boolean {
  if (name === "eq") return isPlain(value);
  if (name === "in") return Array.isArray(value) && value.every(isPlain);
  if (name === "exists") return typeof value === "boolean";
  return CHECKS.some(([known]) => known === name) && typeof value === "number" && !Number.isNaN(value);
}

function isPlain(value: unknown): value is Plain {
  return value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);
}

function invalid(where: string, what: string, action: string): PawlError {
  return new PawlError("invalid_argument", `${what} of ${where} cannot be used. ${action}.`, {
    fields: { field: "on", where },
  });
}
