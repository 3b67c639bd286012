import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";

/** Something that happened. Plain data: what was recorded in one process can be dispatched again in the next. */
export interface SessionEvent<P = unknown> {
  /** The name of its type. */
  readonly type: string;
  /** The names of the types that its type extends, nearest first. Absent: none. */
  readonly extends?: readonly string[];
  readonly payload: P;
}

/** What all event types have in common, whatever their payload. */
export interface AnyEventType {
  readonly name: string;
  /** Its own name, then those of the types it extends, nearest first. */
  readonly lineage: readonly string[];
  /** True for events of this type and of types that extend it. */
  is(event: SessionEvent): boolean;
}

/** Written as a method, so that a slice of texts, or a tool that fills it, can stand where any slice or tool may. */
type Maker<P> = { make(payload: P): SessionEvent<P> }["make"];

/** A type of events. Call it with a payload to make one. */
export interface EventType<P> extends AnyEventType, Maker<P> {
  readonly name: string;
  is(event: SessionEvent): event is SessionEvent<P>;
}

export interface EventTypeOptions {
  /** Whoever listens to that type hears of this one, too. */
  readonly extends?: AnyEventType;
}

/**
 * Makes a type of events.
 * @example
 * const Found = eventType<{ path: string }>("Found");
 * session.dispatch(Found({ path: "a.ts" }));
 */
export function eventType<P = void>(name: string, options: EventTypeOptions = {}): EventType<P> {
  assertName("event type", name);
  const parents = options.extends?.lineage ?? [];
  if (parents.includes(name))
    throw new PawlError(
      "invalid_argument",
      `Event type "${name}" extends a type of the same name. Give it a name of its own: types are told apart by name.`,
      { fields: { field: "name", name } },
    );
  const make = (payload: P): SessionEvent<P> =>
    Object.freeze({ type: name, ...(parents.length > 0 && { extends: parents }), payload });
  const is = (event: SessionEvent): event is SessionEvent<P> => lineageOf(event).includes(name);
  const type = Object.defineProperties(make, {
    name: { value: name },
    lineage: { value: Object.freeze([name, ...parents]) },
    is: { value: is },
  });
  return Object.freeze(type) as EventType<P>;
}

/** The names of the types that an event belongs to, its own first. */
export function lineageOf(event: SessionEvent): readonly string[] {
  return event.extends === undefined ? [event.type] : [event.type, ...event.extends];
}

/** True for what `eventType(…)(payload)` makes, and for what was recorded of it. */
export function isEvent(value: unknown): value is SessionEvent {
  if (typeof value !== "object" || value === null || !("type" in value) || !("payload" in value)) return false;
  return typeof value.type === "string" && (!("extends" in value) || Array.isArray(value.extends));
}
