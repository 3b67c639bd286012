// Transactions with a user's SQL in them. A run that is started inside stands for that SQL: it is there if the transaction was committed.
import assert from "node:assert/strict";
import type { Sql } from "../../core/sql.ts";
import type { RunCommit, Sealed, Store, Verdict } from "../../core/store.ts";
import {
  appending,
  apply,
  creation,
  headOf,
  newWorker,
  type OpenedStore,
  type StoreCase,
  signal,
  storeCase,
} from "./case.ts";

const REQUEST = { lane: 0, isolation: "read committed", timeoutMs: 10_000, idleMs: 10_000 } as const;

/** A case for stores that have transactions; of others it says that they have nothing of them. */
function sqlCase(name: string, check: (opened: OpenedStore) => Promise<void>): StoreCase {
  return storeCase(name, async (opened) => {
    const { store } = opened;
    if (store.transactions !== undefined) return check(opened);
    assert.deepEqual([store.transact, store.enlist], [undefined, undefined]);
  });
}

/** Starts the run "inside", then asks for this commit. */
function transact(store: Store, commit: RunCommit, worker = "w1"): Promise<Verdict> {
  return transactWith(store, () => ({ worker, commit }));
}

async function transactWith(store: Store, seal: () => Sealed): Promise<Verdict> {
  const work = (sql: Sql) => {
    const started = store.enlist?.(sql, creation("inside")) as Promise<Verdict>;
    return store.transactions === "synchronous" ? seal() : started.then(seal);
  };
  const verdict = await store.transact?.(REQUEST, work);
  assert.ok(verdict !== undefined);
  return verdict;
}

async function assertNothingLeft(store: Store, head: number): Promise<void> {
  assert.equal(await store.run("inside"), null);
  assert.equal(await headOf(store, "r"), head);
}

export const transactionCases: readonly StoreCase[] = [
  sqlCase("I7 a transaction's commit and what was written in it are there together", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    assert.deepEqual(await transact(store, appending("r", 1, 2)), { run: "r", kind: "applied" });
    assert.equal(await headOf(store, "r"), 3);
    const inside = await store.run("inside");
    assert.deepEqual([inside?.state, inside?.owner], ["accepted", null]);
    await apply(store, appending("r", 3));
  }),

  sqlCase("I7 what the work throws comes back as it is, and nothing is left", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    const error = new Error("no such account");
    await assert.rejects(
      transactWith(store, () => {
        throw error;
      }),
      (thrown) => thrown === error,
    );
    await assertNothingLeft(store, 1);
    await apply(store, appending("r", 1));
  }),

  sqlCase("I7 I8 ST1 P22 a worker that was fenced has its transaction rolled back", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    await store.register(newWorker("w2"));
    await store.fence({ workers: ["w1"] });
    assert.deepEqual(await transact(store, appending("r", 1)), { run: "r", kind: "refused", why: "fenced" });
    await assertNothingLeft(store, 1);
  }),

  sqlCase(
    "I7 I3 ST2 B31 a position that is taken, or a run of somebody else, is a conflict, and nothing is left",
    async ({ store }) => {
      await apply(store, creation("r", { claimed: true }), creation("free"));
      await apply(store, appending("r", 1));
      assert.deepEqual(await transact(store, appending("r", 1)), { run: "r", kind: "conflict", head: 2 });
      await assertNothingLeft(store, 2);
      assert.deepEqual(await transact(store, appending("free", 1)), { run: "free", kind: "conflict", head: 1 });
      await assertNothingLeft(store, 2);
    },
  ),

  sqlCase(
    "I7 P18 conditions of the run count as in any commit, and nothing is left of what they refuse",
    async ({ store }) => {
      await apply(store, creation("r", { claimed: true }));
      await store.deliver(signal("r", "m1"));
      const refused = await transact(store, appending("r", 1, 1, { ifWake: 0 }));
      assert.deepEqual(refused, { run: "r", kind: "refused", why: "wake" });
      await assertNothingLeft(store, 1);
      assert.deepEqual(await transact(store, appending("r", 1, 1, { consumes: ["m1"] })), {
        run: "r",
        kind: "applied",
      });
      assert.deepEqual(await store.inbox("r"), []);
    },
  ),

  sqlCase(
    "I7 I17 a run that is there is not created again by a transaction, which is told what it is",
    async ({ store }) => {
      await apply(store, creation("r"));
      const holder = await store.run("r");
      assert.deepEqual(await transact(store, creation("r")), { run: "r", kind: "refused", why: "exists", holder });
      await assertNothingLeft(store, 1);
    },
  ),

  sqlCase(
    "I7 I17 a run that is there, or a key that is held, is told inside a transaction, which goes on",
    async ({ store }) => {
      const keys = [{ space: "start:order", key: "k", digest: "d" }];
      await apply(store, creation("r", { claimed: true }), { ...creation("other"), keys });
      const told: Promise<Verdict>[] = [];
      const work = (sql: Sql) => {
        told.push(store.enlist?.(sql, creation("other")) as Promise<Verdict>);
        told.push(store.enlist?.(sql, { ...creation("inside"), keys }) as Promise<Verdict>);
        const sealed = { worker: "w1", commit: appending("r", 1) };
        return store.transactions === "synchronous" ? sealed : Promise.all(told).then(() => sealed);
      };
      assert.deepEqual(await store.transact?.(REQUEST, work), { run: "r", kind: "applied" });
      const [exists, held] = await Promise.all(told);
      assert.equal(exists?.kind === "refused" && exists.why === "exists" && exists.holder.id, "other");
      const holder = { run: "other", digest: "d" };
      assert.deepEqual(held, { run: "inside", kind: "refused", why: "key", holder });
      await assertNothingLeft(store, 2);
    },
  ),

  sqlCase("I7 a run cannot be started in what is no transaction of the store", async ({ store }) => {
    const enlist = async (given: unknown) => store.enlist?.(given, creation("inside"));
    for (const given of [null, {}, "begin"]) {
      await assert.rejects(enlist(given), (error: { code?: unknown }) => error.code === "invalid_argument");
    }
    assert.equal(await store.run("inside"), null);
  }),
];
