// Kill, and recover in a fresh process
// A crash inside one process leaves its module variables behind, and code that relies on them passes. So every point is also tried with
// real processes: one runs on a SQLite file and kills itself at the point, a new one finishes, and its end is compared with that of an
// undisturbed life. Where steps vary there is little to compare: so a new process also replays the undisturbed life.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { PawlError } from "../base/errors.ts";
import { seededRandom } from "../base/random.ts";
import { ownFile } from "../stores/own-file.ts";
import type { CrashPoint } from "../testing/explorer/crash-point.ts";
import { NO_POINT } from "../testing/explorer/findings.ts";
import { FOLDER_VARIABLE } from "../testing/outside-memory.ts";
import type { Departure, EndedStep, LifeNews, LifeStory, LifeTask } from "./crash-life.ts";
import { CACHE_VARIABLE } from "./ts-hook.ts";
import { type Blame, departed, RECOVERED, Undisturbed } from "./undisturbed-life.ts";

const AT_ONCE = 2;
/** More are drawn by lot: each takes two processes. */
export const MOST_POINTS = 200;
const LONGEST_LIFE_MS = 30_000;
const BEGIN = Date.UTC(2026, 0, 1);
/** The undisturbed life that is kept, to be replayed. */
const FIRST = "undisturbed-1";
/** So many further undisturbed lives are asked, before anything is blamed, whether it differs by itself. */
const MOST_REPEATED = 3;

export interface FreshOptions {
  readonly task: Pick<LifeTask, "choice" | "index" | "allowNet">;
  readonly seed: number;
  /** One point only. */
  readonly at: number | null;
  /** Whether an undisturbed life is also replayed: what is known to be wrong would only be told once more. */
  readonly isReplayed: boolean;
  /** Steps that are known to vary without any crash. */
  readonly varying: readonly string[];
  /** How many points at most; if there are more, they are drawn by lot. */
  readonly most: number;
  /** When to end: what is under way then does not count. */
  readonly endsAt: number;
  /** Ends it all. */
  readonly stop: AbortSignal;
  readonly progress: (text: string) => void;
}

export interface FreshFailure extends Blame {
  readonly point: CrashPoint;
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
  readonly ended: readonly EndedStep[];
  readonly departures: readonly Departure[];
  readonly errors: string;
}

export async function killEverywhere(options: FreshOptions): Promise<FreshReport> {
  const folder = newFolder();
  const lives = new Lives(folder, options);
  options.stop.addEventListener("abort", () => lives.end());
  try {
    const whole = await undisturbed(lives, options.varying);
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
    if (failures.length === 0 && options.isReplayed) failures.push(...(await replayFirst(lives)));
    const counts = {
      points: whole.points.length,
      drawn: chosen.length < points.length ? chosen.length : null,
      explored,
    };
    return { ...counts, isComplete: explored === points.length, notCompared: whole.notCompared, failures };
  } finally {
    lives.end();
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

function newFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), "pawl-test-"));
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new PawlError(
      "invalid_argument",
      `No folder can be made in ${tmpdir()} (${code}), and the processes of a crash test need one. Set TMPDIR to a folder that can be written to, or leave them out with --no-processes.`,
      { fields: { folder: tmpdir() }, cause },
    );
  }
}

/** `null`: there was no time for it. */
async function undisturbed(lives: Lives, varying: readonly string[]): Promise<Undisturbed | null> {
  const first = await lives.undisturbed();
  const second = first === null ? null : await lives.undisturbed();
  if (first === null || second === null) return null;
  const whole = new Undisturbed(first.points, first.story, varying);
  whole.learn(second.story);
  return whole;
}

/** `null`: there was no time for it. */
async function tryPoint(point: CrashPoint, lives: Lives, whole: Undisturbed): Promise<FreshFailure[] | null> {
  const name = `point-${point.n}`;
  const killed = await lives.live(name, { killAt: point.n });
  // Steps that work side by side may have reached fewer points this time; then this life was an undisturbed one.
  const last = killed.story === null ? await lives.live(name, { now: killed.now, ended: killed.ended }) : killed;
  lives.forget(name);
  if (last.isCut) return null;
  const blames = await judge(last, lives, whole);
  return blames.map((blame) => ({ point: killed.points.at(-1) ?? point, ...blame }));
}

/** Every run must follow from what it has recorded, whatever other runs have come to. */
async function replayFirst(lives: Lives): Promise<FreshFailure[]> {
  const { departures } = await lives.live(FIRST, { isReplay: true });
  return departures.map((departure) => ({ point: NO_POINT, ...departed(departure) }));
}

async function judge({ story, errors }: Life, lives: Lives, whole: Undisturbed): Promise<Blame[]> {
  if (story === null) {
    const said = errors === "" ? "" : ` The process said: ${errors}`;
    return [{ kind: "stuck", message: `${RECOVERED} did not end within ${LONGEST_LIFE_MS / 1000} s.${said}` }];
  }
  if (whole.judge(story).length > 0 && lives.repeated < MOST_REPEATED) {
    lives.repeated++;
    const another = await lives.undisturbed();
    if (another !== null) whole.learn(another.story);
  }
  return whole.judge(story);
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

interface LifeOptions {
  readonly killAt?: number | null;
  readonly isReplay?: boolean;
  /** When the life before it was killed, and what had come to its end by then. */
  readonly now?: number;
  readonly ended?: readonly EndedStep[];
}

/** Starts lives, each in a folder that goes by its name: a life of the same name goes on where the last one died. */
class Lives {
  readonly #folder: string;
  readonly #options: FreshOptions;
  readonly #running = new Set<ChildProcess>();
  #undisturbed = 0;
  /** How often it was asked once more whether something differs by itself. */
  repeated = 0;

  constructor(folder: string, options: FreshOptions) {
    this.#folder = folder;
    this.#options = options;
    mkdirSync(join(folder, "code"));
  }

  /** `null`: there was no time for it. */
  async undisturbed(): Promise<(Life & { readonly story: LifeStory }) | null> {
    const name = `undisturbed-${++this.#undisturbed}`;
    const { story, ...life } = await this.live(name);
    if (life.isCut) return null;
    if (story === null || story.end.kind === "stuck") throw didNotEnd({ story, ...life });
    if (name !== FIRST) this.forget(name);
    return { ...life, story };
  }

  async live(name: string, { killAt = null, isReplay = false, now, ended = [] }: LifeOptions = {}): Promise<Life> {
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
      isReplay,
      now: now ?? BEGIN,
      isFirst: now === undefined,
      ended,
    };
    const code = join(this.#folder, "code");
    const child = spawn(process.execPath, ["--no-warnings", ownFile("#crash-life"), JSON.stringify(task)], {
      stdio: ["ignore", "ignore", "pipe", "pipe"],
      // Whoever has a folder for compiled files already has them there.
      env: { [CACHE_VARIABLE]: code, NODE_COMPILE_CACHE: code, ...process.env, [FOLDER_VARIABLE]: folder },
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

const NOT_LIVED: Life = { points: [], story: null, isCut: true, now: BEGIN, ended: [], departures: [], errors: "" };

async function lifeOf(child: ChildProcess): Promise<Omit<Life, "isCut">> {
  const points: CrashPoint[] = [];
  const ended: EndedStep[] = [];
  const departures: Departure[] = [];
  let story: LifeStory | null = null;
  let now = BEGIN;
  let errors = "";
  createInterface({ input: child.stdio[3] as Readable }).on("line", (line) => {
    const news = JSON.parse(line) as LifeNews;
    if ("end" in news) {
      story = news;
      return;
    }
    if ("departure" in news) {
      departures.push(news.departure);
      return;
    }
    points.push(news.point);
    if (news.ended !== undefined) ended.push(news.ended);
    now = news.now;
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    errors = `${errors}${chunk.toString()}`.slice(-2000);
  });
  await once(child, "close");
  return { points, story, now, ended, departures, errors: errors.trim() };
}

function didNotEnd({ story, errors }: Life): PawlError {
  const why = story?.end.kind === "stuck" ? story.end.message : errors;
  return new PawlError(
    "invalid_argument",
    `In a process of its own the run did not end, without any crash. ${why === "" ? `It took more than ${LONGEST_LIFE_MS / 1000} s.` : why} Correct that first: a run that waits for a signal needs a script in its crash test that sends it.`,
  );
}
