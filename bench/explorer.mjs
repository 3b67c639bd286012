// How long it takes to crash a workflow everywhere
// Prints, for a sequence of steps of some lengths, what `crashEverywhere` has played and how long that took. Sizes may be given: `-- 100 1000`.
import { workflow } from "pawl";
import { crashEverywhere, recorder } from "pawl/testing";

/** How long it may take at most, in seconds. */
const GOALS = new Map([
  [100, 2],
  [1000, 60],
]);
const SIZES = [10, 100, 1000];

function sequenceOf(steps) {
  const outside = recorder();
  const sequence = workflow("sequence", async (ctx) => {
    let sum = 0;
    for (let i = 0; i < steps; i++) {
      sum += await ctx.step(`step ${i}`, ({ key }) => {
        outside.record("act", { i }, key);
        return i;
      });
    }
    return sum;
  });
  return { sequence, outside };
}

const sizes = process.argv
  .slice(2)
  .map(Number)
  .filter((size) => size > 0);

for (const steps of sizes.length > 0 ? sizes : SIZES) {
  const { sequence, outside } = sequenceOf(steps);
  const begun = performance.now();
  const cpu = process.cpuUsage();
  const report = await crashEverywhere(sequence, undefined, { recorder: outside });
  const seconds = (performance.now() - begun) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  if (!report.ok) throw new Error(report.toString());
  const goal = GOALS.get(steps);
  const verdict = goal === undefined ? "" : ` (goal ${goal} s: ${seconds <= goal ? "met" : "missed"})`;
  console.log(
    `${steps} steps: ${report.points.length} points, ${report.explored} histories, ${report.skipped} skipped, ${report.left} left out, ` +
      `${seconds.toFixed(2)} s${verdict}, ${((user + system) / 1e6).toFixed(2)} s of processor time`,
  );
}
