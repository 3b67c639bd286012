// What a crash test found, for people: the figures, each failure once however many points show it, and advice.
import type { CrashMode, CrashPoint } from "../testing/explorer/crash-point.ts";
import { type CrashReport, NOTHING_TRIED, remarksOf } from "../testing/explorer/report.ts";
import type { FreshReport } from "./fresh-processes.ts";
import type { Output } from "./output.ts";
import { clean, countOf, shortJson } from "./printable.ts";
import { type Cell, table } from "./table.ts";
import type { TestReport } from "./test.ts";

interface Finding {
  /** Point 0 stands for no crash at all. */
  readonly point: CrashPoint;
  readonly second?: CrashPoint;
  readonly mode?: CrashMode;
  readonly kind: string;
  readonly message: string;
  readonly step?: string;
  readonly line?: string;
}

const MOST_NUMBERS = 12;
const MOST_NAMES = 10;
const MOST_FAILURES = 10;

export function printReport(out: Output, { test, ok, crashes, processes }: TestReport, seed: number): void {
  const { color } = out;
  out.print(color.bold(clean(test)));
  const facts: [string, string][] = [
    ["undisturbed", clean(crashes.outcome)],
    ["in this process", crashesText(crashes)],
  ];
  if (processes !== null) facts.push(["fresh processes", processesText(processes)]);
  facts.push(["seed", String(seed)]);
  const rows = facts.map(([name, value]): Cell[] => [{ text: name, paint: color.dim }, value]);
  for (const line of table(rows, { indent: 2 })) out.print(line);
  const failures = [...groups(crashes.failures), ...groups(processes?.failures ?? [])];
  for (const group of failures.slice(0, MOST_FAILURES)) printFailure(out, group);
  if (failures.length > MOST_FAILURES)
    out.print(`\n  … and ${failures.length - MOST_FAILURES} more; --json has them all.`);
  for (const advice of adviceOf(crashes)) out.print(`\n  ${color.yellow("advice ")}  ${clean(advice)}`);
  const isTried = crashes.explored > 0 || (processes?.explored ?? 0) > 0;
  const untried = crashes.isComplete ? NOTHING_TRIED : "No crash was tried. Give more time with --budget.";
  const fine = isTried ? color.green("No failure.") : color.yellow(untried);
  out.print(ok ? `\n  ${fine}\n` : `\n  ${color.red(`${countOf(failures.length, "failure")}.`)}\n`);
}

function crashesText({ points, explored, skipped, isComplete }: CrashReport): string {
  const most = `${countOf(points.length, "point")}, ${countOf(explored, "crash", "crashes")} tried, ${skipped} skipped as equal to one that was tried`;
  return isComplete ? most : `${most}; not all: sampled, or the budget was used up`;
}

function processesText({ points, drawn, explored, isComplete, notCompared }: FreshReport): string {
  const lot = drawn === null ? "" : `, ${drawn} ${drawn === 1 ? "was" : "were"} drawn by lot`;
  const late = isComplete || explored === drawn ? "" : "; the budget was used up";
  const parts = notCompared.map((path) => (path === "" ? "the result" : path.replace(/^\./, ""))).join(", ");
  const apart = parts === "" ? "" : `; not compared: ${parts}, which differs without any crash`;
  return `${explored} of ${countOf(points, "point")} tried${lot}${late}${apart}`;
}

/** Failures that say the same of the same place, at other points. */
function groups(failures: readonly Finding[]): Finding[][] {
  const found = new Map<string, Finding[]>();
  for (const failure of failures) {
    const { kind, step, line } = failure;
    const sort = JSON.stringify([kind, step ?? line ?? null]);
    const group = found.get(sort);
    if (group === undefined) found.set(sort, [failure]);
    else group.push(failure);
  }
  return [...found.values()];
}

function printFailure(out: Output, [first, ...others]: readonly Finding[]): void {
  if (first === undefined) return;
  out.print(`\n  ${out.color.red("failure")}  ${clean(first.message)}`);
  out.print(`           ${out.color.dim(clean(`${whereOf(first)}${alsoAt(first, others)}`))}`);
}

function whereOf({ point, second, mode = "kill" }: Finding): string {
  if (point.n === 0) return "Without any crash.";
  const then = second === undefined ? "" : `, then at point ${second.n}, ${second.label}`;
  return `${MODE_WORDS[mode]} at point ${point.n}, ${point.label}${then}.`;
}

const MODE_WORDS: Readonly<Record<CrashMode, string>> = {
  kill: "Killed",
  "lost-answer": "Left without an answer",
  "take-over": "Frozen, and taken over from,",
};

function alsoAt(first: Finding, others: readonly Finding[]): string {
  if (first.point.n === 0) return "";
  const numbers = [...new Set(others.map(({ point }) => point.n))].filter((n) => n !== first.point.n);
  const more = numbers.length > MOST_NUMBERS ? ` and ${numbers.length - MOST_NUMBERS} more` : "";
  const list = `${numbers.length === 1 ? "point" : "points"} ${numbers.slice(0, MOST_NUMBERS).join(", ")}${more}`;
  return `${numbers.length === 0 ? "" : ` The same at ${list}.`} Look into it with --at ${first.point.n}.`;
}

function adviceOf(crashes: CrashReport): string[] {
  return [...repeatAdvice(crashes.repeats), ...remarksOf(crashes)];
}

/** Nobody but the author can tell whether a step does anything outside: so it is advice. */
function repeatAdvice(repeats: CrashReport["repeats"]): string[] {
  const unguarded = repeats.filter(({ usedKey }) => !usedKey);
  if (unguarded.length === 0) return [];
  const steps = unguarded.slice(0, MOST_NAMES).map(({ step, times, input }) => {
    const given = input === undefined ? "" : ` with ${shortJson(input, 80)}`;
    return `"${step}" (${times} times${given})`;
  });
  const more = unguarded.length > MOST_NAMES ? ` and ${unguarded.length - MOST_NAMES} more` : "";
  return [
    `These steps ran again after a crash and did not use their key: ${steps.join(", ")}${more}. If one changes something outside, pass the key on: ctx.step(name, ({ key }) => …).`,
  ];
}
