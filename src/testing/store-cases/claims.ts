import assert from "node:assert/strict";
import type { StoredEntry } from "../../core/journal.ts";
import type { Handle, Store } from "../../core/store.ts";
import {
  appending,
  apply,
  claimIds,
  claimOne,
  claimRequest,
  creation,
  entry,
  newRun,
  newWorker,
  rowOf,
  type StoreCase,
  signal,
  storeCase,
  suspending,
} from "./case.ts";

/** Ends the worker's life without its consent and starts another. */
async function replaceWorker(store: Store, worker: string, next: string): Promise<void> {
  await store.fence({ workers: [worker] });
  await store.register(newWorker(next));
}

export const claimCases: readonly StoreCase[] = [
  storeCase("a claim hands out the row, the whole journal and the mail", async ({ store, clock }) => {
    await apply(store, { ...creation("r"), entries: [entry(0, "run.started", { data: "1" }), entry(1)] });
    await store.deliver(signal("r", "m", { data: "2" }));
    const claimed = await claimOne(store);
    assert.deepEqual([claimed.run, claimed.head, claimed.wake, claimed.cancel], ["r", 2, 1, null]);
    assert.deepEqual(claimed.journal, await store.journal("r"));
    assert.deepEqual(claimed.inbox, await store.inbox("r"));
    assert.deepEqual(claimed.row, await store.run("r"));
    const { owner, state, readyAt, claims, createdAt } = claimed.row;
    assert.deepEqual([owner, state, readyAt, claims, createdAt], ["w1", "running", null, 1, clock.now()]);
  }),

  storeCase("P34 C-10 a handle covers a line up to its patch, one version alone, or any", async ({ store }) => {
    const versions = ["1.2.0", "1.2.1", "1.2.2", "1.3.0", "2.2.1"];
    await apply(store, ...versions.map((version) => creation(version, { version })));
    const { workflow } = newRun();
    const handled = async (handle: Omit<Handle, "workflow">) => {
      const ids = await claimIds(store, { handles: [{ workflow, ...handle }] });
      await store.retire("w1");
      await store.register(newWorker("w1"));
      return ids.sort();
    };
    assert.deepEqual(await handled({ version: "1.2.1", policy: "exact" }), ["1.2.1"]);
    assert.deepEqual(await handled({ version: "9.9.9", policy: "exact" }), []);
    assert.deepEqual(await handled({ version: "9.9.9", policy: "ignore" }), versions);
    assert.deepEqual(await handled({ version: "1.2.1" }), ["1.2.0", "1.2.1"]);
    assert.deepEqual(
      await claimIds(store, { handles: [{ workflow: "other", version: "1.2.1", policy: "ignore" }] }),
      [],
    );
  }),

  storeCase("I9 a run is handed out once", async ({ store }) => {
    await store.register(newWorker("w2"));
    await apply(store, creation("a"), creation("b"), creation("c"));
    assert.deepEqual(await claimIds(store, { limit: 2 }), ["a", "b"]);
    assert.deepEqual(await claimIds(store, { worker: "w2" }), ["c"]);
    assert.deepEqual(await claimIds(store), []);
  }),

  storeCase("a claim goes by priority, then by age, then by order of creation", async ({ store, clock }) => {
    const now = clock.now();
    await apply(
      store,
      creation("low", { priority: -1, readyAt: now - 9 }),
      creation("young", { readyAt: now - 1 }),
      creation("old", { readyAt: now - 5 }),
      creation("old2", { readyAt: now - 5 }),
      creation("high", { priority: 2.5, readyAt: now }),
    );
    assert.deepEqual(await claimIds(store, { limit: 0 }), []);
    assert.deepEqual(await claimIds(store, { limit: 3 }), ["high", "old", "old2"]);
    assert.deepEqual(await claimIds(store), ["young", "low"]);
  }),

  storeCase(
    "P34 a worker gets the runs of its own workflows, of the same minor and no newer patch",
    async ({ store }) => {
      for (const version of ["1.2.0", "1.2.3", "1.2.4", "1.3.0", "2.2.3"])
        await apply(store, creation(version, { version }));
      await apply(store, creation("other", { workflow: "invoice", version: "1.2.3" }));
      const handles = [{ workflow: "order", version: "1.2.3" }];
      assert.deepEqual(await claimIds(store, { handles }), ["1.2.0", "1.2.3"]);
      assert.deepEqual(await claimIds(store, { handles: [] }), []);
      await apply(store, { ...appending("1.2.0", 1), row: { version: "1.2.9", release: true, readyAt: 0, claims: 0 } });
      assert.deepEqual(await claimIds(store, { handles }), []);
      const more = [...handles, { workflow: "order", version: "1.2.10" }, { workflow: "invoice", version: "1.2.3" }];
      assert.deepEqual(await claimIds(store, { handles: more }), ["1.2.0", "1.2.4", "other"]);
    },
  ),

  storeCase("I13 P32 due runs are claimed when their time has come, and not before", async ({ store, clock }) => {
    await apply(store, creation("sleeper", { claimed: true }), creation("later", { readyAt: clock.now() + 200 }));
    await apply(
      store,
      suspending("sleeper", 1, { row: { state: "waiting", release: true, claims: 0, wakeAt: clock.now() + 100 } }),
    );
    assert.equal(await store.nextWake(), clock.now() + 100);
    assert.equal((await rowOf(store, "later")).readyAt, null);
    clock.advance(99);
    assert.deepEqual(await claimIds(store), []);
    clock.advance(1);
    assert.deepEqual(await claimIds(store), ["sleeper"]);
    assert.equal((await rowOf(store, "sleeper")).wakeAt, null);
    assert.equal(await store.nextWake(), clock.now() + 100);
    clock.advance(100);
    assert.deepEqual(await claimIds(store), ["later"]);
    assert.equal(await store.nextWake(), null);
  }),

  storeCase("I13 a due time that an owner has noted wakes nobody else", async ({ store, clock }) => {
    await apply(store, creation("r", { claimed: true }));
    await apply(store, { ...appending("r", 1), row: { wakeAt: clock.now() + 5 } });
    clock.advance(10);
    assert.deepEqual([await store.nextWake(), await claimIds(store)], [null, []]);
  }),

  storeCase(
    "P29 B42 a wall clock that is set back keeps nothing ready from being claimed",
    async ({ store, clock }) => {
      await apply(store, creation("r", { readyAt: clock.now() }));
      clock.step(-3_600_000);
      assert.deepEqual(await claimIds(store), ["r"]);
    },
  ),

  storeCase("B2 I8 a worker that is not registered claims and takes nothing", async ({ store, clock }) => {
    await apply(store, creation("r"), creation("later", { readyAt: clock.now() + 5 }));
    clock.advance(10);
    const before = await store.runs({ limit: 9 });
    assert.deepEqual(await claimIds(store, { worker: "ghost" }), []);
    assert.equal(await store.take("ghost", "r"), null);
    assert.deepEqual(await store.runs({ limit: 9 }), before);
  }),

  storeCase(
    "P28 a claim that ends without progress is counted; from the second on, the run is a suspect",
    async ({ store }) => {
      await apply(store, creation("r", { claimed: true }));
      await apply(store, appending("r", 1, 3));
      await replaceWorker(store, "w1", "w2");
      assert.equal((await claimOne(store, { worker: "w2" })).row.claims, 2);
      await replaceWorker(store, "w2", "w3");
      assert.deepEqual(await claimIds(store, { worker: "w3" }), []);
      assert.equal((await claimOne(store, { worker: "w3", suspect: true })).row.claims, 3);
      await replaceWorker(store, "w3", "w4");
      assert.equal((await claimOne(store, { worker: "w4", suspect: true })).row.claims, 4);
    },
  ),

  storeCase("P28 the first entries of a run are no progress of its first claim", async ({ store }) => {
    await apply(store, creation("r"));
    assert.equal((await claimOne(store)).row.claims, 1);
    await replaceWorker(store, "w1", "w2");
    assert.equal((await claimOne(store, { worker: "w2" })).row.claims, 2);
  }),

  storeCase("P28 a recorded outcome is progress; a mark and a failure that is retried are not", async ({ store }) => {
    const after: [string, StoredEntry, boolean][] = [
      ["completed", entry(1, "step.completed", { data: "1" }), true],
      ["fired", entry(1, "timer.fired"), true],
      ["final", entry(1, "step.failed", { data: '{"attempt":1,"error":"x","retryAt":null}' }), true],
      ["sealed", entry(1, "step.failed", { data: new Uint8Array([1]) }), true],
      ["retried", entry(1, "step.failed", { data: '{"attempt":1,"error":"x","retryAt":1234}' }), false],
      ["mark", entry(1, "version.changed"), false],
      ["note", entry(1, "note"), false],
      ["call", entry(1, "step.started"), false],
    ];
    for (const [run, second] of after) {
      await apply(store, creation(run, { claimed: true }));
      await apply(store, { run, head: 1, entries: [second] });
    }
    await replaceWorker(store, "w1", "w2");
    const claimed = await store.claim(claimRequest({ worker: "w2", limit: 99 }));
    assert.deepEqual(
      claimed.map(({ run, row }) => [run, row.claims]),
      after.map(([run, , isProgress]) => [run, isProgress ? 1 : 2]),
    );
    // What counts is progress since the last claim, not ever.
    await apply2(store, "w2", appending("completed", 2));
    await replaceWorker(store, "w2", "w3");
    const again = await store.claim(claimRequest({ worker: "w3", limit: 99 }));
    assert.deepEqual(
      again.map(({ run, row }) => [run, row.claims]),
      after.filter(([, , isProgress]) => isProgress).map(([run]) => [run, 2]),
    );
  }),

  storeCase("P28 deaths before progress are forgotten", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    await replaceWorker(store, "w1", "w2");
    await claimOne(store, { worker: "w2" });
    await apply2(store, "w2", { run: "r", head: 1, entries: [entry(1, "timer.fired")] });
    await replaceWorker(store, "w2", "w3");
    assert.equal((await claimOne(store, { worker: "w3" })).row.claims, 1);
  }),

  storeCase("P28 suspects come one at a time, in their place among the others", async ({ store }) => {
    await apply(store, creation("s1", { claimed: true, priority: 1 }), creation("s2", { claimed: true, priority: 1 }));
    await replaceWorker(store, "w1", "w2");
    assert.deepEqual(await claimIds(store, { worker: "w2" }), ["s1", "s2"]);
    await replaceWorker(store, "w2", "w3");
    await store.commit({ worker: null, runs: [creation("high", { priority: 2 }), creation("low"), creation("low2")] });
    const claim = (limit: number, suspect: boolean) => claimIds(store, { worker: "w3", limit, suspect });
    assert.deepEqual(await claim(1, true), ["high"]);
    assert.deepEqual(await claim(2, true), ["s1", "low"]);
    assert.deepEqual(await claim(9, false), ["low2"]);
    assert.deepEqual(await claim(9, true), ["s2"]);
  }),

  storeCase("P28 suspension and hand-back reset the count", async ({ store }) => {
    await apply(store, creation("a", { claimed: true }), creation("b", { claimed: true }));
    await apply(store, suspending("a", 1));
    await store.deliver(signal("a", "m"));
    await store.retire("w1");
    await store.register(newWorker("w2"));
    const claimed = await store.claim(claimRequest({ worker: "w2" }));
    assert.deepEqual(
      claimed.map(({ run, row }) => [run, row.claims]),
      [
        ["a", 1],
        ["b", 1],
      ],
    );
  }),

  storeCase("P23 take loads a run that this worker owns already, without counting", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    await apply(store, appending("r", 1));
    await store.deliver(signal("r", "m"));
    const before = await rowOf(store, "r");
    const taken = await store.take("w1", "r");
    assert.deepEqual([taken?.row, taken?.head, taken?.journal.length, taken?.inbox.length], [before, 2, 2, 1]);
    assert.deepEqual(await store.run("r"), before);
  }),

  storeCase("P19 take gets a run that nobody owns, whatever its version and state", async ({ store, clock }) => {
    await store.register(newWorker("w2"));
    const wakeAt = clock.now() + 50;
    await apply(store, creation("r", { version: "9.9.9", claimed: true }));
    await apply(store, suspending("r", 1, { row: { state: "parked", release: true, claims: 0, wakeAt } }));
    const taken = await store.take("w1", "r");
    assert.deepEqual(
      [taken?.row.owner, taken?.row.state, taken?.row.claims, taken?.row.wakeAt],
      ["w1", "parked", 0, null],
    );
    assert.equal(await store.take("w2", "r"), null);
    assert.equal(await store.take("w1", "nobody"), null);
    await apply(store, appending("r", 1));
  }),
];

async function apply2(store: Store, worker: string, part: ReturnType<typeof appending>): Promise<void> {
  assert.deepEqual(await store.commit({ worker, runs: [part] }), [{ run: part.run, kind: "applied" }]);
}
