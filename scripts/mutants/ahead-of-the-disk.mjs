// Running ahead of the disk: P13 to P17, P37.

import { SIMULATED } from "./simulator.mjs";

export const diskMutants = [
  {
    rule: "P13",
    name: "a step's function begins before its start is durable",
    changes: [
      {
        file: "src/core/steps.ts",
        from: "    this.#pass.draft.onDurable(() => {\n      // What was reserved",
        to: "    this.#pass.ports.host.immediate(() => {\n      // What was reserved",
      },
    ],
    killers: [{ file: "test/behaviour/context.test.ts", title: "P13" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "P13",
    name: "a log line appears before what led to it is durable",
    changes: [
      {
        file: "src/core/pass.ts",
        from: "    if (this.#outgoing.isEmpty) fn();\n    else this.draft.onDurable(fn);",
        to: "    fn();",
      },
    ],
    killers: [{ file: "test/attacks/waiting.test.ts", title: "P13" }],
  },
  {
    rule: "P13",
    name: "a cancel aborts steps before it is durable",
    changes: [
      {
        file: "src/core/endings.ts",
        from: "  pass.draft.onDurable(() => pass.steps.abortAll(() => cancelError(pass.id, cancelling)));",
        to: "  pass.steps.abortAll(() => cancelError(pass.id, cancelling));",
      },
    ],
    killers: [{ file: "test/attacks/waiting.test.ts", title: "P13" }],
  },
  {
    rule: "P14",
    name: "a pass that is dropped lets its steps go on",
    changes: [{ file: "src/core/pass.ts", from: "    this.steps.abortAll(() => reason);\n", to: "    void reason;\n" }],
    killers: [{ file: "test/attacks/incarnations.test.ts", title: "P14" }],
  },
  {
    rule: "P13",
    name: "all runs of a commit go on at once, and a crash repeats a step of each",
    changes: [
      {
        file: "src/worker/lane.ts",
        from: "if (this.#ahead.size >= this.#sliceRuns || this.#owner.isGathering())",
        to: "if (this.#owner.isGathering())",
      },
    ],
    killers: [{ file: "test/behaviour/slices.test.ts", title: "I6 P13" }],
  },
  {
    rule: "P13",
    name: "what a run has to write while its answer waits for its slice is forgotten",
    changes: [
      {
        file: "src/worker/lane.ts",
        from: "isDirty: this.#dirty.delete(source) }",
        to: "isDirty: false }",
      },
    ],
    killers: [
      { file: "src/worker/committer.test.ts", title: "I10" },
      { file: "src/worker/committer-slices.test.ts", title: "P13" },
    ],
  },
  {
    rule: "P13",
    name: "more runs go on after a commit that has nothing of those before them",
    changes: [
      {
        file: "src/worker/lane.ts",
        from: "    if (!this.#owner.areTurnsWanted()) this.#ahead.turnsClosed();",
        to: "    this.#ahead.turnsClosed();",
      },
    ],
    killers: [
      { file: "src/worker/committer-slices.test.ts", title: "P13" },
      { file: "test/behaviour/slices.test.ts", title: "I6 P13 one slice" },
    ],
  },
  {
    rule: "P13",
    name: "more runs go on with every try while the disk is full",
    changes: [{ file: "src/worker/lane.ts", from: "commitEnds(again.length === 0)", to: "commitEnds(true)" }],
    killers: [{ file: "src/worker/committer-slices.test.ts", title: "P13" }],
  },
  {
    rule: "I2",
    name: "a start is acknowledged only when its run goes on",
    changes: [
      {
        file: "src/worker/lane.ts",
        from: `      if (answer.verdict.kind === "applied") answer.source.acknowledge();\n`,
        to: "",
      },
      {
        file: "src/worker/lane.ts",
        from: "      source.verdict(verdict);",
        to: `      if (verdict.kind === "applied") source.acknowledge();
      source.verdict(verdict);`,
      },
    ],
    killers: [{ file: "test/behaviour/slices.test.ts", title: "I2" }],
  },
  {
    rule: "I2",
    name: "a start whose answer was lost is never acknowledged, though its run is there",
    changes: [{ file: "src/worker/pass-table.ts", from: "    this.#sources.get(pass)?.acknowledge();\n", to: "" }],
    killers: [{ file: "test/attacks/fencing.test.ts", title: "I2 P17 a start" }],
  },
  {
    rule: "P17",
    name: "answers are kept after one of them has found the lease over",
    changes: [
      {
        file: "src/worker/lane.ts",
        from: "answer.source.isPatient ? this.#keep(answer) : urgent.push(answer);",
        to: "answer.source.isPatient ? this.#keep(answer) : this.#hand(answer);",
      },
    ],
    killers: [{ file: "src/worker/committer.test.ts", title: "P17 P37" }],
  },
  {
    rule: "P17",
    name: "an answer that was not handed on when the worker was cut off is handed on later",
    changes: [
      {
        file: "src/worker/committer.ts",
        from: "    for (const lane of this.#lanes) lane.forgetAnswers();",
        to: "",
      },
    ],
    killers: [{ file: "src/worker/committer.test.ts", title: "P17" }],
  },
  {
    rule: "P15",
    name: "a run may have two commits under way",
    changes: [
      {
        file: "src/core/outgoing.ts",
        from: "if (this.#inFlight !== null || this.#draft.isHeld) return null;",
        to: "if (this.#draft.isHeld) return null;",
      },
      {
        file: "src/worker/lane.ts",
        from: "this.#dirty.size > 0 && !this.#isCommitting && !this.#owner.isPaused()",
        to: "this.#dirty.size > 0 && !this.#owner.isPaused()",
      },
    ],
    killers: [{ file: "test/attacks/incarnations.test.ts", title: "P15" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "P16",
    name: "an error in one run's part of a commit fails its neighbours (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/commit.ts",
        from: "    if (error instanceof BrokenPart) return write(commitOrFail, true);\n",
        to: "    if (error instanceof BrokenPart) throw error.cause;\n",
      },
    ],
    killers: [{ file: "src/stores/sqlite/faults.test.ts", title: "P16" }],
  },
  {
    rule: "P16",
    name: "one refused run takes the rest of its commit down with it",
    changes: [
      {
        file: "src/worker/lane.ts",
        from: "      this.#sort(answers);",
        to: `      const failed = answers.find(({ verdict }) => verdict.kind === "failed");
      if (failed !== undefined)
        for (const { source } of answers) this.#hand({ source, verdict: { ...failed.verdict, run: source.id } });
      else this.#sort(answers);`,
      },
    ],
    killers: [{ file: "test/attacks/user-code.test.ts", title: "P16" }],
  },
  {
    rule: "P17",
    name: "a commit without an answer is repeated, without fencing first",
    changes: [
      {
        file: "src/worker/committer.ts",
        from: `      this.#stop(error, sources);
      done([], []);`,
        to: `      for (const source of sources) source.offerAgain();
      done(sources, []);`,
      },
    ],
    killers: [{ file: "test/attacks/fencing.test.ts" }, { file: "test/attacks/incarnations.test.ts" }],
  },
  {
    rule: "P17",
    name: "an answer to the old incarnation still counts",
    changes: [
      {
        file: "src/worker/committer.ts",
        from: `    const answered = (verdicts: readonly Verdict[]) => {
      if (epoch !== this.#epoch) return done([], []);`,
        to: "    const answered = (verdicts: readonly Verdict[]) => {",
      },
    ],
    killers: [{ file: "test/attacks/incarnations.test.ts", title: "P17" }],
  },
  {
    rule: "P17",
    name: "a batch that was applied is offered again after fencing",
    changes: [
      {
        file: "src/worker/pass-table.ts",
        from: "      if (mail !== undefined && mail.head === end && end > start) this.#landed(pass);\n      else if",
        to: "      if",
      },
    ],
    killers: [{ file: "test/attacks/incarnations.test.ts" }, { file: "test/attacks/fencing.test.ts" }],
  },
  {
    rule: "P17",
    name: "a pass lives on although its run was not moved",
    changes: [
      {
        file: "src/worker/pass-table.ts",
        from: "      else this.drop(pass);\n",
        to: "      else if (mail === undefined) pass.applied();\n      else this.drop(pass);\n",
      },
    ],
    killers: [{ file: "test/attacks/incarnations.test.ts", title: "P17" }],
  },
  {
    rule: "P17",
    name: "fencing forgets an incarnation whose own fencing was never answered",
    changes: [
      {
        file: "src/worker/lease.ts",
        from: "    this.#former.push(worker.id);\n    const reply",
        to: "    const reply",
      },
    ],
    killers: [{ file: "test/attacks/fencing.test.ts", title: "P17" }],
  },
  {
    rule: "P37",
    name: "a step begins although the lease may have run out",
    changes: [
      {
        file: "src/core/attempts.ts",
        from: "    if (!this.#ports.mayStart()) return this.#ports.whenSafe(() => this.start(call, isPatient));\n",
        to: "",
      },
    ],
    killers: [{ file: "test/attacks/start-gate.test.ts" }],
  },
  {
    rule: "P37",
    name: "an undo that waited for its action begins although the lease may have run out",
    changes: [
      {
        file: "src/core/compensation.ts",
        from: "      const begin = () => this.#whenSafe(resolve);\n",
        to: "      const begin = () => resolve();\n      void this.#whenSafe;\n",
      },
    ],
    killers: [{ file: "test/attacks/start-gate.test.ts", title: "wait for its action" }],
  },
  {
    rule: "P37",
    name: "the lease counts from when the heartbeat was answered",
    changes: [
      {
        file: "src/worker/lease.ts",
        from: "    if (alive) this.#confirmedAt = sentAt;\n",
        to: "    if (alive) this.#confirmedAt = this.#store.leaseClock.monotonic();\n",
      },
    ],
    killers: [{ file: "test/attacks/start-gate.test.ts" }],
  },
  {
    rule: "P13",
    name: "a child begins before the commit that starts it is durable",
    changes: [
      {
        file: "src/core/issue.ts",
        from: "  if (create.claimed) pass.draft.onDurable(() => pass.ports.adopt({ run: child, workflow, create, entry }));",
        to: "  if (create.claimed) pass.ports.host.immediate(() => pass.ports.adopt({ run: child, workflow, create, entry }));",
      },
    ],
    killers: [{ file: "test/attacks/waiting.test.ts", title: "P13" }],
  },
  {
    rule: "P13",
    name: "a run is over for its callers when its end is on the way",
    changes: [
      {
        file: "src/core/pass.ts",
        from: "    this.#final = final;\n    this.draft",
        to: `    this.#final = final;
    if (final.kind === "ended") this.ports.host.immediate(() => this.ports.over(this, final));
    this.draft`,
      },
    ],
    killers: [{ file: "test/attacks/waiting.test.ts" }],
  },
  {
    rule: "P17",
    name: "a start in doubt is reported as failed",
    changes: [
      {
        file: "src/worker/pass-table.ts",
        from: "      if (wasNeverCreated && batch !== null) this.#sources.get(pass)?.doubt();\n",
        to: "",
      },
    ],
    killers: [{ file: "test/attacks/fencing.test.ts", title: "I2" }],
  },
  {
    rule: "P17",
    name: "what came with the moved runs is not told to their passes",
    changes: [
      {
        file: "src/worker/pass-table.ts",
        from: "      if (mail !== undefined && !pass.isOver) pass.mail(mail, readAt);\n",
        to: "      void readAt;\n",
      },
    ],
    killers: [{ file: "test/attacks/incarnations.test.ts", title: "P17" }],
  },
];
