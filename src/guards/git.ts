// Git, by its own program and without a shell: nothing in a message or a path is ever read as a command or an option.
import { type ExecFileException, execFile } from "node:child_process";
import { RetryableError } from "../base/errors.ts";
import type { StepInfo } from "../core/context.ts";

const LARGEST_OUTPUT = 16_777_216;

/** A process that git has started for one of its hooks is told by them which repository is meant. Here it is the folder that says so. */
const ELSEWHERE = [
  "GIT_DIR",
  "GIT_WORK_TREE",
  "GIT_INDEX_FILE",
  "GIT_COMMON_DIR",
  "GIT_OBJECT_DIRECTORY",
  "GIT_NAMESPACE",
  "GIT_PREFIX",
];

/** Runs git in a folder; returns what it prints. The signal ends it. */
export function git(cwd: string, args: readonly string[], { signal }: StepInfo, input = ""): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { cwd, signal, env: environment(), maxBuffer: LARGEST_OUTPUT };
    const child = execFile("git", args, options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(signal.aborted ? signal.reason : gitError(cwd, args, error, stderr.trim() || stdout.trim()));
    });
    // It may end without reading; what matters is how it ended.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}

function environment(): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, LC_ALL: "C.UTF-8", GIT_TERMINAL_PROMPT: "0" };
  for (const name of ELSEWHERE) delete env[name];
  return env;
}

function gitError(cwd: string, args: readonly string[], error: ExecFileException, said: string): Error {
  if (error.code === "ENOENT")
    return new Error(`git cannot be started in ${cwd}. Install it, and see that the folder exists.`, { cause: error });
  const message = `git ${args.find((word) => /^[a-z][a-z-]*$/.test(word))} failed in ${cwd}: ${said || error.message}`;
  // A git that outlived the process which started it is still at work, or somebody else's is.
  const isBusy = /index\.lock|cannot lock ref|HEAD\.lock/.test(said);
  return isBusy ? new RetryableError(message, { cause: error }) : new Error(message, { cause: error });
}
