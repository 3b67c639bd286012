// What a network does to a transaction on PostgreSQL: the row is there once, and the run's result agrees (I7).
import { expect, inject, it, onTestFinished } from "vitest";
import type { Sql } from "../../src/core/sql.ts";
import { Pawl, postgresStore, workflow } from "../../src/index.ts";
import { type Fate, Wire } from "../postgres/wire.ts";
import { postgresAccounts } from "./sql-world.ts";

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

const FATES: readonly (readonly [sent: string, fate: Fate])[] = [
  ["begin isolation", "cut before"],
  ["begin isolation", "lose answer"],
  ["insert into", "cut before"],
  ["insert into", "lose answer"],
  ["transact_1", "cut before"],
  ["transact_1", "lose answer"],
  ["commit\0", "cut before"],
  ["commit\0", "lose answer"],
];

it("I7 P17 S3-17 a connection that is cut before or after any statement of a transaction, COMMIT among them, leaves the row there once", async () => {
  const accounts = await postgresAccounts();
  const wire = await Wire.open(inject("postgresUrl"));
  let calls = 0;
  const pay = workflow("pay", async (ctx, who: string) => {
    const work = (sql: Sql) => {
      calls++;
      return accounts.pay(sql, who);
    };
    await ctx.transaction("pay", work, { retry: false });
    return ctx.step("after", () => who);
  });
  const schema = `wire_${process.pid}`;
  const store = postgresStore(wire.url, { schema });
  const pawl = await Pawl.open(store, {
    workflows: [pay],
    logger: SILENT,
    handleSignals: false,
    lease: "2s",
    poll: "100ms",
  });
  onTestFinished(async () => {
    await pawl.close({ drain: 1 });
    await wire.close();
  });
  for (const [sent, fate] of FATES) {
    const met = new Promise<void>((resolve) => {
      wire.watch((text) => {
        if (!text.includes(sent)) return "pass";
        resolve();
        return fate;
      });
    });
    const who = `${sent.replace("\0", "")} ${fate}`;
    calls = 0;
    expect(await pawl.run(pay, who), who).toBe(who);
    await met;
    // What was committed is found by a look, not by doing it again.
    if (who === "commit lose answer") expect(calls).toBe(1);
  }
  expect(await accounts.paid()).toEqual(FATES.map(([sent, fate]) => `${sent.replace("\0", "")} ${fate}`));
  await accounts.drop(schema);
});
