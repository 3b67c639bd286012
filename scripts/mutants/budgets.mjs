// Budgets and guards against runaways: SP1 to SP4, BU1 to BU3, X-13, X-29.
import { SIMULATED } from "./simulator.mjs";

const BUDGETS = "test/behaviour/budgets.test.ts";
const TREES = "test/behaviour/budget-trees.test.ts";
const WAITS = "test/behaviour/budget-waits.test.ts";
const RUNAWAYS = "test/behaviour/runaways.test.ts";

export const budgetMutants = [
  {
    rule: "I26",
    name: "a raise for all raises whatever budget one of them waits for by then",
    changes: [
      {
        file: "src/client/budgets.ts",
        from: "    if ((await waitingForBudget(store, park, run, other)).length === 0) continue;\n",
        to: "",
      },
    ],
    killers: [{ file: "test/behaviour/resolve-races.test.ts", title: "on memory I26" }],
  },
  {
    rule: "SP1",
    name: "a rerun reserves once more",
    changes: [
      {
        file: "src/core/spending.ts",
        from: "budgets.length === 0 || spending.reserved !== null) return null;",
        to: "budgets.length === 0) return null;",
      },
    ],
    killers: [{ file: BUDGETS, title: "after a crash between reserving and outcome" }],
  },
  {
    rule: "SP2",
    name: "a call that was refused begins all the same",
    changes: [
      {
        file: "src/core/steps.ts",
        from: "(call.spending.reserved === reserved && !isRefused(call))",
        to: "call.spending !== undefined",
      },
    ],
    killers: [{ file: TREES, title: "calls in parallel" }],
  },
  {
    rule: "SP2",
    name: "what has joined since a refused batch is lost",
    changes: [
      {
        file: "src/core/draft.ts",
        from: "    this.#after = [...batch.after, ...this.#after];\n",
        to: "    this.#after = [...batch.after];\n",
      },
    ],
    killers: [{ file: BUDGETS, title: "follows the refused batch" }],
  },
  {
    rule: "SP2",
    name: "what is refused of a batch that parks its run is not told",
    changes: [
      {
        file: "src/core/spending.ts",
        from: "if ((pass.isClosed && !pass.isParking) || !call.open) return;",
        to: "if (pass.isClosed || !call.open) return;",
      },
    ],
    killers: [{ file: WAITS, title: "in the commit that parks" }],
  },
  {
    rule: "SP3",
    name: "a run is parked while other calls of it are under way",
    changes: [
      {
        file: "src/core/refused-calls.ts",
        from: "return pass.steps.isQuiet && pass.calls.areAllWaiting && wakeupOf(pass) === null;",
        to: "return wakeupOf(pass) === null;",
      },
    ],
    killers: [{ file: TREES, title: "calls in parallel" }],
  },
  {
    rule: "SP3",
    name: "what others have given back is not looked at before the run is parked",
    changes: [
      {
        file: "src/core/refused-calls.ts",
        from: "    if (this.mayTryAgain) {",
        to: "    if (this.mayTryAgain && false) {",
      },
    ],
    killers: [{ file: TREES, title: "room for the rest" }],
  },
  {
    rule: "RC1",
    name: "a run is parked though others have only reserved what it needs",
    changes: [
      {
        file: "src/core/refused-calls.ts",
        from: '      ...atMost(COUNTERS.reserved(unit), used - spentAtLeast, "reserved"),\n',
        to: "",
      },
    ],
    killers: [{ file: WAITS, title: "the third of three children" }],
  },
  {
    rule: "RC1",
    name: "a run is parked though its budget was raised meanwhile",
    changes: [
      {
        file: "src/core/refused-calls.ts",
        from: 'const raised = atMost(COUNTERS.limit(unit), max, "limit");',
        to: "const raised: CounterChange[] = [];",
      },
    ],
    killers: [{ file: WAITS, title: "is raised between the refusal and the park" }],
  },
  {
    rule: "RC1",
    name: "a run whose body has failed is parked for its budget",
    changes: [
      {
        file: "src/core/refused-calls.ts",
        from: "pass.isClosed || pass.body.isOver || pass.draft.isHeld",
        to: "pass.isClosed || pass.body.result !== null || pass.cancelling !== null || pass.draft.isHeld",
      },
    ],
    killers: [{ file: WAITS, title: "whose body fails" }],
  },
  {
    rule: "RC2",
    name: "who rests is not told that others have settled",
    changes: [{ file: "src/core/spending.ts", from: "  if (reserved !== null) tellOthers(pass);\n", to: "" }],
    killers: [{ file: WAITS, title: "the third of three children" }],
  },
  {
    rule: "SP4",
    name: "what was reserved and not spent is not given back",
    changes: [
      { file: "src/core/spending.ts", from: "if (after !== before) settle(", to: "if (after > before) settle(" },
    ],
    killers: [{ file: BUDGETS, title: "a step says what it really spent" }],
  },
  {
    rule: "SP4",
    name: "more than was reserved is not counted",
    changes: [
      { file: "src/core/spending.ts", from: "if (after !== before) settle(", to: "if (after < before) settle(" },
    ],
    killers: [{ file: BUDGETS, title: "a step says what it really spent" }],
  },
  {
    rule: "BU3",
    name: "a raised limit holds for nobody",
    changes: [{ file: "src/core/spending.ts", from: "      maxFrom: COUNTERS.limit(unit),\n", to: "" }],
    killers: [{ file: BUDGETS, title: "raised after a restart" }],
  },
  {
    rule: "X-13",
    name: "a child has no part in the budgets of its parent",
    changes: [
      {
        file: "src/core/issue.ts",
        from: "return { budgets: budgetsFor(child, plan, at, body.budgets) };",
        to: "return { budgets: budgetsFor(child, plan, at) };",
      },
    ],
    killers: [{ file: TREES, title: "holds for all children" }],
  },
  {
    rule: "X-13",
    name: "a fork believes that it has reserved what its source has",
    changes: [
      {
        file: "src/core/spending-state.ts",
        from: '    if (type === "run.forked") spending.reserved = null;\n',
        to: "",
      },
    ],
    killers: [{ file: TREES, title: "a fork has the budget anew" }],
  },
  {
    rule: "X-29",
    name: "a breaker lets everybody through after its cooldown",
    changes: [
      {
        file: "src/core/breaker.ts",
        from: "if (left <= 0 && !isTried) {",
        to: "if (left <= 0 || (isTried && false)) {",
      },
    ],
    killers: [{ file: RUNAWAYS, title: "of a breaker's trial" }],
  },
  {
    rule: "X-29",
    name: "a failure counts as a result of its own",
    changes: [{ file: "src/core/no-progress.ts", from: "        streak.length = 0;\n", to: "" }],
    killers: [{ file: RUNAWAYS, title: "a failure is no result" }],
  },
  {
    rule: "SP1",
    name: "a call begins before what it needs is reserved",
    changes: [
      {
        file: "src/core/steps.ts",
        from: "    const reserved = call.spending?.reserved ?? null;\n    this.#pass.draft.onDurable(() => {",
        to: "    const reserved = call.spending?.reserved ?? null;\n    if (reserved !== null) return this.#begin(call);\n    this.#pass.draft.onDurable(() => {",
      },
    ],
    killers: [{ file: "test/behaviour/budgets.test.ts", title: "memory X-13 E-9 I26 usd" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "SP2",
    name: "what was refused is given back all the same",
    changes: [
      {
        file: "src/core/spending.ts",
        from: "reservationIn(one) !== null && lost.has(reservationIn(one));",
        to: "askedBy.has(one) && lost.has(reservationIn(one));",
      },
    ],
    killers: [{ file: BUDGETS, title: "gives back nothing that it never had" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "SP4",
    name: "a call is settled again when a cancel has overtaken the end",
    changes: [
      {
        file: "src/core/spending.ts",
        from: "(spending.reserved ?? spending.said) === null || call.retryAt !== null) continue;",
        to: "call.retryAt !== null) continue;",
      },
    ],
    killers: [{ file: TREES, title: "SP4 P19" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "SP4",
    name: "a call that was refused and never begun has spent what it asked for",
    changes: [
      {
        file: "src/core/spending.ts",
        from: "  spending.mayHaveBegun = false;\n  for (const budget of budgets) {",
        to: "  for (const budget of budgets) {",
      },
    ],
    killers: [{ file: BUDGETS, title: "SP4 a call that was refused" }],
  },
  {
    rule: "SP4",
    name: "what is under way when a run stops counts as not spent",
    changes: [
      {
        file: "src/core/spending.ts",
        from: "if (!spending.mayHaveBegun) sayNothingSpent(call);",
        to: "sayNothingSpent(call);",
      },
    ],
    killers: [{ file: TREES, title: "SP4 P19" }],
  },
  {
    rule: "BU2",
    name: "what is reserved is not counted apart",
    changes: [
      {
        file: "src/core/spending.ts",
        from: "      { key: COUNTERS.reserved(unit), of, by, max: null, held: true },\n",
        to: "",
      },
    ],
    killers: [{ file: "test/behaviour/budgets.test.ts", title: "memory X-13 I6 after a crash" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "I26",
    name: "a reservation has no limit",
    changes: [
      {
        file: "src/core/spending.ts",
        from: "      max: toCount(unit, limit),\n",
        to: "      max: limit < 0 ? 0 : null,\n",
      },
    ],
    killers: [{ file: BUDGETS, title: "a budget on memory X-13 E-9 I26" }],
    alsoKilledBy: [SIMULATED],
  },
];
