// Starting runs
// One run per key, one per id, whatever the number of callers: the store's unique keys decide, never a look before the write (I17).
import { type Duration, toMs } from "../base/duration.ts";
import type { Codec } from "../base/envelope.ts";
import { PawlError } from "../base/errors.ts";
import { assertName, type Ids } from "../base/ids.ts";
import { compareVersions, parseVersion } from "../base/semver.ts";
import { type BudgetOptions, budgetPlan, budgetsFor } from "../core/budget.ts";
import { Draft, decodePayload, encodePayload } from "../core/draft.ts";
import { needsOf } from "../core/flow-control.ts";
import type { Host } from "../core/host.ts";
import type { Entry, RunStarted } from "../core/journal.ts";
import { DEFAULTS } from "../core/limits.ts";
import { ADVANCE_TAG } from "../core/outline.ts";
import { assertNotAlerts, assertStartable } from "../core/own-workflows.ts";
import { pinned } from "../core/pins.ts";
import type { Redactors } from "../core/redactor.ts";
import { validate, validateNow } from "../core/schema.ts";
import type { OpenTransaction } from "../core/sql.ts";
import type { Needs, NewRun, RunCommit, RunRow, Store, Verdict } from "../core/store.ts";
import { openEntry } from "../core/values.ts";
import type { Workflow } from "../core/workflow.ts";
import type { Registry } from "../worker/registry.ts";
import type { Worker } from "../worker/worker.ts";
import { type Burst, type Debounce, quietOf, startDebounced } from "./debounce.ts";
import { workable } from "./found-run.ts";
import { assertNoLink } from "./link-workflow.ts";

export interface StartOptions {
  /** The run's id. A second start with it and the same input is the same run; with other input a conflict. */
  readonly id?: string;
  /** Like `id`, but chosen by what the run is about ("order-17"); unique per workflow while the run is kept. */
  readonly key?: string;
  readonly tags?: readonly string[];
  /** Absolute, or counted from now; survives restarts. Default: the workflow's. */
  readonly deadline?: Date | Duration;
  /** Start no earlier than this. */
  readonly delay?: Duration;
  /** Makes one run of a burst of starts: it has the last input, and begins when no start has come for a while. */
  readonly debounce?: Debounce;
  /** Higher goes first. Default 0. */
  readonly priority?: number;
  /** Starts the run in this transaction: it is there exactly if yours commits. */
  readonly transaction?: OpenTransaction;
  /** What the run and all runs below it may spend. Default: the workflow's. */
  readonly budget?: BudgetOptions;
  /** Begins no phase before `pawl.advance` says so. Only for workflows made with `phases`. Default false. */
  readonly advance?: boolean;
  /** Only for a workflow given by name that this process does not know. */
  readonly version?: string;
  /** What was done before this run began, for one that is taken over from elsewhere: its body sees it as `ctx.run.adopted`. */
  readonly adopted?: unknown;
}

export interface StartPorts {
  readonly store: Store;
  readonly host: Host;
  readonly codec: Codec;
  readonly redaction: Redactors;
  readonly ids: Ids;
  readonly registry: Registry;
  readonly worker: Worker;
  /** A start has led to a run that was there before. */
  duplicate(run: string): void;
}

interface Target {
  readonly name: string;
  readonly version: string;
  readonly deadlineMs: number;
  /** `null` where only the name is known here: the input is checked by nobody. */
  readonly workflow: Workflow | null;
}

/** Where the store keeps the start keys of a workflow. */
export function startSpace(workflow: string): string {
  return `start:${workflow}`;
}

/** Gives the id of the accepted run; throws at once what it can. */
export function startRun(
  ports: StartPorts,
  workflow: Workflow | string,
  input: unknown,
  options: StartOptions,
): Promise<string> {
  checkOptions(options);
  assertStartable(typeof workflow === "string" ? workflow : workflow?.name);
  assertNoLink(workflow);
  const known = typeof workflow === "string" ? ports.registry.newest(workflow) : workflow;
  if (known === undefined) return startElsewhere(ports, workflow as string, input, options);
  const target = targetHere(known);
  if (options.advance === true && !("plan" in known)) throw hasNoPhases(target.name);
  const schema = known.definition.input;
  if (schema === undefined) return startChecked(ports, target, input, options);
  // The transaction may be over when a promise has been waited for.
  if (options.transaction !== undefined)
    return startChecked(ports, target, validateNow(schema, input, `The input of workflow "${target.name}"`), options);
  return validate(schema, input, `The input of workflow "${target.name}"`).then((checked) =>
    startChecked(ports, target, checked, options),
  );
}

async function startElsewhere(ports: StartPorts, name: string, input: unknown, options: StartOptions): Promise<string> {
  return startChecked(ports, await targetElsewhere(ports, name, options), input, options);
}

/** `times`: how often a readable id was found to be another run's. */
function startChecked(
  ports: StartPorts,
  target: Target,
  given: unknown,
  options: StartOptions,
  times = 0,
): Promise<string> {
  const { name, version } = target;
  const redactor = ports.redaction.for(target.workflow?.definition);
  const whole = encodePayload(given, "input");
  const text = redactor === null ? whole : redactor.value(whole);
  // What is made of the input is made of what stays of it, as for those who only see the journal.
  const input = text === whole ? given : decodePayload(text);
  const now = ports.store.clock.now();
  const readable = readableId(target, input, options, now, times);
  const id = options.id ?? readable ?? ports.ids.next();
  const deadline = deadlineOf(options, target, now);
  const draft = new Draft(id, { head: 0, hash: id, at: 0 }, ports.host, ports.codec);
  const needs = target.workflow === null ? null : needsOf(target.workflow, input);
  const create = newRun(ports, id, target, options, { deadline, needs, now });
  const plan = budgetPlan(options.budget, "the start") ?? target.workflow?.definition.budget ?? undefined;
  const budgets = plan === undefined ? undefined : budgetsFor(id, plan, create.readyAt);
  draft.redactor = redactor;
  draft.create(create);
  const more = {
    ...(budgets !== undefined && { budgets }),
    ...(create.readyAt > now && { notBefore: create.readyAt }),
    ...(options.adopted !== undefined && { adopted: decodePayload(encodePayload(options.adopted, "adopted")) }),
    ...(target.workflow !== null && pinned(target.workflow.definition)),
  };
  draft.appendText(now, "run.started", null, startedText(name, version, text, id, deadline, more));
  if (options.debounce !== undefined)
    return startInBurst(ports, draft, {
      ...quietOf(options.debounce),
      workflow: name,
      input,
      needs,
      deadline,
      ...(plan !== undefined && { plan }),
    });
  const isPlain = options.key === undefined && options.id === undefined && readable === null;
  const again = readable === null ? null : () => startChecked(ports, target, input, options, times + 1);
  if (!create.claimed || !isPlain) return startUnlessThere(ports, target, create, draft, text, options, again);
  // The body sees what replay would show it: the input as it was recorded (I21).
  const payload: RunStarted = {
    workflow: name,
    version,
    input: decodePayload(text),
    seed: id,
    deadline,
    ...more,
  };
  const entry: Entry = { seq: 0, at: draft.chain.at, type: "run.started", key: null, payload };
  return ports.worker.begin(id, target.workflow as Workflow, create, draft, entry);
}

async function startInBurst(ports: StartPorts, draft: Draft, burst: Burst): Promise<string> {
  const started = await startDebounced(ports, draft.take().commit, burst);
  ports.worker.hint();
  return "run" in started ? started.run : existing(ports, started.verdict, burst.workflow, "", {});
}

async function startUnlessThere(
  ports: StartPorts,
  target: Target,
  create: NewRun,
  draft: Draft,
  text: string,
  options: StartOptions,
  again: (() => Promise<string>) | null,
): Promise<string> {
  const { key } = options;
  if (key !== undefined) draft.key({ space: startSpace(target.name), key, digest: ports.host.digest(text) });
  const { commit } = draft.take();
  const verdict = await write(ports, commit, options);
  if (isTaken(verdict) && again !== null) return underAnotherId(ports, verdict.holder, create, text, options, again);
  if (verdict.kind !== "applied") return existing(ports, verdict, target.name, text, options);
  const { run } = commit;
  const [entry] = commit.entries;
  if (create.claimed && target.workflow !== null && entry !== undefined)
    ports.worker.adopt({ run, workflow: target.workflow, create, entry });
  else ports.worker.hint();
  return run;
}

/** More runs of one key on one day are a mistake, not a business. */
const MAX_NUMBER = 10_000;

/** An id that tells what the run is about, if its workflow makes such ids; the second one of the same name has a number. */
function readableId(target: Target, input: unknown, options: StartOptions, now: number, times: number): string | null {
  if (options.id !== undefined || options.debounce !== undefined) return null;
  const id = target.workflow?.definition.runId?.({ key: options.key ?? null, input, now }) ?? null;
  if (id === null || times >= MAX_NUMBER) return null;
  const numbered = times === 0 ? id : `${id}-${times + 1}`;
  assertName("run id", numbered);
  return numbered;
}

type Taken = Extract<Verdict, { why: "exists" }>;

function isTaken(verdict: Verdict): verdict is Taken {
  return verdict.kind === "refused" && verdict.why === "exists";
}

/** The id is made of what the run is about: whoever has it is this very start, the run of the same key, or another run. */
async function underAnotherId(
  ports: StartPorts,
  holder: RunRow,
  create: NewRun,
  text: string,
  { key }: StartOptions,
  again: () => Promise<string>,
): Promise<string> {
  if (holder.traceId === create.traceId) return holder.id;
  const known = key === undefined ? null : await ports.store.key(startSpace(create.workflow), key);
  if (known === null) return again();
  if (known.digest === ports.host.digest(text)) {
    ports.duplicate(known.run);
    return known.run;
  }
  throw conflict(known.run, `key "${key}"`);
}

function write({ store, worker }: StartPorts, commit: RunCommit, { transaction }: StartOptions): Promise<Verdict> {
  if (transaction === undefined) return worker.committer.write(commit);
  if (store.enlist !== undefined) return store.enlist(transaction, commit);
  const next = "Use a SQLite file or PostgreSQL, or start the run when your transaction has committed.";
  throw new PawlError("invalid_argument", `A store of kind "${store.kind}" has no transactions. ${next}`, {
    fields: { store: store.kind },
  });
}

/** The text of a `RunStarted` whose input is encoded already: it may be large, and once is enough. */
function startedText(
  workflow: string,
  version: string,
  input: string,
  seed: string,
  deadline: number,
  more: Partial<RunStarted>,
): string {
  const rest = Object.entries(more)
    .map(([field, value]) => `,"${field}":${encodePayload(value, field)}`)
    .join("");
  return `{"workflow":${JSON.stringify(workflow)},"version":${JSON.stringify(version)},"input":${input},"seed":${JSON.stringify(seed)},"deadline":${deadline}${rest}}`;
}

function checkOptions({ id, key, tags, priority, delay, debounce, transaction }: StartOptions): void {
  if (debounce !== undefined && (id ?? key ?? delay ?? transaction) !== undefined)
    throw new PawlError(
      "invalid_argument",
      "debounce cannot be used with id, key, delay or transaction: it says by itself which run this is and when it begins. Leave those out.",
    );
  if (id !== undefined) assertName("run id", id);
  assertNotAlerts(id);
  if (key !== undefined) assertName("start key", key);
  for (const tag of tags ?? []) assertName("tag", tag);
  if (priority !== undefined && !Number.isInteger(priority)) {
    throw new PawlError("invalid_argument", `priority is ${priority}. Give a whole number; higher goes first.`, {
      fields: { priority },
    });
  }
}

function targetHere(known: Workflow): Target {
  if (typeof known?.definition?.handler !== "function")
    throw new PawlError("invalid_argument", "start takes a workflow made by workflow(…), or the name of one.");
  return { name: known.name, version: known.version, deadlineMs: known.definition.deadlineMs, workflow: known };
}

async function targetElsewhere(ports: StartPorts, name: string, options: StartOptions): Promise<Target> {
  assertName("workflow name", name);
  const version = options.version ?? (await versionElsewhere(ports.store, name));
  parseVersion(version);
  return { name, version, deadlineMs: DEFAULTS.runDeadlineMs, workflow: null };
}

/** A client asks the workers that are alive which version they run. */
export async function versionElsewhere(store: Store, name: string): Promise<string> {
  const handles = (await store.workers())
    .flatMap((worker) => worker.handles)
    .filter((handle) => handle.workflow === name);
  const versions = handles
    .map((handle) => handle.version)
    .sort((a, b) => compareVersions(parseVersion(a), parseVersion(b)));
  const newest = versions.at(-1);
  if (newest !== undefined) return newest;
  throw new PawlError(
    "unknown_workflow",
    `Nobody here or on this store runs a workflow "${name}". Start a worker that has it, pass the workflow itself, or name a \`version\`.`,
    {
      fields: { workflow: name },
    },
  );
}

function deadlineOf({ deadline, delay, debounce }: StartOptions, target: Target, now: number): number {
  if (deadline instanceof Date && !Number.isNaN(deadline.getTime())) return deadline.getTime();
  if (deadline instanceof Date)
    throw new PawlError("invalid_argument", '`deadline` is no valid Date. Give one, or a duration such as "2 hours".');
  const from = now + delayOf({ ...(delay !== undefined && { delay }), ...(debounce !== undefined && { debounce }) });
  return from + (deadline === undefined ? target.deadlineMs : toMs(deadline, "deadline"));
}

/** How long after its start the run may begin at the earliest. */
function delayOf({ delay, debounce }: Pick<StartOptions, "delay" | "debounce">): number {
  if (debounce === undefined) return delay === undefined ? 0 : toMs(delay, "delay");
  const { waitMs, maxMs } = quietOf(debounce);
  return Math.min(waitMs, maxMs);
}

function newRun(
  ports: StartPorts,
  id: string,
  target: Target,
  options: StartOptions,
  { deadline, needs, now }: { readonly deadline: number; readonly needs: Needs | null; readonly now: number },
): NewRun {
  const delayMs = delayOf(options);
  return {
    workflow: target.name,
    version: target.version,
    // A readable id may be another run's: by this one a start knows its own again.
    traceId: options.id === undefined && target.workflow?.definition.runId == null ? id : ports.ids.next(),
    key: options.key ?? null,
    tags: [...new Set([...(options.tags ?? []), ...(options.advance === true ? [ADVANCE_TAG] : [])])],
    priority: options.priority ?? 0,
    parent: null,
    origin: null,
    deadline,
    claimed:
      options.transaction === undefined &&
      delayMs === 0 &&
      needs === null &&
      target.workflow !== null &&
      ports.worker.hasRoomFor(target.name, target.version),
    readyAt: now + delayMs,
    codec: ports.codec.id,
    needs,
  };
}

/** A repeated start: the same run for the same input, a conflict that names the run otherwise (C-9). */
async function existing(
  ports: StartPorts,
  verdict: Verdict,
  workflow: string,
  text: string,
  options: StartOptions,
): Promise<string> {
  if (verdict.kind === "refused" && verdict.why === "key") {
    if (verdict.holder.digest === ports.host.digest(text)) return workable(ports, verdict.holder.run);
    throw conflict(verdict.holder.run, `key "${options.key}"`);
  }
  if (verdict.kind === "refused" && verdict.why === "exists") {
    // Nobody else has an id that was made here: this start was written, and its answer was lost (I2).
    if (options.id === undefined) return verdict.holder.id;
    const isSame = verdict.holder.workflow === workflow && (await inputText(ports, verdict.holder)) === text;
    if (isSame) return workable(ports, verdict.holder.id);
    throw conflict(verdict.holder.id, `id "${options.id}"`);
  }
  throw new PawlError(
    "storage_unavailable",
    `The run could not be started: the store answered ${verdict.kind}. Start it again.`,
    { fields: { verdict: verdict.kind } },
  );
}

async function inputText(ports: StartPorts, row: RunRow): Promise<string | null> {
  const [first] = await ports.store.journal(row.id, { limit: 1 });
  if (first === undefined) return null;
  return encodePayload((openEntry(ports.codec, row.id, first).payload as RunStarted).input, "input");
}

function hasNoPhases(workflow: string): PawlError {
  return new PawlError(
    "invalid_argument",
    `Workflow "${workflow}" is not made with phases(…), so \`advance\` has no meaning for it. Leave it out.`,
    { fields: { workflow, field: "advance" } },
  );
}

function conflict(run: string, what: string): PawlError {
  return new PawlError(
    "idempotency_conflict",
    `Run ${run} was started with ${what} and other input. Use its result, or start with another key.`,
    { fields: { run } },
  );
}
