// A child process that runs a piece of code against the built package and talks in lines.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const DIST = new URL("../dist/", import.meta.url);

/** The address of a built module, for the code of a child. */
export function built(path: string): string {
  return new URL(path, DIST).href;
}

export interface Child {
  readonly process: ChildProcess;
  /** The next line it prints; rejects if it ends before. */
  line(): Promise<string>;
  tell(line: string): void;
  /** Everything it printed from here on, once it has ended well. */
  rest(): Promise<string[]>;
  /** Ends it at once, and waits until it is gone. */
  kill(): Promise<void>;
}

/**
 * Starts a child. Its code may use `say(line)`, `await heard()` for the next line it is told, and top-level await. With `prefix`, the
 * command that starts Node.
 */
export function startChild(code: string, prefix: readonly string[] = []): Child {
  const source = `
    import { createInterface } from "node:readline";
    const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
    const heard = async () => (await lines.next()).value;
    const say = (line) => process.stdout.write(line + "\\n");
    ${code}
    process.stdin.destroy();`;
  const command = [...prefix, process.execPath, "--input-type=module", "--no-warnings", "-e", source];
  const child = spawn(command[0] as string, command.slice(1), {
    stdio: ["pipe", "pipe", "pipe"],
    cwd: fileURLToPath(new URL("..", import.meta.url)),
  });
  return talkTo(child);
}

function talkTo(child: ReturnType<typeof spawn>): Child {
  const { stdin, stdout, stderr } = child;
  if (stdin === null || stdout === null || stderr === null) throw new Error("The child has no pipes.");
  let complaint = "";
  stderr.on("data", (text) => {
    complaint += text;
  });
  stdin.on("error", () => {});
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  const ended = once(child, "close");
  const failure = () => new Error(`The child ended (${child.exitCode ?? child.signalCode}): ${complaint}`);
  return {
    process: child,
    async line() {
      const { value, done } = await lines.next();
      if (!done) return value;
      await ended;
      throw failure();
    },
    tell: (line) => void stdin.write(`${line}\n`),
    async rest() {
      const rest: string[] = [];
      for (let next = await lines.next(); !next.done; next = await lines.next()) rest.push(next.value);
      await ended;
      if (child.exitCode !== 0) throw failure();
      return rest;
    },
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
