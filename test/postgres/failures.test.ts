// What networks and servers do to a connection: nothing that was acknowledged is lost, nothing is repeated blindly, everything goes on by itself.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Pawl } from "../../src/client/pawl.ts";
import type { PawlOptions } from "../../src/client/pawl-options.ts";
import type { Log } from "../../src/core/context.ts";
import { workflow } from "../../src/core/workflow.ts";
import { loadDriver, type PgClient } from "../../src/stores/postgres/driver.ts";
import { postgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { openPostgres, type PostgresServer } from "../postgres.ts";
import { type Fate, Wire, work } from "./wire.ts";

const STEPS = 6;
const QUICK = { lease: "2s", poll: "150ms", handleSignals: false } as const;

let server: PostgresServer;
let admin: PgClient;
let schemas = 0;
const cleanUps: (() => unknown)[] = [];

beforeAll(async () => {
  server = await openPostgres();
  admin = await connect();
}, 60_000);

async function connect(): Promise<PgClient> {
  const client = (await loadDriver()).client({ connectionString: server.url });
  // A crash of the server is no news here.
  client.on("error", () => {});
  await client.connect();
  return client;
}

afterAll(async () => {
  await admin.end();
  await server.stop();
});

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const begun = new Map<string, number>();
const counting = workflow("counting", async (ctx, pauseMs: number) => {
  let sum = 0;
  for (let i = 0; i < STEPS; i++) {
    sum += await ctx.step(`s${i}`, async ({ key }) => {
      begun.set(key, (begun.get(key) ?? 0) + 1);
      if (pauseMs > 0) await work(pauseMs);
      return i;
    });
  }
  return sum;
});
const SUM = (STEPS * (STEPS - 1)) / 2;

const waiting = workflow("waiting", async (ctx) => ctx.waitFor<string>("go"));

async function openWire(): Promise<Wire> {
  const wire = await Wire.open(server.url);
  cleanUps.push(() => wire.close());
  return wire;
}

async function open(url: string, schema: string, options: PawlOptions): Promise<Pawl> {
  const pawl = await Pawl.open(postgresStore(url, { schema }), { logger: silent, ...QUICK, ...options });
  cleanUps.push(() => pawl.close({ drain: 1 }));
  return pawl;
}

const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** The n-th message with this text in it meets this fate. */
function nth(text: string, n: number, fate: Fate): (sent: string) => Fate {
  let seen = 0;
  return (sent) => (sent.includes(text) && ++seen === n ? fate : "pass");
}

/** How many connections the server has from stores. */
async function backends(): Promise<number> {
  const { rows } = await admin.query({
    text: "select count(*)::int as n from pg_stat_activity where application_name = 'pawl'",
  });
  return rows[0]?.["n"] as number;
}

async function expectOnce(pawl: Pawl, run: string): Promise<void> {
  const journal = await pawl.get(run).journal();
  for (let i = 0; i < STEPS; i++) {
    const marks = journal.filter(({ type, key }) => type === "step.started" && key === `s${i}`).length;
    expect(journal.filter(({ type, key }) => type === "step.completed" && key === `s${i}`)).toHaveLength(1);
    expect(begun.get(`${run}/s${i}`), `starts of s${i}`).toBe(marks);
  }
}

describe("a connection that is cut", () => {
  for (const fate of ["lose answer", "cut before"] as const) {
    it(`P17 B30 I1 I6 at any commit (${fate}): the worker finds out what became of it, and no step runs twice`, async () => {
      const wire = await openWire();
      const pawl = await open(wire.url, `cut_${++schemas}`, { workflows: [counting] });
      for (let n = 1; n <= STEPS + 2; n++) {
        wire.watch(nth("commit_1", n, fate));
        const run = await pawl.start(counting, 0);
        expect(await run.result()).toBe(SUM);
        await expectOnce(pawl, run.id);
      }
      expect(await pawl.store.orphans()).toEqual([]);
    }, 60_000);
  }

  it("P23 I10 B2 the answer to a claim is lost: what was claimed is found and goes on", async () => {
    const wire = await openWire();
    const schema = `claim_${++schemas}`;
    const client = await open(server.url, schema, {});
    const run = await client.start("counting", 0, { version: "1.0.0" });
    let isLost = false;
    wire.watch((sent) => {
      if (!sent.includes("claim_2")) return "pass";
      isLost = true;
      return "lose answer";
    });
    await open(wire.url, schema, { workflows: [counting] });
    expect(await run.result()).toBe(SUM);
    expect(isLost).toBe(true);
  }, 30_000);

  it("B37 again and again, all of them at once: runs go on", async () => {
    const wire = await openWire();
    const pawl = await open(wire.url, `terminated_${++schemas}`, { workflows: [counting] });
    const results = Promise.all(Array.from({ length: 20 }, () => pawl.run(counting, 30)));
    let isOver = false;
    const over = results.finally(() => {
      isOver = true;
    });
    for (let cuts = 0; !isOver && cuts < 8; cuts++) {
      await admin.query({
        text: "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pawl'",
      });
      await expect.poll(backends, { timeout: 10_000 }).toBeGreaterThan(2);
    }
    expect(new Set(await over)).toEqual(new Set([SUM]));
  }, 60_000);
});

describe("hints", () => {
  it("B38 I12 a listener whose connection is a black hole: a signal from another process arrives by polling", async () => {
    const wire = await openWire();
    const schema = `hole_${++schemas}`;
    let isMute = false;
    wire.watch((sent) => {
      if (!sent.includes("listen ")) return "pass";
      isMute = true;
      return "black hole";
    });
    const worker = await open(wire.url, schema, { workflows: [waiting] });
    const client = await open(server.url, schema, {});
    const run = await worker.start(waiting);
    await expect.poll(async () => (await run.status()).status).toBe("waiting");
    await client.signal(run.id, "go", "on");
    expect(await run.result()).toBe("on");
    expect(isMute).toBe(true);
  }, 30_000);

  it("B39 an id as long as they may be, and more runs than one payload holds", async () => {
    const schema = `long_${++schemas}`;
    const worker = await open(server.url, schema, { workflows: [counting] });
    const client = await open(server.url, schema, {});
    const ids = Array.from({ length: 60 }, (_, i) => `${String(i)}-`.padEnd(128, "é"));
    await Promise.all(ids.map((id) => client.start("counting", 0, { id, version: "1.0.0" })));
    expect(new Set(await Promise.all(ids.map((id) => client.get(id).result())))).toEqual(new Set([SUM]));
    await worker.idle();
  }, 30_000);
});

describe("a slow or unwilling server", () => {
  it("two seconds of latency: a run takes its time and ends", async () => {
    const wire = await openWire();
    const single = workflow("single", async (ctx) => ctx.step("s", () => "late"));
    const pawl = await open(wire.url, `slow_${++schemas}`, { workflows: [single], lease: "15s" });
    // Its connections are there.
    await pawl.run(single);
    wire.latencyMs = 1000;
    expect(await pawl.run(single)).toBe("late");
    wire.latencyMs = 0;
  }, 60_000);

  it("B34 a read-only window: nothing fails, everything goes on when it is over", async () => {
    const pawl = await open(server.url, `readonly_${++schemas}`, { workflows: [counting] });
    const runs = await Promise.all(Array.from({ length: 5 }, () => pawl.start(counting, 60)));
    await setReadOnly(true);
    try {
      await expect(pawl.start(counting, 0)).rejects.toMatchObject({
        code: "storage_unavailable",
        message: expect.stringContaining("read-only"),
      });
    } finally {
      await setReadOnly(false);
    }
    for (const run of runs) expect(await run.result()).toBe(SUM);
  }, 30_000);

  // A server that somebody else has given is not ours to crash.
  it.skipIf(process.env["TEST_PG_URL"] !== undefined)(
    "P15 P17 B1 B41 it crashes and comes back: runs and timers go on, no recorded step runs again",
    async () => {
      const schema = `crash_${++schemas}`;
      const sleeping = workflow("sleeping", async (ctx) => {
        await ctx.sleep("300ms");
        return "awake";
      });
      const pawl = await open(server.url, schema, { workflows: [counting, sleeping] });
      for (let crashes = 0; crashes < 3; crashes++) {
        const runs = await Promise.all(Array.from({ length: 10 }, () => pawl.start(counting, 40)));
        const sleeper = await pawl.start(sleeping);
        await server.crash?.();
        for (const run of runs) {
          expect(await run.result()).toBe(SUM);
          await expectOnce(pawl, run.id);
        }
        expect(await sleeper.result()).toBe("awake");
      }
      expect(await pawl.store.orphans()).toEqual([]);
      admin = await connect();
    },
    90_000,
  );
});

async function setReadOnly(isReadOnly: boolean): Promise<void> {
  await admin.query({ text: `alter system set default_transaction_read_only = ${isReadOnly ? "on" : "off"}` });
  await admin.query({ text: "select pg_reload_conf()" });
  await expect
    .poll(async () => {
      const probe = await connect();
      const { rows } = await probe.query({ text: "show default_transaction_read_only" });
      await probe.end();
      return rows[0]?.["default_transaction_read_only"];
    })
    .toBe(isReadOnly ? "on" : "off");
}
