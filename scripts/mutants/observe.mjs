// Alerts (AB1 to AB3, AK3), metrics (S2-87 to S2-95), and what traces must not hold (RT1, RT2).
const inAlerts = (title) => [{ file: "test/observe/alerts.test.ts", title }];
const inMetrics = (title) => [{ file: "test/observe/metrics.test.ts", title }];
const inTraces = (title) => [{ file: "test/observe/otel.test.ts", title }];

export const observeMutants = [
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
        from: "{ number: number + 1, kept: { ...kept, taken: 0 } }",
        to: "{ number: number + 1, kept: { ...NO_ALERTS, taken: kept.taken * 0 } }",
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
