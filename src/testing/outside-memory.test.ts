import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";

/** As a new process would load it. */
async function inNewProcess(folder: string | undefined) {
  vi.resetModules();
  vi.stubEnv("PAWL_TEST_FOLDER", folder);
  onTestFinished(() => void vi.unstubAllEnvs());
  const [memory, model, record] = [import("./outside-memory.ts"), import("./fake-model.ts"), import("./recorder.ts")];
  return { ...(await memory), ...(await model), ...(await record) };
}

function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "pawl-memory-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

it("is empty in a process by itself", async () => {
  const { outsideMemory } = await inNewProcess(undefined);
  outsideMemory("bank").add(1);
  expect(outsideMemory("bank").items).toEqual([]);
});

it("outlives a process of a crash test, each fake by its kind and order", async () => {
  const folder = tempFolder();
  const first = await inNewProcess(folder);
  for (const [kind, item] of [
    ["bank", new Date(1)],
    ["bank", "second"],
    ["mail", "third"],
  ] as const)
    first.outsideMemory(kind).add(item);
  const next = await inNewProcess(folder);
  const memories = ["bank", "bank", "mail"].map((kind) => next.outsideMemory(kind));
  expect(memories.map(({ items }) => items)).toEqual([[new Date(1)], ["second"], ["third"]]);
  memories[0]?.clear();
  expect((await inNewProcess(folder)).outsideMemory("bank").items).toEqual([]);
});

it("lets a recorder recognise the keys that it has seen", async () => {
  const folder = tempFolder();
  (await inNewProcess(folder)).recorder().record("charge", { cents: 1 }, "k");
  const after = (await inNewProcess(folder)).recorder();
  after.record("charge", { cents: 1 }, "k");
  expect(after.requests.map(({ did }) => did)).toEqual([true, false]);
  after.clear();
  expect((await inNewProcess(folder)).recorder().requests).toEqual([]);
});

it("lets a fake model go on with its script, and know the keys that it has answered", async () => {
  const folder = tempFolder();
  const before = (await inNewProcess(folder)).fakeModel(["a", "b"]);
  await before("x", { key: "k" });
  const after = (await inNewProcess(folder)).fakeModel(["a", "b"]);
  expect([await after("x", { key: "k" }), await after("y")]).toEqual(["a", "b"]);
  expect(after.calls.map(({ n }) => n)).toEqual([1, 2, 3]);
});
