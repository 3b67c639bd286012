// What must hold for every run, each as a question to its journal, its row and the evidence. A rule answers with how many things it looked at
// and what is wrong with them. `facts` is { row, journal, hashes, waits, inbox, evidence, steps, cancelAsked, isFinal }.
import { ANSWERS } from "./programs.mjs";

const ENDS = new Map([
  ["run.succeeded", "succeeded"],
  ["run.failed", "failed"],
  ["run.cancelled", "cancelled"],
]);
const CALLS = new Set(["step.started", "timer.set", "signal.awaited", "child.started"]);

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const endOf = ({ journal }) => ENDS.get(journal.at(-1)?.type) ?? null;
const toldBy = (entry) => (entry?.type === "run.succeeded" ? entry.payload : entry?.payload?.error?.message);

/** What was lost and is said again comes after what was not lost. */
const inOrder = (value) => (Array.isArray(value) ? value.toSorted((a, b) => a - b) : value);

function isRight(expected, value) {
  if (expected instanceof RegExp) return expected.test(value);
  if (typeof expected !== "object" || expected === null || Array.isArray(expected)) return same(expected, value);
  return Object.entries(expected).every(([key, part]) => same(part, value?.[key]));
}

/** Applies `wrong` to each thing; it answers with what is wrong, or with nothing. */
function each(things, wrong) {
  return { judged: things.length, wrong: things.flatMap((thing) => wrong(thing) ?? []) };
}

const unchanged = {
  name: "I1 I3 what was read of a journal once is there for good",
  of: ({ evidence, hashes }) =>
    each(evidence.seen, ({ seq, hash }) => {
      if (hashes[seq] !== hash)
        return `entry ${seq} was read before, and is ${seq in hashes ? "another one" : "missing"} now`;
    }),
};

const agrees = {
  name: "I4 the run's row says what its journal says",
  of: (facts) => {
    const { row, waits, inbox } = facts;
    const end = endOf(facts);
    const isEnded = [...ENDS.values()].includes(row.state);
    const wrong = [];
    if (isEnded ? row.state !== end : end !== null)
      wrong.push(`its state is ${row.state}, its journal ends with ${end ?? "no end"}`);
    if (end !== null && waits.length + inbox.length > 0)
      wrong.push("it has ended, and waits or unread messages are left");
    if (end !== null && (row.owner !== null || row.readyAt !== null || row.wakeAt !== null))
      wrong.push("it has ended, and something would wake it");
    return { judged: 1, wrong };
  },
};

const once = {
  name: "I6 a step has one outcome, and nothing of it comes after",
  of: ({ steps }) =>
    each([...steps], ([key, { marks, outcomes }]) => {
      const final = outcomes.filter(({ isFinal }) => isFinal);
      if (final.length > 1) return `step ${key} has ${final.length} outcomes`;
      if (final.length === 0) return undefined;
      const later = [...marks.values()].flat().some((seq) => seq > final[0].seq);
      return later ? `step ${key} was started again after its outcome at ${final[0].seq}` : undefined;
    }),
};

const marked = {
  name: "I6 P13 a body starts once for each mark in the journal, never without",
  of: ({ evidence, steps }) => {
    const starts = new Set();
    return each(evidence.starts, ({ key, attempt, pid }) => {
      const name = `step ${key}, attempt ${attempt}, in process ${pid}`;
      if (starts.has(`${key} ${attempt}`)) return `${name}: its body started a second time`;
      starts.add(`${key} ${attempt}`);
      if (steps.get(key)?.marks.get(attempt)?.length !== 1)
        return `${name}: its body started, and the journal has no mark of it`;
    });
  },
};

const late = {
  name: "I6 P37 no body starts that is known to be over",
  of: ({ evidence, steps, journal }) => {
    const over =
      journal.find(({ type }) => type === "run.cancelling" || ENDS.has(type))?.seq ?? Number.POSITIVE_INFINITY;
    // A body starts only behind its mark, so whatever stands before the mark of a started step was durable by then.
    let durable = -1;
    // A process can be frozen between its last look at the lease and the first word of the body: the look is what counts.
    const looked = ({ gate, mono }) => gate ?? mono;
    const starts = evidence.starts.toSorted((a, b) => looked(a) - looked(b));
    return each(starts, ({ key, attempt, pid, ...start }) => {
      const story = steps.get(key);
      const outcome = story?.outcomes.find(({ isFinal }) => isFinal)?.seq ?? Number.POSITIVE_INFINITY;
      const known = Math.max(durable, ...evidence.seen.filter((one) => one.mono < looked(start)).map(({ seq }) => seq));
      durable = Math.max(durable, story?.marks.get(attempt)?.[0] ?? -1);
      if (Math.min(outcome, over) <= known)
        return `step ${key}, attempt ${attempt}, in process ${pid} started, though entry ${Math.min(outcome, over)} had ended it before`;
    });
  },
};

const stale = {
  name: "I8 I9 P20 an outcome comes from the attempt that was started last",
  of: ({ steps, evidence }) => {
    const effects = new Set(evidence.effects.map(({ key, attempt }) => `${key} ${attempt}`));
    const outcomes = [...steps].flatMap(([key, story]) => story.outcomes.map((outcome) => ({ key, ...outcome })));
    return each(outcomes, ({ key, type, attempt, latest, seq }) => {
      if (attempt !== latest)
        return `entry ${seq} is the outcome of attempt ${attempt} of step ${key}; attempt ${latest} was under way`;
      if (type === "step.completed" && !effects.has(`${key} ${attempt}`))
        return `entry ${seq} completes step ${key}, whose effect nobody saw`;
    });
  },
};

const timers = {
  name: "I13 no timer fires before it is due",
  of: ({ journal }) => {
    const due = new Map();
    for (const { type, key, payload } of journal) if (type === "timer.set") due.set(key, payload.due);
    const fired = journal.filter(({ type, payload }) => type === "timer.fired" && payload === null);
    return each(fired, ({ key, at, seq }) =>
      at < due.get(key) ? `entry ${seq}: timer ${key} fired ${due.get(key) - at} ms early` : undefined,
    );
  },
};

const signals = {
  name: "I1 I14 an acknowledged signal is delivered once, in order",
  of: (facts) => {
    const received = facts.journal.filter(({ type }) => type === "signal.received").map(({ payload }) => payload.id);
    const result = each(facts.evidence.signalled, (id) => {
      const times = received.filter((one) => one === id).length;
      if (times > 1) return `signal ${id} was delivered ${times} times`;
      if (times === 0 && endOf(facts) !== null) return `signal ${id} was acknowledged and never delivered`;
    });
    const isSorted = received.every((id, i) => i === 0 || received[i - 1] < id);
    if (!isSorted) result.wrong.push(`signals came in another order than they were sent: ${received.join(", ")}`);
    return result;
  },
};

const cancels = {
  name: "I16 what a cancel was answered with is how the run ended",
  of: (facts) => {
    const end = endOf(facts);
    return each(facts.evidence.cancels, (outcome) => {
      const said = outcome === "cancelling" ? "cancelled" : outcome;
      if (said !== end && (end !== null || outcome !== "cancelling" || facts.isFinal))
        return `a cancel was answered "${outcome}"; the run is ${end ?? "not over"}`;
    });
  },
};

const quiet = {
  name: "I16 P19 no call is recorded after a cancel",
  of: ({ journal }) => {
    const at = journal.findIndex(({ type }) => type === "run.cancelling");
    const after = at === -1 ? [] : journal.slice(at + 1);
    return each(after, ({ type, seq }) =>
      CALLS.has(type) ? `entry ${seq} is a ${type} after the cancel at ${at}` : undefined,
    );
  },
};

const results = {
  name: "I1 I16 a result that was told is the one that is recorded",
  of: ({ evidence, journal }) => {
    const last = journal.at(-1);
    return each(evidence.results, ({ output, error }) => {
      const isSame =
        last?.type === "run.succeeded" ? same(output, last.payload) : error === toldBy(last) && ENDS.has(last?.type);
      if (!isSame)
        return `its result was told as ${JSON.stringify(output ?? error)}; recorded is ${last?.type} ${JSON.stringify(toldBy(last))}`;
    });
  },
};

const answersBy = (read) => ({
  name: "the result is the one that can be computed",
  of: (facts) => {
    const end = endOf(facts);
    if (end === null) return { judged: 0, wrong: facts.isFinal ? [`it has not ended: it is ${facts.row.state}`] : [] };
    const { workflow, input } = facts.journal[0].payload;
    const last = facts.journal.at(-1);
    const right = ANSWERS[workflow](input);
    if (end === "cancelled" && facts.cancelAsked) return { judged: 1, wrong: [] };
    if (right.some(({ state, value }) => state === end && isRight(value, read(toldBy(last)))))
      return { judged: 1, wrong: [] };
    return {
      judged: 1,
      wrong: [`it ${end} with ${JSON.stringify(toldBy(last))}; right would be ${JSON.stringify(right)}`],
    };
  },
});

const parks = {
  name: "I5 I19 who brings processes down is parked, and no one for another reason",
  of: (facts) => {
    const reasons = facts.journal.filter(({ type }) => type === "run.parked").map(({ payload }) => payload.reason);
    const result = each(reasons, (reason) => (reason === "poisoned" ? undefined : `it was parked: ${reason}`));
    const isHog = facts.row.workflow === "hog";
    if (isHog && facts.isFinal && reasons.length === 0)
      result.wrong.push("it takes all memory there is, and was never parked");
    return isHog ? { ...result, judged: Math.max(1, result.judged) } : result;
  },
};

export const RULES = [
  unchanged,
  agrees,
  once,
  marked,
  late,
  stale,
  timers,
  signals,
  cancels,
  quiet,
  results,
  answersBy((value) => value),
  parks,
];

/** A rule that looks only at what was begun and seen after `since()`. */
const lately = (rule, since) => ({
  name: rule.name,
  of: (facts) => {
    const { starts, seen } = facts.evidence;
    const ofLate = (lines) => lines.filter(({ mono }) => mono > since());
    return rule.of({ ...facts, evidence: { ...facts.evidence, starts: ofLate(starts), seen: ofLate(seen) } });
  },
});

/**
 * What must hold of a store that has lost its newest past, and has had time until `since()` to find out: journals and rows agree and make sense, all
 * that is left ends rightly, and nobody goes on with what was lost.
 */
export const rulesAfterLoss = (since) => [
  agrees,
  once,
  lately(marked, since),
  lately(late, since),
  timers,
  quiet,
  answersBy(inOrder),
  parks,
];
