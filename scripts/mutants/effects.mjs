// Effects (T-15, C-3, E-13, E-26) and compensation (CO1 to CO4, C-15).
import { SIMULATED } from "./simulator.mjs";

const inEffects = (title) => [{ file: "test/behaviour/effects.test.ts", title: `an effect on memory ${title}` }];
const inCompensation = (title) => [
  { file: "test/behaviour/compensation.test.ts", title: `compensation on memory ${title}` },
];

export const effectMutants = [
  {
    rule: "E-13",
    name: "a retry repeats an action of unknown outcome, whatever it is",
    changes: [
      {
        file: "src/client/fork-point.ts",
        from: 'if (outcome?.type === "step.failed" && isInDoubt(before.slice(0, failure + 1), outcome.key))',
        to: 'if (outcome?.type === "step.failed" && isInDoubt([], outcome.key))',
      },
    ],
    killers: [{ file: "test/behaviour/fork.test.ts", title: "C-3 E-13 does not repeat an action" }],
  },
  {
    rule: "T-15",
    name: "an effect begins before its plan is durable",
    changes: [
      {
        file: "src/core/steps.ts",
        from: "    const reserved = call.spending?.reserved ?? null;\n    this.#pass.draft.onDurable(() => {",
        to: '    const reserved = call.spending?.reserved ?? null;\n    if (call.startsAs === "effect.planned") return this.#begin(call);\n    this.#pass.draft.onDurable(() => {',
      },
    ],
    killers: [{ file: "test/behaviour/effects.test.ts", title: "memory S2-39 S2-6 T-15 is planned" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "T-15",
    name: "the ledger forgets what earlier generations have done",
    changes: [
      {
        file: "src/core/ledger.ts",
        from: "  return all.map(({ record }) => record);",
        to: "  return all.filter((one) => lines.get(one.record.effect) === one).map(({ record }) => record);",
      },
    ],
    killers: inEffects("T-15 the ledger keeps"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "C-3",
    name: "an effect is repeated after a crash without being looked for",
    changes: [
      {
        file: "src/core/undoable-call.ts",
        from: "const mayHaveHappenedBefore = info.attempt > 1 || this.#facts.mayBeLost;",
        to: "const mayHaveHappenedBefore = info.attempt < 1 || this.#facts.mayBeLost;",
      },
    ],
    killers: inEffects("C-3"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "C-3",
    name: "an effect has another key in every attempt",
    changes: [
      {
        file: "src/core/undoable-call.ts",
        from: "return this.#recorded ?? this.#facts.key ?? super.idempotencyKey;",
        to: "return `${this.#recorded ?? this.#facts.key ?? super.idempotencyKey}${this.attempt > 1 ? this.attempt : ''}`;",
      },
    ],
    killers: inEffects("C-3 C-18"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "E-26",
    name: "an unguarded effect is run again after a crash, and nobody is asked",
    changes: [{ file: "src/core/effect.ts", from: 'if (unsafe) return "ask";', to: 'if (unsafe) return "rerun";' }],
    killers: inEffects("C-3 E-26"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "E-26",
    name: "a person who says that it happened has it done all the same",
    changes: [
      {
        file: "src/core/recovery.ts",
        from: 'if (decision.choice === "rerun" || decision.choice === "did-not-happen")',
        to: 'if (["rerun", "did-not-happen", "happened"].includes(decision.choice))',
      },
    ],
    killers: inEffects("C-3 E-26"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "E-13",
    name: "an unguarded effect whose answer was lost is tried again",
    changes: [
      {
        file: "src/core/steps.ts",
        from: 'if (call.isUnsafe && !hasCode(error, "circuit_open")',
        to: 'if (call.isUnsafe && hasCode(error, "circuit_open")',
      },
    ],
    killers: inEffects("E-13 S2-50 S2-67"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "E-13",
    name: "retries of an unguarded effect are accepted",
    changes: [
      {
        file: "src/core/effect.ts",
        from: 'if (unsafe && (recovery === "rerun" || (retry !== undefined && retry !== false)))',
        to: 'if (unsafe && recovery === "rerun")',
      },
    ],
    killers: inEffects("E-13 S2-50 retries that were asked for"),
  },
  {
    rule: "S2-35",
    name: "a run that goes on undoing after a restart says that it runs",
    changes: [
      {
        file: "src/core/compensation.ts",
        from: `pass.draft.row({ state: transition(pass.id, pass.row.state, "compensating") });`,
        to: `if (pass.isLive) pass.draft.row({ state: transition(pass.id, pass.row.state, "compensating") });`,
      },
    ],
    killers: [{ file: "test/behaviour/states.test.ts", title: "the states of a run on memory S2-16 S2-25" }],
  },
  {
    rule: "CO1",
    name: "what was done first is undone first",
    changes: [
      {
        file: "src/core/compensation.ts",
        from: "this.#toUndo(error, pass.cancelling).reverse();",
        to: "this.#toUndo(error, pass.cancelling);",
      },
    ],
    killers: inCompensation("S2-25"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "CO1",
    name: "what nobody can tell of is not undone",
    changes: [
      {
        file: "src/core/undoable-call.ts",
        from: 'if (this.#ending?.kind !== "failed") return true;',
        to: 'if (this.#ending?.kind !== "failed") return this.#ending !== null;',
      },
    ],
    killers: inCompensation("C-15 an effect under way"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "CO1",
    name: "what surely failed is undone",
    changes: [
      {
        file: "src/core/undoable-call.ts",
        from: "return mayHaveHappened(this.#ending.error) || this.#earlier?.mayHaveHappened === true;",
        to: "return mayHaveHappened(this.#ending.error) || this.#earlier?.mayHaveHappened !== true;",
      },
    ],
    killers: inCompensation("CO1"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "CO1",
    name: "what an earlier attempt may have done is forgotten when the last one surely failed",
    changes: [
      {
        file: "src/core/steps.ts",
        from: '    call.marked("step.failed", mark);\n',
        to: "",
      },
    ],
    killers: inCompensation("CO1 what an earlier attempt"),
  },
  {
    rule: "CO1",
    name: "after a crash in between it is forgotten, too",
    changes: [{ file: "src/core/replay.ts", from: "    call.marked(entry.type, entry.payload);\n", to: "" }],
    killers: inCompensation("CO1 what"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "CO1",
    name: "an undo does not get what was returned",
    changes: [
      {
        file: "src/core/undoable-call.ts",
        from: 'return this.#ending?.kind === "done" ? this.#ending : null;',
        to: 'return this.#ending?.kind === "done" ? { value: null } : null;',
      },
    ],
    killers: inCompensation("S2-25"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "CO2",
    name: "what the body still asks for counts while its work is undone",
    changes: [
      {
        file: "src/core/body.ts",
        from: "return this.hasEndedInTurn || this.isCompensating;",
        to: "return this.hasEndedInTurn;",
      },
    ],
    killers: inCompensation("CO2 P19"),
  },
  {
    rule: "CO3",
    name: "after an undo that failed the others are not done",
    changes: [
      {
        file: "src/core/compensation.ts",
        from: "        this.#left.push({ effect: call.key, error: failure });\n",
        to: "        this.#left.push({ effect: call.key, error: failure });\n        break;\n",
      },
    ],
    killers: inCompensation("S2-58 C-15"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "CO3",
    name: "what could not be undone is not listed",
    changes: [
      {
        file: "src/core/compensation.ts",
        from: "        this.#left.push({ effect: call.key, error: failure });\n",
        to: "        void failure;\n",
      },
    ],
    killers: inCompensation("S2-58 C-15"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "CO3",
    name: "an undo that has failed is not tried again",
    changes: [
      {
        file: "src/core/compensation.ts",
        from: 'retry: { ...policy.retry, on: "any" }, recovery: "rerun"',
        to: 'retry: { ...policy.retry, on: "transient" }, recovery: "rerun"',
      },
    ],
    killers: inCompensation("S2-58"),
  },
  {
    rule: "CO4",
    name: "a cancel forgets the tries of an undo that are to come",
    changes: [
      {
        file: "src/core/endings.ts",
        from: "  if (pass.body.isCompensating) return cancelling;\n",
        to: "",
      },
    ],
    killers: inCompensation("P19 I16 a cancel that comes while"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "CO4",
    name: "a cancel rejects the undo that is under way",
    changes: [
      {
        file: "src/core/cancellation.ts",
        from: "    if (this.#pass.body.isCompensating) return;\n",
        to: "",
      },
    ],
    killers: inCompensation("P19 I16 a cancel that comes while"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "CO1",
    name: "a person is asked about an effect of a run whose body has failed",
    changes: [
      {
        file: "src/core/recovery.ts",
        from: "  if (pass.body.isOver) return;\n",
        to: "",
      },
    ],
    killers: [{ file: "test/behaviour/unknown-effects.test.ts", title: "once the body has failed" }],
  },
  {
    rule: "CO4",
    name: "a process without its code cancels a run that is being undone",
    changes: [
      {
        file: "src/worker/load-run.ts",
        from: '  if (entries.some(({ type }) => type === "run.compensating")) return true;\n',
        to: "",
      },
    ],
    killers: [{ file: "test/attacks/cancel.test.ts", title: "is being undone" }],
  },
  {
    rule: "C-15",
    name: "a cancel that leaves what was done undoes it",
    changes: [
      {
        file: "src/core/compensation.ts",
        from: 'if (cancelling?.cause === "cancel" && cancelling.compensate !== true) return false;',
        to: 'if (cancelling?.cause === "deadline" && cancelling.compensate !== true) return false;',
      },
    ],
    killers: inCompensation("C-15 D-10"),
  },
  {
    rule: "C-15",
    name: "a cancelled run with something left undone ends as cancelled",
    changes: [
      {
        file: "src/core/endings.ts",
        from: "if (pass.cancelling === null || pass.body.isIncomplete) return endOf(pass, result);",
        to: "if (pass.cancelling === null) return endOf(pass, result);",
      },
    ],
    killers: [{ file: "test/attacks/cancel.test.ts", title: "cannot undo everything" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "C-15",
    name: "a run without its code lists what it had undone as left",
    changes: [
      {
        file: "src/core/compensation.ts",
        from: '    if (type === "effect.compensated") left.delete(key.slice(0, -UNDO_SUFFIX.length));\n',
        to: "",
      },
    ],
    killers: [{ file: "src/core/compensation.test.ts" }],
  },
  {
    rule: "P19",
    name: "a step of the body begins while its work is undone",
    changes: [
      {
        file: "src/core/compensation.ts",
        from: "    pass.calls.dropAll();\n",
        to: "",
      },
    ],
    killers: [{ file: "test/attacks/cancel.test.ts", title: "is to be tried again is not" }],
    alsoKilledBy: [SIMULATED],
  },
];
