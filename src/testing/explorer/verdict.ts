// Verdicts
// What a history shows, compared with the undisturbed one. Every fault says what happened, where, and what to do about it.
import { inspect, isDeepStrictEqual } from "node:util";
import { jsonCodec } from "../../base/envelope.ts";
import { hasCode, messageOf } from "../../base/errors.ts";
import type { Parked, StepFailed, StoredEntry } from "../../core/journal.ts";
import { isTerminal } from "../../core/transition.ts";
import { openEntry } from "../../core/values.ts";
import { type Effect, isFlat } from "../recorder.ts";
import type { Ending } from "./history.ts";
import { RUN_ID } from "./history.ts";
import type { BodyStart } from "./mortal-engine.ts";
import { describeEnd, type End, endOf, isSameEnd, show } from "./run-end.ts";
import type { OtherEnd } from "./withheld-end.ts";
import type { World } from "./world.ts";

export type FaultKind =
  | "result"
  | "effects"
  | "divergence"
  | "effect-after-cancel"
  | "swallowed-cancel"
  | "shared-state"
  | "stuck"
  | "orphan"
  | "replay"
  | "stale"
  | "script";

export interface Fault {
  readonly kind: FaultKind;
  readonly message: string;
  readonly step?: string;
  readonly line?: string;
}

/** Everything about a finished history that verdicts are based on. */
export interface Outcome {
  readonly ending: Ending;
  readonly journals: ReadonlyMap<string, readonly StoredEntry[]>;
  /** By run: the root, and those that go on by themselves. */
  readonly ends: ReadonlyMap<string, End | null>;
  readonly requests: readonly Effect[];
  /** What the test's own fakes have seen. */
  readonly observed: unknown;
  readonly otherEnds: readonly OtherEnd[];
}

/** The faults that a history shows by itself, whatever others do. */
export function faultsOf(outcome: Outcome): Fault[] {
  const { ending, requests } = outcome;
  const { world } = ending;
  return [
    ...[...ending.parked].flatMap(([, parked]) =>
      parked.reason === "unknown_outcome" ? [] : [divergence(parked, world)],
    ),
    ...ending.stuck.map(({ id, workflow, state }) => ({
      kind: "stuck" as const,
      message: `Run ${id} of "${workflow}" is ${state} and nothing will move it any more. If it waits for a signal, have the script send it.`,
    })),
    ...ending.orphans.map(({ run, why }) => ({
      kind: "orphan" as const,
      message: `Nothing would ever wake run ${run}: ${why}. Please report this: it is a fault of the engine.`,
    })),
    ...(ending.scriptError === undefined ? [] : [scriptFault(ending.scriptError)]),
    ...lateCalls(world),
    ...requests.filter(({ isAfterCancel, did, where }) => isAfterCancel && did && where === "body").map(afterCancel),
    ...world.stale.map(({ step }) => ({
      kind: "stale" as const,
      step,
      message: `Step "${step}" began in a process that no longer owned the run. Please report this: it is a fault of the engine.`,
    })),
    ...outcome.otherEnds.map(otherEnd),
  ];
}

/** What is different from the undisturbed history. */
export function differences(outcome: Outcome, undisturbed: Outcome): Fault[] {
  // A run that ends otherwise because a step was interrupted for good does what was asked of it.
  const isInterrupted = hasInterruptedStep(outcome);
  const results = isInterrupted ? [] : resultFaults(outcome, undisturbed);
  const hasOtherEnd = isInterrupted || results.length > 0;
  return [
    ...results,
    ...effectFaults(outcome, undisturbed, hasOtherEnd),
    ...(hasOtherEnd ? [] : observedFaults(outcome, undisturbed)),
  ];
}

// Replay

function divergence(parked: Parked, world: World): Fault {
  const detail = parked.detail ?? {};
  const line = textOf(detail["site"]);
  const step = /^step "(.+)"$/.exec(textOf(detail["recorded"]) ?? textOf(detail["call"]) ?? "")?.[1];
  const [first] = world.hazards.values();
  return {
    kind: "divergence",
    ...(step === undefined ? {} : { step }),
    ...lineOf(first?.line ?? line),
    message: `The code did not follow its own journal when the run was recovered. ${whatHappened(parked)} ${hazardWords(world)}`,
  };
}

function whatHappened({ message, detail }: Parked): string {
  const recorded = textOf(detail?.["recorded"]);
  if (recorded === null) return message;
  const issued = textOf(detail?.["issued"]);
  const site = textOf(detail?.["site"]);
  const did = issued === null ? "did not come to it" : `called ${issued}${site === null ? "" : ` at ${site}`}`;
  return `Entry ${String(detail?.["seq"])} is ${recorded}, but the body ${did}.`;
}

const INSTEAD: Readonly<Record<string, string>> = {
  "Date.now()": "ctx.now()",
  "new Date()": "new Date(ctx.now())",
  "Date()": "new Date(ctx.now())",
  "Math.random()": "ctx.random()",
  "crypto.randomUUID()": "ctx.uuid()",
};

/** What the body reads that is not recorded, with what to use instead. */
function hazardWords({ hazards }: World): string {
  if (hazards.size === 0)
    return "The body depends on something that is not recorded, such as a variable outside of it: pass it in as input, or read it in a ctx.step.";
  const words = [...hazards.values()].map(({ what, line }) => `${what} at ${line} (use ${INSTEAD[what]})`);
  return `The body reads ${words.join(" and ")}, which gives another value in replay. Use what is named there, or move it into a ctx.step.`;
}

function otherEnd({ recorded, derived, parked, steps, world }: OtherEnd): Fault {
  const [step] = steps;
  const [hazard] = world.hazards.values();
  const what =
    steps.length > 0
      ? `step "${step}" ran once more, although its result is recorded`
      : parked === null
        ? `it ${describeEnd(derived)}`
        : `it was parked: ${parked}`;
  return {
    kind: "replay",
    ...(step === undefined ? {} : { step }),
    ...lineOf(hazard?.line ?? null),
    message: `The run ${describeEnd(recorded)}; replayed from its journal, ${what}. ${hazardWords(world)}`,
  };
}

// Results and effects

function resultFaults(outcome: Outcome, undisturbed: Outcome): Fault[] {
  const { ends, ending } = outcome;
  return [...undisturbed.ends].flatMap(([run, expected]): Fault[] => {
    const end = ends.get(run) ?? null;
    if (expected === null || isSameEnd(expected, end) || ending.parked.has(run)) return [];
    if (end === null && (ending.stuck.length > 0 || ending.scriptError !== undefined)) return [];
    if (hasCode(end?.value, "deadline_exceeded") && !hasCode(expected.value, "deadline_exceeded"))
      return [{ kind: "stuck", message: hung(run) }];
    const [hazard] = ending.world.hazards.values();
    const whose = run === RUN_ID ? "The run" : `Child run ${run}`;
    const step = otherResult(run, outcome, undisturbed);
    const why =
      step === null || hazard !== undefined
        ? hazardWords(ending.world)
        : `Step "${step}" gave another result when it ran again: have it find out what its first start has done, by its \`key\`.`;
    const message = `${whose} ${describeEnd(end)}; undisturbed it ${describeEnd(expected)}. ${why}`;
    return [{ kind: "result", ...(step === null ? {} : { step }), ...lineOf(hazard?.line ?? null), message }];
  });
}

function hung(run: string): string {
  return (
    `Nothing moved run ${run} on until its deadline ended it; undisturbed it had ended long before. ` +
    "If it waits for a signal, have the script send it again after a crash."
  );
}

/** The first step that gave something else than undisturbed. */
function otherResult(run: string, { journals }: Outcome, undisturbed: Outcome): string | null {
  const nameOf = numbered();
  const usual = new Map((undisturbed.journals.get(run) ?? []).map((entry) => [nameOf(entry), entry.data]));
  const ownName = numbered();
  const other = (journals.get(run) ?? []).find((entry) => {
    const data = usual.get(ownName(entry));
    return entry.type === "step.completed" && data !== undefined && !isDeepStrictEqual(data, entry.data);
  });
  return other?.key ?? null;
}

/** A run that ended otherwise may have done less, never more. */
function effectFaults(outcome: Outcome, undisturbed: Outcome, hasOtherEnd: boolean): Fault[] {
  if (outcome.ending.stuck.length > 0 || outcome.ending.parked.size > 0) return [];
  const [counts, expected] = [countEffects(outcome.requests), countEffects(undisturbed.requests)];
  const isCancelled = undisturbed.ends.get(RUN_ID)?.type === "run.cancelled";
  const faults: Fault[] = [];
  for (const [identity, times] of counts) {
    const usual = expected.get(identity) ?? 0;
    // How far a run comes before a cancel reaches it, a crash may change; how often it does a thing, never.
    if (times > (isCancelled ? Math.max(1, usual) : usual)) faults.push(tooMany(identity, times, usual, outcome));
  }
  if (isCancelled || hasOtherEnd) return faults;
  for (const [identity, usual] of expected) {
    const times = counts.get(identity) ?? 0;
    if (times < usual) faults.push(tooFew(identity, times, usual, undisturbed));
  }
  return faults;
}

function tooMany(identity: string, times: number, usual: number, outcome: Outcome): Fault {
  const effects = outcome.requests.filter((effect) => effect.did && identityOf(effect) === identity);
  const inBody = effects.find(({ where }) => where === "body");
  const happened = `The effect ${identity} happened ${times} times instead of ${usual}.`;
  if (inBody !== undefined) {
    return {
      kind: "effects",
      ...lineOf(inBody.line),
      message: `${happened} The body makes it at ${inBody.line}, outside of any step, and so again in every replay. Move it into a ctx.step.`,
    };
  }
  const step = effects.at(-1)?.step ?? null;
  if (step === null) return { kind: "effects", message: `${happened} It was made outside of any run.` };
  return { kind: "effects", step, message: `${happened} ${repeatWords(step, outcome.ending.world)}` };
}

function tooFew(identity: string, times: number, usual: number, { requests }: Outcome): Fault {
  const step = requests.find((effect) => identityOf(effect) === identity)?.step ?? null;
  const what = step === null ? "" : ` It is made by step "${step}".`;
  return {
    kind: "effects",
    ...(step === null ? {} : { step }),
    message: `The effect ${identity} happened ${times} times instead of ${usual}.${what} Make sure that a key is not used for two different effects.`,
  };
}

function observedFaults({ observed, ending }: Outcome, undisturbed: Outcome): Fault[] {
  if (isDeepStrictEqual(observed, undisturbed.observed)) return [];
  if (ending.stuck.length > 0 || ending.parked.size > 0) return [];
  const repeated = repeatsIn(ending.world);
  const suspect = repeated.find(({ usedKey }) => !usedKey) ?? repeated[0];
  const why =
    suspect === undefined
      ? "No step ran twice: look for an effect that the body makes outside of any step, and move it into a ctx.step."
      : repeatWords(suspect.step, ending.world);
  return [
    {
      kind: "effects",
      ...(suspect === undefined ? {} : { step: suspect.step }),
      message: `The outside world has seen ${show(observed)} instead of ${show(undisturbed.observed)}. ${why}`,
    },
  ];
}

function repeatWords(step: string, world: World): string {
  const starts = world.starts.filter((body) => body.step === step);
  const advice =
    'Pass the `key` that its function is given on as an idempotency key, or set `recovery: "ask"` so that a person decides.';
  if (starts.some(({ usedKey }) => usedKey))
    return `Step "${step}" ran ${starts.length} times and read its key, but the effect came without it. ${advice}`;
  return `Step "${step}" ran ${starts.length} times and does not use its idempotency key. ${advice}`;
}

/** Bodies that started again though no failure of theirs asked for it: the last start of each. */
export function repeatsIn({ starts }: World): (BodyStart & { readonly times: number })[] {
  const seen = new Map<string, { body: BodyStart; times: number; isRepeated: boolean }>();
  for (const body of starts) {
    const known = seen.get(body.key);
    if (known === undefined) {
      seen.set(body.key, { body, times: 1, isRepeated: false });
      continue;
    }
    known.times++;
    known.isRepeated ||= known.body.engine !== body.engine;
    known.body = body;
  }
  return [...seen.values()].filter(({ isRepeated }) => isRepeated).map(({ body, times }) => ({ ...body, times }));
}

function countEffects(requests: readonly Effect[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const effect of requests) {
    if (!effect.did) continue;
    const identity = identityOf(effect);
    counts.set(identity, (counts.get(identity) ?? 0) + 1);
  }
  return counts;
}

function identityOf({ name, details }: Effect): string {
  if (details === undefined) return `"${name}"`;
  if (isFlat(details)) return `"${name}" ${flatText(details)}`;
  return `"${name}" ${inspect(details, { depth: null, sorted: true, breakLength: Number.POSITIVE_INFINITY })}`;
}

function flatText(details: unknown): string {
  if (typeof details !== "object" || details === null) return JSON.stringify(details) ?? String(details);
  const fields = Object.entries(details).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return `{ ${fields.sort().join(", ")} }`;
}

/** A step whose recovery is "fail" was interrupted: then the run may end otherwise, that is what was asked for. */
function hasInterruptedStep({ journals }: Outcome): boolean {
  return [...journals].some(([run, journal]) =>
    journal.some((entry) => {
      if (entry.type !== "step.failed") return false;
      return hasCode((openEntry(jsonCodec, run, entry).payload as StepFailed).error, "step_interrupted");
    }),
  );
}

// Cancel

function lateCalls({ late }: World): Fault[] {
  const [first] = late;
  if (first === undefined) return [];
  return [
    {
      kind: "swallowed-cancel",
      line: first.line,
      message:
        `The body went on after the run was cancelled: it called ${first.call} at ${first.line}, which does nothing any more. ` +
        'Rethrow errors with code "cancelled" and "deadline_exceeded" instead of handling them like others.',
    },
  ];
}

function afterCancel({ name, line }: Effect): Fault {
  return {
    kind: "effect-after-cancel",
    ...lineOf(line),
    message: `The effect "${name}" was made at ${line} after the run was cancelled. Rethrow errors with code "cancelled", and make effects in steps: none begins after a cancel.`,
  };
}

function scriptFault(error: unknown): Fault {
  return {
    kind: "script",
    message: `The start of the run or its script failed: ${messageOf(error)} Both are made again after a crash: neither may mind that it was made before.`,
  };
}

// Two undisturbed histories

/** What makes two histories differ that nothing has disturbed: something that outlives a run. */
export function sharedState(first: Outcome, second: Outcome): Fault | null {
  const where = firstDifference(first, second);
  if (where === null) return null;
  const { step, words } = where;
  return {
    kind: "shared-state",
    ...(step === null ? {} : { step }),
    message:
      `Run twice without any crash, the workflow took two ways: ${words}. Something outlives a run: a variable outside of the body, ` +
      "or a fake that `fresh` does not reset. A restarted process has lost it; keep it in the run (ctx.set, a step's result) instead.",
  };
}

function firstDifference(first: Outcome, second: Outcome): { step: string | null; words: string } | null {
  for (const [run, journal] of first.journals) {
    const other = second.journals.get(run) ?? [];
    const odd = oddEntry(journal, other) ?? oddEntry(other, journal);
    if (odd === null) continue;
    const before = odd.before ?? null;
    const step = odd.entry.type.startsWith("step.") ? odd.entry.key : before;
    const [a, b] = journal.includes(odd.entry) ? [odd.entry, odd.twin] : [odd.twin, odd.entry];
    const after = before === null ? "" : ` after step "${before}"`;
    return { step, words: `first ${describe(run, a)}${after}, then ${describe(run, b)}` };
  }
  const [one, two] = [countEffects(first.requests), countEffects(second.requests)];
  for (const identity of new Set([...one.keys(), ...two.keys()])) {
    if (one.get(identity) === two.get(identity)) continue;
    const step =
      [...first.requests, ...second.requests].find((effect) => identityOf(effect) === identity)?.step ?? null;
    return {
      step,
      words: `the effect ${identity} ${one.get(identity) ?? 0} times, then ${two.get(identity) ?? 0} times`,
    };
  }
  return null;
}

/** The first entry that the other journal does not have alike, whatever the order: branches may come in any. */
function oddEntry(
  journal: readonly StoredEntry[],
  other: readonly StoredEntry[],
): { readonly entry: StoredEntry; readonly twin: StoredEntry | undefined; readonly before: string | null } | null {
  const nameOf = numbered();
  const twins = new Map(other.map((entry) => [nameOf(entry), entry]));
  const ownName = numbered();
  let before: string | null = null;
  for (const entry of journal) {
    const twin = twins.get(ownName(entry));
    const hasValue = entry.type === "step.completed" || entry.type === "run.succeeded";
    if (twin === undefined || (hasValue && !isDeepStrictEqual(entry.data, twin.data))) return { entry, twin, before };
    if (entry.type === "step.completed") before = entry.key;
  }
  return null;
}

/** Names entries by type, key and how often they have come. */
function numbered(): (entry: StoredEntry) => string {
  const times = new Map<string, number>();
  return ({ type, key }) => {
    const name = `${type} ${key}`;
    times.set(name, (times.get(name) ?? 0) + 1);
    return `${name} ${times.get(name)}`;
  };
}

function describe(run: string, entry: StoredEntry | undefined): string {
  if (entry === undefined) return "nothing";
  const { payload } = openEntry(jsonCodec, run, entry);
  const value = entry.type === "step.completed" || entry.type === "run.succeeded" ? ` with ${show(payload)}` : "";
  return `${entry.type}${entry.key === null ? "" : ` "${entry.key}"`}${value}`;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function lineOf(line: string | null): { line?: string } {
  return line === null ? {} : { line };
}

/** Ends of the run and of those that go on by themselves; children that were called answer to their parent. */
export function endsOf({ rows }: Ending, journals: Outcome["journals"]): Outcome["ends"] {
  const own = rows.filter(({ parent, state }) => (parent === null || parent.detached) && isTerminal(state));
  return new Map(own.map(({ id }) => [id, endOf(id, journals.get(id) ?? [])]));
}
