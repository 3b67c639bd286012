// Families of cases
// What every durable workflow must stand, made from one case that goes well: it is played once, and each way in which things can go wrong is
// put where it can happen. The same answers must lead to the same end; where they cannot, to one that is accounted for.
import { encode } from "../../base/codec.ts";
import type { Workflow } from "../../core/workflow.ts";
import type { EvalSubject } from "./eval-setup.ts";
import type { Outcome } from "./expectations.ts";
import type { EvalCase, EvalEvent, EvalExpectations } from "./read-case.ts";
import { playEval } from "./run-eval.ts";
import type { Answered } from "./script.ts";

export const EVAL_FAMILIES = [
  "restart",
  "duplicate",
  "failure",
  "approval",
  "deployment",
  "cancel",
  "replay",
  "audit",
] as const;

export type EvalFamily = (typeof EVAL_FAMILIES)[number];

/** A case that was made, and what it is to show. */
export interface FamilyCase {
  readonly family: EvalFamily;
  readonly case: EvalCase;
}

/** What the undisturbed case came to. */
interface Base {
  readonly one: EvalCase;
  readonly outcome: Outcome;
  /** The calls of the run, each once, without undos. */
  readonly calls: readonly Answered[];
  /** What is as it was, whatever happened on the way. */
  readonly same: EvalExpectations;
}

/** Plays a case that goes well, and makes the eight families from it. */
export async function evalFamilies(
  one: EvalCase,
  setups: readonly (EvalSubject | Workflow<never, unknown>)[],
): Promise<FamilyCase[]> {
  const { outcome, result } = await playEval(one, setups);
  const done = outcome.answered.filter(({ did, tool }) => did && !tool.endsWith("/undo"));
  const calls = [...new Map(done.map((call) => [`${call.run} ${call.key}`, call])).values()];
  const same = { ...one.expected, final_status: result.status[0] ?? "succeeded", ...standing(outcome) };
  const base = { one, outcome, calls, same };
  return [
    ...restarts(base),
    ...duplicates(base),
    ...failures(base),
    ...approvals(base),
    ...deployments(base),
    ...cancels(base),
    made(base, "replay", "export", one.events, { ...same, replays: true }),
    made(base, "audit", "end", one.events, {
      ...same,
      ...(outcome.stopReason !== null && { stop_reason: outcome.stopReason }),
    }),
  ];
}

/** Output and ledger. */
function standing({ output, effects }: Outcome): EvalExpectations {
  const statuses = Object.fromEntries(effects.map(({ effect, status }) => [effect, status]));
  return { effects: statuses, ...(output !== undefined && { output: JSON.parse(encode(output)) as unknown }) };
}

function made(
  { one }: Base,
  family: EvalFamily,
  name: string,
  events: readonly EvalEvent[],
  expected: EvalExpectations,
): FamilyCase {
  return { family, case: { ...one, case_id: `${one.case_id}/${family}/${name}`, events, expected } };
}

function inserted({ events }: EvalCase, at: number, ...more: readonly EvalEvent[]): EvalEvent[] {
  return [...events.slice(0, at), ...more, ...events.slice(at)];
}

/** Places at which the run waits for something that is no answer of a tool. */
function acts({ events }: EvalCase): number[] {
  return events.flatMap(({ type }, index) => (type.startsWith("tool_") ? [] : [index]));
}

/** S2-76: the process dies when a call has taken effect and nobody knows yet, and wherever the run rests. */
function restarts(base: Base): FamilyCase[] {
  const { one, calls, same } = base;
  const inCalls = calls.map((call) => {
    const events = inserted(one, call.position, { type: "crash", tool: call.key });
    return made(
      base,
      "restart",
      `in ${call.key}`,
      call.isUnsafe ? events.slice(0, endOfCrash(events, call)) : events,
      call.isUnsafe ? { final_status: "parked" } : same,
    );
  });
  const atRest = [...acts(one), one.events.length].map((at) =>
    made(base, "restart", `before event ${at}`, inserted(one, at, { type: "crash" }), same),
  );
  return [...inCalls, ...atRest];
}

/** Nobody can tell what became of an unsafe effect: a person is asked, and what was to follow waits. */
function endOfCrash(events: readonly EvalEvent[], { position }: Answered): number {
  const next = events.findIndex(({ type }, index) => index > position && !type.startsWith("tool_"));
  return next < 0 ? events.length : next;
}

/** S2-77: whoever starts or says something twice has done it once. */
function duplicates(base: Base): FamilyCase[] {
  const { one, same } = base;
  const said = acts(one).filter((at) => /^(signal|approval_granted|approval_denied)$/.test(one.events[at]?.type ?? ""));
  return [
    made(base, "duplicate", "start", inserted(one, 0, { type: "duplicate_event", of: "start" }), same),
    made(base, "duplicate", "start at the end", [...one.events, { type: "duplicate_event", of: "start" }], same),
    ...said.map((at) =>
      made(base, "duplicate", `event ${at}`, inserted(one, at + 1, { type: "duplicate_event" }), same),
    ),
  ];
}

/** S2-78: a failure that passes changes nothing; one that does not ends the run, and what it had done is taken back. */
function failures(base: Base): FamilyCase[] {
  const { one, calls, same } = base;
  return calls.flatMap((call) => {
    const fail = (kind: "retryable" | "fatal") =>
      inserted(one, call.position, { type: "tool_failure", tool: call.key, kind, error: `${call.tool} said no` });
    const stops = {
      final_status: "failed",
      effects: takenBack(base, (other) => isBefore(base, other, call)),
      must_not: [call.key],
    };
    const kept = call.isUnsafe ? { final_status: "parked" } : call.retries > 0 ? same : stops;
    const upTo = (events: readonly EvalEvent[]) => events.slice(0, endOfCrash(events, call));
    return [
      made(base, "failure", `retryable ${call.key}`, kept === same ? fail("retryable") : upTo(fail("retryable")), kept),
      made(base, "failure", `fatal ${call.key}`, leftOut(upTo(fail("fatal")), base, call), stops),
    ];
  });
}

/** Without answers for calls that the run does not come to any more. */
function leftOut(events: readonly EvalEvent[], { outcome, one }: Base, call: Answered): EvalEvent[] {
  const later = outcome.answered.slice(outcome.answered.indexOf(call)).filter(({ event }) => event !== null);
  const unused = new Set(later.map(({ event }) => one.events[event ?? -1]));
  return events.filter((event) => !unused.has(event));
}

function isBefore({ calls }: Base, one: Answered, other: Answered): boolean {
  return calls.indexOf(one) < calls.indexOf(other);
}

/** What can be undone, of the calls that were made. */
function takenBack({ outcome, calls }: Base, wasMade: (call: Answered) => boolean): Record<string, string> {
  const madeKeys = new Set(calls.filter(wasMade).map(({ idempotencyKey }) => idempotencyKey));
  const undone = outcome.effects.filter(({ undo, key }) => undo && madeKeys.has(key));
  return Object.fromEntries(undone.map(({ effect }) => [effect, "compensated"]));
}

/** S2-79: a wait waits, a no and a silence lead to nothing that was asked for, and a yes counts after a restart. */
function approvals(base: Base): FamilyCase[] {
  const { one, outcome, same } = base;
  const needed = outcome.effects.filter(({ approval }) => approval !== null).map(({ effect }) => effect);
  const granted = acts(one).filter((at) => one.events[at]?.type === "approval_granted");
  return granted.flatMap((at) => {
    const before = one.events.slice(0, at);
    const said = one.events[at];
    const which =
      said?.type === "approval_granted" && said.approval_id !== undefined ? { approval_id: said.approval_id } : {};
    const mustNot = { must_not: needed };
    const trace = (word: string) => ({ ...mustNot, required_trace_events: [word] });
    return [
      made(base, "approval", `wait ${at}`, before, { final_status: "waiting", ...trace("approval_request") }),
      made(
        base,
        "approval",
        `denial ${at}`,
        [...before, { type: "approval_denied", ...which }],
        trace("approval_denied"),
      ),
      made(
        base,
        "approval",
        `timeout ${at}`,
        [...before, { type: "approval_timeout", ...which }],
        trace("approval_timeout"),
      ),
      made(base, "approval", `resume ${at}`, inserted(one, at + 1, { type: "crash" }), same),
    ];
  });
}

/** S2-80: a newer version takes over while the run waits, and while a call is under way. */
function deployments(base: Base): FamilyCase[] {
  const { one, calls, same } = base;
  const waiting = acts(one).map((at) =>
    made(base, "deployment", `waiting at ${at}`, inserted(one, at, { type: "deploy" }), same),
  );
  const call = calls.find(({ isUnsafe }) => !isUnsafe);
  return call === undefined
    ? waiting
    : [...waiting, made(base, "deployment", `running ${call.key}`, during(base, call, { type: "deploy" }), same)];
}

/** With something that happens while this call is under way. */
function during({ one }: Base, call: Answered, event: EvalEvent): EvalEvent[] {
  const answer: EvalEvent[] = call.event === null ? [{ type: "tool_success", tool: call.key }] : [];
  return inserted(one, call.position, event, ...answer);
}

/** S2-81: a cancel stops the run; with `compensate`, what it had done is taken back. */
function cancels(base: Base): FamilyCase[] {
  const { one, calls } = base;
  const stopped = { final_status: "cancelled" };
  const waiting = acts(one).flatMap((at) => {
    const before = one.events.slice(0, at);
    const effects = takenBack(base, ({ position }) => position <= at);
    return [
      made(base, "cancel", `waiting at ${at}`, [...before, { type: "cancel" }], stopped),
      made(base, "cancel", `waiting at ${at}, undone`, [...before, { type: "cancel", compensate: true }], {
        ...stopped,
        effects,
      }),
    ];
  });
  const call = calls.find(({ isUnsafe }) => !isUnsafe);
  if (call === undefined) return waiting;
  const events = one.events.slice(0, call.position);
  const running: EvalEvent[] = [
    ...events,
    { type: "cancel", compensate: true },
    { type: "tool_success", tool: call.key },
  ];
  return [
    ...waiting,
    {
      family: "cancel",
      case: { ...made(base, "cancel", `running ${call.key}`, running, stopped).case, events_may_be_left: true },
    },
  ];
}
