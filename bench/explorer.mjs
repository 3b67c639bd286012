// How long it takes to crash a workflow everywhere
// Prints, for a sequence of steps of some lengths, what `crashEverywhere` has played and how long that took. Sizes may be given: `-- 100 1000`.
// Those below a thousand are measured one after the other in each of several processes: much of it is code that is not optimized yet, as in
// a file of tests, and machines are noisy.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { workflow } from "pawl";
import { crashEverywhere, recorder } from "pawl/testing";
import { median, spread } from "./measure.mjs";

/** How long it may take, in seconds. */
const GOALS = new Map([
  [100, 2],
  [1000, 60],
]);
const SIZES = [10, 100, 1000];
const ROUNDS = 7;
const MANY = 1000;

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

async function explore(steps) {
  const { sequence, outside } = sequenceOf(steps);
  const begun = performance.now();
  const report = await crashEverywhere(sequence, undefined, { recorder: outside });
  const seconds = (performance.now() - begun) / 1000;
  if (!report.ok) throw new Error(report.toString());
  const { points, explored, skipped, left } = report;
  return { steps, seconds, points: points.length, explored, skipped, left };
}

function inFreshProcess(sizes) {
  const { stdout, status } = spawnSync(
    process.execPath,
    [fileURLToPath(import.meta.url), "--once", ...sizes.map(String)],
    {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  if (status !== 0) throw new Error(`Exploring ${sizes.join(" and ")} steps failed.`);
  return JSON.parse(stdout);
}

function tell(rounds) {
  const [{ steps, points, explored, skipped, left }] = rounds;
  const seconds = rounds.map((round) => round.seconds);
  const goal = GOALS.get(steps);
  const verdict = goal === undefined ? "" : `, goal ${goal} s: ${median(seconds) < goal ? "met" : "missed"}`;
  console.log(
    `${steps} steps: ${points} points, ${explored} histories, ${skipped} skipped, ${left} left out, ` +
      `${spread(seconds, "s", (value) => value.toFixed(2))}${verdict}`,
  );
}

const [first, ...rest] = process.argv.slice(2);
if (first === "--once") {
  const explored = [];
  for (const steps of rest) explored.push(await explore(Number(steps)));
  console.log(JSON.stringify(explored));
} else {
  const given = [first, ...rest].map(Number).filter((size) => size > 0);
  const sizes = given.length > 0 ? given : SIZES;
  const few = sizes.filter((size) => size < MANY);
  const rounds = Array.from({ length: few.length > 0 ? ROUNDS : 0 }, () => inFreshProcess(few));
  for (const i of few.keys()) tell(rounds.map((round) => round[i]));
  for (const steps of sizes.filter((size) => size >= MANY)) tell(inFreshProcess([steps]));
}
