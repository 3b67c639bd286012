// Schedules
// What people may ask of schedules. Each is a run without a body (`worker/schedule-keeper.ts`); the key of its name leads to it. Everything but a
// beginning and an end reaches it as a signal, so that its owner alone decides about its slots.
import { encode } from "../base/codec.ts";
import { type Duration, toMs } from "../base/duration.ts";
import type { Codec } from "../base/envelope.ts";
import { hasCode, messageOf, PawlError } from "../base/errors.ts";
import { assertName, type Ids } from "../base/ids.ts";
import type { Log } from "../core/context.ts";
import { Draft, decodePayload, encodePayload } from "../core/draft.ts";
import type { Host } from "../core/host.ts";
import type { RunStarted } from "../core/journal.ts";
import { DEFAULTS, LIMITS } from "../core/limits.ts";
import { assertStartable } from "../core/own-workflows.ts";
import {
  changed,
  type Misfire,
  newSchedule,
  type Overlap,
  type Schedule,
  type ScheduleChange,
  type ScheduleDefinition,
  type Skip,
} from "../core/schedule.ts";
import { validate } from "../core/schema.ts";
import { assertNoSchedule, SCHEDULE_WORKFLOW, slotRun } from "../core/slot-run.ts";
import { assertCron, type Timing } from "../core/slots.ts";
import type { InboxRow, NewRun, RunCommit, RunRow, StateRow, Store } from "../core/store.ts";
import { isTerminal, RUN_STATES } from "../core/transition.ts";
import { sealValue } from "../core/values.ts";
import { type Workflow, workflow } from "../core/workflow.ts";
import type { Registry } from "../worker/registry.ts";
import { CHANGE, openChanges, openSchedule, sealSchedule } from "../worker/schedule-keeper.ts";
import type { Worker } from "../worker/worker.ts";
import { assertNoLink } from "./link-workflow.ts";

export interface ScheduleOptions {
  /** Five fields (minute hour day month weekday), six with seconds in front, or a word such as "@daily". Either this or `every`. */
  readonly cron?: string;
  /** The time from one slot to the next, at least a second. Either this or `cron`. */
  readonly every?: Duration;
  /** The time zone of `cron`. Default "UTC". */
  readonly zone?: string;
  /** A moment that `every` counts from, forwards and backwards. Default: when the schedule was made. */
  readonly anchor?: Date;
  /** The input of every run. */
  readonly input?: unknown;
  /** What happens to a slot while the run of the one before still goes on: nothing (default "allow"), no run, a run later, or a run instead. */
  readonly overlap?: Overlap;
  /** What happens to slots that came while nobody worked: one run for all (default), none, or one each. */
  readonly misfire?: Misfire;
  /** Of every run, besides `schedule:<name>`. */
  readonly tags?: readonly string[];
  /** Of every run. Default 0. */
  readonly priority?: number;
  /** How long each run may take. Default: the workflow's. */
  readonly deadline?: Duration;
  /** Only for a workflow given by name. Default: the newest that a worker has when the slot comes. */
  readonly version?: string;
}

/** A schedule as it is now. */
export interface ScheduleSummary {
  readonly name: string;
  readonly workflow: string;
  /** `null`: the newest that a worker has when the slot comes. */
  readonly version: string | null;
  readonly cron?: string;
  readonly zone?: string;
  readonly everyMs?: number;
  readonly anchor?: Date;
  readonly input: unknown;
  readonly overlap: Overlap;
  readonly misfire: Misfire;
  readonly paused: boolean;
  /** The next slot; `null` while it is paused, or if there is none any more. */
  readonly next: Date | null;
  /** The last slot that has started a run, and that run. */
  readonly lastSlot: Date | null;
  readonly lastRun: string | null;
  /** Slots that wait for the run before them. */
  readonly queued: number;
  /** Slots that started nothing, and the last of them. */
  readonly skipped: number;
  readonly lastSkipped: { readonly slot: Date; readonly why: Skip["why"] } | null;
  /** The run that keeps the schedule: `pawl why` tells more about it. */
  readonly run: string;
}

export interface SchedulesPorts {
  readonly store: Store;
  readonly codec: Codec;
  readonly host: Host;
  readonly ids: Ids;
  readonly registry: Registry;
  readonly worker: Worker;
  readonly log: Log;
  cancel(run: string, reason: string): Promise<unknown>;
}

/** Every worker has it: it takes the runs of schedules. */
export const scheduleWorkflow: Workflow = workflow(SCHEDULE_WORKFLOW, async () =>
  assertNoSchedule(SCHEDULE_WORKFLOW),
) as Workflow;

const SPACE = "schedule";
/** The runs of its slots have a time behind its name in their id. */
const NAME_BYTES = 200;
const OVERLAPS: readonly Overlap[] = ["allow", "skip", "queue", "cancel"];
const MISFIRES: readonly Misfire[] = ["fireOnce", "skip", "catchUp"];
const UNFINISHED = RUN_STATES.filter((state) => !isTerminal(state));

interface Kept extends Schedule {
  readonly row: RunRow;
  readonly hasMail: boolean;
}

interface Stored {
  readonly row: RunRow;
  readonly state: readonly StateRow[];
  readonly mail: readonly InboxRow[];
}

export class Schedules {
  readonly #ports: SchedulesPorts;

  constructor(ports: SchedulesPorts) {
    this.#ports = ports;
  }

  /** Makes the schedule, or changes it to this definition; the same again changes nothing. */
  async define(name: string, target: Workflow | string, options: ScheduleOptions): Promise<void> {
    assertScheduleName(name);
    const at = this.#ports.store.clock.now();
    const definition = await this.#definitionOf(target, options, at);
    for (;;) {
      const holder = await this.#ports.store.key(SPACE, name);
      const kept = holder === null ? null : await this.#read(holder.run);
      if (kept === null && (await this.#create(name, definition, at, holder?.run))) return;
      if (kept === null) continue;
      // With changes on their way it is not known what this one would be equal to.
      if (!kept.hasMail && encode(kept.definition) === encode(definition)) return;
      if (await this.#send(kept.row.id, { kind: "define", at, definition })) return;
    }
  }

  /** Ends the schedule; false if there is none. Runs that it has started go on. */
  async remove(name: string): Promise<boolean> {
    assertScheduleName(name);
    // Whatever is wrong with it, it can be removed.
    const holder = await this.#ports.store.key(SPACE, name);
    const row = holder === null ? null : await this.#ports.store.run(holder.run);
    if (row === null || isTerminal(row.state)) return false;
    await this.#ports.cancel(row.id, `Schedule ${name} was removed.`);
    return true;
  }

  /** While it is paused, slots do not come; they are not made up for. False if there is no such schedule. */
  async pause(name: string, isPaused: boolean): Promise<boolean> {
    const kept = await this.#find(name);
    if (kept === null) return false;
    if (!kept.hasMail && kept.cursor.paused === isPaused) return true;
    const at = this.#ports.store.clock.now();
    return this.#send(kept.row.id, { kind: isPaused ? "pause" : "resume", at });
  }

  /** All of them, by name. */
  async list(): Promise<ScheduleSummary[]> {
    const { store } = this.#ports;
    const limit = LIMITS.listPageMax;
    const all: ScheduleSummary[] = [];
    for (let before: string | undefined; ; ) {
      const query = { workflow: SCHEDULE_WORKFLOW, states: UNFINISHED, limit };
      const rows = await store.runs(before === undefined ? query : { ...query, before });
      for (const { id } of rows) {
        const stored = await this.#stored(id);
        if (stored !== null) all.push(...this.#summaryOf(stored));
      }
      before = rows.at(-1)?.id;
      if (rows.length < limit) break;
    }
    return all.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async #find(name: string): Promise<Kept | null> {
    assertScheduleName(name);
    const holder = await this.#ports.store.key(SPACE, name);
    return holder === null ? null : this.#read(holder.run);
  }

  /** None for one that is damaged: it keeps nobody from seeing the others. */
  #summaryOf(stored: Stored): ScheduleSummary[] {
    try {
      return [summaryOf(this.#open(stored))];
    } catch (error) {
      if (hasCode(error, "key_missing")) throw error;
      const { id, key } = stored.row;
      const message = `Schedule "${key ?? id}" is damaged and is not listed: it starts nothing. Remove it, and make it again.`;
      this.#ports.log.warn(`${message} ${messageOf(error)}`, { run: id, schedule: key ?? id });
      return [];
    }
  }

  async #read(run: string): Promise<Kept | null> {
    const stored = await this.#stored(run);
    return stored === null ? null : this.#open(stored);
  }

  /** What the store has of a schedule; `null` if it has ended. */
  async #stored(run: string): Promise<Stored | null> {
    const { store } = this.#ports;
    const row = await store.run(run);
    if (row === null || isTerminal(row.state)) return null;
    const [state, inbox] = await Promise.all([store.state(run), store.inbox(run)]);
    return { row, state, mail: inbox.filter(({ name }) => name === CHANGE) };
  }

  /** The schedule with the changes that it was asked for and has not read yet. */
  #open({ row, state, mail }: Stored): Kept {
    const { codec } = this.#ports;
    const { changes } = openChanges(codec, row.id, mail);
    const schedule = changes.reduce<Schedule>(changed, openSchedule(codec, row.id, state));
    return { ...schedule, row, hasMail: mail.length > 0 };
  }

  /** False if somebody else came first. */
  async #create(
    name: string,
    definition: ScheduleDefinition,
    at: number,
    before: string | undefined,
  ): Promise<boolean> {
    const { ids, codec, host, worker } = this.#ports;
    const run = ids.next();
    const draft = new Draft(run, { head: 0, hash: run, at: 0 }, host, codec);
    const { version } = scheduleWorkflow;
    const started: RunStarted = { workflow: SCHEDULE_WORKFLOW, version, input: { name }, seed: run, deadline: null };
    draft.create(newRun(name, run, at, codec.id));
    draft.append(at, "run.started", null, started);
    for (const row of sealSchedule(codec, run, newSchedule(definition, at), true)) draft.state(row);
    draft.key({ space: SPACE, key: name, digest: "", ...(before === undefined ? {} : { from: before }) });
    return this.#write(draft.take().commit, worker);
  }

  async #write(commit: RunCommit, worker: Worker): Promise<boolean> {
    const verdict = await worker.committer.write(commit);
    worker.hint();
    if (verdict.kind === "applied") return true;
    // Nobody else has this id: it was written, and the answer was lost (I2).
    if (verdict.kind === "refused" && verdict.why === "exists") return true;
    if (verdict.kind === "refused" && verdict.why === "key") return verdict.holder.run === commit.run;
    throw new PawlError(
      "storage_unavailable",
      `The schedule could not be made: the store answered ${verdict.kind}. Make it again.`,
      { fields: { verdict: verdict.kind } },
    );
  }

  /** False if the schedule has ended meanwhile. */
  async #send(run: string, change: ScheduleChange): Promise<boolean> {
    const { store, codec, ids, worker } = this.#ports;
    const id = ids.next();
    const data = sealValue(codec, change, { run, seq: -1, field: `inbox:${id}` }, "change of the schedule");
    const delivery = await store.deliver({ to: run, id, kind: "signal", name: CHANGE, data });
    worker.hint();
    return delivery === "delivered" || delivery === "duplicate";
  }

  async #definitionOf(target: Workflow | string, options: ScheduleOptions, now: number): Promise<ScheduleDefinition> {
    const { overlap = "allow", misfire = "fireOnce", tags = [], priority = 0, deadline } = options;
    const known = this.#known(target, options);
    assertStartable(known?.name ?? target);
    assertNoLink(known?.name ?? target);
    const timing = timingOf(options, now);
    assertOneOf("overlap", overlap, OVERLAPS);
    assertOneOf("misfire", misfire, MISFIRES);
    for (const tag of tags) assertName("tag", tag);
    if (!Number.isInteger(priority)) throw invalid("priority", priority, "Give a whole number; higher goes first");
    const schema = known?.definition.input;
    const input =
      schema === undefined || known === undefined
        ? options.input
        : await validate(schema, options.input, `The input of workflow "${known.name}"`);
    return {
      workflow: typeof target === "string" ? target : target.name,
      version: typeof target === "string" ? (options.version ?? null) : target.version,
      deadlineMs:
        deadline === undefined ? (known?.definition.deadlineMs ?? DEFAULTS.runDeadlineMs) : toMs(deadline, "deadline"),
      timing,
      // As it is recorded: what is kept is what is compared the next time (I21).
      input: decodePayload(encodePayload(input, "input")),
      overlap,
      misfire,
      tags: [...new Set(tags)],
      priority,
    };
  }

  #known(target: Workflow | string, { version }: ScheduleOptions): Workflow | undefined {
    if (typeof target !== "string") {
      if (typeof target?.definition?.handler === "function") return target;
      throw new PawlError("invalid_argument", "schedule takes a workflow made by workflow(…), or the name of one.");
    }
    assertName("workflow name", target);
    const { registry } = this.#ports;
    return version === undefined ? registry.newest(target) : registry.forRun(target, version);
  }
}

function newRun(name: string, run: string, at: number, codec: string): NewRun {
  return {
    workflow: SCHEDULE_WORKFLOW,
    version: scheduleWorkflow.version,
    traceId: run,
    key: name,
    tags: [],
    priority: 0,
    parent: null,
    origin: null,
    deadline: null,
    claimed: false,
    readyAt: at,
    codec,
  };
}

function timingOf({ cron, every, zone, anchor }: ScheduleOptions, now: number): Timing {
  if ((cron === undefined) === (every === undefined))
    throw new PawlError("invalid_argument", "A schedule has either `cron` or `every`. Give one of them.");
  if (every === undefined) {
    if (anchor !== undefined) throw invalid("anchor", anchor, "It belongs to `every`; `cron` has none");
    assertCron(cron, zone ?? "UTC", now);
    return { cron: cron.trim().split(/\s+/).join(" "), zone: zone ?? "UTC" };
  }
  if (zone !== undefined) throw invalid("zone", zone, "It belongs to `cron`; `every` counts real time");
  const everyMs = toMs(every, "every");
  if (everyMs < LIMITS.everyMs) throw invalid("every", every, "Give at least a second");
  if (anchor !== undefined && !(anchor instanceof Date && !Number.isNaN(anchor.getTime())))
    throw invalid("anchor", anchor, "Give a valid Date");
  return { everyMs, anchor: anchor?.getTime() ?? null };
}

function assertScheduleName(name: string): void {
  assertName("schedule name", name);
  if (encode(name).length > NAME_BYTES)
    throw invalid("name", `${name.slice(0, 40)}…`, `Give at most ${NAME_BYTES} bytes`);
}

function assertOneOf(field: string, value: string, allowed: readonly string[]): void {
  if (!allowed.includes(value)) throw invalid(field, value, `Give one of: ${allowed.join(", ")}`);
}

function invalid(field: string, value: unknown, action: string): PawlError {
  return new PawlError("invalid_argument", `\`${field}\` of the schedule is ${String(value)}. ${action}.`, {
    fields: { field, value: String(value) },
  });
}

function summaryOf({ row, definition, cursor }: Kept): ScheduleSummary {
  const name = row.key ?? row.id;
  const { timing, workflow, version, input, overlap, misfire } = definition;
  const { next, lastSlot, lastSkipped, paused } = cursor;
  return {
    name,
    workflow,
    version,
    ...("cron" in timing ? timing : { everyMs: timing.everyMs, anchor: new Date(cursor.anchor) }),
    input,
    overlap,
    misfire,
    paused,
    next: paused || next === null ? null : new Date(next),
    lastSlot: lastSlot === null ? null : new Date(lastSlot),
    lastRun: lastSlot === null ? null : slotRun(name, lastSlot),
    queued: cursor.queue.length,
    skipped: cursor.skipped,
    lastSkipped: lastSkipped === null ? null : { slot: new Date(lastSkipped.slot), why: lastSkipped.why },
    run: row.id,
  };
}
