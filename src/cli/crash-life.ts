// One life of a crash test, in a process of its own: run until the end, or until the point at which it kills itself.
// It tells what happens on its fourth file descriptor, synchronously, one JSON object a line: what was said before the kill arrives.
import { writeSync } from "node:fs";
import { encode } from "../base/codec.ts";
import { hasCode } from "../base/errors.ts";
import { Pawl } from "../client/pawl.ts";
import type { Run } from "../client/run.ts";
import type { Entry } from "../core/journal.ts";
import { sqliteStore } from "../stores/sqlite/sqlite-store.ts";
import type { CrashPoint } from "../testing/explorer/crash-point.ts";
import { type Ending, History, RUN_ID } from "../testing/explorer/history.ts";
import { Stillness } from "../testing/explorer/stillness.ts";
import { World, type WorldSetup } from "../testing/explorer/world.ts";
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
  /** When its time begins: for a life after another one, where that one's ended. */
  readonly now: number;
  readonly isFirst: boolean;
  readonly allowNet: boolean;
}

/** What a life tells. */
export type LifeNews = { readonly point: CrashPoint; readonly now: number } | LifeStory;

export interface LifeStory {
  readonly end: LifeEnd;
  /** Recorded outcomes of the run's steps; values as the codec writes them. */
  readonly steps: readonly { readonly key: string; readonly value: string }[];
  /** What the test's recorder has seen happen, by name. */
  readonly effects: Readonly<Record<string, number>>;
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
  if (task.isFirst) await test.fresh?.();
  const workflow = test.workflow as never;
  const world = new World({
    workflows: [workflow, ...(test.workflows ?? [])],
    // What the process waits for by now, its loader and the store, it waits for all the time.
    stillness: new Stillness(),
    bodies: new WeakMap(),
    history: 0,
    inject: killer(task),
    elsewhere: { now: task.now, open: (clocks) => sqliteStore(task.store, { ...clocks, durability: "process" }) },
  });
  await world.store.open();
  const history = new History(world, { workflow, input: test.input, script: test.script as never });
  tell(await storyOf(await (task.isFirst ? history.play() : history.resume()), test, task.isFirst));
}

/** Tells of every point, and dies at the one that it is given. */
function killer({ killAt }: LifeTask): WorldSetup["inject"] {
  return ({ n, kind, label }, { clock }) => {
    tell({ point: { n, kind, label: label() }, now: clock.now() });
    if (n === killAt) process.kill(process.pid, "SIGKILL");
    return null;
  };
}

async function storyOf(ending: Ending, { recorder }: NamedCrashTest, isFirst: boolean): Promise<LifeStory> {
  const pawl = await Pawl.open(ending.world.store);
  const run = pawl.get(RUN_ID);
  const effects: Record<string, number> = {};
  for (const { name } of recorder?.effects ?? []) effects[name] = (effects[name] ?? 0) + 1;
  const end = unfinished(ending, isFirst) ?? (await endOf(run));
  return { end, steps: (await run.journal()).flatMap(stepOutcome), effects };
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

function stepOutcome({ type, key, payload }: Entry): LifeStory["steps"] {
  if ((type !== "step.completed" && type !== "step.failed") || key === null) return [];
  return [{ key, value: encode(payload) }];
}

await live(JSON.parse(process.argv[2] as string) as LifeTask).catch((error: unknown) => {
  writeSync(process.stderr.fd, errorLine(error));
  process.exit(1);
});
process.exit(0);
