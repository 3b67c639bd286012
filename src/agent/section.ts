import { PawlError } from "../base/errors.ts";
import type { SessionView } from "./session-view.ts";
import type { Tool } from "./tool.ts";

/** The text of a section: with `$name` and `${name}` in the place of parameters (`$$` is a dollar), or made from them and the session. */
export type SectionBody<P> = string | ((params: P, session: SessionView) => string);

export interface SectionSpec<P> {
  /** Its heading: one line. */
  readonly title: string;
  /** Unlike that of any other section of its prompt. Letters, digits, "_" and "-". */
  readonly key: string;
  /** What it says: text with placeholders, or a function of the parameters and the session. */
  readonly body: SectionBody<P>;
  /** "summary" shows the summary until the model opens the section. Default "full". */
  readonly visibility?: "full" | "summary";
  /** What is shown in the place of the body. Needed for "summary". Default: none. */
  readonly summary?: SectionBody<P>;
  /** Tools that the model has while the section is part of the prompt. Default: none. */
  readonly tools?: readonly Tool<never, unknown>[];
  /** Whether the section is part of the prompt. Default: always. */
  readonly enabled?: (params: P, session: SessionView) => boolean;
}

/** A part of a prompt. */
export interface Section<P> {
  readonly title: string;
  readonly key: string;
  readonly body: SectionBody<P>;
  readonly visibility: "full" | "summary";
  readonly summary: SectionBody<P>;
  readonly tools: readonly Tool[];
  readonly enabled: (params: P, session: SessionView) => boolean;
}

/**
 * Makes a part of a prompt.
 * @example
 * section({ title: "Task", key: "task", body: "Review $path." })
 */
export function section<P = unknown>(spec: SectionSpec<P>): Section<P> {
  const { title, key, body, visibility = "full", summary = "", tools = [], enabled = () => true } = spec;
  if (!/^[\w-]{1,64}$/.test(key))
    throw invalid(key, "key", `has a key that cannot be one. Use 1 to 64 letters, digits, "_" and "-".`);
  if (typeof title !== "string" || title.trim() === "" || /[\r\n]/.test(title))
    throw invalid(key, "title", "needs a title of one line.");
  if (visibility === "summary" && summary === "")
    throw invalid(key, "summary", 'is shown as a summary and has none. Give `summary`, or visibility "full".');
  return Object.freeze({
    title: title.trim(),
    key,
    body,
    visibility,
    summary,
    tools: tools as readonly Tool[],
    enabled,
  });
}

function invalid(key: string, field: string, what: string): PawlError {
  return new PawlError("invalid_argument", `Section "${key}" ${what}`, { fields: { section: key, field } });
}
