// Flow control (I18, decision 0011), schedules (I13, decision 0010), and transactions with a user's SQL (TX1 to TX4, decision 0012).

import { SIMULATED } from "./simulator.mjs";

const LIMITS = "test/behaviour/flow-control.test.ts";
const DELAYS = "test/behaviour/delayed-starts.test.ts";
const SCHEDULES = "test/behaviour/schedules.test.ts";
const TRANSACTIONS = "test/transactions/transactions.test.ts";

/** A case of the port, on one store. */
const inCase = (store, title) => ({ file: "test/stores.test.ts", title: `${store} store ${title}` });
/** What does not depend on the store is shown on the fastest. */
const inLimits = (title) => [{ file: LIMITS, title: `flow control on memory ${title}` }];
const inDelays = (title) => [{ file: DELAYS, title: `delayed starts on memory ${title}` }];
const inSchedules = (title) => [{ file: SCHEDULES, title: `schedules on memory ${title}` }];

const limitMutants = [
  {
    rule: "I18",
    name: "a slot lets in whoever comes (memory)",
    changes: [
      {
        file: "src/stores/memory/limits.ts",
        from: "if (slots !== null && (this.#held.get(slot) ?? 0) >= slots) return false;",
        to: "if (slots !== null && (this.#held.get(slot) ?? 0) < 0) return false;",
      },
    ],
    killers: [inCase("memory", "I18 a slot")],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "I18",
    name: "a slot lets in as many as its limit with each claim (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/lines.ts",
        from: "limit - (this.#db.get(HOLDERS, slot)?.held as number);",
        to: "limit - 0 * (this.#db.get(HOLDERS, slot)?.held as number);",
      },
    ],
    killers: [inCase("SQLite", "I18 a slot")],
  },
  {
    rule: "I18",
    name: "a slot lets in as many as its limit with each claim (on PostgreSQL)",
    changes: [
      {
        file: "src/stores/postgres/line-functions.ts",
        from: "where slot = v_slot and slot <> '' and owner is not null);",
        to: "where slot = v_slot and slot <> '' and owner is not null and false);",
      },
    ],
    killers: [inCase("PostgreSQL", "I18 a slot")],
  },
  {
    rule: "I18",
    name: "claims count the holders of a slot side by side (on PostgreSQL)",
    changes: [
      {
        file: "src/stores/postgres/line-functions.ts",
        from: "      perform pg_advisory_xact_lock(hashtextextended('${s}.lines', 0));\n",
        to: "",
      },
    ],
    killers: [{ file: "test/postgres/limits.test.ts" }],
  },
  {
    rule: "I18",
    name: "the runs of one claim do not count for each other (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/lines.ts",
        from: "    this.#slots.set(slot, this.#ofSlot(slot) - 1);\n",
        to: "    this.#slots.set(slot, this.#ofSlot(slot));\n",
      },
    ],
    killers: [inCase("SQLite", "I18 a slot")],
  },
  {
    rule: "X-21",
    name: "starts of a rate are not remembered (memory)",
    changes: [
      {
        file: "src/stores/memory/limits.ts",
        from: "[...startsOf(this.#tables, rate, now), { at: now, until: now + limit.perMs }]);",
        to: "startsOf(this.#tables, rate, now));",
      },
    ],
    killers: [inCase("memory", "X-21 a rate")],
  },
  {
    rule: "X-21",
    name: "starts of a rate are not remembered (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/lines.ts",
        from: "    this.#db.run(NOTE_START, rate, this.#now + limit.perMs, n, this.#now);\n",
        to: "    if (n < 0) this.#db.run(NOTE_START, rate, this.#now + limit.perMs, n, this.#now);\n",
      },
    ],
    killers: [inCase("SQLite", "X-21 a rate")],
  },
  {
    rule: "X-21",
    name: "starts of a rate are not remembered (on PostgreSQL)",
    changes: [
      {
        file: "src/stores/postgres/line-functions.ts",
        from: "            insert into ${s}.starts (rate, until, run, at) values (r.rate, p_now + r.span, r.n, p_now);\n",
        to: "",
      },
    ],
    killers: [inCase("PostgreSQL", "X-21 a rate")],
  },
  {
    rule: "X-21",
    name: "a rate is used up again by each claim of a run (on PostgreSQL)",
    changes: [
      {
        file: "src/stores/postgres/claim-functions.ts",
        from: "claims = claims + 1, rate = '',",
        to: "claims = claims + 1,",
      },
    ],
    killers: [inCase("PostgreSQL", "X-21 a rate")],
  },
  {
    rule: "I18",
    name: "a run that waits keeps its slot while it is due soon",
    changes: [{ file: "src/core/rest.ts", from: "  if (row.slot !== null) return false;\n", to: "" }],
    killers: inLimits("(I18 C-16|B56)"),
  },
  {
    rule: "I18",
    name: "a run with a slot is begun where it is started, ahead of those in line",
    changes: [
      {
        file: "src/client/start.ts",
        from: "      needs === null &&\n      target.workflow !== null &&",
        to: "      target.workflow !== null &&",
      },
    ],
    killers: inLimits("I18"),
  },
  {
    rule: "I18",
    name: "a child with a slot is begun beside its parent, ahead of those in line",
    changes: [
      {
        file: "src/core/issue.ts",
        from: "claimed: needs === null && pass.ports.adopts(workflow.name, workflow.version),",
        to: "claimed: pass.ports.adopts(workflow.name, workflow.version),",
      },
    ],
    killers: inLimits("(B56|I18)"),
  },
  {
    rule: "I18",
    name: "a run that was started by name passes every limit",
    changes: [
      {
        file: "src/worker/load-run.ts",
        from: `  if (needs !== null) return { kind: "needy", needs };\n`,
        to: "  void needs;\n",
      },
    ],
    killers: inLimits("I18 a run started by name"),
  },
  {
    rule: "I18",
    name: "a slot that was let go wakes nobody who waits for it",
    changes: [
      {
        file: "src/core/rest.ts",
        from: "return slot === null ? {} : { frees: true };",
        to: "return slot === null ? {} : { frees: false };",
      },
    ],
    killers: [{ file: LIMITS, title: "offered to other workers at once" }],
  },
  {
    rule: "I17",
    name: "each start of a burst creates a run of its own",
    changes: [
      {
        file: "src/client/debounce.ts",
        from: `    if (outcome === "written") return { run: pending };\n`,
        to: `    if (outcome === "written" && tries < 0) return { run: pending };\n`,
      },
    ],
    killers: inLimits("(X-21 a burst|I17)"),
  },
  {
    rule: "X-21",
    name: "a burst that never ends is put off for ever",
    changes: [
      {
        file: "src/client/debounce.ts",
        from: "const wakeAt = Math.min(now + burst.waitMs, claimed.row.createdAt + burst.maxMs);",
        to: "const wakeAt = now + burst.waitMs;",
      },
    ],
    killers: inLimits("X-21 a burst"),
  },
  {
    rule: "X-21",
    name: "a further start of a burst does not put it off",
    changes: [
      {
        file: "src/client/debounce.ts",
        from: "const wakeAt = Math.min(now + burst.waitMs, claimed.row.createdAt + burst.maxMs);",
        to: "const wakeAt = Math.min(now, claimed.row.createdAt + burst.maxMs);",
      },
    ],
    killers: inLimits("X-21 a burst"),
  },
  {
    rule: "I13",
    name: "a run that is claimed before its time begins",
    changes: [
      {
        file: "src/worker/load-run.ts",
        from: "claimed.cancel === null && ports.clock.now() < notBefore)",
        to: "claimed.cancel === null && ports.clock.now() < 0)",
      },
    ],
    killers: inDelays("I13"),
  },
  {
    rule: "P19",
    name: "a run that is cancelled before its time begins for it, once anything has been recorded of it",
    changes: [
      {
        file: "src/worker/load-run.ts",
        from: "(!hasBegun(entries) || wasParked",
        to: "(entries.length === 1 || wasParked",
      },
    ],
    killers: inDelays("I13 P19"),
  },
  {
    rule: "X-21",
    name: "a run that this worker has claimed too early is taken for one that has begun",
    changes: [
      {
        file: "src/worker/run-loader.ts",
        from: 'return kind === "written" ? "written" : "busy";',
        to: 'return kind === "written" ? "written" : "begun";',
      },
    ],
    killers: inDelays("I13 X-21 a burst goes on"),
  },
  {
    rule: "X-21",
    name: "a further start of a burst replaces the input of a run that has begun since it looked",
    changes: [
      {
        file: "src/worker/run-loader.ts",
        from: 'taken.row.state === "accepted" ? build(taken) : null',
        to: "build(taken)",
      },
    ],
    killers: inDelays("I6 X-21"),
  },
  {
    rule: "I4",
    name: "a run that was claimed by the next incarnation is shown as running when it is put off",
    changes: [{ file: "src/client/debounce.ts", from: 'state: "accepted", head,', to: "head," }],
    killers: [{ file: "test/attacks/late-answers.test.ts", title: "leaves it as not begun" }],
  },
  {
    rule: "I17",
    name: "a run that another worker has claimed too early is taken for one that has begun",
    changes: [
      {
        file: "src/worker/run-loader.ts",
        from: 'return (await this.#isEarly(row)) ? "busy" : "begun";',
        to: 'return "begun";',
      },
    ],
    killers: inDelays("I17 X-21"),
  },
  {
    rule: "I18",
    name: "a run that was claimed before its time is never counted for its rate again",
    changes: [{ file: "src/worker/load-run.ts", from: "  if (needs !== null) draft.row({ needs });\n", to: "" }],
    killers: inDelays("I18 X-21"),
  },
  {
    rule: "P10",
    name: "a burst whose run was parked meanwhile counts its generations anew",
    changes: [
      {
        file: "src/client/debounce.ts",
        from: "claimed.journal.findLast(",
        to: "claimed.journal.slice(-1).findLast(",
      },
    ],
    killers: inDelays("P10 X-21"),
  },
  {
    rule: "I13",
    name: "a burst does not record until when it is put off",
    changes: [{ file: "src/client/debounce.ts", from: "    notBefore: wakeAt,\n", to: "" }],
    killers: inDelays("I13 X-21"),
  },
  {
    rule: "I13",
    name: "a run that is started afresh forgets when it was to begin",
    changes: [{ file: "src/client/fresh.ts", from: "    ...(notBefore !== null && { notBefore }),\n", to: "" }],
    killers: inDelays("I13 S0-42"),
  },
];

const scheduleMutants = [
  {
    rule: "I10",
    name: "a damaged schedule keeps everybody from listing the others",
    changes: [
      {
        file: "src/client/schedules.ts",
        from: 'if (hasCode(error, "key_missing")) throw error;',
        to: "throw error;",
      },
    ],
    killers: inSchedules("I10 one whose definition"),
  },
  {
    rule: "SK3",
    name: "a change that nobody can read keeps a schedule from its slots for ever",
    changes: [
      {
        file: "src/worker/schedule-keeper.ts",
        from: "if (recent !== undefined) throw recent.error;",
        to: "if (opened.faults[0] !== undefined) throw opened.faults[0].error;",
      },
    ],
    killers: inSchedules("I10 I13"),
  },
  {
    rule: "SK3",
    name: "a change that this worker cannot read is left out at once",
    changes: [
      {
        file: "src/worker/schedule-keeper.ts",
        from: "if (recent !== undefined) throw recent.error;",
        to: "if (opened.faults.length < 0) throw recent;",
      },
    ],
    killers: inSchedules("I10 I13"),
  },
  {
    rule: "I13",
    name: "a schedule forgets which slots it has settled",
    changes: [
      {
        file: "src/worker/schedule-keeper.ts",
        from: "    for (const row of state) draft.state(row);\n",
        to: `    for (const row of state) if (row.key !== "cursor") draft.state(row);\n`,
      },
    ],
    killers: inSchedules("C-26 I13"),
  },
  {
    rule: "I13",
    name: "the run of a slot may be there twice",
    changes: [
      {
        file: "src/core/slot-run.ts",
        from: "return `${name}@${new Date(slot).toISOString()}`;",
        to: "return `${name}@${new Date(slot).toISOString()}`.concat(globalThis.performance.now().toString(36));",
      },
    ],
    killers: inSchedules("(C-26 I13|I13)"),
  },
  {
    rule: "SD1",
    name: "a slot that is settled stays the next one",
    changes: [{ file: "src/core/schedule.ts", from: "      next: due.next,\n", to: "      next: cursor.next,\n" }],
    killers: inSchedules("C-26 I13"),
  },
  {
    rule: "SD3",
    name: "what was due before a change is settled by the new definition",
    changes: [
      {
        file: "src/worker/schedule-keeper.ts",
        from: "    this.settle(at);\n    this.schedule = changed",
        to: "    this.schedule = changed",
      },
    ],
    killers: inSchedules("C-26 what was due before a change"),
  },
  {
    rule: "P18",
    name: "a schedule goes to sleep although a change came first",
    changes: [
      {
        file: "src/worker/schedule-keeper.ts",
        from: "return draft.take({ ifWake: wake, row }).commit;",
        to: "const { ifWake: _ifWake, ...commit } = draft.take({ ifWake: wake, row }).commit;\n  return commit;",
      },
    ],
    killers: inSchedules("P18"),
  },
  {
    rule: "C-26",
    name: "a slot starts its run beside the one before, whatever the policy says",
    changes: [
      {
        file: "src/worker/schedule-keeper.ts",
        from: "return row !== null && !isTerminal(row.state);",
        to: `return row !== null && row.state === "cancelled";`,
      },
    ],
    killers: inSchedules("C-26 overlap: skip"),
  },
];

const transactionMutants = [
  {
    rule: "TX1",
    name: "a refused outcome does not take the user's SQL with it (on PostgreSQL)",
    changes: [
      {
        file: "src/stores/postgres/transact-functions.ts",
        from: "        raise exception sqlstate '${REFUSED}' using message = v_answer::text;\n",
        to: "        null;\n",
      },
    ],
    killers: [inCase("PostgreSQL", "I7")],
  },
  {
    rule: "TX1",
    name: "a refused outcome does not take the user's SQL with it (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/transact.ts",
        from: `  if (verdict.kind !== "applied") throw new NotApplied(verdict);\n`,
        to: `  if (verdict.run === "") throw new NotApplied(verdict);\n`,
      },
    ],
    killers: [inCase("SQLite", "I7")],
  },
  {
    rule: "TX1",
    name: "what COMMIT answers is not looked at (on PostgreSQL)",
    changes: [
      {
        file: "src/stores/postgres/transact.ts",
        from: `  if (isCommitted(end) && last.status === "fulfilled") return`,
        to: `  void isCommitted(end);\n  if (last.status === "fulfilled") return`,
      },
    ],
    killers: [{ file: TRANSACTIONS, title: "checked at COMMIT" }],
  },
  {
    rule: "P17",
    name: "a transaction whose COMMIT got no answer counts as rolled back (on PostgreSQL)",
    changes: [
      {
        file: "src/stores/postgres/transact.ts",
        from: "throw lostAnswer(lost.reason, to.sessions.where);",
        to: "throw (run === '' ? lostAnswer : unavailable)(lost.reason, to.sessions.where);",
      },
    ],
    killers: [{ file: "test/transactions/wire.test.ts" }],
  },
  {
    rule: "P17",
    name: "after an unknown outcome a transaction is run again without a look",
    changes: [
      {
        file: "src/worker/transactor.ts",
        from: `    if ("error" in answer && !hasCode(answer.error, "storage_unavailable")) return this.#cutOff(answer.error);\n`,
        to: "",
      },
    ],
    killers: [{ file: "test/transactions/wire.test.ts" }],
  },
  {
    rule: "P22",
    name: "a transaction that does nothing is never ended (on PostgreSQL)",
    changes: [
      {
        file: "src/stores/postgres/transact.ts",
        from: "String(timeoutMs), String(idleMs)];",
        to: "String(timeoutMs), String(0 * idleMs)];",
      },
    ],
    killers: [{ file: "test/transactions/crash.test.ts", title: "B31" }],
  },
  {
    rule: "P22",
    name: "a transaction of SQLite may wait for what it likes",
    changes: [
      {
        file: "src/core/transaction-function.ts",
        from: `return transactions === "synchronous" && fn.constructor.name === "AsyncFunction" ? mayNotWait(name) : null;`,
        to: `return fn.constructor.name === "" ? mayNotWait(name) : null;`,
      },
    ],
    killers: [{ file: TRANSACTIONS, title: "sqlite P22" }],
  },
  {
    rule: "TX2",
    name: "a transaction writes its outcome while a batch of its run is under way",
    changes: [
      {
        file: "src/core/transactions.ts",
        from: "if (isHeld || this.#pass.outgoing.isBusy || this.#pass.draft.isCreating) return;",
        to: "if (isHeld || this.#pass.draft.isCreating) return;",
      },
    ],
    killers: [{ file: TRANSACTIONS, title: "(sqlite|postgres) I7" }],
  },
  {
    rule: "TX2",
    name: "what happens while a transaction is decided joins the draft",
    changes: [
      { file: "src/core/draft.ts", from: "    this.#held = held;\n    return batch;\n", to: "    return batch;\n" },
    ],
    killers: [{ file: TRANSACTIONS, title: "(sqlite|postgres) I7" }],
  },
  {
    rule: "TX3",
    name: "an outcome that is in the journal waits for its turn like any other",
    changes: [
      {
        file: "src/core/deliver-next.ts",
        from: "  const committed = pass.steps.takeCommitted();\n  if (committed !== null) {",
        to: "  const first = wakeupOf(pass);\n  const committed = first === 'cancel' ? null : pass.steps.takeCommitted();\n  if (committed !== null) {",
      },
    ],
    killers: [{ file: TRANSACTIONS, title: "(sqlite|postgres) I7 P2 P19" }],
  },
  {
    rule: "TX4",
    name: "a transaction with a snapshot of its own goes on beside other work of its run",
    changes: [
      {
        file: "src/core/transactions.ts",
        from: `this.#pass.ports.transactions === "synchronous" || isolation !== "read committed";`,
        to: `this.#pass.ports.transactions === "synchronous" && isolation !== undefined;`,
      },
    ],
    killers: [{ file: TRANSACTIONS, title: "TX4" }],
  },
  {
    rule: "I7",
    name: "a transaction that the user's SQL has ended is not noticed (on PostgreSQL)",
    changes: [
      {
        file: "src/stores/postgres/transact-functions.ts",
        from: "if current_setting('pawl.transaction', true) is distinct from p_transaction then",
        to: "if current_setting('pawl.transaction', true) = '?' || p_transaction then",
      },
    ],
    killers: [{ file: "test/postgres/concurrency.test.ts", title: "TX1" }],
  },
  {
    rule: "I7",
    name: "a run is started on a connection without a transaction (on PostgreSQL)",
    changes: [
      {
        file: "src/stores/postgres/transact-functions.ts",
        from: "if current_setting('pawl.enlisted', true) is distinct from p_transaction then",
        to: "if current_setting('pawl.enlisted', true) = '?' || p_transaction then",
      },
    ],
    killers: [{ file: "test/transactions/start.test.ts", title: "a connection without an open transaction" }],
  },
];

export const flowMutants = [...limitMutants, ...scheduleMutants, ...transactionMutants];
