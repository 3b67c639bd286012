// The doctor
// Looks a store over without changing anything: its own report, its workers, runs that nothing will move, and the checksums of the
// journals. Everything it reads is bounded, and it says what it left out.
import { formatMs } from "../base/duration.ts";
import { keyOf } from "../base/sealed-text.ts";
import { checksum } from "../core/checksum.ts";
import type { StoredEntry } from "../core/journal.ts";
import type { OrphanRow, RunRow, Store, StoreReport, WaitRow } from "../core/store.ts";
import { isTerminal, RUN_STATES, type RunState } from "../core/transition.ts";
import { isHandled } from "../stores/version-line.ts";
import { nodeHost } from "../worker/node-host.ts";
import { readsPlain } from "./sealed-store.ts";
import { examineWorkers, isLive, type WorkerStatus } from "./worker-health.ts";

/** Unfinished runs of one workflow version that no live worker can take (P34). */
export interface StrandedRuns {
  readonly workflow: string;
  readonly version: string;
  readonly runs: number;
  /** One of them. */
  readonly example: string;
}

export interface JournalFault {
  readonly run: string;
  readonly seq: number;
  readonly message: string;
}

export interface Finding {
  /** A fault needs somebody to act; a warning may pass by itself. */
  readonly severity: "fault" | "warning";
  readonly about: "store" | "workers" | "orphans" | "stranded" | "journals";
  /** What is wrong and what to do about it. */
  readonly message: string;
}

export interface Diagnosis {
  readonly store: StoreReport;
  readonly workers: readonly WorkerStatus[];
  /** Runs by state, among those that were looked at. */
  readonly unfinished: Readonly<Partial<Record<RunState, number>>>;
  readonly orphans: readonly OrphanRow[];
  readonly stranded: readonly StrandedRuns[];
  readonly journals: JournalCheck;
  /** Whether every run was looked at; otherwise only the newest ones. */
  readonly isComplete: boolean;
  readonly findings: readonly Finding[];
  /** No faults; there may be warnings. */
  readonly isHealthy: boolean;
}

export interface JournalCheck {
  readonly runs: number;
  readonly entries: number;
  /** Of these, those whose value is not sealed. */
  readonly plain: number;
  readonly faults: readonly JournalFault[];
  readonly isComplete: boolean;
}

export interface DoctorOptions {
  /** The most runs and entries to look at. */
  readonly maxRuns?: number;
  readonly maxEntries?: number;
  /** Told now and then how far the check of the journals is. */
  readonly progress?: (done: { readonly runs: number; readonly entries: number }) => void;
}

const PAGE = 200;
const ENTRY_PAGE = 1000;
const DEFAULT_MAX_RUNS = 100_000;
const DEFAULT_MAX_ENTRIES = 1_000_000;
const UNFINISHED: readonly RunState[] = RUN_STATES.filter((state) => !isTerminal(state));

export async function doctor(store: Store, options: DoctorOptions = {}): Promise<Diagnosis> {
  const report = await store.inspect();
  const workers = await examineWorkers(store);
  const orphans = await store.orphans();
  const { unfinished, stranded, isComplete } = await examineRuns(store, workers, options.maxRuns ?? DEFAULT_MAX_RUNS);
  const journals = await checkJournals(store, options);
  const findings = [
    ...report.faults.map((message): Finding => ({ severity: "fault", about: "store", message })),
    ...workers.flatMap(workerFinding),
    ...orphans.map(orphanFinding),
    ...stranded.map(strandedFinding),
    ...newerFinding(await store.waits({ kind: "decision", name: "newer_journal", limit: MAX_NEWER })),
    ...plainFinding(store, journals),
    ...journals.faults.map(({ message }): Finding => ({ severity: "fault", about: "journals", message })),
  ];
  const isHealthy = findings.every(({ severity }) => severity !== "fault");
  return { store: report, workers, unfinished, orphans, stranded, journals, isComplete, findings, isHealthy };
}

// Workers

function workerFinding(worker: WorkerStatus): Finding[] {
  const who = `Worker ${worker.name} (pid ${worker.process.pid})`;
  const holds = `${countOf(worker.runs, "run")}`;
  switch (worker.health) {
    case "live":
    case "late":
      return [];
    case "stopped":
      return [
        {
          severity: "fault",
          about: "workers",
          message: `${who} is a stopped process that holds ${holds} and perhaps a lock. Continue it with "kill -CONT ${worker.process.pid}", or end it.`,
        },
      ];
    case "dead":
    case "expired": {
      const what =
        worker.health === "dead"
          ? "has died"
          : `has not been heard of for ${formatMs(worker.leaseMs - worker.leaseLeftMs)}`;
      const message = `${who} ${what}. Its ${holds} will be taken over as soon as another worker looks.`;
      return [{ severity: "warning", about: "workers", message }];
    }
  }
}

// Runs

export function isStranded(
  workers: readonly WorkerStatus[],
  run: Pick<RunRow, "workflow" | "version" | "state">,
): boolean {
  if (isTerminal(run.state)) return false;
  return !workers.some((worker) => isLive(worker) && isHandled(worker.handles, run.workflow, run.version));
}

/** Counts unfinished runs by state, and those that no live worker can take, among the newest `maxRuns`. */
export async function examineRuns(
  store: Store,
  workers: readonly WorkerStatus[],
  maxRuns: number,
): Promise<Pick<Diagnosis, "unfinished" | "stranded" | "isComplete">> {
  const unfinished: Partial<Record<RunState, number>> = {};
  const stranded = new Map<string, StrandedRuns>();
  let seen = 0;
  for await (const run of allRuns(store, UNFINISHED)) {
    if (seen >= maxRuns) return { unfinished, stranded: [...stranded.values()], isComplete: false };
    seen += 1;
    unfinished[run.state] = (unfinished[run.state] ?? 0) + 1;
    if (!isStranded(workers, run)) continue;
    const { workflow, version } = run;
    const known = stranded.get(`${workflow} ${version}`);
    stranded.set(`${workflow} ${version}`, {
      workflow,
      version,
      runs: (known?.runs ?? 0) + 1,
      example: known?.example ?? run.id,
    });
  }
  return { unfinished, stranded: [...stranded.values()], isComplete: true };
}

/** Newest first, without those whose row is damaged: the store's own report names them. */
async function* allRuns(store: Store, states?: readonly RunState[]): AsyncGenerator<RunRow> {
  let before: string | undefined;
  let limit = PAGE;
  for (;;) {
    try {
      const page = await store.runs({ limit, ...(states && { states }), ...(before !== undefined && { before }) });
      yield* page;
      if (page.length < limit) return;
      before = page.at(-1)?.id;
    } catch (error) {
      const damaged = damagedRun(error);
      if (damaged === null) throw error;
      // The rows before it on this page are read one by one; after it, pages are whole again.
      if (limit === 1) before = damaged;
      limit = limit === 1 ? PAGE : 1;
    }
  }
}

function damagedRun(error: unknown): string | null {
  const { code, fields } = (error ?? {}) as { readonly code?: unknown; readonly fields?: { readonly run?: unknown } };
  return code === "corrupted_journal" && typeof fields?.run === "string" ? fields.run : null;
}

function orphanFinding({ run, state, why }: OrphanRow): Finding {
  const message = `Run ${run} is ${state} and ${why}. A worker repairs this within a minute; if it stays, please report it.`;
  return { severity: "fault", about: "orphans", message };
}

function strandedFinding({ workflow, version, runs, example }: StrandedRuns): Finding {
  const message =
    `${countOf(runs, "unfinished run")} of ${workflow} ${version}: no live worker can take ${runs === 1 ? "it" : "them"} (for example ${example}). ` +
    `Start a worker that has ${neededVersion(workflow, version)}.`;
  return { severity: "fault", about: "stranded", message };
}

/** So many runs are counted that wait for a newer worker. */
const MAX_NEWER = 1000;

function newerFinding(waits: readonly WaitRow[]): Finding[] {
  const [first] = waits;
  if (first === undefined) return [];
  const many = waits.length < MAX_NEWER ? countOf(waits.length, "run") : `${countOf(MAX_NEWER, "run")} or more`;
  const message = `${many} (for example ${first.run}): a newer Pawl has written what workers here do not know. Upgrade them; the runs then go on by themselves.`;
  return [{ severity: "fault", about: "workers", message }];
}

/** What a worker must carry to take a run of this version. */
export function neededVersion(workflow: string, version: string): string {
  const [major, minor] = version.split(".");
  return `workflow "${workflow}" in version ${version} or a later patch of ${major}.${minor}`;
}

// Journals

async function checkJournals(store: Store, options: DoctorOptions): Promise<JournalCheck> {
  const { maxRuns = DEFAULT_MAX_RUNS, maxEntries = DEFAULT_MAX_ENTRIES, progress } = options;
  const faults: JournalFault[] = [];
  let runs = 0;
  let entries = 0;
  let plain = 0;
  for await (const run of allRuns(store)) {
    if (runs >= maxRuns || entries >= maxEntries) return { runs, entries, plain, faults, isComplete: false };
    const check = await checkJournal(store, run);
    runs += 1;
    entries += check.entries;
    plain += check.plain;
    if (check.fault !== null) faults.push(check.fault);
    progress?.({ runs, entries });
  }
  return { runs, entries, plain, faults, isComplete: true };
}

/** Where plain values are read, whoever can write to the store can put them in place of sealed ones. */
function plainFinding(store: Store, { plain, isComplete }: JournalCheck): Finding[] {
  if (!readsPlain(store)) return [];
  const left =
    plain === 0
      ? `${isComplete ? "No entry" : "None of the entries that were looked at"} is plain any more: once \`pawl keys\` finds no plain run either, set \`encryption.plain\` to "refuse" (PAWL_PLAIN=refuse) in all processes.`
      : `${countOf(plain, "entry", "entries")}${isComplete ? "" : " and perhaps more"} of the journals are plain. Let those runs end and go, or fork them; then set \`encryption.plain\` to "refuse" (PAWL_PLAIN=refuse) in all processes.`;
  const message = `Values that are not sealed are read as well, so whoever can write to the database can put some in. ${left}`;
  return [{ severity: "warning", about: "store", message }];
}

/** Follows the chain of checksums from the run's id to the end; the row's own mark of the end must be on it (P35). */
export async function checkJournal(
  store: Store,
  run: Pick<RunRow, "id" | "head" | "headHash">,
): Promise<{ readonly entries: number; readonly plain: number; readonly fault: JournalFault | null }> {
  let previous = run.id;
  let position = 0;
  let plain = 0;
  for (;;) {
    const page = await store.journal(run.id, { from: position, limit: ENTRY_PAGE });
    for (const entry of page) {
      const fault = entryFault(run, entry, position, previous);
      if (fault !== null) return { entries: position, plain, fault };
      previous = entry.hash;
      position += 1;
      if (entry.data !== null && keyOf(entry.data) === null) plain += 1;
    }
    if (page.length < ENTRY_PAGE) break;
  }
  const isPurged = position === 0 && (await store.run(run.id)) === null;
  const fault = position < run.head && !isPurged ? truncated(run, position) : null;
  return { entries: position, plain, fault };
}

function entryFault(
  run: Pick<RunRow, "id" | "head" | "headHash">,
  entry: StoredEntry,
  position: number,
  previous: string,
): JournalFault | null {
  const { seq, type, key, hash } = entry;
  if (seq !== position)
    return {
      run: run.id,
      seq: position,
      message: `Run ${run.id} has no journal entry ${position}, though later ones exist. ${ADVICE}`,
    };
  const name = `Journal entry ${seq} (${type}${key === null ? "" : ` ${key}`}) of run ${run.id}`;
  if (checksum(nodeHost, previous, entry) !== hash) {
    return { run: run.id, seq, message: `${name} does not match its checksum: it was damaged or edited. ${ADVICE}` };
  }
  if (seq === run.head - 1 && run.headHash !== "" && run.headHash !== hash) {
    return {
      run: run.id,
      seq,
      message: `${name} is not the one that was last acknowledged: the end of the journal was replaced. ${ADVICE}`,
    };
  }
  return null;
}

function truncated(run: Pick<RunRow, "id" | "head">, position: number): JournalFault {
  const message = `The journal of run ${run.id} ends after ${countOf(position, "entry", "entries")}, but ${run.head} were acknowledged. ${ADVICE}`;
  return { run: run.id, seq: position, message };
}

const ADVICE = "Restore the store from a backup, or fork the run before that entry.";

function countOf(count: number, one: string, many: string = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
