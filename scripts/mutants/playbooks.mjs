// Work that is done outside (S2-1, S0-24, S0-48): order, files, and who may decide.
const onFile = (title) => [{ file: "test/playbook.test.ts", title: `a playbook on file ${title}` }];

export const playbookMutants = [
  {
    rule: "S2-1",
    name: "whoever has done the work may approve of it",
    changes: [
      {
        file: "src/core/approval-request.ts",
        from: "return (fourEyes && person === actor) || notBy.includes(person);",
        to: "return (fourEyes && person === actor) || (notBy.includes(person) && false);",
      },
    ],
    killers: onFile("S0-2 S0-17 S2-1"),
  },
  {
    rule: "S2-1",
    name: "a gate does not know who has done the work",
    changes: [{ file: "src/flows/deeds.ts", from: "      this.doneBy(message.by);\n", to: "" }],
    killers: onFile("S0-2 S0-17 S2-1"),
  },
  {
    rule: "S2-1",
    name: "what was not begun can be done",
    changes: [
      {
        file: "src/client/manual.ts",
        from: `if (begunBy === undefined) throw refused(run, at, "nobody has begun it. Begin it first.");`,
        to: "",
      },
    ],
    killers: onFile("S0-2 S0-17 S2-1"),
  },
  {
    rule: "S2-1",
    name: "what is done again keeps the approval of what was lost",
    changes: [
      {
        file: "src/flows/phase-run.ts",
        from: `if (gate.deed === "approve" && this.#outputs.holds(gate.at))`,
        to: `if (gate.deed === "approve" && !this.#outputs.holds(gate.at))`,
      },
    ],
    killers: [{ file: "test/playbook.test.ts", title: "S2-1 S0-24" }],
  },
  {
    rule: "S0-24",
    name: "a step that is done outside begins without a look at the files before it",
    changes: [{ file: "src/flows/deeds.ts", from: "        await this.#compared(at, check);\n", to: "" }],
    killers: onFile("S0-15 S0-24"),
  },
  {
    rule: "S0-48",
    name: "a playbook that has changed without a new version is taken over",
    changes: [
      {
        file: "src/cli/playbook-session.ts",
        from: "if (isPatch && !isSame) throw changed(document, own, found);",
        to: "",
      },
    ],
    killers: [{ file: "test/playbook.test.ts", title: "a playbook's file S0-48" }],
  },
];
