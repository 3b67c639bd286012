// Mutants: is every rule that matters held by a test?
// Takes one rule of the engine away at a time, in a scratch copy of the repository, and runs the tests that should notice. A mutant that
// survives is a missing test. The mutants are data: scripts/mutants/*.mjs.
//
//   node scripts/mutants.mjs                 all of them; exit code 1 if one survives
//   node scripts/mutants.mjs --only P18      those of a rule, or whose name contains the text; may be given several times
//   node scripts/mutants.mjs --part 2/4      the second quarter of them: for a machine that has no hour to spare in one go
//   node scripts/mutants.mjs --jobs 2        so many at a time (default 1)
//   node scripts/mutants.mjs --check         only whether each still fits the sources: seconds, part of the tests
//
// Tests that fail anyway would prove nothing, so all killers run once without any mutant first (--no-baseline leaves that out).
// All of them share one PostgreSQL server, in which each run of tests has a database of its own: to make a server takes longer than most tests.

import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { mutants } from "./mutants/all.mjs";
import { openPostgres } from "./postgres-server.mjs";
import { readOptions } from "./read-options.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const COPIED = [
  "src",
  "web",
  "test",
  "examples",
  "scripts",
  "docs",
  "package.json",
  "tsconfig.json",
  "tsconfig.build.json",
];
const LIMIT_MS = 180_000;
const TEST_LIMIT_MS = 10_000;
const HUNTED_FROM = 30_000_000;
/** Without a mutant, a test may take its time: all of them run at once. */
const BASELINE = { limitMs: 1_800_000, testMs: 120_000 };
const require = createRequire(import.meta.url);
const TSC = join(dirname(require.resolve("typescript/package.json")), "bin", "tsc");
const VITEST = join(dirname(require.resolve("vitest/package.json")), "vitest.mjs");

const options = readOptions(import.meta.url, {
  only: { type: "string", multiple: true, default: [] },
  part: { type: "string", default: "1/1" },
  jobs: { type: "string", default: "1" },
  check: { type: "boolean", default: false },
  "no-baseline": { type: "boolean", default: false },
});

const [part, parts] = options.part.split("/").map(Number);
const chosen = mutants
  .filter(
    ({ rule, name }) => options.only.length === 0 || options.only.some((text) => rule === text || name.includes(text)),
  )
  .filter((_, i) => i % parts === part - 1);
const misfits = chosen.flatMap((mutant) => [
  ...mutant.changes.flatMap((change) => whyNotFitting(mutant, change)),
  ...killersOf(mutant).flatMap((killer) => whyNoKiller(mutant, killer)),
]);
if (chosen.length === 0) misfits.push(`No mutant is called ${options.only.join(", ")} in part ${options.part}.`);
for (const misfit of misfits) console.error(misfit);
if (misfits.length > 0) process.exit(2);
if (options.check) {
  const rules = new Set(chosen.map(({ rule }) => rule));
  console.log(`${chosen.length} mutants of ${rules.size} rules fit the sources.`);
  process.exit(0);
}

/** The text to be replaced must be there exactly once, so that a mutant cannot rot into one that changes nothing. */
function whyNotFitting({ rule, name }, { file, from, to }) {
  const times = readFileSync(join(ROOT, file), "utf8").split(from).length - 1;
  if (times === 1 && from !== to) return [];
  return [`${rule} "${name}": its text is ${times} times in ${file}, not once. Mend it in scripts/mutants:\n${from}`];
}

function killersOf({ killers, alsoKilledBy = [] }) {
  return [...killers, ...alsoKilledBy];
}

function whyNoKiller({ rule, name }, { file, seeds }) {
  if (seeds !== undefined) return [];
  return existsSync(join(ROOT, file)) ? [] : [`${rule} "${name}": there is no ${file}. Name tests that are there.`];
}

// A copy of the repository in which a mutant lives

function makeScratch() {
  const folder = mkdtempSync(join(tmpdir(), "pawl-mutants-"));
  for (const path of COPIED) cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  cpSync(join(ROOT, "vitest.config.ts"), join(folder, "vitest.config.ts"));
  mkdirSync(join(folder, "bench"));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return folder;
}

function mutate(folder, { changes }) {
  for (const { file, from, to } of changes) {
    const path = join(folder, file);
    writeFileSync(
      path,
      readFileSync(path, "utf8").replace(from, () => to),
    );
  }
}

function restore(folder, { changes }) {
  for (const { file } of changes) cpSync(join(ROOT, file), join(folder, file));
}

async function compile(folder, name, ...more) {
  const incremental = ["--incremental", "--tsBuildInfoFile", join(folder, `${name}.tsbuildinfo`)];
  const { code, output } = await run(folder, [TSC, "-p", "tsconfig.build.json", ...incremental, ...more]);
  if (code !== 0) throw new Error(`It does not compile:\n${output}`);
}

/** Simulations and the child processes of tests run `dist`. */
async function build(folder) {
  await compile(folder, "build");
}

/** A mutant that is no program would prove nothing. Those that change different files are compiled together, and one by one if that fails. */
async function checkTypes(folder, list) {
  const together = { changes: list.flatMap(({ changes }) => changes) };
  mutate(folder, together);
  try {
    await compile(folder, "types", "--noEmit");
  } catch (error) {
    if (list.length === 1) return void results.set(list[0], { fate: "broken", by: error.message, seconds: 0 });
    restore(folder, together);
    for (const mutant of list) await checkTypes(folder, [mutant]);
  } finally {
    restore(folder, together);
  }
}

function ofDifferentFiles(list) {
  const sets = [];
  for (const mutant of list) {
    const files = mutant.changes.map(({ file }) => file);
    const set = sets.find((one) => !files.some((file) => one.files.has(file))) ?? { files: new Set(), mutants: [] };
    if (set.mutants.length === 0) sets.push(set);
    for (const file of files) set.files.add(file);
    set.mutants.push(mutant);
  }
  return sets.map((set) => set.mutants);
}

// Killers

/** Runs test files; says how it went and which test failed first. What only took too long is tried again if others may be the reason. */
async function attack(folder, files, title) {
  const first = await attackOnce(folder, files, title, { limitMs: LIMIT_MS, testMs: TEST_LIMIT_MS });
  if (!first.isLate || loadavg()[0] < 1.5 * availableParallelism()) return first;
  return attackOnce(folder, files, title, { limitMs: 2 * LIMIT_MS, testMs: 3 * TEST_LIMIT_MS });
}

async function attackOnce(folder, files, title, { limitMs, testMs }) {
  const report = join(folder, "report.json");
  rmSync(report, { force: true });
  const filter = title === undefined ? [] : ["-t", title];
  const reporting = ["--reporter=json", `--outputFile=${report}`];
  const limits = ["--bail=1", `--testTimeout=${testMs}`, `--hookTimeout=${testMs}`, "--teardownTimeout=5000"];
  // Most files are as they were for the mutant before.
  const cache = ["--experimental.fsModuleCache", `--experimental.fsModuleCachePath=${join(folder, "module-cache")}`];
  const args = [VITEST, "run", ...files, ...filter, ...reporting, ...limits, ...cache];
  const { code, output } = await withDatabase(files, (env) => run(folder, args, { limitMs, env }));
  if (code === null) return { isKilled: true, isLate: true, by: `${files}: did not end within ${limitMs / 1000} s` };
  const tests = readReport(report).testResults.flatMap(({ assertionResults }) => assertionResults);
  const failed = tests.find(({ status }) => status === "failed");
  const isAnyRun = tests.some(({ status }) => status === "passed") || failed !== undefined;
  if (!isAnyRun) throw new Error(`${files}${title === undefined ? "" : ` -t "${title}"`} ran no test:\n${output}`);
  const isLate = failed?.failureMessages.some((message) => message.includes("timed out in")) === true;
  if (failed !== undefined) return { isKilled: true, isLate, by: failed.fullName };
  return { isKilled: code !== 0, by: code === 0 ? "" : `${files}: an error outside the tests` };
}

let server = null;
let databases = 0;

/** A database that is empty and goes afterwards, whatever a mutant has left in it. Tests that change or crash a server have one of their own. */
async function withDatabase(files, body) {
  if (files.some((file) => readFileSync(join(ROOT, file), "utf8").includes("openPostgres("))) return body({});
  const name = `mutant_${++databases}`;
  await onServer(`create database ${name} template template0`);
  try {
    return await body({ TEST_PG_URL: new URL(`/${name}`, server.url).href });
  } finally {
    await onServer(`drop database ${name} with (force)`);
  }
}

async function onServer(statement) {
  server ??= openPostgres({ settings: { max_connections: 300 } });
  server = await server;
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query(statement).finally(() => client.end());
}

/**
 * Simulates until a check fails. One scenario with one schedule notices a rule for as long as the engine makes the very same calls; many seeds notice it
 * whatever else has changed.
 */
async function hunt(folder, seeds) {
  const args = ["--first", "--jobs", "1", "--from", String(HUNTED_FROM), "--seeds", String(seeds)];
  const simulation = [join(folder, "scripts", "simulate.mjs"), ...args];
  const { code, output } = await run(folder, simulation, { limitMs: 2 * LIMIT_MS });
  if (code === 0) return { isKilled: false, by: "" };
  const [, found] = /^(seed \d+: [^:]*)/m.exec(output) ?? [];
  if (found === undefined) throw new Error(`The simulation did not end as it should:\n${output}`);
  return { isKilled: true, by: `npm run simulate, ${found}` };
}

function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return { testResults: [] };
  }
}

/** Runs Node in a process group of its own, which ends with it: a mutant may have left children behind. */
function run(cwd, args, { limitMs = LIMIT_MS, env = {} } = {}) {
  return new Promise((resolve) => {
    const stdio = ["ignore", "pipe", "pipe"];
    const child = spawn(process.execPath, args, { cwd, detached: true, stdio, env: { ...process.env, ...env } });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text) => (output += text));
    const endGroup = () => {
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch {
        // Nobody is left in it.
      }
    };
    const timer = setTimeout(endGroup, limitMs);
    child.once("exit", (code) => {
      clearTimeout(timer);
      endGroup();
      resolve({ code, output });
    });
  });
}

// The whole

/** Most tests run the sources: they are tried before anything is built, and again with what was built if none of them has noticed. */
async function judge(folder, mutant) {
  mutate(folder, mutant);
  try {
    const isSimulated = killersOf(mutant).some(({ seeds }) => seeds !== undefined);
    const first = isSimulated ? null : await tryKillers(folder, mutant);
    if (first?.fate === "killed") return first;
    await build(folder);
    const result = await tryKillers(folder, mutant);
    restore(folder, mutant);
    await build(folder);
    return result;
  } catch (error) {
    return { fate: "broken", by: error.message };
  } finally {
    restore(folder, mutant);
  }
}

async function tryKillers(folder, mutant) {
  const by = [await firstToFail(folder, mutant.killers)];
  for (const killer of mutant.alsoKilledBy ?? []) by.push(await firstToFail(folder, [killer]));
  if (by.includes(null)) return { fate: "survived", by: by.filter((test) => test !== null).join("; ") };
  return { fate: "killed", by: by.join("; ") };
}

async function firstToFail(folder, killers) {
  for (const { file, title, seeds } of killers) {
    const { isKilled, by } = await (seeds === undefined ? attack(folder, [file], title) : hunt(folder, seeds));
    if (isKilled) return by;
  }
  return null;
}

/** All killers once, without a mutant: those of whole files, then those that are named. */
async function checkBaseline(folder) {
  const killers = chosen.flatMap(killersOf).filter(({ file }) => file !== undefined);
  const whole = new Set(killers.filter(({ title }) => title === undefined).map(({ file }) => file));
  const named = killers.filter(({ file }) => !whole.has(file));
  const titles = new Set(named.map(({ title }) => `(?:${title})`));
  await checkUnharmed(folder, whole);
  await checkUnharmed(folder, new Set(named.map(({ file }) => file)), [...titles].join("|"));
}

async function checkUnharmed(folder, files, title) {
  if (files.size === 0) return;
  const { isKilled, by } = await attackOnce(folder, [...files], title, BASELINE);
  if (isKilled) throw new Error(`This fails without any mutant, too, so that it proves nothing: ${by}`);
}

const started = performance.now();
const folders = Array.from({ length: Math.max(1, Number(options.jobs)) }, makeScratch);
const results = new Map();
try {
  for (const folder of folders) await build(folder);
  if (!options["no-baseline"]) await checkBaseline(folders[0]);
  for (const set of ofDifferentFiles(chosen)) await checkTypes(folders[0], set);
  for (const [mutant, result] of results) console.log(lineOf(mutant, result));
  const queue = chosen.filter((mutant) => !results.has(mutant));
  await Promise.all(
    folders.map(async (folder) => {
      for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
        const from = performance.now();
        const result = { ...(await judge(folder, mutant)), seconds: (performance.now() - from) / 1000 };
        results.set(mutant, result);
        console.log(lineOf(mutant, result));
      }
    }),
  );
} finally {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  await (await server)?.stop();
}
printTable();
process.exitCode = [...results.values()].every(({ fate }) => fate === "killed") ? 0 : 1;

function lineOf({ rule, name }, { fate, by, seconds }) {
  return `${fate.padEnd(8)} ${rule.padEnd(8)} ${name} (${seconds.toFixed(1)} s)${by === "" ? "" : `\n         by: ${by}`}`;
}

function printTable() {
  const count = (fate) => [...results.values()].filter((result) => result.fate === fate).length;
  console.log("\n| Rule | Without it | Fate | First test to fail |\n|---|---|---|---|");
  for (const mutant of chosen) {
    const { fate, by } = results.get(mutant);
    console.log(`| ${mutant.rule} | ${mutant.name} | ${fate} | ${by.split("\n")[0].replaceAll("|", "\\|")} |`);
  }
  const seconds = Math.round((performance.now() - started) / 1000);
  console.log(`\n${count("killed")} killed, ${count("survived")} survived, ${count("broken")} broken, ${seconds} s`);
}
