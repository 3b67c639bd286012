// The report
// What an exploration has found. Its text is made for the person whose test has just failed: each fault once, with what to do about it and
// how to come back to it.
import type { CrashMode, CrashPoint } from "./crash-point.ts";
import { show } from "./run-end.ts";
import type { FaultKind } from "./verdict.ts";

/** Something that did not hold, at a point. */
export interface CrashFailure {
  /** Point 0 stands for no crash at all. */
  readonly point: CrashPoint;
  readonly second?: CrashPoint;
  readonly mode: CrashMode;
  readonly kind: FaultKind;
  /** What happened, where, and what to do about it. */
  readonly message: string;
  readonly step?: string;
  readonly line?: string;
}

/** A step whose function started more often than its failures asked for. */
export interface CrashRepeat {
  readonly step: string;
  /** Its idempotency key. */
  readonly key: string;
  /** The most starts in one history. */
  readonly times: number;
  /** Its arguments, for a step that was given some. */
  readonly input: unknown;
  /** Whether its function read its idempotency key. */
  readonly usedKey: boolean;
}

/** What `crashEverywhere` has found. */
export interface CrashReport {
  readonly ok: boolean;
  readonly workflow: string;
  /** How the undisturbed run ended, in words. */
  readonly outcome: string;
  readonly points: readonly CrashPoint[];
  /** Histories that were played. */
  readonly explored: number;
  /** Histories that could not differ from one that was played. */
  readonly skipped: number;
  /** Histories that were left out, by sampling or for want of time. */
  readonly left: number;
  readonly seed: number;
  /** Nothing was left out. */
  readonly isComplete: boolean;
  readonly repeats: readonly CrashRepeat[];
  /** Steps that came to something else without any crash, as one that reads the time does. While there are any, results are not compared. */
  readonly varying: readonly string[];
  /** What the body reads that gives another value in replay, with the line, even if nothing differed because of it. */
  readonly hazards: readonly string[];
  readonly failures: readonly CrashFailure[];
  /** For people. */
  toString(): string;
}

const SHOWN = 10;

export function reportOf(facts: Omit<CrashReport, "ok" | "isComplete" | "toString">): CrashReport {
  const report = { ...facts, ok: facts.failures.length === 0, isComplete: facts.left === 0 };
  return { ...report, toString: () => textOf(report) };
}

function textOf(report: Omit<CrashReport, "toString">): string {
  const { workflow, outcome, points, explored, skipped, left, seed, failures, repeats } = report;
  const rest = left === 0 ? "" : `, ${left} left out (seed ${seed})`;
  return [
    `${report.ok ? "ok" : "FAILED"}: "${workflow}" ${outcome}; ${points.length} points, ${explored} histories explored, ` +
      `${skipped} skipped as already explored${rest}`,
    ...grouped(failures),
    ...(report.ok && explored + skipped + left === 0 ? ["", NOTHING_TRIED] : []),
    ...unguarded(repeats),
    ...remarksOf(report).flatMap((remark) => ["", remark]),
  ].join("\n");
}

/** One point was asked for, and at this one there is nothing to try. */
export const NOTHING_TRIED: string =
  "No crash was tried: none of the `modes` can happen at this point in one process. In the middle of a function only a kill can, and where the " +
  "test has `fresh` or `observe`, only of a real process, as `pawl test` does it.";

/** The same fault shows at many points: it is told once. */
function grouped(failures: readonly CrashFailure[]): string[] {
  const groups = new Map<string, CrashFailure[]>();
  for (const failure of failures) {
    const cause = `${failure.kind} ${failure.step ?? ""} ${failure.line ?? ""}`;
    const group = groups.get(cause);
    if (group === undefined) groups.set(cause, [failure]);
    else group.push(failure);
  }
  const lines = [...groups.values()].slice(0, SHOWN).flatMap((group) => {
    const first = group[0] as CrashFailure;
    const others = group.length > 1 ? ` (and in ${group.length - 1} more histories)` : "";
    return ["", `${first.kind}: ${first.message}`, `  ${whereOf(first)}${others}`];
  });
  return groups.size > SHOWN ? [...lines, "", `… and ${groups.size - SHOWN} more faults`] : lines;
}

function whereOf({ point, second, mode }: CrashFailure): string {
  if (point.n === 0) return "without any crash";
  const then = second === undefined ? "" : `, then at point ${second.n}, ${second.label}`;
  return `${mode} at point ${point.n}, ${point.label}${then}: explore it alone with at: ${point.n}`;
}

/** Advice, no failures: what the test may not have been meant to be, and what it cannot tell. */
export function remarksOf({
  outcome,
  varying,
  hazards,
  failures,
}: Pick<CrashReport, "outcome" | "varying" | "hazards" | "failures">): string[] {
  const hasOwnFault = failures.some(({ point }) => point.n === 0);
  return [
    ...(outcome.startsWith("failed") && !hasOwnFault ? [FAILED] : []),
    ...(varying.length === 0 ? [] : [varyingWords(varying)]),
    ...(hazards.length === 0 || failures.length > 0 ? [] : [hazardRemark(hazards)]),
  ];
}

const FAILED =
  "The undisturbed run failed, so what would come after that was not tried. If it is not meant to fail, look at its input first.";

function hazardRemark(hazards: readonly string[]): string {
  return `The body reads ${hazards.slice(0, SHOWN).join(" and ")}, which gives another value in replay. Nothing differed because of it here; with another input or at another time it may.`;
}

/** A step may return whatever the outside gives. */
function varyingWords(varying: readonly string[]): string {
  const shown = varying.slice(0, SHOWN).map((step) => `"${step}"`);
  const rest = varying.length > SHOWN ? ` and ${varying.length - SHOWN} more` : "";
  return (
    `These steps vary without any crash: ${shown.join(", ")}${rest}. What follows from them is not compared with the undisturbed run, ` +
    "only with what each run has recorded. To have it compared, give them a fake of the clock or service they ask; " +
    "if they read a variable or a fake that an earlier run has changed, reset it in `fresh`; " +
    "if the body hands them something that it has drawn or measured itself, draw it in a step: after a crash it would be another."
  );
}

function unguarded(repeats: readonly CrashRepeat[]): string[] {
  const without = repeats.filter(({ usedKey }) => !usedKey);
  if (without.length === 0) return [];
  const shown = without.slice(0, SHOWN).map(({ step, times, input }) => {
    const given = input === undefined ? "" : `, with ${show(input)}`;
    return `  step "${step}" started up to ${times} times${given}`;
  });
  const rest = without.length > SHOWN ? [`  … and ${without.length - SHOWN} more`] : [];
  return [
    "",
    "These steps run again after a crash and do not use their idempotency key. If one of them changes something outside, pass `key` on:",
    ...shown,
    ...rest,
  ];
}
