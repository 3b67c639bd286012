// One life of a crash test, in a process of its own: run until the end, or until the point at which it kills itself. Or, after a life that
// has come to its end, replay what it has recorded.
// It tells what happens on its fourth file descriptor, synchronously, one JSON object a line: what was said before the kill arrives.
import { writeSync } from "node:fs";
import { decode, encode } from "../base/codec.ts";
import { hasCode } from "../base/errors.ts";
import { exportRun } from "../client/export.ts";
import { Pawl } from "../client/pawl.ts";
import type { Run } from "../client/run.ts";
import { type Entry, isStepSuccess, type StepFailed } from "../core/journal.ts";
import type { Workflow } from "../core/workflow.ts";
import { sqliteStore } from "../stores/sqlite/sqlite-store.ts";
import type { CrashPoint } from "../testing/explorer/crash-point.ts";
import { byDetails } from "../testing/explorer/effect-counts.ts";
import { type Ending, History, RUN_ID } from "../testing/explorer/history.ts";
import type { BodyStart } from "../testing/explorer/mortal-engine.ts";
import { openSteps } from "../testing/explorer/step-outcomes.ts";
import { Stillness } from "../testing/explorer/stillness.ts";
import { type BodyEnd, World, type WorldSetup } from "../testing/explorer/world.ts";
import { type Effect, RecordBook, storable } from "../testing/recorder.ts";
import { type ReplayResult, replay } from "../testing/replay.ts";
import { type CrashTestChoice, chooseTests, type NamedCrashTest } from "./crash-tests.ts";
import { loadModule } from "./load.ts";
import { blockNetwork } from "./network.ts";
import { errorLine } from "./printable.ts";

/** What a life is to do; its first argument, as JSON. */
export interface LifeTask {
  readonly choice: CrashTestChoice;
  /** Which of the tests that were chosen. */
  readonly index: number;
  readonly store: string;
  /** The point at which to die; `null`: none. */
  readonly killAt: number | null;
  /** Nothing is run: the code is to follow the journals that are there. */
  readonly isReplay: boolean;
  /** When its time begins: for a life after another one, where that one's ended. */
  readonly now: number;
  readonly isFirst: boolean;
  /** Steps whose functions came to their end in the life before: whoever is asked whether they took effect knows. */
  readonly ended: readonly EndedStep[];
  readonly allowNet: boolean;
}

/** A step whose function has returned; its value as the codec writes it. */
export interface EndedStep {
  readonly run: string;
  readonly step: string;
  readonly value: string;
}

/** What a life tells. */
export type LifeNews =
  | { readonly point: CrashPoint; readonly now: number; readonly ended?: EndedStep }
  | { readonly departure: Departure }
  | LifeStory;

/** Where the code does not follow its own journal. */
export type Departure = Pick<ReplayResult, "message" | "line">;

export interface LifeStory {
  readonly end: LifeEnd;
  /** Recorded outcomes of the run's steps; values as the codec writes them. */
  readonly steps: readonly { readonly key: string; readonly value: string }[];
  /** What the test's recorder has seen happen. */
  readonly effects: readonly LifeEffect[];
  /** Steps of all runs, as `run step`: those that were begun, and those that nobody waited for, or that were left half done. */
  readonly reached: readonly string[];
  readonly abandoned: readonly string[];
  /** A step whose recovery is "fail" was interrupted, or somebody was asked about one that was left half done. */
  readonly isInterrupted: boolean;
  readonly isCancelled: boolean;
}

export interface LifeEffect extends Pick<Effect, "name" | "run" | "step"> {
  /** Name and details, in words: equal for effects that are the same. */
  readonly what: string;
}

export type LifeEnd =
  | { readonly kind: "returned"; readonly value: string }
  | { readonly kind: "threw" | "parked" | "stuck"; readonly message: string };

const NEWS = 3;

const tell = (news: LifeNews): void => void writeSync(NEWS, `${JSON.stringify(news)}\n`);

async function live(task: LifeTask): Promise<void> {
  if (!task.allowNet) blockNetwork();
  const chosen = chooseTests(await loadModule(task.choice.file), task.choice);
  const test = chosen[task.index] as NamedCrashTest;
  if (task.isReplay) return replayAll(task, test);
  if (task.isFirst) await test.fresh?.();
  const workflow = test.workflow as never;
  const world = new World({
    workflows: [workflow, ...(test.workflows ?? [])],
    // What the process waits for by now, its loader and the store, it waits for all the time.
    stillness: new Stillness(),
    bodies: new WeakMap(),
    book: test.recorder instanceof RecordBook ? test.recorder : null,
    history: 0,
    inject: killer(task),
    elsewhere: { now: task.now, open: (clocks) => sqliteStore(task.store, { ...clocks, durability: "process" }) },
  });
  for (const { value, ...body } of task.ended)
    world.ends.push({ body: { ...NO_BODY, ...body }, outcome: { value: decode(value) } });
  await world.store.open();
  const history = new History(world, { workflow, input: test.input, script: test.script as never });
  tell(await storyOf(await (task.isFirst ? history.play() : history.resume()), test, task.isFirst));
}

/** Tells of every run that does not come to its recorded end here. */
async function replayAll({ store: file }: LifeTask, test: NamedCrashTest): Promise<void> {
  const pawl = await Pawl.open(sqliteStore(file));
  const workflows = [test.workflow, ...(test.workflows ?? [])] as Workflow[];
  for (const { id, ...row } of await pawl.store.runs({ limit: 1000 })) {
    const code = workflows.find(({ name, version }) => name === row.workflow && version === row.version);
    if (code === undefined) continue;
    // A line that reads the clock is told as advice by the crashes of the first process.
    const unguarded = { ...code, definition: { ...code.definition, guard: "off" as const } };
    const { ok, message, line } = await replay(unguarded, await exportRun(pawl, id));
    if (!ok) tell({ departure: { message, ...(line !== undefined && { line }) } });
  }
}

/** Tells of every point, and dies at the one that it is given. */
function killer({ killAt }: LifeTask): WorldSetup["inject"] {
  let told = 0;
  return ({ n, kind, label }, { clock, ends }) => {
    const ended = ends.length > told ? endedStep(ends.at(-1)) : null;
    told = ends.length;
    tell({ point: { n, kind, label: label() }, now: clock.now(), ...(ended !== null && { ended }) });
    if (n === killAt) process.kill(process.pid, "SIGKILL");
    return null;
  };
}

const NO_BODY: BodyStart = { run: "", step: "", key: "", attempt: 1, input: undefined, engine: 0, usedKey: false };

function endedStep(end: BodyEnd | undefined): EndedStep | null {
  if (end?.outcome == null) return null;
  const { run, step } = end.body;
  try {
    return { run, step, value: encode(end.outcome.value) };
  } catch {
    // What cannot be recorded fails the step.
    return null;
  }
}

async function storyOf(ending: Ending, { recorder }: NamedCrashTest, isFirst: boolean): Promise<LifeStory> {
  const pawl = await Pawl.open(ending.world.store);
  const journals = await Promise.all(
    ending.rows.map(async ({ id }) => ({ id, entries: await pawl.get(id).journal() })),
  );
  const own = journals.find(({ id }) => id === RUN_ID)?.entries ?? [];
  const { halfDone } = ending.world;
  const openIn = (entries: readonly Entry[]) => openSteps(entries, isOutcome);
  return {
    end: unfinished(ending, isFirst) ?? (await endOf(pawl.get(RUN_ID))),
    steps: own.flatMap(stepOutcome),
    effects: (recorder?.effects ?? []).map(lifeEffect),
    reached: journals.flatMap(({ id, entries }) => entries.map(({ key }) => `${id} ${key}`)),
    abandoned: [...halfDone, ...journals.flatMap(({ id, entries }) => openIn(entries).map((step) => `${id} ${step}`))],
    isInterrupted: halfDone.size > 0 || journals.some(({ entries }) => entries.some(isInterruption)),
    isCancelled: own.at(-1)?.type === "run.cancelled",
  };
}

/** Details as the file of a recorder keeps them: part of them has come from there. */
function lifeEffect({ details, ...effect }: Effect): LifeEffect {
  const { name, run, step } = effect;
  return { name, run, step, what: byDetails({ ...effect, details: storable(details) }) };
}

function isOutcome({ type, payload }: Entry): boolean {
  return isStepSuccess(type) || (type === "step.failed" && (payload as StepFailed).retryAt === null);
}

function isInterruption({ type, payload }: Entry): boolean {
  return type === "step.failed" && hasCode((payload as StepFailed).error, "step_interrupted");
}

/** Why the run has no result. */
function unfinished({ rows, parked, scriptError }: Ending, isFirst: boolean): LifeEnd | null {
  // A script that is made again may find that the run has ended without it.
  const isOvertaken = !isFirst && hasCode(scriptError, "run_ended");
  if (scriptError !== undefined && !isOvertaken) return stuck(`The script failed: ${errorLine(scriptError)}`);
  const decision = parked.get(RUN_ID);
  if (decision !== undefined) return { kind: "parked", message: decision.message };
  const row = rows.find(({ id }) => id === RUN_ID);
  return row === undefined || row.endedAt === null ? stuck("Nothing is left that could wake it.") : null;
}

function stuck(message: string): LifeEnd {
  return { kind: "stuck", message };
}

async function endOf(run: Run): Promise<LifeEnd> {
  try {
    return { kind: "returned", value: encode(await run.result()) };
  } catch (error) {
    return { kind: "threw", message: errorLine(error) };
  }
}

function stepOutcome(entry: Entry): LifeStory["steps"] {
  const { type, key, payload } = entry;
  if ((type !== "step.failed" && !isOutcome(entry)) || key === null) return [];
  return [{ key, value: encode(payload) }];
}

await live(JSON.parse(process.argv[2] as string) as LifeTask).catch((error: unknown) => {
  writeSync(process.stderr.fd, errorLine(error));
  process.exit(1);
});
process.exit(0);
