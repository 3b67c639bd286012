// pawl dev: DV1 and DV2 of src/cli/dev.ts.

export const dashboardMutants = [
  {
    rule: "X-31",
    name: "a store that has only a schedule gets examples",
    changes: [
      {
        file: "src/cli/dev-seed.ts",
        from: "return runs.length === 0 && schedules.length === 0;",
        to: "return runs.length === 0;",
      },
    ],
    killers: [{ file: "src/cli/dev-seed.test.ts", title: "of one's own" }],
  },
  {
    rule: "X-31",
    name: "what a file imports is not watched",
    changes: [
      {
        file: "src/cli/source-watch.ts",
        from: "if (target !== null) look(target);",
        to: "if (target === path) look(target);",
      },
    ],
    killers: [{ file: "src/cli/source-watch.test.ts", title: "by a relative path" }],
  },
];
