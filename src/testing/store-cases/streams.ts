// Streams: chunks by the entry that began their attempt, each written once, gone with their run.
import assert from "node:assert/strict";
import type { Store } from "../../core/store.ts";
import type { StreamChunk, StreamPosition } from "../../core/streams.ts";
import { apply, creation, ending, type StoreCase, storeCase } from "./case.ts";

function chunk(run: string, start: string, n: number, data: StreamChunk["data"] = `"${start}${n}"`): StreamChunk {
  return { run, start, n, data };
}

function read(store: Store, run: string, of: readonly StreamPosition[], limit = 100): Promise<StreamChunk[]> {
  return store.chunks(run, { of, limit });
}

async function withRuns(store: Store, ...runs: readonly string[]): Promise<void> {
  await apply(store, ...runs.map((run) => creation(run, { claimed: true })));
}

export const streamCases: readonly StoreCase[] = [
  storeCase(
    "SM2 X-14 chunks are read by their numbers from a position on, stream by stream as asked",
    async ({ store }) => {
      await withRuns(store, "r1");
      await store.emit([chunk("r1", "b", 0), chunk("r1", "a", 0), chunk("r1", "a", 1)]);
      await store.emit([chunk("r1", "a", 2), chunk("r1", "a", 10), chunk("r1", "a", 11, null)]);
      const of = [
        { start: "b", n: 0 },
        { start: "none", n: 0 },
        { start: "a", n: 1 },
      ];
      const all = [chunk("r1", "b", 0), chunk("r1", "a", 1), chunk("r1", "a", 2), chunk("r1", "a", 10)];
      assert.deepEqual(await read(store, "r1", of), [...all, chunk("r1", "a", 11, null)]);
      assert.deepEqual(await read(store, "r1", of, 3), all.slice(0, 3));
      assert.deepEqual(await read(store, "r1", of, 1), all.slice(0, 1));
      assert.deepEqual(await read(store, "r1", [{ start: "a", n: 12 }]), []);
      assert.deepEqual(await read(store, "r1", []), []);
    },
  ),

  storeCase("SM1 SW3 a chunk that is there stays as it is, also among new ones", async ({ store }) => {
    await withRuns(store, "r1");
    await store.emit([chunk("r1", "a", 0), chunk("r1", "a", 1)]);
    await store.emit([chunk("r1", "a", 0), chunk("r1", "a", 1, '"other"'), chunk("r1", "a", 2)]);
    await store.emit([chunk("r1", "a", 1, null), chunk("r1", "a", 3, '"x"'), chunk("r1", "a", 3, '"y"')]);
    const found = await read(store, "r1", [{ start: "a", n: 0 }]);
    assert.deepEqual(
      found.map(({ n, data }) => [n, data]),
      [
        [0, '"a0"'],
        [1, '"a1"'],
        [2, '"a2"'],
        [3, '"x"'],
      ],
    );
  }),

  storeCase("SM1 the same names in two runs are two streams; one write may have several runs", async ({ store }) => {
    await withRuns(store, "r1", "r2");
    await store.emit([chunk("r1", "a", 0, '"one"'), chunk("r2", "a", 0, '"two"')]);
    assert.deepEqual(await read(store, "r1", [{ start: "a", n: 0 }]), [chunk("r1", "a", 0, '"one"')]);
    assert.deepEqual(await read(store, "r2", [{ start: "a", n: 0 }]), [chunk("r2", "a", 0, '"two"')]);
  }),

  storeCase("SM1 chunks of a run that is not there are dropped, those beside them stay", async ({ store }) => {
    await withRuns(store, "r1");
    await store.emit([chunk("gone", "a", 0), chunk("r1", "a", 0)]);
    await withRuns(store, "gone");
    assert.deepEqual(await read(store, "gone", [{ start: "a", n: 0 }]), []);
    assert.deepEqual(await read(store, "r1", [{ start: "a", n: 0 }]), [chunk("r1", "a", 0)]);
    assert.deepEqual(await read(store, "nobody", [{ start: "a", n: 0 }]), []);
    await store.emit([]);
  }),

  storeCase(
    "I21 what a codec has sealed comes back as it was: text, bytes, and the mark that closes",
    async ({ store }) => {
      await withRuns(store, "r1");
      const sealed = [
        '"é\u{1f600}\\n"',
        "no json at all {",
        "",
        new Uint8Array([0, 255, 10, 13]),
        new Uint8Array(),
        null,
      ];
      await store.emit(sealed.map((data, n) => chunk("r1", "a", n, data)));
      const found = await read(store, "r1", [{ start: "a", n: 0 }]);
      assert.deepEqual(
        found.map(({ data }) => data),
        sealed,
      );
    },
  ),

  storeCase(
    "P16 text that a store could not give back is refused, and nothing of the write is kept",
    async ({ store }) => {
      await withRuns(store, "r1");
      const bad = [chunk("r1", "a", 1, '"a\0b"'), chunk("r1", "a\0", 0), chunk("r1", "a", -1), chunk("r1", "a", 0.5)];
      for (const one of bad) await assert.rejects(store.emit([chunk("r1", "a", 0), one]), { code: "invalid_argument" });
      assert.deepEqual(await read(store, "r1", [{ start: "a", n: 0 }]), []);
    },
  ),

  storeCase("C-20 chunks go with their run, and a run of the same id has none of them", async ({ store, clock }) => {
    await withRuns(store, "r1", "r2");
    await store.emit([chunk("r1", "a", 0), chunk("r2", "a", 0)]);
    await apply(store, ending("r1", 1));
    clock.advance(1000);
    const before = clock.now();
    assert.equal(await store.purge({ succeededBefore: before, failedBefore: before, limit: 10 }), 1);
    await withRuns(store, "r1");
    assert.deepEqual(await read(store, "r1", [{ start: "a", n: 0 }]), []);
    assert.deepEqual(await read(store, "r2", [{ start: "a", n: 0 }]), [chunk("r2", "a", 0)]);
  }),

  storeCase(
    "SM1 a worker that was fenced may still write: what it emits is of an attempt that others replace",
    async ({ store }) => {
      await withRuns(store, "r1");
      await store.fence({ workers: ["w1"] });
      await store.emit([chunk("r1", "a", 0)]);
      assert.deepEqual(await read(store, "r1", [{ start: "a", n: 0 }]), [chunk("r1", "a", 0)]);
    },
  ),
];
