// Operators: AU1 and AU2 (the audit log), C-20 (holds), BK1 (bulk).

const CONTRACT = "test/stores.test.ts";
const AUDIT = "test/operators/audit-log.test.ts";
const HOLDS = "test/operators/holds.test.ts";
const BULK = "test/operators/bulk.test.ts";

export const operatorMutants = [
  {
    rule: "I17",
    name: "a run is retried again though another has taken its place and is at work",
    changes: [{ file: "src/client/fork-run.ts", from: "(await isAtWork(ports, held.run))", to: "held.run === id" }],
    killers: [{ file: "test/behaviour/fork.test.ts", title: "retry on memory I17 S2-59" }],
  },
  {
    rule: "I17",
    name: "the start key stays with a retry that has failed",
    changes: [
      {
        file: "src/client/fork-run.ts",
        from: "key !== null && held !== null ?",
        to: "key !== null && held?.run === row.id ?",
      },
    ],
    killers: [{ file: "test/behaviour/fork.test.ts", title: "retry on memory I17 S2-59" }],
  },
  {
    rule: "AU1",
    name: "a record's hash does not depend on the one before it",
    changes: [
      { file: "src/core/audit.ts", from: "sha256(`${previous}\\n${n}\\n${digest}`)", to: "sha256(`${n}\\n${digest}`)" },
    ],
    killers: [{ file: CONTRACT, title: "AU1 records of the audit log" }],
  },
  {
    rule: "AU1",
    name: "what a record says is not part of its hash",
    changes: [
      { file: "src/core/audit.ts", from: "JSON.stringify([at, who, action,", to: "JSON.stringify([at, action," },
    ],
    killers: [{ file: AUDIT, title: "SQLite" }],
  },
  {
    rule: "AU2",
    name: "records that were cut off at the end are not missed",
    changes: [{ file: "src/client/audit.ts", from: "last.n < head.n", to: "last.n < 0" }],
    killers: [{ file: AUDIT, title: "SQLite" }],
  },
  {
    rule: "C-20",
    name: "SQLite purges what is held",
    changes: [{ file: "src/stores/sqlite/purge.ts", from: "and n not in (select run from kept) ", to: "" }],
    killers: [{ file: CONTRACT, title: "SQLite store C-20 a run that is held" }],
  },
  {
    rule: "C-20",
    name: "SQLite lets an older process purge the journal of a run that is held",
    changes: [
      {
        file: "src/stores/sqlite/schema.ts",
        from: "before delete on journal when exists",
        to: "before delete on journal when not exists",
      },
    ],
    killers: [{ file: "src/stores/sqlite/older-purge.test.ts", title: "C-20 Q20" }],
  },
  {
    rule: "Q20",
    name: "a counter of a held run is never taken away",
    changes: [
      {
        file: "src/stores/sqlite/apply.ts",
        from: "if (key.startsWith(OF_RUNS)) db.run",
        to: "if (key === OF_RUNS) db.run",
      },
    ],
    killers: [{ file: "src/stores/sqlite/older-purge.test.ts", title: "C-20 Q20" }],
  },
  {
    rule: "Q20",
    name: "PostgreSQL lets an older worker purge what is held",
    changes: [
      {
        file: "src/stores/postgres/operator-functions.ts",
        from: "create or replace function ${s}.purge_1(",
        to: "create function ${s}.purge_0(",
      },
    ],
    killers: [{ file: "test/postgres/migrations.test.ts", title: "C-20 Q20" }],
  },
  {
    rule: "C-20",
    name: "a worker purges runs of a workflow that are kept longer by its own times",
    changes: [
      { file: "src/core/retention.ts", from: "{ ...endedBefore(usual, now), except }", to: "endedBefore(usual, now)" },
    ],
    killers: [{ file: HOLDS, title: "C-20 every worker keeps to what the workflows say" }],
  },
  {
    rule: "BK1",
    name: "a bulk retries a run that was retried before",
    changes: [{ file: "src/client/fork-run.ts", from: "max: isOnly ? 1 : null", to: "max: null" }],
    killers: [{ file: BULK, title: "S2-10 leaves alone what somebody has retried by hand" }],
  },
  {
    rule: "BK1",
    name: "a retry by hand is not counted",
    changes: [
      {
        file: "src/client/fork-run.ts",
        from: "counters: [...(commit.counters ?? []), counter]",
        to: "...(isOnly && { counters: [counter] })",
      },
    ],
    killers: [{ file: BULK, title: "S2-10 leaves alone what somebody has retried by hand" }],
  },
  {
    rule: "Q20",
    name: "a hold is done before the audit log knows of it",
    changes: [
      {
        file: "src/client/operations.ts",
        from: "    const deed: Deed = { ...what,",
        to: "    const done = work();\n    work = () => done;\n    const deed: Deed = { ...what,",
      },
    ],
    killers: [{ file: HOLDS, title: "Q20 a hold or a release that cannot be recorded" }],
  },
];
