// What a case expects, held against what its run has come to. Each expectation that does not hold is named as the case names it.
import { encode } from "../../base/codec.ts";
import { messageWithCause } from "../../base/errors.ts";
import type { ExportedRun } from "../../client/export.ts";
import type { Entry } from "../../core/journal.ts";
import type { EffectRecord } from "../../core/ledger.ts";
import { isTerminal, type RunState } from "../../core/transition.ts";
import type { Workflow } from "../../core/workflow.ts";
import { replay } from "../replay.ts";
import type { EvalSubject } from "./eval-setup.ts";
import { alternatives, statusesOf } from "./final-status.ts";
import type { Broken } from "./play.ts";
import type { EvalCase } from "./read-case.ts";
import type { Answered } from "./script.ts";
import { fits, type Named } from "./tool-names.ts";
import { TRACE_WORDS } from "./trace-words.ts";

/** What a run has come to. */
export interface Outcome {
  readonly run: string;
  readonly workflow: string;
  readonly state: RunState;
  readonly stopReason: string | null;
  readonly output?: unknown;
  readonly error?: unknown;
  readonly journal: readonly Entry[];
  /** Of the run and of those below it. */
  readonly effects: readonly EffectRecord[];
  readonly answered: readonly Answered[];
  readonly exported: ExportedRun;
}

interface Subject {
  readonly one: EvalCase;
  readonly setup: EvalSubject;
  readonly outcome: Outcome;
}

type Check = (subject: Subject, expected: never) => Broken[] | Promise<Broken[]>;

/** Holds every expectation of the case, and what must hold for every run. */
export async function checkAll(subject: Subject): Promise<Broken[]> {
  const broken = [...checkAudit(subject), ...checkOnce(subject)];
  for (const [name, value] of Object.entries(subject.one.expected)) {
    const check = CHECKS[name];
    if (check !== undefined) broken.push(...(await check(subject, value as never)));
    else if (value === true) broken.push(...checkFlag(subject, name));
  }
  return broken;
}

const CHECKS: Readonly<Record<string, Check>> = {
  final_status: checkStatus,
  stop_reason: checkStopReason,
  output: checkOutput,
  effects: checkEffects,
  must_not: checkMustNot,
  must_not_end_as: checkEnd,
  requires_checkpoint: checkCheckpoints,
  required_trace_events: checkTrace,
  replays: checkReplay,
};

function failure(expectation: string, message: string, expected?: unknown, actual?: unknown): Broken {
  return { expectation, message, expected, actual };
}

function checkStatus({ outcome }: Subject, expected: string | readonly string[]): Broken[] {
  const actual = statusesOf(outcome.state, outcome.journal);
  if (alternatives(expected).some((one) => (actual as readonly string[]).includes(one))) return [];
  const why = outcome.error === undefined ? "" : `: ${messageWithCause(outcome.error)}`;
  return [failure("final_status", `The run is ${actual.join(", ")}${why}.`, expected, actual)];
}

function checkStopReason({ outcome: { stopReason } }: Subject, expected: string): Broken[] {
  if (stopReason === expected) return [];
  return [failure("stop_reason", `The run has stopped because of "${stopReason}".`, expected, stopReason)];
}

function checkOutput({ outcome }: Subject, expected: unknown): Broken[] {
  const actual = plain(outcome.output);
  const [place] = missing(expected, actual, "output");
  return place === undefined ? [] : [failure("output", `${place} is not what was expected.`, expected, actual)];
}

/** What a step or effect must have become: by its name or key; of several, each. */
function checkEffects(subject: Subject, expected: Readonly<Record<string, string>>): Broken[] {
  return Object.entries(expected).flatMap(([name, status]) => {
    const records = subject.outcome.effects.filter(({ effect }) => means(subject, name, namedBy(subject, effect)));
    if (records.length === 0 && status === "absent") return [];
    const actual = records.length === 0 ? "absent" : records.find((one) => one.status !== status)?.status;
    if (actual === undefined) return [];
    return [failure("effects", `Effect "${name}" is ${actual}.`, { [name]: status }, { [name]: actual })];
  });
}

function checkMustNot(subject: Subject, names: readonly string[]): Broken[] {
  return names.flatMap((name) => whatHappened(subject, "must_not", name));
}

/** `must_not_issue_refund`: by what the case or the setup says that it means, or by its words. */
function checkFlag(subject: Subject, flag: string): Broken[] {
  const { one, setup } = subject;
  const names = one.map?.flags?.[flag] ?? setup.flags?.[flag] ?? [flag.slice("must_not_".length)];
  return names.flatMap((name) => whatHappened(subject, flag, name));
}

function whatHappened(subject: Subject, expectation: string, name: string): Broken[] {
  const done = subject.outcome.answered.filter(
    ({ did, outcome, workflow, tool, key }) =>
      did && outcome === "success" && means(subject, name, { workflow, name: tool, key }),
  );
  const [first] = done;
  if (first === undefined) return [];
  return [
    failure(
      expectation,
      `"${first.key}" was done, ${done.length === 1 ? "once" : `${done.length} times`}.`,
      0,
      done.length,
    ),
  ];
}

function checkEnd({ outcome }: Subject, bad: NonNullable<EvalCase["expected"]["must_not_end_as"]>): Broken[] {
  const statuses: readonly string[] = statusesOf(outcome.state, outcome.journal);
  const error = outcome.error === undefined ? null : messageWithCause(outcome.error);
  const isIt =
    statuses.includes(bad.status) &&
    (bad.stop_reason === undefined || bad.stop_reason === outcome.stopReason) &&
    (bad.error === undefined || error?.includes(bad.error) === true) &&
    (!("output" in bad) || missing(bad.output, plain(outcome.output), "").length === 0);
  if (!isIt) return [];
  return [
    failure("must_not_end_as", `The run has ended just so: ${bad.status}${error === null ? "" : `, ${error}`}.`, bad, {
      statuses,
      error,
    }),
  ];
}

/** Something durable by that name: the outcome of a call, or an entry that people know by that word. */
function checkCheckpoints(subject: Subject, names: readonly string[]): Broken[] {
  const { journal } = subject.outcome;
  const settled = journal.filter(
    (entry) => TRACE_WORDS["tool_result"]?.(entry) === true || entry.type === "checkpoint",
  );
  return names.flatMap((name) => {
    const isSaved = journal.some((entry) => TRACE_WORDS[name]?.(entry) === true);
    if (isSaved || settled.some(({ key }) => means(subject, name, namedBy(subject, key ?? "")))) return [];
    const there = [...new Set(settled.map(({ key }) => key))].join(", ") || "none";
    return [failure("requires_checkpoint", `There is no checkpoint "${name}". Those of the run are: ${there}.`, name)];
  });
}

function checkTrace({ outcome: { journal } }: Subject, words: readonly string[]): Broken[] {
  const absent = words.filter((word) => !journal.some((entry) => TRACE_WORDS[word]?.(entry) === true));
  return absent.map((word) => failure("required_trace_events", `The trace has no "${word}".`, word));
}

async function checkReplay({ setup, outcome }: Subject, expected: boolean): Promise<Broken[]> {
  // Through text, as through a file.
  const exported = JSON.parse(JSON.stringify(outcome.exported)) as ExportedRun;
  const { ok, message } = await replay(setup.workflow as unknown as Workflow, exported);
  return ok === expected ? [] : [failure("replays", message, expected, ok)];
}

/** Every end says why, and its ledger accounts for everything that was done (S2-83). */
function checkAudit({ outcome }: Subject): Broken[] {
  if (!isTerminal(outcome.state)) return [];
  const broken = outcome.stopReason === null ? [failure("audit", "The run has ended without a stop reason.")] : [];
  const open = outcome.effects.filter(({ status }) => status === "planned");
  const known = new Set(outcome.effects.map(({ key }) => key));
  const unknown = outcome.answered.filter(
    ({ isEffect, did, idempotencyKey }) => isEffect && did && !known.has(idempotencyKey),
  );
  return [
    ...broken,
    ...open.map(({ effect }) => failure("audit", `The run has ended, and its ledger has "${effect}" as planned.`)),
    ...unknown.map(({ key }) => failure("audit", `"${key}" was done, and the ledger does not have it.`)),
  ];
}

/** Nothing happens twice under one key. */
function checkOnce({ outcome: { answered } }: Subject): Broken[] {
  const counts = new Map<string, Answered[]>();
  for (const one of answered) {
    if (!one.did) continue;
    const key = `${one.tool} ${one.idempotencyKey}`;
    counts.set(key, [...(counts.get(key) ?? []), one]);
  }
  const twice = [...counts.values()].filter(({ length }) => length > 1);
  return twice.map((all) => failure("effects_once", `"${all[0]?.key}" was done ${all.length} times.`, 1, all.length));
}

/** Whether a name of the case means this: by what the case or the setup says, or by the rule for names. */
export function means({ one, setup }: Pick<Subject, "one" | "setup">, given: string, named: Named): boolean {
  const name = one.map?.tools?.[given] ?? one.map?.steps?.[given] ?? setup.names?.[given] ?? given;
  return fits(name, named);
}

/** The name in a key: without the items of maps before it and the count behind it. */
function namedBy({ outcome }: Subject, key: string): Named {
  const name = key.slice(key.lastIndexOf("/") + 1).replace(/#\d+$/, "");
  return { workflow: outcome.workflow, name, key };
}

function plain(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(encode(value));
}

/** Where `actual` lacks what is expected; properties that are not named may be anything. */
function missing(expected: unknown, actual: unknown, path: string): string[] {
  if (typeof expected !== "object" || expected === null) return Object.is(expected, actual) ? [] : [path];
  if (typeof actual !== "object" || actual === null || Array.isArray(expected) !== Array.isArray(actual)) return [path];
  if (Array.isArray(expected) && expected.length !== (actual as unknown[]).length) return [`${path}.length`];
  return Object.entries(expected).flatMap(([name, value]) =>
    missing(
      value,
      (actual as Record<string, unknown>)[name],
      Array.isArray(expected) ? `${path}[${name}]` : `${path}.${name}`,
    ),
  );
}
