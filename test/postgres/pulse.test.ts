// The thread that renews a lease on PostgreSQL. It is the built one, also here.
import { afterAll, afterEach, beforeEach, expect, inject, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import type { Pulse, Store } from "../../src/core/store.ts";
import { loadDriver } from "../../src/stores/postgres/driver.ts";
import { postgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { newWorker } from "../../src/testing/store-cases/case.ts";

const SCHEMA = `pulse_${process.pid}`;
const EVERY_MS = 5;
const NO_STALL_MS = 1e9;

let store: Store;

beforeEach(async () => {
  store = postgresStore(inject("postgresUrl"), { schema: SCHEMA });
  await store.open();
  await store.register(newWorker("w1"));
});

afterEach(() => store.close());

afterAll(async () => {
  const admin = (await loadDriver()).client({ connectionString: inject("postgresUrl") });
  await admin.connect();
  await admin.query({ text: `drop schema ${SCHEMA} cascade` });
  await admin.end();
});

function pulse(everyMs = EVERY_MS, stallMs = NO_STALL_MS): Pulse {
  const started = store.pulse?.("w1", everyMs, stallMs);
  if (started === undefined) throw new Error("A store by URL, on the system's clock, has a pulse.");
  return started;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

/** Blocks this thread, as a long computation would. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

async function leaseLeft(): Promise<number> {
  const [worker] = await store.workers();
  return worker?.leaseLeftMs ?? Number.NEGATIVE_INFINITY;
}

it("P26 B21 renews the lease while the main thread is blocked, and says when each heartbeat was sent", async () => {
  const beating = pulse();
  const started = systemClock.monotonic();
  await until(() => beating.confirmedAt() > started);
  const blockedAt = systemClock.monotonic();
  while (beating.confirmedAt() <= blockedAt) block(5);
  expect(beating.confirmedAt()).toBeLessThanOrEqual(systemClock.monotonic());
  await beating.stop();
  expect(await leaseLeft()).toBeGreaterThan(0);
});

it("P26 stops renewing when the main loop stands still for longer than the stall limit", async () => {
  await store.register({ ...newWorker("w1"), leaseMs: 100 });
  const beating = pulse(EVERY_MS, 20);
  const started = systemClock.monotonic();
  await until(() => {
    beating.beat();
    return beating.confirmedAt() > started;
  });
  while ((await leaseLeft()) > 0);
  const beatenAgain = systemClock.monotonic();
  beating.beat();
  await until(() => beating.confirmedAt() > beatenAgain);
  await beating.stop();
});

it("P20 tells that its worker was fenced, and never takes that back", async () => {
  const beating = pulse();
  const started = systemClock.monotonic();
  await until(() => beating.confirmedAt() > started);
  await store.fence({ workers: ["w1"] });
  await until(() => beating.confirmedAt() === Number.NEGATIVE_INFINITY);
  await store.register(newWorker("w1"));
  expect(beating.confirmedAt()).toBe(Number.NEGATIVE_INFINITY);
  await beating.stop();
});

it("a pool cannot go to another thread: its store has no pulse", async () => {
  const pool = { connect: () => Promise.reject(new Error("none")), options: { max: 10 } };
  expect(postgresStore(pool).pulse).toBe(undefined);
  expect(() => postgresStore({ ...pool, options: { max: 3 } })).toThrow(/allows 3 connections.*keeps up to 6/);
});
