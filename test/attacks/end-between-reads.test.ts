// The end of a run is read in two steps, its row and its last entry. What happens in between must not look like damage.
import { expect, it } from "vitest";
import { Pawl } from "../../src/client/pawl.ts";
import type { Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";

const quick = workflow("quick", async (ctx) => ctx.step("one", () => 1));
const patient = workflow("patient", async (ctx) => ctx.waitFor<string>("go"));

/** A worker, and a client that sees the store through `seen`. */
async function open(store: Store, seen: Partial<Store>): Promise<{ worker: Pawl; client: Pawl }> {
  const options = { handleSignals: false, poll: "20ms" } as const;
  const worker = await Pawl.open(store, { ...options, workflows: [quick, patient] });
  const client = await Pawl.open({ ...store, ...seen }, options);
  return { worker, client };
}

it("I28 a run that retention deletes between the two reads is not there any more; its journal is not called damaged", async () => {
  const store = memoryStore();
  const journal: Store["journal"] = async (...asked) => {
    await store.purge({ succeededBefore: Number.MAX_SAFE_INTEGER, failedBefore: 0, limit: 10 });
    return store.journal(...asked);
  };
  const { worker, client } = await open(store, { journal });
  const { id } = await worker.start(quick);
  await worker.get(id).result();
  await expect(client.get(id).result()).rejects.toMatchObject({ code: "run_not_found" });
  for (const pawl of [client, worker]) await pawl.close();
});

it("I28 P15 a run whose end a failover has lost between the two reads goes on, and so does whoever waits for it", async () => {
  const store = memoryStore();
  let isLost = false;
  const run: Store["run"] = async (id) => {
    const row = await store.run(id);
    if (row === null || isLost) return row;
    isLost = true;
    return { ...row, state: "succeeded", head: row.head + 1 };
  };
  const { worker, client } = await open(store, { run });
  const { id } = await worker.start(patient);
  await worker.idle();
  const result = client.get(id).result();
  await worker.signal(id, "go", "on");
  expect(await result).toBe("on");
  expect(isLost).toBe(true);
  for (const pawl of [client, worker]) await pawl.close();
});

it("an end whose entry stays away is still told to be missing", async () => {
  const store = memoryStore();
  const { worker, client } = await open(store, { journal: async () => [] });
  const { id } = await worker.start(quick);
  await worker.get(id).result();
  await expect(client.get(id).result()).rejects.toMatchObject({ code: "corrupted_journal" });
  for (const pawl of [client, worker]) await pawl.close();
});
