// Several processes on one SQLite file. The children run the built package.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { manualClock } from "../src/base/clock.ts";
import { Pawl } from "../src/client/pawl.ts";
import { why } from "../src/client/why.ts";
import type { Store } from "../src/core/store.ts";
import { workflow } from "../src/core/workflow.ts";
import { loadDriver } from "../src/stores/sqlite/driver.ts";
import { lockHolders } from "../src/stores/sqlite/lock-holder.ts";
import { sqliteStore } from "../src/stores/sqlite/sqlite-store.ts";
import { appending, claimRequest, creation, newWorker } from "../src/testing/store-cases/case.ts";
import { World } from "./behaviour/harness.ts";
import { built, type Child, startChild } from "./child.ts";

let folder: string;
let file: string;
const stores: Store[] = [];
const children: Child[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-processes-"));
  file = join(folder, "pawl.db");
});

afterEach(async () => {
  for (const child of children.splice(0)) await child.kill();
  for (const store of stores.splice(0)) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

async function open(): Promise<Store> {
  const store = sqliteStore(file);
  await store.open();
  stores.push(store);
  return store;
}

/** A child with the store open as `store`, and the helpers of the contract cases. */
function startWorker(code: string): Child {
  const child = startChild(`
    import { sqliteStore } from "${built("stores/sqlite/sqlite-store.js")}";
    import { appending, claimRequest, creation, newWorker } from "${built("testing/store-cases/case.js")}";
    const store = sqliteStore(${JSON.stringify(file)});
    ${code}`);
  children.push(child);
  return child;
}

it("B72 processes that create the same file at once agree on it, and all their commits are there", async () => {
  const workers = ["a", "b", "c", "d"].map((name) =>
    startWorker(`
      say("up");
      await heard();
      await store.open();
      for (let i = 0; i < 25; i++) {
        const [verdict] = await store.commit({ worker: null, runs: [creation("${name}" + i)] });
        if (verdict.kind !== "applied") throw new Error(JSON.stringify(verdict));
      }
      await store.close();`),
  );
  for (const child of workers) expect(await child.line()).toBe("up");
  for (const child of workers) child.tell("go");
  for (const child of workers) await child.rest();
  const store = await open();
  expect((await store.runs({ limit: 999 })).length).toBe(100);
  expect((await store.inspect()).faults).toEqual([]);
});

it("I9 two processes that claim at once never get the same run, and together get all", async () => {
  const store = await open();
  const ids = Array.from({ length: 200 }, (_, i) => `r${i}`);
  await store.commit({ worker: null, runs: ids.map((id) => creation(id)) });
  const workers = ["w1", "w2"].map((name) =>
    startWorker(`
      await store.open();
      await store.register(newWorker("${name}"));
      say("up");
      await heard();
      for (let empty = 0; empty < 3; ) {
        const claimed = await store.claim(claimRequest({ worker: "${name}", limit: 3 }));
        for (const { run } of claimed) say(run);
        if (claimed.length === 0) empty += 1;
      }
      await store.close();`),
  );
  for (const child of workers) expect(await child.line()).toBe("up");
  for (const child of workers) child.tell("go");
  const claimed = (await Promise.all(workers.map((child) => child.rest()))).flat();
  expect(claimed.length).toBe(200);
  expect(new Set(claimed).size).toBe(200);
});

it("I8 P21 a worker that another process has fenced is told so by its next commit", async () => {
  const child = startWorker(`
    await store.open();
    await store.register(newWorker("w1"));
    const commit = async (part) => say(JSON.stringify(await store.commit({ worker: "w1", runs: [part] })));
    await commit(creation("r", { claimed: true }));
    await commit(appending("r", 1));
    await heard();
    await commit(appending("r", 2));
    await store.close();`);
  for (let i = 0; i < 2; i++) expect(JSON.parse(await child.line())).toEqual([{ run: "r", kind: "applied" }]);
  const store = await open();
  expect(await store.fence({ workers: ["w1"] })).toEqual({ moved: [], released: 1 });
  child.tell("go on");
  expect(JSON.parse(await child.line())).toEqual([{ run: "r", kind: "refused", why: "fenced" }]);
  await child.rest();
  expect((await store.journal("r")).length).toBe(2);
});

it("I1 what was acknowledged is there after the process was killed", async () => {
  const child = startWorker(`
    await store.open();
    await store.register(newWorker("w1"));
    await store.commit({ worker: "w1", runs: [creation("r", { claimed: true })] });
    for (let head = 1; ; head += 2) {
      await store.commit({ worker: "w1", runs: [appending("r", head, 2)] });
      say(String(head + 2));
    }`);
  let acknowledged = 0;
  while (acknowledged < 100) acknowledged = Number(await child.line());
  await child.kill();
  const store = await open();
  const { length } = await store.journal("r");
  expect(length).toBeGreaterThanOrEqual(acknowledged);
  expect(length % 2).toBe(1);
  const dead = await store.fence({ workers: ["w1"], successor: newWorker("w2") });
  expect(dead.moved.map(({ head }) => head)).toEqual([length]);
});

it("I1 a signal and a cancel that were acknowledged are there after the process was killed", async () => {
  const child = startWorker(`
    await store.open();
    await store.commit({ worker: null, runs: [creation("r"), creation("s")] });
    say(await store.deliver({ to: "r", id: "m", kind: "signal", name: "paid", data: '"yes"' }));
    say(await store.deliver({ to: "s", id: "c", kind: "cancel", name: "", data: "stop" }));
    await heard();`);
  expect([await child.line(), await child.line()]).toEqual(["delivered", "delivered"]);
  await child.kill();
  const store = await open();
  expect(await store.inbox("r")).toMatchObject([{ id: "m", data: '"yes"' }]);
  expect(await store.run("s")).toMatchObject({ cancel: "stop" });
});

const canTrace = spawnSync("strace", ["-e", "trace=none", "true"]).status === 0;
// Needs strace, and a kernel that allows it.
it.skipIf(!canTrace)("I1 every acknowledged commit was synced before its acknowledgement", async () => {
  const trace = join(folder, "trace");
  const child = startChild(
    `
    import { sqliteStore } from "${built("stores/sqlite/sqlite-store.js")}";
    import { creation } from "${built("testing/store-cases/case.js")}";
    const store = sqliteStore(${JSON.stringify(file)});
    await store.open();
    for (let i = 0; i < 5; i++) {
      await store.commit({ worker: null, runs: [creation("r" + i)] });
      say("acknowledged " + i);
    }`,
    ["strace", "-f", "-y", "-s", "64", "-e", "trace=fsync,fdatasync,write", "-o", trace],
  );
  children.push(child);
  await child.rest();
  const lines = readFileSync(trace, "utf8").split("\n");
  const acks = lines.flatMap((line, at) => (line.includes('"acknowledged ') ? [at] : []));
  expect(acks.length).toBe(5);
  const isSync = (line: string) => /\bf(data)?sync\(.*pawl\.db-wal/.test(line);
  for (const [i, at] of acks.entries()) expect(lines.slice(i === 0 ? 0 : acks[i - 1], at).some(isSync)).toBe(true);
});

it("I12 a commit of another process is a hint here, and one's own is none", async () => {
  const store = await open();
  let hints = 0;
  const hinted = new Promise<void>((resolve) => {
    store.hints(() => {
      hints += 1;
      resolve();
    });
  });
  await store.commit({ worker: null, runs: [creation("mine")] });
  const child = startWorker(`
    await store.open();
    await heard();
    await store.commit({ worker: null, runs: [creation("theirs")] });
    await store.close();`);
  expect(hints).toBe(0);
  child.tell("go");
  await hinted;
  expect((await store.run("mine"))?.id).toBe("mine");
  await child.rest();
});

// Who holds a lock is known on Linux only.
it.skipIf(process.platform !== "linux")(
  "P30 a stopped process that holds the lock is named, by `why` as well, and work goes on when it does",
  async () => {
    const store = await open();
    const pawl = await Pawl.open(store, { handleSignals: false });
    await pawl.start("flow", 1, { id: "waits", version: "1.0.0" });
    expect((await why(pawl, "waits")).text.join()).not.toMatch(/lock/);
    await store.register(newWorker("w1"));
    const child = startChild(`
    import { loadDriver } from "${built("stores/sqlite/driver.js")}";
    const db = loadDriver().open(${JSON.stringify(file)});
    db.exec("begin immediate");
    say("locked");
    await heard();
    db.exec("commit");`);
    children.push(child);
    expect(await child.line()).toBe("locked");
    const pid = child.process.pid as number;
    expect(lockHolders(file)).toEqual([{ pid, isStopped: false }]);
    child.process.kill("SIGSTOP");
    while (!lockHolders(file)[0]?.isStopped) await new Promise((resolve) => setImmediate(resolve));
    const { settings, faults } = await store.inspect();
    expect(settings.write_lock_held_by).toBe(pid);
    expect(faults).toEqual([
      expect.stringMatching(`Process ${pid} is stopped and holds the write lock.*kill -CONT ${pid}`),
    ]);
    expect((await store.inspect({ quick: true })).faults).toEqual(faults);
    expect((await why(pawl, "waits")).next[0]).toBe(faults[0]);
    expect((await why(pawl, "waits")).text).toContain(`  ${faults[0]}`);
    const commit = store.commit({ worker: "w1", runs: [creation("r", { claimed: true })] });
    child.process.kill("SIGCONT");
    child.tell("go");
    expect(await commit).toEqual([{ run: "r", kind: "applied" }]);
    await child.rest();
    expect(lockHolders(file)).toEqual([]);
    expect((await why(pawl, "waits")).text.join()).not.toMatch(/lock/);
    await pawl.close();
  },
);

it("P30 a process that commits all the time lets others in after a few commits of its own", async () => {
  const store = await open();
  await store.register(newWorker("w1"));
  await store.commit({ worker: "w1", runs: [creation("r", { claimed: true })] });
  const child = startWorker(`
    // It waits for no disk, so that it would have the lock nearly all the time.
    const quick = sqliteStore(${JSON.stringify(file)}, { durability: "process" });
    await quick.open();
    await quick.register(newWorker("w2"));
    await quick.commit({ worker: "w2", runs: [creation("busy", { claimed: true })] });
    let isDone = false;
    heard().then(() => { isDone = true; });
    say("up");
    for (let head = 1; !isDone; head++) await quick.commit({ worker: "w2", runs: [appending("busy", head)] });
    await quick.close();`);
  expect(await child.line()).toBe("up");
  await store.heartbeat("w1");
  const theirs: number[] = [];
  let seen = (await store.journal("busy")).length;
  for (let head = 1; head <= 51; head++) {
    expect(await store.commit({ worker: "w1", runs: [appending("r", head)] })).toEqual([{ run: "r", kind: "applied" }]);
    const { length } = await store.journal("busy", { from: seen });
    theirs.push(length);
    seen += length;
  }
  // Now and then a busy machine lets one of the two stand for a while: that says nothing about the lock.
  const median = theirs.sort((a, b) => a - b)[25];
  expect(median).toBeLessThan(10);
  child.tell("stop");
  await child.rest();
  expect((await store.claim(claimRequest())).length).toBe(0);
});

it("two drivers' files are one: what this process writes, plain SQLite reads", async () => {
  const store = await open();
  await store.commit({ worker: null, runs: [creation("r", { tags: ["a"] })] });
  const db = loadDriver().open(file);
  expect(
    db
      .prepare("select id, state, tags from runs")
      .all()
      .map((row) => ({ ...row })),
  ).toEqual([{ id: "r", state: "accepted", tags: '["a"]' }]);
  db.close();
});

it("a pulse that nobody stops does not keep its process alive", async () => {
  const child = startWorker(`
    await store.open();
    await store.register(newWorker("w1"));
    const pulse = store.pulse("w1", 5, 1e9);
    store.hints(() => {});
    const sent = pulse.confirmedAt();
    while (pulse.confirmedAt() === sent) await new Promise((resolve) => setImmediate(resolve));
    say("beating");`);
  expect(await child.rest()).toEqual(["beating"]);
});

it("B33 B72 engines whose clocks are ten minutes apart leave each other's leases alone, and take over a dead one's", async () => {
  const leaseClock = manualClock();
  const now = Date.UTC(2026, 0, 1);
  const begun: string[] = [];
  const flow = workflow("flow", (ctx, name: string) =>
    ctx.step("work", ({ attempt }) => {
      begun.push(`${name} ${attempt}`);
      return attempt === 1 ? new Promise<never>(() => {}) : "taken over";
    }),
  );
  let isDeaf = false;
  const worlds: World[] = [];
  const engines: Pawl[] = [];
  for (const [name, skew] of Object.entries({ slow: -600_000, right: 0, fast: 600_000 })) {
    const clock = { ...manualClock(now + skew), nextDue: () => Number.POSITIVE_INFINITY };
    const store = sqliteStore(file, { clock, leaseClock, durability: "process" });
    await store.open();
    stores.push(store);
    const heartbeat = (worker: string) =>
      name === "fast" && isDeaf ? Promise.reject(new Error("no answer")) : store.heartbeat(worker);
    const world = new World({ ...store, heartbeat }, clock, false);
    const pawl = await world.open([flow]);
    onTestFinished(() => world.kill(pawl));
    await pawl.start(flow, name, { id: name });
    worlds.push(world);
    engines.push(pawl);
  }
  const pass = async (seconds: number) => {
    for (let i = 0; i < seconds; i++) {
      leaseClock.advance(1000);
      for (const world of worlds) await world.settle();
    }
  };
  await pass(30);
  expect(begun.toSorted()).toEqual(["fast 1", "right 1", "slow 1"]);
  expect((await engines[0]?.workers())?.length).toBe(3);
  isDeaf = true;
  await pass(35);
  expect(begun.toSorted()).toEqual(["fast 1", "fast 2", "right 1", "slow 1"]);
  expect(await engines[1]?.get("fast").result()).toBe("taken over");
});
