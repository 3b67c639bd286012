// Simulates many seeds and says what was found.
//
//   npm run simulate -- --seeds 100000    so many; without it 1,000, or as many as the time allows
//     --from 1          the first of them
//     --seconds 60      for that long at the most
//     --jobs 2          processes
//     --twice           each one twice: both traces must be equal
//     --first           a process ends with the first violation that it finds
//   npm run simulate -- --seed 17           one, and everything that can be said about it
//     --shrink          what fails is made small; --save NAME also writes it into test/simulation/book
//     --trace 200       so many of its last events
import { fork } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { describeScenario, drawScenario, SITUATIONS, shrinkScenario, simulate } from "../dist/testing/index.js";
import { readOptions } from "./read-options.mjs";

// Simulated stores refuse a lot, and nobody looks at where.
Error.stackTraceLimit = 0;

const values = readOptions(import.meta.url, {
  seeds: { type: "string" },
  from: { type: "string", default: "1" },
  seconds: { type: "string" },
  jobs: { type: "string", default: String(Math.min(2, availableParallelism())) },
  seed: { type: "string" },
  twice: { type: "boolean", default: false },
  shrink: { type: "boolean", default: false },
  save: { type: "string" },
  trace: { type: "string", default: "60" },
  share: { type: "string" },
  first: { type: "boolean", default: false },
});

for (const name of ["seeds", "from", "seconds", "jobs", "seed", "trace"]) if (values[name] !== undefined) whole(name);

if (values.seed !== undefined) await one(whole("seed"));
else if (values.share !== undefined) await share(values.share);
else await all();

/** One seed, with everything that can be said about it. */
async function one(seed) {
  let report = await simulate(drawScenario(seed));
  if (values.twice) await compare(report);
  if (report.violation !== null && (values.shrink || values.save !== undefined)) {
    console.log("shrinking …");
    report = (await shrinkScenario(report.scenario)) ?? report;
  }
  console.log(describeScenario(report.scenario));
  console.log(`\n${report.trace.slice(-whole("trace")).join("\n")}\n`);
  console.log(`${report.events} events, ${(report.simulatedMs / 1000).toFixed(1)} s simulated`);
  console.log(report.violation === null ? "no violation" : `${report.violation.invariant}: ${report.violation.what}`);
  if (values.save !== undefined) await save(values.save, report);
  process.exitCode = report.violation === null ? 0 : 1;
}

async function compare(report) {
  const again = await simulate(report.scenario);
  if (again.trace.join("\n") === report.trace.join("\n")) return true;
  const at = report.trace.findIndex((line, i) => line !== again.trace[i]);
  console.log(
    `seed ${report.scenario.seed} took two ways, from event ${at} on:\n${report.trace[at]}\n${again.trace[at]}`,
  );
  process.exitCode = 1;
  return false;
}

async function save(name, { scenario, violation }) {
  const folder = fileURLToPath(new URL("../test/simulation/book/", import.meta.url));
  await mkdir(folder, { recursive: true });
  const page = { what: `${violation?.invariant}: ${violation?.what}`, scenario };
  await writeFile(`${folder}${name}.json`, `${JSON.stringify(page, null, 2)}\n`);
  console.log(`saved as test/simulation/book/${name}.json`);
}

/** Every so-manieth seed; tells its parent how it went. */
async function share(text) {
  const [index, jobs] = text.split("/").map(Number);
  const until = performance.now() + (values.seconds === undefined ? Number.POSITIVE_INFINITY : whole("seconds") * 1000);
  const end = whole("from") + seedCount();
  for (let seed = whole("from") + index; seed < end && performance.now() < until; seed += jobs) {
    const report = await simulate(drawScenario(seed));
    const isSame = !values.twice || (await compare(report));
    const { events, simulatedMs, violation, sometimes } = report;
    await new Promise((resolve) =>
      process.send({ seed, events, simulatedMs, violation, isSame, sometimes: [...sometimes] }, resolve),
    );
    if (values.first && (violation !== null || !isSame)) break;
  }
  process.disconnect();
}

function seedCount() {
  if (values.seeds !== undefined) return whole("seeds");
  return values.seconds === undefined ? 1000 : Number.POSITIVE_INFINITY;
}

async function all() {
  const jobs = whole("jobs");
  const sum = { seeds: 0, events: 0, simulatedMs: 0, bad: 0, sometimes: new Map() };
  const begun = performance.now();
  console.log(`seeds from ${values.from}, ${jobs} at once`);
  const args = process.argv.slice(2);
  await Promise.all(
    Array.from({ length: jobs }, (_, i) => run([...args, "--share", `${i}/${jobs}`], (report) => take(sum, report))),
  );
  tell(sum, (performance.now() - begun) / 1000, jobs);
  process.exitCode = sum.bad > 0 ? 1 : 0;
}

function run(args, take) {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(import.meta.url), args);
    child.on("message", take);
    child.on("exit", (code) =>
      code === 0 || code === 1 ? resolve() : reject(new Error(`a simulation ended with ${code}`)),
    );
  });
}

function take(sum, { seed, events, simulatedMs, violation, isSame, sometimes }) {
  sum.seeds++;
  sum.events += events;
  sum.simulatedMs += simulatedMs;
  for (const [what, times] of sometimes) {
    const [seeds, all] = sum.sometimes.get(what) ?? [0, 0];
    sum.sometimes.set(what, [seeds + 1, all + times]);
  }
  if (violation === null && isSame) return;
  sum.bad++;
  console.log(`seed ${seed}: ${violation === null ? "took two ways" : `${violation.invariant}: ${violation.what}`}`);
  console.log(`  npm run simulate -- --seed ${seed} --shrink`);
}

function tell({ seeds, events, simulatedMs, bad, sometimes }, seconds, jobs) {
  for (const what of SITUATIONS) {
    const [inSeeds, times] = sometimes.get(what) ?? [0, 0];
    if (inSeeds > 0) console.log(`${String(times).padStart(9)} times in ${String(inSeeds).padStart(7)} seeds: ${what}`);
  }
  const never = SITUATIONS.filter((what) => !sometimes.has(what));
  console.log(never.length === 0 ? "every rare situation was reached" : `never reached: ${never.join("; ")}`);
  const perSecond = seeds / seconds;
  console.log(
    `${seeds} seeds in ${seconds.toFixed(1)} s (${perSecond.toFixed(0)}/s, ${(perSecond / jobs).toFixed(0)}/s per process), ` +
      `${events} events, ${(simulatedMs / 3_600_000).toFixed(1)} h simulated, ${bad} violations`,
  );
}

function whole(name) {
  const number = Number(values[name]);
  if (Number.isInteger(number) && number >= 0) return number;
  console.error(`--${name} is ${values[name]}. Give a whole number.`);
  process.exit(2);
}
