// Verdicts
// What a history shows, compared with the undisturbed one. Every fault says what happened, where, and what to do about it.
import { isDeepStrictEqual } from "node:util";
import { hasCode, messageOf } from "../../base/errors.ts";
import type { Parked, StoredEntry } from "../../core/journal.ts";
import { DEFAULTS } from "../../core/limits.ts";
import { isTerminal } from "../../core/transition.ts";
import type { Workflow } from "../../core/workflow.ts";
import type { Effect } from "../recorder.ts";
import { countEffects, hasSameEffects, type Identify } from "./effect-counts.ts";
import type { Ending } from "./history.ts";
import { RUN_ID } from "./history.ts";
import type { BodyStart } from "./mortal-engine.ts";
import { describeEnd, type End, endOf, isSameEnd, show } from "./run-end.ts";
import { failureOf, isOutcome, isSameOutcome, openSteps, outcomesOf } from "./step-outcomes.ts";
import type { Variation } from "./variation.ts";
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
    ...ending.stuck.map((row) => ({ kind: "stuck" as const, message: stuckWords(row) })),
    ...ending.orphans.map(({ run, why }) => ({
      kind: "orphan" as const,
      message: `Nothing would ever wake run ${run}: ${why}. Please report this: it is a fault of the engine.`,
    })),
    ...world.reports.map((message) => ({ kind: "orphan" as const, message })),
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

function stuckWords({ id, workflow, state }: Ending["stuck"][number]): string {
  // What nobody has begun, nobody knows.
  const next =
    state === "accepted"
      ? `If the test does not know "${workflow}", name it in \`workflows\`, or export it from the file under test.`
      : "If it waits for a signal, have the script send it.";
  return `Run ${id} of "${workflow}" is ${state} and nothing will move it any more. ${next}`;
}

/** What is different from the undisturbed history. */
export function differences(outcome: Outcome, undisturbed: Outcome, variation: Variation): Fault[] {
  const results = resultFaults(outcome, undisturbed, variation);
  const hasOtherEnd = results.length > 0;
  const faults = [
    ...results,
    ...effectFaults(outcome, undisturbed, variation, hasOtherEnd ? "other-end" : "same-end"),
    ...(hasOtherEnd || !variation.isObservedAlike ? [] : observedFaults(outcome, undisturbed)),
  ];
  // A run that ends otherwise because a step was interrupted for good does what was asked of it; and whoever is asked about one that was
  // left half done has no right answer.
  const isInterrupted = faults.length > 0 && (outcome.ending.world.halfDone.size > 0 || hasInterruptedStep(outcome));
  return isInterrupted ? effectFaults(outcome, undisturbed, variation, "other-way") : faults;
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

/** What the body reads that is not recorded, where, and what to use instead. */
export function hazardsOf({ hazards }: Pick<World, "hazards">): string[] {
  // A function has another name when it goes on after an await.
  const placeOf = (line: string) => /\(([^()]+)\)$/.exec(line)?.[1] ?? line;
  return [
    ...new Set([...hazards.values()].map(({ what, line }) => `${what} at ${placeOf(line)} (use ${INSTEAD[what]})`)),
  ];
}

function hazardWords({ hazards }: World): string {
  if (hazards.size === 0)
    return (
      "The body depends on something that is not recorded. If it is a variable that a step's function sets, return it from that step; " +
      "if it is one outside of the body, pass it in as input, or read it in a ctx.step."
    );
  return `The body reads ${hazardsOf({ hazards }).join(" and ")}, which gives another value in replay. Use what is named there, or move it into a ctx.step.`;
}

function otherEnd({ recorded, derived, parked, steps, world }: OtherEnd): Fault {
  const [step] = steps;
  const [hazard] = world.hazards.values();
  const what =
    steps.length > 0
      ? `step "${step}" ran once more, although its result is recorded`
      : parked === null
        ? `it ${describeEnd(derived)}`
        : `it was parked. ${whatHappened(parked).replace(/\.$/, "")}`;
  return {
    kind: "replay",
    ...(step === undefined ? {} : { step }),
    ...lineOf(hazard?.line ?? null),
    message: `The run ${describeEnd(recorded)}; replayed from its journal, ${what}. ${hazardWords(world)}`,
  };
}

/** A run that nothing has moved on until the deadline that every workflow has was waiting for what never comes. */
export function waitedInVain({ ends, journals }: Outcome, { definition }: Workflow<never, unknown>): Fault[] {
  const isGiven = definition.deadlineMs !== DEFAULTS.runDeadlineMs;
  if (isGiven || !hasCode(ends.get(RUN_ID)?.value, "deadline_exceeded")) return [];
  const wait = journals.get(RUN_ID)?.findLast(({ type }) => type === "signal.awaited")?.key ?? null;
  const next =
    wait === null
      ? "Give the workflow a `deadline` that it can keep, or an input that leads to an end."
      : `If it waits for signal "${wait}", have the script of the crash test send it.`;
  const days = DEFAULTS.runDeadlineMs / 86_400_000;
  const message = `The run did not end before its deadline of ${days} days, without any crash. ${next}`;
  return [{ kind: "stuck", message }];
}

// Results and effects

function resultFaults(outcome: Outcome, undisturbed: Outcome, variation: Variation): Fault[] {
  const { ends, ending } = outcome;
  return [...undisturbed.ends].flatMap(([run, expected]): Fault[] => {
    const end = ends.get(run) ?? null;
    if (expected === null || isSameEnd(expected, end) || ending.parked.has(run)) return [];
    if (end === null && (ending.stuck.length > 0 || ending.scriptError !== undefined)) return [];
    if (hasCode(end?.value, "deadline_exceeded") && !hasCode(expected.value, "deadline_exceeded"))
      return [{ kind: "stuck", message: hung(run) }];
    const step = otherResult(run, outcome, undisturbed, variation);
    // What else differs may follow from steps that vary; that it does so in truth, the replay shows.
    if (variation.hasSteps && step === null && end !== null) return [];
    const [hazard] = ending.world.hazards.values();
    const whose = run === RUN_ID ? "The run" : `Child run ${run}`;
    const why = step === null || hazard !== undefined ? hazardWords(ending.world) : otherStepWords(run, step, ending);
    const message = `${whose} ${describeEnd(end)}; undisturbed it ${describeEnd(expected)}. ${why}`;
    return [{ kind: "result", ...(step === null ? {} : { step }), ...lineOf(hazard?.line ?? null), message }];
  });
}

/** A step that ran once may have found what another one has done twice. */
function otherStepWords(run: string, step: string, { world }: Ending): string {
  if (hasRunAgain(world, run, step))
    return `Step "${step}" gave another result when it ran again: have it find out what its first start has done, by its \`key\`.`;
  const repeated = repeatsIn(world);
  const suspect = repeated.find(({ usedKey }) => !usedKey) ?? repeated[0];
  const before = suspect === undefined ? hazardWords(world) : repeatWords(suspect, world);
  return `Step "${step}" gave another result. ${before}`;
}

function hung(run: string): string {
  return (
    `Nothing moved run ${run} on until its deadline ended it; undisturbed it had ended long before. ` +
    "If it waits for a signal, have the script send it again after a crash."
  );
}

/** The first step that came to something else than undisturbed; where steps vary, one that does not and that ran again. */
function otherResult(run: string, outcome: Outcome, undisturbed: Outcome, variation: Variation): string | null {
  const usual = outcomesOf(run, undisturbed.journals.get(run) ?? []);
  for (const [name, { step, entry }] of outcomesOf(run, outcome.journals.get(run) ?? [])) {
    const expected = usual.get(name);
    if (expected === undefined || isSameOutcome(run, entry, expected.entry)) continue;
    if (!variation.hasSteps || (!variation.has(run, step) && hasRunAgain(outcome.ending.world, run, step))) return step;
  }
  return null;
}

function hasRunAgain({ starts }: World, run: string, step: string): boolean {
  return starts.filter((body) => body.run === run && body.step === step).length > 1;
}

/** Where steps vary, only what both histories have come to has effects that can be compared; what was left half done has none. */
function identifier(outcome: Outcome, undisturbed: Outcome, variation: Variation): Identify {
  const { identify, hasSteps } = variation;
  const { halfDone } = outcome.ending.world;
  if (!hasSteps && halfDone.size === 0) return identify;
  const [own, usual] = [stepsOf(outcome), stepsOf(undisturbed)];
  const isCompared = (step: string) => !halfDone.has(step) && (!hasSteps || (own.has(step) && usual.has(step)));
  return (effect) => (effect.step === null || isCompared(`${effect.run} ${effect.step}`) ? identify(effect) : null);
}

function stepsOf({ journals }: Outcome): ReadonlySet<string> {
  return new Set([...journals].flatMap(([run, journal]) => journal.map(({ key }) => `${run} ${key}`)));
}

/** How far a history may have gone another way than the undisturbed one: not at all, to less, or to other steps. */
type Course = "same-end" | "other-end" | "other-way";

/** A run that ended otherwise may have done less, never more. */
function effectFaults(outcome: Outcome, undisturbed: Outcome, variation: Variation, course: Course): Fault[] {
  if (outcome.ending.stuck.length > 0 || outcome.ending.parked.size > 0) return [];
  if (hasSameEffects(outcome.requests, undisturbed.requests)) return [];
  const identify = identifier(outcome, undisturbed, variation);
  const [counts, expected] = [countEffects(outcome.requests, identify), countEffects(undisturbed.requests, identify)];
  const isCancelled = undisturbed.ends.get(RUN_ID)?.type === "run.cancelled";
  const isAbandoned = abandonedIn([outcome, undisturbed]);
  const made = (effects: readonly Effect[], identity: string) =>
    effects.filter((effect) => effect.did && identify(effect) === identity);
  const faults: Fault[] = [];
  const replaced = new Set<string>();
  for (const [identity, times] of counts) {
    const usual = expected.get(identity) ?? 0;
    const effects = made(outcome.requests, identity);
    // How far a run comes before a cancel reaches it, or a step before nobody waits for it, a crash may change; how often it does a
    // thing, never.
    const isOpen = isCancelled || course === "other-way" || effects.every(isAbandoned);
    if (times <= (isOpen ? Math.max(1, usual) : usual)) continue;
    const twin = isOpen ? undefined : twinOf(effects, undisturbed.requests, counts, identify);
    if (twin === undefined) {
      const limit = isOpen && usual === 0 ? "1 at most" : usual;
      faults.push(tooMany(effects, `The effect ${identity} happened ${timesOf(times)} instead of ${limit}.`, outcome));
      continue;
    }
    replaced.add(twin);
    // What a run that ended otherwise was made from is told of its end.
    if (course === "same-end") faults.push(otherEffect(effects, identity, twin, outcome));
  }
  if (isCancelled || course !== "same-end") return faults;
  for (const [identity, usual] of expected) {
    const times = counts.get(identity) ?? 0;
    const effects = made(undisturbed.requests, identity);
    if (times >= usual || replaced.has(identity) || effects.every(isAbandoned)) continue;
    const happened = `The effect ${identity} happened ${timesOf(times)} instead of ${usual}.`;
    faults.push(tooFew(effects, happened, undisturbed.ending.world));
  }
  return faults;
}

/** Tells effects of steps that a run has begun and not waited for, as the loser of a race, in one history or the other. */
function abandonedIn(outcomes: readonly Outcome[]): (effect: Effect) => boolean {
  const steps = new Set<string>();
  for (const { journals } of outcomes)
    for (const [run, journal] of journals)
      for (const step of openSteps(journal, (entry) => isOutcome(run, entry))) steps.add(`${run} ${step}`);
  return ({ run, step }) => step !== null && steps.has(`${run} ${step}`);
}

/** What the same step has done undisturbed, and not now: the same effect, made from something else. */
function twinOf(
  effects: readonly Effect[],
  usual: readonly Effect[],
  counts: ReadonlyMap<string, number>,
  identify: Identify,
): string | undefined {
  const [first] = effects;
  if (first === undefined || first.step === null || effects.length > 1) return undefined;
  const { name, run, step } = first;
  const twin = usual.find((one) => {
    const isSame = one.did && one.name === name && one.run === run && one.step === step;
    return isSame && !counts.has(identify(one) ?? "");
  });
  return twin === undefined ? undefined : (identify(twin) ?? undefined);
}

function otherEffect([effect]: readonly Effect[], identity: string, usual: string, { ending }: Outcome): Fault {
  const step = effect?.step ?? "";
  const why =
    ending.world.hazards.size > 0
      ? hazardWords(ending.world)
      : "It was made from something that is not recorded: a variable that another step sets is not set when that step's result " +
        "comes from the journal. If that is it, return it from that step.";
  return {
    kind: "effects",
    step,
    message: `Step "${step}" made the effect ${identity}; undisturbed it made ${usual}. ${why}`,
  };
}

function tooMany(effects: readonly Effect[], happened: string, outcome: Outcome): Fault {
  const inBody = effects.find(({ where }) => where === "body");
  if (inBody !== undefined) {
    return {
      kind: "effects",
      ...lineOf(inBody.line),
      message: `${happened} The body makes it at ${inBody.line}, outside of any step, and so again in every replay. Move it into a ctx.step.`,
    };
  }
  const last = effects.at(-1);
  if (last === undefined || last.step === null)
    return { kind: "effects", message: `${happened} It was made outside of any run.` };
  const why =
    effects.length > 1
      ? repeatWords({ run: last.run, step: last.step }, outcome.ending.world, last.key !== null)
      : `It is made by step "${last.step}". ${hazardWords(outcome.ending.world)}`;
  return { kind: "effects", step: last.step, message: `${happened} ${why}` };
}

export const WHY_TOO_FEW: string =
  "Make sure that its step waits for it, and saves nothing that says it is done before it is; that whether it is made does not depend " +
  "on a variable that another step sets; and that its key is not used for two different effects.";

const WHY_FEWER_ATTEMPTS =
  "Each of its attempts makes it anew, also without any crash, and a crash leaves fewer attempts to fail. Pass the `key` that its function is " +
  "given on as an idempotency key: then it happens once, however often the step is tried.";

function tooFew([effect, ...more]: readonly Effect[], happened: string, { starts }: World): Fault {
  const step = effect?.step ?? null;
  const what = step === null ? "" : ` It is made by step "${step}".`;
  const isRetry = (body: BodyStart) => body.run === effect?.run && body.step === step && body.attempt > 1;
  const why = more.length > 0 && starts.some(isRetry) ? WHY_FEWER_ATTEMPTS : WHY_TOO_FEW;
  return {
    kind: "effects",
    ...(step === null ? {} : { step }),
    message: `${happened}${what} ${why}`,
  };
}

function timesOf(count: number): string {
  return count === 1 ? "1 time" : `${count} times`;
}

function observedFaults({ observed, ending }: Outcome, undisturbed: Outcome): Fault[] {
  if (isDeepStrictEqual(observed, undisturbed.observed)) return [];
  if (ending.stuck.length > 0 || ending.parked.size > 0) return [];
  const repeated = repeatsIn(ending.world);
  const suspect = repeated.find(({ usedKey }) => !usedKey) ?? repeated[0];
  const why =
    suspect === undefined
      ? "No step ran twice: look for an effect that the body makes outside of any step, and move it into a ctx.step."
      : repeatWords(suspect, ending.world);
  return [
    {
      kind: "effects",
      ...(suspect === undefined ? {} : { step: suspect.step }),
      message: `The outside world has seen ${show(observed)} instead of ${show(undisturbed.observed)}. ${why}`,
    },
  ];
}

function repeatWords({ run, step }: Pick<Effect, "run" | "step">, world: World, hasKey = false): string {
  // A run that goes on as another generation comes to its steps once more, with other keys.
  const byKey = new Map<string, BodyStart[]>();
  for (const body of world.starts)
    if (body.run === run && body.step === step) byKey.set(body.key, [...(byKey.get(body.key) ?? []), body]);
  const [starts = []] = [...byKey.values()].sort((a, b) => b.length - a.length);
  const advice =
    'Pass the `key` that its function is given on as an idempotency key, or set `recovery: "ask"` so that a person decides.';
  if (hasKey) return `Step "${step}" ran ${timesOf(starts.length)}, each time with another key. ${advice}`;
  if (starts.some(({ usedKey }) => usedKey))
    return `Step "${step}" ran ${timesOf(starts.length)} and read its key, but the effect came without it. ${advice}`;
  return `Step "${step}" ran ${timesOf(starts.length)} and does not use its idempotency key. ${advice}`;
}

/** Bodies that started again though no failure of theirs asked for it: the last start of each. */
export function repeatsIn({ starts }: World): (BodyStart & { readonly times: number })[] {
  const last = new Map<string, BodyStart>();
  const repeated = new Set<string>();
  for (const body of starts) {
    const known = last.get(body.key);
    if (known !== undefined && known.engine !== body.engine) repeated.add(body.key);
    last.set(body.key, body);
  }
  if (repeated.size === 0) return [];
  const times = new Map<string, number>();
  for (const { key } of starts) if (repeated.has(key)) times.set(key, (times.get(key) ?? 0) + 1);
  return [...times].map(([key, count]) => ({ ...(last.get(key) as BodyStart), times: count }));
}

/** A step whose recovery is "fail" was interrupted: then the run may end otherwise, that is what was asked for. */
function hasInterruptedStep({ journals }: Outcome): boolean {
  return [...journals].some(([run, journal]) =>
    journal.some((entry) => {
      return entry.type === "step.failed" && hasCode(failureOf(run, entry).error, "step_interrupted");
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
