// The linter of effects: S0-25, S0-35, X-33.

const LINT = "test/explorer/lint-effects.test.ts";

export const lintMutants = [
  {
    rule: "S0-25",
    name: "an effect without a class passes the linter",
    changes: [
      { file: "src/testing/lint/findings.ts", from: "  if (level === null) {", to: "  if (level === undefined) {" },
    ],
    killers: [{ file: LINT, title: "S0-25 an effect without a class is refused" }],
  },
  {
    rule: "S0-35",
    name: "a step is blamed for what runs beside it",
    changes: [
      {
        file: "src/testing/lint/stage.ts",
        from: ".filter((one) => one.run === run && one.step === step)",
        to: ".filter(() => run !== step)",
      },
    ],
    killers: [{ file: LINT, title: "S0-35 the step that acted is told from one that runs beside it" }],
  },
  {
    rule: "S0-35",
    name: "what says that it is idempotent is believed",
    changes: [
      {
        file: "src/testing/lint/stage.ts",
        from: "    if (isRerun && place.since(place.start).length > 0) await",
        to: "    if (isRerun && place.since(place.start).length < 0) await",
      },
    ],
    killers: [{ file: LINT, title: "S0-35 what says that a second run has no effects" }],
  },
  {
    rule: "S0-35",
    name: "what does nothing outside is run a second time as well",
    changes: [
      {
        file: "src/testing/lint/stage.ts",
        from: "    if (isRerun && place.since(place.start).length > 0) await",
        to: "    if (isRerun && place.since(place.start).length >= 0) await",
      },
    ],
    killers: [{ file: LINT, title: "S0-35 steps that do nothing outside are run once" }],
  },
  {
    rule: "X-33",
    name: "a write without key, compensation or approval passes the linter",
    changes: [
      {
        file: "src/testing/lint/findings.ts",
        from: 'if (guard === "none" && isChange && !canUndo && !needsApproval) {',
        to: 'if (guard === "none" && level === "execute" && !canUndo && !needsApproval) {',
      },
    ],
    killers: [{ file: LINT, title: "X-33 S2-72 an effect of class" }],
  },
];
