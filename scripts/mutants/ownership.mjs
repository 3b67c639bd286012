// Wake-ups, ownership, cancel: P18 to P28.

import { SIMULATED } from "./simulator.mjs";

const LATE_ANSWERS = "test/attacks/late-answers.test.ts";

export const ownershipMutants = [
  {
    rule: "P18",
    name: "a suspension holds although mail came first",
    changes: [
      {
        file: "src/core/draft.ts",
        from: "{ ifWake: suspension.ifWake, ...plain, row: { ...plain.row, ...suspension.row } }",
        to: "{ ...plain, row: { ...plain.row, ...suspension.row } }",
      },
    ],
    killers: [{ file: "test/behaviour/suspension.test.ts", title: "P18" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "P18",
    name: "a message does not raise the counter (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/deliver.ts",
        from: "update runs set wake = wake + 1, unread = max(unread, 0) + 1,",
        to: "update runs set unread = max(unread, 0) + 1,",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "P18",
    name: "a message does not make a run that waits claimable (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/deliver.ts",
        from: "when 'parked' then ?2 = 'decision' else state <> 'accepted' end)",
        to: "when 'parked' then ?2 = 'decision' else false end)",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "P18",
    name: "the store takes a suspension whatever the counter says (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/conditions.ts",
        from: "part.ifWake !== undefined && part.ifWake !== (found?.wake ?? 0)",
        to: "part.ifWake !== undefined && part.ifWake < 0 && found === null",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "P19",
    name: "an end holds although a cancel was accepted before it",
    changes: [
      { file: "src/core/draft.ts", from: "    this.#open().ifNotCancelled = true;\n", to: "    this.#open();\n" },
    ],
    killers: [{ file: "test/behaviour/cancel.test.ts", title: "P19" }],
  },
  {
    rule: "P19",
    name: "a cancel rejects new calls only, not those that are pending",
    changes: [{ file: "src/core/cancellation.ts", from: "    this.#pass.calls.rejectAll(error);\n", to: "" }],
    killers: [{ file: "test/behaviour/cancel.test.ts", title: "P19" }],
  },
  {
    rule: "P19",
    name: "a cancelled run ends as its body likes",
    changes: [
      {
        file: "src/core/endings.ts",
        from: "if (pass.cancelling === null || pass.body.isIncomplete) return endOf(pass, result);",
        to: "if (pass.cancelling === null || result !== null) return endOf(pass, result);",
      },
    ],
    killers: [{ file: "test/behaviour/cancel.test.ts" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "P19",
    name: "a body can make new calls after a cancel",
    changes: [
      {
        file: "src/core/pass.ts",
        from: `    if (this.cancelling !== null) rejectCall(call, cancelError(this.id, this.cancelling));
    else if (this.#turnOpen)`,
        to: "    if (this.#turnOpen)",
      },
    ],
    killers: [{ file: "test/behaviour/cancel.test.ts" }],
  },
  {
    rule: "P20",
    name: "fencing releases the runs of a worker and leaves the worker (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/workers.ts",
        from: "  for (const worker of workers) db.run(DELETE, worker);\n  if",
        to: "  if",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "P20",
    name: "a worker that is alive is fenced like a dead one",
    changes: [
      {
        file: "src/worker/sweeper.ts",
        from: "return leaseLeftMs < 0 && this.#lease.heldForMs",
        to: "return this.#lease.heldForMs",
      },
      { file: "src/worker/sweeper.ts", from: "this.#fence(silent, true)", to: "this.#fence(silent, false)" },
    ],
    killers: [{ file: "test/behaviour/retention.test.ts" }, { file: "test/attacks/fencing.test.ts" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "I9",
    name: "a worker that was found silent is fenced though it was heard of since",
    changes: [{ file: "src/worker/sweeper.ts", from: "this.#fence(silent, true)", to: "this.#fence(silent, false)" }],
    killers: [{ file: "test/attacks/fencing.test.ts", title: "heard of before it could fence" }],
  },
  {
    rule: "P18",
    name: "a run that is left parked is let go though somebody has just decided",
    changes: [{ file: "src/worker/load-run.ts", from: "    draft.ifWake(claimed.wake);\n", to: "" }],
    killers: [{ file: LATE_ANSWERS, title: "that is parked" }],
  },
  {
    rule: "I4",
    name: "a run that was cancelled after a park is handed back as parked",
    changes: [{ file: "src/worker/load-run.ts", from: ', "run.resolved", "run.cancelling"]', to: ', "run.resolved"]' }],
    killers: [{ file: "src/worker/load-run.test.ts" }],
  },
  {
    rule: "I4",
    name: "a run that is parked is handed back as running",
    changes: [
      {
        file: "src/worker/run-loader.ts",
        from: 'isParked(journal) && { state: "parked" }',
        to: 'isParked(journal) && row.claims < 0 && { state: "parked" }',
      },
    ],
    killers: [{ file: LATE_ANSWERS, title: "handed back as parked" }],
  },
  {
    rule: "I4",
    name: "a run that was taken, not claimed, says what it was before",
    changes: [
      {
        file: "src/worker/load-run.ts",
        from: '  if (row.state !== "running") draft.row({ state: "running" });\n',
        to: "",
      },
    ],
    killers: [{ file: LATE_ANSWERS, title: "shown as running" }],
  },
  {
    rule: "P21",
    name: "a commit of a fenced worker is applied (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/commit.ts",
        from: "if (worker !== null && !isRegistered(db, worker)) {",
        to: "if (worker === '' && !isRegistered(db, worker)) {",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "P21",
    name: "a commit of a fenced worker is applied (memory)",
    changes: [
      {
        file: "src/stores/memory/commit.ts",
        from: "const isFenced = worker !== null && !tables.workers.has(worker);",
        to: "const isFenced = worker === '';",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "memory" }],
  },
  {
    rule: "P23",
    name: "runs that a worker owns and does not hold are not looked for",
    changes: [
      {
        file: "src/worker/run-loader.ts",
        from: "    if (worker === null) return;\n    for (const",
        to: "    if (worker !== '') return;\n    for (const",
      },
    ],
    killers: [{ file: "test/attacks/fencing.test.ts", title: "P23" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "P25",
    name: "a sweeper that was away itself fences the others",
    changes: [
      {
        file: "src/worker/sweeper.ts",
        from: "leaseLeftMs < 0 && this.#lease.heldForMs >= this.#options.leaseMs",
        to: "leaseLeftMs < 0",
      },
    ],
    killers: [{ file: "test/attacks/fencing.test.ts", title: "P25" }, { file: "test/behaviour/retention.test.ts" }],
  },
  {
    rule: "P26",
    name: "the heartbeats of a process that hangs go on for ever",
    changes: [
      {
        file: "src/stores/sqlite/pulse-thread.ts",
        from: "if (!isStalled && renew(task, signals)",
        to: "if ((!isStalled || task.stallMs > 0) && renew(task, signals)",
      },
    ],
    killers: [{ file: "src/stores/sqlite/pulse.test.ts", title: "P26" }],
  },
  {
    rule: "P27",
    name: "a process of another pid namespace is judged by its pid",
    changes: [
      {
        file: "src/worker/process-identity.ts",
        from: "  if (other.pidNamespace !== mine.pidNamespace) return false;\n",
        to: "",
      },
    ],
    killers: [{ file: "src/worker/process-identity.test.ts" }],
  },
  {
    rule: "P27",
    name: "a pid that another process has by now passes for the worker",
    changes: [
      {
        file: "src/worker/process-identity.ts",
        from: "return startedAt !== null && other.startedAt !== null && startedAt !== other.startedAt;",
        to: "return startedAt === '';",
      },
    ],
    killers: [{ file: "src/worker/process-identity.test.ts" }],
  },
  {
    rule: "P28",
    name: "a run that kills its worker is never parked",
    changes: [
      {
        file: "src/worker/load-run.ts",
        from: "return row.claims > LIMITS.deathsAmongOthers + LIMITS.deathsAlone;",
        to: "return row.claims > 1000 * (LIMITS.deathsAmongOthers + LIMITS.deathsAlone);",
      },
    ],
    killers: [{ file: "test/behaviour/versions.test.ts", title: "P28" }],
  },
  {
    rule: "P28",
    name: "suspects run beside each other",
    changes: [
      {
        file: "src/worker/claims.ts",
        from: "const suspect = this.#suspects.size === 0;",
        to: "const suspect = this.#suspects.size >= 0;",
      },
    ],
    killers: [{ file: "test/behaviour/versions.test.ts", title: "P28" }],
  },
  {
    rule: "P28",
    name: "deaths before a recorded outcome are counted after it (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/workers.ts",
        from: "claims = case when ?3 or ${HAS_PROGRESSED} then 0 else claims end",
        to: "claims = case when ?3 or (false and ${HAS_PROGRESSED}) then 0 else claims end",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "P28",
    name: "a rerun after a crash begins before that is recorded",
    changes: [
      {
        file: "src/core/steps.ts",
        from: `call.key, mark, call);
    this.startBehindBarrier(call);`,
        to: `call.key, mark, call);
    this.#attempts.start(call);`,
      },
    ],
    killers: [{ file: "test/behaviour/recovery.test.ts", title: "P28" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "P28",
    name: "a rerun after a crash uses up a retry",
    changes: [
      {
        file: "src/core/steps.ts",
        from: "    call.attempt++;\n",
        to: "    call.attempt++;\n    if (how.rerun === true) call.failures++;\n",
      },
    ],
    killers: [{ file: "test/behaviour/recovery.test.ts", title: "P28" }],
  },
  {
    rule: "P18",
    name: "a suspension that mail has overtaken does not ask for the mail",
    changes: [
      {
        file: "src/core/pass.ts",
        from: "    if (!this.#outgoing.overtaken(why)) return;\n    askForMail(this);\n",
        to: "    if (!this.#outgoing.overtaken(why)) return;\n",
      },
    ],
    killers: [
      { file: "test/behaviour/suspension.test.ts", title: "P18" },
      { file: "test/attacks/lost-wakeups.test.ts" },
    ],
  },
  {
    rule: "P19",
    name: "a cancelled run leaves its children alone",
    changes: [
      {
        file: "src/core/endings.ts",
        from: "  cancelChildren(pass, { reason: cancelling.reason, compensate: cancelling.compensate === true });\n",
        to: "",
      },
    ],
    killers: [{ file: "test/behaviour/children.test.ts", title: "P12" }, { file: "test/behaviour/cancel.test.ts" }],
  },
  {
    rule: "P19",
    name: "a step begins although a cancel is there",
    changes: [
      {
        file: "src/core/steps.ts",
        from: "return this.#pass.isClosed || this.#pass.isStopping;",
        to: "return this.#pass.isClosed;",
      },
    ],
    killers: [{ file: "test/behaviour/cancel.test.ts" }, { file: "test/attacks/late-start.test.ts" }],
  },
  {
    rule: "P19",
    name: "the outcomes before a refused end are lost with it",
    changes: [
      {
        file: "src/core/draft.ts",
        from: "const entries = batch.commit.entries.slice(0, kept.entries);",
        to: "const entries = batch.commit.entries.slice(0, Math.min(0, kept.entries));",
      },
    ],
    killers: [{ file: "test/behaviour/cancel.test.ts" }],
  },
  {
    rule: "P19",
    name: "a body that never ends keeps its run from being cancelled",
    changes: [
      {
        file: "src/core/body.ts",
        from: "    this.cancellation.giveGrace((error) => this.#pass.guarded(() => this.#close({ ok: false, error })));\n",
        to: "",
      },
    ],
    killers: [{ file: "test/behaviour/cancel.test.ts" }],
  },
  {
    rule: "P23",
    name: "what a worker owns is compared only after it has fenced itself, never with a heartbeat",
    changes: [
      {
        file: "src/worker/worker.ts",
        from: "      beat: () => this.#compareWithStore(),\n",
        to: "      beat: async () => {},\n",
      },
    ],
    killers: [{ file: "test/attacks/user-code.test.ts", title: "a codec that fails" }],
  },
  {
    rule: "P25",
    name: "a break in its heartbeats does not count against a sweeper",
    changes: [{ file: "src/worker/lease.ts", from: "    if (!this.isSure) this.#heldSince = sentAt;\n", to: "" }],
    killers: [{ file: "test/attacks/fencing.test.ts", title: "P25" }],
  },
  {
    rule: "P27",
    name: "a process that may not be signalled passes for dead",
    changes: [
      {
        file: "src/worker/process-identity.ts",
        from: `return (error as NodeJS.ErrnoException).code === "ESRCH";`,
        to: `return (error as NodeJS.ErrnoException).code !== "";`,
      },
    ],
    killers: [{ file: "src/worker/process-identity.test.ts" }],
  },
  {
    rule: "P28",
    name: "a run that let go in peace still carries its deaths",
    changes: [
      {
        file: "src/core/rest.ts",
        from: "    wakeAt: calls.nextDue(cancelling === null && !body.isCompensating ? row.deadline : null),\n    claims: 0,\n",
        to: "    wakeAt: calls.nextDue(cancelling === null && !body.isCompensating ? row.deadline : null),\n",
      },
    ],
    killers: [{ file: "test/behaviour/versions.test.ts", title: "P28" }, { file: "test/behaviour/suspension.test.ts" }],
  },
  {
    rule: "P28",
    name: "a hand-back counts as a death (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/workers.ts",
        from: "  release(db, worker, now, true);\n",
        to: "  release(db, worker, now, false);\n",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "P23",
    name: "a late answer to a claim or a take loads a run that was loaded meanwhile",
    changes: [
      {
        file: "src/worker/run-loader.ts",
        from: "(await question()).filter(({ run }) => !loaded.has(run))",
        to: "await question()",
      },
    ],
    killers: [{ file: LATE_ANSWERS, title: "late answer to a claim" }],
  },
  {
    rule: "I6",
    name: "a run that was seen waiting is rewritten though it is at work here by now",
    changes: [
      {
        file: "src/worker/run-loader.ts",
        from: "    if (this.#parts.passes.has(run)) return null;\n",
        to: "",
      },
    ],
    killers: [{ file: LATE_ANSWERS, title: "though it was seen waiting" }],
  },
  {
    rule: "P19",
    name: "a run that is cancelled while it is written to without its body sleeps on",
    changes: [
      {
        file: "src/worker/take-over.ts",
        from: "write({ ...commit, ifNotCancelled: true })",
        to: "write(commit)",
      },
    ],
    killers: [{ file: "test/behaviour/delayed-starts.test.ts", title: "P19 X-21" }],
  },
  {
    rule: "P23",
    name: "a run that was taken to be written to, and could not be, is kept",
    changes: [
      {
        file: "src/worker/take-over.ts",
        from: "      await this.#parts.giveBack(claimed);\n      throw error;",
        to: "      throw error;",
      },
    ],
    killers: [{ file: LATE_ANSWERS, title: "gives it back" }],
  },
  {
    rule: "I18",
    name: "a run that its worker has taken unknowingly, without its slot, begins",
    changes: [
      {
        file: "src/worker/run-loader.ts",
        from: 'this.#slotless.delete(run) || row.state !== "running"',
        to: 'row.state !== "running"',
      },
    ],
    killers: [{ file: LATE_ANSWERS, title: "P23 I18" }],
  },
  {
    rule: "P23",
    name: "a run that a process without its code has taken unknowingly stays with it",
    changes: [
      {
        file: "src/worker/load-run.ts",
        from: '  if (workflow === undefined) return { kind: "bodied" };\n  const changed',
        to: '  if (workflow === undefined) throw new Error("its code is not here");\n  const changed',
      },
    ],
    killers: [{ file: LATE_ANSWERS, title: "is let go again" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "P23",
    name: "a claim that is answered after its run was rewritten begins what that was before",
    changes: [
      {
        file: "src/worker/run-loader.ts",
        from: "    if (claimed !== null) this.#noteLoaded(run);\n",
        to: "",
      },
    ],
    killers: [{ file: LATE_ANSWERS, title: "it is another generation by then" }],
  },
  {
    rule: "P17",
    name: "a start that meets its own trace depends on one more answer",
    changes: [
      {
        file: "src/client/start.ts",
        from: "    if (options.id === undefined) return verdict.holder.id;\n",
        to: "",
      },
    ],
    killers: [{ file: LATE_ANSWERS, title: "of a start" }],
  },
  {
    rule: "P18",
    name: "a suspension that was asked for while a batch was offered again is forgotten",
    changes: [
      {
        file: "src/core/pass.ts",
        from: " else if (this.#outgoing.wasOffered || batch.isTransaction) this.evaluate();",
        to: " else if (batch.isTransaction) this.evaluate();",
      },
    ],
    killers: [{ file: LATE_ANSWERS, title: "offered again" }],
  },
  {
    rule: "P19",
    name: "after a cancel took an end back, other outcomes join the journal",
    changes: [
      {
        file: "src/core/pass.ts",
        from: '    if (this.body.result !== null && wakeup !== "cancel" && wakeup !== "deadline") return;\n',
        to: "",
      },
      {
        file: "src/core/deliver-next.ts",
        from: "  if (pass.body.result !== null) return;\n",
        to: "",
      },
    ],
    killers: [{ file: LATE_ANSWERS, title: "no outcome of a step" }],
  },
  {
    rule: "P19",
    name: "a branch that outlived its body goes on after a cancel took the end back",
    changes: [
      {
        file: "src/core/pass.ts",
        from: "    if (this.body.isDeaf) return call.promise;\n",
        to: "",
      },
    ],
    killers: [{ file: LATE_ANSWERS, title: "no call of a branch" }],
  },
];
