// Documents: what is on the disk, who may write it, and who believes it.

const under = (topic) => [{ file: `test/file-store/${topic}.test.ts` }];
const editors = [{ file: "test/edited-documents.test.ts" }];

export const fileStoreMutants = [
  {
    rule: "P31",
    name: "outboxes are not delivered again when a directory is opened",
    changes: [
      {
        file: "src/stores/file/holdings.ts",
        from: "const receivers = due.filter((item) => deliverItem(holdings, item, null)).map(receiverOf);",
        to: "const receivers = due.filter(() => false).map(receiverOf);",
      },
    ],
    killers: under("other-runs"),
  },
  {
    rule: "P31",
    name: "a document has what a later part of its commit sends",
    changes: [
      {
        file: "src/stores/file/commit.ts",
        from: "  batch.put(part.run);\n",
        to: "  batch.later(part.run);\n",
      },
    ],
    killers: under("other-runs"),
  },
  {
    rule: "P31",
    name: "a purged run comes back from an old outbox",
    changes: [
      {
        file: "src/stores/file/purge.ts",
        from: "    for (const [sender] of senders) batch.later(sender);\n",
        to: "    void [senders, batch];\n",
      },
    ],
    killers: under("other-runs"),
  },
  {
    rule: "S0-22",
    name: "a document gets its name before its content is on the disk",
    changes: [
      {
        file: "src/stores/file/disk.ts",
        from: `      this.#at("sync", path);\n      if (this.durability === "power") fsyncSync(file);\n`,
        to: "",
      },
    ],
    killers: under("writing"),
  },
  {
    rule: "D6",
    name: "what could not be written to a document stays in memory",
    changes: [
      {
        file: "src/stores/file/directory.ts",
        from: "      this.#workers = this.lock.isHeld ? workers : new Map();\n      this.forget();\n",
        to: "      this.#workers = this.lock.isHeld ? workers : new Map();\n",
      },
    ],
    killers: under("writing"),
  },
  {
    rule: "D6",
    name: "a failed write that has renamed something counts as nothing done",
    changes: [
      {
        file: "src/stores/file/disk.ts",
        from: "throw renamed === 0 ? unavailable(error)",
        to: "throw renamed >= 0 ? unavailable(error)",
      },
    ],
    killers: under("writing"),
  },
  {
    rule: "S1-67",
    name: "two processes write to one directory",
    changes: [
      {
        file: "src/stores/file/lock.ts",
        from: `tryLock(this.#path("lock"), "begin exclusive")`,
        to: `tryLock(this.#path("lock"), "begin")`,
      },
    ],
    killers: under("one-owner"),
  },
  {
    rule: "S1-67",
    name: "the number of the owner is not looked at",
    changes: [
      {
        file: "src/stores/file/directory.ts",
        from: "    if (this.lock.isStillOurs) return;\n",
        to: "    if (this.lock.isHeld) return;\n",
      },
    ],
    killers: under("one-owner"),
  },
  {
    rule: "P5",
    name: "a letter of another process waits until somebody looks for it",
    changes: [
      {
        file: "src/stores/file/directory.ts",
        from: "    return this.#takeMail(holdings);\n",
        to: `    return what === "Looking for mail" ? this.#takeMail(holdings) : holdings;\n`,
      },
    ],
    killers: under("one-owner"),
  },
  {
    rule: "C-23",
    name: "a document is believed whatever its checksum says",
    changes: [
      {
        file: "src/stores/file/read-document.ts",
        from: `  if (document["checksum"] !== checksum) return { kind: "edited", run, file, kept, document };\n`,
        to: "",
      },
    ],
    killers: under("held-documents"),
  },
  {
    rule: "C-23",
    name: "a document that was edited under a process is overwritten",
    changes: [
      {
        file: "src/stores/file/directory.ts",
        from: "    for (const path of new Set(contents.map((one) => one.path))) this.#keepEdits(path);\n",
        to: "    void this.#keepEdits;\n",
      },
    ],
    killers: under("writing"),
  },
  {
    rule: "C-23",
    name: "an edited document is signed before the run is told, in a write of its own",
    changes: [
      {
        file: "src/stores/file/held-documents.ts",
        from: "  if (write === undefined) directory.overwrite([contentOf(directory, run, documentText(believed))]);\n  else directory.overwrite",
        to: "  directory.overwrite([contentOf(directory, run, documentText(believed))]);\n  if (write !== undefined) directory.overwrite",
      },
    ],
    killers: editors,
  },
  {
    rule: "C-23",
    name: "what is said about the past is taken over",
    changes: [
      {
        file: "src/client/documents.ts",
        from: "    for (const path of edits) assertTakeable(held, path);\n",
        to: "    void assertTakeable;\n",
      },
    ],
    killers: editors,
  },
  {
    rule: "C-1",
    name: "a run whose document is held is started afresh though it has acted outside",
    changes: [
      {
        file: "src/client/documents.ts",
        from: "    if (!force) assertReplaceable(held);\n",
        to: "    void [force, assertReplaceable];\n",
      },
    ],
    killers: editors,
  },
  {
    rule: "C-1",
    name: "what a rebuilt document held is not kept",
    changes: [
      {
        file: "src/stores/file/held-documents.ts",
        from: `  directory.quarantine.keep(file, readFileSync(file, "utf8"), why);\n`,
        to: "  void why;\n",
      },
    ],
    killers: editors,
  },
  {
    rule: "P28",
    name: "claims of a process that was killed are not given up",
    changes: [
      {
        file: "src/stores/file/holdings.ts",
        from: "  release(held, now);\n",
        to: "  void [release, now];\n",
      },
    ],
    killers: under("other-runs"),
  },
  {
    rule: "HD4",
    name: "a run leaves before the one that begins afresh is there",
    changes: [
      {
        file: "src/client/documents.ts",
        from: "    await store.yieldKeys(run, { by, reason });\n",
        to: "    await store.setAside(run, { by, reason });\n",
      },
      {
        file: "src/client/documents.ts",
        from: "    await store.setAside(run, { by, reason: `${reason} (goes on as run ${begun})` });\n",
        to: "",
      },
    ],
    killers: editors.map(({ file }) => ({ file, title: "HD4" })),
  },
  {
    rule: "C-23",
    name: "of a name that stands twice in a document the last one counts",
    changes: [{ file: "src/base/json-text.ts", from: "  assertKeysOnce(plain);\n", to: "  void assertKeysOnce;\n" }],
    killers: under("held-documents"),
  },
  {
    rule: "E-22",
    name: "a row that has ended where its journal has not is accepted",
    changes: [
      {
        file: "src/stores/file/journal-fault.ts",
        from: "  return endOf(journal) === (isTerminal(row.state) ? row.state : null) ? null : otherEnd(row, file);\n",
        to: "  void [isTerminal, otherEnd];\n  return null;\n",
      },
    ],
    killers: under("held-documents"),
  },
  {
    rule: "E-22",
    name: "a fork signs again what was changed",
    changes: [
      {
        file: "src/client/fork.ts",
        from: "      assertSound(host, row, entry, isNext ? (previous?.hash ?? row.id) : null);\n",
        to: "      assertSound(host, row, entry, isNext ? null : null);\n",
      },
    ],
    killers: [{ file: "test/crash/tampered-runs.test.ts", title: "S2-59" }],
  },
  {
    rule: "E-22",
    name: "a result is handed out whatever its checksum says",
    changes: [
      {
        file: "src/client/run.ts",
        from: "    assertSound(nodeHost, row, last, before?.hash ?? null);\n",
        to: "    void [assertSound, nodeHost, before];\n",
      },
    ],
    killers: [{ file: "test/crash/tampered-runs.test.ts", title: "the result of a run that has ended" }],
  },
  {
    rule: "T-19",
    name: "an effect that a trimmed journal has lost is done again without a look",
    changes: [
      {
        file: "src/core/undoable-call.ts",
        from: "info.attempt > 1 || this.#facts.mayBeLost;",
        to: "info.attempt > 1;",
      },
    ],
    killers: [{ file: "test/crash/damaged-rows.test.ts", title: "T-19" }],
  },
];
