// Agents in a directory: decision 0027, CS1 to CS4, CD1, DL1 to DL4, CW1, CW2, ER1 to ER4, KV2, KV3, MB1, MB2.
const LOOP = "test/agent-directory.test.ts";
const WRITING = "test/agent-directory-writing.test.ts";
const STORES = "test/agent-directory-stores.test.ts";
const DAMAGE = "test/agent-directory-damage.test.ts";
const MAILBOX = "test/behaviour/agents-mailbox.test.ts";
const STORE = "src/agent/checkpoint-store.ts";
const DURABLE = "src/agent/durable-loop.ts";
const SAVED = "src/agent/saved-work.ts";
const WRITER = "src/agent/checkpoint-writer.ts";
const EFFECTS = "src/agent/effect-record.ts";
const KEY_VALUE = "src/agent/key-value-store.ts";
const LETTERS = "src/agent/mailbox.ts";

export const agentDirectoryMutants = [
  {
    rule: "CS1",
    name: "an old execution is dropped before the new request is there",
    changes: [
      {
        file: STORE,
        from: "    await this.#folder.write(REQUEST, requestBytes(request));\n    await this.#drop(LEFTOVERS);",
        to: "    await this.#drop(LEFTOVERS);\n    await this.#folder.write(REQUEST, requestBytes(request));",
      },
    ],
    killers: [{ file: LOOP, title: "does everything in this order" }],
  },
  {
    rule: "CS1",
    name: "an old execution is not archived",
    changes: [
      {
        file: STORE,
        from: '    if (this.#onClear === "delete") return;',
        to: '    if (this.#onClear === "delete" || this.#onClear === "archive") return;',
      },
    ],
    killers: [{ file: STORES, title: "archives the old execution" }],
  },
  {
    rule: "CD1",
    name: "a checkpoint of an older request counts",
    changes: [
      {
        file: STORE,
        from: "  return checkpoint.execution !== request.execution;",
        to: '  return checkpoint.execution === "";',
      },
    ],
    killers: [{ file: STORES, title: "of an older request count for nothing" }],
  },
  {
    rule: "CS2",
    name: "the marker needs no answer",
    changes: [
      { file: STORE, from: "    if (checkpoint?.result === undefined) {", to: "    if (checkpoint === undefined) {" },
    ],
    killers: [{ file: STORES, title: "and the marker needs it" }],
  },
  {
    rule: "DL1",
    name: "a resumed execution takes the caller's request",
    changes: [
      {
        file: SAVED,
        from: "      this.#compare(request, saved);\n      return saved;",
        to: "      this.#compare(request, saved);\n      return request === undefined ? saved : { ...saved, request };",
      },
    ],
    killers: [{ file: LOOP, title: "whatever the caller gives" }],
  },
  {
    rule: "DL2",
    name: "a resumed execution does not look at its deadline",
    changes: [
      {
        file: DURABLE,
        from: "    this.assertInTime(execution, deadline);\n    this.#assertYoung(checkpoint);",
        to: "    this.#assertYoung(checkpoint);",
      },
    ],
    killers: [{ file: LOOP, title: "20 restarts do not move the deadline" }],
  },
  {
    rule: "DL3",
    name: "an answer without its marker is asked for again",
    changes: [
      {
        file: DURABLE,
        from: "    if (answer !== undefined) return this.#complete(answer);",
        to: "    if (answer === null) return this.#complete(answer);",
      },
    ],
    killers: [{ file: LOOP, title: "an answer without its marker is given back" }],
  },
  {
    rule: "DL4",
    name: "a fresh start may do something twice",
    changes: [
      {
        file: SAVED,
        from: "    if (await this.#mustKnowEffects(saved.execution)) throw",
        to: '    if (this.#rules.onCorruptCheckpoint === "error") throw',
      },
    ],
    killers: [{ file: WRITING, title: "is no reason to start afresh" }],
  },
  {
    rule: "DL4",
    name: "an older copy is gone on from after an effect",
    changes: [{ file: SAVED, from: "? all.slice(-1) : all;", to: "? all : all;" }],
    killers: [{ file: DAMAGE, title: "a copy that may not know of an effect" }],
  },
  {
    rule: "DL4",
    name: "a copy takes the place of the checkpoint and of what has changed since",
    changes: [{ file: SAVED, from: "return newest ?? copy;", to: "return copy;" }],
    killers: [{ file: DAMAGE, title: "effects that the delta knows of" }],
  },
  {
    rule: "DL4",
    name: "a fresh start takes over the delta of the one before",
    changes: [
      {
        file: SAVED,
        from: '    if (document === "checkpoint") await this.#store.quarantine("delta", reason);\n',
        to: "",
      },
    ],
    killers: [{ file: DAMAGE, title: "has nothing of the delta" }],
  },
  {
    rule: "KV3",
    name: "a write whose answer was lost is taken for another owner's",
    changes: [
      {
        file: KEY_VALUE,
        from: "    return (await this.#ownLease()) === null ? null : found.version;",
        to: "    return null;",
      },
    ],
    killers: [{ file: STORES, title: "what it has done all the same" }],
  },
  {
    rule: "CW1",
    name: "a milestone that cannot be saved ends the work",
    changes: [
      {
        file: WRITER,
        from: 'if (checkpoint.onFailure === "stop") this.#stop',
        to: 'if (checkpoint.onFailure !== "warn") this.#stop',
      },
    ],
    killers: [{ file: WRITING, title: "the second of three is lost" }],
  },
  {
    rule: "CW2",
    name: "the floor is tried once",
    changes: [{ file: WRITER, from: "if (waitMs === undefined || ", to: "if (waitMs !== null || " }],
    killers: [{ file: WRITING, title: "a full disk stops the work before an effect" }],
  },
  {
    rule: "ER1",
    name: "an effect begins before its plan is saved",
    changes: [
      {
        file: EFFECTS,
        from: "    await this.#note(record);\n    // After the plan",
        to: "    void this.#note(record).catch(() => {});\n    // After the plan",
      },
    ],
    killers: [{ file: WRITING, title: "a full disk stops the work before an effect" }],
  },
  {
    rule: "ER2",
    name: "what was executed is done again",
    changes: [{ file: EFFECTS, from: '    if (left.status === "executed") {', to: '    if (left.key === "") {' }],
    killers: [{ file: WRITING, title: "one that was executed is not done again" }],
  },
  {
    rule: "ER2",
    name: "a record answers behind its milestone as well",
    changes: [
      {
        file: EFFECTS,
        from: "    if (trigger.matches(facts)) this.#milestone();",
        to: "    if (facts === null) this.#milestone();",
      },
    ],
    killers: [{ file: WRITING, title: "the same call is meant anew behind a milestone" }],
  },
  {
    rule: "ER3",
    name: "a call of unknown outcome is made again under another key",
    changes: [{ file: EFFECTS, from: "      const info = withKey(given, left.key);", to: "      const info = given;" }],
    killers: [{ file: WRITING, title: "is done again with the same key" }],
  },
  {
    rule: "ER3",
    name: "an unknown outcome is no reason to stop",
    changes: [{ file: DURABLE, from: "    if (doubt !== null) return", to: "    if (doubt === undefined) return" }],
    killers: [{ file: WRITING, title: "the work ends as an escalation" }],
  },
  {
    rule: "ER4",
    name: "what an executed call changed is lost with its process",
    changes: [{ file: DURABLE, from: "    applyPending(session);\n", to: "" }],
    killers: [{ file: WRITING, title: "what it said and changed is there, once" }],
  },
  {
    rule: "KV2",
    name: "a former owner is not fenced",
    changes: [{ file: KEY_VALUE, from: "    for (const name of FENCED) await this.#fence(name);\n", to: "" }],
    killers: [{ file: STORES, title: "refuses it when it comes back" }],
  },
  {
    rule: "MB1",
    name: "a letter is delivered for ever",
    changes: [{ file: LETTERS, from: "(delivery >= maxDeliveries && ", to: "(delivery > 2 * maxDeliveries && " }],
    killers: [{ file: MAILBOX, title: "is dead after five deliveries" }],
  },
  {
    rule: "MB2",
    name: "the sender hears of every failure",
    changes: [
      {
        file: LETTERS,
        from: "    await this.#ctx.sleep(pause);",
        to: "    await this.#reply({ ok: false, code, message: messageOf(error) });\n    await this.#ctx.sleep(pause);",
      },
    ],
    killers: [{ file: MAILBOX, title: "tells the sender once" }],
  },
];
