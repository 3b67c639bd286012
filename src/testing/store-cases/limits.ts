import assert from "node:assert/strict";
import { LIMITS } from "../../core/limits.ts";
import type { Handle, Store } from "../../core/store.ts";
import {
  appending,
  apply,
  cancel,
  claimIds,
  claimOne,
  commitAll,
  creation,
  ending,
  endingWhole,
  newWorker,
  rowOf,
  type StoreCase,
  signal,
  storeCase,
  suspending,
} from "./case.ts";

/** Handles of a worker that knows these limits of the workflow "order". */
function limited(concurrency: number | null, rate: Handle["rate"] | null = null): { handles: Handle[] } {
  const limits = { ...(concurrency !== null && { concurrency }), ...(rate != null && { rate }) };
  return { handles: [{ workflow: "order", version: "1.0.0", ...limits }] };
}

const slot = (name = "order", rate: string | null = null) => ({ needs: { slot: name, rate } });

async function createAll(store: Store, ids: readonly string[], name?: string): Promise<void> {
  await apply(store, ...ids.map((id) => creation(id, slot(name))));
}

export const limitCases: readonly StoreCase[] = [
  storeCase("I18 a slot lets in as many as its limit says, oldest first, over all workers", async ({ store }) => {
    await store.register(newWorker("w2"));
    await createAll(store, ["a", "b", "c", "d"]);
    assert.deepEqual(await claimIds(store, limited(2)), ["a", "b"]);
    assert.deepEqual(await claimIds(store, { worker: "w2", ...limited(2) }), []);
    assert.deepEqual(await claimIds(store, { worker: "w2", ...limited(3) }), ["c"]);
    assert.deepEqual(await claimIds(store, { worker: "w2", ...limited(1) }), []);
    assert.deepEqual((await store.runs({ slot: "order", limit: 9 })).map(({ id }) => id).sort(), ["a", "b", "c"]);
    assert.deepEqual(await claimIds(store, limited(null)), ["d"]);
  }),

  storeCase("I18 a full slot keeps nobody waiting but those in its own line", async ({ store }) => {
    await createAll(store, ["a1", "a2"], "order/a");
    await createAll(store, ["b1", "b2"], "order/b");
    await apply(store, creation("plain"), creation("urgent", { ...slot("order/b"), priority: 5 }));
    assert.deepEqual(await claimIds(store, limited(1)), ["urgent", "a1", "plain"]);
    await apply(store, ending("urgent", 1));
    assert.deepEqual(await claimIds(store, limited(1)), ["b1"]);
    assert.deepEqual(await claimIds(store, limited(1)), []);
  }),

  storeCase("I18 I19 a line behind more full ones than a claim looks at has its turn", async ({ store }) => {
    const full = Array.from({ length: LIMITS.linesPerClaim + 1 }, (_, n) => `a${n}`);
    const inLine = (prefix: string) => full.map((id) => creation(`${prefix}${id}`, slot(`order/${id}`)));
    await apply(store, ...inLine("holds-"));
    const claimTwice = async () => {
      const ask = { limit: full.length, ...limited(1) };
      return [...(await claimIds(store, ask)), ...(await claimIds(store, ask))];
    };
    assert.equal((await claimTwice()).length, full.length);
    await apply(store, ...inLine("waits-"), creation("free", slot("order/z")));
    assert.deepEqual(await claimTwice(), ["free"]);
  }),

  storeCase("I18 B16 every way of letting go frees the slot", async ({ store, leaseClock }) => {
    const ids = ["ended", "whole", "suspended", "parked", "released", "retired", "fenced", "last"];
    await createAll(store, ids);
    const next = async (worker: string, expected: string) => {
      assert.deepEqual(await claimIds(store, { worker, ...limited(1), suspect: true }), [expected]);
      assert.deepEqual(await claimIds(store, { worker, ...limited(1) }), []);
    };
    await next("w1", "ended");
    await apply(store, ending("ended", 1, "failed"));
    await next("w1", "whole");
    await apply(store, endingWhole("whole", 1));
    await next("w1", "suspended");
    await apply(store, suspending("suspended", 1));
    await next("w1", "parked");
    await apply(store, suspending("parked", 1, { row: { state: "parked", release: true, readyAt: null } }));
    await next("w1", "released");
    await apply(store, appending("released", 1, 0, { row: { release: true, readyAt: null, state: "waiting" } }));
    await next("w1", "retired");
    await apply(store, appending("retired", 1, 0, { row: { wakeAt: null } }));
    await store.retire("w1");
    await store.register(newWorker("w2"));
    await next("w2", "fenced");
    leaseClock.advance(20_000);
    await store.fence({ workers: ["w2"], ifExpired: true });
    await store.register(newWorker("w3"));
    await next("w3", "last");
  }),

  storeCase("I18 a run that wakes stands in line again", async ({ store, clock }) => {
    await createAll(store, ["a", "b"]);
    assert.deepEqual(await claimIds(store, limited(1)), ["a"]);
    await apply(
      store,
      suspending("a", 1, { row: { state: "waiting", release: true, claims: 0, wakeAt: clock.now() + 5 } }),
    );
    assert.deepEqual(await claimIds(store, limited(1)), ["b"]);
    clock.advance(5);
    await store.deliver(signal("a", "m"));
    assert.deepEqual(await claimIds(store, limited(1)), []);
    assert.deepEqual(await store.orphans(), []);
    await apply(store, ending("b", 1));
    assert.deepEqual(await claimIds(store, limited(1)), ["a"]);
  }),

  storeCase("I18 a successor keeps the slots of its predecessor", async ({ store }) => {
    await createAll(store, ["a", "b"]);
    assert.deepEqual(await claimIds(store, limited(1)), ["a"]);
    await store.fence({ workers: ["w1"], successor: newWorker("w2") });
    assert.deepEqual(await claimIds(store, { worker: "w2", ...limited(1) }), []);
    await store.commit({ worker: "w2", runs: [ending("a", 1)] });
    assert.deepEqual(await claimIds(store, { worker: "w2", ...limited(1) }), ["b"]);
  }),

  storeCase("I18 a run that needs a slot is never claimed on the spot", async ({ store }) => {
    const [verdict] = await commitAll(store, creation("r", { claimed: true, ...slot() }));
    assert.equal(verdict?.kind, "failed");
    assert.equal(await store.run("r"), null);
  }),

  storeCase("I18 P19 a run that has begun and needs a slot is taken only to be cancelled", async ({ store }) => {
    await createAll(store, ["r", "new"]);
    assert.deepEqual(await claimIds(store, limited(1)), ["r"]);
    await apply(store, suspending("r", 1));
    assert.equal((await store.take("w1", "new"))?.row.owner, "w1");
    assert.equal(await store.take("w1", "r"), null);
    await store.deliver(cancel("r"));
    assert.equal((await store.take("w1", "r"))?.row.owner, "w1");
  }),

  storeCase("P19 a run that needs a slot is taken by whoever will not let it run", async ({ store }) => {
    await createAll(store, ["r"]);
    assert.deepEqual(await claimIds(store, limited(1)), ["r"]);
    await apply(store, suspending("r", 1));
    assert.equal(await store.take("w1", "r", { slotless: false }), null);
    assert.equal((await store.take("w1", "r", { slotless: true }))?.row.owner, "w1");
    assert.equal(await store.take("ghost", "r", { slotless: true }), null);
  }),

  storeCase("P28 at most one suspect is claimed, in lines as well", async ({ store }) => {
    await createAll(store, ["a"], "order/a");
    await createAll(store, ["b", "c"], "order/b");
    for (let death = 1; death <= 2; death++) {
      assert.deepEqual(await claimIds(store, { worker: `w${death}`, ...limited(null) }), ["a", "b", "c"]);
      await store.fence({ workers: [`w${death}`] });
      await store.register(newWorker(`w${death + 1}`));
    }
    assert.deepEqual(await claimIds(store, { worker: "w3", ...limited(1) }), []);
    assert.deepEqual(await claimIds(store, { worker: "w3", ...limited(1), suspect: true }), ["a"]);
  }),

  storeCase("P34 whoever cannot be run here keeps nobody behind it in the line waiting", async ({ store }) => {
    await apply(store, creation("newer", { version: "2.0.0", ...slot() }), creation("ours", slot()));
    assert.deepEqual(await claimIds(store, limited(1)), ["ours"]);
  }),

  storeCase(
    "X-21 a rate lets in so many in any span, and counts only the first claim of a run",
    async ({ store, clock }) => {
      const rate = { limit: 2, perMs: 100 };
      for (const id of ["a", "b", "c", "d"]) await apply(store, creation(id, slot("order", "order")));
      assert.equal((await rowOf(store, "a")).rate, "order");
      assert.deepEqual(await claimIds(store, { limit: 1, ...limited(null, rate) }), ["a"]);
      assert.equal((await rowOf(store, "a")).rate, null);
      clock.advance(60);
      assert.deepEqual(await claimIds(store, limited(null, rate)), ["b"]);
      assert.deepEqual(await claimIds(store, limited(null, rate)), []);
      await apply(store, appending("a", 1, 0, { row: { release: true, readyAt: clock.now() } }));
      assert.deepEqual(await claimIds(store, limited(null, rate)), ["a"]);
      assert.equal(await store.nextWake(), clock.now() + 40);
      clock.advance(39);
      assert.deepEqual(await claimIds(store, limited(null, rate)), []);
      clock.advance(1);
      assert.deepEqual(await claimIds(store, limited(null, rate)), ["c"]);
      await store.purge({ succeededBefore: 0, failedBefore: 0, limit: 1 });
      assert.deepEqual(await claimIds(store, limited(null, rate)), []);
      clock.advance(60);
      assert.deepEqual(await claimIds(store, limited(null, rate)), ["d"]);
      assert.equal(await store.nextWake(), null);
    },
  ),

  storeCase("X-21 P34 a start counts for as long as the span of whoever claims now", async ({ store, clock }) => {
    for (const id of ["a", "b", "c"]) await apply(store, creation(id, slot("order", "order")));
    assert.deepEqual(await claimIds(store, limited(null, { limit: 1, perMs: 10_000 })), ["a"]);
    clock.advance(99);
    assert.deepEqual(await claimIds(store, limited(null, { limit: 1, perMs: 100 })), []);
    clock.advance(1);
    assert.deepEqual(await claimIds(store, limited(null, { limit: 1, perMs: 10_000 })), []);
    assert.deepEqual(await claimIds(store, limited(null, { limit: 1, perMs: 100 })), ["b"]);
    // A clock that was an hour ahead is set right.
    clock.step(-3_600_000);
    assert.deepEqual(await claimIds(store, limited(null, { limit: 1, perMs: 100 })), ["c"]);
  }),

  storeCase("X-21 slots and rates of different keys hold together", async ({ store }) => {
    const both = limited(1, { limit: 2, perMs: 1000 });
    const needs = { a1: "order/a", a2: "order/a", b1: "order/b", c1: "order/c" };
    for (const [id, name] of Object.entries(needs)) await apply(store, creation(id, slot(name, "order")));
    assert.deepEqual(await claimIds(store, both), ["a1", "b1"]);
    await apply(store, ending("a1", 1));
    assert.deepEqual(await claimIds(store, both), []);
  }),

  storeCase("X-21 a commit moves the deadline", async ({ store }) => {
    await apply(store, creation("r", { claimed: true, deadline: 7 }), creation("s", { claimed: true, deadline: 7 }));
    await apply(store, appending("r", 1, 1, { row: { deadline: 9 } }), appending("s", 1, 1, { row: { claims: 0 } }));
    assert.deepEqual([(await rowOf(store, "r")).deadline, (await rowOf(store, "s")).deadline], [9, 7]);
  }),

  storeCase("I18 a commit says what a run needs from now on", async ({ store }) => {
    await apply(store, creation("r"), creation("first", slot()));
    await claimOne(store, { limit: 1, ...limited(1), handles: limited(1).handles });
    const row = await rowOf(store, "r");
    assert.equal(row.owner, "w1");
    const needs = { slot: "order", rate: "order/x" };
    await apply(store, appending("r", 1, 0, { row: { release: true, readyAt: 0, claims: 0, needs } }));
    const { slot: held, rate } = await rowOf(store, "r");
    assert.deepEqual([held, rate], ["order", "order/x"]);
    assert.deepEqual(await claimIds(store, limited(1)), ["r"]);
    assert.deepEqual(await claimIds(store, limited(1)), []);
  }),
];
