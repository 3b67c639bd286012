// The keeper of schedules
// A schedule is a run without a body. Whoever has claimed it settles what is due and lets it go again, in one commit with the runs that it starts.
//
//   SK1. All that is known of a schedule is its definition and its cursor, in its run state: its journal does not grow with its slots.
//   SK2. A commit counts only while this worker owns the schedule, so two never settle the same slot; and the run of a slot has the slot in its id,
//        so that even then there would be one (I13).
//   SK3. A schedule that cannot be settled here is left as it is, and tried again later, by whoever claims it then: it is never parked for a
//        calendar or a codec that one worker lacks. A change that nobody has been able to read for long is left out, and that is
//        told: it would stand in the way for ever.
import type { Codec } from "../base/envelope.ts";
import { hasCode, messageOf, PawlError } from "../base/errors.ts";
import { compareVersions, parseVersion } from "../base/semver.ts";
import type { Log } from "../core/context.ts";
import { Draft } from "../core/draft.ts";
import type { Host } from "../core/host.ts";
import type { RunStarted } from "../core/journal.ts";
import { LIMITS } from "../core/limits.ts";
import {
  changed,
  type Schedule,
  type ScheduleChange,
  type ScheduleCursor,
  type ScheduleDefinition,
  type Settlement,
  settle,
  wakeOf,
} from "../core/schedule.ts";
import { slotRun, slotTags } from "../core/slot-run.ts";
import type { ClaimedRun, InboxRow, Message, NewChild, RunCommit, StateRow, Store } from "../core/store.ts";
import { isTerminal } from "../core/transition.ts";
import { openValue, sealValue } from "../core/values.ts";

export interface ScheduleKeeperPorts {
  readonly store: Store;
  readonly codec: Codec;
  readonly host: Host;
  readonly log: Log;
}

/** What is to be written of a schedule, and told once it is. */
export interface Tending {
  readonly commit: RunCommit;
  tell(): void;
}

/** The signal by which changes reach a schedule. */
export const CHANGE = "change";

export class ScheduleKeeper {
  readonly #ports: ScheduleKeeperPorts;

  constructor(ports: ScheduleKeeperPorts) {
    this.#ports = ports;
  }

  /** Decides what becomes of a schedule that this worker has claimed. Rejects only if the store cannot be read. */
  async tend(claimed: ClaimedRun, draft: Draft): Promise<Tending> {
    const { store, codec } = this.#ports;
    const { run } = claimed;
    const rows = await store.state(run);
    const mail = claimed.inbox.filter(({ kind }) => kind === "signal");
    const opened = attempt(() => ({
      schedule: openSchedule(codec, run, rows),
      ...this.#changesIn(run, mail),
    }));
    if ("error" in opened) return this.#postponed(claimed, draft, opened.error);
    const { schedule, changes, faults } = opened.value;
    const isBusy = await this.#isBusy(nameOf(claimed), schedule.cursor);
    const versions = await this.#versions();
    const planned = attempt(() => this.#plan(claimed, schedule, changes, isBusy, versions));
    if ("error" in planned) return this.#postponed(claimed, draft, planned.error);
    const { settling, children, state } = planned.value;
    const { cursor } = settling.schedule;
    for (const child of children) draft.child(child);
    for (const row of state) draft.state(row);
    for (const { id } of mail) draft.consume(id);
    for (const to of settling.cancels) draft.send(cancelOf(claimed, to));
    waitForNext(draft, cursor.paused ? null : cursor.next);
    const commit = letGo(claimed, draft, wakeOf(cursor, settling.now));
    return { commit, tell: () => this.#tell(nameOf(claimed), settling, faults) };
  }

  /** What is younger than the patience, another worker may be able to read (SK3). */
  #changesIn(run: string, mail: readonly InboxRow[]): ReturnType<typeof openChanges> {
    const { store, codec } = this.#ports;
    const opened = openChanges(codec, run, mail);
    const since = store.clock.now() - LIMITS.changePatienceMs;
    const recent = opened.faults.find(({ at }) => at > since);
    if (recent !== undefined) throw recent.error;
    return opened;
  }

  #plan(
    claimed: ClaimedRun,
    schedule: Schedule,
    changes: readonly ScheduleChange[],
    isBusy: boolean,
    versions: ReadonlyMap<string, string>,
  ): { settling: Settling; children: NewChild[]; state: StateRow[] } {
    const { store, codec } = this.#ports;
    const settling = new Settling(nameOf(claimed), schedule, store.clock.now(), isBusy);
    for (const change of changes) settling.change(change);
    settling.settle(settling.now);
    return {
      settling,
      children: settling.starts.map(({ slot, definition }) =>
        this.#runOf(claimed, definition, slot, settling.now, versions),
      ),
      state: sealSchedule(codec, claimed.run, settling.schedule, changes.length > 0),
    };
  }

  /** The run of the last slot still goes on. One that is no longer kept has ended long ago. */
  async #isBusy(name: string, { lastSlot }: ScheduleCursor): Promise<boolean> {
    if (lastSlot === null) return false;
    const row = await this.#ports.store.run(slotRun(name, lastSlot));
    return row !== null && !isTerminal(row.state);
  }

  /** The newest version of each workflow that a worker has, for schedules that name none. */
  async #versions(): Promise<ReadonlyMap<string, string>> {
    const handles = (await this.#ports.store.workers()).flatMap((worker) => worker.handles);
    const oldestFirst = handles.sort((a, b) => compareVersions(parseVersion(a.version), parseVersion(b.version)));
    return new Map(oldestFirst.map(({ workflow, version }) => [workflow, version]));
  }

  #runOf(
    claimed: ClaimedRun,
    definition: ScheduleDefinition,
    slot: number,
    now: number,
    versions: ReadonlyMap<string, string>,
  ): NewChild {
    const { codec, host } = this.#ports;
    const { workflow, input, tags, priority } = definition;
    const name = nameOf(claimed);
    const id = slotRun(name, slot);
    const version = definition.version ?? versions.get(workflow);
    // Any other version than that of the worker to come would leave the run stranded.
    if (version === undefined)
      throw new PawlError(
        "unknown_workflow",
        `No worker has a workflow "${workflow}". Start one, or remove the schedule.`,
      );
    const deadline = now + definition.deadlineMs;
    const draft = new Draft(id, { head: 0, hash: id, at: 0 }, host, codec);
    const started: RunStarted = { workflow, version, input, seed: id, deadline };
    draft.append(now, "run.started", null, started);
    const [entry] = draft.take().commit.entries;
    if (entry === undefined) throw new Error("a draft gives back what was appended");
    const create = {
      workflow,
      version,
      traceId: id,
      key: null,
      tags: [...new Set([...slotTags(name, slot), ...tags])],
      priority,
      parent: { run: claimed.run, key: new Date(slot).toISOString(), generation: 0, detached: true },
      origin: null,
      deadline,
      claimed: false,
      readyAt: slot,
      codec: codec.id,
    };
    return { run: id, create, entry };
  }

  #postponed(claimed: ClaimedRun, draft: Draft, error: unknown): Tending {
    const { store, log } = this.#ports;
    const schedule = nameOf(claimed);
    const message = `Schedule "${schedule}" could not be settled, and is tried again in half a minute. ${messageOf(error)}`;
    const commit = letGo(claimed, draft, store.clock.now() + LIMITS.scheduleRetryMs);
    return { commit, tell: () => log.error(message, { run: claimed.run, schedule }) };
  }

  #tell(name: string, { skips, starts, hasOlder, schedule }: Settling, faults: readonly Fault[]): void {
    const { log } = this.#ports;
    for (const { error } of faults)
      log.error(
        `A change of schedule "${name}" is left out: nobody has been able to read it. Ask for it again. ${messageOf(error)}`,
        { schedule: name },
      );
    const { misfire, overlap } = schedule.definition;
    const missed = skips.filter(({ why }) => why === "misfire").map(({ slot }) => new Date(slot).toISOString());
    if (missed.length > 0 || hasOlder) {
      const count = hasOlder ? `more than ${missed.length + starts.length}` : missed.length;
      log.warn(
        `Schedule "${name}" missed ${count} slots: nobody worked. Its policy is misfire: "${misfire}", and it starts ${starts.length}.`,
        { schedule: name, missed },
      );
    }
    for (const { slot, why } of skips)
      if (why !== "misfire")
        log.warn(
          `Schedule "${name}" skips its slot ${new Date(slot).toISOString()}: ${WHY[why]}. Its policy is overlap: "${overlap}".`,
          { schedule: name, slot: new Date(slot).toISOString(), why },
        );
  }
}

const WHY = {
  overlap: "the run of another slot goes on or is newer",
  limit: `${LIMITS.queuedSlots} slots are waiting already`,
} as const;

/** Collects what follows from the changes and from the time, one after the other. */
class Settling {
  /** Each slot with the definition that it belongs to (SD3). */
  readonly starts: { readonly slot: number; readonly definition: ScheduleDefinition }[] = [];
  readonly cancels: string[] = [];
  readonly skips: Settlement["skips"][number][] = [];
  hasOlder = false;
  schedule: Schedule;
  readonly now: number;
  readonly #name: string;
  #isBusy: boolean;

  constructor(name: string, schedule: Schedule, now: number, isBusy: boolean) {
    this.#name = name;
    this.schedule = schedule;
    this.now = now;
    this.#isBusy = isBusy;
  }

  change(change: ScheduleChange): void {
    // Whoever asked may have estimated the store's time a little differently.
    const at = Math.min(change.at, this.now);
    this.settle(at);
    this.schedule = changed(this.schedule, { ...change, at });
  }

  settle(until: number): void {
    const { definition } = this.schedule;
    const { lastSlot } = this.schedule.cursor;
    const { cursor, starts, cancels, skips, hasOlder } = settle(this.schedule, until, this.now, this.#isBusy);
    if (cancels && lastSlot !== null) this.cancels.push(slotRun(this.#name, lastSlot));
    this.schedule = { definition, cursor };
    this.starts.push(...starts.map((slot) => ({ slot, definition })));
    this.skips.push(...skips);
    this.hasOlder ||= hasOlder;
    this.#isBusy ||= starts.length > 0;
  }
}

/** The rows of run state that a schedule is kept in; its definition only when it is new. */
export function sealSchedule(codec: Codec, run: string, schedule: Schedule, isNew: boolean): StateRow[] {
  const keys = isNew ? (["definition", "cursor"] as const) : (["cursor"] as const);
  return keys.map((key) => ({
    key,
    data: sealValue(codec, schedule[key], { run, seq: -1, field: `state:${key}` }, `${key} of the schedule`),
  }));
}

export function openSchedule(codec: Codec, run: string, rows: readonly StateRow[]): Schedule {
  const open = (key: string) => {
    const row = rows.find((one) => one.key === key);
    if (row === undefined) throw new Error(`Run ${run} has no ${key}: it was not made by pawl.schedule(…). Cancel it.`);
    return openValue(codec, row.data, { run, seq: -1, field: `state:${key}` });
  };
  return { definition: open("definition") as ScheduleDefinition, cursor: open("cursor") as ScheduleCursor };
}

/** Why a change cannot be read here, and when it came. */
interface Fault {
  readonly at: number;
  readonly error: unknown;
}

/** What a schedule was asked for, in order, and what cannot be read of it. Throws where only a key is missing here (SK3). */
export function openChanges(
  codec: Codec,
  run: string,
  mail: readonly InboxRow[],
): { readonly changes: ScheduleChange[]; readonly faults: Fault[] } {
  const changes: ScheduleChange[] = [];
  const faults: Fault[] = [];
  for (const row of mail.filter(({ name }) => name === CHANGE)) {
    const opened = attempt(() => openChange(codec, run, row));
    if ("value" in opened) changes.push(...opened.value);
    else if (hasCode(opened.error, "key_missing")) throw opened.error;
    else faults.push({ at: row.at, error: opened.error });
  }
  return { changes, faults };
}

/** None for a signal that did not come from here: anybody can send one to a run, and it must not bring the schedule down. */
function openChange(codec: Codec, run: string, { id, data }: InboxRow): ScheduleChange[] {
  const change = openValue(codec, data, { run, seq: -1, field: `inbox:${id}` }) as Partial<ScheduleChange> | null;
  const isChange =
    Number.isFinite(change?.at) && (change?.kind !== "define" || change.definition?.timing !== undefined);
  return isChange && KINDS.has(change?.kind) ? [change as ScheduleChange] : [];
}

const KINDS: ReadonlySet<unknown> = new Set<ScheduleChange["kind"]>(["define", "pause", "resume"]);

function nameOf({ row, run }: ClaimedRun): string {
  return row.key ?? run;
}

function attempt<T>(fn: () => T): { readonly value: T } | { readonly error: unknown } {
  try {
    return { value: fn() };
  } catch (error) {
    return { error };
  }
}

function cancelOf(claimed: ClaimedRun, to: string): Message {
  const reason = `The next run of schedule ${nameOf(claimed)} is due.`;
  return { to, id: `cancel:${claimed.run}`, kind: "cancel", name: "", data: reason };
}

/** What a person sees the schedule wait for; it can be changed at any time. */
function waitForNext(draft: Draft, next: number | null): void {
  draft.wait({ open: { key: "signal:change", kind: "signal", name: CHANGE, due: null, detail: null } });
  if (next === null) draft.wait({ close: "timer:slot" });
  else draft.wait({ open: { key: "timer:slot", kind: "timer", name: "slot", due: next, detail: null } });
}

function letGo({ wake }: ClaimedRun, draft: Draft, wakeAt: number | null): RunCommit {
  const row = { state: "waiting", release: true, readyAt: null, wakeAt, claims: 0 } as const;
  return draft.take({ ifWake: wake, row }).commit;
}
