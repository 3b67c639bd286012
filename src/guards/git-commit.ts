// Commits that are found again
// A commit carries its key as a trailer, so the history itself says whether it was made, and no record beside it is needed. With a result
// file there are two outside effects, and a detector, which must not write, could not make up for the second one: so there `do` is safe
// to repeat instead. It finds the commit, and writes the file that a crash has left unwritten (S0-30).
import { resolve } from "node:path";
import { PawlError } from "../base/errors.ts";
import type { StepInfo } from "../core/context.ts";
import type { EffectSpec } from "../core/effect.ts";
import type { Detected, UndoInfo } from "../core/undoable-call.ts";
import { git } from "./git.ts";
import { keyText } from "./key-text.ts";
import { readPassed, writeResult } from "./result-file.ts";

const TRAILER = "Pawl-Step";

export interface GitCommitOptions {
  /** A folder of the working tree. */
  readonly cwd: string;
  /** The trailer is added at its end. */
  readonly message: string;
  /** Files and folders, relative to `cwd`, that are added and committed, and nothing else. Default: what is staged. */
  readonly paths?: readonly string[];
  /** Where to write `{ "passed": true, "commit": … }`, relative to `cwd`. While it says so for this step, that is the result. Default: no file. */
  readonly resultFile?: string;
  /** Whether to commit also if nothing has changed; otherwise there is no commit then, and the result says `null`. Default false. */
  readonly allowEmpty?: boolean;
  /** Whether the commit is reverted, by another commit, if the effect has to be undone. Default false. */
  readonly undo?: boolean;
}

export interface Committed {
  /** `null`: nothing had changed. */
  readonly commit: string | null;
}

/**
 * Commits once: the commit carries the step's key as a trailer, `Pawl-Step`, and is looked for in HEAD and all branches and tags.
 *
 * ```ts
 * const { commit } = await ctx.effect("commit", gitCommit({ cwd: "site", message: "Publish", paths: ["public"] }));
 * ```
 */
export function gitCommit(options: GitCommitOptions): EffectSpec<Committed> {
  const { cwd, undo = false } = options;
  if (options.message.trim() === "") throw wordless();
  const file = options.resultFile === undefined ? null : resolve(cwd, options.resultFile);

  const committed = async (info: StepInfo): Promise<Committed> => {
    const known = file === null ? null : await resultIn(file, info);
    if (known !== null) return known;
    const commit = (await find(cwd, info.key, info)) ?? (await commitNow(options, info));
    if (file !== null) await writeResult(file, { passed: true, commit, key: info.key }, info);
    return { commit };
  };

  const takenBack = async (made: Committed | undefined, info: UndoInfo): Promise<void> => {
    const commit = made === undefined ? await find(cwd, info.undoes, info) : made.commit;
    if (commit !== null) await revert(cwd, commit, info);
    if (file !== null) await writeResult(file, { passed: false, commit, reverted: true }, info);
  };

  return {
    class: "write",
    do: committed,
    ...(file === null ? { detect: (info: StepInfo) => detected(cwd, info) } : { idempotent: true }),
    ...(undo && { undo: takenBack }),
  };
}

async function detected(cwd: string, info: StepInfo): Promise<Detected<Committed>> {
  const commit = await find(cwd, info.key, info);
  return commit === null ? { found: false } : { found: true, value: { commit } };
}

/** A file that names no key was written by another tool, which knows what it does; one that names another key is another step's. */
async function resultIn(file: string, info: StepInfo): Promise<Committed | null> {
  const result = await readPassed(file);
  if (result === null) return null;
  const { key = info.key, commit = null } = result;
  return key === info.key ? { commit: commit as string | null } : null;
}

/** The commit with this key as its trailer. The text may stand anywhere in a message; a trailer is what git takes for one. */
async function find(cwd: string, key: string, info: StepInfo): Promise<string | null> {
  const text = `--grep=${TRAILER}: ${keyText(key)}`;
  const candidates = await git(cwd, ["rev-list", "--all", "--fixed-strings", text], info);
  for (const commit of candidates.split("\n").filter(Boolean))
    if (await isMarked(cwd, commit, key, info)) return commit;
  return null;
}

async function isMarked(cwd: string, commit: string, key: string, info: StepInfo): Promise<boolean> {
  // Settings of the user's that would change what is printed.
  const settings = ["-c", "trailer.separators=:", "-c", "log.showSignature=false"];
  const format = `--format=%(trailers:key=${TRAILER},valueonly)`;
  const values = await git(cwd, [...settings, "show", "--no-patch", format, commit], info);
  return values.split("\n").includes(keyText(key));
}

async function commitNow(options: GitCommitOptions, info: StepInfo): Promise<string | null> {
  const { cwd, message, paths, allowEmpty = false } = options;
  // To git, no paths are all paths.
  const hasNone = paths !== undefined && paths.length === 0;
  const which = paths === undefined || hasNone ? [] : ["--", ...paths];
  // Paths are names, not patterns.
  const run = (...args: string[]) => git(cwd, ["--literal-pathspecs", ...args, ...which], info);
  if (which.length > 0) await run("add", "--all");
  // All that is staged counts, also if the user's settings have differences shown of the folder alone.
  const changes = hasNone ? "" : await run("diff", "--cached", "--name-only", "--no-relative");
  // A git that outlived its process may have committed after we looked.
  if (changes === "" && !allowEmpty) return find(cwd, info.key, info);
  const words = ["commit", "--quiet", "--cleanup=whitespace", "--file=-", ...(allowEmpty ? ["--allow-empty"] : [])];
  if (hasNone) words.push("--only");
  await git(cwd, ["--literal-pathspecs", ...words, ...which], info, withTrailer(message, keyText(info.key)));
  const commit = (await git(cwd, ["rev-parse", "HEAD"], info)).trim();
  if (await isMarked(cwd, commit, info.key, info)) return commit;
  // Another one came on top of it, or a hook has changed the message.
  return (await find(cwd, info.key, info)) ?? unmarked(cwd, commit);
}

/** Adds the trailer to those that the message ends with, if it does; otherwise as a paragraph of its own. */
function withTrailer(message: string, key: string): string {
  const paragraphs = message.trim().split(/\n\s*\n/);
  const last = (paragraphs.at(-1) ?? "").split("\n");
  // The first paragraph is the title, even if it reads "fix: …".
  const endsWithTrailers = paragraphs.length > 1 && last.every((line) => /^[A-Za-z0-9-]+: /.test(line));
  return `${message.trim()}${endsWithTrailers ? "\n" : "\n\n"}${TRAILER}: ${key}\n`;
}

function unmarked(cwd: string, commit: string): string {
  process.emitWarning(
    `A hook in ${cwd} has taken the trailer ${TRAILER} out of commit ${commit}. After a crash it would not be found, and made again: let the hook keep it.`,
  );
  return commit;
}

function wordless(): PawlError {
  return new PawlError(
    "invalid_argument",
    "`message` of gitCommit is empty. Say what the commit does: its first line becomes the title.",
    { fields: { field: "message" } },
  );
}

/** What somebody is in the middle of reverting or picking. */
async function underWay(cwd: string, info: StepInfo): Promise<string> {
  const head = (name: string) => git(cwd, ["rev-parse", "--quiet", "--verify", name], info).catch(() => "");
  return (await head("REVERT_HEAD")) + (await head("CHERRY_PICK_HEAD"));
}

/** Reverts it, unless the history of HEAD says that it was. */
async function revert(cwd: string, commit: string, info: StepInfo): Promise<void> {
  const before = await underWay(cwd, info);
  const said = `--grep=This reverts commit ${commit}`;
  if ((await git(cwd, ["rev-list", "--max-count=1", "--fixed-strings", said, "HEAD"], info)) !== "") return;
  try {
    await git(cwd, ["revert", "--no-edit", commit], info);
  } catch (error) {
    // The conflict is for people, but not in the middle of the working tree. What others had begun there is theirs.
    if (before === "" && (await underWay(cwd, info)).trim() === commit)
      await git(cwd, ["revert", "--abort"], info).catch(() => {});
    throw error;
  }
}
