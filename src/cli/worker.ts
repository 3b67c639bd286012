import { availableParallelism, hostname } from "node:os";
import type { Command } from "commander";
import { formatMs, toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import { shownUrl } from "../base/shown-url.ts";
import { DEFAULTS } from "../core/limits.ts";
import { action, addCommand } from "./command.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { Fleet, type FleetEvent } from "./fleet.ts";
import { wholeNumber } from "./input.ts";
import { onInterrupt } from "./interrupt.ts";
import type { MemberEnd } from "./member.ts";
import type { Output } from "./output.ts";
import { clean } from "./printable.ts";
import { beginWork, type Work, type WorkingOn } from "./work.ts";

interface WorkerCommandOptions {
  readonly concurrency?: string;
  readonly processes?: string;
  readonly drain?: string;
}

export function addWorker(program: Command): void {
  addCommand(program, "worker <files...>", "work on the runs of the workflows in these files, until it is stopped", [
    "pawl worker workflows/*.ts",
    "pawl worker workflows/*.ts --concurrency 50 --store /var/lib/app/pawl.db",
    "pawl worker workflows/*.ts --processes 4 --store postgres://app@db.example.com/app",
  ])
    .option(
      "--concurrency <n>",
      `how many runs at once in a process (default: ${DEFAULTS.concurrency.toLocaleString("en")})`,
    )
    .option("--processes <n>", "so many processes, restarted when they die; auto: one for each core")
    .option(
      "--drain <time>",
      `how long running steps may take when it is stopped (default: ${formatMs(DEFAULTS.drainMs)})`,
    )
    .addHelpText("after", SIGNALS)
    .action(
      action<WorkerCommandOptions, [string[]]>(({ options, out, url }, files) => {
        const { concurrency, drain, processes } = options;
        const work: Work = {
          files,
          url,
          ...(concurrency !== undefined && { concurrency: wholeNumber(concurrency, "--concurrency", 1) }),
          ...(drain !== undefined && { drainMs: toMs(drain, "--drain") }),
        };
        if (processes === undefined) return workHere(work, out);
        assertShared(url);
        return workInFleet(work, processesOf(processes), out);
      }),
    );
}

const SIGNALS = `
SIGINT or SIGTERM stops it: running steps may finish, then runs are handed back to other workers. A second one stops it at
once. With --processes, SIGHUP restarts the processes one by one, with the files as they are then: each new one works
before the old one stops. A process that dies is replaced; if the command itself dies, its processes stop by themselves.

Exit codes: 0 if it was stopped, 2 if the files cannot be loaded, 5 if the store cannot be used, 130 if it was stopped at once.`;

function assertShared(url: string): void {
  if (!url.startsWith("file:")) return;
  throw new PawlError(
    "invalid_argument",
    "One process at a time may work on a file: store. Leave --processes out, or use SQLite or PostgreSQL.",
    { fields: { option: "--processes", url } },
  );
}

function processesOf(text: string): number {
  return text === "auto" ? availableParallelism() : wholeNumber(text, "--processes", 1);
}

async function workHere(work: Work, out: Output): Promise<ExitCode> {
  const interrupt = onInterrupt();
  const { workflows, stop } = await beginWork(work, out);
  if (out.isJson) out.json({ event: "started", pid: process.pid, workflows: named(workflows) });
  else out.note(`Working on ${textOf(workflows)} in ${shownUrl(work.url)} (pid ${process.pid}). Ctrl-C stops it.`);
  tellStopping(out, await interrupt.asked);
  await stop();
  interrupt.forget();
  return tellStopped(out);
}

async function workInFleet(work: Work, processes: number, out: Output): Promise<ExitCode> {
  const fleet = new Fleet({
    processes,
    isJson: out.isJson,
    work: (place) => ({ ...work, name: `${hostname()}/${place}` }),
    print: (place, stream, line) => printLine(out, place, stream, line),
    tell: (event) => tellEvent(out, event),
  });
  const interrupt = onInterrupt(() => fleet.kill());
  const roll = () => void fleet.roll();
  process.on("SIGHUP", roll);
  const started = fleet.start().then((outcome) => {
    if (isEnd(outcome)) throw failureOf(outcome);
    if (out.isJson) return out.json({ event: "started", pid: process.pid, processes, workflows: named(outcome) });
    out.note(
      `Working on ${textOf(outcome)} in ${shownUrl(work.url)} with ${processes} processes (pid ${process.pid}). ` +
        "Ctrl-C stops them, SIGHUP restarts them one by one.",
    );
  });
  // Asked to stop while the first one begins, it stops.
  await Promise.race([started, interrupt.asked]);
  started.catch(() => {});
  tellStopping(out, await interrupt.asked);
  await fleet.stop();
  process.off("SIGHUP", roll);
  interrupt.forget();
  return tellStopped(out);
}

function isEnd(outcome: readonly WorkingOn[] | MemberEnd): outcome is MemberEnd {
  return !Array.isArray(outcome);
}

/** A process of the fleet has said why it cannot begin, or died before it could. */
function failureOf({ failure, code, signal }: MemberEnd): Error {
  if (failure !== null)
    return failure.code === null ? new Error(failure.message) : new PawlError(failure.code, failure.message);
  const how = code === null ? `was ended by ${signal}` : `ended with code ${code}`;
  return new PawlError("invalid_argument", `The first process ${how} before it worked. What it printed says more.`);
}

function named(workflows: readonly WorkingOn[]): readonly object[] {
  return workflows.map(({ name, version }) => ({ name, version }));
}

function textOf(workflows: readonly WorkingOn[]): string {
  return workflows.map(({ name, version }) => clean(`${name} ${version}`)).join(", ");
}

function tellStopping(out: Output, signal: NodeJS.Signals): void {
  if (out.isJson) out.json({ event: "stopping", signal });
  else out.note("Stopping: running steps may finish, then runs are handed back. Again to stop at once.");
}

function tellStopped(out: Output): ExitCode {
  if (out.isJson) out.json({ event: "stopped" });
  else out.note("Stopped.");
  return EXIT.ok;
}

/** What a process prints goes where it would have gone, with its place before it. Lines for programs name it themselves. */
function printLine(out: Output, place: number, stream: "stdout" | "stderr", line: string): void {
  const colors = stream === "stdout" ? out.color : out.noteColor;
  process[stream].write(out.isJson ? `${line}\n` : `${colors.dim(`[${place}]`)} ${line}\n`);
}

function tellEvent(out: Output, { kind, ...facts }: FleetEvent): void {
  if (out.isJson) {
    const { place, ...rest } = facts as { readonly place?: number };
    return out.json({ event: kind, ...(place !== undefined && { process: place }), ...rest });
  }
  const { yellow, dim } = out.noteColor;
  const event = { kind, ...facts } as FleetEvent;
  const label = "place" in event ? `${dim(`[${event.place}]`)} ` : "";
  const paint = kind === "ended" || kind === "killed" || kind === "restart-failed" ? yellow : dim;
  out.note(`${label}${paint(clean(eventText(event)))}`);
}

function eventText(event: FleetEvent): string {
  switch (event.kind) {
    case "working":
      return `works (pid ${event.pid})`;
    case "ended":
      return `${event.why}; another one starts in ${formatMs(event.againInMs)}`;
    case "killed":
      return `was killed: it had not stopped after ${formatMs(event.afterMs)}. Other workers go on with its runs.`;
    case "restarting":
      return "Restarting the processes one by one.";
    case "restarted":
      return "All processes are restarted.";
    case "restart-failed":
      return `The new process ${event.why}. The old ones go on; correct that and send SIGHUP again.`;
  }
}
