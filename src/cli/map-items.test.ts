import { expect, it } from "vitest";
import type { Entry, EntryType } from "../core/journal.ts";
import { MapItems } from "./map-items.ts";
import type { Output } from "./output.ts";

function watched(): { items: MapItems; lines: string[] } {
  const lines: string[] = [];
  const progress = () => ({ update: (text: string) => lines.push(text), done: () => {} });
  const items = new MapItems("invoices", { progress } as unknown as Output);
  for (let n = 0; n < 10; n++) items.shown();
  return { items, lines };
}

function entry(type: EntryType, key: string, payload: unknown = null): Entry {
  return { seq: 0, at: 0, type, key, payload };
}

it("X-13 what an item of a map spends, reserves or saves on its way does not end it", () => {
  const { items, lines } = watched();
  items.take(entry("step.started", "map/0/call"), true);
  items.take(entry("step.refused", "map/0/call"), true);
  items.take(entry("step.reserved", "map/0/call"), true);
  items.take(entry("step.spent", "map/0/call"), true);
  items.take(entry("checkpoint", "map/0/call"), true);
  items.take(entry("step.started", "map/1/call"), true);
  expect(lines.at(-1)).toContain("2 under way");
  items.take(entry("step.completed", "map/0/call"), true);
  expect(lines.at(-1)).toContain("1 under way");
});

it("S4-28 a failure that is tried again, and the attempt after it, leave an item under way; the last one ends it", () => {
  const { items, lines } = watched();
  items.take(entry("step.started", "map/0/call"), true);
  items.take(entry("step.failed", "map/0/call", { attempt: 1, error: null, retryAt: 5 }), true);
  items.take(entry("step.started", "map/0/call", { attempt: 2 }), true);
  expect(lines.at(-1)).toContain("1 under way");
  items.take(entry("step.failed", "map/0/call", { attempt: 2, error: null, retryAt: null }), true);
  expect(lines.at(-1)).toContain("0 under way");
});
