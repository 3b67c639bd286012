import { append, type Operation, replace } from "./operation.ts";
import type { AnyEventType, EventType, SessionEvent } from "./session-event.ts";

/** Says what an event does to a slice; null: nothing. Pure: no clock, no dice, no dispatching. */
export type Reducer<T, P> = (items: readonly T[], event: SessionEvent<P>) => Operation<T> | null;

/** A reducer of a slice whose items are unknown here; `Session.on` has checked them against each other. */
export type AnyReducer = Reducer<unknown, unknown>;

/** How a slice follows events of a type, wherever it is registered. */
export interface Handler<T> {
  readonly type: AnyEventType;
  readonly reduce: Reducer<T, unknown>;
}

/**
 * A slice with one value follows a type of events: gets the value, gives the new one, or null to leave it. While the slice is empty and has no
 * initial value it hears nothing.
 * @example
 * slice<Count>("count", { initial: () => [{ n: 0 }], on: [when(Found, ({ n }) => ({ n: n + 1 }))] })
 */
export function when<T, P>(type: EventType<P>, next: (value: T, payload: P) => T | null): Handler<T> {
  const reduce: Reducer<T, unknown> = (items, { payload }) => {
    if (items.length === 0) return null;
    const value = next(items[items.length - 1] as T, payload as P);
    return value === null ? null : replace<T>([value]);
  };
  return { type, reduce };
}

/** A slice follows a type of events with a reducer: for slices of many items. */
export function reducing<T, P>(type: EventType<P>, reducer: Reducer<T, P>): Handler<T> {
  return { type, reduce: reducer as Reducer<T, unknown> };
}

/** Adds every payload: what slices do by themselves. */
export function appending<T>(): Reducer<T, T> {
  return (_items, { payload }) => append(payload);
}

/** Keeps the newest payload alone. */
export function replacingLatest<T>(): Reducer<T, T> {
  return (_items, { payload }) => replace([payload]);
}

/** Puts a payload in the place of the item with the same key, or adds it. */
export function upsertingBy<T>(keyOf: (item: T) => unknown): Reducer<T, T> {
  return (items, { payload }) => {
    const key = keyOf(payload);
    const isKnown = items.some((item) => Object.is(keyOf(item), key));
    return isKnown ? replace(items.map((item) => (Object.is(keyOf(item), key) ? payload : item))) : append(payload);
  };
}
