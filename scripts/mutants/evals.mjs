// Dry runs and evals: DR1 to DR5, ES1 to ES3, S2-84.

const FORKS = "test/behaviour/fork-effects.test.ts";
const CASES = "test/evals/expectations.test.ts";

export const evalMutants = [
  {
    rule: "DR1",
    name: "a fork of a dry run may be made live",
    changes: [
      {
        file: "src/client/fork-effects.ts",
        from: "  if (dryPolicyIn(journal) === null) return null;\n",
        to: "  return null;\n",
      },
    ],
    killers: [{ file: FORKS, title: "a fork of a dry run is dry" }],
  },
  {
    rule: "DR2",
    name: "a replay lets models and reads run",
    changes: [
      {
        file: "src/core/dry.ts",
        from: 'return this.policy === "dry-run" && policy.dry === "run"',
        to: 'return policy.dry === "run"',
      },
    ],
    killers: [{ file: FORKS, title: "a replay begins nothing at all" }],
  },
  {
    rule: "DR3",
    name: "what is recorded of another input answers a call",
    changes: [
      {
        file: "src/core/dry.ts",
        from: "if (recorded !== undefined && recorded.digest === (call.input?.digest ?? null))",
        to: "if (recorded !== undefined)",
      },
    ],
    killers: [{ file: FORKS, title: "with another input is another call" }],
  },
  {
    rule: "DR4",
    name: "a dry run undoes what it has not done",
    changes: [
      {
        file: "src/core/steps.ts",
        from: "if (dry !== null && !dry.runs(call)) return",
        to: 'if (dry !== null && call.endsAs !== "effect.compensated" && !dry.runs(call)) return',
      },
    ],
    killers: [{ file: FORKS, title: "what a dry run would undo" }],
  },
  {
    rule: "DR5",
    name: "the children of a dry run act",
    changes: [
      {
        file: "src/core/issue.ts",
        from: "    ...(pass.dry !== null && { effects: pass.dry.policy }),\n",
        to: "",
      },
    ],
    killers: [{ file: FORKS, title: "does nothing outside" }],
  },
  {
    rule: "ES1",
    name: "a call is answered before its turn",
    changes: [
      {
        file: "src/testing/evals/script.ts",
        from: "if (index >= this.#armed || ",
        to: "if (",
      },
    ],
    killers: [{ file: CASES, title: "time passes, signals come twice" }],
  },
  {
    rule: "S2-84",
    name: "must-not flags are not looked at",
    changes: [
      {
        file: "src/testing/evals/expectations.ts",
        from: "else if (value === true) broken.push(...checkFlag(subject, name));",
        to: "else if (value === undefined) broken.push(...checkFlag(subject, name));",
      },
    ],
    killers: [{ file: CASES, title: "must_not_issue_refund" }],
  },
  {
    rule: "X-30",
    name: "two incidents that are opened at once are one",
    changes: [{ file: "src/observe/incidents.ts", from: 'openSync(lock, "wx")', to: 'openSync(lock, "w")' }],
    killers: [{ file: "test/evals/incidents.test.ts", title: "X-30 a change of incidents waits" }],
  },
  {
    rule: "X-30",
    name: "a new case takes the place of one that is there",
    changes: [{ file: "src/cli/incident.ts", from: '{ flag: "wx" }', to: '{ flag: "w" }' }],
    killers: [{ file: "test/evals/commands.test.ts", title: "X-30 incidents that are opened at the same time" }],
  },
];
