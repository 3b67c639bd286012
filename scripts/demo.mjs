// The demonstration: a worker is killed with SIGKILL in mid-flight and started again, and a picture shows what became of it.
// `npm run demo` builds first. Everything happens in a folder of its own, which is removed at the end.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import color from "picocolors";
import { Pawl } from "../dist/index.js";

const CUSTOMERS = 96;
const path = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "pawl-demo-"));
const store = join(folder, "pawl.db");
const ledgerFile = join(folder, "ledger.jsonl");
const order = { id: "order-17", cents: 4200, email: "ada@example.com" };

const say = (text = "") => process.stdout.write(`${text}\n`);
const bullet = (text) => say(`  ${color.dim("›")} ${text}`);

// Acting

async function startWorker() {
  const files = ["examples/01-checkout/workflow.ts", "examples/02-batch/workflow.ts"].map(path);
  const env = { ...process.env, LEDGER: ledgerFile, FAKES_LATENCY_MS: "150" };
  const child = spawn(process.execPath, [path("dist/cli/main.js"), "worker", ...files, "--store", store, "--json"], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  await Promise.race([
    once(lines, "line"),
    once(child, "exit").then(() => Promise.reject(new Error("the worker did not start"))),
  ]);
  return child;
}

async function stop(child, signal) {
  const gone = once(child, "exit");
  child.kill(signal);
  await gone;
}

function ledger() {
  const text = existsSync(ledgerFile) ? readFileSync(ledgerFile, "utf8") : "";
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** Resolves as soon as the outside world has seen enough. */
function ledgerShows(isEnough) {
  return new Promise((resolve) => {
    const watcher = watch(ledgerFile, look);
    function look() {
      if (!isEnough(ledger())) return;
      watcher.close();
      resolve();
    }
    look();
  });
}

async function act() {
  writeFileSync(ledgerFile, "");
  const pawl = await Pawl.open(store);
  const first = await startWorker();
  const startedAt = Date.now();
  bullet(`worker ${color.bold(first.pid)} works on a batch of ${CUSTOMERS} invoices and a checkout`);
  const batch = await pawl.start("invoices", { month: "2031-05", customers: CUSTOMERS });
  await ledgerShows((lines) => lines.length > CUSTOMERS / 2);
  const checkout = await pawl.start("checkout", order);
  await ledgerShows((lines) => lines.some(({ action }) => action === "charge"));
  await stop(first, "SIGKILL");
  const killedAt = Date.now();
  bullet(`the bank has charged, its answer is on the way … ${color.red(color.bold(`kill -9 ${first.pid}`))}`);

  const second = await startWorker();
  const restartedAt = Date.now();
  bullet(`worker ${color.bold(second.pid)} starts on the same file and goes on`);
  await Promise.all([batch.result(), checkout.result()]);
  const journals = { batch: await batch.journal(), checkout: await checkout.journal() };
  await stop(second, "SIGTERM");
  await pawl.close();
  const endedAt = Math.max(...Object.values(journals).map((journal) => journal.at(-1).at));
  return { first: first.pid, second: second.pid, startedAt, killedAt, restartedAt, endedAt, ...journals };
}

// Reading

/** When each attempt of each step began and ended; an attempt that the kill cut off has no end. */
function attemptsOf(journal) {
  const attempts = [];
  for (const { type, key, at } of journal) {
    if (type === "step.started") attempts.push({ key, from: at, to: null });
    if (type === "step.completed") attempts.findLast((one) => one.key === key).to = at;
  }
  return attempts;
}

function countEffects(lines) {
  const counts = new Map();
  for (const { action, did } of lines) {
    const count = counts.get(action) ?? { asked: 0, done: 0 };
    count.asked += 1;
    if (did) count.done += 1;
    counts.set(action, count);
  }
  return counts;
}

// Drawing

const LABEL = 13;
const WIDTH = Math.max(56, Math.min(88, (process.stdout.columns ?? 100) - LABEL - 4));
/** The time between two lives is not to scale: it is the machine's, not Pawl's. */
const DOWN = 13;
const label = (text) => `  ${text.padEnd(LABEL)}`;
const before = color.green;
const again = color.yellow;
const after = color.cyan;

/** Two lives, drawn to one scale, and the gap between them. */
function scale({ startedAt, killedAt, restartedAt, endedAt }) {
  const first = killedAt - startedAt;
  const perColumn = (first + endedAt - restartedAt) / (WIDTH - DOWN);
  const kill = Math.max(14, Math.round(first / perColumn));
  const restart = kill + DOWN;
  const column = (at) => {
    if (at <= killedAt) return Math.round(((at - startedAt) / first) * kill);
    return Math.min(
      WIDTH - 1,
      restart + Math.floor(((at - restartedAt) / (endedAt - restartedAt)) * (WIDTH - restart)),
    );
  };
  return { column, kill, restart };
}

/** A row of cells, with the kill and the gap behind them. */
function row({ kill, restart }, cells) {
  return Array.from({ length: WIDTH }, (_, i) => {
    if (cells[i] !== undefined) return cells[i];
    if (i === kill) return color.red("┃");
    return i > kill && i < restart - 1 ? color.dim("·") : " ";
  }).join("");
}

function write(cells, column, text, paint = (letter) => letter) {
  [...text].forEach((letter, i) => {
    if (column + i < WIDTH) cells[column + i] = paint(letter);
  });
}

function bar(axis, attempts, killedAt) {
  const cells = [];
  for (const { from, to } of attempts) {
    const isCut = to === null;
    const end = isCut ? axis.kill : axis.column(to);
    const paint = attempts.length > 1 ? again : from > killedAt ? after : before;
    for (let i = axis.column(from); i <= end; i++) cells[i] = paint("━");
    if (isCut) cells[end] = color.red("╳");
  }
  return row(axis, cells);
}

const STEPS = " ▁▂▃▄▅▆▇█";

/** How many were recorded by each moment, of all there are. */
function growth(axis, attempts) {
  const ends = attempts.flatMap(({ to }) => (to === null ? [] : [axis.column(to)]));
  const cells = Array.from({ length: WIDTH }, (_, i) => {
    const share = ends.filter((end) => end <= i).length / ends.length;
    if (share === 0 || (i >= axis.kill && i < axis.restart)) return undefined;
    return (i < axis.kill ? before : after)(STEPS[Math.ceil(share * 8)]);
  });
  return row(axis, cells);
}

function drawLives(axis, { first, second, startedAt, killedAt, restartedAt, endedAt }) {
  const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
  const names = [];
  write(names, 0, `worker ${first}`, color.bold);
  write(names, axis.kill, "✖ kill -9", color.red);
  write(names, axis.restart, `worker ${second}`, color.bold);
  say(label("") + row(axis, names));
  const times = [];
  write(times, 0, `lived ${seconds(killedAt - startedAt)}`, color.dim);
  write(times, axis.kill + 2, `dead ${seconds(restartedAt - killedAt)}`, color.dim);
  write(times, axis.restart, `goes on, done after ${seconds(endedAt - restartedAt)}`, color.dim);
  say(label("") + row(axis, times));
}

function squares(count, paint, text) {
  const perLine = Math.max(20, WIDTH - 44);
  for (let i = 0; i < Math.max(1, Math.ceil(count / perLine)); i++) {
    const here = Math.min(perLine, count - i * perLine);
    say(label("") + paint("■".repeat(here)) + " ".repeat(perLine - here + 2) + (i === 0 ? text : ""));
  }
}

function draw(story) {
  const axis = scale(story);
  const checkout = attemptsOf(story.checkout);
  const batch = attemptsOf(story.batch).filter(({ key }) => key !== "customers");
  const cut = new Set(batch.filter(({ to }) => to === null).map(({ key }) => key));
  const done = batch.filter(({ to }) => to !== null && to <= story.killedAt).length;
  say();
  drawLives(axis, story);
  say(label("") + row(axis, []));
  say(color.bold(label("checkout")) + row(axis, []));
  for (const name of ["charge", "receipt"]) {
    const attempts = checkout.filter(({ key }) => key === name);
    say(label(`  ${name}`) + bar(axis, attempts, story.killedAt));
  }
  say(label("") + row(axis, []));
  say(color.bold(label("invoices")) + row(axis, []));
  say(label("  recorded") + growth(axis, batch));
  say();
  squares(done, before, `${done} recorded before the kill: not run again`);
  squares(cut.size, again, `${cut.size} in flight: run again with the same key`);
  squares(CUSTOMERS - done - cut.size, after, `${CUSTOMERS - done - cut.size} not begun yet: run after the restart`);
  say();
}

/** The ledger has the last word: true if each effect happened exactly once. */
function drawEffects() {
  const wanted = {
    charge: [1, "charge of the card"],
    mail: [1, "receipt by mail"],
    invoice: [CUSTOMERS, "invoices"],
  };
  const counts = countEffects(ledger());
  say(color.bold(label("The outside world has seen")));
  for (const [action, [count, name]] of Object.entries(wanted)) {
    const { asked = 0, done = 0 } = counts.get(action) ?? {};
    const mark = done === count ? color.green("✔") : color.red("✖");
    const repeats = asked > done ? color.dim(`  asked ${asked} times: known keys change nothing`) : "";
    say(`${label("")}${mark} ${String(done).padStart(2)} ${name}${repeats}`);
  }
  return Object.entries(wanted).every(([action, [count]]) => counts.get(action)?.done === count);
}

try {
  say();
  say(`  ${color.bold("Pawl")}: kill it anywhere, start it again`);
  say();
  draw(await act());
  const isRight = drawEffects();
  say();
  say(
    isRight
      ? `  ${color.green(color.bold("Every effect happened once."))}`
      : `  ${color.red(color.bold("Something happened twice, or not at all."))}`,
  );
  say();
  process.exitCode = isRight ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
