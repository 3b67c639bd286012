// The calls of agents: decision 0025, EV1 to EV4, JC1 to JC3, TC1 to TC3, ER1 to ER3 in a step.
const AGENTS = "test/behaviour/agents.test.ts";
const RECOVERY = "test/behaviour/agents-recovery.test.ts";
const EVALUATE = "src/agent/evaluate.ts";
const JOURNAL = "src/agent/journal-calls.ts";
const TOOL_CALL = "src/agent/tool-call.ts";

export const agentMutants = [
  {
    rule: "JC1",
    name: "an answer is taken for the answer to any conversation",
    changes: [
      { file: JOURNAL, from: "    model: ({ inputHash, spend }, run) =>", to: "    model: ({ spend }, run) =>" },
      { file: JOURNAL, from: "{ ...rules, input: inputHash, ...", to: "{ ...rules, ..." },
    ],
    killers: [{ file: RECOVERY, title: "is not taken for the answer to this one" }],
  },
  {
    rule: "JC2",
    name: "a tool begins whatever people have decided",
    changes: [
      { file: JOURNAL, from: 'if (approval.decision !== "approved") return', to: 'if (approval.id === "") return' },
    ],
    killers: [{ file: RECOVERY, title: "only what was approved begins" }],
  },
  {
    rule: "JC2",
    name: "the agent's policy for a class is forgotten",
    changes: [{ file: JOURNAL, from: "return approval ?? approvals[kind] ?? null;", to: "return approval ?? null;" }],
    killers: [{ file: RECOVERY, title: "only what was approved begins" }],
  },
  {
    rule: "JC3",
    name: "a tool that fails ends the run",
    changes: [
      {
        file: JOURNAL,
        from: "      if (this.#endsRun(error)) throw error;",
        to: "      if (this.#endsRun(error) || error !== null) throw error;",
      },
    ],
    killers: [{ file: AGENTS, title: "a failing tool leaves no trace" }],
  },
  {
    rule: "EV2",
    name: "tool calls of a round are made one after the other",
    changes: [
      {
        file: EVALUATE,
        from: "for (const [index, proposal] of proposals.entries())\n      deeds.push(this.#answered(proposal, word) ?? this.#begin(proposal, round, index, deeds));",
        to: "for (const [index, proposal] of proposals.entries()) {\n      deeds.push(this.#answered(proposal, word) ?? this.#begin(proposal, round, index, deeds));\n      await deeds.at(-1)?.record;\n    }",
      },
    ],
    killers: [{ file: RECOVERY, title: "approvals of a round are open at once" }],
  },
  {
    rule: "EV2",
    name: "tools that go in order do not see what those before them did",
    changes: [
      {
        file: EVALUATE,
        from: "if (record !== null && !deed.isApplied",
        to: 'if (record !== null && record.message === "" && !deed.isApplied',
      },
    ],
    killers: [{ file: "test/behaviour/agents-odd-tools.test.ts", title: "sees what the one before it did" }],
  },
  {
    rule: "EV2",
    name: "a tool that goes in order is begun while people are asked about the one before it",
    changes: [
      {
        file: EVALUATE,
        from: "earlier.length === 0 ? make([]) : settled(earlier).then(make);",
        to: "make([]);",
      },
    ],
    killers: [{ file: "test/behaviour/agents-questions.test.ts", title: "behind one that waits for people" }],
  },
  {
    rule: "EV4",
    name: "a refused call is not noted",
    changes: [{ file: EVALUATE, from: "    this.#options.calls.note(`proposal_rejected: ${why}`);\n", to: "" }],
    killers: [{ file: AGENTS, title: "leads to nothing but a refusal" }],
  },
  {
    rule: "EV4",
    name: "the allow-list holds for what is shown only",
    changes: [
      {
        file: EVALUATE,
        from: "!allow.includes(tool.name)) forbidden.add(tool.name);",
        to: '!allow.includes(tool.name) && tool.name === "") forbidden.add(tool.name);',
      },
    ],
    killers: [{ file: AGENTS, title: "leads to nothing but a refusal" }],
  },
  {
    rule: "EV4",
    name: "an outcome does not keep other calls from being made",
    changes: [
      {
        file: EVALUATE,
        from: "if (ends !== undefined && refused === null) return",
        to: "if (ends !== undefined && refused === null && proposals.length === 1) return",
      },
    ],
    killers: [{ file: AGENTS, title: "other calls beside a refusal are not begun" }],
  },
  {
    rule: "TC2",
    name: "a tool works on the session itself",
    changes: [
      {
        file: EVALUATE,
        from: "const copy = this.#options.session.clone();",
        to: "const copy = this.#options.session;",
      },
    ],
    killers: [{ file: AGENTS, title: "a failing tool leaves no trace" }],
  },
  {
    rule: "TC2",
    name: "what a tool said to have failed changed counts",
    changes: [
      {
        file: TOOL_CALL,
        from: "  if (!success) return failure(message);",
        to: "  if (!success) return { ...failure(message), events: [...events] };",
      },
    ],
    killers: [{ file: AGENTS, title: "a failing tool leaves no trace" }],
  },
  {
    rule: "C-22",
    name: "to stop is to be done",
    changes: [{ file: "src/agent/agent.ts", from: "if (missing !== null) return", to: 'if (missing === "") return' }],
    killers: [{ file: AGENTS, title: "is incomplete if it stops before its plan is done" }],
  },
  {
    rule: "I26",
    name: "what an agent in one step has spent is forgotten in a crash",
    changes: [{ file: "src/agent/agent.ts", from: "        await save();\n", to: "" }],
    killers: [{ file: "test/behaviour/agents-budget.test.ts", title: "holds over a crash" }],
  },
  {
    rule: "ER1",
    name: "an agent in one step does not write its effects ahead",
    changes: [
      {
        file: "src/agent/agent.ts",
        from: "this.#counting(effects.calls, () => save(session));",
        to: "this.#counting(calls, () => save(session));",
      },
    ],
    killers: [{ file: RECOVERY, title: "what a tool has done since the last milestone is not done again" }],
  },
  {
    rule: "X-20",
    name: "a call without a guard is told as a failure though it may have happened",
    changes: [
      {
        file: "src/agent/direct-calls.ts",
        from: "if (isUnsafeTool(tool) && mayHaveHappened(error)) throw",
        to: "if (isUnsafeTool(tool) && mayHaveHappened(null)) throw",
      },
    ],
    killers: [{ file: "src/agent/direct-calls.test.ts", title: "nobody is told that it failed" }],
  },
];
