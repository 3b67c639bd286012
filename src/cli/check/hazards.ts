// Determinism hazards
// A body that reads the clock, rolls dice, sets timers or fetches takes another way in replay. Whoever plays a workflow sees them happen; without
// a play the text of the file is searched, which finds only what stands inside of `workflow(…)` and may be wrong.
import { readFileSync } from "node:fs";
import type { Log } from "../../core/context.ts";
import { INSTEAD } from "../../worker/guard.ts";
import { relativeToHere } from "../code-place.ts";

export interface Hazard {
  /** `Date.now()` */
  readonly what: string;
  /** `workflows/order.ts:12` */
  readonly line: string;
  readonly instead: string;
  /** Whether a play came to it, or it only stands there. */
  readonly isSeen: boolean;
}

/** Notes what the guard of bodies tells while something is played. */
export function hazardLog(found: Hazard[]): Log {
  const nothing = () => {};
  return {
    debug: nothing,
    info: nothing,
    error: nothing,
    warn(_message, facts) {
      const { what, site } = (facts ?? {}) as { readonly what?: unknown; readonly site?: unknown };
      if (typeof what !== "string" || typeof site !== "string") return;
      const place = /\(?((?:file:\/\/)?[^()\s]+?:\d+)(?::\d+)?\)?$/.exec(site)?.[1] ?? site;
      const line = relativeToHere(place.replace(/^file:\/\//, ""));
      found.push({ what, line, instead: INSTEAD[what] ?? "a ctx.step", isSeen: true });
    },
  };
}

const CALLS: readonly (readonly [what: string, pattern: RegExp])[] = [
  ["Date.now()", /\bDate\.now\(/g],
  ["new Date()", /\bnew Date(?:\(\s*\)|\b(?!\s*\())/g],
  ["Math.random()", /\bMath\.random\(/g],
  ["crypto.randomUUID()", /\brandomUUID\(/g],
  ["setTimeout()", /\bsetTimeout\(/g],
  ["setInterval()", /\bsetInterval\(/g],
  ["setImmediate()", /\bsetImmediate\(/g],
  ["fetch()", /(?<![\w.])fetch\(/g],
];

const BODY = /\bworkflow(?:<[^()]*>)?\(/g;
/** What stands in these runs as a step, or is about another run. */
const STEP = /\.(?:step|effect|transaction|approve|call|spawn)(?:<[^()]*>)?\(/g;

/** Searches a file. */
export function scan(file: string): Hazard[] {
  const text = withoutWords(readFileSync(file, "utf8"));
  return rangesOf(text, BODY).flatMap(([start, end]) => {
    let body = text.slice(start, end);
    for (const [from, to] of rangesOf(body, STEP)) body = blank(body, from, to);
    return CALLS.flatMap(([what, pattern]) =>
      [...body.matchAll(pattern)].map(({ index }): Hazard => {
        const line = text.slice(0, start + index).split("\n").length;
        return { what, line: `${file}:${line}`, instead: INSTEAD[what] ?? "a ctx.step", isSeen: false };
      }),
    );
  });
}

/** From what a pattern finds, which ends with an opening bracket, to the bracket that closes it. */
function rangesOf(text: string, pattern: RegExp): [start: number, end: number][] {
  return [...text.matchAll(pattern)].map(({ index, 0: found }) => {
    let depth = 1;
    let at = index + found.length;
    for (; at < text.length && depth > 0; at++) {
      if (text[at] === "(") depth++;
      if (text[at] === ")") depth--;
    }
    return [index, at];
  });
}

function blank(text: string, from: number, to: number): string {
  return text.slice(0, from) + text.slice(from, to).replaceAll(/[^\n]/g, " ") + text.slice(to);
}

const WORDS = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[\s\S]|[^`\\])*`/g;

/** Comments and texts as blanks, so that positions stay. */
function withoutWords(text: string): string {
  return text.replaceAll(WORDS, (words) => words.replaceAll(/[^\n]/g, " "));
}
