// The cold start of every run
// Whatever a test makes an engine do, the runs that it leaves must be reproduced by their code: the recorded end of each is withheld and must be
// derived again, and what has not ended must be followed to where it stands (I5). No test has to ask for it; one that breaks determinism or
// damages journals on purpose opts out and says why.
//
//   CS1. An engine answers for the runs whose last entry it has written itself, with the code it had.
//   CS2. Journals are read when an engine closes, and replayed when all tests of the file are over: what bodies do then disturbs no test.
//   CS3. A killed engine is answered for by the next one that closes on the same store. After a few that have closed on others, its own store is
//        taken to be gone: else each engine would ask for the runs of all that were killed before it.
//   CS4. What other processes have left in a SQLite file is read when their test is over, and answered for by the code of their modules.
import { appendFileSync, existsSync } from "node:fs";
import { expect } from "vitest";
import { collectWorkflows } from "../src/cli/load.ts";
import { DEFAULT_STORE, storeOf } from "../src/client/open-store.ts";
import { Pawl } from "../src/client/pawl.ts";
import type { PawlOptions } from "../src/client/pawl-options.ts";
import type { Commit, RunRow, Store, Verdict } from "../src/core/store.ts";
import type { Workflow } from "../src/core/workflow.ts";
import { sqliteStore } from "../src/stores/sqlite/sqlite-store.ts";
import { type ExportedRun, exportRun, replay } from "../src/testing/index.ts";
import { Registry } from "../src/worker/registry.ts";

/** Runs of one engine, or of one file, that are looked at; tests of capacity make thousands of the same kind. */
const MAX_RUNS = 2000;
/** Longer journals are left to the tests that are about them: they are read and replayed there. */
const MAX_ENTRIES = 5000;
/** More than any test leaves in a file. */
const MAX_ROWS = 100_000;
const AT_ONCE = 100;
/** A store that does not answer must not hold its test up. */
const READ_MS = 2000;
/** A file is read when its test is over; this is only for one that never lets itself be read. */
const READ_FILE_MS = 30_000;
/** A body that awaits something of its own is given more time before it counts as quiet: the machine may be busy. */
const QUIET_MS = 200;
const PATIENT_MS = 10_000;
const WHOLE_FILE = "";
/** More than the other stores that a test uses beside that of an engine it has killed. */
const MAX_STRANGERS = 5;

const { setTimeout: startTimer, clearTimeout: stopTimer } = globalThis;

/** The last entry of a run that an engine has written. */
interface Written {
  readonly head: number;
  readonly hash: string;
}

interface Engine {
  readonly test: string;
  readonly workflows: readonly Workflow[];
  readonly redact: PawlOptions["redact"];
  readonly written: Map<string, Written>;
  /** Engines that have closed since on stores that know nothing of its runs. */
  strangers: number;
}

interface Recorded {
  readonly test: string;
  readonly workflow: Workflow;
  readonly run: ExportedRun;
  readonly redact?: PawlOptions["redact"];
  readonly isOfChild?: boolean;
}

const engines = new Map<Pawl, Engine>();
const recorded: Recorded[] = [];
const optedOut = new Map<string, string>();
const tally = { checked: 0, open: 0, ofChildren: 0, passedOver: 0, unreadable: 0, withoutCode: 0, optedOut: 0 };

/** How long reading files has taken: it is a part of what the check costs. */
let readingMs = 0;

/** Leaves the runs of this test out, or at the top of a file those of all its tests; `reason` is printed with the count. */
export function withoutColdStart(reason: string): void {
  optedOut.set(currentTest(), reason);
}

function currentTest(): string {
  return expect.getState().currentTestName ?? WHOLE_FILE;
}

const { open } = Pawl;
const { close } = Pawl.prototype;

/** Has every engine of this test file answer for its runs. */
export function watchEngines(): void {
  Pawl.open = async (url?: string | Store | PawlOptions, options: PawlOptions = {}) => {
    if (typeof url === "object" && !("commit" in url)) return Pawl.open(undefined, url);
    const store = typeof url === "object" ? url : withoutPulse(url ?? DEFAULT_STORE, options);
    const workflows = (options.workflows ?? []) as readonly Workflow[];
    const engine: Engine = { test: currentTest(), workflows, redact: options.redact, written: new Map(), strangers: 0 };
    const pawl = await open.call(Pawl, watched(store, engine), options);
    engines.set(pawl, engine);
    return pawl;
  };
  const closing = new WeakMap<Pawl, Promise<void>>();
  Pawl.prototype.close = function (options) {
    const known = closing.get(this) ?? closeAndRead(this, () => close.call(this, options));
    closing.set(this, known);
    return known;
  };
}

/** The same store, whose commits are noted. */
function watched(store: Store, engine: Engine): Store {
  const commit = async (batch: Commit): Promise<Verdict[]> => {
    const verdicts = await store.commit(batch);
    for (const [index, { run, entries }] of batch.runs.entries()) {
      const last = entries.at(-1);
      if (verdicts[index]?.kind === "applied" && last !== undefined)
        engine.written.set(run, { head: last.seq + 1, hash: last.hash });
    }
    return verdicts;
  };
  return new Proxy(store, { get: (target, name) => (name === "commit" ? commit : Reflect.get(target, name, target)) });
}

/** The store at an address. A thread for the heartbeats of each takes most of what most engines here take: tests of processes and pulses have it. */
function withoutPulse(address: string, options: PawlOptions): Store {
  const { pulse: _, ...store } = storeOf(address, options);
  return store;
}

/** Closes the engine, and holds its store open until the journals are read. */
async function closeAndRead(pawl: Pawl, shut: () => Promise<void>): Promise<void> {
  if (!engines.has(pawl)) return shut();
  const isHeld = await pawl.store.open().then(
    () => true,
    () => false,
  );
  try {
    await shut();
    if (isHeld) await inTime(readAll(pawl), READ_MS);
  } finally {
    engines.delete(pawl);
    if (isHeld) await pawl.store.close();
  }
}

async function readAll(pawl: Pawl): Promise<void> {
  for (const engine of engines.values()) {
    if (engine !== engines.get(pawl) && !(await mayHave(pawl.store, engine))) continue;
    let looked = 0;
    for (const [id, written] of engine.written) {
      if (looked++ >= MAX_RUNS || written.head > MAX_ENTRIES) tally.passedOver++;
      else if (await readOne(pawl, engine, id, written)) engine.written.delete(id);
    }
  }
}

/** Whether this store may be that of an engine which has not closed. */
async function mayHave(store: Store, engine: Engine): Promise<boolean> {
  if (engine.strangers >= MAX_STRANGERS) return false;
  const ids = [...engine.written.keys()];
  for (const id of [ids[0], ids.at(-1)]) {
    if (id === undefined) return false;
    const row = await store.run(id).catch(() => null);
    if (row !== null) return true;
  }
  engine.strangers++;
  return false;
}

/** True if the run need not be looked for again. */
async function readOne(pawl: Pawl, engine: Engine, id: string, { head, hash }: Written): Promise<boolean> {
  try {
    const row = await pawl.store.run(id);
    // Whoever has written more since answers for it.
    if (row !== null && row.head > head) return true;
    if (row?.head !== head || row.headHash !== hash) return engines.get(pawl) === engine;
    const workflow = new Registry(engine.workflows).forRun(row.workflow, row.version);
    if (workflow === undefined) return true;
    const run = await exportRun(standingStill(pawl, row), id);
    // A client may see less of the store than its worker.
    if (run.entries.at(-1)?.seq !== head - 1) return engines.get(pawl) === engine;
    recorded.push({ test: engine.test, workflow, run, redact: engine.redact });
  } catch {
    tally.unreadable++;
  }
  return true;
}

/** Nobody works on a run when it is read: its row is asked for once. */
function standingStill(pawl: Pawl, row: RunRow): Parameters<typeof exportRun>[0] {
  return { get: (id) => pawl.get(id), store: { ...pawl.store, run: async () => row } };
}

/**
 * Has the runs that other processes have left in a SQLite file, or in a directory `file:…`, answered for, by the workflows of these modules: their paths, or what they export.
 * To be called when the test is over and the file still there.
 */
export async function coldStartFile(path: string, modules: readonly (string | object)[]): Promise<void> {
  const begun = performance.now();
  if (existsSync(path.replace(/^file:/, ""))) await inTime(readFile(path, modules), READ_FILE_MS);
  readingMs += performance.now() - begun;
}

/** Counts ended runs that a child process has replayed itself: its files are gone when it says so. */
export function countColdStarts(runs: number): void {
  tally.checked += runs;
  tally.ofChildren += runs;
}

async function readFile(path: string, modules: readonly (string | object)[]): Promise<void> {
  try {
    const store = path.startsWith("file:") ? path : sqliteStore(path);
    const pawl = await open.call(Pawl, store, { handleSignals: false });
    try {
      const registry = new Registry(await workflowsOf(modules));
      const rows = await pawl.store.runs({ limit: MAX_ROWS });
      for (const [index, row] of rows.entries()) {
        if (index >= MAX_RUNS || row.head > MAX_ENTRIES) tally.passedOver++;
        else await readRow(pawl, row, registry);
      }
    } finally {
      await close.call(pawl);
    }
  } catch {
    tally.unreadable++;
  }
}

async function readRow(pawl: Pawl, row: RunRow, registry: Registry): Promise<void> {
  const workflow = registry.forRun(row.workflow, row.version);
  if (workflow === undefined) return void tally.withoutCode++;
  try {
    const run = await exportRun(standingStill(pawl, row), row.id);
    recorded.push({ test: currentTest(), workflow, run, isOfChild: true });
  } catch {
    tally.unreadable++;
  }
}

async function workflowsOf(modules: readonly (string | object)[]): Promise<Workflow[]> {
  const found = new Map<string, Workflow>();
  for (const one of modules) {
    const exported = typeof one === "string" ? await exportsOf(one) : one;
    for (const workflow of collectWorkflows(exported)) found.set(`${workflow.name} ${workflow.version}`, workflow);
  }
  return [...found.values()];
}

/** A module that a test has broken on purpose exports nothing. */
function exportsOf(path: string): Promise<object> {
  return import(/* @vite-ignore */ path).catch(() => ({}));
}

async function inTime(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = startTimer(() => {
      tally.unreadable++;
      resolve();
    }, ms);
  });
  await Promise.race([work, late]);
  stopTimer(timer);
}

/** The check itself, once no test of the file is left. */
export async function replayAll(): Promise<void> {
  const failures: string[] = [];
  const begun = performance.now();
  while (recorded.length > 0) await Promise.all(recorded.splice(-AT_ONCE).map((one) => coldStart(one, failures)));
  report(performance.now() - begun + readingMs);
  readingMs = 0;
  if (failures.length > 0)
    throw new Error(`${failures.length} runs are not reproduced by their code (I5):\n${inShort(failures)}`);
}

async function coldStart(
  { test, workflow, run, redact = [], isOfChild = false }: Recorded,
  failures: string[],
): Promise<void> {
  if (optedOut.has(WHOLE_FILE) || optedOut.has(test)) return void tally.optedOut++;
  if (run.run.endedAt === null) tally.open++;
  else tally.checked++;
  if (isOfChild) tally.ofChildren++;
  const fail = (problem: string) => void failures.push(`in "${test}": ${problem}`);
  try {
    const first = await replay(workflow, run, { quiet: QUIET_MS, redact });
    const { ok, message, line, added } = first.ok ? first : await replay(workflow, run, { quiet: PATIENT_MS, redact });
    if (!ok) fail(line === undefined ? message : `${message} (${line})`);
    else if (added !== undefined) fail(`Run ${run.run.id} made notes again: ${added.join(", ")}.`);
  } catch (error) {
    fail(`Run ${run.run.id}: ${String(error)}`);
  }
}

const SHOWN_PER_TEST = 2;

/** The first failures of each test. */
function inShort(failures: readonly string[]): string {
  const seen = new Map<string, number>();
  const shown = failures.filter((failure) => {
    const test = failure.slice(0, failure.indexOf('": '));
    const n = (seen.get(test) ?? 0) + 1;
    seen.set(test, n);
    return n <= SHOWN_PER_TEST;
  });
  return shown.join("\n");
}

/** One line per file, for the sum that is printed at the end. */
function report(ms: number): void {
  const path = process.env["PAWL_COLD_START_REPORT"];
  const file = expect.getState().testPath ?? "";
  if (path !== undefined)
    appendFileSync(path, `${JSON.stringify({ file, ms: Math.round(ms), ...tally, reasons: [...optedOut] })}\n`);
  for (const count of Object.keys(tally) as (keyof typeof tally)[]) tally[count] = 0;
  optedOut.clear();
  // Those that nobody has closed are as good as killed: what the next file of this process closes does not answer for them.
  engines.clear();
}
