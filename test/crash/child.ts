// A child process that runs engines, as a test sees it: what it says, how it ends, and the signals to end it with.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { compiled } from "./compiled.ts";

const PROGRAM = fileURLToPath(new URL("./engine-process.mjs", import.meta.url));

export interface RunRequest {
  readonly workflow: string;
  readonly id: string;
  readonly input: unknown;
  readonly signal?: { readonly name: string; readonly payload: unknown; readonly id: string };
}

export interface EngineRequest {
  readonly store: string;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly runs?: readonly RunRequest[];
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
}

export interface Said {
  readonly event: string;
  readonly [fact: string]: unknown;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ChildOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** A command that runs the process, such as unshare with its arguments. */
  readonly wrap?: readonly string[];
}

const alive = new Set<Child>();

export class Child {
  readonly exited: Promise<Exit>;
  readonly said: Said[] = [];
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #listeners = new Set<() => void>();
  #stderr = "";
  #exit: Exit | null = null;

  constructor(task: Task, { env = {}, wrap = [] }: ChildOptions = {}) {
    const words = [...wrap, process.execPath, PROGRAM, JSON.stringify({ fakes: compiled("fakes.ts"), ...task })];
    const [command = "", ...args] = words;
    this.#process = spawn(command, args, { env: { ...process.env, NODE_OPTIONS: "", FAKES_LATENCY_MS: "0", ...env } });
    this.#process.stderr.on("data", (text) => {
      this.#stderr += text;
    });
    // A child that was killed does not read what is sent to it.
    this.#process.stdin.on("error", () => {});
    createInterface({ input: this.#process.stdout }).on("line", (line) => {
      this.said.push(JSON.parse(line) as Said);
      this.#tell();
    });
    alive.add(this);
    this.exited = new Promise((resolve) => {
      this.#process.once("close", (code, signal) => {
        this.#exit = { code, signal };
        alive.delete(this);
        this.#tell();
        resolve(this.#exit);
      });
    });
  }

  get pid(): number {
    return this.#process.pid as number;
  }

  send(command: string, facts: Readonly<Record<string, unknown>> = {}): void {
    this.#process.stdin.write(`${JSON.stringify({ command, ...facts })}\n`);
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** The first thing of this kind that was or will be said, among those that `isMeant`. */
  async hears(event: string, isMeant: (said: Said) => boolean = () => true): Promise<Said> {
    for (;;) {
      const found = this.said.find((said) => said.event === event && isMeant(said));
      if (found !== undefined) return found;
      if (this.#exit !== null) throw new Error(`The process ended before it said "${event}". ${this.report()}`);
      await new Promise<void>((resolve) => {
        this.#listeners.add(resolve);
      });
    }
  }

  logged(pattern: RegExp): Promise<Said> {
    return this.hears("log", ({ message }) => pattern.test(String(message)));
  }

  async result(run: string): Promise<unknown> {
    const { output, error } = await this.hears("result", (said) => said["run"] === run);
    return error === undefined ? output : { error };
  }

  /** What a failed expectation needs to be understood. */
  report(): string {
    const said = this.said.map((one) => JSON.stringify(one)).join("\n");
    return `${this.#exit === null ? "It runs" : `It ended with ${this.#exit.code ?? this.#exit.signal}`} and said:\n${said}\n${this.#stderr}`;
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
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
