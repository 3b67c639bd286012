// Alerts: each fires once for its cause, and not in a quiet run; and what people say to them.
import { describe, expect, it } from "vitest";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Notification, Notifier } from "../../src/core/notification.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, HOUR, MINUTE, openWorld, STORES, type World } from "../behaviour/harness.ts";
import { withoutColdStart } from "../cold-start.ts";

function fake(): Notifier & { readonly got: Notification[] } {
  const got: Notification[] = [];
  return { name: "fake", got, notify: (one) => void got.push(one) };
}

const transient = () => Object.assign(new Error("503"), { status: 503 });

/** Looks, and lets whoever keeps the alerts take it in. */
async function check(world: World, pawl: Pawl): Promise<void> {
  await world.settle();
  await pawl.alerts.check();
  await world.settle();
}

const kinds = async (pawl: Pawl, status?: "all") =>
  (await pawl.alerts.list(status === undefined ? {} : { status })).map(({ kind, subject, level, status: is }) => [
    kind,
    subject,
    level,
    is,
  ]);

/** A step that fails so often before it succeeds, with short pauses. */
const stormy = (name: string, times: number) =>
  workflow(
    { name, owner: "ops@shop.example", retry: { max: 100, base: 100, factor: 1, jitter: false } },
    async (ctx) => {
      let left = times;
      await ctx.step("call", () => {
        if (left-- > 0) throw transient();
      });
    },
  );

describe.each(STORES)("a retry storm on %s", (store) => {
  it("S2-108 S2-112 50 retries in a minute are one alert, told once, that stays quiet once it is acknowledged and is over with its cause", async () => {
    const world = await openWorld(store);
    const notifier = fake();
    const flow = stormy("order", 50);
    const pawl = await world.open([flow], { notifiers: [notifier] });
    await pawl.start(flow, undefined, { id: "r" });
    await world.advance(30_000);
    await check(world, pawl);
    expect(await kinds(pawl)).toEqual([["retry_storm", "order/call", 0, "firing"]]);
    const [alert] = await pawl.alerts.list();
    expect(alert).toMatchObject({ owner: "ops@shop.example", runs: ["r"], detail: { retries: 50, tool: "call" } });
    expect(notifier.got).toMatchObject([
      { event: "alert.firing", kind: "retry_storm", alert: alert?.id, to: ["ops@shop.example"] },
    ]);
    await pawl.alerts.acknowledge(alert?.id as string, { by: "ada" });
    await check(world, pawl);
    expect(await pawl.alerts.list()).toMatchObject([{ status: "acknowledged", acknowledgedBy: "ada" }]);
    await world.advance(2 * MINUTE);
    expect(await kinds(pawl, "all")).toEqual([["retry_storm", "order/call", 0, "resolved"]]);
    expect(notifier.got).toHaveLength(1);
    expect((await pawl.list()).runs.map(({ id }) => id)).toEqual(["r"]);
    await pawl.idle();
  });
});

describe("alerts", () => {
  it("S2-108 a quiet run fires nothing, and leaves no run of alerts", async () => {
    const world = await openWorld("memory");
    const flow = stormy("order", 3);
    const pawl = await world.open([flow]);
    await pawl.start(flow);
    await world.advance(MINUTE);
    await check(world, pawl);
    expect(await pawl.alerts.list({ status: "all" })).toEqual([]);
    expect((await pawl.list({ workflow: "pawl.alerts" })).runs).toEqual([]);
  });
});
