// Starting afresh
// A run that no code goes on with is given up, and a new one begins under the new version with the same input. The old one is kept as it is.
//
//   FR1. The end of the old run and the new run are one commit: there is never work for both, nor for none.
//   FR2. The start key follows in a second commit. Until then, whoever starts with it is led from the old run to the new one.
import { PawlError } from "../base/errors.ts";
import { budgetsOfCopy } from "../core/budget.ts";
import { DRY } from "../core/demands.ts";
import { Draft } from "../core/draft.ts";
import { dryPolicyIn } from "../core/dry.ts";
import { cancelWithoutBody } from "../core/endings.ts";
import { needsOf } from "../core/flow-control.ts";
import { generationOf } from "../core/generation.ts";
import type { DryPolicy, Entry, Resolved, RunStarted } from "../core/journal.ts";
import { ledgerOf } from "../core/ledger.ts";
import { pinned } from "../core/pins.ts";
import { notBeforeIn } from "../core/put-off.ts";
import { validate } from "../core/schema.ts";
import type { ClaimedRun, NewChild, NewRun, RunCommit, RunRow } from "../core/store.ts";
import { openEntry, openJournal } from "../core/values.ts";
import type { Workflow } from "../core/workflow.ts";
import { notWritten } from "./rewrite.ts";
import { type StartPorts, startSpace, versionElsewhere } from "./start.ts";

/** How long the new run waits for its key, should whoever moves it die. */
const KEY_MS = 10_000;

export interface Fresh {
  /** Though the run has done things outside. */
  readonly force: boolean;
}

/** Ends the run and starts it afresh; gives the new run's id. */
export async function startFresh(ports: StartPorts, row: RunRow, { force }: Fresh): Promise<string> {
  const { store, registry, worker, ids, codec } = ports;
  const journal = (await store.journal(row.id)).map((entry) => openEntry(codec, row.id, entry));
  assertReplaceable(row, journal, force);
  const workflow = registry.newest(row.workflow) ?? null;
  const version = workflow?.version ?? (await versionElsewhere(store, row.workflow));
  const { input, budgets } = generationOf(row.id, journal);
  const what = `The input of workflow "${row.workflow}" ${version}`;
  const checked = await validate(workflow?.definition.input, input, what);
  const kept = { budgets, effects: dryPolicyIn(journal), notBefore: notBeforeIn(journal) };
  const begun = { run: ids.next(), workflow, version, input: checked, ...kept };
  const outcome = await worker.takeOver.write(row.id, (claimed) => replaced(ports, claimed, begun));
  if (outcome.kind !== "written") throw await notWritten(store, row.id, outcome);
  if (row.key !== null) await moveKey(ports, row, row.key, begun.run);
  worker.hint();
  return begun.run;
}

/** What was done outside would be done again by a run that knows nothing of it (C-1). */
function assertReplaceable(row: RunRow, journal: readonly Entry[], force: boolean): void {
  if (force) return;
  const isDone = ({ status, ...effect }: ReturnType<typeof ledgerOf>[number]) =>
    effect.class !== "read" && (status === "executed" || status === "unknown" || status === "planned");
  const done = ledgerOf(journal).filter(isDone);
  if (done.length > 0)
    throw new PawlError(
      "unsafe_retry",
      `Run ${row.id} is not started afresh: it has acted outside (${done.map(({ effect }) => `"${effect}"`).join(", ")}), and a new run would do that again. Migrate it, or undo that by hand and force it: { choice: "fresh", value: { force: true } }.`,
      { fields: { run: row.id, effects: done.map(({ effect }) => effect) } },
    );
  if (row.parent === null || row.parent.detached) return;
  throw new PawlError(
    "unsafe_retry",
    `Run ${row.id} is not started afresh: its parent ${row.parent.run} waits for it, and would see it cancelled. Decide about the parent, or force it.`,
    { fields: { run: row.id, parent: row.parent.run } },
  );
}

interface Begun {
  readonly run: string;
  readonly workflow: Workflow | null;
  readonly version: string;
  readonly input: unknown;
  /** Those that the old run has had. Absent: the workflow's. */
  readonly budgets: RunStarted["budgets"];
  /** What comes of a dry run is dry (DR1). */
  readonly effects: DryPolicy | null;
  /** The old run was put off, and has not begun. */
  readonly notBefore: number | null;
}

/** The end of the old run, with the beginning of the new one in the same commit (FR1). */
function replaced({ store, host, codec }: StartPorts, claimed: ClaimedRun, begun: Begun): RunCommit {
  const { run, row, journal, head } = claimed;
  const before = generationOf(run, openJournal(host, codec, row, journal, true));
  const last = journal.at(-1);
  const draft = new Draft(run, { head, hash: last?.hash ?? run, at: last?.at ?? 0 }, host, codec);
  const now = store.clock.now();
  const decision: Resolved = { choice: "fresh", value: { run: begun.run, version: begun.version } };
  draft.append(now, "run.resolved", null, decision);
  draft.child(newRun(row, begun, { host, codec }, now));
  const reason = `Started afresh as run ${begun.run} under version ${begun.version}.`;
  cancelWithoutBody(draft, row, { clock: store.clock, codec }, { cause: "cancel", reason }, before.children);
  return draft.take().commit;
}

function newRun(
  row: RunRow,
  { run, workflow, version, input, budgets, effects, notBefore }: Begun,
  { host, codec }: Pick<StartPorts, "host" | "codec">,
  now: number,
): NewChild {
  const deadline = row.deadline === null ? null : now + (row.deadline - row.createdAt);
  const { traceId, key, tags, priority } = row;
  const create: NewRun = {
    workflow: row.workflow,
    version,
    traceId,
    key,
    tags,
    priority,
    parent: null,
    origin: row.id,
    deadline,
    claimed: false,
    readyAt: key === null ? now : now + KEY_MS,
    codec: codec.id,
    needs: workflow === null ? null : needsOf(workflow, input),
  };
  const draft = new Draft(run, { head: 0, hash: run, at: 0 }, host, codec);
  const started: RunStarted = {
    workflow: row.workflow,
    version,
    input,
    seed: run,
    deadline,
    ...(budgets !== undefined && { budgets: budgetsOfCopy(budgets, new Map([[row.id, run]]), now) }),
    ...(workflow !== null && pinned(workflow.definition)),
    ...(effects !== null && { effects }),
    ...(notBefore !== null && { notBefore }),
  };
  draft.append(now, "run.started", effects === null ? null : DRY, started);
  const [entry] = draft.take().commit.entries;
  if (entry === undefined) throw new Error("a draft gives back what was appended");
  return { run, create, entry };
}

/** The key leads to the new run, which begins with that (FR2). */
async function moveKey({ store, worker }: StartPorts, old: RunRow, key: string, run: string): Promise<void> {
  const space = startSpace(old.workflow);
  const held = await store.key(space, key);
  const isMoved = held?.run === old.id;
  await worker.takeOver.write(run, ({ head }) => ({
    run,
    head,
    entries: [],
    row: { release: true, readyAt: store.clock.now() },
    ...(isMoved && { keys: [{ space, key, digest: held.digest, from: old.id }] }),
  }));
}
