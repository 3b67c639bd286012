// Loading a claimed run
// Decides what a claim leads to: a pass, or an end that needs no body (corrupted, poisoned, cancelled while nothing of it was running).
import { readCancel } from "../base/cancel-text.ts";
import { messageOf, type PawlError, readProperty } from "../base/errors.ts";
import { notifyOfFork } from "../core/approvals.ts";
import { withoutOldCheckpoints } from "../core/checkpoints.ts";
import { leftUndone } from "../core/compensation.ts";
import { parkedForNewer } from "../core/demands.ts";
import { type Chain, Draft } from "../core/draft.ts";
import { cancelError, cancelWithoutBody, parkFields, recordableCancel, writePark } from "../core/endings.ts";
import { needsOf } from "../core/flow-control.ts";
import type { ChildEnded, ChildStarted, Continued, Entry, Parked, Resolved, RunStarted } from "../core/journal.ts";
import { LIMITS } from "../core/limits.ts";
import { parkedForKey } from "../core/missing-key.ts";
import { notifyIncomplete } from "../core/notification.ts";
import { Pass } from "../core/pass.ts";
import type { PassPorts } from "../core/pass-ports.ts";
import { structureIn, versionChange } from "../core/pins.ts";
import { hasBegun, notBeforeIn } from "../core/put-off.ts";
import type { ClaimedRun, InboxRow, Needs, RunCommit } from "../core/store.ts";
import { isUndoable } from "../core/undoable-call.ts";
import { openJournal } from "../core/values.ts";
import { parkedChange } from "../core/version-mismatch.ts";
import { readMail } from "../core/wakeup-delivery.ts";
import type { Workflow } from "../core/workflow.ts";

export type Loaded =
  | { readonly kind: "pass"; readonly pass: Pass }
  /** Nothing of the body is needed: this is what remains to be written. */
  | { readonly kind: "write"; readonly commit: RunCommit; readonly ended: "cancelled" | "parked" | "early" }
  /** It is cancelled, and its journal cannot tell which children go with it: look at its waits, and come again. */
  | { readonly kind: "childless" }
  /** Only its code can go on with it, or undo what it has done, and that is elsewhere. */
  | { readonly kind: "bodied" }
  /** Whoever created it did not know what it needs: it has to stand in line first. */
  | { readonly kind: "needy"; readonly needs: Needs };

/** What is known of a run whose body is not begun. */
export interface Bodiless {
  /** Those that it waits for as the store knows them; its journal knows them better, if it can be read. */
  readonly children?: readonly string[];
  /** Its code does not follow its journal: it cannot undo anything either. */
  readonly isLost?: boolean;
  /** Of its workflow. */
  readonly owner?: string | null;
}

/** Why a run that kills its process is not undone. */
export const GIVEN_UP = "it ends its process again and again";

export function loadRun(
  claimed: ClaimedRun,
  workflow: Workflow | undefined,
  ports: PassPorts,
  readAt: number,
  { children, isLost = false, owner = workflow?.definition.owners.compensating ?? null }: Bodiless = {},
): Loaded {
  const draft = new Draft(claimed.run, endOf(claimed), ports.host, ports.codec);
  const mayBeTrimmed = workflow?.definition.onMissing === "execute";
  let entries: Entry[];
  try {
    entries = openJournal(ports.host, ports.codec, claimed.row, claimed.journal, mayBeTrimmed);
  } catch (error) {
    if (claimed.cancel === null) return parked(draft, claimed, ports, corrupted(claimed.run, error));
    return children === undefined ? { kind: "childless" } : cancelled(draft, claimed, ports, children);
  }
  const wasParked = openPark(entries);
  const decision = decisionOf(claimed, ports, wasParked);
  const isUndone = undoes(claimed, entries);
  // One that kills its process is not begun again for what it would undo.
  if (isUndone && (isLost || isPoison(claimed))) {
    const why = isLost ? "its code does not follow the journal any more" : GIVEN_UP;
    const left = leftUndone(
      claimed.run,
      owner,
      entries,
      why,
      cancelError(claimed.run, recordableCancel(claimed.cancel)),
    );
    return cancelled(draft, claimed, ports, openChildren(entries), left);
  }
  if (isUndone && workflow === undefined) return { kind: "bodied" };
  if (claimed.cancel !== null && !isUndone && (!hasBegun(entries) || wasParked !== null || workflow === undefined))
    return cancelled(draft, claimed, ports, openChildren(entries));
  if (wasParked !== null && decision === undefined && claimed.cancel === null)
    return parked(draft, claimed, ports, null);
  if (decision?.error !== undefined) return askAgain(draft, claimed, ports, wasParked as Parked, decision);
  const notBefore = notBeforeIn(entries);
  if (notBefore !== null && claimed.cancel === null && ports.clock.now() < notBefore)
    return early(draft, claimed, ports, notBefore, { decision, needs: needsAgain(workflow, entries) });
  if (isPoison(claimed)) return parked(draft, claimed, ports, poisoned(claimed));
  // Taken to be written to, and the answer was lost.
  if (workflow === undefined) return { kind: "bodied" };
  const changed = definitionChange(claimed, workflow, entries);
  if (changed !== null) {
    if (decision !== undefined) draft.consume(decision.row.id);
    return parked(draft, claimed, ports, changed);
  }
  const needs = unmetNeeds(claimed, workflow, entries);
  if (needs !== null) return { kind: "needy", needs };
  const inbox = mendTrimmed(claimed, entries, draft, ports);
  return { kind: "pass", pass: passOf({ ...claimed, inbox }, workflow, entries, draft, ports, readAt, decision) };
}

/** The code says that it is what the run began with, and is not. What is cancelled is undone by whatever code is there. */
function definitionChange(
  { run, row, cancel }: ClaimedRun,
  workflow: Workflow,
  entries: readonly Entry[],
): Parked | null {
  const { version, definition } = workflow;
  const saved = structureIn(entries);
  if (saved === null || version !== row.version || saved === definition.structure) return null;
  if (definition.versionPolicy === "ignore" || cancel !== null) return null;
  return parkedChange({ run, workflow: workflow.name, version, saved, current: definition.structure });
}

function isPoison({ row }: ClaimedRun): boolean {
  return row.claims > LIMITS.deathsAmongOthers + LIMITS.deathsAlone;
}

/** It is cancelled, and only its body knows how to take back what it has done. What is being undone already is undone, whatever the cancel says (CO4). */
function undoes({ cancel }: ClaimedRun, entries: readonly Entry[]): boolean {
  if (cancel === null) return false;
  if (entries.some(({ type }) => type === "run.compensating")) return true;
  return readCancel(cancel).compensate && entries.some(isUndoable);
}

/** What a run needs that was created where only the name of its workflow was known, or before the workflow had limits. */
function unmetNeeds({ row }: ClaimedRun, workflow: Workflow, entries: readonly Entry[]): Needs | null {
  if (workflow.definition.flow === null) return null;
  const last = lastStart(entries);
  const isReplaced = last > 0 && !hasBegun(entries);
  if (row.slot !== null && !isReplaced) return null;
  const needs = neededFor(workflow, (entries[last]?.payload as RunStarted | Continued | undefined)?.input);
  // Of a burst, whoever came last may not have known what its input needs.
  if (row.slot === needs.slot) return null;
  return hasBegun(entries) ? { ...needs, rate: null } : needs;
}

/** What a run that a claim has counted as begun, and that has not, needs as before. */
function needsAgain(workflow: Workflow | undefined, entries: readonly Entry[]): Needs | null {
  if (workflow === undefined || workflow.definition.flow === null) return null;
  const first = entries.findLast(({ type }) => type === "run.started" || type === "run.continued");
  return neededFor(workflow, (first?.payload as RunStarted | Continued | undefined)?.input);
}

function neededFor(workflow: Workflow, input: unknown): Needs {
  const own = { slot: workflow.name, rate: null };
  try {
    return needsOf(workflow, input) ?? own;
  } catch {
    // An input that has no key: it is counted with the workflow itself.
    return own;
  }
}

/** The entry that the run begins with: its first one, or the last start of a burst that has taken its place. */
function lastStart(entries: readonly Entry[]): number {
  const isReplacing = ({ type, payload }: Entry) =>
    type === "run.continued" && (payload as Continued).replaces === true;
  return Math.max(0, entries.findLastIndex(isReplacing));
}

/** Where the journal ends now. */
function endOf({ run, journal }: ClaimedRun): Chain {
  const last = journal.at(-1);
  return { head: (last?.seq ?? -1) + 1, hash: last?.hash ?? run, at: last?.at ?? 0 };
}

type Decision = { readonly row: InboxRow } & ReturnType<typeof readMail>;

/** Decided later, when replay has reached the steps in question. */
const ABOUT_STEPS: readonly string[] = ["unknown_outcome", "budget_exceeded"];

/** What a person has said about an open park: the last word, since there is one for each park, and it may have been parked again before anybody read it. */
function decisionOf(claimed: ClaimedRun, ports: PassPorts, wasParked: Parked | null): Decision | undefined {
  const row = claimed.inbox.findLast(({ kind }) => kind === "decision");
  if (row === undefined || wasParked === null) return undefined;
  if (ABOUT_STEPS.includes(wasParked.reason)) return { row, value: null };
  return { row, ...readMail(ports.codec, claimed.run, row) };
}

/** A decision that cannot be read is used up, and the person who made it is asked again. */
function askAgain(draft: Draft, claimed: ClaimedRun, ports: PassPorts, park: Parked, { row, error }: Decision): Loaded {
  draft.consume(row.id);
  const { choices, detail } = park;
  const message = `${error?.message ?? ""} Before that: ${park.message}`;
  return parked(draft, claimed, ports, {
    reason: park.reason,
    message,
    choices,
    ...(detail === undefined ? {} : { detail }),
  });
}

/**
 * Makes a run whose journal was trimmed fit to go on, and says what is missing. Where the end is gone, the row must forget it, and with it a park
 * that nobody can see any more.
 */
function mendTrimmed(
  claimed: ClaimedRun,
  entries: readonly Entry[],
  draft: Draft,
  ports: PassPorts,
): readonly InboxRow[] {
  const { head, hash } = draft.chain;
  const missing = Math.max(head, claimed.row.head) - entries.length;
  if (missing === 0) return claimed.inbox;
  ports.log.warn(`The journal of run ${claimed.run} lacks ${missing} entries. What they recorded is done again.`, {
    run: claimed.run,
    missing,
  });
  if (head >= claimed.row.head) return claimed.inbox;
  draft.row({ head, headHash: hash });
  if (openPark(entries) !== null) return claimed.inbox;
  draft.wait({ close: "decision" });
  for (const { id, kind } of claimed.inbox) if (kind === "decision") draft.consume(id);
  return claimed.inbox.filter(({ kind }) => kind !== "decision");
}

function passOf(
  claimed: ClaimedRun,
  workflow: Workflow,
  entries: readonly Entry[],
  draft: Draft,
  ports: PassPorts,
  readAt: number,
  decision: Decision | undefined,
): Pass {
  const { row, wake, cancel, inbox } = claimed;
  // One that was taken, not claimed, still has the state it was left in.
  if (row.state !== "running") draft.row({ state: "running" });
  const change = versionChange(row.version, workflow, entries);
  if (change !== null) draft.append(ports.clock.now(), "version.changed", null, change);
  if (workflow.version !== row.version) draft.row({ version: workflow.version });
  const from = Math.max(
    0,
    entries.findLastIndex((entry) => entry.type === "run.continued"),
  );
  const first = entries[from];
  const generation = first?.type === "run.continued" ? (first.payload as { generation: number }).generation : 0;
  const pass = new Pass(
    {
      row: { ...row, state: "running" },
      workflow,
      entries: withoutOldCheckpoints(entries.slice(from)),
      generation,
      chain: draft.chain,
      draft,
      mail: { wake, cancel, inbox },
      readAt,
    },
    ports,
  );
  if (cancel === null) notifyOfFork(pass, entries);
  // A park is over once a person says "retry"; one about steps has no value here yet.
  if (decision?.error !== undefined || decision?.value == null) return pass;
  // Those about earlier parks of the kind are used up with it: the next park must not be over by one of them.
  const { id, name } = decision.row;
  for (const row of inbox)
    if (row.kind === "decision" && row.name === name && row.id !== id) pass.mailbox.consume(row, draft);
  pass.resolved(decision.row, decision.value as Resolved);
  return pass;
}

/** Whether nobody has decided about its last park yet, nor cancelled it since. */
export function isParked(journal: readonly Pick<Entry, "type">[]): boolean {
  return journal.findLast(({ type }) => PARK_WORDS.has(type))?.type === "run.parked";
}

const PARK_WORDS: ReadonlySet<string> = new Set(["run.parked", "run.resolved", "run.cancelling"]);

/** The park that nobody has decided yet. */
export function openPark(entries: readonly Entry[]): Parked | null {
  const last = entries.findLast((entry) => entry.type === "run.parked" || entry.type === "run.resolved");
  return last?.type === "run.parked" ? (last.payload as Parked) : null;
}

/** The children that this generation has called and not heard of since. */
function openChildren(entries: readonly Entry[]): string[] {
  const open = new Set<string>();
  for (const { type, payload } of entries) {
    if (type === "run.continued") open.clear();
    if (type === "child.started" && !(payload as ChildStarted).detached) open.add((payload as ChildStarted).child);
    if (type === "child.ended") open.delete((payload as ChildEnded).child);
  }
  return [...open];
}

function cancelled(
  draft: Draft,
  claimed: ClaimedRun,
  ports: PassPorts,
  children: readonly string[],
  left: PawlError | null = null,
): Loaded {
  if (left !== null) {
    ports.log.error(left.message, { run: claimed.run, reason: left.code });
    notifyIncomplete({ draft, row: claimed.row, ports }, left);
  }
  cancelWithoutBody(draft, claimed.row, ports, recordableCancel(claimed.cancel), children, left);
  return { kind: "write", commit: draft.take().commit, ended: "cancelled" };
}

/** Parks, or with `null` leaves parked what a claim has picked up without a reason. */
function parked(draft: Draft, claimed: ClaimedRun, ports: PassPorts, park: Parked | null): Loaded & { kind: "write" } {
  if (park !== null) {
    ports.log.error(park.message, parkFields(claimed.row, park));
    writePark(draft, claimed.row, ports.clock.now(), park);
  } else {
    draft.row({ state: "parked", release: true, readyAt: null, wakeAt: null, claims: 0 });
    // Somebody may decide in this very moment: nobody would wake it for that any more (P18).
    draft.ifWake(claimed.wake);
  }
  return { kind: "write", commit: { ...draft.take().commit, ifNotCancelled: true }, ended: "parked" };
}

/** Puts off again what was claimed before its time, with what a person has decided about it until then: its body has not begun (I13). */
function early(
  draft: Draft,
  claimed: ClaimedRun,
  ports: PassPorts,
  notBefore: number,
  { decision, needs }: { readonly decision: Decision | undefined; readonly needs: Needs | null },
): Loaded {
  if (needs !== null) draft.row({ needs });
  if (decision?.error === undefined && decision?.value != null) {
    draft.append(ports.clock.now(), "run.resolved", null, decision.value as Resolved);
    draft.wait({ close: "decision" });
    for (const { id, kind } of claimed.inbox) if (kind === "decision") draft.consume(id);
  }
  const { head, hash } = draft.chain;
  // A claim has called it running.
  draft.row({ state: "accepted", head, headHash: hash, release: true, readyAt: null, wakeAt: notBefore, claims: 0 });
  return { kind: "write", commit: { ...draft.take().commit, ifNotCancelled: true }, ended: "early" };
}

/** Parks a run whose commit the store can never take. */
export function parkRefused(claimed: ClaimedRun, ports: PassPorts, error: unknown): RunCommit {
  const message =
    `Run ${claimed.run} cannot go on: the store refuses what it has to write. ${messageOf(error)} ` +
    'Deploy code that avoids it and resolve the run with "retry", or cancel it.';
  const park: Parked = { reason: "commit_refused", message, choices: ["retry", "cancel"] };
  return parked(new Draft(claimed.run, endOf(claimed), ports.host, ports.codec), claimed, ports, park).commit;
}

function corrupted(run: string, error: unknown): Parked {
  const forOthers = parkedForKey(run, error) ?? parkedForNewer(run, error);
  if (forOthers !== null) return forOthers;
  const message = messageOf(error);
  const fields = readProperty(error, "fields");
  return {
    reason: "corrupted_journal",
    message: `Run ${run} cannot be replayed. ${message}`,
    choices: ["retry", "cancel"],
    detail: {
      error: message,
      code: readProperty(error, "code") ?? null,
      seq: readProperty(fields, "seq") ?? null,
    },
  };
}

function poisoned(claimed: ClaimedRun): Parked {
  const { run, row } = claimed;
  return {
    reason: "poisoned",
    message:
      `Run ${run} of workflow "${row.workflow}" ended its process ${row.claims - 1} times without recording anything, the last ${LIMITS.deathsAlone} times alone. ` +
      'Look for a crash, an endless loop or memory exhaustion in its next step; deploy a fix and resolve the run with "retry", or cancel it.',
    choices: ["retry", "cancel"],
    detail: { claims: row.claims - 1 },
  };
}
