// The promises of a checkpoint store, as data: whoever writes one runs these cases against it.
import assert from "node:assert/strict";
import { hasCode } from "../base/errors.ts";
import type { StandardSchema } from "../core/schema.ts";
import type { Checkpoint, CheckpointStore, SavedRequest, SaveOptions, WorkerFolder } from "./checkpoint-store.ts";

/** One place, empty at first, and ways to it. */
export interface CheckpointPlace {
  /** A store that is not open, on the same worker's documents each time; of another worker with a name. */
  store(worker?: string): CheckpointStore;
  /** The documents themselves, for what happens behind a store's back. Nobody may have it open. */
  folder(worker?: string): WorkerFolder;
}

/** One promise. `open` gives a new place each time; whoever runs the case cleans up. */
export interface CheckpointStoreCase {
  readonly name: string;
  run(place: CheckpointPlace, how: SaveOptions): Promise<void>;
}

const AT = Date.UTC(2026, 0, 1);

export function savedRequest(execution = "e1", changes: Partial<SavedRequest> = {}): SavedRequest {
  return { execution, request: { task: "tidy", due: new Date(AT) }, deadline: AT + 60_000, startedAt: AT, ...changes };
}

/** A checkpoint whose snapshot has these slices, each with one item. */
export function checkpointOf(
  sequence: number,
  changes: Partial<Checkpoint> = {},
  slices: Readonly<Record<string, unknown>> = {},
): Checkpoint {
  const envelope = {
    children_ids: [],
    created_at: new Date(AT).toISOString(),
    id: "s1",
    parent_id: null,
    policies: {},
    slices: Object.entries({ plan: { sequence }, ...slices })
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, item]) => ({ item_type: `${name}@1`, items: [item], slice_type: name })),
    tags: [],
    version: 1,
  };
  const snapshot = JSON.stringify(envelope);
  return { execution: "e1", attempt: 1, sequence, savedAt: AT + sequence, deadline: AT + 60_000, snapshot, ...changes };
}

function storeCase(
  name: string,
  check: (store: CheckpointStore, place: CheckpointPlace, how: SaveOptions) => Promise<void>,
): CheckpointStoreCase {
  return {
    name,
    async run(place, how) {
      const store = place.store();
      await store.open();
      try {
        await check(store, place, how);
      } finally {
        await store.close();
      }
    },
  };
}

/** Closes the store, damages a document and opens a new store. */
async function damaged(
  store: CheckpointStore,
  place: CheckpointPlace,
  name: string,
  change: (bytes: Uint8Array) => Uint8Array,
): Promise<CheckpointStore> {
  await store.close();
  const folder = place.folder();
  await folder.open();
  await folder.write(name, change((await folder.read(name)) ?? new Uint8Array(0)));
  await folder.close();
  const next = place.store();
  await next.open();
  return next;
}

const cutOff = (bytes: Uint8Array) => bytes.subarray(0, bytes.length / 2);

async function documentOf(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    assert.ok(hasCode(error, "corrupt_value"), String(error));
    return (error as { fields: Record<string, unknown> }).fields["document"];
  }
  return assert.fail("it was read");
}

export const checkpointStoreCases: readonly CheckpointStoreCase[] = [
  storeCase("S1-49 is empty at first, and makes its place by itself", async (store) => {
    assert.equal(await store.state(), "empty");
    assert.equal(await store.loadRequest(), null);
    assert.equal(await store.loadCheckpoint(), null);
    assert.equal(await store.hasIncomplete(), false);
    await store.clear();
  }),

  storeCase(
    "S1-49 F-6 S1-59 gives the request back with its values, the absolute deadline and its type",
    async (store) => {
      await store.saveRequest(savedRequest());
      assert.deepEqual(await store.loadRequest(), savedRequest());
      const schema: StandardSchema<unknown, string> = {
        "~standard": {
          version: 1,
          vendor: "case",
          validate: (value) =>
            typeof value === "object" && value !== null && "task" in value
              ? { value: String(value.task) }
              : { issues: [{ message: "no task" }] },
        },
      };
      assert.equal((await store.loadRequest(schema))?.request, "tidy");
      await store.saveRequest(savedRequest("e2", { request: 7, deadline: null }));
      await assert.rejects(store.loadRequest(schema), (error) => hasCode(error, "schema_mismatch"));
    },
  ),

  storeCase("S1-16 S1-47 M-2 tells started, incomplete and completed apart", async (store, _, how) => {
    await store.saveRequest(savedRequest());
    assert.deepEqual([await store.state(), await store.hasIncomplete()], ["started", false]);
    await store.saveCheckpoint(checkpointOf(1), how);
    assert.deepEqual([await store.state(), await store.hasIncomplete()], ["incomplete", true]);
    await store.saveCheckpoint(checkpointOf(2, { result: { value: "done" } }), how);
    assert.deepEqual([await store.state(), await store.hasIncomplete()], ["incomplete", true]);
    await store.markCompleted();
    assert.deepEqual([await store.state(), await store.hasIncomplete()], ["completed", false]);
  }),

  storeCase("S1-49 F-7 the newest checkpoint is what is loaded, equal in every slice", async (store, place, how) => {
    await store.saveRequest(savedRequest());
    for (let n = 1; n <= 5; n++) {
      const checkpoint = checkpointOf(n, {}, { notes: { text: "é".repeat(n) }, [`extra-${n}`]: n });
      await store.saveCheckpoint(checkpoint, how);
      assert.deepEqual(await store.loadCheckpoint(), checkpoint);
    }
    await store.close();
    const next = place.store();
    await next.open();
    assert.deepEqual(
      await next.loadCheckpoint(),
      checkpointOf(5, {}, { notes: { text: "é".repeat(5) }, "extra-5": 5 }),
    );
    await next.close();
  }),

  storeCase("T-12 the final answer is kept with its values, and the marker needs it", async (store, _, how) => {
    await store.saveRequest(savedRequest());
    await store.saveCheckpoint(checkpointOf(1), how);
    await assert.rejects(store.markCompleted(), (error) => hasCode(error, "invalid_argument"));
    const result = { value: { text: "done", at: new Date(AT), more: undefined } };
    await store.saveCheckpoint(checkpointOf(2, { result }), how);
    assert.deepEqual((await store.loadCheckpoint())?.result, result);
    await store.markCompleted();
  }),

  storeCase("S1-52 F-8 the marker is empty", async (store, place, how) => {
    await store.saveRequest(savedRequest());
    await store.saveCheckpoint(checkpointOf(1, { result: { value: 1 } }), how);
    await store.markCompleted();
    assert.equal((await place.folder().read("completed"))?.length, 0);
  }),

  storeCase(
    "C-20 F-11 a new request archives the old execution before it takes its place",
    async (store, place, how) => {
      await store.saveRequest(savedRequest("e1"));
      await store.saveCheckpoint(checkpointOf(1, { result: { value: 1 } }), how);
      await store.markCompleted();
      await store.saveRequest(savedRequest("e2", { request: "next" }));
      assert.equal(await store.state(), "started");
      assert.equal((await store.loadRequest())?.request, "next");
      assert.equal(await store.loadCheckpoint(), null);
      const kept = (await place.folder().list("archive")).filter((name) => !name.includes("delta"));
      assert.deepEqual(
        kept,
        ["checkpoint.json", "completed", "request.json"].map((name) => `archive/e1/${name}`),
      );
    },
  ),

  storeCase(
    "T-8 a checkpoint and a marker of an older request count for nothing, and are dropped",
    async (store, place, how) => {
      await store.saveRequest(savedRequest("e1"));
      await store.saveCheckpoint(checkpointOf(1, { result: { value: 1 } }), how);
      await store.markCompleted();
      await store.close();
      // As a crash leaves it that comes right after the new request has replaced the old one.
      const other = place.store("other");
      await other.open();
      await other.saveRequest(savedRequest("e2"));
      await other.close();
      const request = await place.folder("other").read("request.json");
      const folder = place.folder();
      await folder.open();
      await folder.write("request.json", request ?? new Uint8Array(0));
      await folder.close();
      assert.equal(await place.store().state(), "started");
      const next = place.store();
      await next.open();
      assert.equal(await next.loadCheckpoint(), null);
      await next.saveCheckpoint(checkpointOf(1, { execution: "e2" }), how);
      assert.equal(await next.state(), "incomplete");
      await next.close();
    },
  ),

  storeCase("S1-53 C-20 clearing leaves nothing to resume and archives all of it", async (store, place, how) => {
    await store.saveRequest(savedRequest());
    await store.saveCheckpoint(checkpointOf(1), how);
    await store.clear();
    assert.equal(await store.state(), "empty");
    assert.deepEqual(
      (await place.folder().list("archive")).filter((name) => !name.includes("delta")),
      ["archive/e1/checkpoint.json", "archive/e1/request.json"],
    );
  }),

  storeCase("S1-48 another worker's store does not see any of it", async (store, place, how) => {
    await store.saveRequest(savedRequest());
    await store.saveCheckpoint(checkpointOf(1), how);
    const other = place.store("other");
    await other.open();
    assert.equal(await other.state(), "empty");
    await other.close();
  }),

  storeCase(
    "S1-63 C-1 a damaged checkpoint is named, stays until it is quarantined, and is kept there",
    async (store, place, how) => {
      await store.saveRequest(savedRequest());
      await store.saveCheckpoint(checkpointOf(1), { ...how, incremental: { fullEvery: 1 } });
      const next = await damaged(store, place, "checkpoint.json", cutOff);
      assert.equal(await next.state(), "incomplete");
      assert.equal(await documentOf(next.loadCheckpoint()), "checkpoint");
      const copy = await next.quarantine("checkpoint", "cut off");
      assert.equal(await next.state(), "started");
      const [bytes, reason] = await place.folder().list("quarantine");
      assert.ok(bytes !== undefined && copy?.endsWith(bytes));
      assert.equal(await next.quarantine("checkpoint", "cut off"), null);
      assert.equal(new TextDecoder().decode((await place.folder().read(String(reason))) ?? undefined), "cut off\n");
      await next.close();
    },
  ),

  storeCase(
    "X-9 C-20 what was given up when its process ended is given up by the next one",
    async (store, place, how) => {
      await store.saveRequest(savedRequest());
      await store.saveCheckpoint(checkpointOf(1), how);
      await store.failRequest("abandoned: nobody needs it");
      await store.close();
      const next = place.store();
      assert.notEqual(await next.state(), "incomplete");
      await next.open();
      assert.equal(await next.state(), "empty");
      const kept = (await place.folder().list("archive")).filter((name) => !name.includes("delta"));
      assert.deepEqual(kept, ["archive/e1/checkpoint.json", "archive/e1/request.json"]);
      await next.close();
    },
  ),

  storeCase("S1-60 a request that has failed can be tried again after all", async (store) => {
    await store.saveRequest(savedRequest());
    await store.failRequest("gone");
    assert.equal((await store.loadRequest())?.failure, "gone");
    await store.failRequest(null);
    assert.equal((await store.loadRequest())?.failure, undefined);
  }),

  storeCase("C-1 of a fresh start's copies the newest are kept, though it counts from 1 again", async (store) => {
    await store.saveRequest(savedRequest());
    await store.saveCheckpoint(checkpointOf(7, { attempt: 1 }));
    await store.saveCheckpoint(checkpointOf(1, { attempt: 2 }));
    assert.deepEqual(await store.history(), [{ execution: "e1", attempt: 2, sequence: 1 }]);
  }),

  storeCase("S1-51 S1-64 a damaged request is named", async (store, place) => {
    await store.saveRequest(savedRequest());
    const next = await damaged(store, place, "request.json", cutOff);
    assert.equal(await documentOf(next.loadRequest()), "request");
    await next.close();
  }),

  storeCase(
    "C-1 a document that was changed is found by its checksum, and believed without one",
    async (store, place) => {
      await store.saveRequest(savedRequest("e1", { request: "tidy" }));
      const edited = (text: (from: string) => string) => (bytes: Uint8Array) =>
        new TextEncoder().encode(text(new TextDecoder().decode(bytes)));
      const next = await damaged(
        store,
        place,
        "request.json",
        edited((text) => text.replace('"tidy"', '"mess"')),
      );
      assert.equal(await documentOf(next.loadRequest()), "request");
      const last = await damaged(
        next,
        place,
        "request.json",
        edited((text) => text.replace(/,\s*"checksum": "[^"]*"/, "")),
      );
      assert.equal((await last.loadRequest())?.request, "mess");
      await last.close();
    },
  ),

  storeCase("X-8 keeps a history per attempt, loads by reference and prunes", async (store) => {
    await store.saveRequest(savedRequest());
    for (let n = 1; n <= 4; n++)
      await store.saveCheckpoint(checkpointOf(n, { attempt: n < 3 ? 1 : 2 }), { history: 3 });
    const kept = await store.history();
    assert.deepEqual(
      kept.map(({ attempt, sequence }) => [attempt, sequence]),
      [
        [1, 2],
        [2, 3],
        [2, 4],
      ],
    );
    assert.deepEqual(await store.loadCheckpoint(kept[0]), checkpointOf(2));
    for (const id of ["e2", "e3", "e4"]) await store.saveRequest(savedRequest(id));
    assert.equal(await store.prune(1), 2);
    assert.deepEqual(await store.history(), []);
    assert.equal((await store.loadRequest())?.execution, "e4");
  }),

  storeCase("C-1 notes that an execution has had an effect, apart from its checkpoints", async (store) => {
    await store.saveRequest(savedRequest());
    assert.equal(await store.hasEffect("e1"), false);
    await store.noteEffect("e1");
    assert.deepEqual([await store.hasEffect("e1"), await store.hasEffect("e2")], [true, false]);
    await store.saveRequest(savedRequest("e2"));
    assert.equal(await store.hasEffect("e1"), false);
  }),

  storeCase("S1-67 E-10 has one owner at a time, and says who it is", async (store, place) => {
    const second = place.store();
    await assert.rejects(second.open(), (error) => {
      assert.ok(hasCode(error, "worker_directory_busy"), String(error));
      const { owner } = (error as { fields: { owner: { pid: number } } }).fields;
      return owner.pid === process.pid;
    });
    await store.close();
    await second.open();
    await assert.rejects(store.saveRequest(savedRequest()), (error) => hasCode(error, "worker_directory_busy"));
    await second.close();
  }),

  storeCase("M-2 a request that failed for good says why", async (store) => {
    await store.saveRequest(savedRequest());
    await store.failRequest("the model is gone");
    assert.deepEqual(await store.loadRequest(), { ...savedRequest(), failure: "the model is gone" });
    assert.equal(await store.state(), "started");
  }),
];
