// The thread that renews a lease. It is the built one, also here.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { manualClock, systemClock } from "../../base/clock.ts";
import type { Pulse, Store } from "../../core/store.ts";
import { newWorker } from "../../testing/store-cases/case.ts";
import { ownFile } from "../own-file.ts";
import { startPulse } from "../pulse/pulse.ts";
import { PulseSignals, pulseMemory } from "../pulse/pulse-signals.ts";
import { loadDriver } from "./driver.ts";
import { sqliteStore } from "./sqlite-store.ts";

const EVERY_MS = 2;
const NO_STALL_MS = 1e9;

let folder: string;
let store: Store;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "pawl-pulse-"));
  store = sqliteStore(join(folder, "pawl.db"), { durability: "process" });
  await store.open();
  await store.register(newWorker("w1"));
});

afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function pulse(everyMs = EVERY_MS, stallMs = NO_STALL_MS): Pulse {
  const started = store.pulse?.("w1", everyMs, stallMs);
  if (started === undefined) throw new Error("A store on the system's clock has a pulse.");
  return started;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

/** Blocks this thread, as a long computation would. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

async function renewal(): Promise<number> {
  const [worker] = await store.workers();
  return (worker?.leaseLeftMs ?? 0) + systemClock.monotonic();
}

it("P37 counts from the registration until the first heartbeat is confirmed, then from when each was sent", async () => {
  const before = systemClock.monotonic();
  await store.register(newWorker("w1"));
  const registered = systemClock.monotonic();
  const beating = pulse();
  expect(beating.confirmedAt()).toBeGreaterThanOrEqual(before - 0.001);
  await until(() => beating.confirmedAt() > registered);
  expect(beating.confirmedAt()).toBeLessThanOrEqual(systemClock.monotonic());
  await beating.stop();
});

it("renews the lease in the file", async () => {
  const before = await renewal();
  const beating = pulse();
  const started = systemClock.monotonic();
  await until(() => beating.confirmedAt() > started);
  await beating.stop();
  expect(await renewal()).toBeGreaterThan(before);
});

it("P26 renews while the main thread is blocked", async () => {
  const beating = pulse();
  const started = systemClock.monotonic();
  await until(() => beating.confirmedAt() > started);
  const blockedAt = systemClock.monotonic();
  while (beating.confirmedAt() <= blockedAt) block(5);
  await beating.stop();
});

it("I8 notices that its worker was fenced, says so, and stays with it", async () => {
  const beating = pulse();
  await store.fence({ workers: ["w1"] });
  await until(() => beating.confirmedAt() === Number.NEGATIVE_INFINITY);
  await store.register(newWorker("w1"));
  await beating.stop();
  expect(beating.confirmedAt()).toBe(Number.NEGATIVE_INFINITY);
});

it("P26 stops renewing when the main loop stands still, and goes on when it moves again", async () => {
  const stallMs = 20;
  const beating = pulse(EVERY_MS, stallMs);
  const started = systemClock.monotonic();
  const beatUntilAfter = (time: number) =>
    until(() => {
      beating.beat();
      return beating.confirmedAt() > time;
    });
  await beatUntilAfter(started);
  const lastBeat = systemClock.monotonic();
  await until(() => systemClock.monotonic() > lastBeat + 50 * stallMs);
  const last = beating.confirmedAt();
  expect(last).toBeLessThan(lastBeat + 40 * stallMs);
  await beatUntilAfter(last);
  await beating.stop();
});

it("P30 waits for a lock that another connection holds, and renews when it is free", async () => {
  const beating = pulse();
  const started = systemClock.monotonic();
  await until(() => beating.confirmedAt() > started);
  const db = loadDriver().open(join(folder, "pawl.db"));
  await until(() => {
    try {
      db.exec("begin immediate");
      return true;
    } catch {
      return false;
    }
  });
  const lockedAt = systemClock.monotonic();
  block(20 * EVERY_MS);
  expect(beating.confirmedAt()).toBeLessThanOrEqual(lockedAt);
  db.exec("commit");
  await until(() => beating.confirmedAt() > lockedAt);
  db.close();
  await beating.stop();
});

it("stops at once, however long it would have waited, and closing the store stops what was left running", async () => {
  const beating = pulse(NO_STALL_MS);
  await beating.stop();
  await beating.stop();
  pulse(NO_STALL_MS);
  await store.close();
  await store.open();
  expect((await store.workers()).length).toBe(1);
});

it.each([
  ["cannot be found", () => join(folder, "nowhere.js")],
  ["cannot be resolved", () => createRequire(import.meta.url).resolve("#nothing")],
])("a thread that %s is replaced by the beats of the main loop", async (_why, file) => {
  const task = { path: join(folder, "pawl.db"), worker: "w1", everyMs: EVERY_MS, stallMs: NO_STALL_MS, synchronous: 1 };
  let beats = 0;
  const beating = startPulse(task, { confirmedAt: 5, beatHere: (signals) => signals.confirm(6, ++beats), file });
  expect(beating.confirmedAt()).toBe(5);
  await until(() => {
    beating.beat();
    return beats > 0;
  });
  expect([beating.confirmedAt(), beating.others()]).toEqual([6, beats]);
  await beating.stop();
});

it("P26 until the thread has renewed the lease once, the beats of the main loop do: it may take longer to start than the lease lasts", async () => {
  const file = join(folder, "slow-thread.mjs");
  writeFileSync(
    file,
    `import { workerData } from "node:worker_threads";
    Atomics.wait(new Int32Array(workerData.memory.numbers), 0, 0);`,
  );
  const task = { path: join(folder, "pawl.db"), worker: "w1", everyMs: EVERY_MS, stallMs: NO_STALL_MS, synchronous: 1 };
  let beats = 0;
  const beatHere = () => void beats++;
  const slow = startPulse(task, { confirmedAt: 5, beatHere, file: () => file });
  for (let n = 1; n <= 3; n++) {
    slow.beat();
    expect(beats).toBe(n);
  }
  await slow.stop();
  beats = 0;
  const started = systemClock.monotonic();
  const quick = startPulse(task, { confirmedAt: started, beatHere, file: () => ownFile("#pulse") });
  await until(() => quick.confirmedAt() > started);
  // Its first renewal is seen a moment before its word that it is up; the second one comes behind both.
  const first = quick.confirmedAt();
  await until(() => quick.confirmedAt() > first);
  quick.beat();
  expect(beats).toBe(0);
  await quick.stop();
});

it("P37 a heartbeat that is applied after a later one does not shorten the lease, nor what is known of it", async () => {
  const [early, late] = [manualClock(), manualClock()];
  late.advance(500);
  const leases = [early, late].map((leaseClock) => sqliteStore(join(folder, "lease.db"), { leaseClock }));
  for (const one of leases) await one.open();
  await leases[0]?.register(newWorker("w2"));
  await leases[1]?.heartbeat("w2");
  const renewed = (await leases[1]?.workers())?.[0]?.leaseLeftMs;
  expect(await leases[0]?.heartbeat("w2")).toMatchObject({ alive: true });
  expect((await leases[1]?.workers())?.[0]?.leaseLeftMs).toBe(renewed);
  for (const one of leases) await one.close();

  const signals = new PulseSignals(pulseMemory(5));
  signals.confirm(7, 1);
  signals.confirm(6, 2);
  expect([signals.confirmedAt(), signals.others()]).toEqual([7, 2]);
  signals.fenced();
  signals.confirm(8, 2);
  expect(signals.confirmedAt()).toBe(Number.NEGATIVE_INFINITY);
});

it("a lease clock of one's own has no pulse: no thread can follow it", async () => {
  const own = sqliteStore(join(folder, "own.db"), { leaseClock: manualClock() });
  expect(own.pulse).toBeUndefined();
});
