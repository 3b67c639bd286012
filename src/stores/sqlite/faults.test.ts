// Errors of the disk, injected at the driver's boundary: what fails before COMMIT was not applied and says so, what fails at COMMIT is
// unknown, and one run's error is no other's.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RunCommit, Store } from "../../core/store.ts";
import {
  appending,
  claimRequest,
  creation,
  ending,
  endingWhole,
  entry,
  newRun,
  newWorker,
  signal,
  suspending,
} from "../../testing/store-cases/case.ts";
import { Connection, type FaultPoint } from "./connection.ts";
import { loadDriver } from "./driver.ts";
import { sqliteStore } from "./sqlite-store.ts";

const FULL = 13;
const READ_ONLY = 8;
const IO = 10;
const BUSY = 5;

let folder: string;
let store: Store;
let fault: (point: FaultPoint) => void = () => {};

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "pawl-faults-"));
  fault = () => {};
  store = sqliteStore(join(folder, "pawl.db"), { durability: "process", fault: (point) => fault(point) });
  await store.open();
  await store.register(newWorker("w1"));
  await store.commit({ worker: "w1", runs: [creation("r", { claimed: true }), creation("s", { claimed: true })] });
});

afterEach(async () => {
  fault = () => {};
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function sqliteError(errcode: number): Error {
  return Object.assign(new Error(`error ${errcode}`), { code: "ERR_SQLITE_ERROR", errcode });
}

/** Fails once, at the n-th time this point is reached. */
function failAt(wanted: FaultPoint, errcode: number, nth = 1): { hasFailed(): boolean } {
  let left = nth;
  fault = (point) => {
    if (point === wanted && --left === 0) throw sqliteError(errcode);
  };
  return { hasFailed: () => left <= 0 };
}

async function everything(): Promise<unknown> {
  const rows = await store.runs({ limit: 99 });
  const perRun = await Promise.all(
    rows.map(async ({ id }) => [await store.journal(id), await store.inbox(id), await store.state(id)]),
  );
  const workers = (await store.workers()).map(({ leaseLeftMs: _left, ...worker }) => worker);
  return [rows, perRun, workers, await store.waits({}), await store.counters(""), await store.key("s", "k")];
}

const full: RunCommit = {
  ...appending("r", 1, 2),
  row: { state: "waiting", release: true, wakeAt: 5 },
  waits: [{ open: { key: "k", kind: "signal", name: "paid", due: null, detail: null } }],
  state: [{ key: "k", data: "1" }],
  keys: [{ space: "s", key: "k", digest: "d" }],
  counters: [{ key: "c", by: 1, max: null, held: true }],
  children: [{ run: "child", create: newRun({ tags: ["t"] }), entry: entry(0, "run.started") }],
  messages: [signal("s", "m")],
};

describe("before COMMIT", () => {
  it.each([
    [FULL, /no room left.*Free some space/],
    [READ_ONLY, /is read-only.*writable/],
    [IO, /I\/O error.*Check the disk/],
  ])(
    "ST5 error %i is definite: nothing is applied, the message says what to do, and the next try goes through",
    async (errcode, message) => {
      const before = await everything();
      const points: FaultPoint[] = ["begin", "statement", "before-commit"];
      // A full disk is the one error that COMMIT itself meets and that is definite all the same.
      if (errcode === FULL) points.push("commit");
      for (const point of points) {
        failAt(point, errcode);
        const commit = store.commit({ worker: "w1", runs: [full] });
        await expect(commit).rejects.toMatchObject({
          code: "storage_unavailable",
          message: expect.stringMatching(message),
          cause: expect.any(Error),
        });
        expect(await everything()).toEqual(before);
      }
      expect(await store.commit({ worker: "w1", runs: [full] })).toEqual([{ run: "r", kind: "applied" }]);
    },
  );

  it("B4 B6 B7 whichever statement of whichever method fails, all of it is taken back", async () => {
    const methods: Readonly<Record<string, () => Promise<unknown>>> = {
      commit: () => store.commit({ worker: "w1", runs: [full] }),
      end: () => store.commit({ worker: "w1", runs: [ending("r", 1)] }),
      "whole end": () => store.commit({ worker: "w1", runs: [endingWhole("r", 1)] }),
      claim: () => store.claim(claimRequest({ suspect: true })),
      take: () => store.take("w1", "free1"),
      deliver: () => store.deliver(signal("s", "m")),
      cancel: () => store.deliver(signal("s", "m", { kind: "cancel" })),
      fence: () => store.fence({ workers: ["w1"] }),
      move: () => store.fence({ workers: ["w1"], successor: newWorker("w2") }),
      retire: () => store.retire("w1"),
      register: () => store.register(newWorker("w3")),
      heartbeat: () => store.heartbeat("w1"),
      adopt: () => store.adopt(["s"]),
      purge: () => store.purge({ succeededBefore: 1e15, failedBefore: 1e15, limit: 9 }),
    };
    for (const [name, call] of Object.entries(methods)) {
      await rebuild();
      const before = await everything();
      let statements = 0;
      for (;;) {
        const plan = failAt("statement", IO, statements + 1);
        const failed = await call().then(
          () => false,
          (error) => error,
        );
        if (!plan.hasFailed()) break;
        expect(failed, name).toMatchObject({ code: "storage_unavailable" });
        expect(await everything(), `${name}, statement ${statements + 1}`).toEqual(before);
        statements += 1;
      }
      expect(statements, name).toBeGreaterThan(0);
    }
  });

  /** A new store in which every method has something to change. */
  async function rebuild(): Promise<void> {
    fault = () => {};
    await store.close();
    rmSync(folder, { recursive: true, force: true });
    folder = mkdtempSync(join(tmpdir(), "pawl-faults-"));
    store = sqliteStore(join(folder, "pawl.db"), { durability: "process", fault: (point) => fault(point) });
    await store.open();
    await store.register(newWorker("w1"));
    const runs = [
      creation("r", { claimed: true }),
      creation("s", { claimed: true }),
      creation("done", { claimed: true, tags: ["t"] }),
    ];
    await store.commit({ worker: "w1", runs: [...runs, creation("free1"), creation("free2", { readyAt: 1e15 })] });
    await store.commit({ worker: "w1", runs: [ending("done", 1), suspending("s", 1)] });
  }
});

describe("at COMMIT", () => {
  it("I2 P17 B30 an error is an unknown outcome; after fencing, the same bytes are written or found", async () => {
    const part = appending("r", 1, 2);
    failAt("commit", IO);
    await expect(store.commit({ worker: "w1", runs: [part] })).rejects.toMatchObject({
      code: "unknown_outcome",
      cause: expect.any(Error),
    });
    const before = await store.fence({ workers: ["w1"], successor: newWorker("w2") });
    expect(before.moved.find(({ run }) => run === "r")?.head).toBe(1);
    failAt("after-commit", IO);
    await expect(store.commit({ worker: "w2", runs: [part] })).rejects.toMatchObject({ code: "unknown_outcome" });
    const after = await store.fence({ workers: ["w2"], successor: newWorker("w3") });
    expect(after.moved.find(({ run }) => run === "r")?.head).toBe(3);
    expect(await store.commit({ worker: "w3", runs: [part] })).toEqual([{ run: "r", kind: "conflict", head: 3 }]);
    expect((await store.journal("r")).length).toBe(3);
  });

  it("a COMMIT that finds the file busy is done again", async () => {
    failAt("commit", BUSY);
    expect(await store.commit({ worker: "w1", runs: [appending("r", 1)] })).toEqual([{ run: "r", kind: "applied" }]);
    expect((await store.journal("r")).length).toBe(2);
  });
});

describe("a lock that is taken", () => {
  it("P30 is tried again without blocking the event loop", async () => {
    let refusals = 20;
    let turns = 0;
    fault = (point) => {
      if (point === "begin" && refusals-- > 0) throw sqliteError(BUSY);
    };
    const count = () => {
      turns += 1;
      if (refusals > 0) setImmediate(count);
    };
    setImmediate(count);
    expect(await store.commit({ worker: "w1", runs: [appending("r", 1)] })).toEqual([{ run: "r", kind: "applied" }]);
    expect(turns).toBeGreaterThanOrEqual(20);
  });
});

describe("a lock that others want", () => {
  it("P30 is left free for a moment after each commit, and taken at once while nobody else writes", async () => {
    const path = join(folder, "pawl.db");
    const db = new Connection(path, { durability: "process" }, () => {});
    await db.open();
    const holder = loadDriver().open(path);
    let writes = 0;
    const write = () => db.write(() => void writes++);
    await write();
    void write();
    expect(writes).toBe(2);
    db.others = () => 1;
    await write();
    const next = write();
    expect(writes).toBe(3);
    holder.exec("begin immediate");
    holder.exec("rollback");
    await next;
    expect(writes).toBe(4);
    holder.close();
    db.close();
  });
});

describe("a lock that stays taken", () => {
  it("P30 is given up after a while: nothing was written, and the holder is named where the system tells", async () => {
    const path = join(folder, "pawl.db");
    const holder = loadDriver().open(path);
    holder.exec("begin immediate");
    const db = new Connection(path, { durability: "process", giveUpMs: 20 }, () => {});
    await db.open();
    let ran = 0;
    await expect(db.write(() => ran++)).rejects.toMatchObject({
      code: "storage_unavailable",
      message: expect.stringMatching(/is locked by another process.*for 0\.02 s.*pawl doctor/),
    });
    expect(ran).toBe(0);
    holder.exec("rollback");
    expect(await db.write(() => ++ran)).toBe(1);
    db.close();
    holder.close();
  });
});

describe("one run's error", () => {
  it("P16 ST3 an error of SQLite inside one run's part takes that part back and nothing else", async () => {
    const bad: RunCommit = { ...full, entries: [entry(1), entry(2, "note", { at: Number.NaN })] };
    const verdicts = await store.commit({
      worker: "w1",
      runs: [appending("s", 1), bad, creation("new", { claimed: true }), appending("s", 2)],
    });
    expect(verdicts.map(({ kind }) => kind)).toEqual(["applied", "failed", "applied", "applied"]);
    expect(verdicts[1]).toMatchObject({
      error: expect.objectContaining({ message: expect.stringMatching(/NOT NULL/) }),
    });
    expect([(await store.journal("r")).length, (await store.journal("s")).length]).toEqual([1, 3]);
    expect(await store.inbox("s")).toEqual([]);
    expect(await store.run("child")).toBeNull();
    const after = await store.commit({
      worker: "w1",
      runs: [appending("r", 1), appending("s", 3), appending("new", 1)],
    });
    expect(after.map(({ kind }) => kind)).toEqual(["applied", "applied", "applied"]);
  });

  it("P15 what this process remembers of a run is never trusted against the database", async () => {
    const other = sqliteStore(join(folder, "pawl.db"), { durability: "process" });
    await other.open();
    expect(await other.commit({ worker: "w1", runs: [appending("r", 1)] })).toEqual([{ run: "r", kind: "applied" }]);
    const stale = await store.commit({ worker: "w1", runs: [appending("r", 1), appending("s", 1)] });
    expect(stale).toEqual([
      { run: "r", kind: "conflict", head: 2 },
      { run: "s", kind: "applied" },
    ]);
    expect(await store.commit({ worker: "w1", runs: [appending("r", 2)] })).toEqual([{ run: "r", kind: "applied" }]);
    await other.fence({ workers: ["w1"] });
    await store.register(newWorker("w1"));
    expect(await store.commit({ worker: "w1", runs: [appending("r", 3)] })).toEqual([
      { run: "r", kind: "conflict", head: 3 },
    ]);
    await other.close();
  });
});
