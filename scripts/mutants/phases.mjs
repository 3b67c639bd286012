// Phases and state documents: S0, C-4, C-12, E-3 to E-5.

const PHASES = "test/behaviour/phases.test.ts";
const IMPORT = "test/behaviour/state-document-import.test.ts";
const MANUAL = "test/behaviour/manual-steps.test.ts";
const DOCUMENT = "src/core/state-document.test.ts";
const RUN = "src/flows/phase-run.ts";

export const phaseMutants = [
  {
    rule: "S0-15",
    name: "a failed step is walked past",
    changes: [
      {
        file: RUN,
        from: '    return choice === "skip";\n  }\n\n  async #decision',
        to: '    return choice !== "";\n  }\n\n  async #decision',
      },
    ],
    killers: [{ file: PHASES, title: "memory S0-15 S0-20" }],
  },
  {
    rule: "S0-11",
    name: "phases that were done elsewhere are executed",
    changes: [{ file: RUN, from: 'if (adopted?.status === "done") return this.#take(phase, adopted);', to: "" }],
    killers: [{ file: IMPORT, title: "memory S0-9 S0-10 S0-11" }],
  },
  {
    rule: "S0-10",
    name: "phases that were routed around elsewhere are executed",
    changes: [
      { file: RUN, from: "adopted === undefined && this.#isPassed(index)", to: "false && this.#isPassed(index)" },
    ],
    killers: [{ file: IMPORT, title: "memory S0-9 S0-10 S0-11" }],
  },
  {
    rule: "S0-15",
    name: "what failed elsewhere is executed without a question",
    changes: [
      {
        file: RUN,
        from: 'if (adopted?.status === "failed" && (await this.#takeFailed(phase, adopted))) return;',
        to: "void this.#takeFailed;",
      },
    ],
    killers: [{ file: IMPORT, title: "memory S0-15 T-1" }],
  },
  {
    rule: "S0-24",
    name: "what an output file holds is not compared with its hash",
    changes: [
      {
        file: "src/flows/output-files.ts",
        from: "if (sha256(content) !== output.sha256)",
        to: "if (sha256(content) === output.file)",
      },
    ],
    killers: [{ file: PHASES, title: "memory S0-24" }],
  },
  {
    rule: "S0-14",
    name: "one call executes all phases",
    changes: [
      { file: RUN, from: 'if (to === "end") this.#isStepwise = false;', to: "if (to) this.#isStepwise = false;" },
    ],
    killers: [{ file: PHASES, title: "memory S0-14" }],
  },
  {
    rule: "C-12",
    name: "another generation repeats what was done",
    changes: [
      {
        file: "src/core/generation.ts",
        from: "return isOutline(result.state[OUTLINE])",
        to: "return false && isOutline(result.state[OUTLINE])",
      },
    ],
    killers: [{ file: PHASES, title: "memory C-12" }],
  },
  {
    rule: "S0-16",
    name: "work is finished by whoever has not begun it",
    changes: [
      { file: "src/flows/deeds.ts", from: "  if (about !== ticket) return false;\n", to: "  void [about, ticket];\n" },
      { file: "src/flows/deeds.ts", from: "  if (begunBy === undefined) return false;\n", to: "  void begunBy;\n" },
      {
        file: "src/flows/deeds.ts",
        from: "  return outputs.every(",
        to: "  return outputs.length >= 0 || outputs.every(",
      },
    ],
    killers: [{ file: MANUAL, title: "memory S0-16" }],
  },
  {
    rule: "S0-4",
    name: "a readable id that is taken stands for that run",
    changes: [
      {
        file: "src/client/start.ts",
        from: "  if (holder.traceId === create.traceId) return holder.id;",
        to: "  if (holder.id !== create.traceId) return holder.id;",
      },
    ],
    killers: [{ file: PHASES, title: "memory S0-4" }],
  },
  {
    rule: "S0-9",
    name: "a pointer that is behind is no news",
    changes: [
      {
        file: "src/core/state-document-reader.ts",
        from: 'if (found.status !== "done" || first === undefined) return [];',
        to: 'if (found.status !== "failed" || first === undefined) return [];',
      },
    ],
    killers: [{ file: DOCUMENT, title: "S0-8 S0-9 S0-10" }],
  },
  {
    rule: "S0-7",
    name: "any word is a status",
    changes: [
      {
        file: "src/core/state-document-reader.ts",
        from: "if (!(DOCUMENT_STATUSES as readonly unknown[]).includes(value))",
        to: 'if (typeof value !== "string")',
      },
    ],
    killers: [{ file: DOCUMENT, title: "S0-7 names the allowed words" }],
  },
];
