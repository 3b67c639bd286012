// Workers that freeze, hang, die and are told to stop, each with another one beside or after it on the same file.

import { readFileSync } from "node:fs";
import { expect, it, vi } from "vitest";
import { sqliteStore } from "../../src/index.ts";
import { loadDriver } from "../../src/stores/sqlite/driver.ts";
import { Child, live } from "./child.ts";
import { TEST_WORKFLOWS, World } from "./world.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 600_000 });

const files = [TEST_WORKFLOWS];

function worker(world: World, options: Record<string, unknown> = {}): Child {
  return new Child({ engines: [{ store: world.store(), options }], files, stay: true }, { env: world.env });
}

/** Stops a process for good, but not while it holds SQLite's lock: nobody could go on then, and that is not what is tested. */
function freeze(child: Child, world: World): void {
  const db = loadDriver().open(world.store());
  for (;;) {
    child.kill("SIGSTOP");
    while (!isStopped(child.pid));
    try {
      db.exec("begin immediate; rollback");
      return db.close();
    } catch {
      child.kill("SIGCONT");
    }
  }
}

function isStopped(pid: number): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
}

/** All that the store says about runs, and the ids of its workers. */
async function snapshot(world: World, run: string): Promise<{ run: unknown; workers: string[] }> {
  const store = sqliteStore(world.store());
  await store.open();
  const rows = { row: await store.run(run), journal: await store.journal(run), waits: await store.waits({ run }) };
  const workers = (await store.workers()).map(({ id }) => id);
  await store.close();
  return { run: rows, workers };
}

it("I8 I9 B20 B32 D-6 P17 P20 S3-19 S3-20 X-18 a worker frozen past its lease comes back as a stranger: its commit, heartbeat and release change nothing, and it goes on anew", async () => {
  const world = new World();
  const a = worker(world, { lease: "1s" });
  await a.hears("open");
  a.send("start", { workflow: "gated", id: "g", input: { gate: "one" } });
  await a.hears("started");
  const [formerId] = (await snapshot(world, "g")).workers;
  await entered(a, "first", world);
  freeze(a, world);

  const b = worker(world, { lease: "1s" });
  b.send("open", { gate: "one" });
  b.send("start", { workflow: "gated", id: "g", input: { gate: "one" } });
  expect(await b.result("g")).toEqual({ by: b.pid, attempt: 2 });
  const ended = await snapshot(world, "g");
  expect(ended.workers).not.toContain(formerId);

  a.send("open", { gate: "one" });
  a.kill("SIGCONT");
  await a.logged(/takes a new incarnation/);
  expect(await a.result("g")).toEqual({ by: b.pid, attempt: 2 });
  a.send("start", { workflow: "harmless", id: "h", input: 20 });
  expect(await a.result("h")).toBe(41);
  const after = await snapshot(world, "g");
  expect(after.run).toEqual(ended.run);
  expect(after.workers.length).toBe(2);
  expect(after.workers).not.toContain(formerId);

  a.kill("SIGTERM");
  await a.exited;
  expect(await snapshot(world, "g")).toEqual({
    run: ended.run,
    workers: after.workers.filter((id) => ended.workers.includes(id)),
  });
  const starts = world.seenOf("g").map(({ action, pid, key }) => ({ action, pid, key }));
  expect(starts).toEqual([
    { action: "first", pid: a.pid, key: "g/first" },
    { action: "first", pid: b.pid, key: "g/first" },
    { action: "second", pid: b.pid, key: "g/second" },
  ]);
});

it("S3-19 I9 while a lease runs, nobody else advances the run", async () => {
  const world = new World();
  const a = worker(world, { lease: "1s" });
  a.send("start", { workflow: "gated", id: "g", input: { gate: "one" } });
  await a.hears("started");
  const b = worker(world, { lease: "1s" });
  b.send("open", { gate: "one" });
  // More than two leases and sweeps of the other one.
  b.send("start", { workflow: "blocking", id: "b", input: { ms: 1 } });
  await b.result("b");
  for (let n = 0; n < 25; n++) {
    b.send("start", { workflow: "blocking", id: `b${n}`, input: { ms: 100 } });
    await b.result(`b${n}`);
  }
  expect(world.seenOf("g").length).toBe(1);
  a.send("open", { gate: "one" });
  expect(await a.result("g")).toEqual({ by: a.pid, attempt: 1 });
});

it("P27 S4-1 I11 B16 a restart takes over at once what a dead process owned, long before its lease of 15 s is over", async () => {
  const world = new World();
  const a = worker(world);
  a.send("start", { workflow: "gated", id: "g", input: { gate: "one" } });
  await entered(a, "first", world);
  a.kill("SIGKILL");
  await a.exited;
  const b = worker(world);
  await b.hears("open");
  const openedAt = performance.now();
  b.send("open", { gate: "one" });
  b.send("start", { workflow: "gated", id: "g", input: { gate: "one" } });
  expect(await b.result("g")).toEqual({ by: b.pid, attempt: 2 });
  expect(performance.now() - openedAt).toBeLessThan(10_000);
});

it("S4-1 P20 I11 a second worker that is there already takes over, too", async () => {
  const world = new World();
  const a = worker(world, { lease: "1s" });
  a.send("start", { workflow: "gated", id: "g", input: { gate: "one" } });
  await entered(a, "first", world);
  const b = worker(world, { lease: "1s" });
  b.send("open", { gate: "one" });
  await b.hears("done");
  a.kill("SIGKILL");
  b.send("start", { workflow: "gated", id: "g", input: { gate: "one" } });
  expect(await b.result("g")).toMatchObject({ by: b.pid });
  expect(world.seenOf("g").map(({ action }) => action)).toEqual(["first", "first", "second"]);
});

it("P26 B21 I27 an event loop that stands still for two leases keeps its runs: another thread renews them", async () => {
  const world = new World();
  const b = worker(world, { lease: "1s" });
  await b.hears("open");
  const a = worker(world, { lease: "1s" });
  a.send("start", { workflow: "blocking", id: "x", input: { ms: 2500 } });
  expect(await a.result("x")).toBe(a.pid);
  expect(world.seenOf("x").length).toBe(1);
  // The next heartbeat notices.
  const stall = /stood still for \S+ s or longer/;
  await a.logged(stall);
  const logged = [...a.said, ...b.said].filter(({ event }) => event === "log");
  expect(logged.filter(({ message }) => !stall.test(String(message)))).toEqual([]);
});

it("P26 B21 I8 an event loop that stands still for longer than the stall limit loses its runs", async () => {
  const world = new World();
  const b = worker(world, { lease: "1s" });
  await b.hears("open");
  const a = worker(world, { lease: "1s", stall: "500ms" });
  a.send("start", { workflow: "blocking", id: "x", input: { ms: 6000 } });
  await b.logged(/is dead; its runs are taken over/);
  expect(await a.result("x")).toBe(b.pid);
  await a.logged(/takes a new incarnation/);
  expect(world.seenOf("x").map(({ pid }) => pid)).toEqual([a.pid, b.pid]);
});

it("P28 B69 I19 a run that brings its process down is parked after a few deaths, and 99 neighbours finish", async () => {
  const world = new World();
  const neighbours = Array.from({ length: 99 }, (_, i) => ({ workflow: "harmless", id: `n${i}`, input: i }));
  const runs = [{ workflow: "poison", id: "poison", input: null }, ...neighbours];
  let deaths = 0;
  let child = new Child({ engines: [{ store: world.store(), runs }], files, stay: true }, { env: world.env });
  for (; ; deaths++) {
    const parked = child.logged(/ended its process/).then(() => true);
    if (await Promise.race([parked.catch(() => false), child.exited.then(() => false)])) break;
    child = new Child({ engines: [{ store: world.store(), runs }], files, stay: true }, { env: world.env });
  }
  for (const { id, input } of neighbours) expect(await child.result(id)).toBe(2 * input + 1);
  expect(deaths).toBeGreaterThanOrEqual(3);
  expect(deaths).toBeLessThanOrEqual(6);
  child.send("status", { run: "poison" });
  const { status } = await child.hears("status");
  expect(status).toMatchObject({ state: "parked", parked: { reason: "poisoned", choices: ["retry", "cancel"] } });
  // Nobody's recorded step ran again.
  for (const { id } of neighbours)
    expect(world.seenOf(id).filter(({ action }) => action === "b").length).toBeLessThanOrEqual(2);
});

it("P28 SIGTERM lets running steps finish and hands the run back: nothing runs twice, no claim counts as failed", async () => {
  const world = new World();
  const a = worker(world);
  a.send("start", { workflow: "gated", id: "g", input: { gate: "one" } });
  await entered(a, "first", world);
  a.kill("SIGTERM");
  await a.hears("stopping");
  a.send("open", { gate: "another" });
  await a.hears("done", ({ command }) => command === "open");
  a.send("open", { gate: "one" });
  expect(await a.exited).toEqual({ code: null, signal: "SIGTERM" });
  const handedBack = await world.remains("g");
  expect(handedBack.journal.filter(({ type }) => type === "step.completed").map(({ key }) => key)).toEqual(["first"]);
  expect(handedBack.claims).toBe(0);

  const b = await live(
    { engines: [{ store: world.store(), runs: [{ workflow: "gated", id: "g", input: { gate: "one" } }] }], files },
    { env: world.env },
  );
  expect(await b.result("g")).toEqual({ by: a.pid, attempt: 1 });
  expect(world.seenOf("g").map(({ action, pid }) => ({ action, pid }))).toEqual([
    { action: "first", pid: a.pid },
    { action: "second", pid: b.pid },
  ]);
});

it("S4-31 a process killed while a step waits for its next attempt: it comes at its recorded time, and is the second", async () => {
  const world = new World();
  const a = worker(world);
  a.send("start", { workflow: "flaky", id: "f", input: { wait: "2s" } });
  await a.hears("started");
  const failed = await untilFailed(world);
  a.kill("SIGKILL");
  await a.exited;
  const { retryAt } = failed.payload as { retryAt: number };
  expect(retryAt - failed.at).toBeGreaterThan(1900);

  const b = worker(world);
  b.send("start", { workflow: "flaky", id: "f", input: { wait: "2s" } });
  const { attempt, at } = (await b.result("f")) as { attempt: number; at: number };
  expect(attempt).toBe(2);
  expect(at).toBeGreaterThanOrEqual(retryAt);
  const { journal } = await world.remains("f");
  expect(journal.map(({ type }) => type)).toEqual([
    "run.started",
    "step.started",
    "step.failed",
    "step.started",
    "step.completed",
    "run.succeeded",
  ]);
  expect(journal[2]).toEqual(failed);
  expect(world.seenOf("f").map(({ action, pid }) => ({ action, pid }))).toEqual([
    { action: "try", pid: a.pid },
    { action: "try", pid: b.pid },
  ]);
});

/** The mark of the first failed attempt, once it is on disk. */
async function untilFailed(world: World) {
  for (;;) {
    const mark = (await world.remains("f")).journal.find(({ type }) => type === "step.failed");
    if (mark !== undefined) return mark;
  }
}

/** Resolves when the child says that the run was started and the ledger shows that its step is running. */
async function entered(child: Child, action: string, world: World): Promise<void> {
  await child.hears("started");
  while (!world.ledger().some((line) => line.action === action && line.pid === child.pid)) {
    child.send("status", { run: "g" });
    const before = child.said.length;
    await child.hears("status", (said) => child.said.indexOf(said) >= before);
  }
}
