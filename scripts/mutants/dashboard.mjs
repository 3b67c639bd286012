// pawl dev: DV1 and DV2 of src/cli/dev.ts; and what the dashboard decides by itself.

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
  {
    rule: "X-31",
    name: "a list of runs that stays up to date is in the order of ids",
    changes: [
      {
        file: "web/src/pages/runs-merge.ts",
        from: "sort((a, b) => (msOf(b.createdAt) ?? 0) - (msOf(a.createdAt) ?? 0))",
        to: "sort((a, b) => (a.id < b.id ? 1 : -1))",
      },
    ],
    killers: [{ file: "test/server/dashboard-lists.test.ts", title: "newest first" }],
  },
  {
    rule: "X-31",
    name: "an old run that has just failed does not come to the list of failed ones",
    changes: [
      {
        file: "web/src/pages/runs-merge.ts",
        from: 'cursor === null ? "" : (shown.at(-1)?.createdAt ?? "")',
        to: 'shown.at(-1)?.createdAt ?? ""',
      },
    ],
    killers: [{ file: "test/server/dashboard-lists.test.ts", title: "begun to fit" }],
  },
  {
    rule: "X-31",
    name: "an approval that expires in two days seems to expire in one",
    changes: [{ file: "web/src/format.ts", from: "rough(distance, 2)", to: "rough(distance)" }],
    killers: [{ file: "test/server/dashboard-lists.test.ts", title: "not made shorter" }],
  },
];
