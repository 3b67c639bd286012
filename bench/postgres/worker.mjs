// One worker process: opens an engine, and does what it is asked for, message by message.
import { Pawl, postgresStore } from "pawl";
import { childArgument } from "../child.mjs";
import { closedLoop } from "../closed-loop.mjs";
import { runSteps } from "../load.mjs";
import { sleeper, steps } from "../workflows.mjs";

const { url, schema, inFlight, steps: perRun } = childArgument();
const options = { workflows: [steps, sleeper], concurrency: 4096, retention: false };
const pawl = await Pawl.open(postgresStore(url, { schema }), options);
process.send({ isOpen: true });

process.on("message", async ({ load, memory, close }) => {
  if (close) {
    await pawl.close();
    return process.send({}, () => process.disconnect());
  }
  if (memory) {
    globalThis.gc();
    return process.send({ bytes: process.memoryUsage().rss });
  }
  const start = performance.now();
  const cpu = process.cpuUsage();
  let runs = 0;
  const isOver = () => performance.now() - start > load;
  await closedLoop(
    Number.POSITIVE_INFINITY,
    inFlight,
    async () => {
      await runSteps(pawl, perRun);
      runs += 1;
    },
    isOver,
  );
  const used = process.cpuUsage(cpu);
  process.send({ ms: performance.now() - start, runs, cpu: (used.user + used.system) / 1e6 });
});
