// What is wrong with an operation, which question it leaves open, and what to do about it.
import type { DetectorFailure } from "../check-detector.ts";
import type { Operation } from "./operation.ts";
import type { BodyAct } from "./stage.ts";

/** The questions that every step has to answer. */
export const QUESTIONS = {
  1: "does a second run have effects outside?",
  2: 'how is "already executed" detected?',
  3: "is the detection itself free of effects?",
} as const;

export type Question = keyof typeof QUESTIONS;

/** Something that an operation leaves open, or that is not as it says. */
export interface LintFinding {
  readonly kind:
    | "no_class"
    | "wrong_class"
    | "unguarded"
    | "acts_again"
    | "detector"
    | "detector_not_watched"
    | "undo_acts_again"
    | "in_body";
  readonly workflow: string;
  /** Its name; `null`: the body itself. */
  readonly operation: string | null;
  /** Which of the three questions have no answer, or a wrong one. */
  readonly questions: readonly Question[];
  /** What was found, and what to do about it. */
  readonly message: string;
}

type Found = Omit<LintFinding, "workflow" | "operation">;

export function findingsOf(operation: Operation): LintFinding[] {
  const { workflow, name, kind } = operation.declared;
  const found = kind === "effect" ? effectFindings(operation) : kind === "step" ? stepFindings(operation) : [];
  return [...found, ...undoFindings(operation)].map((one) => ({ ...one, workflow, operation: name }));
}

export function bodyFinding({ workflow, name, line }: BodyAct): LintFinding {
  return {
    kind: "in_body",
    workflow,
    operation: null,
    questions: [1, 2],
    message: `The body of workflow "${workflow}" did "${name}" outside of any step, and does it again whenever the run is replayed: ${line}. Put it into ctx.effect.`,
  };
}

// Steps

function stepFindings(operation: Operation): Found[] {
  const { name, canUndo, recovery } = operation.declared;
  if (!canUndo && operation.did.size > 0) return [unclassedStep(operation)];
  if (!canUndo || recovery !== "rerun") return [];
  const isHarmless = operation.isRepeated && operation.again.size === 0 && operation.repeatError === null;
  if (isHarmless) return [];
  return [
    {
      kind: "unguarded",
      questions: [2],
      message: `Step "${name}" can be undone, so it changes something, and a crash runs it again${seenAgain(operation)}. Make it ctx.effect with a \`detect\`, or with \`idempotent: true\` if the outside recognises its key; or give it recovery "ask".`,
    },
  ];
}

function unclassedStep(operation: Operation): Found {
  const { name } = operation.declared;
  const how = operation.isRepeated && operation.again.size === 0 ? "idempotent: true" : "detect: …";
  return {
    kind: "no_class",
    questions: [1, 2],
    message: `Step "${name}" did ${quoted(operation.did)} outside and has no class${seenAgain(operation)}. Make it an effect that says what it may change and how a repetition is noticed: ctx.effect("${name}", { class: "write", ${how}, do: … }).`,
  };
}

/** What came of the second run, where there was one. */
function seenAgain({ isRepeated, again, repeatError }: Operation): string {
  if (!isRepeated) return "";
  if (again.size > 0) return `; run again, it did ${quoted(again)} again`;
  return repeatError === null ? "; run again, it changed nothing" : `; run again, it failed: ${repeatError}`;
}

// Effects

function effectFindings(operation: Operation): Found[] {
  return [...classFindings(operation), ...guardFindings(operation), ...detectorFindings(operation)];
}

function classFindings({ declared, did }: Operation): Found[] {
  const { name, class: level } = declared;
  if (level === null) {
    const message = `Effect "${name}" has no class. Say what it may change: class "read", "draft", "write" or "execute". Without one it counts as "write".`;
    return [{ kind: "no_class", questions: [1], message }];
  }
  if (level !== "read" || did.size === 0) return [];
  const message = `Effect "${name}" has class "read", and did ${quoted(did)} outside. Give it the class "draft", "write" or "execute".`;
  return [{ kind: "wrong_class", questions: [1], message }];
}

function guardFindings(operation: Operation): Found[] {
  const { name, guard, canUndo, needsApproval } = operation.declared;
  const level = operation.declared.class ?? "write";
  const isChange = level === "write" || level === "execute";
  if (guard === "none" && isChange && !canUndo && !needsApproval) {
    const message = `Effect "${name}" of class "${level}" has nothing that keeps it from happening twice, takes it back, or lets somebody approve it. Give it a \`detect\`, \`idempotent: true\` if the outside recognises its key, an \`undo\`, or an approval it \`needs\`.`;
    return [{ kind: "unguarded", questions: [2], message }];
  }
  const { again, repeatError } = operation;
  if (level === "read" || (again.size === 0 && repeatError === null)) return [];
  const word = SAYS[guard] ?? `is repeated after a crash, as class "${level}" is`;
  const message = `Effect "${name}" ${word}, and${seenAgain(operation).slice(1)}. Pass its \`key\` on to the outside, or give it a \`detect\`.`;
  return [{ kind: "acts_again", questions: [1], message }];
}

const SAYS: Readonly<Record<string, string>> = {
  idempotent: "says `idempotent: true`",
  natural: 'says `idempotent: "natural"`',
};

function detectorFindings({ declared, detectorFailures, isDetectorAsked, isWatched }: Operation): Found[] {
  const { name, guard } = declared;
  if (guard !== "detect") return [];
  const found = unique(detectorFailures).map((failure) => detectorFinding(name, failure));
  if (isDetectorAsked && isWatched) return found;
  const why = isDetectorAsked
    ? "No recorder watched it. Give `recorder`, and let your fakes call its `record`."
    : "Its effect was not made in any play. Give a play in which it is.";
  const message = `Nobody can tell whether the detector of effect "${name}" only looks. ${why}`;
  return [...found, { kind: "detector_not_watched", questions: [3], message }];
}

function detectorFinding(name: string, { kind, message }: DetectorFailure): Found {
  return { kind: "detector", questions: [kind === "wrote" ? 3 : 2], message: `Effect "${name}": ${message}` };
}

/** The first of each kind: where it is run often, each run would tell the same with other values. */
function unique(failures: readonly DetectorFailure[]): DetectorFailure[] {
  return failures.filter((one, i) => failures.findIndex(({ kind }) => kind === one.kind) === i);
}

// Undo

function undoFindings({ declared, undoneAgain, undoError }: Operation): Found[] {
  if (undoneAgain.size === 0 && undoError === null) return [];
  const what = undoneAgain.size > 0 ? `did ${quoted(undoneAgain)} again` : `failed: ${undoError}`;
  const message = `The undo of "${declared.name}", run a second time, ${what}. A crash may run it twice: pass its \`key\` on to the outside, or let it look first.`;
  return [{ kind: "undo_acts_again", questions: [1], message }];
}

function quoted(names: ReadonlySet<string>): string {
  return [...names].map((name) => `"${name}"`).join(", ");
}
