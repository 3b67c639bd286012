// A child process that runs an engine, as a test sees it: what it says, how it ends, and the signals to end it with.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("./engine-process.mjs", import.meta.url));

export interface RunRequest {
  readonly workflow: string;
  readonly id: string;
  readonly input: unknown;
  readonly signal?: { readonly name: string; readonly payload: unknown; readonly id: string };
}

/** See engine-process.mjs. */
export interface EngineTask {
  readonly store: string;
  readonly files: readonly string[];
  readonly storeOptions?: Readonly<Record<string, unknown>>;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly kill?: { readonly point: string; readonly n: number };
  readonly runs?: readonly RunRequest[];
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

const alive = new Set<Child>();

export class Child {
  readonly exited: Promise<Exit>;
  readonly said: Said[] = [];
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #listeners = new Set<() => void>();
  #stderr = "";
  #exit: Exit | null = null;

  constructor(task: EngineTask, env: Readonly<Record<string, string>> = {}, wrap: readonly string[] = []) {
    const [command, ...args] = [...wrap, process.execPath, PROGRAM, JSON.stringify(task)] as [string, ...string[]];
    const quick = { FAKES_LATENCY_MS: "0", NODE_OPTIONS: "", NODE_COMPILE_CACHE: "" };
    this.#process = spawn(command, args, { env: { ...process.env, ...quick, ...env } });
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

  /** The first thing said of this kind, past or future, that `isMeant`. */
  async hears(event: string, isMeant: (said: Said) => boolean = () => true): Promise<Said> {
    for (;;) {
      const found = this.said.find((said) => said.event === event && isMeant(said));
      if (found !== undefined) return found;
      if (this.#exit !== null) throw new Error(`the process ended (${this.#exit.code ?? this.#exit.signal}) before "${event}". ${this.report()}`);
      await new Promise<void>((resolve) => {
        this.#listeners.add(resolve);
      });
    }
  }

  logged(pattern: RegExp): Promise<Said> {
    return this.hears("log", ({ message }) => pattern.test(String(message)));
  }

  /** What a failed expectation needs to be understood. */
  report(): string {
    return `It said:\n${this.said.map((said) => JSON.stringify(said)).join("\n")}\n${this.#stderr}`;
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }
}

/** Runs a task to its end, whichever that is. */
export async function live(task: EngineTask, env?: Readonly<Record<string, string>>): Promise<Child & { readonly exit: Exit }> {
  const child = new Child(task, env);
  return Object.assign(child, { exit: await child.exited });
}

/** Ends whatever a failed test has left running. */
export async function killAll(): Promise<void> {
  for (const child of alive) {
    child.kill("SIGKILL");
    child.kill("SIGCONT");
  }
  await Promise.all([...alive].map((child) => child.exited));
}
