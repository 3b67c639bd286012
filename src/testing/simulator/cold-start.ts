// The cold start (I5)
// Every run that has ended, however, is put into an empty store without its last entry, and an engine that knows nothing goes on with it. It must
// come to the same end from the journal alone: no step of it may begin, no message may be needed. The exceptions are runs that ended without their
// body: those that were cancelled, whose code would have gone on first (theirs are two entries of one commit, and they follow from the cancel), and
// those that were given up while they were undone.
import { cancelText } from "../../base/cancel-text.ts";
import { jsonCodec } from "../../base/envelope.ts";
import { readProperty } from "../../base/errors.ts";
import type { Cancelling, Ended, StoredEntry } from "../../core/journal.ts";
import type { RunRow } from "../../core/store.ts";
import { openEntry } from "../../core/values.ts";
import { storeOver } from "../../stores/memory/memory-store.ts";
import { emptyTables, type MemoryRun, type Tables } from "../../stores/memory/tables.ts";
import { GIVEN_UP } from "../../worker/load-run.ts";
import { Choices } from "./choices.ts";
import { Life } from "./life.ts";
import type { Outside } from "./program.ts";
import type { ProcessPlan, Settings } from "./scenario.ts";
import { Scheduler } from "./scheduler.ts";
import { VirtualTime } from "./virtual-time.ts";

// Captured at load: an engine elsewhere in this process may wrap it.
const { setImmediate: startImmediate } = globalThis;

/** How often the event loop may go round before a run counts as stuck. */
const ROUNDS = 500;

/** What is wrong with the first run whose end does not follow from its journal; `null` if all of them do. */
export async function coldStart(
  runs: ReadonlyMap<string, MemoryRun>,
  settings: Settings,
  mayHaveEndedWithoutBody: (run: string) => boolean,
): Promise<string | null> {
  const groups = new Map<string, MemoryRun[]>();
  for (const run of runs.values()) {
    if (run.row.endedAt === null || isGivenUp(run)) continue;
    // A parent's end stops its children, so they must not meet: each store has every other generation of a family.
    const name = `${run.row.version} ${depthOf(runs, run) % 2}`;
    groups.set(name, [...(groups.get(name) ?? []), run]);
  }
  for (const group of groups.values()) {
    const faults = await goOn(group, settings, withoutEnd);
    const cancelled = group.filter((run) => faults.has(run) && mayHaveEndedWithoutBody(run.row.id));
    const [fault] = [...faults].filter(([run]) => !cancelled.includes(run)).map(([, text]) => text);
    if (fault !== undefined) return fault;
    for (const text of (await goOn(cancelled, settings, withoutCancel)).values()) return text;
  }
  return null;
}

/** One that ended its process again and again while it was undone is ended without its body, by the deaths that its row counted (P28). */
function isGivenUp({ row, journal }: MemoryRun): boolean {
  const end = journal.at(-1);
  if (end?.type !== "run.failed") return false;
  const { error } = openEntry(jsonCodec, row.id, end).payload as Ended;
  const remaining = readProperty(readProperty(error, "fields"), "remaining");
  return Array.isArray(remaining) && remaining.some((left) => readProperty(left, "error") === GIVEN_UP);
}

/** What is planted of a run, and what is wrong with what came of it. */
interface Trial {
  readonly withheld: number;
  readonly compare: (was: MemoryRun, is: MemoryRun | undefined) => string | null;
}

const withoutEnd: Trial = { withheld: 1, compare: sameJournal };
const withoutCancel: Trial = { withheld: 2, compare: sameEnd };

function depthOf(runs: ReadonlyMap<string, MemoryRun>, { row }: MemoryRun): number {
  const parent = row.parent === null ? undefined : runs.get(row.parent.run);
  return parent === undefined ? 0 : 1 + depthOf(runs, parent);
}

async function goOn(
  runs: readonly MemoryRun[],
  settings: Settings,
  { withheld, compare }: Trial,
): Promise<Map<MemoryRun, string>> {
  const faults = new Map<MemoryRun, string>();
  if (runs.length === 0) return faults;
  const time = new VirtualTime();
  time.now = latest(runs);
  const tables = emptyTables();
  const life = newLife(time, tables, runs, settings);
  for (const run of runs) await plant(tables, life, run, withheld);
  await life.open();
  const isOver = () => [...tables.runs.values()].every(({ row }) => row.endedAt !== null || row.state === "parked");
  for (let round = 0; round < ROUNDS && !isOver(); round++)
    await new Promise<void>((resolve) => void startImmediate(resolve));
  life.die();
  for (const run of runs) {
    const fault = compare(run, tables.runs.get(run.row.id));
    if (fault !== null) faults.set(run, fault);
  }
  return faults;
}

/** When the last of all entries was recorded, on the clock of a simulation. */
function latest(runs: readonly MemoryRun[]): number {
  const start = new VirtualTime().wall();
  return Math.max(...runs.map(({ journal }) => (journal.at(-1)?.at ?? start) - start));
}

function newLife(time: VirtualTime, tables: Tables, runs: readonly MemoryRun[], settings: Settings): Life {
  const plan: ProcessPlan = { version: runs[0]?.row.version as "1.0.0" | "1.0.1", skewMs: 0 };
  const clock = { now: () => time.wall(), monotonic: () => time.now, at: forgotten, after: forgotten };
  const store = storeOver(tables, { clock, leaseClock: clock });
  // Nothing happens by time here, so nobody picks events: what needs them stays as it is.
  const scheduler = new Scheduler(new Choices("cold start", []), "oldest", () => null);
  return new Life(0, 0, plan, "cold start", {
    time,
    scheduler,
    settings: { ...settings, lanes: 1, concurrency: Math.max(64, runs.length) },
    call: (_life, method, args) => (store[method] as (...args: readonly unknown[]) => Promise<unknown>)(...args),
    outside: () => idle,
    logged: () => {},
    turns: () => {},
  });
}

/** A world in which nothing happens. */
export const idle: Outside = {
  began: () => {},
  acted: () => {},
  ended: () => {},
  pause: () => new Promise(() => {}),
  resumed: () => 0,
  saved: () => {},
  isMended: () => false,
  book: () => "",
  look: () => ({ found: false }),
  takeBack: () => {},
  spent: () => {},
  sometimes: () => {},
};

function forgotten(): () => void {
  return () => {};
}

async function plant(tables: Tables, life: Life, run: MemoryRun, withheld: number): Promise<void> {
  const { row, journal } = run;
  const clock = { now: () => life.clock.now(), monotonic: () => 0, at: forgotten, after: forgotten };
  const store = storeOver(tables, { clock, leaseClock: clock });
  const create = { ...newRunOf(row), claimed: false, readyAt: life.clock.now() };
  const entries = journal.slice(0, -withheld);
  const [verdict] = await store.commit({ worker: null, runs: [{ run: row.id, head: 0, entries, create }] });
  if (verdict?.kind !== "applied") throw new Error(`run ${row.id} could not be planted: ${JSON.stringify(verdict)}`);
  const cancelling = withheld > 1 ? cancelOf(run) : cancelAfterPark(run);
  if (cancelling === null) return;
  const { reason, compensate = false } = openEntry(jsonCodec, row.id, cancelling).payload as Cancelling;
  await store.deliver({ to: row.id, id: "cancel", kind: "cancel", name: "", data: cancelText({ reason, compensate }) });
}

/** The cancel of a run that ended right with it, as one does that nobody works on. */
function cancelOf({ journal }: MemoryRun): StoredEntry | null {
  const [cancelling, end] = journal.slice(-2);
  return cancelling?.type === "run.cancelling" && end?.type === "run.cancelled" ? cancelling : null;
}

/** The cancel of a run that was parked: only with it anybody goes on with the run. */
function cancelAfterPark({ journal }: MemoryRun): StoredEntry | null {
  const park = journal.findLastIndex(({ type }) => type === "run.parked" || type === "run.resolved");
  const isParked = journal[park]?.type === "run.parked";
  return isParked ? (journal.find(({ type }) => type === "run.cancelling") ?? null) : null;
}

function newRunOf(row: RunRow) {
  const { workflow, version, traceId, key, tags, priority, parent, origin, deadline, codec } = row;
  return { workflow, version, traceId, key, tags, priority, parent, origin, deadline, codec };
}

/** The same end, and nothing beside it. */
function sameJournal(was: MemoryRun, is: MemoryRun | undefined): string | null {
  const fault = sameEnd(was, is);
  if (fault !== null || is?.journal.length === was.journal.length) return fault;
  return `run ${was.row.id} recorded more than its end when it was started cold`;
}

function sameEnd(was: MemoryRun, is: MemoryRun | undefined): string | null {
  const [before, after] = [was.journal.at(-1), is?.journal.at(-1)];
  const { id } = was.row;
  if (after?.type !== before?.type)
    return `the end of run ${id} does not follow from its journal: it is ${is?.row.state}`;
  if (after?.data === before?.data) return null;
  return `run ${id} ended with ${String(before?.data)}, from its journal follows ${String(after?.data)}`;
}
