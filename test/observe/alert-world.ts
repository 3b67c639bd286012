// What tests of alerts have in common: a notifier that remembers, a look that is taken in, and workflows that need somebody.
import type { Pawl } from "../../src/client/pawl.ts";
import type { Notification, Notifier } from "../../src/core/notification.ts";
import { workflow } from "../../src/core/workflow.ts";
import type { World } from "../behaviour/harness.ts";

export function fake(): Notifier & { readonly got: Notification[] } {
  const got: Notification[] = [];
  return { name: "fake", got, notify: (one) => void got.push(one) };
}

export const transient = () => Object.assign(new Error("503"), { status: 503 });

/** Looks, and lets whoever keeps the alerts take it in. */
export async function check(world: World, pawl: Pawl): Promise<void> {
  await world.settle();
  await pawl.alerts.check();
  await world.settle();
}

export const kinds = async (pawl: Pawl, status?: "all") =>
  (await pawl.alerts.list(status === undefined ? {} : { status })).map(({ kind, subject, level, status: is }) => [
    kind,
    subject,
    level,
    is,
  ]);

/** A step that fails so often before it succeeds, with short pauses. */
export const stormy = (name: string, times: number) =>
  workflow(
    { name, owner: "ops@shop.example", retry: { max: 100, base: 100, factor: 1, jitter: false } },
    async (ctx) => {
      let left = times;
      await ctx.step("call", () => {
        if (left-- > 0) throw transient();
      });
    },
  );

export const sleeper = (name: string, step: string, time: string) =>
  workflow(name, async (ctx) => {
    await ctx.step(step, () => 1);
    await ctx.sleep(time);
  });

export const ACTION = { tool: "bank.pay", arguments: { cents: 100 } };

/** Pays what somebody has approved, as often as it is told. */
export const paying = (times: number) =>
  workflow("pay", async (ctx) => {
    for (let i = 0; i < times; i++) await ctx.effect("charge", { do: () => i, key: "order-7" });
  });
