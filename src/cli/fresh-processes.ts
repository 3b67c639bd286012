// Kill, and recover in a fresh process
// A crash inside one process leaves its module variables behind, and code that relies on them passes. So every point is also tried with
// real processes: one runs on a SQLite file and kills itself at the point, a new one finishes, and its end is compared with that of an
// undisturbed life. Two undisturbed lives show which parts of the result are never the same; those are not compared.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { decode } from "../base/codec.ts";
import { PawlError } from "../base/errors.ts";
import { seededRandom } from "../base/random.ts";
import type { CrashPoint } from "../testing/explorer/crash-point.ts";
import { FOLDER_VARIABLE } from "../testing/outside-memory.ts";
import type { LifeEnd, LifeNews, LifeStory, LifeTask } from "./crash-life.ts";
import { type Difference, differences } from "./difference.ts";
import { shortJson } from "./printable.ts";
import { CACHE_VARIABLE } from "./ts-hook.ts";

const LIFE = fileURLToPath(new URL("./crash-life.js", import.meta.url));
const AT_ONCE = 2;
/** More are drawn by lot: each takes two processes. */
export const MOST_POINTS = 200;
const LONGEST_LIFE_MS = 30_000;
const BEGIN = Date.UTC(2026, 0, 1);

export interface FreshOptions {
  readonly task: Pick<LifeTask, "choice" | "index" | "allowNet">;
  readonly seed: number;
  /** One point only. */
  readonly at: number | null;
  /** How many points at most; if there are more, they are drawn by lot. */
  readonly most: number;
  /** When to end: what is under way then does not count. */
  readonly endsAt: number;
  /** Ends it all. */
  readonly stop: AbortSignal;
  readonly progress: (text: string) => void;
}

export interface FreshFailure {
  readonly point: CrashPoint;
  readonly kind: "result" | "effects" | "parked" | "stuck";
  /** What happened, and what to do about it. */
  readonly message: string;
  readonly step?: string;
}

export interface FreshReport {
  /** 0 if there was no time to count them. */
  readonly points: number;
  /** How many of them were drawn by lot; `null`: none, all were to be tried. */
  readonly drawn: number | null;
  /** How many of them were tried. */
  readonly explored: number;
  readonly isComplete: boolean;
  /** Parts of the result that differ between undisturbed lives, too. */
  readonly notCompared: readonly string[];
  readonly failures: readonly FreshFailure[];
}

interface Life {
  readonly points: readonly CrashPoint[];
  /** `null`: it was killed, or did not end in time. */
  readonly story: LifeStory | null;
  /** Whether the time for all of them was over before it had ended. */
  readonly isCut: boolean;
  readonly now: number;
  readonly errors: string;
}

/** How an undisturbed life goes. */
interface Whole {
  readonly points: readonly CrashPoint[];
  readonly story: LifeStory;
  readonly unstable: ReadonlySet<string>;
}

export async function killEverywhere(options: FreshOptions): Promise<FreshReport> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-test-"));
  const lives = new Lives(folder, options);
  options.stop.addEventListener("abort", () => lives.end());
  try {
    const whole = await undisturbed(lives);
    if (whole === null)
      return { points: 0, drawn: null, explored: 0, isComplete: false, notCompared: [], failures: [] };
    const points = whole.points.filter(({ n }) => options.at === null || n === options.at);
    const chosen = drawPoints(points, options.seed, options.most);
    const failures: FreshFailure[] = [];
    let explored = 0;
    await twoAtATime(chosen, async (point) => {
      const found = await tryPoint(point, lives, whole);
      if (found === null) return;
      failures.push(...found);
      explored += 1;
      options.progress(`${explored} of ${chosen.length} points in fresh processes`);
    });
    failures.sort((a, b) => a.point.n - b.point.n);
    const counts = {
      points: whole.points.length,
      drawn: chosen.length < points.length ? chosen.length : null,
      explored,
    };
    return { ...counts, isComplete: explored === points.length, notCompared: [...whole.unstable], failures };
  } finally {
    lives.end();
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** `null`: there was no time for it. */
async function undisturbed(lives: Lives): Promise<Whole | null> {
  const [first, second] = [await lives.live("undisturbed-1"), await lives.live("undisturbed-2")];
  if (first.isCut || second.isCut) return null;
  for (const life of [first, second]) if (life.story === null || life.story.end.kind === "stuck") throw didNotEnd(life);
  const [story, again] = [first.story as LifeStory, second.story as LifeStory];
  return { points: first.points, story, unstable: new Set(between(story.end, again.end).map(({ path }) => path)) };
}

/** `null`: there was no time for it. */
async function tryPoint(point: CrashPoint, lives: Lives, whole: Whole): Promise<FreshFailure[] | null> {
  const name = `point-${point.n}`;
  const killed = await lives.live(name, { killAt: point.n });
  // Steps that work side by side may have reached fewer points this time; then this life was an undisturbed one.
  const last = killed.story === null ? await lives.live(name, { now: killed.now }) : killed;
  lives.forget(name);
  if (last.isCut) return null;
  return judge(killed.points.at(-1) ?? point, last, whole);
}

const RECOVERED = "Recovered in a fresh process, the run";

function judge(point: CrashPoint, { story, errors }: Life, whole: Whole): FreshFailure[] {
  if (story === null) {
    const said = errors === "" ? "" : ` The process said: ${errors}`;
    return [{ point, kind: "stuck", message: `${RECOVERED} did not end within ${LONGEST_LIFE_MS / 1000} s.${said}` }];
  }
  const { end } = story;
  if ((end.kind === "parked" || end.kind === "stuck") && end.kind !== whole.story.end.kind) {
    return [
      {
        point,
        kind: end.kind,
        message: `${RECOVERED} ${end.kind === "parked" ? "was parked" : "did not end"}: ${end.message}`,
      },
    ];
  }
  return [...otherResult(point, story, whole), ...otherEffects(point, story, whole)];
}

function otherResult(point: CrashPoint, story: LifeStory, whole: Whole): FreshFailure[] {
  const [difference] = between(whole.story.end, story.end).filter(({ path }) => !isUnder(path, whole.unstable));
  if (difference === undefined) return [];
  const { path, expected, actual } = difference;
  const place = path === "" ? "the result" : `the result's ${path.slice(1)}`;
  const step = firstOtherStep(whole.story, story);
  const blame = step === null ? "" : ` Step "${step.key}" recorded ${step.actual}, undisturbed ${step.expected}.`;
  const message = `${RECOVERED} ended otherwise: ${place} is ${shown(actual)}, undisturbed ${shown(expected)}.${blame} ${ADVICE}`;
  return [{ point, kind: "result", message, ...(step !== null && { step: step.key }) }];
}

const ADVICE = `A fresh process has none of the variables that this code had set before the crash. Return what is needed later from a step; if it is what a fake remembers, keep it in a file in the folder that ${FOLDER_VARIABLE} names, as recorder() does.`;

function otherEffects(point: CrashPoint, story: LifeStory, whole: Whole): FreshFailure[] {
  const names = new Set([...Object.keys(whole.story.effects), ...Object.keys(story.effects)]);
  return [...names].flatMap((name): FreshFailure[] => {
    const [expected, actual] = [whole.story.effects[name] ?? 0, story.effects[name] ?? 0];
    if (expected === actual) return [];
    const message = `${RECOVERED} had other effects: "${name}" happened ${actual} times, undisturbed ${expected}. Pass the step's key on, so that the other side recognises a request that it has seen.`;
    return [{ point, kind: "effects", message, step: name }];
  });
}

/** Where two ends differ. An error is compared by its text. */
function between(expected: LifeEnd, actual: LifeEnd): Difference[] {
  return differences(endValue(expected), endValue(actual));
}

function endValue(end: LifeEnd): unknown {
  return end.kind === "returned" ? decode(end.value) : `${end.kind}: ${end.message}`;
}

function isUnder(path: string, parents: ReadonlySet<string>): boolean {
  return [...parents].some(
    (parent) => path === parent || path.startsWith(`${parent}.`) || path.startsWith(`${parent}[`),
  );
}

/** The first step that recorded something else; values in words. */
function firstOtherStep(
  expected: LifeStory,
  actual: LifeStory,
): { readonly key: string; readonly expected: string; readonly actual: string } | null {
  const values = new Map(actual.steps.map(({ key, value }) => [key, value]));
  const other = expected.steps.find(({ key, value }) => values.get(key) !== value);
  if (other === undefined) return null;
  const found = values.get(other.key);
  return {
    key: other.key,
    expected: shown(decode(other.value)),
    actual: found === undefined ? "nothing" : shown(decode(found)),
  };
}

function shown(value: unknown): string {
  return shortJson(value, 80);
}

/** All points, or so many of them by lot, the same for the same seed. */
export function drawPoints<T>(points: readonly T[], seed: number, most: number): T[] {
  if (points.length <= most) return [...points];
  const random = seededRandom(String(seed));
  const drawn = points.map((point) => ({ point, lot: random.next() })).sort((a, b) => a.lot - b.lot);
  return drawn.slice(0, most).map(({ point }) => point);
}

async function twoAtATime<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = [...items];
  const goOn = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, goOn));
}

/** Starts lives, each in a folder that goes by its name: a life of the same name goes on where the last one died. */
class Lives {
  readonly #folder: string;
  readonly #options: FreshOptions;
  readonly #running = new Set<ChildProcess>();

  constructor(folder: string, options: FreshOptions) {
    this.#folder = folder;
    this.#options = options;
    mkdirSync(join(folder, "code"));
  }

  async live(
    name: string,
    { killAt = null, now }: { readonly killAt?: number | null; readonly now?: number } = {},
  ): Promise<Life> {
    const { stop, endsAt } = this.#options;
    stop.throwIfAborted();
    const leftMs = Math.ceil(endsAt - Date.now());
    if (leftMs <= 0) return NOT_LIVED;
    const folder = join(this.#folder, name);
    mkdirSync(folder, { recursive: true });
    const task: LifeTask = {
      ...this.#options.task,
      store: join(folder, "pawl.db"),
      killAt,
      now: now ?? BEGIN,
      isFirst: now === undefined,
    };
    const code = join(this.#folder, "code");
    const child = spawn(process.execPath, ["--no-warnings", LIFE, JSON.stringify(task)], {
      stdio: ["ignore", "ignore", "pipe", "pipe"],
      env: { ...process.env, [FOLDER_VARIABLE]: folder, [CACHE_VARIABLE]: code, NODE_COMPILE_CACHE: code },
      timeout: Math.min(LONGEST_LIFE_MS, leftMs),
      killSignal: "SIGKILL",
    });
    this.#running.add(child);
    const life = await lifeOf(child).finally(() => this.#running.delete(child));
    return { ...life, isCut: life.story === null && Date.now() >= endsAt };
  }

  forget(name: string): void {
    rmSync(join(this.#folder, name), { recursive: true, force: true, maxRetries: 3 });
  }

  end(): void {
    for (const child of this.#running) child.kill("SIGKILL");
  }
}

const NOT_LIVED: Life = { points: [], story: null, isCut: true, now: BEGIN, errors: "" };

async function lifeOf(child: ChildProcess): Promise<Omit<Life, "isCut">> {
  const points: CrashPoint[] = [];
  let story: LifeStory | null = null;
  let now = BEGIN;
  let errors = "";
  createInterface({ input: child.stdio[3] as Readable }).on("line", (line) => {
    const news = JSON.parse(line) as LifeNews;
    if ("end" in news) {
      story = news;
      return;
    }
    points.push(news.point);
    now = news.now;
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    errors = `${errors}${chunk.toString()}`.slice(-2000);
  });
  await once(child, "close");
  return { points, story, now, errors: errors.trim() };
}

function didNotEnd({ story, errors }: Life): PawlError {
  const why = story?.end.kind === "stuck" ? story.end.message : errors;
  return new PawlError(
    "invalid_argument",
    `In a process of its own the run did not end, without any crash. ${why === "" ? `It took more than ${LONGEST_LIFE_MS / 1000} s.` : why} Correct that first: a run that waits for a signal needs a script in its crash test that sends it.`,
  );
}
