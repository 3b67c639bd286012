// The journal's partitions: there is always one for the next run, and those whose runs are gone are dropped.
import { expect, inject, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { loadDriver } from "../../src/stores/postgres/driver.ts";
import { postgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { RUNS_PER_PARTITION } from "../../src/stores/postgres/tables.ts";
import { apply, creation, ending, newWorker } from "../../src/testing/store-cases/case.ts";

it("P36 runs never outgrow the journal, and retention drops partitions as a whole", async () => {
  const schema = `partitions_${process.pid}`;
  const clock = manualClock();
  const store = postgresStore(inject("postgresUrl"), { schema, clock });
  const admin = (await loadDriver()).client({ connectionString: inject("postgresUrl") });
  await admin.connect();
  const partitions = async () => {
    const { rows } = await admin.query({
      text: "select relname from pg_inherits join pg_class on pg_class.oid = inhrelid where inhparent = $1::regclass",
      values: [`${schema}.journal`],
    });
    return rows.map((row) => Number(String(row["relname"]).replace("journal_", ""))).sort((a, b) => a - b);
  };
  try {
    await store.open();
    await store.register(newWorker("w1"));
    expect(await partitions()).toEqual([0, 1, 2]);
    for (let partition = 1; partition <= 4; partition++) {
      const at = partition * RUNS_PER_PARTITION;
      await admin.query({ text: `select setval(pg_get_serial_sequence('${schema}.runs', 'n'), ${at})` });
      await apply(store, creation(`r${partition}`, { claimed: true }));
      await apply(store, ending(`r${partition}`, 1));
      await expect.poll(partitions).toContain(partition + 2);
    }
    expect(await partitions()).toEqual([0, 1, 2, 3, 4, 5, 6]);
    const request = { succeededBefore: clock.now() + 1, failedBefore: 0, limit: 2 };
    expect(await store.purge(request)).toBe(2);
    expect(await partitions()).toEqual([3, 4, 5, 6]);
    expect((await store.runs({ limit: 9 })).map(({ id }) => id)).toEqual(["r4", "r3"]);
    expect(await store.journal("r3")).toHaveLength(2);
  } finally {
    await store.close();
    await admin.query({ text: `drop schema ${schema} cascade` });
    await admin.end();
  }
});

it("P16 P36 a run for which the journal has no partition yet gets one", async () => {
  const schema = `outrun_${process.pid}`;
  const store = postgresStore(inject("postgresUrl"), { schema });
  const admin = (await loadDriver()).client({ connectionString: inject("postgresUrl") });
  await admin.connect();
  try {
    await store.open();
    await store.register(newWorker("w1"));
    await admin.query({ text: `select setval('${schema}.runs_n_seq', ${7 * RUNS_PER_PARTITION})` });
    await apply(store, creation("r", { claimed: true }));
    expect(await store.journal("r")).toHaveLength(1);
  } finally {
    await store.close();
    await admin.query({ text: `drop schema ${schema} cascade` });
    await admin.end();
  }
});
