// Sessions
// The state of an agent: typed slices, and reducers that change them on events. It is pure memory, with no clock and no dice; what keeps it is a
// snapshot.
//
//   SE1. Only a reducer's operation changes a slice, and only between two calls of reducers.
//   SE2. A reducer that fails changes nothing; the others are called all the same.
//   SE3. What is in a slice is frozen and can be saved: live and restored values are alike.
import { messageOf, PawlError, readProperty } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import type { Log } from "../core/context.ts";
import { openedSections } from "./opened-sections.ts";
import { clear, replace } from "./operation.ts";
import { type AnyReducer, appending, type Reducer } from "./reducers.ts";
import { type Restored, type RestoreOptions, restoredItems } from "./restore.ts";
import { type EventType, lineageOf, type SessionEvent } from "./session-event.ts";
import { SessionLock } from "./session-lock.ts";
import { type Query, queryOf, type SessionView } from "./session-view.ts";
import type { AnySlice, Slice } from "./slice.ts";
import { SliceState } from "./slice-state.ts";
import type { Snapshot } from "./snapshot.ts";

export interface SessionOptions {
  /** Unlike that of any other session that it may meet. A restored snapshot brings its own. */
  readonly id: string;
  /** When it was made, in milliseconds since 1970. A restored snapshot brings its own. */
  readonly createdAt: number;
  /** Words that tell it apart from others. Default: none. */
  readonly tags?: readonly string[];
  /** The session that this one is part of. Default: none. */
  readonly parent?: Session;
  /** What it holds. Default: only which sections of the prompt were opened. */
  readonly slices?: readonly AnySlice[];
  /** Hears of reducers that fail. Default: nobody. */
  readonly log?: Pick<Log, "warn">;
}

/** A reducer that threw, or returned what its slice refuses. */
export interface ReducerFailure {
  readonly slice: string;
  readonly type: string;
  readonly error: unknown;
}

export interface Dispatched {
  readonly failures: readonly ReducerFailure[];
}

interface Registration {
  readonly slice: string;
  readonly reduce: AnyReducer;
}

const APPEND: AnyReducer = appending();

/** The state of an agent. */
export class Session implements SessionView {
  #id: string;
  #createdAt: number;
  #tags: readonly string[];
  #parentId: string | null = null;
  /** Of children that a snapshot tells of, and that are not here. */
  #childrenIds: readonly string[] = [];
  readonly #parent: Session | null;
  readonly #children: Session[] = [];
  readonly #log: Pick<Log, "warn"> | null;
  readonly #states = new Map<string, SliceState>();
  readonly #reducers = new Map<string, Registration[]>();
  readonly #lock = new SessionLock();
  #isReducing = false;

  constructor({ id, createdAt, tags = [], parent, slices = [], log }: SessionOptions) {
    assertName("session id", id);
    assertTime(createdAt);
    for (const tag of tags) assertName("tag", tag);
    this.#id = id;
    this.#createdAt = createdAt;
    this.#tags = inOrder(tags);
    this.#parent = parent ?? null;
    this.#log = log ?? null;
    if (parent !== undefined) parent.#children.push(this);
    this.register(openedSections);
    for (const slice of slices) this.register(slice);
  }

  get id(): string {
    return this.#id;
  }

  get createdAt(): number {
    return this.#createdAt;
  }

  get tags(): readonly string[] {
    return this.#tags;
  }

  get parent(): Session | null {
    return this.#parent;
  }

  get children(): readonly Session[] {
    return [...this.#children];
  }

  /** The session at the top of the hierarchy. */
  root(): Session {
    let top: Session = this;
    while (top.#parent !== null) top = top.#parent;
    return top;
  }

  /** This session and all below it, each before its children. */
  *walk(): Generator<Session, void> {
    yield this;
    for (const child of this.#children) yield* child.walk();
  }

  /** Adds a slice, with what it does on events. Adding it again changes nothing. */
  register(slice: AnySlice): void {
    const known = this.#states.get(slice.name);
    if (known?.slice === slice) return;
    if (known !== undefined) throw nameTaken(slice.name);
    const state = new SliceState(slice, []);
    state.apply(replace(slice.initial()));
    this.#states.set(slice.name, state);
    this.#add(slice, slice.added.name, APPEND);
    this.#add(slice, slice.initialised.name, (_items, { payload }) => replace(payload as readonly unknown[]));
    this.#add(slice, slice.cleared.name, () => clear());
    for (const { type, reduce } of slice.handlers)
      this.#add(slice, type.name, (items, event) => reduce(items.length === 0 ? slice.initial() : items, event));
  }

  /** Adds a slice that may begin with another value than its own initial one. */
  install<T>(slice: Slice<T>, options: { readonly initial?: () => readonly T[] } = {}): void {
    const isNew = !this.has(slice);
    this.register(slice);
    if (isNew && options.initial !== undefined) this.#stateOf(slice).apply(replace<unknown>(options.initial()));
  }

  /** Lets a reducer change a slice on events of a type, after those that are there. One for `slice.added` takes the place of appending. */
  on<T, P>(slice: Slice<T>, type: EventType<P>, reducer: Reducer<T, P>): void {
    this.#stateOf(slice);
    this.#add(slice, type.name, reducer as AnyReducer);
  }

  /** Lets every reducer of the event's type change its slice. A reducer that fails is logged and in the answer. */
  dispatch(event: SessionEvent): Dispatched {
    if (this.#isReducing)
      throw new PawlError(
        "invalid_argument",
        `A reducer has dispatched "${event.type}". Reducers are pure: return an operation, and dispatch from outside.`,
        { fields: { type: event.type } },
      );
    const failures: ReducerFailure[] = [];
    for (const type of lineageOf(event)) {
      for (const { slice, reduce } of this.#reducers.get(type) ?? []) {
        const failure = this.#reduce(this.#states.get(slice)!, reduce, event);
        if (failure !== null) failures.push(failure);
      }
    }
    return { failures };
  }

  /** Adds an item to a slice. Throws what `dispatch(slice.added(item))` would answer. */
  add<T>(slice: Slice<T>, item: T): void {
    this.#stateOf(slice);
    const [failure] = this.dispatch(slice.added(item)).failures;
    if (failure !== undefined) throw failure.error;
  }

  has(slice: { readonly name: string }): boolean {
    return this.#states.has(slice.name);
  }

  query<T>(slice: Slice<T>): Query<T> {
    return queryOf((this.#states.get(slice.name)?.items ?? []) as readonly T[]);
  }

  /**
   * Calls a function that may dispatch. If it throws, or gives `{ success: false }`, state slices are as before; logs keep what they have.
   * One transaction at a time: what others dispatch in between would be undone with it.
   */
  transaction<R>(work: () => R): R {
    const before = [...this.#states.values()]
      .filter(({ slice }) => slice.policy === "state")
      .map((state) => ({ state, items: state.items }));
    return this.#lock.exclusive(work, ({ threw, value }) => {
      if (!threw && readProperty(value, "success") !== false) return;
      for (const { state, items } of before) state.set(items);
    });
  }

  /** Calls a function while no other locked section or transaction of this session is under way; waits for those that are. */
  locked<R>(work: () => R | Promise<R>): Promise<R> {
    return this.#lock.locked(work);
  }

  /** The same session once more, to be changed on its own: what a tool works on. */
  clone(): Session {
    const copy = new Session({
      id: this.#id,
      createdAt: this.#createdAt,
      tags: this.#tags,
      ...(this.#log !== null && { log: this.#log }),
    });
    copy.#parentId = this.#parentLink();
    copy.#childrenIds = this.#childLinks();
    copy.#states.clear();
    copy.#reducers.clear();
    for (const [name, state] of this.#states) copy.#states.set(name, state.copy());
    for (const [type, reducers] of this.#reducers) copy.#reducers.set(type, [...reducers]);
    return copy;
  }

  /** The state as a value: every state slice; with `includeAll` logs, too. */
  snapshot({ includeAll = false }: { readonly includeAll?: boolean } = {}): Snapshot {
    const states = [...this.#states.values()].sort((a, b) => (a.slice.name < b.slice.name ? -1 : 1));
    const saved = states.filter(({ slice }) => includeAll || slice.policy === "state");
    return Object.freeze({
      id: this.#id,
      createdAt: this.#createdAt,
      tags: this.#tags,
      parentId: this.#parentLink(),
      childrenIds: this.#childLinks(),
      slices: Object.freeze(
        saved.map(({ slice, items }) => Object.freeze({ slice: slice.name, version: slice.version, items })),
      ),
      policies: Object.freeze(Object.fromEntries(states.map(({ slice }) => [slice.name, slice.policy]))),
    });
  }

  /** Takes over the state of a snapshot: all of it, or throws `snapshot_restore` and nothing is changed. */
  restore(snapshot: Snapshot, options: RestoreOptions = {}): Restored {
    const slices = [...this.#states.values()].map(({ slice }) => slice);
    const { items, unknown } = restoredItems(slices, snapshot, options);
    if (unknown.length > 0 && options.onUnknownSlice === "fresh") return { restored: false, unknown };
    for (const [name, restored] of items) this.#states.get(name)!.set(restored);
    this.#id = snapshot.id;
    this.#createdAt = snapshot.createdAt;
    this.#tags = inOrder(snapshot.tags);
    this.#parentId = snapshot.parentId;
    this.#childrenIds = inOrder(snapshot.childrenIds);
    return { restored: true, unknown };
  }

  #parentLink(): string | null {
    return this.#parent?.id ?? this.#parentId;
  }

  #childLinks(): readonly string[] {
    return inOrder([...this.#childrenIds, ...this.#children.map(({ id }) => id)]);
  }

  #add(slice: AnySlice, type: string, reduce: AnyReducer): void {
    const known = this.#reducers.get(type) ?? [];
    // A reducer of its own takes the place of what a slice does by itself.
    const others = type === slice.added.name ? known.filter((one) => one.reduce !== APPEND) : known;
    this.#reducers.set(type, [...others, { slice: slice.name, reduce }]);
  }

  #reduce(state: SliceState, reduce: AnyReducer, event: SessionEvent): ReducerFailure | null {
    this.#isReducing = true;
    try {
      // Appending needs no look at what is there: a log may be long.
      const operation = reduce(reduce === APPEND ? [] : state.items, event);
      if (operation !== null) state.apply(operation);
      return null;
    } catch (error) {
      const failure: ReducerFailure = { slice: state.slice.name, type: event.type, error };
      this.#log?.warn(`Slice "${failure.slice}" could not follow event "${failure.type}": ${messageOf(error)}`, {
        session: this.#id,
        slice: failure.slice,
        type: failure.type,
      });
      return failure;
    } finally {
      this.#isReducing = false;
    }
  }

  #stateOf(slice: AnySlice): SliceState {
    const state = this.#states.get(slice.name);
    if (state !== undefined) return state;
    throw new PawlError(
      "invalid_argument",
      `Session "${this.#id}" does not have slice "${slice.name}". Give it in \`slices\` where the session is made: a restored session needs it, too.`,
      { fields: { session: this.#id, slice: slice.name } },
    );
  }
}

function inOrder(texts: readonly string[]): readonly string[] {
  return Object.freeze([...new Set(texts)].sort());
}

function assertTime(createdAt: number): void {
  if (Number.isSafeInteger(createdAt) && !Number.isNaN(new Date(createdAt).getTime())) return;
  throw new PawlError(
    "invalid_argument",
    `\`createdAt\` of a session is ${createdAt}. Give the milliseconds since 1970, as Date.now() does.`,
    { fields: { field: "createdAt" } },
  );
}

function nameTaken(name: string): PawlError {
  return new PawlError(
    "invalid_argument",
    `The session has another slice with the name "${name}" already. Give one of them another name.`,
    { fields: { slice: name } },
  );
}
