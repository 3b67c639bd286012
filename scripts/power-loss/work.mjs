// The work that a power cut interrupts: runs of every kind, each with an answer that can be computed.
import { createHash } from "node:crypto";
import { RetryableError, workflow } from "../../dist/index.js";

/** The idempotency keys of all steps that began in this process, in order. */
export const begun = [];

/** Runs a piece of work and notes that it began. */
function noted(work) {
  return (info) => {
    begun.push(info.key);
    return work(info);
  };
}

/** Text that cannot be compressed much: large values make large writes. */
function filler(seed, bytes) {
  return createHash("shake256", { outputLength: bytes }).update(seed).digest("base64").slice(0, bytes);
}

function weigh(text) {
  let sum = 0;
  for (let i = 0; i < text.length; i++) sum += text.charCodeAt(i);
  return sum;
}

const ledger = workflow("ledger", async (ctx, { seed, steps, bytes }) => {
  let sum = 0;
  for (let i = 0; i < steps; i++)
    sum += weigh(
      await ctx.step(
        `page ${i}`,
        noted(() => filler(`${seed}/${i}`, bytes)),
      ),
    );
  ctx.set("sum", sum);
  return sum;
});

const fan = workflow("fan", async (ctx, { items }) => {
  const list = Array.from({ length: items }, (_, i) => i);
  const squares = await ctx.map(
    list,
    (i) =>
      ctx.step(
        "square",
        noted(() => i * i),
      ),
    { concurrency: 4 },
  );
  return squares.reduce((sum, square) => sum + square, 0);
});

const asks = workflow("asks", async (ctx, { n }) => {
  const before = await ctx.step(
    "before",
    noted(() => n + 1),
  );
  const answer = await ctx.waitFor("answer");
  return ctx.step(
    "after",
    noted(() => before * answer),
  );
});

const parent = workflow("parent", async (ctx, { children }) => {
  const sums = await Promise.all(children.map((input) => ctx.call(ledger, input)));
  return ctx.step(
    "total",
    noted(() => sums.reduce((total, sum) => total + sum, 0)),
  );
});

const again = workflow("again", async (ctx, { left, sum }) => {
  const next = await ctx.step(
    "add",
    noted(() => sum + left),
  );
  return left === 0 ? next : ctx.continueAs({ left: left - 1, sum: next });
});

const rests = workflow("rests", async (ctx, { naps }) => {
  let sum = 0;
  for (let i = 1; i <= naps; i++) {
    await ctx.sleep("1ms");
    const work = ({ attempt }) => {
      if (i % 2 === 0 && attempt === 1) throw new RetryableError("not yet");
      return i;
    };
    sum += await ctx.step("nap", noted(work), { retry: { base: "1ms", jitter: false } });
  }
  return sum;
});

export const workflows = [ledger, fan, asks, parent, again, rests];

const ledgerSum = ({ seed, steps, bytes }) =>
  Array.from({ length: steps }, (_, i) => weigh(filler(`${seed}/${i}`, bytes))).reduce((a, b) => a + b, 0);

/** One run of each kind per round, with its answer; and what it is to be told, if it asks. */
export function plan(rounds) {
  return Array.from({ length: rounds }, (_, round) => roundOf(round)).flat();
}

function roundOf(round) {
  const pages = { seed: `round ${round}`, steps: 6, bytes: round % 2 === 0 ? 400_000 : 700 };
  const children = [0, 1].map((i) => ({ seed: `child ${round} ${i}`, steps: 2, bytes: 2_000 }));
  const items = 5 + (round % 4);
  const squares = Array.from({ length: items }, (_, i) => i * i).reduce((a, b) => a + b, 0);
  const total = children.map(ledgerSum).reduce((a, b) => a + b, 0);
  const run = (workflow, input, expected, more = {}) => ({
    id: `${workflow.name}-${round}`,
    workflow,
    input,
    expected,
    ...more,
  });
  return [
    run(ledger, pages, ledgerSum(pages)),
    run(fan, { items }, squares),
    run(asks, { n: round }, (round + 1) * 7, { signal: { name: "answer", payload: 7, id: `answer-${round}` } }),
    run(parent, { children }, total),
    run(again, { left: 3, sum: 0 }, 6),
    run(rests, { naps: 3 }, 6),
  ];
}

/** Brings the runs of a plan to their end: starts what is not there, tells again what may not have arrived. */
export function finish(pawl, runs) {
  return Promise.all(
    runs.map(async ({ id, workflow, input, signal }) => {
      const run = await pawl.start(workflow, input, { id });
      if (signal !== undefined) await run.signal(signal.name, signal.payload, { id: signal.id }).catch(unlessEnded);
      return run.result();
    }),
  );
}

function unlessEnded(error) {
  if (error.code !== "run_ended") throw error;
}
