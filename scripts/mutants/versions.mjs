// Versions and adopted state (P34, P10, RW1 to RW3, VK1 to VK3, FR1, FR2; decision 0019), and what older builds do with what newer ones write (DM1 to
// DM3; decision 0003).

const MISMATCH = "test/behaviour/version-mismatch.test.ts";
const REWRITE = "test/behaviour/rewrite.test.ts";

/** What does not depend on the store is shown on the fastest. */
const inMismatch = (title) => [{ file: MISMATCH, title }];
const inRewrite = (title) => [{ file: REWRITE, title: `rewriting on memory ${title}` }];
const inColumns = (title) => [{ file: "test/attacks/damaged-columns.test.ts", title }];
const inDemands = (title) => [{ file: "test/behaviour/demands.test.ts", title }];
const inCase = (store, title) => ({ file: "test/stores.test.ts", title: `${store} store ${title}` });

export const versionMutants = [
  {
    rule: "A7",
    name: "a version that is none fails whoever asks for its workers",
    changes: [
      { file: "src/core/version-line.ts", from: "!isVersion(version)) return false", to: "false) return false" },
    ],
    killers: [{ file: "src/core/version-line.test.ts" }],
  },
  {
    rule: "A7",
    name: "a run whose version is none is to be parked itself, again and again",
    changes: [{ file: "src/worker/version-keeper.ts", from: "isVersion(version) && !isHandled", to: "!isHandled" }],
    killers: inColumns("whose version is none"),
  },
  {
    rule: "VK1",
    name: "runs without a worker are parked at once",
    changes: [
      {
        file: "src/worker/version-keeper.ts",
        from: "if (now - since >= versionGraceMs) await",
        to: "if (now - since >= 0) await",
      },
    ],
    killers: inMismatch("no worker has, on memory a rolling deployment"),
  },
  {
    rule: "VK1",
    name: "a version that was back for a while counts as missing all the time",
    changes: [{ file: "src/worker/version-keeper.ts", from: "    this.#forgetOthers(stranded);\n", to: "" }],
    killers: inMismatch("no worker has, on memory a rolling deployment"),
  },
  {
    rule: "P34",
    name: "a fork has the version that its source had before its journal was read",
    changes: [
      {
        file: "src/client/fork-run.ts",
        from: "return { row: { ...row, version }, stored };",
        to: "void version;\n  return { row, stored };",
      },
    ],
    killers: [
      {
        file: "test/behaviour/fork.test.ts",
        title: "retry on memory P34 of a run that newer code takes over meanwhile is not for older code",
      },
    ],
  },
  {
    rule: "P34",
    name: "runs without a worker are parked though a live one has their version",
    changes: [
      {
        file: "src/worker/version-keeper.ts",
        from: "const handles = [...registry.handles, ...live.flatMap((worker) => worker.handles)];",
        to: "const handles = [...registry.handles, ...live.flatMap(() => [])];",
      },
    ],
    killers: inMismatch("no worker has, on memory a rolling deployment"),
  },
  {
    rule: "S0-41",
    name: "a worker that has the old definition leaves parked runs alone",
    changes: [
      {
        file: "src/worker/version-keeper.ts",
        from: "else if (this.#canGoOn(wait)) await this.#takeUp(",
        to: 'else if (this.#canGoOn(wait) && wait.run === "") await this.#takeUp(',
      },
    ],
    killers: inMismatch("no worker has, on memory S0-41 a worker"),
  },
  {
    rule: "S0-48",
    name: "code with the same version and another structure goes on",
    changes: [
      {
        file: "src/worker/load-run.ts",
        from: "if (saved === null || version !== row.version || saved === definition.structure) return null;",
        to: "if (saved === null || version === row.version || saved === definition.structure) return null;",
      },
    ],
    killers: inMismatch("under its version, on memory S0-48"),
  },
  {
    rule: "C-10",
    name: "the policy exact lets patches go on",
    changes: [
      {
        file: "src/core/version-line.ts",
        from: 'return handle.policy === "exact" ? run.patch === ours.patch : run.patch <= ours.patch;',
        to: "return run.patch <= ours.patch;",
      },
    ],
    killers: [inCase("memory", "P34 C-10 a handle")],
  },
  {
    rule: "C-10",
    name: "the policy exact lets patches be claimed (SQL)",
    changes: [
      {
        file: "src/stores/version-line.ts",
        from: "or ${handle}.line = runs.line || '=' and runs.patch = ${handle}.patch",
        to: "or ${handle}.line = runs.line || '=' and runs.patch <= ${handle}.patch",
      },
    ],
    killers: [inCase("SQLite", "P34 C-10 a handle"), inCase("PostgreSQL", "P34 C-10 a handle")],
  },
  {
    rule: "VK2",
    name: "a worker takes up a run that has gone on since it was listed, whatever it waits for now",
    changes: [{ file: "src/worker/version-keeper.ts", from: "(wait) => wait.detail === detail", to: "() => true" }],
    killers: [{ file: "test/behaviour/resolve-races.test.ts", title: "VK2" }],
  },
  {
    rule: "I15",
    name: "a late decision counts for whatever the run is parked for by then",
    changes: [
      {
        file: "src/client/resolve.ts",
        from: "  const messageId = `decision-${head}`;",
        to: "  const messageId = `decision-${(await rowOf(id, ports.store)).head - 0 * head}`;",
      },
    ],
    killers: [{ file: "test/behaviour/resolve-races.test.ts", title: "on memory I2 I15" }],
  },
  {
    rule: "I26",
    name: "a run that is started afresh may spend without a limit",
    changes: [{ file: "src/client/fresh.ts", from: "...(budgets !== undefined && {", to: "...(budgets === null && {" }],
    killers: inMismatch("on memory I26 S0-42"),
  },
  {
    rule: "C-1",
    name: "a run that has acted outside is started afresh",
    changes: [{ file: "src/client/fresh.ts", from: "if (done.length > 0)\n", to: "if (done.length < 0)\n" }],
    killers: inMismatch("about a version, on memory C-1 C-10"),
  },
  {
    rule: "FR2",
    name: "a start key that has not moved yet leads to the old run",
    changes: [
      {
        file: "src/client/found-run.ts",
        from: 'if (row.state === "cancelled") return (await successorOf(ports, row)) ?? run;',
        to: 'if (row.state === "cancelled") return run;',
      },
    ],
    killers: inMismatch("about a version, on memory I2 FR1"),
  },
  {
    rule: "E-1",
    name: "whoever starts with the key of a run that cannot go on here waits for it",
    changes: [
      {
        file: "src/client/found-run.ts",
        from: "if (waits.length === 0) return run;",
        to: "if (waits.length < 9) return run;",
      },
    ],
    killers: inMismatch("no worker has, on memory S0-39"),
  },
  {
    rule: "RW2",
    name: "a rewritten run draws from another seed, so that interrupted effects lose their keys",
    changes: [{ file: "src/core/rewrite.ts", from: "    seed: before.seed,\n", to: "" }],
    killers: inRewrite("P10 C-23"),
  },
  {
    rule: "RW1",
    name: "children that a rewritten run waited for go on",
    changes: [
      {
        file: "src/core/rewrite.ts",
        from: "for (const to of before.children) draft.send",
        to: "for (const to of []) draft.send",
      },
    ],
    killers: inRewrite("P12 RW1"),
  },
  {
    rule: "RW3",
    name: "a rewritten run stays parked",
    changes: [
      {
        file: "src/core/rewrite.ts",
        from: "if (before.isParked) {",
        to: "if (before.isParked && by.length === 0) {",
      },
    ],
    killers: inRewrite("RW3"),
  },
  {
    rule: "S2-60",
    name: "a run sees what the newest code uses",
    changes: [
      {
        file: "src/core/pins.ts",
        from: "uses: first?.uses ?? markedUses(entries)",
        to: "uses: uses ?? first?.uses ?? markedUses(entries)",
      },
    ],
    killers: [{ file: REWRITE, title: "uses, on memory S2-60" }],
  },
  {
    rule: "P34",
    name: "a run that waits for a person counts as unclaimed (memory)",
    changes: [
      {
        file: "src/stores/memory/queries.ts",
        from: 'run.row.owner === null && run.row.state !== "parked" && !isOver(run)',
        to: "run.row.owner === null && !isOver(run)",
      },
    ],
    killers: [inCase("memory", "P34 names")],
  },
  {
    rule: "DM1",
    name: "a demand that is not known is taken for a mark",
    changes: [
      {
        file: "src/core/demands.ts",
        from: "if (!isDemand(key) || isKnownDemand(key)) return;",
        to: "if (key !== '') return;",
      },
    ],
    killers: inDemands("on memory I23 DM1"),
  },
  {
    rule: "DM1",
    name: "a run with a demand that is not known is parked as a damaged one",
    changes: [{ file: "src/worker/load-run.ts", from: " ?? parkedForNewer(run, error)", to: "" }],
    killers: inDemands("on memory I23 DM1"),
  },
  {
    rule: "DM1",
    name: "a run with a demand that is not known is forked",
    changes: [
      {
        file: "src/client/fork.ts",
        from: "  for (const entry of stored) assertUnderstood(row.id, entry.seq, openKey(codec, entry));\n",
        to: "",
      },
    ],
    killers: inDemands("on memory I23 DM1"),
  },
  {
    rule: "DM2",
    name: "a dry fork does not demand anything",
    changes: [
      {
        file: "src/client/fork.ts",
        from: 'else draft.append(now, "run.forked", DRY,',
        to: 'else draft.append(now, "run.forked", null,',
      },
    ],
    killers: inDemands("on memory I23 X-25 DM3"),
  },
  {
    rule: "DM2",
    name: "a run below a dry one does not demand anything",
    changes: [{ file: "src/core/issue.ts", from: "pass.dry === null ? null : DRY", to: "null" }],
    killers: inDemands("on memory I23 X-25 DM3"),
  },
  {
    rule: "DM2",
    name: "a run in the place of a dry one does not demand anything",
    changes: [{ file: "src/client/fresh.ts", from: "effects === null ? null : DRY", to: "null" }],
    killers: inDemands("I23 X-25 DM2"),
  },
  {
    rule: "DM3",
    name: "what an older worker took for damaged stays parked",
    changes: [
      { file: "src/worker/version-keeper.ts", from: 'if (name !== "corrupted_journal" ||', to: 'if (name !== "" ||' },
    ],
    killers: inDemands("on memory I23 X-25 DM3"),
  },
  {
    rule: "DM3",
    name: "a demand that is damaged is taken up again and again",
    changes: [
      {
        file: "src/worker/version-keeper.ts",
        from: "if (isIt && opensHere(ports.host, ports.codec, run, entry, before)) return",
        to: "if (isIt) return",
      },
    ],
    killers: inDemands("I23 DM3 one whose demand"),
  },
  {
    rule: "DM3",
    name: "a decision about an earlier park is left for a later one",
    changes: [
      {
        file: "src/worker/load-run.ts",
        from: 'if (row.kind === "decision" && row.name === name && row.id !== id)',
        to: 'if (row.kind === "decision" && row.id === "")',
      },
    ],
    killers: inDemands("on memory I23 X-25 DM3"),
  },
];
