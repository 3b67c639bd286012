// Timing and figures. Samples are milliseconds unless a name says otherwise.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

// On the disk of the repository: the folder for temporary files may be in memory, where a sync costs nothing.
const DATA = fileURLToPath(new URL("../.cache/bench", import.meta.url));

/** Collects garbage, so that none of it is charged to whoever is timed next. */
export function collectGarbage() {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
}

/** Calls `body` with a function that gives fresh database paths; the files go when it ends. */
export async function withFiles(body) {
  mkdirSync(DATA, { recursive: true });
  const folder = mkdtempSync(join(DATA, "run-"));
  let files = 0;
  try {
    return await body(() => join(folder, `${++files}.db`));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Measures the two in turn, the bare one first, so that a slow minute of the disk hits both. */
export async function alternate(rounds, { bare, pawl }) {
  const samples = { bare: [], pawl: [] };
  for (let round = 0; round < rounds; round++) {
    for (const [name, measure] of Object.entries({ bare, pawl })) {
      collectGarbage();
      samples[name].push(await measure(round));
    }
  }
  return samples;
}

/**
 * How Pawl compares with the bare loop: the median of the rounds' ratios. The two of a round were measured within seconds of each other; the
 * machine a minute later may be another one.
 */
export function pairedRatio({ bare, pawl }) {
  return median(pawl.map((sample, round) => sample / bare[round]));
}

export async function elapsed(body) {
  const start = performance.now();
  await body();
  return performance.now() - start;
}

export function median(samples) {
  const sorted = samples.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** `median (min..max)`, each through `format`, with the unit at the end. */
export function spread(samples, unit, format = figure) {
  const [least, most] = [Math.min(...samples), Math.max(...samples)].map(format);
  return `${format(median(samples))} ${unit} (${least}..${most})`;
}

/** Three significant digits, thousands apart. */
export function figure(value) {
  return Number(value.toPrecision(3)).toLocaleString("en-US", { maximumSignificantDigits: 3 });
}

export function count(value) {
  return value.toLocaleString("en-US");
}

export function percent(ratio) {
  return `${(ratio * 100).toFixed(0)} %`;
}

export function times(ratio) {
  return `${ratio.toFixed(2)} x`;
}
