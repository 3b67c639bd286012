import type { Command } from "commander";
import { formatMs } from "../base/duration.ts";
import { budgetText } from "../client/budgets.ts";
import type { RunStatus } from "../client/run.ts";
import {
  decisionText,
  type Timeline,
  type TimelineChild,
  type TimelineMark,
  type TimelineStep,
  type TimelineWait,
  timeline,
} from "../client/timeline.ts";
import type { ApprovalDecided } from "../core/approval-request.ts";
import { ownerOf } from "../core/ledger.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import type { Colors, Output } from "./output.ts";
import { clean, countOf, errorLine, shortJson } from "./printable.ts";
import { findRun } from "./run-id.ts";
import { paintStatus, statusText } from "./status.ts";
import { type Cell, table } from "./table.ts";
import { inTime, timeOf } from "./times.ts";

export function addShow(program: Command): void {
  addCommand(program, "show <run>", "show a run's steps, attempts, waits and children", [
    "pawl show 0193a7c2",
    "pawl show 0193a7c2 --document",
  ])
    .option("--document", "print its state document: phases, steps and statuses as JSON")
    .action(
      action<{ readonly document?: true }, [string]>((call, text) =>
        withClient(call, async (pawl) => {
          const run = pawl.get(await findRun(pawl, text));
          if (call.options.document === true) {
            const document = await run.document();
            if (call.out.isJson) call.out.json(document);
            else call.out.print(JSON.stringify(document, null, 2));
            return EXIT.ok;
          }
          const status = await run.status();
          const line = timeline(await run.journal());
          if (call.out.isJson) call.out.json({ ...status, timeline: line });
          else print(call.out, status, line, pawl.store.clock.now());
          return EXIT.ok;
        }),
      ),
    );
}

function print(out: Output, status: RunStatus, line: Timeline, now: number): void {
  const { color } = out;
  const paint = paintStatus(color, status.status, status.state);
  out.print(`${color.bold(clean(`${status.workflow} ${status.version}`))}  ${paint(statusText(status))}  ${status.id}`);
  for (const fact of table(
    factsOf(status, line, now).map(([name, value]) => [{ text: name, paint: color.dim }, value]),
  ))
    out.print(fact);
  const rows = inShort(rowsOf(line, color, now), status.id, color);
  if (rows.length > 0) {
    out.print("");
    const header: Cell[] = ["AT", "", "WHAT", "TOOK", "OUTCOME"];
    for (const row of table([header, ...rows], { right: [0, 3], width: out.width, header: color.dim })) out.print(row);
  }
  printEnd(out, status, now);
}

function factsOf(status: RunStatus, line: Timeline, now: number): [string, string][] {
  const ended = status.endedAt?.getTime() ?? null;
  const took = formatMs((ended ?? now) - status.createdAt.getTime());
  return [
    ["started", timeOf(status.createdAt)],
    ended === null ? ["age", took] : ["ended", `${timeOf(ended)}, after ${took}`],
    ...(status.key === null ? [] : [["key", clean(status.key)] as [string, string]]),
    ...(status.tags.length === 0 ? [] : [["tags", clean(status.tags.join(", "))] as [string, string]]),
    ...(status.parent === null ? [] : [["parent", status.parent] as [string, string]]),
    ...(status.origin === null ? [] : [["inherits", `the journal of ${status.origin}`] as [string, string]]),
    ...(ownerOfStatus(status) === null ? [] : [["owner", clean(String(ownerOfStatus(status)))] as [string, string]]),
    ["input", shortJson(line.input, 200)],
    ...(status.cost === undefined ? [] : [["cost", shortJson(status.cost)] as [string, string]]),
    ...(status.budget === undefined ? [] : [["budget", clean(budgetText(status.budget))] as [string, string]]),
    ...(Object.keys(status.data).length === 0 ? [] : [["state", shortJson(status.data, 200)] as [string, string]]),
    ...(status.progress === undefined ? [] : [["progress", shortJson(status.progress, 200)] as [string, string]]),
    ["journal", countOf(line.entries, "entry", "entries")],
  ];
}

/** Who was told of what is left, or who has to see to it now. */
function ownerOfStatus({ error, responsible }: RunStatus): string | null {
  return ownerOf(error) ?? responsible ?? null;
}

type PaintedCell = Exclude<Cell, string>;

interface Row {
  readonly seq: number;
  readonly cells: readonly (readonly Cell[])[];
}

/** Everything in the order in which it began. */
function rowsOf(line: Timeline, color: Colors, now: number): (readonly Cell[])[] {
  const start = line.startedAt ?? 0;
  const rows: Row[] = [
    ...line.steps.map((step) => stepRows(step, start, color, now)),
    ...line.waits.map((wait) => waitRow(wait, start, color, now)),
    ...line.children.map((child) => childRow(child, start, color, now)),
    ...line.notes.filter((note) => note.kind !== "patched").map((note) => noteRow(note, start, color)),
  ];
  return rows.sort((a, b) => a.seq - b.seq).flatMap((row) => row.cells);
}

// A page or two: nobody reads ten thousand lines, and both ends say most.
const FIRST_ROWS = 50;
const LAST_ROWS = 200;

function inShort(rows: readonly (readonly Cell[])[], run: string, color: Colors): (readonly Cell[])[] {
  const left = rows.length - FIRST_ROWS - LAST_ROWS;
  if (left <= 1) return [...rows];
  const gap: Cell[] = ["", "…", { text: `${left} more; pawl journal ${run} lists them`, paint: color.dim }];
  return [...rows.slice(0, FIRST_ROWS), gap, ...rows.slice(-LAST_ROWS)];
}

function cellsOf(at: number, what: string, key: string, took: string, outcome: Cell): Cell[] {
  return [`+${formatMs(at)}`, what, clean(key), took, outcome];
}

function tookOf(item: { readonly startedAt: number; readonly endedAt: number | null }, now: number): string {
  return formatMs((item.endedAt ?? now) - item.startedAt);
}

function stepRows(step: TimelineStep, start: number, color: Colors, now: number): Row {
  const isRepeated = step.attempts.length > 1;
  const outcome = withSaved(stepOutcome(step, color), step, start);
  const head = cellsOf(step.startedAt - start, "step", step.key, tookOf(step, now), outcome);
  const attempts = step.attempts.map((attempt): Cell[] => {
    const paint =
      attempt.outcome === "completed" ? color.green : attempt.outcome === "running" ? color.cyan : color.yellow;
    const again =
      attempt.retryAt === undefined || attempt.endedAt === null
        ? ""
        : `; again after ${formatMs(attempt.retryAt - attempt.endedAt)}`;
    const why = attempt.error === undefined ? "" : `: ${errorLine(attempt.error)}${again}`;
    const took = attempt.outcome === "interrupted" ? "" : tookOf(attempt, now);
    return [
      `+${formatMs(attempt.startedAt - start)}`,
      "",
      `  attempt ${attempt.attempt}`,
      took,
      { text: `${attempt.outcome}${why}`, paint },
    ];
  });
  return { seq: step.seq, cells: isRepeated ? [head, ...attempts] : [head] };
}

/** What a step that is not done would go on from. */
function withSaved({ text, paint }: PaintedCell, { saved, status }: TimelineStep, start: number): Cell {
  if (saved === undefined || status === "completed") return { text, paint };
  const often = saved.count === 1 ? "once" : `${saved.count} times, last`;
  return { text: `${text}; saved ${often} at +${formatMs(saved.at - start)}`, paint };
}

function stepOutcome(step: TimelineStep, color: Colors): PaintedCell {
  switch (step.status) {
    case "completed":
      return { text: "completed", paint: color.green };
    case "failed":
      return { text: `failed: ${errorLine(step.error)}`, paint: color.red };
    case "retrying":
      return { text: `retrying: ${errorLine(step.attempts.at(-1)?.error)}`, paint: color.yellow };
    case "running":
      return { text: "running", paint: color.cyan };
    case "unknown": {
      const why = step.error === undefined ? "nobody can tell whether it happened" : errorLine(step.error);
      return { text: `unknown: ${why}`, paint: color.magenta };
    }
    case "abandoned":
      return { text: "abandoned: the run ended first", paint: color.yellow };
  }
}

function waitRow(wait: TimelineWait, start: number, color: Colors, now: number): Row {
  const due = wait.due === null ? "" : ` until ${inTime(now, wait.due)}`;
  const outcome: Cell =
    wait.status === "open"
      ? { text: `waiting${due}`, paint: color.blue }
      : {
          text: clean(waitEnd(wait)),
          paint: isGood(wait) ? color.green : color.yellow,
        };
  const what = wait.kind === "timer" ? "sleep" : wait.kind;
  return { seq: wait.seq, cells: [cellsOf(wait.startedAt - start, what, wait.key, tookOf(wait, now), outcome)] };
}

function waitEnd({ kind, status, payload }: TimelineWait): string {
  if (kind === "approval" && status === "decided") return decisionText(payload as ApprovalDecided);
  if (status === "failed") return `failed: ${String(payload)}`;
  return status === "received" || status === "answered" ? `${status} ${shortJson(payload, 80)}` : status;
}

function isGood({ kind, status, payload }: TimelineWait): boolean {
  if (kind === "approval" && status === "decided") return (payload as ApprovalDecided).decision === "approved";
  return status !== "timed out" && status !== "failed";
}

function childRow(child: TimelineChild, start: number, color: Colors, now: number): Row {
  const isBad = child.status === "failed" || child.status === "cancelled";
  const text = `${child.status === "open" ? "waiting" : child.status}  run ${child.child}${isBad ? `: ${errorLine(child.value)}` : ""}`;
  const paint = isBad ? color.red : child.status === "open" ? color.blue : color.green;
  const took = child.detached ? "" : tookOf(child, now);
  return { seq: child.seq, cells: [cellsOf(child.startedAt - start, "child", child.key, took, { text, paint })] };
}

function noteRow(note: TimelineMark, start: number, color: Colors): Row {
  const paint = note.kind === "parked" ? color.magenta : color.dim;
  return { seq: note.seq, cells: [cellsOf(note.at - start, note.kind, "", "", { text: clean(note.text), paint })] };
}

function printEnd(out: Output, status: RunStatus, now: number): void {
  const { color } = out;
  if (status.state === "succeeded") out.print(`\n${color.dim("output")}  ${shortJson(status.output, 2000)}`);
  if (status.state === "failed" || status.state === "cancelled") {
    out.print(
      `\n${color.red(status.state)}  ${errorLine(status.error)}${status.stopReason === null ? "" : color.dim(`  (${clean(status.stopReason)})`)}`,
    );
  }
  if (status.parked !== undefined)
    out.print(
      `\n${color.magenta("parked")}  ${clean(status.parked.message)}\n        choices: ${status.parked.choices.join(", ")}`,
    );
  if (status.deadline !== null && status.endedAt === null)
    out.print(`\n${color.dim("deadline")}  ${inTime(now, status.deadline.getTime())}`);
}
