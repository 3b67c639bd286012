// Forks
// A new run that inherits another one's journal up to a point. The prefix keeps its recorded seed and keys, so that replay follows it;
// from the fork point on it draws from its own id (P10). Nothing of the source changes.
import type { Codec } from "../base/envelope.ts";
import { PawlError } from "../base/errors.ts";
import type { ApprovalDecided, ApprovalRequested } from "../core/approval-request.ts";
import { shifted } from "../core/approval-spec.ts";
import { APPROVAL_SPACE, approvalId, approvalWait } from "../core/approvals.ts";
import { budgetsOfCopy } from "../core/budget.ts";
import type { CallbackOpened } from "../core/callback.ts";
import { CALLBACK_SPACE, callbackId, callbackWait } from "../core/callbacks.ts";
import type { Cost } from "../core/context.ts";
import { assertUnderstood, DRY } from "../core/demands.ts";
import { Draft } from "../core/draft.ts";
import { dryPolicyIn } from "../core/dry.ts";
import type { Host } from "../core/host.ts";
import { childId } from "../core/issue.ts";
import type {
  ChildStarted,
  Continued,
  DryPolicy,
  EffectPlanned,
  Entry,
  Forked,
  RunStarted,
  SignalAwaited,
  StatePatched,
  StepFailed,
  StoredEntry,
  TimerSet,
} from "../core/journal.ts";
import { entryKind } from "../core/journal.ts";
import { nameOf } from "../core/key-scope.ts";
import { generationSeed } from "../core/seeds.ts";
import type { NewRun, RunCommit, RunRow, Store } from "../core/store.ts";
import { assertSound, openEntry, openKey, sealValue } from "../core/values.ts";
import { copyOutcomes } from "./fork-effects.ts";
import type { ForkPoint } from "./fork-point.ts";

export interface ForkPorts {
  readonly store: Store;
  readonly host: Host;
  readonly codec: Codec;
  /** The source has ended, and the fork takes its place. */
  readonly isRetry: boolean;
  /** Makes the fork dry; `null`: it is what its source is. */
  readonly effects: DryPolicy | null;
}

/** The entries before the first one that cannot be read, or is not what was written: what a fork inherits is signed again. */
export function soundStart(
  { host, codec }: Pick<ForkPorts, "host" | "codec">,
  row: RunRow,
  stored: readonly StoredEntry[],
): Entry[] {
  const entries: Entry[] = [];
  let previous: StoredEntry | null = null;
  // Also behind the point: what comes of a dry run is dry, and so may be what this build does not know.
  for (const entry of stored) assertUnderstood(row.id, entry.seq, openKey(codec, entry));
  try {
    for (const entry of stored) {
      const isNext = entry.seq === (previous === null ? 0 : previous.seq + 1);
      assertSound(host, row, entry, isNext ? (previous?.hash ?? row.id) : null);
      entries.push(openEntry(codec, row.id, entry));
      previous = entry;
    }
  } catch {
    // Whoever forks at it, or behind it, is told where the journal ends for them.
  }
  return entries;
}

/** The commit that creates the fork, whole. */
export async function forkCommit(
  source: RunRow,
  journal: readonly Entry[],
  point: ForkPoint,
  id: string,
  ports: ForkPorts,
): Promise<RunCommit> {
  const now = ports.store.clock.now();
  const draft = new Draft(id, { head: 0, hash: id, at: 0 }, ports.host, ports.codec);
  const prefix = journal.slice(0, point.at);
  const started = prefix[0]?.payload as RunStarted;
  const deadline = source.deadline === null ? null : now + (source.deadline - source.createdAt);
  draft.create(createOf(source, deadline, now, ports.codec));
  const open = openCalls(prefix);
  const retries = openRetries(prefix);
  const parks = openParks(prefix);
  // A dry run says so where it was forked, which may be behind the point: whatever comes of it is dry (DR1).
  const effects = ports.effects ?? dryPolicyIn(journal);
  const how = { id, source: source.id, point, now, deadline, started, open, retries, ports: { ...ports, effects } };
  for (const entry of prefix) if (!parks.has(entry)) await inherit(draft, entry, how);
  const cost = costOf(prefix);
  if (cost.size > 0) draft.row({ cost: JSON.stringify(Object.fromEntries(cost)) });
  // Nothing is done with them here: they may be looked at.
  const leaves = effects === null ? await shareApprovals(draft, journal, point.at, source.id, ports) : [];
  const forked: Forked = { from: source.id, at: point.at, seed: id, ...(leaves.length > 0 && { leaves }) };
  if (effects === null) draft.append(now, "run.forked", null, forked);
  else draft.append(now, "run.forked", DRY, { ...forked, effects } satisfies Forked);
  if (effects !== null) copyOutcomes(draft, journal, point.at, now);
  return draft.take().commit;
}

/** Questions that nobody has answered are the source's alone: there is one for each action that is in doubt. */
function openParks(prefix: readonly Entry[]): ReadonlySet<Entry> {
  const answered = prefix.findLastIndex(({ type }) => type === "run.resolved");
  return new Set(prefix.slice(answered + 1).filter(({ type }) => type === "run.parked"));
}

/** What the run had cost at the fork point. */
function costOf(prefix: readonly Entry[]): Map<string, number> {
  const costs = new Map<string, number>();
  for (const { type, payload } of prefix) {
    if (type === "run.continued") costs.clear();
    const isCost = type === "cost" || type === "step.spent";
    const amounts = type === "run.continued" ? (payload as Continued).cost : isCost ? (payload as Cost) : {};
    for (const [unit, amount] of Object.entries(amounts)) costs.set(unit, (costs.get(unit) ?? 0) + amount);
  }
  return costs;
}

function createOf(source: RunRow, deadline: number | null, now: number, codec: Codec): NewRun {
  const { workflow, version, traceId, key, tags, priority } = source;
  return {
    workflow,
    version,
    traceId,
    key,
    tags,
    priority,
    parent: null,
    origin: source.id,
    deadline,
    claimed: false,
    readyAt: now,
    codec: codec.id,
    // It has begun before: only its slot is needed again.
    needs: source.slot === null ? null : { slot: source.slot, rate: null },
  };
}

interface Inheritance {
  readonly id: string;
  readonly source: string;
  readonly point: ForkPoint;
  readonly now: number;
  readonly deadline: number | null;
  readonly started: RunStarted;
  readonly open: ReadonlyMap<string, Entry>;
  /** Failures whose next attempt has not begun. */
  readonly retries: ReadonlySet<Entry>;
  readonly ports: ForkPorts;
}

async function inherit(draft: Draft, entry: Entry, how: Inheritance): Promise<void> {
  const { type, key, at } = entry;
  // An earlier generation may have had a call of the same key.
  const isOpen = how.open.get(`${type} ${key}`) === entry;
  if (type === "run.started") {
    const started = { ...how.started, deadline: how.deadline, ...copied(how.started, how) };
    return void draft.append(at, type, key, started);
  }
  if (type === "step.failed" && how.point.tryAgain && entry.seq === how.point.at - 1)
    return tryAgain(draft, entry, how.now);
  if (type === "child.started" && isOpen) return restartChild(draft, entry, how);
  if (type === "approval.requested" && isOpen) return askAgain(draft, entry as Entry<ApprovalRequested>, how);
  if (type === "callback.opened" && isOpen) return openAgain(draft, entry as Entry<CallbackOpened>, how);
  if (type === "signal.awaited" && isOpen) return waitAgain(draft, entry as Entry<SignalAwaited>, how);
  // It waits anew: what fell due in the source has not happened to it.
  const asked = how.open.get(`approval.requested ${key}`);
  if (type === "approval.escalated" && asked !== undefined && entry.seq > asked.seq) return;
  draft.append(
    at,
    type,
    key,
    type === "run.continued" ? continuedCopy(entry.payload as Continued, how) : entry.payload,
  );
  if (type === "state.patched" && key !== null) {
    draft.state({
      key,
      data: sealValue(
        how.ports.codec,
        (entry.payload as StatePatched).value,
        { run: how.id, seq: -1, field: `state:${key}` },
        key,
      ),
    });
  }
  if (type === "timer.set" && isOpen) {
    draft.wait({
      open: { key: `timer:${key}`, kind: "timer", name: key ?? "", due: (entry.payload as TimerSet).due, detail: null },
    });
  }
  if (how.retries.has(entry)) waitForRetry(draft, key, (entry.payload as StepFailed).retryAt);
}

/** What the source was sent is the source's. The time begins anew: else whoever retries a wait that was over in time would be told so again at once. */
function waitAgain(draft: Draft, { at, key, payload }: Entry<SignalAwaited>, { now }: Inheritance): void {
  const due = payload.due === null ? null : payload.due + (now - at);
  draft.append(at, "signal.awaited", key, { ...payload, due } satisfies SignalAwaited);
  draft.wait({ open: { key: `signal:${key}`, kind: "signal", name: nameOf(key), due, detail: null } });
}

function waitForRetry(draft: Draft, key: string | null, due: number | null): void {
  draft.wait({ open: { key: `retry:${key}`, kind: "retry", name: nameOf(key), due, detail: null } });
}

/** A budget that was given to the source is one of the fork's own: it begins anew. Those of runs above hold for both. */
function copied(
  { budgets }: Pick<RunStarted, "budgets">,
  { id, source, now }: Pick<Inheritance, "id" | "source" | "now">,
  child?: { readonly from: string; readonly to: string },
): Pick<RunStarted, "budgets"> {
  if (budgets === undefined) return {};
  const copies = new Map([[source, id], ...(child === undefined ? [] : [[child.from, child.to] as const])]);
  return { budgets: budgetsOfCopy(budgets, copies, now) };
}

function continuedCopy(continued: Continued, how: Inheritance): Continued {
  return { ...keepSeed(continued, how.source), ...copied(continued, how) };
}

/** The fork has another id, but its prefix was drawn from what the source's generations were seeded with (P10). */
function keepSeed(continued: Continued, source: string): Continued {
  return { ...continued, seed: continued.seed ?? generationSeed(source, continued.generation) };
}

/** The failure becomes one that is due for another attempt, with its retries given back. */
function tryAgain(draft: Draft, entry: Entry, now: number): void {
  const failed = entry.payload as StepFailed;
  draft.append(entry.at, "step.failed", entry.key, { ...failed, retryAt: now, isRetried: true } satisfies StepFailed);
  waitForRetry(draft, entry.key, now);
}

/** A child that the source still waits for answers the source alone: the fork starts its own. */
async function restartChild(draft: Draft, entry: Entry, how: Inheritance): Promise<void> {
  const { id, now, ports } = how;
  const { store, host, codec } = ports;
  const old = entry.payload as ChildStarted;
  const row = await store.run(old.child);
  const [first] = await store.journal(old.child, { limit: 1 });
  if (row === null || first === undefined) {
    throw new PawlError(
      "run_not_found",
      `Child run ${old.child}, which the fork would start again, is no longer in the store. Fork before "${entry.key}".`,
      {
        fields: { child: old.child },
      },
    );
  }
  const child = childId(host, id, 0, entry.key ?? "");
  const started = openEntry(codec, old.child, first).payload as RunStarted;
  const deadline = row.deadline === null ? null : now + (row.deadline - row.createdAt);
  const begun = new Draft(child, { head: 0, hash: child, at: 0 }, host, codec);
  const budgets = copied(started, how, { from: old.child, to: child });
  const dry = ports.effects === null ? {} : { effects: ports.effects };
  begun.append(now, "run.started", ports.effects === null ? null : DRY, {
    ...started,
    seed: child,
    deadline,
    ...budgets,
    ...dry,
  } satisfies RunStarted);
  const [stored] = begun.take().commit.entries;
  if (stored === undefined) throw new Error("a draft gives back what was appended");
  draft.append(entry.at, "child.started", entry.key, { ...old, child } satisfies ChildStarted);
  draft.wait({ open: { key: `child:${entry.key}`, kind: "child", name: child, due: null, detail: null } });
  const parent = { run: id, key: entry.key ?? "", generation: 0, detached: false };
  draft.child({
    run: child,
    create: { ...createOf(row, deadline, now, codec), key: null, parent, origin: null },
    entry: stored,
  });
}

/** What people have said, or will say, is about the source alone: the fork asks them itself, and its times begin now. */
function askAgain(
  draft: Draft,
  { at, key, payload }: Entry<ApprovalRequested>,
  { id: run, now, ports }: Inheritance,
): void {
  const id = approvalId(ports.host, run, 0, key ?? "");
  const request = shifted(payload, id, now - payload.at);
  const seq = draft.append(at, "approval.requested", key, request);
  draft.wait(approvalWait(key ?? "", request, request.due, seq));
  draft.key({ space: APPROVAL_SPACE, key: id, digest: request.hash });
}

/**
 * What people have approved counts once (Q6). A retry takes it with it, since the source can do nothing any more; of two retries, the first one. What
 * any other fork would do with it, the source has done or may do, and so has it what it has begun behind the point, whether that was undone or not:
 * gives back which ones stay there.
 */
async function shareApprovals(
  draft: Draft,
  journal: readonly Entry[],
  at: number,
  source: string,
  { store, isRetry }: ForkPorts,
): Promise<string[]> {
  const left: string[] = [];
  const begun = journal.slice(at).filter(({ type }) => type === "effect.planned");
  const used = new Set(begun.map(({ payload }) => (payload as EffectPlanned).approval));
  for (const { id, hash } of unusedApprovals(journal.slice(0, at))) {
    const isHeld = isRetry && !used.has(id) && (await store.key(APPROVAL_SPACE, id))?.run === source;
    if (isHeld) draft.key({ space: APPROVAL_SPACE, key: id, digest: hash, from: source });
    else left.push(id);
  }
  return left;
}

/** Those that were given in the last generation of a prefix, and that nothing was done with for sure. */
function unusedApprovals(prefix: readonly Entry[]): ApprovalRequested[] {
  const asked = new Map<string, ApprovalRequested>();
  const given = new Map<string, ApprovalRequested>();
  const restsOn = new Map<string | null, string>();
  for (const { type, key, payload } of prefix) {
    if (type === "run.continued") given.clear();
    if (type === "approval.requested") asked.set((payload as ApprovalRequested).id, payload as ApprovalRequested);
    if (type === "approval.decided" && (payload as ApprovalDecided).decision === "approved") {
      const request = asked.get((payload as ApprovalDecided).id);
      if (request !== undefined) given.set(request.id, request);
    }
    if (type === "effect.planned") restsOn.set(key, (payload as EffectPlanned).approval ?? "");
    if (type === "effect.executed") given.delete(restsOn.get(key) ?? "");
  }
  return [...given.values()];
}

/**
 * Who has a token of the source's answers the source. A retry takes its place, and its addresses with it, since the source can take no answer any
 * more; any other fork has one of its own. The time begins anew.
 */
async function openAgain(draft: Draft, entry: Entry<CallbackOpened>, how: Inheritance): Promise<void> {
  const { at, payload } = entry;
  const { store, host, isRetry } = how.ports;
  const key = entry.key ?? "";
  const isHeld = isRetry && (await store.key(CALLBACK_SPACE, payload.id))?.run === how.source;
  const id = isHeld ? payload.id : callbackId(host, how.id, 0, key, how.now);
  const opened = { ...payload, id, due: payload.due === null ? null : payload.due + (how.now - at) };
  draft.append(at, "callback.opened", key, opened satisfies CallbackOpened);
  draft.wait(callbackWait(key, nameOf(key), opened));
  draft.key({ space: CALLBACK_SPACE, key: id, digest: key, ...(isHeld && { from: how.source }) });
}

/** The failure marks of the prefix whose next attempt is not in it. */
function openRetries(prefix: readonly Entry[]): Set<Entry> {
  const open = new Map<string | null, Entry>();
  for (const entry of prefix) {
    if (entry.type === "run.continued") open.clear();
    if (entry.type === "step.failed" && entryKind(entry) === "mark") open.set(entry.key, entry);
    else if (entry.type.startsWith("step.") || entry.type === "effect.executed") open.delete(entry.key);
  }
  return new Set(open.values());
}

/** Calls of the prefix whose outcome is not in it, as "type key". */
function openCalls(prefix: readonly Entry[]): Map<string, Entry> {
  const open = new Map<string, Entry>();
  const CALL_OF: Readonly<Record<string, string>> = {
    "signal.received": "signal.awaited",
    "child.ended": "child.started",
    "approval.decided": "approval.requested",
    "callback.ended": "callback.opened",
    "step.completed": "step.started",
    "step.failed": "step.started",
    "effect.executed": "effect.planned",
  };
  for (const entry of prefix) {
    const kind = entryKind(entry);
    if (entry.type === "run.continued") open.clear();
    if (kind === "call" && !(entry.type === "child.started" && (entry.payload as ChildStarted).detached))
      open.set(`${entry.type} ${entry.key}`, entry);
    if (kind !== "outcome") continue;
    if (entry.type === "timer.fired")
      open.delete(`${entry.payload === null ? "timer.set" : "signal.awaited"} ${entry.key}`);
    else open.delete(`${CALL_OF[entry.type]} ${entry.key}`);
    if (entry.type === "step.failed") open.delete(`effect.planned ${entry.key}`);
  }
  return open;
}
