import type { StepInfo } from "../core/context.ts";
import type { EffectSpec } from "../core/effect.ts";
import { keyText } from "./key-text.ts";
import { asDetected, lookFirst } from "./look-first.ts";

/** Comments, all of them: further pages may come as they are fetched. */
export type Comments<C> = Iterable<C> | AsyncIterable<C>;

export interface CommentOptions<C> {
  /** Every comment that is there, not only the first page. Must not write. */
  readonly list: (info: StepInfo) => Comments<C> | Promise<Comments<C>>;
  /** Posts the text and returns the comment as `list` would. */
  readonly post: (text: string, info: StepInfo) => C | Promise<C>;
  /** What to say; the marker is put in front of it. */
  readonly text: string;
  /** The text of a comment. Default: itself, its `body` or its `text`. */
  readonly read?: (comment: C) => string;
  /** What stands in front of the comment, in a line of its own; most trackers do not show the default. Default: an HTML comment. */
  readonly marker?: (key: string) => string;
  /** Takes the comment away, for `undo`; must not mind if it is gone. Default: no undo. */
  readonly remove?: (comment: C, info: StepInfo) => unknown;
}

/**
 * Posts a comment once: a marker with the run's id and the step is put in front, and looked for among the comments that are there. Another
 * run has a marker of its own.
 *
 * ```ts
 * await ctx.effect("say hello", comment({ list: () => issue.comments(), post: (text) => issue.comment(text), text: "Hello" }));
 * ```
 */
export function comment<C>(options: CommentOptions<C>): EffectSpec<C> {
  const { list, post, text, read = textOf, marker = htmlMarker, remove } = options;
  const spec = lookFirst<C>({
    async detect(info) {
      const key = keyText(info.key);
      const mark = marker(key);
      for await (const one of await list(info)) if (beginsWith(read(one), mark, key)) return asDetected(one);
      return { found: false };
    },
    act: (info) => post(`${marker(keyText(info.key))}\n${text}`, info),
  });
  if (remove === undefined) return spec;
  return { ...spec, undo: (posted, info) => (posted === undefined ? undefined : remove(posted, info)) };
}

/** A marker that ends with its key may be the beginning of another one's: then something of that key follows, and no key has a space or a "<". */
function beginsWith(text: string, mark: string, key: string): boolean {
  const start = text.trimStart();
  if (!start.startsWith(mark)) return false;
  return !mark.endsWith(key) || /^([\s<]|$)/.test(start.slice(mark.length));
}

function htmlMarker(key: string): string {
  return `<!-- pawl ${key} -->`;
}

function textOf(comment: unknown): string {
  if (typeof comment === "string") return comment;
  const { body, text } = comment as { readonly body?: unknown; readonly text?: unknown };
  return String(body ?? text ?? "");
}
