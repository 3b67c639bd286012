// Why is this run where it is
// Puts together what the journal, the run's row, its waits and the workers say, in words a person can act on.
import { readCancel } from "../base/cancel-text.ts";
import { formatMs } from "../base/duration.ts";
import { type EffectRecord, ledgerOf, ownerOf } from "../core/ledger.ts";
import { DECISION_SIGNAL } from "../core/outline.ts";
import type { DocumentWait } from "../core/state-document.ts";
import type { InboxRow } from "../core/store.ts";
import { isTerminal, type PublicStatus, type RunState } from "../core/transition.ts";
import type { ApprovalSummary } from "./approvals.ts";
import { budgetText } from "./budgets.ts";
import { isStranded, neededVersion } from "./doctor.ts";
import { type Line, lineOf } from "./line.ts";
import type { Pawl } from "./pawl.ts";
import type { RunStatus, RunWait } from "./run.ts";
import { short, type Timeline, type TimelineStep, timeline } from "./timeline.ts";
import { approvalAdvice, approvalNow, approvalsSoFar } from "./why-approvals.ts";
import { isOwnWait, phaseAdvice, phaseNow, phaseWaitName, phaseWaits } from "./why-phases.ts";
import { isLive, type WorkerStatus } from "./worker-health.ts";

export interface Explanation {
  readonly run: string;
  readonly workflow: string;
  readonly version: string;
  readonly status: PublicStatus;
  readonly state: RunState;
  /** One sentence. */
  readonly summary: string;
  /** What has happened so far. */
  readonly past: readonly string[];
  /** What it is doing or waiting for, and who has it. */
  readonly present: readonly string[];
  /** What to do, if anything. */
  readonly next: readonly string[];
  readonly waits: readonly RunWait[];
  readonly owner: (Pick<WorkerStatus, "id" | "name" | "health"> & { readonly pid: number }) | null;
  /** When it moves by itself, if a time is set for it. */
  readonly wakesAt: Date | null;
  /** No live worker can take it. */
  readonly isStranded: boolean;
  /** All of it as lines for people. */
  readonly text: readonly string[];
}

type Source = Pick<Pawl, "approvals" | "get" | "store" | "workers">;

/** Everything the sentences below are made of. */
interface Facts {
  readonly status: RunStatus;
  readonly line: Timeline;
  readonly effects: readonly EffectRecord[];
  readonly workers: readonly WorkerStatus[];
  readonly owner: WorkerStatus | null;
  readonly readyAt: number | null;
  readonly wakesAt: number | null;
  readonly cancel: string | null;
  readonly claims: number;
  readonly mail: readonly InboxRow[];
  readonly children: readonly string[];
  readonly approvals: readonly ApprovalSummary[];
  /** What it stands in line for. */
  readonly standsFor: Line | null;
  /** What it waits for as a run made of phases. */
  readonly own: readonly DocumentWait[];
  readonly now: number;
}

/** How many children, and levels of them, are looked into. */
const MAX_CHILDREN = 5;
const MAX_DEPTH = 3;

export async function why(pawl: Source, id: string): Promise<Explanation> {
  const facts = await gather(pawl, id, MAX_DEPTH);
  const { status, owner, wakesAt } = facts;
  const summary = summaryOf(facts);
  const past = pastOf(facts);
  const present = presentOf(facts);
  const faults = isTerminal(status.state) ? [] : (await pawl.store.inspect({ quick: true })).faults;
  const next = nextOf(facts, faults);
  return {
    run: status.id,
    workflow: status.workflow,
    version: status.version,
    status: status.status,
    state: status.state,
    summary,
    past,
    present,
    next,
    waits: status.waits,
    owner: owner === null ? null : { id: owner.id, name: owner.name, pid: owner.process.pid, health: owner.health },
    wakesAt: wakesAt === null ? null : new Date(wakesAt),
    isStranded: isStranded(facts.workers, status),
    text: [summary, ...section("So far", past), ...section("Now", present), ...section("What to do", next)],
  };
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ["", title, ...lines.map((line) => `  ${line}`)];
}

async function gather(pawl: Source, id: string, depth: number): Promise<Facts> {
  const run = pawl.get(id);
  const status = await run.status();
  const row = await pawl.store.run(id);
  const workers = await pawl.workers();
  const journal = await run.journal();
  return {
    status,
    line: timeline(journal),
    effects: ledgerOf(journal),
    workers,
    owner: workers.find((worker) => worker.id === status.owner) ?? null,
    readyAt: row?.readyAt ?? null,
    wakesAt: wakeTime(status, row?.wakeAt ?? null),
    cancel: row?.cancel == null ? null : readCancel(row.cancel).reason,
    claims: row?.claims ?? 0,
    mail: isTerminal(status.state) ? [] : await pawl.store.inbox(id),
    children: await childrenOf(pawl, status, depth),
    approvals: await approvalsOf(pawl, status),
    own: phaseWaits(row, journal),
    standsFor: row === null ? null : await lineOf(pawl.store, row),
    now: pawl.store.clock.now(),
  };
}

/** A timer that is set wakes a run; its deadline also counts as one, but ends it. */
function wakeTime(status: RunStatus, wakeAt: number | null): number | null {
  const due = status.waits.flatMap((wait) => (wait.due === null ? [] : [wait.due.getTime()]));
  return due.length > 0 ? Math.min(...due) : wakeAt;
}

/** What the children that a run waits for are doing themselves. */
async function childrenOf(pawl: Source, status: RunStatus, depth: number): Promise<string[]> {
  if (depth === 0) return [];
  const lines: string[] = [];
  for (const wait of status.waits.filter(({ kind }) => kind === "child").slice(0, MAX_CHILDREN)) {
    // The name of such a wait is the child's id. One that has just ended and been removed is no news.
    if ((await pawl.store.run(wait.name)) === null) continue;
    const facts = await gather(pawl, wait.name, depth - 1);
    lines.push(`Child "${callKey(wait)}": ${summaryOf(facts)}`, ...facts.children.map((line) => `  ${line}`));
  }
  return lines;
}

async function approvalsOf(pawl: Source, { waits }: RunStatus): Promise<readonly ApprovalSummary[]> {
  const asked = waits.filter(({ kind }) => kind === "approval");
  // What cannot be read is told where it stops the run.
  const found = asked.map(({ name }) => pawl.approvals.get(name).catch(() => null));
  return (await Promise.all(found)).filter((one) => one !== null);
}

/** The key of the call that waits: the wait's own key has its kind in front. */
function callKey({ key }: RunWait): string {
  return key.slice(key.indexOf(":") + 1);
}

// One sentence

function summaryOf(facts: Facts): string {
  const { status, line } = facts;
  const what = `Run ${status.id} of ${status.workflow} ${status.version}`;
  switch (status.state) {
    case "succeeded":
      return `${what} succeeded${tookOf(facts)}.`;
    case "failed":
      return `${what} failed${tookOf(facts)}${failedStepOf(line)}: ${errorText(status.error ?? line.error)}`;
    case "cancelled":
      return `${what} was cancelled${tookOf(facts)}.`;
    case "parked":
      return `${what} is parked (${status.parked?.reason ?? "unknown reason"}): it will not move until a person decides.`;
    case "accepted":
      return `${what} has not begun yet.`;
    case "retrying":
      return `${what} waits to try again after a failure.`;
    case "waiting":
      if (status.parked !== undefined)
        return `${what} is blocked (${status.parked.reason}): it will not move until a person decides.`;
      return `${what} is waiting for ${waitNames(facts)}.`;
    case "compensating":
      return `${what} is undoing what it did.`;
    case "running":
      return `${what} ${runningText(facts)}.`;
  }
}

function runningText({ status, owner }: Facts): string {
  if (status.owner === null) return "was running; nobody has it now, and any worker may take it";
  if (owner?.health === "stopped") return "is held by a process that is stopped";
  return owner !== null && isLive(owner) ? "is running" : "was running, and its worker is gone";
}

function tookOf({ line }: Facts): string {
  return line.startedAt === null || line.endedAt === null ? "" : ` after ${formatMs(line.endedAt - line.startedAt)}`;
}

function failedStepOf(line: Timeline): string {
  const step = line.steps.findLast((one) => one.status === "failed");
  return step === undefined ? "" : ` in step "${step.key}"`;
}

function waitNames({ status, own }: Facts): string {
  const names = status.waits
    .filter((wait) => !isOwnWait(wait))
    .map((wait) => `${WAIT_WORDS[wait.kind] ?? wait.kind} "${CALL_NAMED.has(wait.kind) ? callKey(wait) : wait.name}"`)
    .concat(own.map(phaseWaitName));
  return names.length === 0 ? "something that is not recorded" : listOf(names, 3);
}

/** Waits whose own name is an id. */
const CALL_NAMED: ReadonlySet<string> = new Set(["child", "approval", "callback"]);

const WAIT_WORDS: Readonly<Record<string, string>> = {
  timer: "timer",
  signal: "signal",
  child: "child",
  retry: "the next attempt of",
  approval: "approval",
  callback: "callback",
  decision: "a decision on",
  slot: "a free slot of",
  rate: "its turn within the rate of",
};

// What has happened

function pastOf(facts: Facts): string[] {
  const { status, line, effects, now } = facts;
  const started = `Started ${ago(now, status.createdAt.getTime())}${status.key === null ? "" : ` with key "${status.key}"`}${status.parent === null ? "" : `, by run ${status.parent}`}.`;
  const origin = status.origin === null ? [] : [`It inherits the journal of run ${status.origin}.`];
  const generation = line.generation === 0 ? [] : [`It has gone on as a new generation ${times(line.generation)}.`];
  const signals = line.waits
    .filter(({ status }) => status === "received" || status === "answered")
    .map(({ kind, name, key }) => (kind === "signal" ? `signal "${name}"` : `an answer to callback "${key}"`));
  return [
    started,
    ...origin,
    ...generation,
    ...stepsSoFar(line),
    ...(effects.length === 0 ? [] : [`Outside: ${listOf(effects.map(effectText), 5)}.`]),
    ...approvalsSoFar(line),
    ...(signals.length === 0 ? [] : [`Received: ${listOf(signals, 5)}.`]),
    ...line.notes
      .flatMap(({ kind, text }) => {
        if (kind === "resolved") return [`A person decided: ${text}.`];
        return kind === "note" ? [`It noted: ${text}`] : [];
      })
      .slice(-3),
  ];
}

function effectText({ effect, status }: EffectRecord): string {
  return `"${effect}" ${status === "unknown" ? "may have happened" : status}`;
}

function stepsSoFar(line: Timeline): string[] {
  const done = line.steps.filter((step) => step.status === "completed");
  const failed = line.steps.filter((step) => step.status === "failed");
  const crashes = line.steps.filter((step) => step.attempts.some((attempt) => attempt.outcome === "interrupted"));
  return [
    done.length === 0
      ? "No step has completed."
      : `${done.length} ${done.length === 1 ? "step" : "steps"} completed: ${lastKeys(done)}.`,
    ...failed.slice(-3).map(({ key, attempts, error }) => {
      return `Step "${key}" failed after ${attempts.length} ${attempts.length === 1 ? "attempt" : "attempts"}: ${errorText(error)}`;
    }),
    ...crashes.slice(-3).map(({ key, attempts }) => {
      return `A crash interrupted step "${key}"; it was started ${times(attempts.length)} in all.`;
    }),
  ];
}

// What it is doing

function presentOf(facts: Facts): string[] {
  const { status, line, cancel, mail } = facts;
  if (isTerminal(status.state)) return endedLines(facts);
  const reason = cancel === null || cancel === "" ? "" : ` (${cancel})`;
  const steps = line.steps
    .filter((step) => step.status === "running" || step.status === "retrying")
    .map((step) => stepNow(facts, step));
  const waits = status.waits
    .filter((wait) => wait.kind !== "retry" && wait.kind !== "decision" && !isOwnWait(wait))
    .map((wait) => waitNow(facts, wait));
  return [
    ...(status.parked === undefined ? [] : [status.parked.message]),
    ...beginning(facts),
    ...(status.state === "parked" ? [] : [...steps, ...waits, ...facts.own.map(phaseNow)]),
    ...facts.children,
    ...ownerLines(facts),
    ...responsibleLines(facts),
    ...(mail.some(({ kind }) => kind === "decision")
      ? ["A decision on it is recorded and takes effect when a worker has the run."]
      : []),
    ...(cancel === null ? [] : [`Its cancellation${reason} is recorded and takes effect when a worker has the run.`]),
    ...(status.progress === undefined ? [] : [`Latest progress: ${short(status.progress, 200)}`]),
    ...(status.budget === undefined ? [] : [`Its budget: ${budgetText(status.budget)}.`]),
    ...(status.deadline === null ? [] : [`Its deadline is ${when(facts.now, status.deadline.getTime())}.`]),
  ];
}

function responsibleLines({ status: { responsible } }: Facts): string[] {
  return responsible === undefined ? [] : [`Its owner is ${responsible}.`];
}

function resultLine(output: unknown): string {
  return output === undefined ? "It gave no result." : `Its result: ${short(output, 200)}`;
}

function endedLines(facts: Facts): string[] {
  const { status, line } = facts;
  if (status.state === "succeeded") return [resultLine(status.output ?? line.output)];
  const lost = line.steps.filter((step) => step.status === "abandoned").map((step) => step.key);
  return [
    `Stop reason: ${status.stopReason ?? line.stopReason ?? "unknown"}.`,
    ...(ownerOf(status.error) === null
      ? responsibleLines(facts)
      : [`Its owner, ${ownerOf(status.error)}, has to see to what is left.`]),
    ...(lost.length === 0 ? [] : [`These steps were under way and their outcome is not known: ${listOf(lost, 5)}.`]),
  ];
}

function beginning({ status, readyAt, wakesAt, now }: Facts): string[] {
  if (status.state !== "accepted") return [];
  const start = Math.max(readyAt ?? 0, wakesAt ?? 0);
  return [start > now ? `It is to start ${when(now, start)}.` : "It may start as soon as a worker takes it."];
}

function stepNow({ now, owner }: Facts, step: TimelineStep): string {
  const last = step.attempts.at(-1);
  if (last === undefined) return `Step "${step.key}" is under way.`;
  if (step.status === "running") {
    const attempt = `attempt ${last.attempt}`;
    if (owner === null || !isLive(owner))
      return `Step "${step.key}" was under way (${attempt}) when it was last heard of.${savedText(now, step)}`;
    return `Step "${step.key}" is under way: ${attempt}, for ${formatMs(now - last.startedAt)}.${savedText(now, step)}`;
  }
  const again = last.retryAt === undefined ? "soon" : when(now, last.retryAt);
  return `Step "${step.key}" failed (attempt ${last.attempt}): ${errorText(last.error)} It is tried again ${again}.${savedText(now, step)}`;
}

/** Where its next attempt would go on from. */
function savedText(now: number, { saved }: TimelineStep): string {
  return saved === undefined ? "" : ` It has saved ${times(saved.count)}, the last time ${ago(now, saved.at)}.`;
}

function waitNow({ now, standsFor, approvals }: Facts, wait: RunWait): string {
  if (standsFor !== null && wait.kind === standsFor.kind) return lineNow(standsFor);
  const due = wait.due === null ? null : when(now, wait.due.getTime());
  switch (wait.kind) {
    case "timer":
      return `It sleeps ("${wait.name}") until ${due ?? "an unknown time"}.`;
    case "signal":
      return `It waits for signal "${wait.name}"${due === null ? ", without a time limit" : `, at most until ${due}`}.`;
    case "approval":
      return approvalNow(wait, approvals);
    case "callback":
      return `It waits for an answer to callback "${callKey(wait)}" (${wait.name})${due === null ? ", without a time limit" : `, at most until ${due}`}.`;
    case "child":
      return `It waits for child "${callKey(wait)}" (run ${wait.name}).`;
    default:
      return `It waits for ${WAIT_WORDS[wait.kind] ?? wait.kind} "${wait.name}"${due === null ? "" : `, until ${due}`}.`;
  }
}

function lineNow({ kind, name, limit, holders }: Line): string {
  if (kind === "rate") return `It begins when the rate of "${name}" lets it: as many as may have begun not long ago.`;
  const most = limit === 1 ? "one run" : `${limit} runs`;
  return `It waits for a free slot of "${name}", which at most ${most} may hold at a time. Now: ${listOf(holders, 5)}.`;
}

function ownerLines({ status, owner, claims }: Facts): string[] {
  const deaths = claims > 1 ? [`It has been claimed ${times(claims)} in a row without recording anything new.`] : [];
  if (status.owner === null) return deaths;
  if (owner === null) return [`Worker ${status.owner}, which had it, is no longer registered.`, ...deaths];
  const who = `Worker ${owner.name} (pid ${owner.process.pid})`;
  switch (owner.health) {
    case "live":
      return [`${who} has it.`, ...deaths];
    case "late":
      return [`${who} has it, but has missed heartbeats.`, ...deaths];
    case "stopped":
      return [`${who} has it, but that process is stopped and does nothing.`, ...deaths];
    default:
      return [`${who} had it and is gone.`, ...deaths];
  }
}

// What to do

/** `faults` are those of the store itself, such as a stopped process that holds the write lock (P30). */
function nextOf(facts: Facts, faults: readonly string[]): string[] {
  const { status } = facts;
  if (status.state === "failed" || status.state === "cancelled") {
    return [
      `To go on from where it stopped, with a new run: pawl retry ${status.id}`,
      `To see every step: pawl show ${status.id}`,
    ];
  }
  if (isTerminal(status.state)) return [];
  const signals = status.waits.filter((wait) => wait.kind === "signal" && !isOwnWait(wait));
  const unasked = facts.mail.filter(
    ({ kind, name }) => kind === "signal" && signals.every((wait) => wait.name !== name),
  );
  const isDecided = facts.mail.some(({ kind, name }) => kind === "decision" || name === DECISION_SIGNAL);
  const choices = isDecided ? [] : (status.parked?.choices ?? []);
  const lines = [
    ...faults,
    ...choices.map((choice) => `pawl resolve ${status.id} ${choice}${VALUES[choice] ?? ""}`),
    ...(status.state === "parked"
      ? []
      : signals.map((wait) => `To send it: pawl signal ${status.id} ${wait.name} '<payload as JSON>'`)),
    ...facts.own.map((wait) => phaseAdvice(status.id, wait)),
    ...approvalAdvice(facts.approvals),
    ...status.waits.filter(({ kind }) => kind === "callback").map(callbackAdvice),
    ...(signals.length === 0
      ? []
      : unasked
          .slice(0, 5)
          .map(({ name }) => `Signal "${name}" has come, but nothing waits for it. Was another name meant?`)),
    ...stoppedAdvice(facts),
    ...strandedAdvice(facts),
  ];
  return lines.length > 0 ? lines : ["Nothing: it goes on by itself."];
}

function callbackAdvice({ key, name }: RunWait): string {
  return `Whoever has the token of "${key.slice(key.indexOf(":") + 1)}" answers it: pawl answer <token> '<value as JSON>'. To close it without: pawl revoke ${name} --reason <text>`;
}

/** What some choices need besides. */
const VALUES: Readonly<Record<string, string>> = {
  happened: " --value '<result as JSON>'",
  complete: " --value '<result as JSON>'",
  skip: ' --reason "…"',
  raise: " --value '<new limits as JSON>'",
};

function stoppedAdvice({ owner }: Facts): string[] {
  if (owner?.health !== "stopped") return [];
  return [
    `Continue the stopped process with "kill -CONT ${owner.process.pid}", or end it: another worker then takes over.`,
  ];
}

function strandedAdvice({ status, workers }: Facts): string[] {
  if (!isStranded(workers, status)) return [];
  const needed = `Start one that has ${neededVersion(status.workflow, status.version)}: pawl worker <file>`;
  const others = workers.filter(isLive).flatMap((worker) => worker.handles);
  const versions = others.filter((handle) => handle.workflow === status.workflow).map((handle) => handle.version);
  if (versions.length > 0) {
    return [
      `It is stranded: live workers have only ${listOf([...new Set(versions)], 5)} of this workflow, which may not take it.`,
      needed,
    ];
  }
  const nobody = others.length === 0 ? "no worker is running" : "no live worker has this workflow";
  return [`Nothing will move it: ${nobody}.`, needed];
}

// Words

function when(now: number, time: number): string {
  const left = time - now;
  return left <= 0 ? `now (due ${formatMs(-left)} ago)` : `${new Date(time).toISOString()}, in ${formatMs(left)}`;
}

function ago(now: number, time: number): string {
  return now - time < 1000 ? "just now" : `${formatMs(now - time)} ago`;
}

function times(count: number): string {
  return count === 1 ? "once" : count === 2 ? "twice" : `${count} times`;
}

function listOf(items: readonly string[], max: number): string {
  const shown = items.slice(0, max).join(", ");
  return items.length > max ? `${shown} and ${items.length - max} more` : shown;
}

function lastKeys(steps: readonly TimelineStep[]): string {
  return `${steps.length > 5 ? "… " : ""}${steps
    .slice(-5)
    .map((step) => step.key)
    .join(", ")}`;
}

function errorText(error: unknown): string {
  const { message = error } = (error ?? {}) as { readonly message?: unknown };
  const text = String(message ?? "unknown error");
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
