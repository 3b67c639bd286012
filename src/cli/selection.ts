// Which runs a command is about: the options of `pawl ls`, or the pairs of `--where`.
import { PawlError } from "../base/errors.ts";
import type { RunSelection } from "../client/run-list.ts";
import { type PublicStatus, RUN_STATES, type RunState } from "../core/transition.ts";
import { parseTime } from "./times.ts";

/** As they are typed. */
export interface SelectionTexts {
  readonly workflow?: string;
  readonly status?: string;
  readonly tag?: string;
  readonly parent?: string;
  readonly owner?: string;
  readonly search?: string;
  readonly after?: string;
  readonly before?: string;
}

const PUBLIC_STATUSES: readonly string[] = ["running", "waiting", "succeeded", "failed", "cancelled"];

export const STATUSES: readonly string[] = [...new Set([...PUBLIC_STATUSES, ...RUN_STATES])];

export function selectionOf(texts: SelectionTexts, now: number): RunSelection {
  const { workflow, status, tag, parent, owner, search, after, before } = texts;
  const isPublic = status !== undefined && PUBLIC_STATUSES.includes(status);
  return {
    ...(workflow !== undefined && { workflow }),
    ...(tag !== undefined && { tag }),
    ...(parent !== undefined && { parent }),
    ...(owner !== undefined && { owner }),
    ...(search !== undefined && { search }),
    ...(after !== undefined && { after: parseTime(after, "--after", now) }),
    ...(before !== undefined && { before: parseTime(before, "--before", now) }),
    ...(status !== undefined && (isPublic ? { status: status as PublicStatus } : { state: status as RunState })),
  };
}

const KEYS: readonly string[] = [
  "workflow",
  "status",
  "tag",
  "parent",
  "owner",
  "search",
  "after",
  "before",
] satisfies (keyof SelectionTexts)[];

export const WHERE_HELP: string = `which runs: pairs such as status=failed,workflow=checkout; of ${KEYS.join(", ")}`;

/** Reads `status=failed,workflow=checkout`. A comma of a value is written as "\\,". */
export function readWhere(text: string, now: number): RunSelection {
  const texts = new Map<string, string>();
  for (const pair of text.split(/(?<!\\),/)) {
    const [, key = "", value = ""] = /^\s*([a-z]+)\s*=\s*(.*?)\s*$/su.exec(pair) ?? [];
    if (!KEYS.includes(key) || value === "") throw unreadable(pair, `Give pairs such as ${KEYS.join("=…, ")}=….`);
    if (texts.has(key)) throw unreadable(pair, `"${key}" is there twice; give each once.`);
    texts.set(key, value.replaceAll("\\,", ","));
  }
  const status = texts.get("status");
  if (status !== undefined && !STATUSES.includes(status))
    throw unreadable(`status=${status}`, `A status is one of ${STATUSES.join(", ")}.`);
  return selectionOf(Object.fromEntries(texts), now);
}

function unreadable(pair: string, advice: string): PawlError {
  return new PawlError("invalid_argument", `--where cannot be read at ${JSON.stringify(pair)}. ${advice}`, {
    fields: { option: "--where", pair },
  });
}
