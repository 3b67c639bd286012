// I22: whatever is asked of them, in whatever order, the stores answer alike. The memory store is the model; SQLite is, of transactions, which the
// memory store does not have. What stores differ in by right is left out: `inspect`, `backup`, hints and the thread of a pulse.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { type ManualClock, manualClock } from "../src/base/clock.ts";
import { PawlError } from "../src/base/errors.ts";
import type { EntryType, StoredEntry } from "../src/core/journal.ts";
import type { RunQuery } from "../src/core/run-query.ts";
import type { Isolation, Sql } from "../src/core/sql.ts";
import type { Handle, NewRun, RunCommit, Sealed, Store, Verdict } from "../src/core/store.ts";
import { RUN_STATES } from "../src/core/transition.ts";
import { Directory } from "../src/stores/file/directory.ts";
import { fileStore, storeOver } from "../src/stores/file/file-store.ts";
import { memoryStore } from "../src/stores/memory/memory-store.ts";
import { sqliteStore } from "../src/stores/sqlite/sqlite-store.ts";
import { newRun, newWorker } from "../src/testing/store-cases/case.ts";
import { emptySqlite } from "./behaviour/harness.ts";
import { emptyPostgresStore } from "./postgres-schemas.ts";

interface World {
  readonly clock: ManualClock;
  readonly leaseClock: ManualClock;
}

/** One call. It sees the model only to aim well: at the real head, at the real owner. */
type Call = { readonly kind: string; readonly name: string; ask(store: Store, aim: Aim): Promise<unknown> };

type Aim = ReadonlyMap<string, Target>;

interface Target {
  readonly head: number;
  readonly wake: number;
  readonly owner: string | null;
  readonly unread: readonly string[];
}

const RUNS = ["r0", "r1", "r2", "r3", "r4"];
const run = fc.constantFrom(...RUNS);
const worker = fc.constantFrom<string[]>("w0", "w1", "w2");
const letter = fc.constantFrom("m0", "m1", "m2", "child:r1");
const data = fc.oneof(
  fc.constant(null),
  fc.string({ unit: "binary" }).filter(isPlain),
  fc.uint8Array({ maxLength: 4 }),
);
const text = fc.constantFrom("a", "b", "aé", "a\u{1f600}", "a\uffff", "%_");
const version = fc.constantFrom("1.0.0", "1.0.1", "1.1.0");
const workflow = fc.constantFrom("order", "invoice");
const limits = fc.record(
  {
    concurrency: fc.constantFrom(1, 2),
    rate: fc.record({ limit: fc.constantFrom(1, 2), perMs: fc.constantFrom(20, 50) }),
  },
  { requiredKeys: [] },
);
const policy = fc.constantFrom({}, {}, { policy: "exact" }, { policy: "ignore" });
const handles = fc.array(
  fc.tuple(fc.record({ workflow, version }), limits, policy).map((parts) => Object.assign({}, ...parts) as Handle),
  { maxLength: 3 },
);
const slot = fc.constantFrom("order", "order/a", "invoice/a");
const needs = fc.record({ slot, rate: fc.option(fc.constantFrom("order", "invoice/b"), { nil: null }) });
const maybe = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });
const mostly = (usual: boolean) =>
  fc.oneof({ weight: 8, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constant(!usual) });
const soon = fc.integer({ min: -50, max: 50 });

function isPlain(value: string): boolean {
  return !value.includes("\0") && Buffer.from(value).toString() === value;
}

const entryTypes = fc.constantFrom<EntryType[]>(
  ...([
    "step.started",
    "step.completed",
    "step.failed",
    "timer.fired",
    "run.cancelling",
    "version.changed",
    "note",
  ] as const),
);
const failure = fc.constantFrom('{"retryAt":null}', '{"retryAt":5}');
const entries = fc.array(fc.record({ type: entryTypes, key: fc.option(text), data: fc.oneof(data, failure) }), {
  maxLength: 3,
});

const parent = fc.record({ run, key: text, generation: fc.nat(2), detached: fc.boolean() });
const create: fc.Arbitrary<Partial<NewRun>> = fc.record({
  workflow,
  version,
  claimed: fc.boolean(),
  priority: fc.constantFrom(0, 1, -1.5),
  readyAt: soon,
  deadline: fc.option(soon, { nil: null }),
  key: fc.option(text, { nil: null }),
  tags: fc.uniqueArray(text, { maxLength: 2 }),
  parent: fc.option(parent, { nil: null, freq: 2 }),
  needs: fc.option(needs, { nil: null, freq: 2 }),
});

const message = fc.record({
  to: run,
  id: letter,
  kind: fc.constantFrom("signal" as const, "child" as const, "decision" as const, "cancel" as const),
  name: text,
  data,
});

const waitKind = fc.constantFrom(
  "timer",
  "signal",
  "child",
  "retry",
  "approval",
  "decision",
  "slot",
) as fc.Arbitrary<"timer">;
const STREAMS = ["h0", "h1", "a\u{1f600}"];
const stream = fc.constantFrom(...STREAMS);
const chunk = fc.record({ run, start: stream, n: fc.nat(4), data });
const positions = fc.uniqueArray(fc.record({ start: stream, n: fc.nat(4) }), {
  maxLength: 2,
  selector: ({ start }) => start,
});

const wait = fc.oneof(
  fc.record({
    open: fc.record({
      key: text,
      kind: waitKind,
      name: fc.oneof(text, run),
      due: fc.option(soon),
      detail: fc.option(text),
    }),
  }),
  fc.record({ close: text }),
  fc.record({ closeAll: fc.constant(true as const) }),
);

const counter = fc.record(
  {
    key: text,
    by: fc.constantFrom(1, 2, -1, -2, 0.5, 0),
    max: fc.option(fc.constantFrom(0, 1, 2, 3)),
    held: fc.boolean(),
    of: run,
    maxFrom: text,
    atLeast: fc.constant(true as const),
  },
  { requiredKeys: ["key", "by", "max", "held"] },
);

const state = fc.constantFrom(...RUN_STATES.filter((one) => !["succeeded", "failed", "cancelled"].includes(one)));
const row = fc.record(
  {
    state,
    version,
    head: fc.nat(9),
    headHash: text,
    release: fc.boolean(),
    readyAt: fc.option(soon),
    wakeAt: fc.option(soon),
    claims: fc.nat(3),
    stopReason: text,
    progress: text,
    cost: text,
    deadline: soon,
    needs,
    frees: fc.boolean(),
  },
  { requiredKeys: [] },
);
const ended = {
  state: fc.constantFrom("succeeded", "failed", "cancelled") as fc.Arbitrary<"failed">,
  ended: fc.constant(true),
};
/** As the engine writes it, which a store may have a short way for. */
const wholeEnd = fc.record({
  ...ended,
  endedAt: fc.nat(9),
  release: fc.constant(true),
  readyAt: fc.constant(null),
  wakeAt: fc.constant(null),
  claims: fc.constant(0),
  head: fc.nat(9),
  headHash: text,
  stopReason: text,
});
const end = fc.oneof(fc.record(ended), wholeEnd);

const part = fc.record({
  run,
  isAtHead: mostly(true),
  entries,
  create,
  isCreatedAgain: mostly(false),
  row: maybe(fc.oneof({ weight: 2, arbitrary: row }, { weight: 1, arbitrary: end })),
  ifWake: maybe(mostly(true)),
  ifNotCancelled: maybe(fc.boolean()),
  consumes: maybe(mostly(true)),
  messages: maybe(fc.array(message, { maxLength: 2 })),
  waits: maybe(fc.array(wait, { maxLength: 3 })),
  state: maybe(fc.array(fc.record({ key: text, data: fc.uint8Array({ maxLength: 2 }) }), { maxLength: 2 })),
  keys: maybe(
    fc.array(fc.record({ space: fc.constantFrom("s", "t"), key: text, digest: text, from: run }), { maxLength: 2 }),
  ),
  counters: maybe(fc.array(counter, { maxLength: 3 })),
  child: maybe(run),
});

type Arbitrated<A> = A extends fc.Arbitrary<infer T> ? T : never;
type Part = Arbitrated<typeof part>;

function aimed(given: Part, target: Target | undefined, now: number): RunCommit {
  const { isAtHead, isCreatedAgain, child, ...rest } = given;
  const head = (target?.head ?? 0) + (isAtHead ? 0 : 1);
  const written = given.entries.map(
    (entry, i): StoredEntry => ({ ...entry, seq: head + i, at: now + i, hash: `h${head + i}` }),
  );
  const first: StoredEntry = { seq: 0, at: now, type: "run.started", key: null, data: null, hash: "h0" };
  const isNew = target === undefined || isCreatedAgain;
  const patch = given.row as { readyAt?: number | null; wakeAt?: number | null } | undefined;
  const later = (time: number | null | undefined) => (typeof time === "number" ? now + time : time);
  const commit = {
    ...rest,
    head: isNew ? 0 : head,
    entries: isNew ? [first] : written,
    create: isNew ? newRun(shifted(given.create, now)) : undefined,
    row: patch === undefined ? undefined : { ...patch, readyAt: later(patch.readyAt), wakeAt: later(patch.wakeAt) },
    ifWake: given.ifWake === undefined ? undefined : given.ifWake ? (target?.wake ?? 0) : 7,
    consumes: given.consumes === undefined ? undefined : given.consumes ? (target?.unread ?? []) : ["m0"],
    children:
      child === undefined ? undefined : [{ run: child, create: newRun({ claimed: child !== "r0" }), entry: first }],
  };
  return withoutUndefined(commit) as unknown as RunCommit;
}

/** Times of a new run count from now. */
function shifted(create: Partial<NewRun>, now: number): Partial<NewRun> {
  const { readyAt = 0, deadline = null, needs: given = null, claimed = false } = create;
  return {
    ...create,
    claimed: claimed && given === null,
    readyAt: now + readyAt,
    deadline: deadline === null ? null : now + deadline,
  };
}

function withoutUndefined(value: object): object {
  const kept = Object.entries(value).filter(([, one]) => one !== undefined);
  return Object.fromEntries(kept.map(([key, one]) => [key, isObject(one) ? withoutUndefined(one) : one]));
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}

const named = <T>(name: string, input: fc.Arbitrary<T>, ask: (store: Store, input: T, aim: Aim) => Promise<unknown>) =>
  input.map(
    (value): Call => ({
      kind: name,
      name: `${name} ${fc.stringify(value)}`,
      ask: (store, aim) => ask(store, value, aim),
    }),
  );

const commitInput = fc.record({
  worker: fc.option(worker, { nil: null, freq: 8 }),
  isOwner: mostly(true),
  parts: fc.array(part, { minLength: 1, maxLength: 3 }),
});

const queryInput = fc.record(
  {
    workflow,
    states: fc.array(fc.constantFrom(...RUN_STATES), { maxLength: 3 }),
    tag: text,
    parent: run,
    slot,
    createdAfter: soon,
    createdBefore: soon,
    before: run,
    search: fc.constantFrom("a", "r", "r1", "o", "%", ""),
    except: fc.array(workflow, { maxLength: 2 }),
    among: fc.array(fc.record({ workflow, states: fc.array(fc.constantFrom(...RUN_STATES), { maxLength: 3 }) }), {
      maxLength: 2,
    }),
  },
  { requiredKeys: [] },
);

/** Times of a query count from now. */
function queryFrom(query: Partial<RunQuery>, now: number): RunQuery {
  const { createdAfter, createdBefore } = query;
  return {
    ...query,
    limit: 3,
    ...(createdAfter !== undefined && { createdAfter: now + createdAfter }),
    ...(createdBefore !== undefined && { createdBefore: now + createdBefore }),
  };
}

const waitQuery = fc.record(
  {
    run,
    kind: waitKind,
    name: fc.oneof(text, run),
    after: fc.record({ run, key: text }),
    limit: fc.nat(3),
  },
  { requiredKeys: [] },
);

const transactInput = fc.record({
  worker,
  isOwner: mostly(true),
  isolation: fc.constantFrom<Isolation[]>("read committed", "repeatable read", "serializable"),
  part,
  inside: fc.array(fc.record({ run, create, key: maybe(text) }), { maxLength: 2 }),
  isUndone: mostly(false),
});

/** Starts runs in a transaction that then commits, is refused, or is undone by its own work. */
async function askToTransact(store: Store, input: Arbitrated<typeof transactInput>, aim: Aim): Promise<Verdict[]> {
  const now = store.clock.now();
  const owner = input.isOwner ? aim.get(input.part.run)?.owner : null;
  const sealed = { worker: owner ?? input.worker, commit: aimed(input.part, aim.get(input.part.run), now) };
  const seal = (): Sealed => {
    if (input.isUndone) throw new PawlError("invalid_argument", "The work was undone.");
    return sealed;
  };
  const told: Promise<Verdict>[] = [];
  const work = (sql: Sql) => {
    for (const one of input.inside) told.push(store.enlist?.(sql, startedInside(one, now)) as Promise<Verdict>);
    return store.transactions === "synchronous" ? seal() : Promise.all(told).then(seal);
  };
  const request = { lane: 0, isolation: input.isolation, timeoutMs: 60_000, idleMs: 60_000 };
  const verdict = await store.transact?.(request, work);
  return [verdict as Verdict, ...(await Promise.all(told))];
}

type Inside = Arbitrated<typeof transactInput>["inside"][number];

function startedInside({ run: id, create: given, key }: Inside, now: number): RunCommit {
  const first: StoredEntry = { seq: 0, at: now, type: "run.started", key: null, data: null, hash: "h0" };
  const started = { run: id, head: 0, entries: [first], create: newRun({ ...shifted(given, now), claimed: false }) };
  return key === undefined ? started : { ...started, keys: [{ space: "s", key, digest: "d" }] };
}

const calls: fc.Arbitrary<Call> = fc.oneof(
  {
    weight: 18,
    arbitrary: named("commit", commitInput, (store, input, aim) => {
      const owner = input.isOwner ? aim.get(input.parts[0]?.run ?? "")?.owner : null;
      const runs = input.parts.map((one) => aimed(one, aim.get(one.run), store.clock.now()));
      return store.commit({ worker: owner ?? input.worker, runs });
    }),
  },
  { weight: 6, arbitrary: named("deliver", message, (store, input) => store.deliver(input)) },
  { weight: 4, arbitrary: named("register", worker, (store, id) => store.register(newWorker(id))) },
  {
    weight: 5,
    arbitrary: named("claim", fc.record({ worker, handles, limit: fc.nat(3), suspect: fc.boolean() }), (store, input) =>
      store.claim(input),
    ),
  },
  {
    weight: 2,
    arbitrary: named("take", fc.record({ worker, run }), (store, input) => store.take(input.worker, input.run)),
  },
  {
    weight: 1,
    arbitrary: named(
      "fence",
      fc.record({
        workers: fc.uniqueArray(worker, { maxLength: 2 }),
        next: maybe(worker),
        ifExpired: fc.boolean(),
      }),
      (store, { workers, next, ifExpired }) => {
        const hasSuccessor = next !== undefined && !workers.includes(next);
        return store.fence(hasSuccessor ? { workers, successor: newWorker(next) } : { workers, ifExpired });
      },
    ),
  },
  named("retire", worker, (store, id) => store.retire(id)),
  named("heartbeat", worker, (store, id) => store.heartbeat(id)),
  named("owned", fc.record({ worker, news: fc.boolean() }), (store, input) =>
    store.owned(input.worker, { news: input.news }),
  ),
  named("run", run, (store, id) => store.run(id)),
  named("runs", queryInput, (store, query) => store.runs(queryFrom(query, store.clock.now()))),
  named("waits", waitQuery, (store, query) => store.waits(query)),
  named("journal", fc.record({ run, from: fc.nat(3), limit: fc.nat(2) }), (store, { run: id, ...range }) =>
    store.journal(id, range),
  ),
  named("key", fc.record({ space: fc.constantFrom("s", "t"), key: text }), (store, input) =>
    store.key(input.space, input.key),
  ),
  named("counters", text, (store, prefix) => store.counters(prefix)),
  { weight: 2, arbitrary: named("emit", fc.array(chunk, { maxLength: 3 }), (store, chunks) => store.emit(chunks)) },
  named("chunks", fc.record({ run, of: positions, limit: fc.nat(3) }), (store, { run: id, ...query }) =>
    store.chunks(id, query),
  ),
  named("adopt", fc.array(run, { maxLength: 3 }), (store, ids) => store.adopt(ids)),
  named(
    "purge",
    fc.record(
      { succeeded: soon, failed: soon, limit: fc.nat(2), workflow, except: fc.array(workflow, { maxLength: 1 }) },
      { requiredKeys: ["succeeded", "failed", "limit"] },
    ),
    (store, { succeeded, failed, ...rest }) =>
      store.purge({
        succeededBefore: store.clock.now() + succeeded,
        failedBefore: store.clock.now() + failed,
        ...rest,
      }),
  ),
  named("counts", queryInput, (store, query) => {
    const { before, limit, ...filter } = queryFrom(query, store.clock.now());
    return store.counts(filter, 2);
  }),
  named("hold", fc.record({ run, who: text, why: text }), (store, { run: id, ...hold }) => store.hold(id, hold)),
  named("releaseHold", run, (store, id) => store.releaseHold(id)),
  named("record", fc.record({ who: text, subject: fc.option(run), detail: fc.option(text) }), (store, entry) =>
    store.record({ action: "a", from: null, outcome: "done", payload: null, ...entry }),
  ),
  named("describe", fc.array(fc.record({ name: workflow, version, facts: text }), { maxLength: 2 }), (store, facts) =>
    store.describe(facts),
  ),
);

type Step = Call | { readonly advance: number } | { readonly setClock: number } | { readonly lease: number };

const transactions = named("transact", transactInput, askToTransact);

const stepsOf = (asked: fc.Arbitrary<Call>, isClockSteady: boolean): fc.Arbitrary<Step> =>
  fc.oneof(
    { weight: 8, arbitrary: asked },
    { weight: 2, arbitrary: fc.record({ advance: fc.nat(60) }) },
    ...(isClockSteady ? [] : [fc.record({ setClock: soon })]),
    fc.record({ lease: fc.nat(20_000) }),
  );

/** The answer, or the code of its error; what differs by right (the error of a failed part) is reduced to its code. */
async function answer(call: Call, store: Store, aim: Aim): Promise<unknown> {
  try {
    const value = await call.ask(store, aim);
    return Array.isArray(value) ? value.map((one) => withoutError(one as Verdict)) : value;
  } catch (error) {
    if (error instanceof PawlError) return { rejected: error.code };
    throw error;
  }
}

function withoutError(value: Verdict): unknown {
  return value?.kind === "failed" ? { ...value, error: (value.error as PawlError).code } : value;
}

/** Everything that can be read. */
async function everything(store: Store): Promise<unknown> {
  const rows = await store.runs({ limit: 99 });
  const perRun = await Promise.all(
    rows.map(async ({ id }) => [id, await store.journal(id), await store.inbox(id), await store.state(id)]),
  );
  return [
    rows,
    perRun,
    await store.waits({}),
    await store.workers(),
    await store.owners(),
    await store.counters(""),
    await store.orphans(),
    await store.unclaimed({ workflows: ["order", "invoice"], limit: 5 }),
    await store.nextWake(),
    await store.holds({ limit: 9 }),
    await store.audits({ after: 0, limit: 99 }),
    await store.auditHead(),
    await store.workflows(),
  ];
}

async function aimOf(store: Store): Promise<Aim> {
  const rows = await store.runs({ limit: 99 });
  const targets = rows.map(async ({ id, wake, owner }): Promise<[string, Target]> => {
    const unread = (await store.inbox(id)).map((letter) => letter.id);
    return [id, { head: (await store.journal(id)).length, wake, owner, unread }];
  });
  return new Map(await Promise.all(targets));
}

function move({ clock, leaseClock }: World, step: Exclude<Step, Call>): void {
  if ("advance" in step) clock.advance(step.advance);
  else if ("setClock" in step) clock.step(step.setClock);
  else leaseClock.advance(step.lease);
}

/** Calls that look at where they aim. */
const AIMED: ReadonlySet<string> = new Set(["commit", "transact"]);
const NOWHERE: Aim = new Map();
/** What they change against their nature is seen after the next call that may change something. */
const READING: ReadonlySet<string> = new Set("owned run runs waits journal key counters chunks counts".split(" "));

async function compare(model: Store, store: Store, world: World, sequence: readonly Step[]): Promise<void> {
  const trace: string[] = [];
  for (const step of sequence) {
    trace.push("name" in step ? step.name : JSON.stringify(step));
    if (!("name" in step)) {
      move(world, step);
      continue;
    }
    const aim = AIMED.has(step.kind) ? await aimOf(model) : NOWHERE;
    const expected = await answer(step, model, aim);
    expectSame(await answer(step, store, aim), expected, trace);
    if (!READING.has(step.kind)) expectSame(await everything(store), await everything(model), trace);
  }
  // Here, too, for what a call that only reads may have changed at the end.
  expectSame(await everything(store), await everything(model), trace);
  expectSame(await allChunks(store), await allChunks(model), trace);
}

/** Told by `expect` where they differ: it takes several times as long to find that they do not. */
function expectSame(actual: unknown, expected: unknown, trace: readonly string[]): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual, trace.join("\n")).toEqual(expected);
}

function allChunks(store: Store): Promise<unknown> {
  const of = STREAMS.map((start) => ({ start, n: 0 }));
  return Promise.all(RUNS.map((id) => store.chunks(id, { of, limit: 99 })));
}

type Open = (world: World) => Promise<{ readonly store: Store; leave(): void }>;

const folder = mkdtempSync(join(tmpdir(), "pawl-parity-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
const OPEN = {
  memory: async (world) => ({ store: memoryStore(world), leave: () => {} }),
  SQLite: async (world) => {
    const file = join(folder, `${files++}.db`);
    writeFileSync(file, await emptySqlite());
    return { store: sqliteStore(file, { ...world, durability: "process" }), leave: () => {} };
  },
  file: async (world) => {
    const path = join(folder, `${files++}`);
    return { store: fileStore(path, { ...world, durability: "process" }), leave: () => {} };
  },
  /** It forgets everything before each call, and knows what is in its documents and nothing else. */
  "forgetful file": async (world) => {
    const directory = new Directory(join(folder, `${files++}`), { durability: "process" }, () => world.clock.now());
    return { store: forgetful(storeOver(directory, world), () => directory.forget()), leave: () => {} };
  },
  PostgreSQL: (world) => emptyPostgresStore(world),
} satisfies Record<string, Open>;

function forgetful(store: Store, forget: () => void): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const value = target[name];
      if (typeof value !== "function") return value;
      return (...args: never[]) => {
        forget();
        return (value as (...given: never[]) => unknown).apply(target, args);
      };
    },
  });
}

interface Pair {
  readonly model: keyof typeof OPEN;
  readonly other: keyof typeof OPEN;
  readonly sequences: number;
  readonly asked: fc.Arbitrary<Call>;
  /** Nobody sets the clock. */
  readonly isClockSteady?: boolean;
}

const PAIRS: readonly Pair[] = [
  { model: "memory", other: "SQLite", sequences: 100, asked: calls },
  { model: "memory", other: "file", sequences: 20, asked: calls },
  // A start of a rate that is over is forgotten in memory, and comes back from a document when the clock is set back.
  { model: "memory", other: "forgetful file", sequences: 5, asked: calls, isClockSteady: true },
  { model: "memory", other: "PostgreSQL", sequences: 10, asked: calls },
  {
    model: "SQLite",
    other: "PostgreSQL",
    sequences: 10,
    asked: fc.oneof({ weight: 2, arbitrary: calls }, { weight: 1, arbitrary: transactions }),
  },
];

for (const { model, other, sequences, asked, isClockSteady = false } of PAIRS) {
  const what = asked === calls ? "calls" : "calls and transactions";
  it(`I22 ${model} and ${other} give the same answers to ${sequences} random sequences of ${what}`, {
    timeout: 600_000,
  }, async () => {
    const property = fc.asyncProperty(
      fc.array(stepsOf(asked, isClockSteady), { minLength: 5, maxLength: 60, size: "max" }),
      async (sequence) => {
        const world: World = { clock: manualClock(), leaseClock: manualClock() };
        const opened = [await OPEN[model](world), await OPEN[other](world)] as const;
        const [first, second] = [opened[0].store, opened[1].store];
        for (const store of [first, second]) {
          await store.open();
          for (const id of ["w0", "w1"]) await store.register(newWorker(id));
        }
        try {
          await compare(first, second, world, sequence);
        } finally {
          for (const { store, leave } of opened) {
            await store.close();
            leave();
          }
        }
      },
    );
    await fc.assert(property, { numRuns: sequences });
  });
}
