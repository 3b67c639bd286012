import { TerminalError } from "../base/errors.ts";
import type { StepInfo } from "../core/context.ts";
import type { EffectSpec } from "../core/effect.ts";
import { contentOf, type FileContent, removeFile, replaceFile, sha256 } from "../files/atomic-file.ts";

export interface WriteFileOptions {
  /** What the file held before, `null` for nothing, as a step with `contentOf(path)` has recorded it: `undo` puts it back. Default: no undo. */
  readonly before?: FileContent | null;
}

export interface WrittenFile {
  readonly path: string;
  readonly sha256: string;
}

/**
 * Overwrites a file whole: a reader sees the old content or the new one, never a part. Doing it again leaves the same bytes.
 *
 * ```ts
 * await ctx.effect("publish", writeFile("public/report.html", html));
 * ```
 */
export function writeFile(
  path: string,
  content: FileContent,
  { before }: WriteFileOptions = {},
): EffectSpec<WrittenFile> {
  return {
    async do(info) {
      await replaceFile(path, content, info);
      return { path, sha256: sha256(content) };
    },
    ...(before !== undefined && { undo: (_: unknown, info: StepInfo) => putBack(path, content, before, info) }),
    class: "write",
    idempotent: "natural",
  };
}

// What was there before comes from a step: read in `do`, it would be the new content when `do` runs for the second time.
async function putBack(path: string, written: FileContent, before: FileContent | null, info: StepInfo): Promise<void> {
  const now = digestOf(await contentOf(path));
  if (now === digestOf(before)) return;
  if (now !== digestOf(written)) throw changedSince(path);
  if (before === null) await removeFile(path);
  else await replaceFile(path, before, info);
}

function digestOf(content: FileContent | null): string | null {
  return content === null ? null : sha256(content);
}

function changedSince(path: string): TerminalError {
  return new TerminalError(
    `${path} was changed after it was written, so what it held before was not put back. Compare the two and decide by hand.`,
  );
}
