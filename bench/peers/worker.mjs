// The process that is measured, killed and started again: one peer's engine, told by the driver what to do.
// A peer is a module with `open({ place, body, inFlight })`: where it keeps its runs, what its steps call with their input and index, and how many
// runs it will have to do at a time. It gives an engine:
//
//   run(input)              a run of `input.steps` steps from start to result
//   start(workflow, input)  a durable start of "steps" or "sleeper" (one step, then thirty days); gives a token
//   result(token)           waits for the end of that run, also in another process than the one that started it
//   close()
//
// One on PostgreSQL also exports `drop(place)`, which deletes what it has left there.
import { closeSync, openSync, writeSync } from "node:fs";
import { closedLoop } from "../closed-loop.mjs";

const { adapter, place, inFlight, ledger, gate, isLast } = JSON.parse(process.argv[2]);
const { open, drop } = await import(adapter);
if (isLast) {
  await drop(place);
  process.exit(0);
}

let onStep = (_input, index) => index;
// A run that stood at the gate may be there again before anybody has asked for it.
const gateReached = gate === undefined ? null : holdAt(gate);
const book = ledger === undefined ? null : openSync(ledger, "a");
const body = async (input, index) => {
  if (book !== null) writeSync(book, `${input.run} ${index}\n`);
  return onStep(input, index);
};

const engine = await open({ place, body, inFlight });
let serial = 0;
process.on("message", async ({ id, method, argument }) => {
  try {
    process.send({ id, value: await methods[method](argument) });
  } catch (error) {
    process.send({ id, error: error?.stack ?? String(error) });
  }
});
process.once("disconnect", () => process.exit(1));
process.send({ ready: true });

const methods = {
  /** Runs in a closed loop until there are enough of them or the time is over. */
  async load({ runs, steps, inFlight, limitMs = Number.POSITIVE_INFINITY }) {
    const start = performance.now();
    let done = 0;
    const isOver = () => performance.now() - start > limitMs;
    await closedLoop(
      runs,
      inFlight,
      async () => {
        await engine.run({ run: `load-${++serial}`, steps });
        done += 1;
      },
      isOver,
    );
    return { runs: done, ms: performance.now() - start };
  },

  /** One run after the other; how long each took. */
  async latencies({ runs, limitMs }) {
    const samples = [];
    const start = performance.now();
    while (samples.length < runs && performance.now() - start < limitMs) {
      const before = performance.now();
      await engine.run({ run: `one-${++serial}`, steps: 1 });
      samples.push(performance.now() - before);
    }
    return samples;
  },

  /**
   * Starts runs and lets no step pass before all of them are durable. Tells when half of the steps are recorded, which is when the driver kills
   * this process: a step that starts shows that the one before it is recorded.
   */
  async startToHalf({ runs, steps }) {
    let open;
    const allStarted = new Promise((resolve) => {
      open = resolve;
    });
    let recorded = 0;
    onStep = async (_input, index) => {
      await allStarted;
      if (index > 0 && ++recorded === (runs * steps) / 2) process.send({ id: "half" });
      return index;
    };
    const tokens = [];
    await closedLoop(runs, 64, async () => {
      tokens.push(await engine.start("steps", { run: `run-${++serial}`, steps }));
    });
    setTimeout(open, 100); // By then the driver has the tokens.
    return tokens;
  },

  async results(tokens) {
    await Promise.all(tokens.map((token) => engine.result(token)));
  },

  async startLong({ steps }) {
    await engine.start("steps", { run: "long", steps });
  },

  /** Answers when the step at the gate, which never ends, has begun. */
  async waitForGate() {
    await gateReached;
  },

  async sleepers({ runs, inFlight, limitMs, settleMs }) {
    let asleep = 0;
    let tell;
    const allAsleep = new Promise((resolve) => {
      tell = resolve;
    });
    let started = 0;
    let isStarted = false;
    const check = () => isStarted && asleep >= started && tell();
    onStep = (_input, index) => {
      asleep += 1;
      check();
      return index;
    };
    const start = performance.now();
    await closedLoop(
      runs,
      inFlight,
      async () => {
        await engine.start("sleeper", { run: `sleeper-${++serial}`, steps: 1 });
        started += 1;
      },
      () => performance.now() - start > limitMs,
    );
    isStarted = true;
    check();
    await allAsleep;
    await new Promise((resolve) => setTimeout(resolve, settleMs));
    return { runs: started, ms: performance.now() - start - settleMs };
  },

  memory() {
    globalThis.gc();
    globalThis.gc();
    return process.memoryUsage().rss;
  },

  async close() {
    await engine.close();
    if (book !== null) closeSync(book);
    setImmediate(() => process.exit(0));
  },
};

function holdAt(gate) {
  return new Promise((resolve) => {
    onStep = (_input, index) => {
      if (index < gate) return index;
      resolve();
      return new Promise(() => {});
    };
  });
}
