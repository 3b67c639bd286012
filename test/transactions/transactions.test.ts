// ctx.transaction: the user's rows and the record of them are one, whatever happens around them.
import { describe, expect, it } from "vitest";
import { workflow } from "../../src/index.ts";
import { openSqlWorld, SQL_STORES } from "./sql-world.ts";

for (const kind of SQL_STORES) {
  describe(kind, () => {
    it("I7 a transaction's rows and its outcome are there together, in order with what is around it", async () => {
      const { world, accounts } = await openSqlWorld(kind);
      const pay = workflow("pay", async (ctx) => {
        const a = await ctx.step("a", () => 1);
        const count = await ctx.transaction("pay", (sql) => accounts.pay(sql, "ada"));
        const b = await ctx.step("b", () => 2);
        const again = await ctx.transaction("pay", (sql) => accounts.pay(sql, "bob"));
        return [a, count, b, again];
      });
      const pawl = await world.open([pay]);
      const run = await pawl.start(pay);
      expect(await run.result()).toEqual([1, 1, 2, 2]);
      expect(await accounts.paid()).toEqual(["ada", "bob"]);
      expect(await world.journal(run)).toEqual([
        "run.started",
        "step.started a",
        "step.completed a",
        "step.started pay",
        "step.completed pay",
        "step.started b",
        "step.completed b",
        "step.started pay#2",
        "step.completed pay#2",
        "run.succeeded",
      ]);
    });
  });
}
