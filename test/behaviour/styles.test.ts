// Five styles, one engine: the same task, the same effects, whatever style it is written in and wherever it is killed.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crashEverywhere } from "pawl/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { isTerminal } from "../../src/core/transition.ts";
import { type Order, PACKED, Shop, STYLES, WHOLE } from "../styles.ts";
import { openWorld } from "./harness.ts";
import { Kills } from "./kills.ts";

const SOON = 3000;
const names = Object.keys(STYLES);

function made(name: string) {
  const outputs = mkdtempSync(join(tmpdir(), "pawl-styles-"));
  onTestFinished(() => rmSync(outputs, { recursive: true, force: true }));
  const shop = new Shop();
  return { shop, flow: (STYLES[name] as (typeof STYLES)[string])(shop, outputs) };
}

// In memory, the explorer kills it everywhere, below.
describe.each(["sqlite", "file", "postgres"] as const)("one business task on %s", (store) => {
  it.each(names)(
    "S0-1 C-17 S4-16 I6 in the style %s, killed after each of its durable writes in turn: the same result, the same effects",
    async (name) => {
      const world = await openWorld(store);
      const { shop, flow } = made(name);
      let left = 0;
      const kills = new Kills(world, () => --left === 0);
      for (let n = 0, before = -1; kills.count > before; n++) {
        before = n === 0 ? -1 : kills.count;
        const order: Order = { id: `o-${n}`, cents: 4200 };
        const pawl = await kills.goOn([flow]);
        // The first one is left alone.
        left = n;
        // A process that dies meanwhile answers nobody: nothing of it is waited for.
        void pawl.start(flow, order, { id: order.id });
        while (!isTerminal((await world.store.run(order.id))?.state ?? "accepted")) {
          const alive = await kills.goOn([flow]);
          const waits = await world.store.waits({ run: order.id, kind: "signal" });
          if (waits.length > 0) void alive.signal(order.id, PACKED.signal, PACKED.payload, { id: "packed" });
          await world.advance(SOON);
        }
        const last = await kills.goOn([flow]);
        expect(await last.get(order.id).result(), `killed at write ${n}`).toEqual(WHOLE.result(order));
        expect(shop.done.splice(0), `killed at write ${n}`).toEqual(WHOLE.effects(order));
      }
      expect(kills.count).toBeGreaterThanOrEqual(6);
    },
  );
});

it.each(names)("C-17 I6 one business task in the style %s, crashed everywhere, inside steps too", async (name) => {
  const { shop, flow } = made(name);
  const order: Order = { id: "o-1", cents: 4200 };
  const report = await crashEverywhere(flow, order, {
    modes: ["kill"],
    fresh: () => shop.forget(),
    observe: () => [...shop.done],
    script: (run) => run.signal(PACKED.signal, PACKED.payload),
  });
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.isComplete).toBe(true);
  expect(shop.done).toEqual(WHOLE.effects(order));
});
