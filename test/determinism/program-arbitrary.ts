import fc from "fast-check";
import type { Combinator, ForeignAwait, Microtask, Node, Pace, StepEnd } from "./program.ts";
import { sizeOf } from "./program.ts";

export interface ProgramOptions {
  /** How many calls a program may issue at most. */
  readonly maxCalls: number;
  readonly signals?: boolean;
  readonly microtasks?: boolean;
}

// Few names: repeated ones are what keys are for (P6).
const name = fc.constantFrom("a", "b", "c");
const value = fc.integer({ min: 0, max: 9 });
const pace = fc.constantFrom<Pace>("scheduled", "scheduled", "scheduled", "async", "sync");
const end = fc.oneof(
  { weight: 12, arbitrary: fc.constant<StepEnd>("ok") },
  { weight: 2, arbitrary: fc.constant<StepEnd>("caught") },
  { weight: 2, arbitrary: fc.constant<StepEnd>("retried") },
  { weight: 1, arbitrary: fc.constant<StepEnd>("thrown") },
);
// Some stay in memory, some leave it (P33).
const ms = fc.constantFrom(1, 5, 5, 30, 200, 2500);

const step = fc.record({ op: fc.constant("step" as const), name, value, pace, end });
const apply = fc.record({ op: fc.constant("apply" as const), value, pace });
const sleep = fc.record({ op: fc.constant("sleep" as const), ms });
const wait = fc.record({
  op: fc.constant("wait" as const),
  name: fc.constantFrom("x", "y"),
  timeoutMs: fc.option(fc.constantFrom(5, 50, 2500), { nil: null }),
});
const said = fc.oneof(
  fc.record({ op: fc.constant("set" as const), key: fc.constantFrom("k", "l"), value }),
  fc.record({ op: fc.constant("note" as const) }),
  fc.record({ op: fc.constant("cost" as const) }),
  fc.record({ op: fc.constant("draw" as const) }),
);
const micro = fc.record({
  op: fc.constant("micro" as const),
  kind: fc.constantFrom<Microtask>("await", "nextTick", "queueMicrotask", "thenable", "generator"),
});
const how = fc.constantFrom<Combinator>("all", "race", "any", "settled");

/** Programs of every shape that end within the turns that the engine opens: no foreign awaits. */
export function programs(options: ProgramOptions): fc.Arbitrary<Node> {
  const leaves: fc.WeightedArbitrary<Node>[] = [
    { weight: 8, arbitrary: step },
    { weight: 1, arbitrary: apply },
    { weight: 2, arbitrary: sleep },
    { weight: 2, arbitrary: said },
    { weight: options.microtasks === true ? 6 : 1, arbitrary: micro },
    ...(options.signals === true ? [{ weight: 5, arbitrary: wait }] : []),
  ];
  const { node } = fc.letrec<{ node: Node; leaf: Node }>((tie) => ({
    leaf: fc.oneof(...leaves),
    node: fc.oneof(
      { maxDepth: 4, depthSize: "medium", withCrossShrink: true },
      { weight: 4, arbitrary: tie("leaf") },
      { weight: 3, arbitrary: several(tie("node")).map((of): Node => ({ op: "seq", of })) },
      {
        weight: 4,
        arbitrary: fc.tuple(how, several(tie("node"))).map(([kind, of]): Node => ({ op: "join", how: kind, of })),
      },
      {
        weight: 1,
        arbitrary: fc
          .tuple(fc.integer({ min: 1, max: 3 }), tie("node"))
          .map(([times, of]): Node => ({ op: "loop", times, of })),
      },
      { weight: 2, arbitrary: mapping(tie("node")) },
      {
        weight: 2,
        arbitrary: fc.tuple(tie("node"), tie("node")).map(([first, second]): Node => ({ op: "later", first, second })),
      },
      { weight: 1, arbitrary: branching(tie("node")) },
    ),
  }));
  return fc
    .array(node, { minLength: 1, maxLength: 3 })
    .map((of): Node => ({ op: "seq", of }))
    .filter((one) => sizeOf(one) >= 1 && sizeOf(one) <= options.maxCalls);
}

function several(node: fc.Arbitrary<Node>): fc.Arbitrary<Node[]> {
  return fc.array(node, { minLength: 1, maxLength: 3 });
}

function mapping(node: fc.Arbitrary<Node>): fc.Arbitrary<Node> {
  return fc.record({
    op: fc.constant("map" as const),
    items: fc.integer({ min: 1, max: 4 }),
    concurrency: fc.integer({ min: 1, max: 3 }),
    partial: fc.boolean(),
    of: node,
  });
}

function branching(node: fc.Arbitrary<Node>): fc.Arbitrary<Node> {
  return fc.record({
    op: fc.constant("branch" as const),
    on: fc.constantFrom("now" as const, "random" as const),
    yes: node,
    no: node,
  });
}

const foreign: fc.Arbitrary<Node> = fc.record({
  op: fc.constant("foreign" as const),
  kind: fc.constantFrom<ForeignAwait>("setImmediate", "setTimeout", "readFile", "messageChannel"),
});

/** Programs that await foreign things only where nothing else of theirs is pending: between joins that wait for all their branches. */
export function sequentialPrograms(): fc.Arbitrary<Node> {
  const branches = fc.array(fc.oneof(step, apply, sleep), { minLength: 1, maxLength: 3 });
  const waitsForAll = fc.constantFrom<Combinator>("all", "settled");
  const finished = fc.oneof(
    step.filter((one) => one.end !== "thrown"),
    sleep,
    said,
    fc.tuple(waitsForAll, branches).map(([kind, of]): Node => ({ op: "join", how: kind, of: of.map(neverThrows) })),
  );
  return fc
    .array(fc.tuple(fc.array(foreign, { maxLength: 2 }), finished), { minLength: 1, maxLength: 4 })
    .map((parts): Node => ({ op: "seq", of: parts.flatMap(([awaits, node]) => [...awaits, node]) }))
    .filter((one) => sizeOf(one) >= 1 && sizeOf(one) <= 6);
}

/**
 * Programs that await foreign things anywhere, also where the order cannot be replayed; some of their branches are abandoned. Awaits of the same
 * length come back in the same order on every pass.
 */
export function foreignPrograms(): fc.Arbitrary<Node> {
  return sprinkled(fc.constant<Node>({ op: "foreign", kind: "setImmediate" }), (leaf) => leaf);
}

/**
 * The same with foreign awaits of any length, whose order changes from pass to pass. Each step has a name of its own: two branches whose calls
 * are told apart by nothing but their order could not be told apart then.
 */
export function unsteadyPrograms(): fc.Arbitrary<Node> {
  return sprinkled(foreign, (leaf, n) => {
    if (leaf.op === "step") return { ...leaf, name: `${leaf.name}${n}` };
    const isCall = leaf.op === "apply" || leaf.op === "sleep";
    return isCall ? { op: "step", name: `s${n}`, value: n, pace: "scheduled", end: "ok" } : leaf;
  });
}

/** Programs with foreign awaits, or microtasks, before some of the leaves. */
function sprinkled(awaits: fc.Arbitrary<Node>, change: (leaf: Node, n: number) => Node): fc.Arbitrary<Node> {
  const hop = fc.option(fc.oneof({ weight: 4, arbitrary: awaits }, { weight: 1, arbitrary: micro }));
  return fc.tuple(programs({ maxCalls: 6 }), fc.infiniteStream(hop)).map(([program, stream]) => {
    const hops = stream[Symbol.iterator]();
    let leaves = 0;
    return mapLeaves(program, (leaf) => {
      const before = hops.next().value as Node | null;
      const changed = neverThrows(change(leaf, leaves++));
      return before === null ? changed : { op: "seq", of: [before, changed] };
    });
  });
}

function neverThrows(node: Node): Node {
  return node.op === "step" && node.end === "thrown" ? { ...node, end: "caught" } : node;
}

function mapLeaves(node: Node, change: (leaf: Node) => Node): Node {
  switch (node.op) {
    case "seq":
    case "join":
      return { ...node, of: node.of.map((one) => mapLeaves(one, change)) };
    case "loop":
    case "map":
      return { ...node, of: mapLeaves(node.of, change) };
    case "later":
      return { ...node, first: mapLeaves(node.first, change), second: mapLeaves(node.second, change) };
    case "branch":
      return { ...node, yes: mapLeaves(node.yes, change), no: mapLeaves(node.no, change) };
    default:
      return change(node);
  }
}

/** A failure prints seed and path; `PAWL_SEED` runs them again. */
export function propertyOptions(numRuns: number) {
  const seed = process.env["PAWL_SEED"];
  return { numRuns, endOnFailure: false, ...(seed === undefined ? {} : { seed: Number(seed) }) };
}

/** The order in which a driver lets things happen. */
export const schedules = fc.integer({ min: 0, max: 0x7fffffff });
