// Replay of an exported run
// Asks one question: does this code reproduce this recorded run? It must issue every recorded call in its place and come to the recorded end, or,
// for a run that has not ended, follow the whole journal and wait for what is open. Each generation is followed by itself, its last entry
// withheld (I5).
import { decode, encode } from "../base/codec.ts";
import { type Duration, toMs } from "../base/duration.ts";
import { jsonCodec } from "../base/envelope.ts";
import { messageOf, PawlError } from "../base/errors.ts";
import { REDACTED_TEXT } from "../base/redacted.ts";
import { damaged, type ExportedRun, readExport } from "../client/export.ts";
import { assertUnderstood } from "../core/demands.ts";
import { describeEntry } from "../core/divergence.ts";
import { Draft } from "../core/draft.ts";
import { cancelWithoutBody } from "../core/endings.ts";
import { isWellFormed } from "../core/entry-shape.ts";
import { type Cancelling, type Continued, type Entry, entryKind } from "../core/journal.ts";
import type { Pass } from "../core/pass.ts";
import { type Redaction, Redactors } from "../core/redactor.ts";
import type { RunRow } from "../core/store.ts";
import type { Workflow } from "../core/workflow.ts";
import { installGuard } from "../worker/guard.ts";
import { nodeHost } from "../worker/node-host.ts";
import { shieldRejections } from "../worker/rejections.ts";
import { type DryOutcome, runDry, STILL } from "./dry-pass.ts";
import { isSameValue, RedactedValues } from "./redacted-values.ts";
import { Report } from "./replay-report.ts";

/** The recorded entry that the code does not lead to, and what it does there. */
export interface ReplayDiff {
  /** Position of the recorded entry; where the journal ends, if the code goes on past it. */
  readonly seq: number;
  /** What is recorded there; `null`: nothing, the run waits. */
  readonly recorded: string | null;
  /** What the code did; `null`: it ended or went quiet without it. */
  readonly issued: string | null;
}

/** Whether the code reproduces the run; if not, where and how it differs. */
export interface ReplayResult {
  readonly ok: boolean;
  /** One or two sentences for people. */
  readonly message: string;
  readonly diff?: ReplayDiff;
  /** The line of code that did something else: "src/checkout.ts:12:9". */
  readonly line?: string;
  /** Notes that the code makes in the last turn of a run that has ended, and that are not recorded. They do no harm (P9). */
  readonly added?: readonly string[];
}

export interface ReplayOptions {
  /** How long the code may await something of its own before it counts as quiet. Default 2 s. */
  readonly quiet?: Duration;
  /** What the process that made the run has redacted, as its `Pawl.open` had it. The workflow's own rules are known. */
  readonly redact?: Redaction | readonly Redaction[];
}

const QUIET_MS = 2000;

/**
 * Runs the code of `workflow` against a recorded run. No step begins and nothing is written: only the body runs.
 *
 * ```ts
 * const recorded = JSON.parse(await readFile("runs/order-17.json", "utf8"));
 * const { ok, message } = await replay(checkout, recorded);
 * assert(ok, message);
 * ```
 */
export async function replay<I, O>(
  workflow: Workflow<I, O>,
  exported: ExportedRun,
  options: ReplayOptions = {},
): Promise<ReplayResult> {
  const run = readExport(exported);
  const code = workflow as unknown as Workflow;
  assertSameWorkflow(code, run);
  const quietMs = options.quiet === undefined ? QUIET_MS : toMs(options.quiet, "quiet");
  const undo = [shieldRejections(), ...(code.definition.guard === "error" ? [installGuard(null)] : [])];
  try {
    return await new Replayed(code, run, quietMs, new Redactors(options.redact, null)).follow();
  } finally {
    // Rejections of the last moment are told a little later.
    await new Promise<void>((resolve) => nodeHost.immediate(resolve));
    for (const give of undo) give();
  }
}

function assertSameWorkflow({ name, definition }: Workflow, { run, entries }: ExportedRun): void {
  if (name !== run.workflow)
    throw new PawlError(
      "invalid_argument",
      `Run ${run.id} is one of workflow "${run.workflow}", not of "${name}". Pass that workflow to replay.`,
      { fields: { run: run.id, workflow: run.workflow } },
    );
  if (definition.onMissing === "execute") return;
  const gap = entries.findIndex(({ seq }, index) => seq !== index);
  if (gap >= 0) throw damaged(`entries[${gap}].seq`, `is ${entries[gap]?.seq}: entry ${gap} of the journal is missing`);
}

/** A part of the journal that one pass leads to, and the entry that ends it. */
interface Generation {
  readonly entries: readonly Entry[];
  readonly end: Entry | null;
}

class Replayed {
  readonly #workflow: Workflow;
  readonly #run: ExportedRun;
  readonly #quietMs: number;
  readonly #redaction: Redactors;
  readonly #redacted = new RedactedValues();
  readonly #report: Report;

  constructor(workflow: Workflow, run: ExportedRun, quietMs: number, redaction: Redactors) {
    const { definition } = workflow;
    // A body that only gets a warning goes the same way without one.
    const guard = definition.guard === "error" ? "error" : "off";
    this.#workflow = { ...workflow, definition: { ...definition, guard } };
    this.#run = run;
    this.#quietMs = quietMs;
    this.#redaction = redaction;
    this.#report = new Report(run, this.#redacted);
  }

  async follow(): Promise<ReplayResult> {
    const added: string[] = [];
    let result = this.#report.reproduced();
    for (const generation of generationsOf(this.#open())) {
      result = await this.#followOne(generation);
      if (!result.ok) return result;
      added.push(...(result.added ?? []));
    }
    return added.length === 0 ? result : { ...result, added };
  }

  #open(): Entry[] {
    return this.#run.entries.map(({ value, ...entry }, index) => {
      const path = `entries[${index}].value`;
      const name = `The value of ${entry.type}${entry.key === null ? "" : ` "${entry.key}"`} (entry ${entry.seq})`;
      let opened: Entry;
      assertUnderstood(this.#run.run.id, entry.seq, entry.key);
      try {
        opened = { ...entry, payload: this.#redacted.open(value, name) };
      } catch (cause) {
        throw damaged(path, `cannot be read: ${messageOf(cause)}`, cause);
      }
      if (!isWellFormed(opened)) throw damaged(path, `cannot be that of an entry of type "${entry.type}"`);
      return opened;
    });
  }

  async #followOne({ entries, end }: Generation): Promise<ReplayResult> {
    const outcome = await this.#dry(entries, end !== null);
    const cancelling = this.#cancelledWithoutBody(entries, end, outcome);
    if (cancelling === null || end === null) return this.#judge(end, outcome);
    const before = await this.#dry(entries.slice(0, -1), false);
    const result = this.#report.untilCancelled(before);
    return result.ok ? this.#compareEnd(end, this.#endOfCancelled(cancelling)) : result;
  }

  #dry(entries: readonly Entry[], mustEnd: boolean): Promise<DryOutcome> {
    const [first, last] = [entries[0], entries.at(-1)];
    const generation = first?.type === "run.continued" ? (first.payload as Continued).generation : 0;
    return runDry({
      row: rowOf(this.#run),
      workflow: this.#workflow,
      entries,
      generation,
      chain: { head: (last?.seq ?? -1) + 1, hash: this.#run.run.id, at: last?.at ?? 0 },
      mustEnd,
      quietMs: this.#quietMs,
      redaction: this.#redaction,
      digest: digestIn,
    });
  }

  #judge(end: Entry | null, outcome: DryOutcome): ReplayResult {
    const failure = this.#report.departure(outcome);
    if (failure !== null) return failure;
    if (end === null) return this.#report.open(outcome);
    const call = outcome.written.find((entry) => entryKind(entry) === "call");
    if (call !== undefined) return this.#report.extraCall(end, call, outcome);
    const derived = outcome.written.findLast(({ type }) => isEnding(type));
    if (derived === undefined) return this.#report.noEnd(end, outcome);
    const result = this.#compareEnd(end, derived);
    const added = outcome.written.filter((entry) => entryKind(entry) === "note").map(describeEntry);
    return result.ok && added.length > 0 ? { ...result, added } : result;
  }

  #compareEnd(end: Entry, derived: Entry): ReplayResult {
    const recorded = this.#run.entries.find(({ seq }) => seq === end.seq)?.value;
    const isSame =
      end.type === derived.type &&
      isSameValue(withoutOrigin(recorded), withoutOrigin(JSON.parse(encode(derived.payload))));
    return isSame ? this.#report.reproduced() : this.#report.otherEnd(end, derived);
  }

  /** A run that nobody was working on is cancelled without its body, wherever in a turn its journal had stopped (P19). */
  #cancelledWithoutBody(entries: readonly Entry[], end: Entry | null, { parked }: DryOutcome): Cancelling | null {
    const last = entries.at(-1);
    if (end?.type !== "run.cancelled" || last?.type !== "run.cancelling") return null;
    return parked?.detail?.["seq"] === last.seq ? (last.payload as Cancelling) : null;
  }

  #endOfCancelled(cancelling: Cancelling): Entry {
    const row = rowOf(this.#run);
    const draft = new Draft(row.id, { head: 0, hash: row.id, at: 0 }, nodeHost, jsonCodec);
    const end = cancelWithoutBody(draft, row, { clock: STILL, codec: jsonCodec }, cancelling, []);
    const payload = decode(end.kind === "ended" ? end.text : "null");
    return { seq: 0, at: 0, type: "run.cancelled", key: null, payload };
  }
}

/**
 * Splits a journal before each entry that begins a generation. One that never began, because another has replaced it, is left out; so is one that
 * was ended from outside, perhaps because no code follows it any more.
 */
function generationsOf(entries: readonly Entry[]): Generation[] {
  const starts = entries.flatMap(({ type }, index) => (index === 0 || type === "run.continued" ? [index] : []));
  const isReplaced = (n: number) => {
    const next = entries[starts[n + 1] ?? -1]?.payload as Continued | undefined;
    return next?.replaces === true || next?.cause !== undefined;
  };
  return starts.flatMap((start, n) => {
    if (isReplaced(n)) return [];
    const next = starts[n + 1];
    const part = entries.slice(start, next);
    if (next !== undefined) return { entries: part, end: entries[next] as Entry };
    const last = part.at(-1);
    const hasEnded = last !== undefined && entryKind(last) === "end";
    return hasEnded ? { entries: part.slice(0, -1), end: last } : { entries: part, end: null };
  });
}

function isEnding(type: string): boolean {
  return type === "run.continued" || /^run\.(succeeded|failed|cancelled)$/.test(type);
}

/** What a generation drew from is recorded in a fork alone (P10), and its structure belongs to the code that it was recorded with. */
function withoutOrigin(value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("generation" in value)) return value;
  const { seed: _, structure: __, ...rest } = value as Record<string, unknown>;
  return rest;
}

/** A digest that was redacted fits whatever the code issues in its place. */
function digestIn(pass: Pass, data: string | Uint8Array): string {
  const next = pass.replay.cursor.peek();
  const recorded = (next?.entry.payload as { digest?: unknown } | null | undefined)?.digest;
  return next?.kind === "call" && recorded === REDACTED_TEXT ? REDACTED_TEXT : nodeHost.digest(data);
}

/** The row as a worker that has just claimed the run would see it. */
function rowOf({ run, entries }: ExportedRun): RunRow {
  const claimed = { owner: null, readyAt: null, wakeAt: null, wake: 0, cancel: null, claims: 1 };
  const unseen = {
    progress: null,
    cost: null,
    codec: "json",
    head: entries.length,
    headHash: "",
    slot: null,
    rate: null,
  };
  return { ...run, ...claimed, ...unseen, state: "running", endedAt: null, stopReason: null };
}
