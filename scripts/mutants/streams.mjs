// Streams: SM1 to SM3 (what is written), SW1 to SW4 (by whom), SR1 and SR2 (what counts), RS1 to RS3 (how it is read), SF1 to SF3 (in files).

const BEHAVIOUR = "test/behaviour/streams.test.ts";
const INTERLEAVINGS = { file: "test/behaviour/stream-interleavings.test.ts", title: "RS1" };
const CONTRACT = "test/stores.test.ts";

export const streamMutants = [
  {
    rule: "SM1",
    name: "another attempt emits into the stream of the one before",
    changes: [
      {
        file: "src/core/steps.ts",
        from: '"step.started", call.key, mark, call);',
        to: '"step.started", call.key, mark);',
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "SR1 X-14" }],
    alsoKilledBy: [{ file: BEHAVIOUR, title: "SM1 RS3" }],
  },
  {
    rule: "SM1",
    name: "a call that a budget had refused emits into a stream that nobody looks for",
    changes: [
      {
        file: "src/core/spending.ts",
        from: '"step.reserved", call.key, { spend }, call);',
        to: '"step.reserved", call.key, { spend });',
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "SM1 a call that a budget has refused" }],
  },
  {
    rule: "SM2",
    name: "an outcome does not wait for what was emitted",
    changes: [
      {
        file: "src/core/attempts.ts",
        from: "    stream.close(() => {\n      if (this.#closing?.delete(attempt) === true) tell();\n    });",
        to: "    stream.close(() => {});\n    if (this.#closing.delete(attempt)) tell();",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "SM2 SW3" }],
  },
  {
    rule: "SM2",
    name: "a worker that stops does not wait for what a step has emitted",
    changes: [
      {
        file: "src/core/attempts.ts",
        from: "    return this.#running.length === 0 && (this.#closing === null || this.#closing.size === 0);",
        to: "    return this.#running.length === 0;",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "SM2 P28" }],
  },
  {
    rule: "SM2",
    name: "a stream has no mark at its end",
    changes: [
      {
        file: "src/core/streams.ts",
        from: "    this.#push(this.#next, null);\n",
        to: "",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "X-14 SM2" }],
  },
  {
    rule: "SM2",
    name: "SQLite syncs for every write of chunks",
    changes: [
      {
        file: "src/stores/sqlite/streams.ts",
        from: "await db.writeUnsynced(() => {",
        to: "await db.write(() => {",
      },
    ],
    killers: [{ file: "src/stores/sqlite/streams.test.ts", title: "SM2 chunks" }],
  },
  {
    rule: "SM2",
    name: "SQLite no longer syncs after a write of chunks",
    changes: [
      {
        file: "src/stores/sqlite/connection.ts",
        from: "        this.#syncAgain();\n",
        to: "        void this.#syncAgain;\n",
      },
    ],
    killers: [{ file: "src/stores/sqlite/streams.test.ts", title: "SM2 chunks" }],
  },
  {
    rule: "SM2",
    name: "PostgreSQL no longer syncs on a connection that chunks went through",
    changes: [
      {
        file: "src/stores/postgres/stream-functions.ts",
        from: "set_config('synchronous_commit', 'off', true)",
        to: "set_config('synchronous_commit', 'off', false)",
      },
    ],
    killers: [{ file: "test/postgres/streams.test.ts", title: "SM2" }],
  },
  {
    rule: "SM3",
    name: "an attempt that timed out goes on emitting",
    changes: [
      {
        file: "src/core/attempts.ts",
        from: "    if (attempt.isOver) return;\n    attempt.stream ??=",
        to: "    attempt.stream ??=",
      },
      { file: "src/core/attempts.ts", from: "    this.stream?.abandon();\n    this.reason", to: "    this.reason" },
    ],
    killers: [{ file: BEHAVIOUR, title: "SR1 SM3" }],
  },
  {
    rule: "SW1",
    name: "chunks are written while others are on their way",
    changes: [
      {
        file: "src/worker/stream-writer.ts",
        from: "    if (this.#isWriting) return;\n",
        to: "",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "SW1 SW2" }],
  },
  {
    rule: "SW2",
    name: "every chunk is a write of its own",
    changes: [
      {
        file: "src/worker/stream-writer.ts",
        from: "    if (stream.isClosing || this.#bytes >= LIMITS.streamBatchBytes) this.#writeSoon();",
        to: "    if (stream.isClosing || this.#bytes >= 0) this.#writeSoon();",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "SW1 SW2" }],
  },
  {
    rule: "SW3",
    name: "chunks that a store could not take for a moment are given up",
    changes: [
      {
        file: "src/worker/stream-writer.ts",
        from: '  return hasCode(error, "storage_unavailable") || hasCode(error, "unknown_outcome");',
        to: "  return error === 1;",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "SM2 SW3" }],
  },
  {
    rule: "SW3",
    name: "SQLite lets a chunk that comes again take the place of the first",
    changes: [
      {
        file: "src/stores/sqlite/streams.ts",
        from: "insert or ignore into chunks",
        to: "insert or replace into chunks",
      },
    ],
    killers: [{ file: CONTRACT, title: "SQLite store SM1 SW3" }],
  },
  {
    rule: "SW4",
    name: "a chunk that cannot be stored takes other streams along",
    changes: [
      {
        file: "src/worker/stream-writer.ts",
        from: "      else await this.#writeApart(parts);",
        to: "      else for (const part of parts) this.#breakOff(part, [error, this.#writeApart]);",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "SW4" }],
  },
  {
    rule: "SR1",
    name: "readers are not told that an attempt was replaced",
    changes: [
      {
        file: "src/client/stream.ts",
        from: "    else if (change.replaces !== null) yield* this.#retract([change.replaces]);\n",
        to: "",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "SM1 RS3" }],
    alsoKilledBy: [INTERLEAVINGS],
  },
  {
    rule: "SR1",
    name: "readers are not told that an attempt has failed before another one begins",
    changes: [
      {
        file: "src/core/stream-fold.ts",
        from: '      : { kind: "voids", streams: stream.isVoid ? [] : [stream] };',
        to: '      : { kind: "voids", streams: [] };',
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "SR1 SM3" }],
  },
  {
    rule: "SR2",
    name: "what a person decides passes for what an attempt has emitted",
    changes: [{ file: "src/core/stream-fold.ts", from: '  "run.parked",\n', to: "" }],
    killers: [{ file: BEHAVIOUR, title: "SR2 what a person decides" }],
  },
  {
    rule: "SR2",
    name: "what was under way when a run was cancelled stays",
    changes: [
      {
        file: "src/core/stream-fold.ts",
        from: '  "run.cancelling",\n  "run.compensating",\n  "run.continued",\n  "run.succeeded",\n  "run.failed",\n  "run.cancelled",\n',
        to: "",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "SR2 a cancel" }],
  },
  {
    rule: "RS1",
    name: "what was stored just before an outcome is not read",
    changes: [
      {
        file: "src/client/stream.ts",
        from: '    if (change.kind === "ends" && change.ok) yield* this.#readRest(change.stream);\n    else if',
        to: '    if (change.kind === "ends" && change.ok) void this.#readRest;\n    else if',
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "X-14 SM2" }],
    alsoKilledBy: [INTERLEAVINGS],
  },
  {
    rule: "RS2",
    name: "a gap in a stream is passed over",
    changes: [{ file: "src/client/stream.ts", from: "    if (n !== stream.next) return;\n", to: "" }],
    killers: [{ file: BEHAVIOUR, title: "RS2 chunks that are gone" }],
  },
  {
    rule: "RS2",
    name: "nobody is told that a part of a stream is missing",
    changes: [
      {
        file: "src/client/stream.ts",
        from: "isComplete: !ok || (isOwn && stream.isClosed) };",
        to: "isComplete: !ok || isOwn };",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "RS2 chunks that are gone" }],
  },
  {
    rule: "RS2",
    name: "a fork passes for the run that has emitted what it inherits",
    changes: [
      {
        file: "src/client/stream.ts",
        from: "    const isOwn = seq >= this.#ownFrom && !stream.isVoid;",
        to: "    const isOwn = seq >= 0 && !stream.isVoid;",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "RS2 P10" }],
  },
  {
    rule: "RS3",
    name: "a cursor forgets how far streams were read that are under way",
    changes: [
      {
        file: "src/client/stream.ts",
        from: "open.filter((stream) => stream.next > 0)",
        to: "open.filter((stream) => stream.next > 1e9)",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "RS3 X-19" }],
    alsoKilledBy: [INTERLEAVINGS],
  },
  {
    rule: "RS3",
    name: "who rejoins does not know what was under way",
    changes: [
      {
        file: "src/client/stream.ts",
        from: "    const since = open[0]?.seq ?? this.#from;",
        to: "    const since = this.#from + 0 * open.length;",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "RS3 X-19" }],
  },
  {
    rule: "RS3",
    name: "the cursor of another run is taken",
    changes: [
      {
        file: "src/client/stream-cursor.ts",
        from: "  if (cursor.run !== run) throw",
        to: "  if (cursor.run === null) throw",
      },
    ],
    killers: [{ file: BEHAVIOUR, title: "X-19 a cursor" }],
  },
  {
    rule: "SF1",
    name: "a line is added behind one that was cut off",
    changes: [
      {
        file: "src/stores/file/disk.ts",
        from: "        removeTornLine(file);\n",
        to: "        void removeTornLine;\n",
      },
    ],
    killers: [{ file: "src/stores/file/stream-files.test.ts", title: "SF1" }],
  },
  {
    rule: "SF3",
    name: "the file of streams is not synced before an outcome that follows",
    changes: [
      {
        file: "src/stores/file/stream-files.ts",
        from: 'own.map(lineOf).join(""), isClosing);',
        to: 'own.map(lineOf).join(""), isClosing && false);',
      },
    ],
    killers: [{ file: "src/stores/file/stream-files.test.ts", title: "SF3" }],
  },
  {
    rule: "C-20",
    name: "chunks outlive their run on SQLite",
    changes: [{ file: "src/stores/sqlite/purge.ts", from: '  "delete from chunks where run = ?",\n', to: "" }],
    killers: [{ file: "src/stores/sqlite/streams.test.ts", title: "C-20" }],
  },
  {
    rule: "C-20",
    name: "chunks outlive their run on PostgreSQL",
    changes: [
      {
        file: "src/stores/postgres/stream-functions.ts",
        from: "      delete from ${s}.chunks using gone where chunks.run = gone.n;\n",
        to: "",
      },
    ],
    killers: [{ file: "test/postgres/streams.test.ts", title: "C-20" }],
  },
];
