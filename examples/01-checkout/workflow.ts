import { workflow } from "pawl";
import { bank, mailer, type Order } from "../fakes.ts";

export const checkout = workflow("checkout", async (ctx, order: Order) => {
  const { payment } = await ctx.step("charge", ({ key }) => bank.charge(order, key), {
    kind: "api",
    retry: { base: "50ms" },
  });

  await ctx.step("receipt", ({ key }) => mailer.send(order.email, `Paid with ${payment}. Thank you!`, key));

  return { order: order.id, payment };
});
