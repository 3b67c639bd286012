// Alerts (AB1 to AB3, AK3), metrics (S2-87 to S2-95), and what traces must not hold (RT1, RT2).
const inAlerts = (title) => [{ file: "test/observe/alerts.test.ts", title }];
const inFaults = (title) => [
  { file: "test/observe/alert-faults.test.ts", title: `alerts that something stands in the way of ${title}` },
];
const inBounds = (title) => [{ file: "test/observe/alert-bounds.test.ts", title }];
const inMetrics = (title) => [{ file: "test/observe/metrics.test.ts", title }];
const inTraces = (title) => [{ file: "test/observe/otel.test.ts", title }];

export const observeMutants = [
  {
    rule: "AR1",
    name: "a report of any shape reaches the book",
    changes: [
      {
        file: "src/core/alert-shapes.ts",
        from: 'Object.hasOwn(SHAPES, kind) && SHAPES[kind as Report["kind"]](value)',
        to: "Object.hasOwn(SHAPES, kind) && value !== null",
      },
    ],
    killers: inFaults("S2-112 what is no report"),
  },
  {
    rule: "AR1",
    name: "a message that cannot be opened stops the alerts",
    changes: [
      {
        file: "src/worker/alert-records.ts",
        from: "      faults.push(error);\n      return [];",
        to: "      if (faults.length === 0) throw error;\n      return [];",
      },
    ],
    killers: inFaults("S2-112 Q14 a message"),
  },
  {
    rule: "AR1",
    name: "what the book holds is not looked at",
    changes: [
      {
        file: "src/core/alert-shapes.ts",
        from: "const value = given.filter(is) as T[];",
        to: "const value = given.filter((one) => is(one) || true) as T[];",
      },
    ],
    killers: inFaults("S2-112 state that is of no version"),
  },
  {
    rule: "S2-112",
    name: "anybody may act on the run of the alerts",
    changes: [
      {
        file: "src/core/own-workflows.ts",
        from: "!run.startsWith(`${ALERTS_WORKFLOW}.`)",
        to: "!run.startsWith(`${ALERTS_WORKFLOW}.!`)",
      },
    ],
    killers: inFaults("S2-112 nobody starts"),
  },
  {
    rule: "AO1",
    name: "a parked run of the alerts keeps them",
    changes: [
      {
        file: "src/client/alerts-run.ts",
        from: 'state === "parked" ? "parked" : "kept"',
        to: 'state === "failed" ? "parked" : "kept"',
      },
    ],
    killers: inFaults("S2-112 a run of the alerts that is parked"),
  },
  {
    rule: "AO1",
    name: "the successor of a parked run of the alerts knows nothing",
    changes: [
      {
        file: "src/client/alerts-run.ts",
        from: "newAlertsRun({ codec, host }, number, known.value, store.clock.now())",
        to: "newAlertsRun({ codec, host }, number, NO_ALERTS, store.clock.now())",
      },
    ],
    killers: inFaults("S2-112 a run of the alerts that is parked"),
  },
  {
    rule: "AK4",
    name: "what is sealed with another key is given up at once",
    changes: [
      {
        file: "src/worker/alert-keeper.ts",
        from: "now - this.#sealed.since < LIMITS.alertPatienceMs",
        to: "now - this.#sealed.since < 0 * LIMITS.alertPatienceMs",
      },
    ],
    killers: inFaults("S2-112 Q14 state that is sealed"),
  },
  {
    rule: "AK4",
    name: "what is sealed with a lost key is left for ever",
    changes: [
      {
        file: "src/worker/alert-keeper.ts",
        from: "if (this.#sealed?.digest !== digest) this.#sealed",
        to: "if (this.#sealed?.digest !== `${digest}!`) this.#sealed",
      },
    ],
    killers: inFaults("S2-112 Q14 state that is sealed"),
  },
  {
    rule: "AW5",
    name: "one damaged run stops the look",
    changes: [
      {
        file: "src/client/alert-watch.ts",
        from: "await this.#unlessDamaged(() => this.#hasEnded(runs[0]), false)",
        to: "await this.#hasEnded(runs[0])",
      },
    ],
    killers: inFaults("S2-109 S2-112 a damaged approval"),
  },
  {
    rule: "AW4",
    name: "whoever keeps no alerts sends messages that nobody reads",
    changes: [
      {
        file: "src/client/alert-watch.ts",
        from: "if (!this.#ports.isKeeper && !(await this.#hasKeeper())) return [];",
        to: "if (!this.#ports.isKeeper && (await this.#hasKeeper()) === null) return [];",
      },
    ],
    killers: inBounds("S2-88 S2-112 a process that keeps no alerts"),
  },
  {
    rule: "AK3",
    name: "a run of the alerts begins with all actions there are",
    changes: [
      {
        file: "src/core/alert-book.ts",
        from: ".slice(0, LIMITS.alertActions)",
        to: ".slice(0, 9 * LIMITS.alertActions)",
      },
    ],
    killers: inBounds("S2-110 S2-112 what the next run"),
  },
  {
    rule: "AK3",
    name: "ended runs of the alerts are kept with all others",
    changes: [
      {
        file: "src/core/retention.ts",
        from: "if (usual === null) return [alerts];",
        to: "if (usual === null) return [];",
      },
    ],
    killers: inBounds("S2-110 S2-112 what the next run"),
  },
  {
    rule: "AB4",
    name: "resolved alerts are kept for ever",
    changes: [
      {
        file: "src/core/alert-book.ts",
        from: "resolvedAt === null || now - resolvedAt < resolvedMs",
        to: "resolvedAt === null || now - resolvedAt < 9 * resolvedMs",
      },
    ],
    killers: inBounds("S2-112 what was resolved"),
  },
  {
    rule: "S2-112",
    name: "stranded runs are looked for among some workflows",
    changes: [
      {
        file: "src/client/alert-conditions.ts",
        from: "this.#store.unclaimed({ limit: STRANDED_RUNS })",
        to: 'this.#store.unclaimed({ workflows: ["order"], limit: STRANDED_RUNS })',
      },
    ],
    killers: inBounds("S2-112 runs that nobody can take"),
  },
  {
    rule: "S2-110",
    name: "after a death nobody looks back",
    changes: [{ file: "src/worker/sweeper.ts", from: "if (dead.length > 0) this.#duties.died();\n", to: "" }],
    killers: inBounds("S2-110 the same action done twice is found after a death"),
  },
  {
    rule: "S2-110",
    name: "who looks back tells what is known already",
    changes: [
      {
        file: "src/client/alert-watch.ts",
        from: "one.at >= since && !known.has(nameOf(one)) && !wasSeen(one)",
        to: "one.at >= since && !known.has(nameOf(one))",
      },
    ],
    killers: inBounds("S2-110 the same action done twice is found after a death"),
  },
  {
    rule: "S2-108",
    name: "the end of a storm is kept to itself",
    changes: [
      {
        file: "src/client/alert-watch.ts",
        from: "filter(([, { workflow }]) => this.#loud.has(workflow))",
        to: "filter(([, { workflow }]) => (counts.get(workflow) ?? 0) >= least)",
      },
    ],
    killers: inBounds("S2-108 the end of a storm"),
  },
  {
    rule: "S2-88",
    name: "what a retry has taken over counts twice",
    changes: [{ file: "src/observe/run-facts.ts", from: "    this.#actions.length = 0;\n", to: "" }],
    killers: inMetrics("S2-88 S2-89 a retry, a fork"),
  },
  {
    rule: "S2-88",
    name: "what a dry run has not done counts",
    changes: [{ file: "src/observe/run-facts.ts", from: " || planned.dry === true", to: "" }],
    killers: inMetrics("S2-88 S2-89 a retry, a fork"),
  },
  {
    rule: "S2-112",
    name: "a condition that is seen again is another alert",
    changes: [
      {
        file: "src/core/alert-book.ts",
        from: "    if (known !== undefined) return this.#replace(",
        to: "    if (known?.count === -1) return this.#replace(",
      },
    ],
    killers: inAlerts("alerts S2-112 the run of the alerts hands on what it knows"),
  },
  {
    rule: "S2-112",
    name: "what comes again right after it was over is told again",
    changes: [
      { file: "src/core/alert-book.ts", from: "if (!isRepeat) this.fired.push(alert);", to: "this.fired.push(alert);" },
    ],
    killers: inAlerts("alerts S2-112 what comes again right after it was over"),
  },
  {
    rule: "S2-112",
    name: "the next run of the alerts begins with nothing",
    changes: [
      {
        file: "src/worker/alert-keeper.ts",
        from: "kept: { book, effects: newestEffects(effects), taken: 0 }",
        to: "kept: { book: { ...book, alerts: [] }, effects: newestEffects(effects), taken: 0 }",
      },
    ],
    killers: inAlerts("alerts S2-112 the run of the alerts hands on what it knows"),
  },
  {
    rule: "S2-108",
    name: "a storm of one step is one of its workflow as well",
    changes: [
      {
        file: "src/core/alert-book.ts",
        from: "tallies.filter((tally) => !storms.includes(tally))",
        to: "tallies.filter((tally) => storms.length >= 0 || tally === null)",
      },
    ],
    killers: inAlerts("a retry storm on memory S2-108"),
  },
  {
    rule: "S2-109",
    name: "levels of an approval do not count",
    changes: [
      {
        file: "src/client/alert-conditions.ts",
        from: "...after.map((ms) => at + ms), ...levels, expiresAt]",
        to: "...after.map((ms) => at + ms), expiresAt]",
      },
    ],
    killers: inAlerts("alerts S2-109"),
  },
  {
    rule: "S2-110",
    name: "what the outside knows again counts as done twice",
    changes: [
      {
        file: "src/core/undoable-call.ts",
        from: 'return key === null || guard === "idempotent" ? null',
        to: "return key === null || guard === undefined ? null",
      },
    ],
    killers: inAlerts("alerts S2-110 so is a key"),
  },
  {
    rule: "S2-111",
    name: "a damaged journal is nobody's business",
    changes: [{ file: "src/client/alert-conditions.ts", from: '  corrupted_journal: "replay_failure",\n', to: "" }],
    killers: inAlerts("alerts S2-111"),
  },
  {
    rule: "S2-87",
    name: "a run that somebody had to repair counts as a clean resume",
    changes: [
      {
        file: "src/observe/run-facts.ts",
        from: 'if (this.#repairs > 0 || state === "parked") return "repaired";',
        to: 'if (state === "parked") return "repaired";',
      },
    ],
    killers: inMetrics("metrics S2-87"),
  },
  {
    rule: "S2-92",
    name: "an effect that ends after the cancel is in time",
    changes: [
      {
        file: "src/observe/run-facts.ts",
        from: "        this.#succeeded(key);\n        this.#isLate ||= this.#isCancelled;\n",
        to: "        this.#succeeded(key);\n",
      },
    ],
    killers: inMetrics("metrics S2-92"),
  },
  {
    rule: "S2-95",
    name: "labels are not escaped",
    changes: [{ file: "src/observe/prometheus.ts", from: `.replaceAll('"', '\\\\"')`, to: "" }],
    killers: inMetrics("S2-95 S2-87 S2-91"),
  },
  {
    rule: "S2-62",
    name: "whoever goes on with a run tells all of its trace again",
    changes: [
      {
        file: "src/otel/otel.ts",
        from: "      this.#trace.take(entry);\n      this.#next = entry.seq + 1;\n    }",
        to: "      this.#tell(this.#trace.take(entry));\n      this.#next = entry.seq + 1;\n    }",
      },
    ],
    killers: inTraces("S2-62 after a crash"),
  },
  {
    rule: "X-24",
    name: "effects do not say what the policy decided",
    changes: [
      {
        file: "src/otel/run-trace.ts",
        from: '    "pawl.policy.decision": approval === undefined ? "not_required" : "approved",\n',
        to: "",
      },
    ],
    killers: inTraces("S2-62 S2-63 S2-74 X-24"),
  },
  {
    rule: "S2-64",
    name: "what tools have said is in the trace unasked",
    changes: [
      {
        file: "src/otel/gen-ai.ts",
        from: '...(hasContent && { "gen_ai.tool.call.result"',
        to: '...({ "gen_ai.tool.call.result"',
      },
    ],
    killers: inTraces("S2-64 S2-75"),
  },
];
