import type { Workflow } from "../../core/workflow.ts";
import { answersOf, type LintedOperation } from "./answers.ts";
import { bodyFinding, findingsOf, type LintFinding, QUESTIONS } from "./findings.ts";
import type { LintedPlay, Notebook } from "./play.ts";

/** What `lintEffects` has found. */
export interface LintReport {
  readonly ok: boolean;
  /** Every step, effect and transaction that a play came to, in that order. */
  readonly operations: readonly LintedOperation[];
  readonly findings: readonly LintFinding[];
  readonly plays: readonly LintedPlay[];
  /** Operations that stand in the text of the workflows and that no play came to: nothing is said about them. */
  readonly unseen: readonly UnseenOperation[];
  /** For people. */
  toString(): string;
}

/** An operation that no play came to. */
export interface UnseenOperation {
  readonly workflow: string;
  readonly name: string;
}

export function reportOf(
  { operations, bodyActs }: Notebook,
  plays: readonly LintedPlay[],
  workflows: readonly Workflow<never, unknown>[],
): LintReport {
  const all = operations.all;
  const found = [...all.flatMap(findingsOf), ...bodyActs.map(bodyFinding)];
  const findings = found.filter(({ message }, i) => found.findIndex((one) => one.message === message) === i);
  const answers = all.map(answersOf);
  const unseen = workflows.flatMap((one) => unseenIn(one, answers));
  const report = { ok: findings.length === 0, operations: answers, findings, plays, unseen };
  return { ...report, toString: () => textOf(report) };
}

const CALL = /\.(?:step|effect|transaction)\(\s*(["'])((?:(?!\1)[^\\\n])+)\1/g;

/** By the text of the body alone: what it does through other functions is not found. */
function unseenIn({ name: workflow, definition }: Workflow<never, unknown>, seen: readonly LintedOperation[]) {
  const calls = [...definition.handler.toString().matchAll(CALL)].map(([, , name = ""]) => name);
  const isSeen = (name: string) => seen.some((one) => one.workflow === workflow && one.name === name);
  return [...new Set(calls)].filter((name) => !isSeen(name)).map((name) => ({ workflow, name }));
}

export const HEADER = ["OPERATION", "KIND", "CLASS", "IDEMPOTENCY", "SECOND RUN", "DETECTED BY", "DETECTION"] as const;

/** The cells of one operation. */
export function cellsOf(operation: LintedOperation, { operations }: Pick<LintReport, "operations">): string[] {
  const { workflow, name, kind, class: level, idempotency, secondRun, isSeen, detectedBy, detection } = operation;
  const isAlone = operations.every((one) => one.workflow === workflow);
  const basis = secondRun === "unknown" ? "" : isSeen ? ", seen" : ", declared";
  return [
    isAlone ? name : `${workflow}: ${name}`,
    kind,
    level ?? "-",
    idempotency ?? "-",
    `${secondRun}${basis}`,
    detectedBy ?? "-",
    detection ?? "-",
  ];
}

/** What was played, and what that leaves out. */
export function remarksOf({ plays, unseen }: Pick<LintReport, "plays" | "unseen">): string[] {
  const remarks = plays.map(({ name, outcome }) => `Played "${name}": the run ${outcome}.`);
  remarks.push("Only what these plays came to is judged.");
  if (unseen.length > 0) {
    const names = unseen.map(({ workflow, name }) => `"${name}" of ${workflow}`).join(", ");
    remarks.push(`In the text of the workflow, but not played: ${names}. Give plays that come to them.`);
  }
  if (plays.some(({ isWatched }) => !isWatched))
    remarks.push(
      "Without a `recorder` nobody sees what steps do outside: only what effects say of themselves is judged.",
    );
  return remarks;
}

export function questionsOf({ questions }: LintFinding): string {
  return `Unanswered: ${questions.map((one) => `(${one}) ${QUESTIONS[one]}`).join(" ")}`;
}

function textOf(report: Omit<LintReport, "toString">): string {
  const rows = [[...HEADER], ...report.operations.map((one) => cellsOf(one, report))];
  const widths = HEADER.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  const findings = report.findings.flatMap((one) => [`finding: ${one.message}`, `  ${questionsOf(one)}`]);
  return [...lines, ...remarksOf(report), ...(report.ok ? ["No finding."] : findings)].join("\n");
}
