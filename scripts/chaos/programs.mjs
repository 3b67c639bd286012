// The workload: workflows whose answers can be computed from their input alone, and the answers.
// Every step's body books its start and its effect in the ledger and returns which attempt it was, so that the journal tells whose outcome
// was recorded. `patch` is the build: a newer one has a step more, behind `patched`, and takes over the runs of the older one.

/** Programs that set no timer, not even for a retry: a worker whose clock is far off may have them. */
export const TIMELESS = ["short", "long", "parent", "endless", "rounds", "careful", "listener"];

const pause = (ms) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

function spin(ms) {
  for (const until = performance.now() + ms; performance.now() < until; );
}

/** Takes memory until there is none left; what it keeps is reachable, so that nothing can be collected. */
function allocateForever() {
  for (const kept = []; ; ) kept.push(new Array(10_000).fill(kept.length));
}

/** The workflows of one build of the package, booking in `ledger`. */
export function programs({ workflow, RetryableError, TerminalError }, { ledger, patch }) {
  const version = `1.0.${patch}`;
  const define = (name, handler) => workflow({ name, version, guard: "error" }, handler);

  function work(ctx, name, value, { ms = 3, act = () => {}, ...options } = {}) {
    const body = async ({ key, attempt }) => {
      ledger.book("start", { run: ctx.run.id, key, attempt });
      act(attempt);
      await pause(ms);
      ledger.book("effect", { run: ctx.run.id, key, attempt });
      return { value, attempt };
    };
    return ctx.step(name, body, options).then((outcome) => outcome.value);
  }

  const short = define("short", async (ctx, { n }) => {
    const doubled = await work(ctx, "double", 2 * n);
    return work(ctx, "add", doubled + 3);
  });

  const long = define("long", async (ctx, { steps, wide }) => {
    let sum = 0;
    for (let i = 0; i < steps; i++) sum += await work(ctx, "item", i);
    if (patch > 0 && ctx.patched("count")) await work(ctx, "count", steps);
    const items = Array.from({ length: wide }, (_, i) => i);
    const squares = await ctx.map(items, (i) => work(ctx, "square", i * i, { ms: 5 }), { concurrency: 4 });
    return sum + squares.reduce((a, b) => a + b, 0);
  });

  const sleeper = define("sleeper", async (ctx, { n, ms }) => {
    const before = await work(ctx, "before", n + 1);
    await ctx.sleep(ms);
    const between = await work(ctx, "between", before + 1);
    await Promise.race([ctx.sleep(ms / 2), ctx.sleep("1 hour")]);
    return work(ctx, "after", between + 1);
  });

  const listener = define("listener", async (ctx, { words }) => {
    const heard = [];
    while (heard.length < words) {
      heard.push(await ctx.waitFor("word"));
      await work(ctx, "heard", heard.length);
    }
    return heard;
  });

  const parent = define("parent", async (ctx, { n }) => {
    const { id } = await ctx.spawn(short, { n: n + 100 });
    const [a, b] = await Promise.all([ctx.call(short, { n }), ctx.call(sleeper, { n, ms: 150 })]);
    return { sum: await work(ctx, "sum", a + b), spawned: id };
  });

  const endless = define("endless", async (ctx, { depth }) => {
    await work(ctx, "begin", depth);
    if (depth > 0) await ctx.call(endless, { depth: depth - 1 });
    await ctx.waitFor("never");
  });

  const flaky = define("flaky", async (ctx, { n, failures }) => {
    const act = (attempt) => {
      if (attempt <= failures) throw new RetryableError(`attempt ${attempt} was to fail`);
    };
    return work(ctx, "try", n, { act, retry: { max: failures, base: 60 } });
  });

  const failing = define("failing", (ctx, { n }) => {
    const act = () => {
      throw new TerminalError(`no account ${n}`);
    };
    return work(ctx, "fail", n, { act });
  });

  const rounds = define("rounds", async (ctx, { left, sum }) => {
    const next = await work(ctx, "round", sum + left);
    return left === 0 ? next : ctx.continueAs({ left: left - 1, sum: next });
  });

  const careful = define("careful", (ctx, { n }) => work(ctx, "launch", n, { ms: 30, recovery: "fail" }));

  const spinner = define("spinner", async (ctx, { n, ms }) => {
    const spun = await work(ctx, "spin", n, { act: () => spin(ms) });
    return work(ctx, "after", spun + 1);
  });

  const ten = define("ten", async (ctx, { n }) => {
    let sum = n;
    for (let i = 0; i < 10; i++) sum += await work(ctx, "step", i, { ms: 20 });
    return sum;
  });

  const hog = define("hog", (ctx) => work(ctx, "allocate", null, { act: allocateForever }));

  return [short, long, sleeper, listener, parent, endless, flaky, failing, rounds, careful, spinner, hog, ten];
}

const upTo = (n) => Array.from({ length: n }, (_, i) => i);
const sumOf = (numbers) => numbers.reduce((a, b) => a + b, 0);
const output = (value) => [{ state: "succeeded", value }];

/** The ends that are right for a run that nobody cancels: its state, and its output or the text of its error. */
export const ANSWERS = {
  short: ({ n }) => output(2 * n + 3),
  long: ({ steps, wide }) => output(sumOf(upTo(steps)) + sumOf(upTo(wide).map((i) => i * i))),
  sleeper: ({ n }) => output(n + 3),
  listener: ({ words }) => output(upTo(words)),
  parent: ({ n }) => output({ sum: 2 * n + 3 + n + 3 }),
  endless: () => [],
  flaky: ({ n }) => output(n),
  failing: ({ n }) => [{ state: "failed", value: `no account ${n}` }],
  rounds: ({ left, sum }) => output(sum + sumOf(upTo(left + 1))),
  careful: ({ n }) => [...output(n), { state: "failed", value: /interrupted/ }],
  spinner: ({ n }) => output(n + 1),
  hog: () => [],
  ten: ({ n }) => output(n + 45),
};
