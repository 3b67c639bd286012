// Chaos: real processes on one SQLite file, killed, frozen, starved and misled for a while, and a judge who counts outside effects.
// `npm run chaos` builds first. See docs/reliability.md for what is judged.
//
//   --minutes N, --seconds N   how long the storm lasts; 10 minutes
//   --seed TEXT                repeats what is drawn, not when processes get to run
//   --workers N, --rate N      processes that work, 4; runs started per second, 6
//   --other DIR                the dist folder of another build, which every second process runs
//   --keep                     keep the folder of a good trial, too
//   --judge DIR                judge the folder of an earlier trial once more
//   --json                     the report as one JSON object on the last line

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { sqliteStore } from "../dist/index.js";
import { FILES, Judge } from "./chaos/judge.mjs";
import { say, tell } from "./chaos/report.mjs";
import { Trial } from "./chaos/trial.mjs";
import { readOptions } from "./read-options.mjs";

const values = readOptions(import.meta.url, {
  minutes: { type: "string" },
  seconds: { type: "string" },
  seed: { type: "string" },
  workers: { type: "string", default: "4" },
  rate: { type: "string", default: "6" },
  other: { type: "string" },
  judge: { type: "string" },
  keep: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
});

function positive(name, text) {
  const number = Number(text);
  if (Number.isFinite(number) && number > 0) return number;
  throw new Error(`--${name} is "${text}". Give a number above 0.`);
}

async function judgeAgain(folder) {
  const judge = new Judge(folder, sqliteStore(join(folder, FILES.store)));
  await judge.store.open();
  await judge.judgeAll();
  await judge.store.close();
  tell(
    {
      injected: judge.evidence.faults,
      reached: new Map(),
      judged: judge.judged,
      violations: judge.violations,
      figures: {},
    },
    folder,
    values.json,
  );
}

async function tryOnce() {
  const seed = values.seed ?? String(Math.floor(Math.random() * 1e9));
  const stormMs =
    values.seconds === undefined
      ? positive("minutes", values.minutes ?? "10") * 60_000
      : positive("seconds", values.seconds) * 1000;
  const folder = mkdtempSync(join(tmpdir(), "pawl-chaos-"));
  const otherBuild = values.other === undefined ? null : resolve(values.other);
  const options = {
    seed,
    stormMs,
    workers: positive("workers", values.workers),
    perSecond: positive("rate", values.rate),
    otherBuild,
  };
  say(`Chaos for ${stormMs / 1000} s, seed ${seed}, in ${folder}`);
  const trial = new Trial(folder, options, say);
  const startedAt = performance.now();
  await trial.run();
  say(`Over after ${((performance.now() - startedAt) / 1000).toFixed(1)} s.\n`);
  const { injected, reached, figures } = trial;
  const { judged, violations } = trial.judge;
  tell({ injected, reached, judged, violations, figures }, folder, values.json);
  const isKept = values.keep || violations.length > 0;
  if (isKept) say(`Everything is kept in ${folder}; judge it again with --judge ${folder}`);
  else rmSync(folder, { recursive: true, force: true });
}

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
if (process.platform === "win32") throw new Error("Chaos freezes processes with SIGSTOP, which Windows does not have.");
await (values.judge === undefined ? tryOnce() : judgeAgain(resolve(values.judge)));
