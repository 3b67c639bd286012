import assert from "node:assert/strict";
import { countersOf } from "../../core/counters.ts";
import type { CounterChange, RunCommit } from "../../core/store.ts";
import { appending, apply, commitAll, creation, ending, headOf, rowOf, type StoreCase, storeCase } from "./case.ts";

const keyed = (run: string, digest = "d"): RunCommit => ({
  ...creation(run, { claimed: true, key: "k" }),
  keys: [{ space: "start", key: "k", digest }],
});

const slot = (by: number, changes: Partial<CounterChange> = {}): CounterChange => ({
  key: "slots",
  by,
  max: 2,
  held: true,
  ...changes,
});

export const keyAndCounterCases: readonly StoreCase[] = [
  storeCase(
    "I17 B27 B29 of many starts with one key exactly one is applied, and all learn which",
    async ({ store }) => {
      const starts = Array.from({ length: 20 }, (_, i) => store.commit({ worker: null, runs: [keyed(`r${i}`)] }));
      const verdicts = (await Promise.all(starts)).flat();
      const applied = verdicts.filter(({ kind }) => kind === "applied").map(({ run }) => run);
      assert.equal(applied.length, 1);
      for (const verdict of verdicts) {
        if (verdict.kind === "applied") continue;
        assert.deepEqual(verdict, {
          run: verdict.run,
          kind: "refused",
          why: "key",
          holder: { run: applied[0], digest: "d" },
        });
      }
      assert.equal((await store.runs({ limit: 99 })).length, 1);
    },
  ),

  storeCase("B28 a second run with the same id is refused, and told what the first one is", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    await apply(store, appending("r", 1));
    const before = await rowOf(store, "r");
    const verdicts = await store.commit({ worker: null, runs: [creation("r", { workflow: "other" })] });
    assert.deepEqual(verdicts, [{ run: "r", kind: "refused", why: "exists", holder: before }]);
    assert.deepEqual(await commitAll(store, creation("r")), verdicts);
    assert.deepEqual(await store.run("r"), before);
    assert.equal(await headOf(store, "r"), 2);
  }),

  storeCase("I17 P32 a key is found with its run and digest, per space", async ({ store }) => {
    await apply(store, keyed("r", "digest"));
    assert.deepEqual(await store.key("start", "k"), { run: "r", digest: "digest" });
    assert.equal(await store.key("slot", "k"), null);
    assert.equal(await store.key("start", "other"), null);
  }),

  storeCase(
    "a run that asks for a taken key leaves no trace, and a key twice in one commit is refused",
    async ({ store }) => {
      await apply(store, keyed("r"), creation("s", { claimed: true }));
      const key = (name: string) => ({ space: "start", key: name, digest: "x" });
      const [taken] = await commitAll(store, { ...appending("s", 1), keys: [key("free"), key("k")] });
      assert.deepEqual(taken, { run: "s", kind: "refused", why: "key", holder: { run: "r", digest: "d" } });
      const [twice] = await commitAll(store, { ...appending("s", 1), keys: [key("free"), key("free")] });
      assert.deepEqual(twice, { run: "s", kind: "refused", why: "key", holder: { run: "s", digest: "x" } });
      assert.equal(await store.key("start", "free"), null);
      assert.equal(await headOf(store, "s"), 1);
    },
  ),

  storeCase("a key moves only from the run that is named as its holder", async ({ store }) => {
    await apply(store, keyed("old"));
    const moving = (run: string, from: string): RunCommit => ({
      ...creation(run),
      keys: [{ space: "start", key: "k", digest: "d2", from }],
    });
    assert.deepEqual(await commitAll(store, moving("new", "another")), [
      { run: "new", kind: "refused", why: "key", holder: { run: "old", digest: "d" } },
    ]);
    await apply(store, moving("new", "old"));
    assert.deepEqual(await store.key("start", "k"), { run: "new", digest: "d2" });
    await apply(store, { ...creation("first"), keys: [{ space: "start", key: "k3", digest: "d", from: "nobody" }] });
  }),

  storeCase("I17 a key outlives its run's end and goes when the run is purged", async ({ store, clock }) => {
    await apply(store, keyed("r"));
    await apply(store, ending("r", 1));
    assert.deepEqual(await store.key("start", "k"), { run: "r", digest: "d" });
    clock.advance(10);
    assert.equal(await store.purge({ succeededBefore: clock.now(), failedBefore: 0, limit: 9 }), 1);
    assert.equal(await store.key("start", "k"), null);
  }),

  storeCase("I18 a counter takes no more than its limit and never falls below zero", async ({ store }) => {
    for (const run of ["a", "b", "c"]) await apply(store, creation(run, { claimed: true }));
    await apply(store, { ...appending("a", 1), counters: [slot(1)] }, { ...appending("b", 1), counters: [slot(1)] });
    const refused = [{ run: "c", kind: "refused", why: "counter", key: "slots", at: 0, value: 2, max: 2 }];
    assert.deepEqual(await commitAll(store, { ...appending("c", 1), counters: [slot(1)] }), refused);
    assert.deepEqual(await commitAll(store, { ...appending("c", 1), counters: [slot(-3, { held: false })] }), refused);
    assert.deepEqual(await commitAll(store, { ...appending("c", 1), counters: [slot(-1)] }), refused);
    assert.equal(await headOf(store, "c"), 1);
    assert.deepEqual(await store.counters(""), [{ key: "slots", value: 2 }]);
    await apply(store, { ...appending("c", 1), counters: [slot(1, { max: 3 })] });
    await apply(store, { ...appending("c", 2), counters: [slot(1, { max: null })] });
    assert.deepEqual(await store.counters("slots"), [{ key: "slots", value: 4 }]);
    await apply(store, { ...appending("c", 3), counters: [slot(-1, { max: 0 })] });
    assert.deepEqual(await store.counters("slots"), [{ key: "slots", value: 3 }]);
  }),

  storeCase("P24 changes of one counter are summed in order, within a commit and over a batch", async ({ store }) => {
    for (const run of ["a", "b"]) await apply(store, creation(run, { claimed: true }));
    const [within] = await commitAll(store, { ...appending("a", 1), counters: [slot(1), slot(1), slot(1)] });
    assert.deepEqual(within, { run: "a", kind: "refused", why: "counter", key: "slots", at: 2, value: 2, max: 2 });
    await apply(store, { ...appending("a", 1), counters: [slot(2), slot(-1), slot(1)] });
    const [over] = await commitAll(store, { ...appending("b", 1), counters: [slot(-2, { held: false }), slot(3)] });
    assert.equal(over?.kind, "refused");
    const batch = await commitAll(
      store,
      { ...appending("a", 2), counters: [slot(-1)] },
      { ...appending("b", 1), counters: [slot(1)] },
      { ...appending("a", 3), counters: [slot(1)] },
    );
    assert.deepEqual(
      batch.map(({ kind }) => kind),
      ["applied", "applied", "refused"],
    );
    assert.deepEqual(await store.counters(""), [{ key: "slots", value: 2 }]);
  }),

  storeCase(
    "I18 B16 what a run holds comes back however it ends, and what it only counted stays",
    async ({ store }) => {
      for (const [run, state] of [
        ["a", "succeeded"],
        ["b", "failed"],
        ["c", "cancelled"],
      ] as const) {
        const counters = [
          slot(1),
          slot(2, { key: "budget", max: null }),
          slot(5, { key: "rate", held: false, max: null }),
        ];
        await apply(store, { ...creation(run, { claimed: true }), counters });
        await apply(store, ending(run, 1, state));
        assert.deepEqual(
          (await store.counters("")).map(({ key }) => key),
          ["rate"],
        );
      }
      assert.deepEqual(await store.counters(""), [{ key: "rate", value: 15 }]);
    },
  ),

  storeCase("I18 a slot given back early is not given back again at the end", async ({ store }) => {
    for (const run of ["a", "b"]) await apply(store, { ...creation(run, { claimed: true }), counters: [slot(1)] });
    await apply(store, { ...appending("a", 1), counters: [slot(-1)] });
    await apply(store, ending("a", 2));
    assert.deepEqual(await store.counters(""), [{ key: "slots", value: 1 }]);
    await apply(store, ending("b", 1));
    assert.deepEqual(await store.counters(""), []);
  }),

  storeCase("I18 a slot taken in the commit that ends the run is free after it", async ({ store }) => {
    await apply(store, { ...creation("r", { claimed: true }), counters: [slot(1)] });
    await apply(store, { ...ending("r", 1), counters: [slot(1)] });
    assert.deepEqual(await store.counters(""), []);
  }),

  storeCase("I18 nothing a purged run once held is given back by a later one", async ({ store, clock }) => {
    await apply(store, { ...creation("other", { claimed: true }), counters: [slot(1)] });
    await apply(store, { ...creation("old", { claimed: true }), counters: [slot(1)] });
    await apply(store, ending("old", 1));
    clock.advance(1);
    assert.equal(await store.purge({ succeededBefore: clock.now(), failedBefore: 0, limit: 1 }), 1);
    await apply(store, creation("new", { claimed: true }));
    await apply(store, ending("new", 1));
    assert.deepEqual(await store.counters(""), [{ key: "slots", value: 1 }]);
  }),

  storeCase("I18 a worker's death frees no slot: its runs go on", async ({ store }) => {
    await apply(store, { ...creation("r", { claimed: true }), counters: [slot(1)] });
    await store.fence({ workers: ["w1"] });
    assert.deepEqual(await store.counters(""), [{ key: "slots", value: 1 }]);
  }),

  storeCase(
    "X-13 I26 a limit that was raised holds for all who are bounded by it, and is never lowered",
    async ({ store }) => {
      const of = "root";
      const reserve = (by: number): CounterChange => ({
        key: "usd",
        of,
        by,
        max: 10,
        maxFrom: "usd/limit",
        held: false,
      });
      const raise = (by: number): CounterChange => ({
        key: "usd/limit",
        of,
        by,
        max: null,
        held: false,
        atLeast: true,
      });
      for (const run of ["root", "a"]) await apply(store, creation(run, { claimed: true }));
      await apply(store, { ...appending("a", 1), counters: [reserve(8)] });
      const [refused] = await commitAll(store, { ...appending("a", 2), counters: [reserve(2), reserve(3)] });
      assert.deepEqual(refused, { run: "a", kind: "refused", why: "counter", key: "usd", at: 1, value: 10, max: 10 });
      // The raise counts for what follows it in the same part already.
      await apply(store, { ...appending("a", 2), counters: [raise(20), reserve(12)] });
      await apply(store, { ...appending("root", 1), counters: [raise(15)] });
      const [beyond] = await commitAll(store, { ...appending("root", 2), counters: [reserve(1)] });
      assert.deepEqual(beyond, { run: "root", kind: "refused", why: "counter", key: "usd", at: 0, value: 20, max: 20 });
      assert.deepEqual(await store.counters(countersOf(of)), [
        { key: "of/root/usd", value: 20 },
        { key: "of/root/usd/limit", value: 20 },
      ]);
    },
  ),

  storeCase("X-13 a counter that is raised to a value is refused where that is past its limit", async ({ store }) => {
    const elapsed = (by: number): CounterChange => ({ key: "time", of: "r", by, max: 100, held: false, atLeast: true });
    await apply(store, { ...creation("r", { claimed: true }), counters: [elapsed(40)] });
    await apply(store, { ...appending("r", 1), counters: [elapsed(30)] });
    assert.deepEqual(await store.counters("of/r/"), [{ key: "of/r/time", value: 40 }]);
    const [late] = await commitAll(store, { ...appending("r", 2), counters: [elapsed(101)] });
    assert.deepEqual(late, { run: "r", kind: "refused", why: "counter", key: "time", at: 0, value: 40, max: 100 });
    assert.deepEqual(await store.counters("of/r/"), [{ key: "of/r/time", value: 40 }]);
  }),

  storeCase(
    "X-13 a run's counters outlive its end and go with it, and nothing is counted for it after",
    async (given) => {
      const { store, clock } = given;
      const spend = (of: string, changes: Partial<CounterChange> = {}): CounterChange => ({
        ...{ key: "usd", of, by: 3, max: 4, held: false },
        ...changes,
      });
      await apply(store, { ...creation("r", { claimed: true }), counters: [spend("r")] });
      await apply(store, { ...creation("r0", { claimed: true }), counters: [spend("r0")] });
      await apply(store, {
        ...creation("child", { claimed: true }),
        counters: [spend("r", { key: "held", held: true })],
      });
      await apply(store, ending("r", 1));
      assert.deepEqual(await store.counters("of/r/"), [
        { key: "of/r/held", value: 3 },
        { key: "of/r/usd", value: 3 },
      ]);
      clock.advance(1);
      assert.equal(await store.purge({ succeededBefore: clock.now(), failedBefore: 0, limit: 9 }), 1);
      assert.deepEqual(await store.counters("of/"), [{ key: "of/r0/usd", value: 3 }]);
      // More than the limit, and less than nothing: the run that it would count for is gone.
      const counters = [spend("r", { by: 9 }), spend("r", { by: -1, max: null }), spend("r", { by: 9, held: true })];
      await apply(store, { ...appending("child", 1), counters });
      await apply(store, ending("child", 2));
      assert.deepEqual(await store.counters("of/"), [{ key: "of/r0/usd", value: 3 }]);
    },
  ),

  storeCase("budgets in fractions add up, and counters are listed by prefix in order", async ({ store }) => {
    const count = (key: string, by: number) => slot(by, { key, max: null, held: false });
    await apply(store, {
      ...creation("r", { claimed: true }),
      counters: [
        count("b:usd", 0.25),
        count("b:usd", 0.5),
        count("a", 1),
        count("b", 2),
        count("b%", 3),
        count("bé", 4),
      ],
    });
    assert.deepEqual(await store.counters("b"), [
      { key: "b", value: 2 },
      { key: "b%", value: 3 },
      { key: "b:usd", value: 0.75 },
      { key: "bé", value: 4 },
    ]);
    assert.deepEqual(await store.counters("b%"), [{ key: "b%", value: 3 }]);
    assert.deepEqual(await store.counters("none"), []);
  }),
];
