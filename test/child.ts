// Child processes as tests see them: what they print, how they end, and the signals to end them with.

import { type ChildProcessWithoutNullStreams, type SpawnOptionsWithoutStdio, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const ROOT = new URL("../", import.meta.url);

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class Program {
  readonly process: ChildProcessWithoutNullStreams;
  readonly exited: Promise<Exit>;
  /** The complete lines of its stdout so far. */
  readonly lines: string[] = [];
  stdout = "";
  stderr = "";
  exit: Exit | null = null;
  readonly #listeners = new Set<() => void>();
  #beginning = "";

  constructor([command = "", ...args]: readonly string[], options: SpawnOptionsWithoutStdio = {}) {
    this.process = spawn(command, args, options);
    // A child that was killed does not read what is sent to it.
    this.process.stdin.on("error", () => {});
    this.process.stdout.setEncoding("utf8").on("data", (text: string) => this.#printed(text));
    this.process.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
      this.#tell();
    });
    this.exited = new Promise((resolve) => {
      this.process.once("close", (code, signal) => {
        this.exit = { code, signal };
        this.#tell();
        resolve(this.exit);
      });
    });
  }

  /** What `look` finds, now or after more was printed; rejects if the process ends before. */
  async until<T>(look: () => T | undefined): Promise<T> {
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      if (this.exit !== null) throw new Error(`It ended before it printed what was waited for. ${this.report()}`);
      await new Promise<void>((resolve) => {
        this.#listeners.add(resolve);
      });
    }
  }

  tell(line: string): void {
    this.process.stdin.write(`${line}\n`);
  }

  /** Ends it, and waits until it is gone. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    this.process.kill(signal);
    await this.exited;
  }

  /** What a failed expectation needs to be understood. */
  report(): string {
    const how = this.exit === null ? "It runs" : `It ended with ${this.exit.code ?? this.exit.signal}`;
    return `${how} and printed:\n${this.stdout}\n${this.stderr}`;
  }

  #printed(text: string): void {
    this.stdout += text;
    const lines = (this.#beginning + text).split("\n");
    this.#beginning = lines.pop() ?? "";
    for (const line of lines) this.lines.push(line);
    this.#tell();
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }
}

/** The address of a built module, for the code of a child. */
export function built(path: string): string {
  return new URL(`dist/${path}`, ROOT).href;
}

export interface Child {
  readonly process: ChildProcessWithoutNullStreams;
  /** The next line it prints; rejects if it ends before. */
  line(): Promise<string>;
  tell(line: string): void;
  /** Everything it printed from here on, once it has ended well. */
  rest(): Promise<string[]>;
  /** Ends it at once, and waits until it is gone. */
  kill(): Promise<void>;
}

/**
 * Starts a child that runs a piece of code against the built package and talks in lines. Its code may use `say(line)`, `await heard()` for
 * the next line it is told, and top-level await. With `prefix`, the command that starts Node; with `flags`, options of Node.
 */
export function startChild(code: string, prefix: readonly string[] = [], flags: readonly string[] = []): Child {
  const source = `
    import { createInterface } from "node:readline";
    const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
    const heard = async () => (await lines.next()).value;
    const say = (line) => process.stdout.write(line + "\\n");
    ${code}
    process.stdin.destroy();`;
  const node = [process.execPath, ...flags, "--input-type=module", "--no-warnings", "-e", source];
  const program = new Program([...prefix, ...node], { cwd: fileURLToPath(ROOT) });
  let read = 0;
  return {
    process: program.process,
    async line() {
      const line = await program.until(() => program.lines[read]);
      read += 1;
      return line;
    },
    tell: (line) => program.tell(line),
    async rest() {
      const { code } = await program.exited;
      if (code !== 0) throw new Error(program.report());
      return program.lines.slice(read);
    },
    kill: () => program.kill(),
  };
}
