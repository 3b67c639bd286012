// Only the database's clock counts. Here it is an hour away from that of the processes, by the one function through which the store sees time.
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Pawl } from "../../src/client/pawl.ts";
import { workflow } from "../../src/core/workflow.ts";
import { loadDriver, type PgClient } from "../../src/stores/postgres/driver.ts";
import { postgresStore } from "../../src/stores/postgres/postgres-store.ts";

const HOUR = 3_600_000;

let admin: PgClient;

beforeAll(async () => {
  admin = (await loadDriver()).client({ connectionString: inject("postgresUrl") });
  await admin.connect();
});

afterAll(() => admin.end());

describe.each([HOUR, -HOUR])("a database whose clock is off by %i ms", (offMs) => {
  const schema = `clock_${process.pid}_${offMs < 0 ? "behind" : "ahead"}`;

  beforeAll(async () => {
    const store = postgresStore(inject("postgresUrl"), { schema });
    await store.open();
    await store.close();
    await admin.query({
      text: `create or replace function ${schema}.time_1(p_given double precision) returns double precision language sql volatile as
        $$ select coalesce(p_given, floor(extract(epoch from clock_timestamp()) * 1000)::double precision + ${offMs}) $$`,
    });
  });

  afterAll(() => admin.query({ text: `drop schema ${schema} cascade` }));

  it("B33 B47 I9 I13 timers and delays follow it, entries carry its time, and nobody takes a lease for over", async () => {
    const nap = workflow("nap", async (ctx) => {
      const before = ctx.now();
      await ctx.sleep("200ms");
      return [before, ctx.now()] as const;
    });
    const open = (workflows: readonly (typeof nap)[]) =>
      Pawl.open(postgresStore(inject("postgresUrl"), { schema }), { workflows, lease: "2s", handleSignals: false });
    const [worker, other] = [await open([nap]), await open([nap])];
    const run = await worker.start(nap);
    const delayed = await other.start(nap, undefined, { delay: "100ms" });
    for (const one of [run, delayed]) {
      const [before, after] = await one.result();
      expect(Number(after) - Number(before)).toBeGreaterThanOrEqual(200);
      expect(Number(after) - Number(before)).toBeLessThan(20_000);
      expect(Math.abs(Number(after) - offMs - Date.now())).toBeLessThan(20_000);
    }
    expect((await worker.workers()).map(({ health }) => health)).toEqual(["live", "live"]);
    const leases = `select renewed_at - ${schema}.time_1(null) as age from ${schema}.workers`;
    for (const { age } of (await admin.query({ text: leases })).rows)
      expect(Math.abs(Number(age))).toBeLessThan(20_000);
    await Promise.all([worker.close(), other.close()]);
  }, 60_000);
});
