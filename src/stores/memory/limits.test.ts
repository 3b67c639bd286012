import { expect, it } from "vitest";
import { creation, newWorker } from "../../testing/store-cases/case.ts";
import { memoryStore } from "./memory-store.ts";

it("I18 five thousand runs that wait for one slot do not slow down a claim", { timeout: 10_000 }, async () => {
  const store = memoryStore();
  await store.open();
  const needs = { slot: "order", rate: null };
  const ids = Array.from({ length: 5000 }, (_, n) => `r${n}`);
  await store.commit({ worker: null, runs: ids.map((id) => creation(id, { needs })) });
  await store.register(newWorker("w"));
  const handles = [{ workflow: "order", version: "1.0.0", concurrency: 1 }];
  const claim = () => store.claim({ worker: "w", handles, limit: 10, suspect: false });
  expect(await claim()).toHaveLength(1);
  for (let n = 0; n < 100; n++) expect(await claim()).toEqual([]);
  await store.close();
});
