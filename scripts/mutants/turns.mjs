// Turns and the journal: P2 to P12, DESIGN 3 and 4.

import { SIMULATED } from "./simulator.mjs";

export const turnMutants = [
  {
    rule: "P2",
    name: "a turn delivers every outcome that is there",
    changes: [
      {
        file: "src/core/deliver-next.ts",
        from: `  if (outcome !== undefined) {
    const { call, type, text, payload } = outcome;`,
        to: `  for (let more = pass.steps.takeOutcome(); more !== undefined; more = pass.steps.takeOutcome()) {
    pass.draft.appendText(pass.ports.clock.now(), more.type, more.call.key, more.text);
    pass.delivered(more.type, more.call.key, more.payload);
  }
  if (outcome !== undefined) {
    const { call, type, text, payload } = outcome;`,
      },
    ],
    killers: [{ file: "test/determinism/every-prefix.test.ts" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "P2",
    name: "an outcome joins the journal when it arrives, not when its turn begins",
    changes: [
      {
        file: "src/core/steps.ts",
        from: "    this.#ready.push(outcome);",
        to: `    this.#ready.push(outcome);
    this.#pass.draft.appendText(this.#pass.ports.clock.now(), outcome.type, outcome.call.key, outcome.text);`,
      },
      {
        file: "src/core/deliver-next.ts",
        from: "    pass.draft.appendText(pass.ports.clock.now(), type, call.key, text);",
        to: "    void text;",
      },
    ],
    killers: [{ file: "test/determinism/every-prefix.test.ts" }],
  },
  {
    rule: "P3",
    name: "any call of the same kind is taken for the recorded one",
    changes: [
      {
        file: "src/core/issue.ts",
        from: "if (entry.type !== entryTypeOf(call) || entry.key !== call.key) return false;",
        to: "if (entry.type !== entryTypeOf(call)) return false;",
      },
    ],
    killers: [{ file: "test/behaviour/divergence.test.ts" }],
  },
  {
    rule: "P3",
    name: "a step with other arguments is taken for the recorded one",
    changes: [
      {
        file: "src/core/issue.ts",
        from: "return ((entry.payload as StepStarted)?.digest ?? null) === (call.input?.digest ?? null);",
        to: "return true;",
      },
    ],
    killers: [{ file: "test/behaviour/divergence.test.ts" }],
  },
  {
    rule: "P3",
    name: "a body that ends before its recorded calls is not looked at",
    changes: [
      {
        file: "src/core/pass.ts",
        from: `    if (this.body.hasEndedInTurn && !mayFollowEnd(next.entry.type))`,
        to: `    if (this.body.hasEndedInTurn && next.entry.type === "run.started")`,
      },
    ],
    killers: [{ file: "test/behaviour/divergence.test.ts" }],
  },
  {
    rule: "P3",
    name: "a recorded outcome that nothing waits for is passed over",
    changes: [
      {
        file: "src/core/pass.ts",
        from: "    if (!isAwaited) this.#diverge({ recorded: entry, issued: null, site: null });",
        to: "    void isAwaited;",
      },
    ],
    killers: [{ file: "test/behaviour/divergence.test.ts" }, { file: "test/determinism/mutations.test.ts" }],
  },
  {
    rule: "P4",
    name: "a call after a foreign await is let in beside pending ones",
    changes: [
      {
        file: "src/core/foreign-calls.ts",
        from: "  } else if (isAnythingPending(pass)) refuse(pass, { call, site });\n",
        to: "  }\n",
      },
    ],
    killers: [{ file: "test/behaviour/divergence.test.ts", title: "P4" }],
  },
  {
    rule: "P4",
    name: "a number is drawn after a foreign await beside pending calls",
    changes: [
      {
        file: "src/core/foreign-calls.ts",
        from: "  if (pass.isInTurn || pass.isClosed ||",
        to: "  if (!pass.isInTurn || pass.isClosed ||",
      },
    ],
    killers: [{ file: "test/determinism/foreign-awaits.test.ts", title: "a number that is drawn" }],
  },
  {
    rule: "P4",
    name: "a map or a note after a foreign await beside pending calls passes",
    changes: [{ file: "src/core/body-context.ts", from: "    assertInOrder(this.#pass, `ctx.${what}`);\n", to: "" }],
    killers: [
      { file: "test/determinism/foreign-awaits.test.ts", title: "beside a pending call, is refused: what it leads" },
    ],
  },
  {
    rule: "P4",
    name: "in replay a call after a foreign await is not held until the journal reaches it",
    changes: [
      {
        file: "src/core/foreign-calls.ts",
        from: `    replay.hold({ call, site, burst: replay.burst(pass.ports.host) });
    pass.replayOn();`,
        to: "    pass.inBurst(() => pass.place(call, site));",
      },
    ],
    killers: [{ file: "test/determinism/foreign-awaits.test.ts" }],
  },
  {
    rule: "P5",
    name: "a message whose use is on its way to the store is used again",
    changes: [
      {
        file: "src/core/mailbox.ts",
        from: "mail.inbox.filter((row) => this.#consumed?.has(row.id) !== true)",
        to: "mail.inbox",
      },
    ],
    killers: [{ file: "test/behaviour/delivery-races.test.ts" }],
  },
  {
    rule: "P5",
    name: "a timeout fires without a look into the inbox",
    changes: [
      {
        file: "src/core/wakeups.ts",
        from: "if (around.inboxReadAt < (due.due as number)) return READ_INBOX;",
        to: "if (around.inboxReadAt < 0) return READ_INBOX;",
      },
    ],
    killers: [{ file: "test/behaviour/signals.test.ts", title: "P5" }, { file: "test/attacks/fencing.test.ts" }],
  },
  {
    rule: "P5",
    name: "a signal goes to the oldest wait of its name",
    changes: [{ file: "src/core/wakeups.ts", from: "const call = calls.findLast(", to: "const call = calls.find(" }],
    killers: [{ file: "test/behaviour/signals.test.ts", title: "P5" }],
  },
  {
    rule: "P6",
    name: "an explicit key may be used twice",
    changes: [{ file: "src/core/key-scope.ts", from: "    if (uses.has(use)) return null;\n", to: "" }],
    killers: [{ file: "test/behaviour/steps.test.ts", title: "P6" }],
  },
  {
    rule: "P7",
    name: "all attempts of a step draw from one stream of chance",
    changes: [
      {
        file: "src/core/attempts.ts",
        from: "seededRandom(attemptSeed(this.key, this.attempt))",
        to: "seededRandom(attemptSeed(this.key, 1))",
      },
    ],
    killers: [{ file: "test/behaviour/context.test.ts", title: "P7" }],
  },
  {
    rule: "P8",
    name: "an entry may be older than the one before it",
    changes: [
      { file: "src/core/draft.ts", from: "const time = at > this.#at ? at : this.#at;", to: "const time = at;" },
    ],
    killers: [{ file: "test/behaviour/sleep.test.ts" }, { file: "test/behaviour/odd-times.test.ts" }],
  },
  {
    rule: "P9",
    name: "notes of new code are appended in turns that were recorded without them",
    changes: [
      {
        file: "src/core/notes.ts",
        from: `    if (!this.#pass.isLive && !this.#replay.cursor.isLastTurn) return "ignored";\n`,
        to: "",
      },
    ],
    killers: [{ file: "test/behaviour/context.test.ts", title: "P9" }],
  },
  {
    rule: "P9",
    name: "patched says yes to a run that older code has brought past it",
    changes: [
      {
        file: "src/core/notes.ts",
        from: "if (this.#isPast(id) || this.#pass.isClosed) return false;",
        to: "if (this.#pass.isClosed) return false;",
      },
    ],
    killers: [{ file: "test/behaviour/context.test.ts", title: "P9" }],
  },
  {
    rule: "P9",
    name: "patched says no and then yes in one turn",
    changes: [
      {
        file: "src/core/cursor.ts",
        from: "if (this.#isAtEnd) return this.#past?.has(patch) ?? false;",
        to: "if (this.#isAtEnd) return false;",
      },
    ],
    killers: [{ file: "test/behaviour/context.test.ts", title: "P9" }],
  },
  {
    rule: "P9",
    name: "patched says yes to a run of which older code has recorded only what it said behind it",
    changes: [
      {
        file: "src/core/cursor.ts",
        from: "return this.peek() === null && [...this.#currentWindow().notes.values()].every((left) => left.length === 0);",
        to: "return this.peek() === null;",
      },
    ],
    killers: [{ file: "test/determinism/replay-rules.test.ts", title: "P9" }],
  },
  {
    rule: "P9",
    name: "patched says no for good where it has said no once",
    changes: [
      {
        file: "src/core/cursor.ts",
        from: "    this.#window = null;\n    this.#past = null;\n",
        to: "    this.#window = null;\n",
      },
      {
        file: "src/core/notes.ts",
        from: "return !this.#pass.hasProgressed && this.#replay.cursor.isPast(id);",
        to: "return this.#replay.cursor.isPast(id);",
      },
    ],
    killers: [{ file: "test/behaviour/context.test.ts", title: "P9" }],
  },
  {
    rule: "P10",
    name: "keys, chance and children of a generation are those of the one before",
    changes: [
      {
        file: "src/core/seeds.ts",
        from: "  return `${run}#${generation}`;",
        to: "  return generation < 0 ? `#${generation}` : run;",
      },
      {
        file: "src/core/issue.ts",
        from: "host.digest(`${seed}/${generation}/${key}`)",
        to: "host.digest(generation < 0 ? key : `${seed}/0/${key}`)",
      },
    ],
    killers: [{ file: "test/behaviour/continue-as.test.ts", title: "P10 starts other children" }],
  },
  {
    rule: "P10",
    name: "idempotency keys of a generation are those of the one before",
    changes: [
      {
        file: "src/core/seeds.ts",
        from: "  return `${run}#${generation}`;",
        to: "  return generation < 0 ? `#${generation}` : run;",
      },
    ],
    killers: [{ file: "test/behaviour/continue-as.test.ts", title: "P10 begins" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "P12",
    name: "children that were called outlive their parent",
    changes: [
      {
        file: "src/core/endings.ts",
        from: '  cancelChildren(pass, { reason: `Its parent ${pass.id} ${end.state}.`, compensate: end.state === "failed" });\n',
        to: "",
      },
    ],
    killers: [{ file: "test/behaviour/children.test.ts", title: "P12" }, { file: "test/behaviour/run-end.test.ts" }],
  },
  {
    rule: "P12",
    name: "what happens after the end of a run still joins its journal",
    changes: [
      {
        file: "src/core/pass.ts",
        from: "    return this.#isOver || this.#final !== null;\n",
        to: "    return this.#isOver;\n",
      },
    ],
    killers: [{ file: "test/behaviour/run-end.test.ts" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "D3",
    name: "the body sees a step's value as it was, not as it was recorded",
    changes: [
      {
        file: "src/core/steps.ts",
        from: "const payload = redactor === null && isPlain(value) ? value : decodePayload(text);",
        to: "const payload = isPlain(value) || text !== '' ? value : decodePayload(text);",
      },
    ],
    killers: [{ file: "test/behaviour/steps.test.ts" }],
  },
  {
    rule: "D3",
    name: "the key that a step is given changes from attempt to attempt",
    changes: [
      {
        file: "src/core/attempts.ts",
        from: "    return this.call.idempotencyKey;\n",
        to: "    return `${this.call.idempotencyKey}@${this.attempt}`;\n",
      },
    ],
    killers: [{ file: "test/behaviour/retries.test.ts" }, { file: "test/behaviour/recovery.test.ts" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "D4",
    name: "a sleep that was interrupted begins again",
    changes: [
      {
        file: "src/core/issue.ts",
        from: `  if (call.type === "timer.set") call.due = (entry.payload as TimerSet).due;`,
        to: `  if (call.type === "timer.set")
    call.due = call.afterMs === null ? (entry.payload as TimerSet).due : Date.now() + call.afterMs;`,
      },
    ],
    killers: [{ file: "test/behaviour/sleep.test.ts" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "D4",
    name: "the chance of the body is another one in each pass",
    changes: [
      {
        file: "src/core/seeds.ts",
        from: "this.#chance ??= seededRandom(this.#seed);",
        to: "this.#chance ??= seededRandom(`${this.#seed}${Math.random()}`);",
      },
    ],
    killers: [{ file: "test/behaviour/context.test.ts", title: "P7 S3-15" }],
  },
  {
    rule: "P3",
    name: "replay waits for ever for a recorded call that the body never makes",
    changes: [{ file: "src/core/pass.ts", from: "    this.#watchdog.watch(next.entry);\n", to: "" }],
    killers: [
      { file: "test/determinism/foreign-awaits.test.ts", title: "P4 P3 an end" },
      { file: "test/determinism/mutations.test.ts" },
    ],
  },
  {
    rule: "P5",
    name: "a signal that came after a wait's time was over beats its timeout",
    changes: [
      {
        file: "src/core/wakeups.ts",
        from: "if (mail !== null && (due === null || mail.row.at <= (due.due as number))) return mail;",
        to: "if (mail !== null) return mail;",
      },
    ],
    killers: [{ file: "test/behaviour/signals.test.ts", title: "P5" }],
  },
  {
    rule: "P7",
    name: "the schema of a child's input is asked again in replay",
    changes: [
      {
        file: "src/core/body-context.ts",
        from: "if ((input === undefined && flow === null) || this.#pass.replay.knows(call)) return;",
        to: "if (input === undefined && flow === null) return;",
      },
    ],
    killers: [{ file: "test/behaviour/child-input.test.ts", title: "P7" }],
  },
  {
    rule: "P7",
    name: "calls are allowed inside a step",
    changes: [
      {
        file: "src/core/body-context.ts",
        from: "    if (step === undefined) return;\n    throw",
        to: "    if (step === undefined || what !== '') return;\n    throw",
      },
    ],
    killers: [{ file: "test/behaviour/steps.test.ts", title: "P7" }],
  },
  {
    rule: "P10",
    name: "a fork goes on with the chance and keys of its source",
    changes: [
      {
        file: "src/core/replay.ts",
        from: "      this.#owner.reseed((entry.payload as Forked).seed);\n",
        to: "",
      },
    ],
    killers: [{ file: "test/behaviour/fork.test.ts", title: "P10" }],
  },
  {
    rule: "P10",
    name: "an action that a retry inherits goes by the key that its body makes there",
    changes: [
      {
        file: "src/core/undoable-call.ts",
        from: "return this.#recorded ?? this.#facts.key",
        to: "return this.#facts.key",
      },
    ],
    killers: [{ file: "test/behaviour/fork.test.ts", title: "P10 an action keeps the key" }],
  },
  {
    rule: "X-17",
    name: "a run is retried while it is being undone",
    changes: [
      {
        file: "src/client/fork-point.ts",
        from: 'if (last === undefined || entryKind(last) !== "end") {',
        to: "if (last === undefined || end === journal.length) {",
      },
    ],
    killers: [{ file: "test/behaviour/fork.test.ts", title: "X-17 refuses to retry what is still being undone" }],
  },
  {
    rule: "X-17",
    name: "a retry inherits the timeout that has ended its run",
    changes: [
      {
        file: "src/client/fork-point.ts",
        from: 'outcome?.type === "timer.fired" && failure === thrown',
        to: 'outcome?.type === "timer.set" && failure === thrown',
      },
    ],
    killers: [{ file: "test/behaviour/fork.test.ts", title: "failed by its timeout waits anew" }],
  },
  {
    rule: "X-17",
    name: "what a retry waits for falls due when it did in its source",
    changes: [
      {
        file: "src/client/fork.ts",
        from: 'const due = payload.due === null ? null : payload.due + (now - at);\n  draft.append(at, "signal.awaited"',
        to: 'const due = payload.due === null ? null : payload.due + 0 * (now - at);\n  draft.append(at, "signal.awaited"',
      },
    ],
    killers: [{ file: "test/behaviour/fork.test.ts", title: "was cancelled in it waits anew" }],
  },
  {
    rule: "S2-59",
    name: "a fork inherits all questions but the last",
    changes: [
      {
        file: "src/client/fork.ts",
        from: 'return new Set(prefix.slice(answered + 1).filter(({ type }) => type === "run.parked"));',
        to: 'return new Set(prefix.slice(answered + 1).filter(({ type }) => type === "run.parked").slice(-1));',
      },
    ],
    killers: [{ file: "test/behaviour/fork.test.ts", title: "S2-59 I10 leaves all questions behind" }],
  },
  {
    rule: "P11",
    name: "a rejected step that nobody awaits ends the process",
    changes: [
      {
        file: "src/worker/rejections.ts",
        from: `if (!isOver && event === "unhandledRejection" && nodeHost.frame() !== undefined) return true;`,
        to: `if (isOver && event === "unhandledRejection" && nodeHost.frame() !== undefined) return true;`,
      },
    ],
    killers: [{ file: "test/behaviour/guard.test.ts", title: "P11" }],
  },
  {
    rule: "P12",
    name: "steps that run when their run ends are not aborted",
    changes: [
      {
        file: "src/core/pass.ts",
        from: "    this.draft.onDurable(() => this.steps.abortAll(why));\n",
        to: "    void why;\n",
      },
    ],
    killers: [{ file: "test/behaviour/children.test.ts", title: "P12" }],
  },
  {
    rule: "D4",
    name: "a retry that was due later begins at once after a restart",
    changes: [
      {
        file: "src/core/replay.ts",
        from: "      call.retryAt = failed.retryAt;\n",
        to: "      call.retryAt = null;\n",
      },
    ],
    killers: [{ file: "test/behaviour/retries.test.ts" }],
  },
  {
    rule: "D4",
    name: "after a restart a step has all its retries again",
    changes: [
      {
        file: "src/core/replay.ts",
        from: "call.failures = failed.isRetried ? 0 : call.failures + 1;",
        to: "call.failures = failed.isRetried ? 0 : call.failures;",
      },
    ],
    killers: [{ file: "test/behaviour/retries.test.ts" }],
  },
];
