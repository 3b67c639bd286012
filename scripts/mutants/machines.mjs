// Machines (MR1 to MR4, S2-40 to S2-48, T-16) and the tables of states (M-1).

const inMachines = (topic, title) => [
  { file: `test/behaviour/machine-${topic}.test.ts`, title: `a machine on memory ${title}` },
];

export const machineMutants = [
  {
    rule: "S2-2",
    name: "a step goes on to whatever step it names",
    changes: [
      {
        file: "src/flows/machine-rules.ts",
        from: "if (step.next.has(next as string)) return;",
        to: "if (step.next.size > 0) return;",
      },
    ],
    killers: inMachines("refusals", "S2-2 S2-34"),
  },
  {
    rule: "S2-2",
    name: "a step does what it does not say it can",
    changes: [
      {
        file: "src/flows/machine-rules.ts",
        from: "if (!step.can.has(word))",
        to: 'if (!step.can.has(word) && word === "retry")',
      },
    ],
    killers: inMachines("refusals", "S2-2 S2-34"),
  },
  {
    rule: "S2-42",
    name: "a patch brings fields that the state does not have",
    changes: [
      {
        file: "src/flows/machine-rules.ts",
        from: "for (const field of Object.keys(patch)) if (!Object.hasOwn(state, field)) throw unknownField(step, state, field);",
        to: "for (const field of Object.keys(patch)) if (field in []) throw unknownField(step, state, field);",
      },
    ],
    killers: inMachines("refusals", "S2-2 S2-34"),
  },
  {
    rule: "S2-2",
    name: "an agent may be refused without end",
    changes: [
      {
        file: "src/flows/machine-run.ts",
        from: "if (rejected.length >= proposals)",
        to: "if (rejected.length >= proposals + 1)",
      },
    ],
    killers: inMachines("refusals", "S2-2 S2-5"),
  },
  {
    rule: "S2-5",
    name: "an agent that escalates in a branch counts as done",
    changes: [
      {
        file: "src/flows/machine-run.ts",
        from: "if (this.#plan.escalation === null || isBranch)",
        to: "if (this.#plan.escalation === null && isBranch)",
      },
    ],
    killers: inMachines("refusals", "S2-5 an agent that escalates"),
  },
  {
    rule: "S2-40",
    name: "the current step is in the store only when the run ends",
    changes: [
      {
        file: "src/flows/machine-run.ts",
        from: "this.#publish({ ...at, step, completed: withSteps(at.completed, completed) });",
        to: "this.#at = { ...at, step, completed: withSteps(at.completed, completed) };",
      },
    ],
    killers: inMachines("transitions", "S2-14 S2-22"),
  },
  {
    rule: "S2-40",
    name: "what is waited for is no part of where a run is",
    changes: [
      {
        file: "src/flows/machine-run.ts",
        from: "if (this.#at.pending === undefined) this.#publish({ ...this.#at, pending });",
        to: "if (this.#at.pending === undefined) this.#at = { ...this.#at, pending };",
      },
    ],
    killers: inMachines("state", "P10 C-23 S2-40"),
  },
  {
    rule: "P10",
    name: "a machine does again in another generation what has the key of the first",
    changes: [
      {
        file: "src/flows/machine-run.ts",
        from: "this.#isResumed && uses > 1 ?",
        to: "this.#isResumed && uses < 1 ?",
      },
    ],
    killers: inMachines("state", "P10 C-23 S2-40"),
  },
  {
    rule: "S2-44",
    name: "a retry does not wait as long as it says",
    changes: [
      {
        file: "src/flows/machine-run.ts",
        from: "throw later(decided.reason, decided.delay);",
        to: "throw later(decided.reason, undefined);",
      },
    ],
    killers: inMachines("transitions", "S2-16 S2-24"),
  },
  {
    rule: "S2-45",
    name: "whoever has one action undone has the later ones undone as well",
    changes: [
      {
        file: "src/core/compensation.ts",
        from: 'readProperty(scope, "later") === true ? undefined : first + 1',
        to: 'readProperty(scope, "later") === true ? undefined : undefined',
      },
    ],
    killers: inMachines("transitions", "S2-16 S2-25"),
  },
  {
    rule: "S2-48",
    name: "a run that cancels itself has failed",
    changes: [
      {
        file: "src/core/endings.ts",
        from: 'readProperty(fields, "self") === true &&',
        to: 'readProperty(fields, "self") === false &&',
      },
    ],
    killers: inMachines("transitions", "S2-16 S2-30"),
  },
  {
    rule: "T-16",
    name: "of two parallel patches of a field without a rule the last one wins",
    changes: [
      {
        file: "src/flows/patch.ts",
        from: "if (other === undefined || rules[field] !== undefined) continue;",
        to: "if (other !== step) continue;",
      },
    ],
    killers: inMachines("state", "T-16 parallel steps that change"),
  },
  {
    rule: "M-1",
    name: "an effect that was executed is planned again",
    changes: [
      {
        file: "src/core/state-machines.ts",
        from: 'executed: ["compensated"],',
        to: 'executed: ["compensated", "planned"],',
      },
    ],
    killers: [{ file: "src/core/state-machines.test.ts", title: "M-1 the states of each effect" }],
  },
  {
    rule: "M-1",
    name: "a state may follow itself after its end",
    changes: [
      {
        file: "src/core/state-machine.ts",
        from: "return from === to ? !isEnd(machine, from) :",
        to: "return from === to ? true :",
      },
    ],
    killers: [{ file: "src/core/state-machines.test.ts", title: "M-1 the states of each run" }],
  },
];
