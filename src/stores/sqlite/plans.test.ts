// No statement may walk a table that grows with history. The statements are those that the store really prepares.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { systemClock } from "../../base/clock.ts";
import type { RunQuery } from "../../core/run-query.ts";
import type { RunCommit } from "../../core/store.ts";
import { claimRequest, creation, entry, newRun, newWorker, signal } from "../../testing/store-cases/case.ts";
import { OwnedRuns } from "../owned-runs.ts";
import { claim, nextWake, take } from "./claim.ts";
import { commit } from "./commit.ts";
import { holderOf } from "./conditions.ts";
import { Connection, type Row } from "./connection.ts";
import { deliver } from "./deliver.ts";
import { Lines } from "./lines.ts";
import { adopt, orphans } from "./orphans.ts";
import { purge } from "./purge.ts";
import { listStateRows, listWaits, readInbox, readJournal, readRun } from "./queries.ts";
import { listRuns } from "./run-queries.ts";
import { listUnclaimed } from "./unclaimed.ts";
import { fence, heartbeat, listOwners, listWorkers, mailOfOwned, newsOf, register, retire } from "./workers.ts";

/** A table read from end to end, without an index that holds only the rows in question. */
const FULL_WALK =
  /^SCAN (runs|child|journal|inbox|waits|state|tags|keys|counters|holds|starts)\b(?!.* USING (COVERING )?INDEX (?!sqlite_autoindex))/;

interface Plan {
  readonly sql: string;
  readonly detail: string;
}

/** The plan of every statement that `use` prepares, line by line. */
async function plansOf(use: (db: Connection, owned: OwnedRuns) => unknown): Promise<Plan[]> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-plans-"));
  const db = new Connection(join(folder, "pawl.db"), { durability: "process" }, () => {});
  await db.open();
  const seen = new Set<string>();
  const prepare = db.statement.bind(db);
  db.statement = (sql) => {
    seen.add(sql);
    return prepare(sql);
  };
  await use(db, new OwnedRuns());
  db.statement = prepare;
  const plans = [...seen]
    .filter((sql) => /^(with|select|insert|update|delete)\b/i.test(sql))
    .flatMap((sql) => db.all(`explain query plan ${sql}`).map(({ detail }) => ({ sql, detail: String(detail) })));
  db.close();
  rmSync(folder, { recursive: true, force: true });
  return plans;
}

async function walksOf(use: (db: Connection, owned: OwnedRuns) => Promise<void> | void): Promise<string[]> {
  return (await plansOf(use))
    .filter(({ detail }) => FULL_WALK.test(detail))
    .map(({ sql, detail }) => `${detail}: ${sql}`);
}

it("P36 the hot path and the upkeep walk no table", async () => {
  const walks = await walksOf(async (db, owned) => {
    const moment = { now: 1, monotonic: 1 };
    register(db, newWorker("w1"), moment);
    const part = {
      ...creation("r", { claimed: true, tags: ["t"] }),
      waits: [{ open: { key: "k", kind: "signal" as const, name: "n", due: null, detail: null } }, { close: "k" }],
      state: [{ key: "k", data: "1" }],
      keys: [{ space: "s", key: "k", digest: "d" }],
      counters: [{ key: "c", by: 1, max: 2, held: true }],
      children: [{ run: "c", create: newRun(), entry: entry(0, "run.started") }],
      messages: [signal("r", "m")],
    };
    await commit(db, owned, { worker: "w1", runs: [part] }, systemClock);
    owned.forgetAll();
    const next = {
      run: "r",
      head: 1,
      entries: [entry(1)],
      consumes: ["m"],
      ifWake: 1,
      row: { state: "waiting", release: true } as const,
    };
    await commit(db, owned, { worker: "w1", runs: [next] }, systemClock);
    deliver(db, signal("r", "m2", { kind: "cancel" }), 1);
    await claim(db, owned, new Lines(db), claimRequest({ suspect: true }), systemClock);
    await take(db, owned, "w1", "c");
    nextWake(db, new Lines(db), 1);
    const end = { run: "r", head: 2, entries: [], row: { state: "failed", ended: true } as const };
    await commit(db, owned, { worker: "w1", runs: [end] }, systemClock);
    heartbeat(db, "w1", 2);
    mailOfOwned(db, "w1");
    newsOf(db, "w1");
    listWorkers(db, () => 1, null);
    listOwners(db);
    await orphans(db);
    listUnclaimed(db, { workflows: ["order"], limit: 3 });
    listUnclaimed(db, { limit: 3 });
    adopt(db, ["r"], 1);
    fence(db, { workers: ["w1"], successor: newWorker("w2") }, moment, () => true);
    fence(db, { workers: ["w2"] }, moment, () => true);
    retire(db, "w1", 1);
    purge(db, { succeededBefore: 1e15, failedBefore: 1e15, limit: 1 }, 1);
    holderOf(db, "s", "k");
    readRun(db, "r");
    readJournal(db, "r");
    readInbox(db, "r");
    listStateRows(db, "r");
    listWaits(db, { kind: "approval" });
    listWaits(db, { run: "r" });
  });
  expect(walks).toEqual([]);
});

it("P28 I11 a claim finds suspects and others in an index of each, in their order", async () => {
  const plans = await plansOf((db, owned) =>
    claim(db, owned, new Lines(db), claimRequest({ suspect: true }), systemClock),
  );
  const ready = plans.filter(({ sql }) => sql.includes("order by priority desc, ready_at"));
  const ways = ready.map(({ detail }) => detail).filter((detail) => /\bruns\b|order by/i.test(detail));
  expect(ways).toEqual(["SCAN runs USING INDEX runs_ready", "SCAN runs USING INDEX runs_suspect"]);
});

it("I18 a claim steps from line to line in an index, and finds holders and heads in others", async () => {
  const plans = await plansOf(async (db, owned) => {
    register(db, newWorker("w1"), { now: 1, monotonic: 1 });
    const needs = { slot: "order", rate: "order" };
    await commit(db, owned, { worker: "w1", runs: [creation("a", { needs }), creation("b", { needs })] }, systemClock);
    const handles = [{ workflow: "order", version: "1.0.0", concurrency: 1, rate: { limit: 1, perMs: 1 } }];
    const request = claimRequest({ suspect: true, handles });
    await claim(db, owned, new Lines(db), request, systemClock);
    nextWake(db, new Lines(db), 1);
    listRuns(db, { slot: "order", limit: 1 });
  });
  const ways = plans.filter(({ sql }) => /\bslot (=|>|<>) |starts/.test(sql)).map(({ detail }) => detail);
  const indexes = new Set(ways.flatMap((way) => /(?:SEARCH|SCAN) (?:runs|starts) .*/.exec(way)?.[0] ?? []));
  expect(
    [...indexes].filter((way) => !way.includes("INDEX runs_ready") && !way.includes("INDEX runs_suspect")),
  ).toEqual([
    "SEARCH runs USING COVERING INDEX runs_lines (slot=? AND rate>?)",
    "SEARCH runs USING COVERING INDEX runs_lines (slot>?)",
    "SEARCH runs USING INDEX runs_slots (slot=?)",
    "SEARCH starts USING PRIMARY KEY (rate=? AND until>?)",
    "SEARCH runs USING INDEX runs_lines (slot=? AND rate=?)",
    "SEARCH runs USING INDEX runs_lined_suspects (slot=? AND rate=?)",
    "SEARCH starts USING PRIMARY KEY (rate=? AND until<?)",
  ]);
});

it.each<Omit<RunQuery, "limit">>([
  { workflow: "order" },
  { states: ["failed"] },
  { states: ["failed", "cancelled", "parked"] },
  { states: ["waiting"] },
  { tag: "t" },
  { parent: "p" },
  { slot: "order" },
])("a list by %o walks no table", async (query) => {
  expect(await walksOf((db) => void listRuns(db, { ...query, limit: 10 }))).toEqual([]);
});

it("P36 finished runs are in none of the hot indexes", async () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-plans-"));
  const db = new Connection(join(folder, "pawl.db"), { durability: "process" }, () => {});
  await db.open();
  const owned = new OwnedRuns();
  const moment = { now: 1, monotonic: 1 };
  register(db, newWorker("w1"), moment);
  const ids = Array.from({ length: 100 }, (_, i) => `r${i}`);
  const write = (runs: readonly RunCommit[]) => commit(db, owned, { worker: "w1", runs }, systemClock);
  await write(ids.map((id) => creation(id, { claimed: true })));
  for (const id of ids) deliver(db, signal(id, "m", { kind: "cancel" }), 1);
  const hot = (
    db.all("select name, sql from sqlite_schema where type = 'index' and sql like '%where%'") as Row[]
  ).filter(({ name }) => /^runs_(ready|suspect|wake|owner|news|unarmed)/.test(String(name)));
  const counts = () =>
    hot.map(({ name, sql }) => {
      const condition = String(sql).slice(String(sql).toLowerCase().lastIndexOf(" where "));
      return [name, db.get(`select count(*) as n from runs indexed by ${name} ${condition}`)?.n];
    });
  expect(Object.fromEntries(counts())).toMatchObject({ runs_owner: 100, runs_news: 100 });
  await write(
    ids.map((id) => ({ run: id, head: 1, entries: [], row: { state: "failed", ended: true, release: true } })),
  );
  expect(counts()).toEqual(hot.map(({ name }) => [name, 0]));
  expect(hot.length).toBeGreaterThanOrEqual(5);
  db.close();
  rmSync(folder, { recursive: true, force: true });
});
