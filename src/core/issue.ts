// Issuing
// How a call looks in the journal, and how a recorded one is recognised.
import type { ApprovalRequested } from "./approval-request.ts";
import { adoptRequest, recordApproval } from "./approvals.ts";
import { budgetPlan, budgetsFor } from "./budget.ts";
import type { Call, ChildCall, StepCall } from "./call.ts";
import type { CallbackOpened } from "./callback.ts";
import { adoptCallback, recordCallback } from "./callbacks.ts";
import { DRY } from "./demands.ts";
import { Draft } from "./draft.ts";
import type { Host } from "./host.ts";
import type { CallType, ChildStarted, Entry, RunStarted, SignalAwaited, StepStarted, TimerSet } from "./journal.ts";
import type { Pass } from "./pass.ts";
import { pinned } from "./pins.ts";
import { reserve } from "./spending.ts";
import { adoptReserved } from "./spending-state.ts";
import type { NewRun } from "./store.ts";

/** Whether the recorded entry is this very call: kind, key and, where there is one, the digest of its input. */
export function matches(entry: Entry, call: Call): boolean {
  if (entry.type !== entryTypeOf(call) || entry.key !== call.key) return false;
  if (call.type === "approval.requested") return (entry.payload as ApprovalRequested).digest === call.digest;
  if (call.type === "step.started")
    return ((entry.payload as StepStarted)?.digest ?? null) === (call.input?.digest ?? null);
  if (call.type === "child.started") {
    const recorded = entry.payload as ChildStarted;
    return recorded.digest === call.spec.digest && recorded.workflow === call.spec.workflow.name;
  }
  return true;
}

/** What the journal has a call as: effects are steps to the engine, and more than that to a reader. */
export function entryTypeOf(call: Call): CallType {
  return call.type === "step.started" ? call.startsAs : call.type;
}

/** Takes over what was recorded when the call was first made: a due time is not computed twice (B44). */
export function adoptRecorded(call: Call, entry: Entry): void {
  if (call.type === "step.started") adoptReserved(call, entry.payload as StepStarted);
  if (call.type === "step.started") call.planned(entry.payload);
  if (call.type === "timer.set") call.due = (entry.payload as TimerSet).due;
  if (call.type === "signal.awaited") call.due = (entry.payload as SignalAwaited).due;
  if (call.type === "child.started") call.child = (entry.payload as ChildStarted).child;
  if (call.type === "approval.requested") adoptRequest(call, entry.payload as ApprovalRequested, entry.seq);
  if (call.type === "callback.opened") adoptCallback(call, entry.payload as CallbackOpened);
}

/** Seed and generation are in it: a fork's or a later generation's child is another run (P10). It begins with a letter, for command lines. */
export function childId(host: Host, seed: string, generation: number, key: string): string {
  return `c${host.digest(`${seed}/${generation}/${key}`)}`;
}

/** Writes a new call into the pass's draft, with its wait and, for a child, the child itself. */
export function recordCall(pass: Pass, call: Call): void {
  const at = pass.ports.clock.now();
  switch (call.type) {
    case "step.started":
      pass.draft.append(at, call.startsAs, call.key, planOf(pass, call), call);
      return;
    case "timer.set":
      if (call.afterMs !== null) call.due = Math.ceil(at + call.afterMs);
      pass.draft.append(at, call.type, call.key, { due: call.due } satisfies TimerSet);
      pass.draft.wait({
        open: { key: `timer:${call.key}`, kind: "timer", name: call.key, due: call.due, detail: null },
      });
      return;
    case "signal.awaited":
      if (call.spec.timeoutMs !== null) call.due = Math.ceil(at + call.spec.timeoutMs);
      pass.draft.append(at, call.type, call.key, { due: call.due } satisfies SignalAwaited);
      pass.draft.wait({
        open: { key: `signal:${call.key}`, kind: "signal", name: call.spec.name, due: call.due, detail: null },
      });
      return;
    case "child.started":
      recordChild(pass, call, at);
      return;
    case "approval.requested":
      recordApproval(pass, call, at);
      return;
    case "callback.opened":
      recordCallback(pass, call, at);
  }
}

/** What the journal says of it, with what it reserves. */
function planOf(pass: Pass, call: StepCall): object | null {
  const spend = call.spending === null ? null : reserve(pass, call);
  const isDry = pass.dry !== null && !pass.dry.runs(call);
  if (spend === null && !isDry) return call.plan;
  return { attempt: 1, ...call.plan, ...(spend !== null && { spend }), ...(isDry && { dry: true }) };
}

function recordChild(pass: Pass, call: ChildCall, at: number): void {
  const { child } = call;
  const { workflow, digest, detached } = call.spec;
  const payload: ChildStarted = { child, workflow: workflow.name, digest, detached };
  pass.draft.append(at, call.type, call.key, payload);
  if (!detached)
    pass.draft.wait({ open: { key: `child:${call.key}`, kind: "child", name: child, due: null, detail: null } });
  const create = childRun(pass, call, at);
  const entry = firstEntry(pass, call, create, at);
  pass.draft.child({ run: child, create, entry });
  if (create.claimed) pass.draft.onDurable(() => pass.ports.adopt({ run: child, workflow, create, entry }));
  else pass.draft.onDurable(() => pass.ports.mailed());
}

function childRun(pass: Pass, call: ChildCall, at: number): NewRun {
  const { key, needs } = call;
  const { workflow, detached, options } = call.spec;
  return {
    workflow: workflow.name,
    version: workflow.version,
    traceId: pass.row.traceId,
    key: null,
    tags: options.tags ?? [],
    priority: options.priority ?? pass.row.priority,
    parent: { run: pass.id, key, generation: pass.generation, detached },
    origin: null,
    deadline: at + workflow.definition.deadlineMs,
    claimed: needs === null && pass.ports.adopts(workflow.name, workflow.version),
    readyAt: at,
    codec: pass.ports.codec.id,
    needs,
  };
}

/** Those of the run that calls it hold for the child, and its own below them. */
function childBudgets({ body }: Pass, { child, spec }: ChildCall, at: number): Pick<RunStarted, "budgets"> {
  const { workflow, options } = spec;
  const plan = budgetPlan(options.budget, `child "${workflow.name}"`) ?? workflow.definition.budget ?? undefined;
  if (plan === undefined && body.budgets.length === 0) return {};
  return { budgets: budgetsFor(child, plan, at, body.budgets) };
}

function firstEntry(pass: Pass, call: ChildCall, create: NewRun, at: number) {
  const draft = new Draft(call.child, { head: 0, hash: call.child, at: 0 }, pass.ports.host, pass.ports.codec);
  draft.redactor = pass.ports.redaction.for(call.spec.workflow.definition);
  const started: RunStarted = {
    workflow: create.workflow,
    version: create.version,
    input: call.input,
    seed: call.child,
    deadline: create.deadline,
    ...childBudgets(pass, call, at),
    ...pinned(call.spec.workflow.definition),
    ...(pass.dry !== null && { effects: pass.dry.policy }),
  };
  draft.append(at, "run.started", pass.dry === null ? null : DRY, started);
  const [entry] = draft.take().commit.entries;
  if (entry === undefined) throw new Error("a draft gives back what was appended");
  return entry;
}
