// What a step saves on its way: decision 0023, CP1 to CP4.

import { SIMULATED } from "./simulator.mjs";

const BEHAVIOUR = "test/behaviour/checkpoints.test.ts";
const CHECKPOINTS = "src/core/checkpoints.ts";

export const checkpointMutants = [
  {
    rule: "CP1",
    name: "a checkpoint joins after the end of its run",
    changes: [
      { file: CHECKPOINTS, from: "if (isClosed || body.isOver || !call.open) throw", to: "if (!call.open) throw" },
      { file: CHECKPOINTS, from: "{ draft, ports, body, isClosed, id }", to: "{ draft, ports, id }" },
    ],
    killers: [{ file: BEHAVIOUR, title: "does not join after" }],
  },
  {
    rule: "CP1",
    name: "a checkpoint joins after a cancel",
    changes: [
      { file: CHECKPOINTS, from: "if (isClosed || body.isOver || !call.open) throw", to: "if (isClosed) throw" },
      { file: CHECKPOINTS, from: "{ draft, ports, body, isClosed, id }", to: "{ draft, ports, isClosed, id }" },
    ],
    killers: [{ file: BEHAVIOUR, title: "does not join after" }],
  },
  {
    rule: "CP1",
    name: "an attempt that ran out of time saves all the same",
    changes: [
      {
        file: "src/core/attempts.ts",
        from: "const saved = attempt.isOver\n",
        to: "const saved = attempt.isOver && attempt.reason === undefined\n",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "A2 is refused" }],
  },
  {
    rule: "CP1",
    name: "a transaction saves while its run may write nothing",
    changes: [{ file: "src/core/attempts.ts", from: "    assertSaves(run, call);\n", to: "    void assertSaves;\n" }],
    killers: [{ file: "test/transactions/transactions.test.ts", title: "has no checkpoints" }],
  },
  {
    rule: "CP2",
    name: "save() resolves before the checkpoint is durable",
    changes: [{ file: CHECKPOINTS, from: "      draft.onDurable(() => {\n", to: "      queueMicrotask(() => {\n" }],
    killers: [{ file: BEHAVIOUR, title: "P13 is in the store when" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "CP2",
    name: "what is pending when the run is lost waits for ever",
    changes: [{ file: "src/core/steps.ts", from: "    this.#checkpoints?.abandon(reason);\n", to: "" }],
    killers: [{ file: BEHAVIOUR, title: "rejects what is pending" }],
  },
  {
    rule: "CP3",
    name: "a checkpoint of an earlier pass is not read",
    changes: [
      {
        file: "src/core/replay.ts",
        from: '    if (entry.type === "checkpoint") call.saved =',
        to: "    if (call.open === null) call.saved =",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "P13 is in the store when" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "CP3",
    name: "the first checkpoint counts, not the newest",
    changes: [{ file: CHECKPOINTS, from: "      call.saved = { text };\n", to: "      call.saved ??= { text };\n" }],
    killers: [{ file: "test/explorer/checkpoints.test.ts", title: "goes on from every checkpoint" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "CP3",
    name: "of a journal's checkpoints the oldest is kept",
    changes: [
      {
        file: CHECKPOINTS,
        from: "  return entries.toReversed().filter(isNeeded).reverse();",
        to: "  return entries.filter(isNeeded);",
      },
    ],
    killers: [{ file: "src/core/checkpoints.test.ts", title: "the newest of each open step" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "CP3",
    name: "an attempt sees what it saves itself",
    changes: [
      {
        file: "src/core/attempts.ts",
        from: "if (this.#before !== null) this.#saved = savedValue(this.#before);",
        to: "if (this.call.saved !== null) this.#saved = savedValue(this.call.saved);",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "not seen by the attempt that saves it" }],
  },
  {
    rule: "CP3",
    name: "attempts share one copy of what was saved",
    changes: [
      {
        file: CHECKPOINTS,
        from: '  const text = "text" in saved ? saved.text : encodeRecord(saved.payload, "checkpoint");\n',
        to: '  if ("payload" in saved) return saved.payload.value;\n  const { text } = saved;\n  void encodeRecord;\n',
      },
    ],
    killers: [{ file: "src/core/checkpoints.test.ts", title: "decoded anew each time" }],
  },
  {
    rule: "CP4",
    name: "deaths are counted on after a checkpoint",
    changes: [
      { file: CHECKPOINTS, from: "if (!hasProgressed) draft.row({ claims: 0 });", to: "void hasProgressed, draft;" },
    ],
    killers: [{ file: BEHAVIOUR, title: "P28 is progress" }],
  },
  {
    rule: "CP4",
    name: "the next suspect waits for an outcome",
    changes: [{ file: CHECKPOINTS, from: "    this.#pass.hasProgressed = true;\n", to: "" }],
    killers: [{ file: BEHAVIOUR, title: "P28 is progress" }],
  },
  {
    rule: "D7",
    name: "save() is no heartbeat",
    changes: [
      {
        file: "src/core/attempts.ts",
        from: "    if (!attempt.isOver) this.arm(attempt);\n    const saved",
        to: "    const saved",
      },
      {
        file: "src/core/attempts.ts",
        from: "    saved.then(() => this.heartbeat(attempt, undefined), forgetNothing);",
        to: "    saved.catch(forgetNothing);",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "counts as a heartbeat" }],
  },
];
