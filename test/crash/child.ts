// A child process that runs engines: it says what happens in JSON, and takes commands the same way.
import { fileURLToPath } from "node:url";
import { type Exit, Program } from "../child.ts";
import { coldStartFile } from "../cold-start.ts";
import { compiled } from "./compiled.ts";

const PROGRAM = fileURLToPath(new URL("./engine-process.mjs", import.meta.url));

export interface RunRequest {
  readonly workflow: string;
  readonly id: string;
  readonly key?: string;
  readonly input: unknown;
  readonly signal?: { readonly name: string; readonly payload: unknown; readonly id: string };
}

export interface EngineRequest {
  readonly store: string;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly runs?: readonly RunRequest[];
  /** Where this one's life ends, if it is not that of the process: see kill-point.mjs. */
  readonly kill?: KillPoint;
}

export interface KillPoint {
  readonly point: string;
  readonly n: number;
}

/** See engine-process.mjs. */
export interface Task {
  readonly engines: readonly EngineRequest[];
  readonly files: readonly string[];
  readonly kill?: KillPoint;
  readonly stay?: boolean;
  readonly pulse?: boolean;
}

export interface Said {
  readonly event: string;
  readonly [fact: string]: unknown;
}

export interface ChildOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** A command that runs the process, such as unshare with its arguments. */
  readonly wrap?: readonly string[];
}

const alive = new Set<Child>();
/** The stores that children of this test were given, and the files of their workflows. */
const stores = new Map<string, Set<string>>();

export class Child {
  readonly exited: Promise<Exit>;
  readonly #program: Program;
  readonly #said: Said[] = [];

  constructor(task: Task, { env = {}, wrap = [] }: ChildOptions = {}) {
    const words = [...wrap, process.execPath, PROGRAM, JSON.stringify({ fakes: compiled("fakes.ts"), ...task })];
    this.#program = new Program(words, { env: { ...process.env, NODE_OPTIONS: "", FAKES_LATENCY_MS: "0", ...env } });
    this.exited = this.#program.exited;
    for (const { store } of task.engines) stores.set(store, new Set([...(stores.get(store) ?? []), ...task.files]));
    alive.add(this);
    void this.exited.then(() => alive.delete(this));
  }

  get pid(): number {
    return this.#program.process.pid as number;
  }

  get said(): readonly Said[] {
    for (const line of this.#program.lines.slice(this.#said.length)) this.#said.push(JSON.parse(line) as Said);
    return this.#said;
  }

  send(command: string, facts: Readonly<Record<string, unknown>> = {}): void {
    this.#program.tell(JSON.stringify({ command, ...facts }));
  }

  kill(signal: NodeJS.Signals): void {
    this.#program.process.kill(signal);
  }

  /** The first thing of this kind that was or will be said, among those that `isMeant`. */
  hears(event: string, isMeant: (said: Said) => boolean = () => true): Promise<Said> {
    return this.#program.until(() => this.said.find((said) => said.event === event && isMeant(said)));
  }

  logged(pattern: RegExp): Promise<Said> {
    return this.hears("log", ({ message }) => pattern.test(String(message)));
  }

  async result(run: string): Promise<unknown> {
    const { output, error } = await this.hears("result", (said) => said["run"] === run);
    return error === undefined ? output : { error };
  }

  /** How often it had come to a point where it might have been killed, when it ended. */
  async reached(point: string): Promise<number> {
    const { points } = await this.hears("reached");
    return (points as Readonly<Record<string, number>>)[point] ?? 0;
  }

  report(): string {
    return this.#program.report();
  }
}

/** Runs a task to its end, whichever that is. */
export async function live(task: Task, options?: ChildOptions): Promise<Child> {
  const child = new Child(task, options);
  await child.exited;
  return child;
}

/** Ends whatever a failed test has left running. */
export async function killAll(): Promise<void> {
  const left = [...alive];
  for (const child of left) child.kill("SIGKILL");
  await Promise.all(left.map((child) => child.exited));
}

/** What the children of this test have left is replayed from a cold start, too. */
export async function coldStartAll(): Promise<void> {
  for (const [store, files] of stores) await coldStartFile(store, [...files]);
  stores.clear();
}
