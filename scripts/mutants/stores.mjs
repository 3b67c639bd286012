// What stores keep, and DESIGN 6.

import { SIMULATED } from "./simulator.mjs";

export const storeMutants = [
  {
    rule: "P5",
    name: "a message can be used up twice (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/conditions.ts",
        from: "  if (new Set(ids).size === ids.length && ids.every(isUnread)) return null;\n",
        to: "  if (ids.every(isUnread) || ids.length > 0) return null;\n",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "P5",
    name: "the id of a message is forgotten when it is used up (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/apply.ts",
        from: `"update inbox set consumed = 1, data = null where run = ? and id = ?"`,
        to: `"delete from inbox where run = ? and id = ?"`,
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "P15",
    name: "entries are written wherever a batch says, not at the head (memory)",
    changes: [
      {
        file: "src/stores/memory/commit.ts",
        from: "if (isOurs && run.journal.length === part.head) return null;",
        to: "if (isOurs) return null;",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "memory" }],
  },
  {
    rule: "P15",
    name: "entries are written wherever a batch says, not at the head (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/conditions.ts",
        from: "if (isOurs && found.head === part.head) return null;",
        to: "if (isOurs) return null;",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "P24",
    name: "messages go out before the run that sends them has let go (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/commit.ts",
        from: "  consume(db, n, part.consumes);\n",
        to: "  sendMessages(db, part, now);\n  consume(db, n, part.consumes);\n",
      },
      {
        file: "src/stores/sqlite/commit.ts",
        from: "  remember(batch, part, n, target.isBare);\n  sendMessages(db, part, now);\n",
        to: "  remember(batch, part, n, target.isBare);\n",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "P24",
    name: "changes of one counter in one part are judged one by one (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/conditions.ts",
        from: "const current = (key: string) => sums.get(key) ?? counterValue(db, key);",
        to: "const current = (key: string) => counterValue(db, key);",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "P29",
    name: "a lease of another boot of the machine is believed",
    changes: [
      {
        file: "src/stores/lease.ts",
        from: "  if (isOfAnotherBoot) return LONG_DEAD_MS;\n",
        to: "  void LONG_DEAD_MS;\n  void isOfAnotherBoot;\n",
      },
    ],
    killers: [{ file: "test/stores.test.ts" }],
  },
  {
    rule: "P34",
    name: "an older patch claims runs of a newer one (SQLite)",
    changes: [
      {
        file: "src/stores/version-line.ts",
        from: "runs.line and runs.patch <= ${handle}.patch",
        to: "runs.line and runs.patch is not null",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "P35",
    name: "an entry is believed whatever its checksum says",
    changes: [
      {
        file: "src/core/values.ts",
        from: "if (sum !== entry.hash || isReplaced) throw damaged(id, entry);",
        to: "if (isReplaced) throw damaged(id, entry);",
      },
    ],
    killers: [{ file: "test/crash/damaged-rows.test.ts", title: "an altered entry" }],
  },
  {
    rule: "P35",
    name: "checksums are not chained",
    changes: [
      {
        file: "src/core/draft.ts",
        from: "entry.hash = checksum(this.#host, this.#hash, entry);",
        to: `entry.hash = checksum(this.#host, "", entry);`,
      },
      {
        file: "src/core/values.ts",
        from: "checksum(host, previous, entry);",
        to: `checksum(host, "", entry);`,
      },
    ],
    killers: [{ file: "src/core/values.test.ts", title: "P35" }],
  },
  {
    rule: "P35",
    name: "where the journal ends is not compared with the run's row",
    changes: [
      {
        file: "src/core/values.ts",
        from: `const isReplaced = entry.seq === head - 1 && headHash !== "" && headHash !== sum;`,
        to: `const isReplaced = entry.seq === head && headHash === "";`,
      },
      {
        file: "src/core/values.ts",
        from: "if (next < head && !isGap(head)) throw missingEnd(id, next);",
        to: "if (next < 0) throw missingEnd(id, next);",
      },
    ],
    killers: [{ file: "test/crash/damaged-rows.test.ts", title: "an edited last checksum" }],
  },
  {
    rule: "D6",
    name: "two runs can be started with one key (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/conditions.ts",
        from: "if (holder !== null && (asked.has(name) || holder.run !== from)) {",
        to: "if (holder !== null && asked.has(name)) {",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "D6",
    name: "two runs can be started with one key (memory)",
    changes: [
      {
        file: "src/stores/memory/commit.ts",
        from: "if (holder !== null && holder.run !== key.from)",
        to: "if (holder !== null && holder.run === '')",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "memory" }],
  },
  {
    rule: "D6",
    name: "a counter goes past its limit (SQLite)",
    changes: [
      {
        file: "src/stores/counters.ts",
        from: "return sum < 0 || (by > 0 && max !== null && sum > max);",
        to: "return sum < 0 || (by > 0 && max === -1);",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "D6",
    name: "retention deletes runs that have not ended (memory)",
    changes: [
      {
        file: "src/stores/memory/queries.ts",
        from: `  if (endedAt === null || !isOver(run)) return false;
  return endedAt < (`,
        to: "  return (isOver(run) ? (endedAt ?? 0) : run.row.createdAt) < (",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "memory" }],
  },
  {
    rule: "D6",
    name: "retention deletes runs that have not ended (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/purge.ts",
        from: `where ended_at is not null and ended_at < max(?1, ?2)
  and ((state = 'succeeded' and ended_at < ?1) or (state in ('failed', 'cancelled') and ended_at < ?2))`,
        to: `where coalesce(ended_at, created_at) < max(?1, ?2)
  and ((state = 'succeeded' and ended_at < ?1) or (state <> 'succeeded' and coalesce(ended_at, created_at) < ?2))`,
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "D6",
    name: "a claim hands out runs of workflows that the worker does not have (memory)",
    changes: [
      {
        file: "src/stores/memory/claim.ts",
        from: "!isOver(run) && isHandled(handles, run.row.workflow, run.row.version)",
        to: "!isOver(run) && (handles.length === -1 || isHandled(handles, run.row.workflow, run.row.version) || true)",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "memory" }],
  },
  {
    rule: "D6",
    name: "a claim does not count as an attempt (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/claim.ts",
        from: "const claims = run.row.claims + 1;",
        to: "const claims = run.row.claims;",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "P15",
    name: "what this process remembers of a run's head is believed blindly (SQLite)",
    changes: [
      {
        file: "src/stores/owned-runs.ts",
        from: "known.owner === worker && known.head === head ? known : null",
        to: "known.owner === worker && head >= 0 ? known : null",
      },
    ],
    killers: [
      { file: "test/stores.test.ts", title: "SQLite" },
      { file: "src/stores/sqlite/faults.test.ts", title: "P15" },
    ],
  },
  {
    rule: "P20",
    name: "a worker writes to a run that another one owns (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/conditions.ts",
        from: "worker !== null && found.owner === worker && !found.hasEnded;",
        to: "worker !== null && !found.hasEnded;",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "P20",
    name: "fencing releases the runs of a worker and leaves the worker (memory)",
    changes: [
      {
        file: "src/stores/memory/workers.ts",
        from: "  for (const worker of left) tables.workers.delete(worker);\n",
        to: "",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "memory" }],
  },
  {
    rule: "P31",
    name: "a child that exists is started again (memory)",
    changes: [
      {
        file: "src/stores/memory/commit.ts",
        from: "    if (!tables.runs.has(child.run)) insertRun(",
        to: "    insertRun(",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "memory" }],
  },
  {
    rule: "P34",
    name: "newer code does not raise the version of a run that it takes over",
    changes: [
      {
        file: "src/worker/load-run.ts",
        from: "  if (workflow.version !== row.version) draft.row({ version: workflow.version });\n",
        to: "",
      },
    ],
    killers: [{ file: "test/behaviour/versions.test.ts", title: "P34" }],
  },
  {
    rule: "P12",
    name: "a run that has ended takes more entries (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/conditions.ts",
        from: "worker !== null && found.owner === worker && !found.hasEnded;",
        to: "worker !== null && (found.owner === worker || found.hasEnded);",
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "D6",
    name: "a start with a known key and other input is the same run",
    changes: [
      {
        file: "src/client/start.ts",
        from: "if (verdict.holder.digest === ports.host.digest(text)) return workable",
        to: "if (verdict.holder.digest !== text) return workable",
      },
    ],
    killers: [{ file: "test/behaviour/starts.test.ts" }],
  },
  {
    rule: "D6",
    name: "mail is read when hinted only, never by polling",
    changes: [{ file: "src/worker/worker.ts", from: "    this.#mail.start();\n", to: "" }],
    killers: [{ file: "test/attacks/waiting.test.ts", title: "I12" }],
  },
  {
    rule: "D6",
    name: "a run whose owner is gone is no orphan (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/orphans.ts",
        from: "and owner not in (select id from workers)",
        to: "and owner is null",
      },
    ],
    killers: [{ file: "src/stores/sqlite/file.test.ts", title: "orphans" }],
  },
  {
    rule: "D6",
    name: "whatever is on the list of orphans is made claimable, though it may be none by now (SQLite)",
    changes: [
      {
        file: "src/stores/sqlite/orphans.ts",
        from: "    const row = db.get(ONE, id);\n",
        to: `    const row = db.get(ONE, id) ?? db.get("select n from runs where id = ?", id);\n`,
      },
    ],
    killers: [{ file: "test/stores.test.ts", title: "SQLite" }],
  },
  {
    rule: "D6",
    name: "an acknowledged commit is not synced",
    changes: [
      {
        file: "src/stores/sqlite/connection.ts",
        from: "= { power: 2, process: 1 };",
        to: "= { power: 1, process: 1 };",
      },
    ],
    killers: [{ file: "test/power-loss.test.ts", title: "takes nothing" }],
  },
];
