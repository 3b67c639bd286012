// Following one run until it ends, is parked, waits (if that is where to stop) or the user has had enough.
import { formatMs } from "../base/duration.ts";
import { jsonable } from "../base/jsonable.ts";
import type { Pawl } from "../client/pawl.ts";
import type { Run, RunStatus } from "../client/run.ts";
import { timeline } from "../client/timeline.ts";
import { why } from "../client/why.ts";
import type { Entry, StatePatched } from "../core/journal.ts";
import { BLOCKED, DECISION_SIGNAL } from "../core/outline.ts";
import { isTerminal } from "../core/transition.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import type { Interrupt } from "./interrupt.ts";
import { Live } from "./live.ts";
import type { Output } from "./output.ts";
import { clean, countOf, errorLine } from "./printable.ts";
import { storeFlag } from "./store-url.ts";

export interface Errand {
  readonly pawl: Pawl;
  readonly run: Run;
  /** This command has started it; otherwise it goes on with it. */
  readonly isNew: boolean;
  readonly interrupt: Interrupt;
  /** The command that goes on with this run. */
  readonly again: string;
  /** Stay while the run waits for something. */
  readonly waits: boolean;
  readonly out: Output;
  readonly url: string;
}

type Stop = "ended" | "parked" | "waiting" | "interrupted";

const POLL_MS = 100;

export async function follow(errand: Errand): Promise<ExitCode> {
  const stop = await untilStop(errand);
  switch (stop) {
    case "interrupted":
      return reportInterrupted(errand);
    case "ended":
      return reportEnd(errand);
    default:
      return reportWaiting(errand, stop);
  }
}

async function untilStop(errand: Errand): Promise<Stop> {
  const { pawl, run, out, url, interrupt, waits } = errand;
  const hint = (signal: string) => `pawl signal ${run.id} ${signal} '…'${storeFlag(url)}`;
  const live = new Live(out, () => pawl.store.clock.now(), hint);
  const old = await announce(errand);
  live.prime(old);
  const stopped = new AbortController();
  try {
    return await Promise.race([
      watch(errand, live, old.length),
      interrupt.asked.then((): Stop => "interrupted"),
      ...(waits ? [] : [untilWaiting(errand, stopped.signal)]),
    ]);
  } finally {
    stopped.abort();
    live.stop();
  }
}

/** Says which run this is; returns the part of its journal that is no news. */
async function announce({ run, out, isNew }: Errand): Promise<readonly Entry[]> {
  const { bold, dim } = out.noteColor;
  const entries = await run.journal();
  const line = timeline(entries);
  const done = line.steps.filter((step) => step.status === "completed").length;
  const before = line.status === "unfinished" ? `goes on: ${countOf(done, "step")} done before` : "had ended before";
  out.note(`${bold(clean(`${line.workflow} ${line.version}`))}  run ${run.id}${isNew ? "" : dim(`  ${before}`)}`);
  return isNew ? [] : entries;
}

async function watch(errand: Errand, live: Live, seen: number): Promise<Stop> {
  if (await isParkedForGood(errand)) return "parked";
  for await (const entry of errand.run.events()) {
    if (entry.seq < seen) continue;
    live.show(entry);
    if (entry.type === "run.parked" || isBlock(entry)) return "parked";
  }
  return "ended";
}

/** A run made of phases waits for a decision of its own making. */
function isBlock({ type, key, payload }: Entry): boolean {
  return type === "state.patched" && key === BLOCKED && (payload as StatePatched).value !== null;
}

/** A decision that is on its way will move it, and so will a cancel. */
export async function isParkedForGood({ pawl, run }: Pick<Errand, "pawl" | "run">): Promise<boolean> {
  // The mail first: a decision that is used up after this look has moved the run by the next one.
  const mail = await pawl.store.inbox(run.id);
  if (mail.some((row) => row.kind === "decision" || row.name === DECISION_SIGNAL)) return false;
  const { parked } = await run.status();
  return parked !== undefined && (await pawl.store.run(run.id))?.cancel == null;
}

/** Resolves when nobody has the run and nothing is due: it waits for time or for somebody. */
async function untilWaiting({ pawl, run }: Errand, signal: AbortSignal): Promise<Stop> {
  while (!signal.aborted) {
    const row = await pawl.store.run(run.id);
    if (row === null || isTerminal(row.state)) break;
    const isDue = row.readyAt !== null || (row.wakeAt !== null && row.wakeAt <= pawl.store.clock.now());
    if (row.owner === null && !isDue) return "waiting";
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return new Promise(() => {});
}

// What is said in the end

async function reportEnd({ run, out, url }: Errand): Promise<ExitCode> {
  const status = await run.status();
  if (out.isJson) out.json(resultOf(status));
  const took = status.endedAt === null ? "" : formatMs(status.endedAt.getTime() - status.createdAt.getTime());
  if (status.state === "succeeded") {
    out.note(out.noteColor.green(`Succeeded in ${took}.`));
    if (!out.isJson) out.print(JSON.stringify(jsonable(status.output) ?? null, null, 2));
    return EXIT.ok;
  }
  const how = status.state === "failed" ? "Failed" : "Cancelled";
  out.note(out.noteColor.red(`${how} after ${took}: ${errorLine(status.error)}`));
  out.note(`  See every step: pawl show ${run.id}${storeFlag(url)}`);
  out.note(`  Go on from there: pawl retry ${run.id}${storeFlag(url)}`);
  return EXIT.failed;
}

function resultOf(run: RunStatus): object {
  const { id, workflow, version, status, state, output, error, stopReason, parked, waits } = run;
  const facts = { id, workflow, version, status, state, stopReason };
  if (state === "succeeded") return { ...facts, output: output ?? null };
  return {
    ...facts,
    ...(error !== undefined && { error }),
    ...(parked !== undefined && { parked }),
    ...(waits.length > 0 && { waits }),
  };
}

async function reportWaiting({ pawl, run, out, url, again }: Errand, stop: Stop): Promise<ExitCode> {
  if (out.isJson) out.json(resultOf(await run.status()));
  const { present, next } = await why(pawl, run.id);
  for (const line of stop === "waiting" ? [...present, ...next] : next) out.note(`  ${clean(line)}`);
  out.note(`  Then go on with: ${again}${storeFlag(url)}`);
  return EXIT.waiting;
}

async function reportInterrupted({ pawl, run, out, url, again }: Errand): Promise<ExitCode> {
  out.note("Stopping: running steps may finish (Ctrl-C again stops at once). The run keeps its progress. Go on with:");
  out.note(`  ${again}${storeFlag(url)}`);
  await pawl.close();
  if (out.isJson) out.json({ id: run.id, status: "interrupted", next: `${again}${storeFlag(url)}` });
  return EXIT.interrupted;
}
