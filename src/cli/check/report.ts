// What `pawl check` has found, for people.
import type { LintedOperation } from "../../testing/lint/answers.ts";
import type { LintFinding } from "../../testing/lint/findings.ts";
import type { LintedPlay } from "../../testing/lint/play.ts";
import { cellsOf, HEADER, questionsOf, remarksOf, type UnseenOperation } from "../../testing/lint/report.ts";
import type { Output } from "../output.ts";
import { clean, countOf } from "../printable.ts";
import { table } from "../table.ts";
import { type AuditItem, type AuditStatus, isFault } from "./audit.ts";
import type { BumpVerdict } from "./bump.ts";
import type { Hazard } from "./hazards.ts";
import type { RunPlan } from "./run-plan.ts";
import { groupsOf, type PlanGroup } from "./unfinished-runs.ts";

export interface CheckReport {
  /** Whether it may be deployed. */
  readonly ok: boolean;
  readonly bumps: readonly BumpVerdict[];
  /** `null`: none were looked at. */
  readonly runs: RunsReport | null;
  readonly workflows: readonly CheckedWorkflow[];
  /** The ten items of readiness, where they were asked for. */
  readonly production?: readonly CheckedReadiness[];
  /** Hazards that stand in the text of files; nobody has seen them happen. */
  readonly suspected: readonly Hazard[];
}

export interface CheckedReadiness {
  readonly workflow: string;
  readonly version: string;
  readonly items: readonly AuditItem[];
}

export interface RunsReport {
  readonly ok: boolean;
  readonly looked: number;
  readonly resumes: number;
  readonly pinned: number;
  readonly decision: number;
  readonly groups: readonly PlanGroup[];
}

export interface CheckedWorkflow {
  readonly workflow: string;
  readonly version: string;
  readonly isPlayed: boolean;
  readonly operations: readonly LintedOperation[];
  readonly findings: readonly LintFinding[];
  readonly plays: readonly LintedPlay[];
  readonly unseen: readonly UnseenOperation[];
  readonly hazards: readonly Hazard[];
  readonly audit: readonly AuditItem[];
}

export function runsReport(plans: readonly RunPlan[]): RunsReport {
  const count = (plan: RunPlan["plan"]) => plans.filter((one) => one.plan === plan).length;
  const groups = groupsOf(plans);
  return {
    ok: !groups.some(isFaulty),
    looked: plans.length,
    resumes: count("resumes"),
    pinned: count("pinned"),
    decision: count("decision"),
    groups,
  };
}

/** Who decides has something to choose, or had to decide anyway. */
function isFaulty({ plan, cause, canMigrate }: PlanGroup): boolean {
  return plan === "decision" && cause !== "parked" && !(cause === "version" && canMigrate);
}

const MOST_IDS = 5;

export function printCheck(out: Output, report: CheckReport): void {
  const { color } = out;
  out.print(color.bold("Versions"));
  if (report.bumps.length === 0)
    out.print("  Nothing to compare with: give --against, or a store with unfinished runs.");
  for (const verdict of report.bumps) printBump(out, verdict);
  title(out, "Runs");
  if (report.runs === null) out.print("  None were looked at: give --store or --runs.");
  else printRuns(out, report.runs);
  for (const one of report.workflows) printEffects(out, one);
  printHazards(out, report);
  for (const { workflow, version, audit } of report.workflows)
    printItems(out, `Audit of ${clean(workflow)} ${version}`, audit);
  for (const { workflow, version, items } of report.production ?? [])
    printItems(out, `Readiness of ${clean(workflow)} ${version} for production`, items);
  const silent = report.workflows.flatMap(({ audit }) => audit).filter(({ status }) => status === "not shown").length;
  const rest =
    silent === 0 ? "" : ` ${countOf(silent, "item")} of the audit ${silent === 1 ? "was" : "were"} not shown.`;
  out.print(
    `\n${report.ok ? color.green("It may be deployed.") : color.red("It must not be deployed as it is.")}${rest}`,
  );
}

function title(out: Output, text: string): void {
  out.print(`\n${out.color.bold(text)}`);
}

function printBump(out: Output, { workflow, from, to, needed, given, ok, reasons, advice }: BumpVerdict): void {
  const { color } = out;
  const what = from === null ? `${to}, new` : to === null ? `${from}, gone` : from === to ? from : `${from} to ${to}`;
  const needs = from === null ? "" : `  needs ${needed.toUpperCase()}, has ${given.toUpperCase()}`;
  out.print(`  ${ok ? color.green("ok  ") : color.red("fail")}  ${clean(workflow)} ${what}${needs}`);
  for (const reason of reasons) out.print(`          ${reason.needs.toUpperCase()}: ${clean(reason.what)}`);
  if (advice !== null) out.print(`          ${advice}`);
}

function printRuns(out: Output, { looked, resumes, pinned, decision, groups }: RunsReport): void {
  const { color } = out;
  const counts = `${resumes} resume, ${pinned} stay pinned to their version, ${decision} need a decision`;
  out.print(`  ${countOf(looked, "unfinished run")}: ${counts}`);
  for (const group of groups) {
    const { workflow, version, plan, cause, why, runs, diff = [] } = group;
    const word = isFaulty(group) ? color.red(plan) : cause === null ? color.green(plan) : color.yellow(plan);
    out.print(`  ${word}  ${countOf(runs.length, "run")} of ${clean(workflow)} ${version}: ${clean(why)}`);
    for (const line of diff) out.print(`    ${line}`);
    const more = runs.length > MOST_IDS ? ` … and ${runs.length - MOST_IDS} more; --json has them all` : "";
    out.print(color.dim(`    ${runs.slice(0, MOST_IDS).map(clean).join(" ")}${more}`));
  }
}

function printEffects(out: Output, report: CheckedWorkflow): void {
  const { color } = out;
  title(out, `Effects of ${clean(report.workflow)}`);
  if (!report.isPlayed) {
    out.print("  Not played, so nothing is said: give --input, or a file that exports crash tests.");
    return;
  }
  const rows = [[...HEADER], ...report.operations.map((one) => cellsOf(one, report).map(clean))];
  for (const line of table(rows, { indent: 2, width: out.width, header: color.dim })) out.print(line);
  for (const remark of remarksOf(report)) out.print(`  ${clean(remark)}`);
  for (const finding of report.findings) {
    out.print(`  ${isFault(finding) ? color.red("fail") : color.yellow("look")}  ${clean(finding.message)}`);
    out.print(`        ${color.dim(questionsOf(finding))}`);
  }
}

function printHazards(out: Output, { workflows, suspected }: CheckReport): void {
  const { color } = out;
  title(out, "Determinism");
  const seen = workflows.flatMap(({ hazards }) => hazards);
  const text = ({ what, line, instead }: Hazard) => `${clean(line)}: ${what} in a body; use ${instead}`;
  for (const one of seen) out.print(`  ${color.red("fail")}  ${text(one)}`);
  for (const one of suspected) out.print(`  ${color.yellow("look")}  ${text(one)}`);
  if (seen.length + suspected.length === 0) out.print("  No hazard was found.");
  if (workflows.some(({ isPlayed }) => !isPlayed))
    out.print("  Not everything was played: the text inside of workflow(…) was searched, and no more than that.");
}

function printItems(out: Output, what: string, items: readonly AuditItem[]): void {
  const { color } = out;
  const paint: Record<AuditStatus, (text: string) => string> = {
    pass: color.green,
    fail: color.red,
    "not applicable": color.dim,
    "not shown": color.yellow,
  };
  title(out, what);
  for (const { item, title: text, status, evidence } of items) {
    out.print(`  ${item}  ${paint[status](status)}  ${text}`);
    out.print(`       ${color.dim(clean(evidence))}`);
  }
}
