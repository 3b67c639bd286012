import { workflow } from "pawl";
import { billing } from "../fakes.ts";

export const invoices = workflow("invoices", async (ctx, batch: { month: string; customers: number }) => {
  const customers = await ctx.step("customers", () => billing.customers(batch.customers));

  const sent = await ctx.map(
    customers,
    (customer) => ctx.step("invoice", ({ key }) => billing.invoice(customer, batch.month, key), { kind: "api" }),
    { concurrency: 20 },
  );

  return { month: batch.month, invoices: sent.length, cents: sent.reduce((sum, { cents }) => sum + cents, 0) };
});
