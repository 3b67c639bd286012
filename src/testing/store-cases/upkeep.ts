import assert from "node:assert/strict";
import type { Store, WaitKind } from "../../core/store.ts";
import {
  appending,
  apply,
  cancel,
  claimIds,
  creation,
  ending,
  entry,
  newRun,
  newWorker,
  rowOf,
  type StoreCase,
  signal,
  storeCase,
  suspending,
} from "./case.ts";

/** A run that lets go with only this wait open. */
async function waitingFor(store: Store, run: string, kind: WaitKind, name = "n"): Promise<void> {
  await apply(store, creation(run, { claimed: true }));
  await apply(
    store,
    suspending(run, 1, { waits: [{ open: { key: `${kind}:k`, kind, name, due: null, detail: null } }] }),
  );
}

async function orphanIds(store: Store): Promise<string[]> {
  return (await store.orphans()).map(({ run }) => run);
}

export const upkeepCases: readonly StoreCase[] = [
  storeCase("P34 names the versions of runs that nobody owns and that wait for no person", async ({ store }) => {
    await apply(
      store,
      creation("a", { version: "1.10.0" }),
      creation("b", { version: "1.2.1" }),
      creation("c", { version: "1.2.0" }),
      creation("d", { version: "1.2.1", readyAt: 9e15 }),
      creation("e", { version: "1.2.1" }),
      creation("owned", { version: "3.0.0", claimed: true }),
      creation("parked", { version: "4.0.0", claimed: true }),
      creation("done", { version: "5.0.0", claimed: true }),
      creation("asleep", { version: "6.0.0", claimed: true }),
      creation("other", { workflow: "other", version: "7.0.0" }),
    );
    await apply(
      store,
      suspending("parked", 1, { row: { state: "parked", release: true } }),
      ending("done", 1),
      suspending("asleep", 1, { row: { state: "waiting", release: true, wakeAt: 9e15 } }),
    );
    const { workflow } = newRun();
    const found = await store.unclaimed({ workflows: [workflow, "nobody", workflow], limit: 2 });
    assert.deepEqual(found, [
      { workflow, version: "1.10.0", runs: ["a"] },
      { workflow, version: "1.2.0", runs: ["c"] },
      { workflow, version: "1.2.1", runs: ["b", "d"] },
      { workflow, version: "6.0.0", runs: ["asleep"] },
    ]);
    assert.deepEqual(await store.unclaimed({ workflows: [], limit: 2 }), []);
    // Also where nobody knows which workflows there are.
    const all = await store.unclaimed({ limit: 2 });
    assert.deepEqual(all, [...found, { workflow: "other", version: "7.0.0", runs: ["other"] }]);
    // A version that is changed is found under its new name.
    await claimIds(store, { handles: [{ workflow, version: "1.10.0" }] });
    await apply(store, suspending("a", 1, { row: { state: "waiting", release: true, version: "1.11.0" } }));
    const [first] = await store.unclaimed({ workflows: [workflow], limit: 1 });
    assert.deepEqual(first, { workflow, version: "1.11.0", runs: ["a"] });
  }),

  storeCase("I10 runs that are ready, due, owned, parked or finished are no orphans", async ({ store }) => {
    await apply(store, creation("ready"), creation("later", { readyAt: 9e15 }), creation("owned", { claimed: true }));
    await apply(
      store,
      creation("parked", { claimed: true }),
      creation("done", { claimed: true }),
      creation("due", { claimed: true }),
    );
    await apply(
      store,
      suspending("parked", 1, { row: { state: "parked", release: true } }),
      ending("done", 1),
      suspending("due", 1, { row: { state: "waiting", release: true, wakeAt: 9e15 } }),
    );
    assert.deepEqual(await store.orphans(), []);
  }),

  storeCase(
    "I10 a wait for something that comes from outside is a wake source; a timer without its due time is not",
    async ({ store }) => {
      for (const kind of ["signal", "approval", "decision", "slot"] as const) await waitingFor(store, kind, kind);
      for (const kind of ["timer", "retry"] as const) await waitingFor(store, kind, kind);
      await apply(store, creation("nothing", { claimed: true }));
      await apply(store, suspending("nothing", 1));
      const why = "nothing will wake it";
      assert.deepEqual(
        await store.orphans(),
        ["timer", "retry", "nothing"].map((run) => ({ run, state: "waiting", why })),
      );
    },
  ),

  storeCase(
    "I10 B8 what falls due, or the deadline, needs an alarm that comes in time, whatever else the run waits for",
    async ({ store, clock }) => {
      const due = clock.now() + 1000;
      const times = { missing: null, late: due + 1, exact: due, early: due - 1 };
      const signal = { key: "signal:go", kind: "signal" as const, name: "go", detail: null };
      const timer = { open: { key: "timer:t", kind: "timer" as const, name: "t", due, detail: null } };
      for (const [name, wakeAt] of Object.entries(times)) {
        const ids = ["timeout", "timer", "deadline"].map((why) => `${why} ${name}`) as [string, string, string];
        const deadline = (run: string) => (run.startsWith("deadline") ? due : due + 9000);
        await apply(store, ...ids.map((run) => creation(run, { claimed: true, deadline: deadline(run) })));
        const row = { state: "waiting", release: true, claims: 0, wakeAt } as const;
        await apply(
          store,
          suspending(ids[0], 1, { row, waits: [{ open: { ...signal, due } }] }),
          suspending(ids[1], 1, { row, waits: [{ open: { ...signal, due: null } }, timer] }),
          suspending(ids[2], 1, { row: { ...row, state: "retrying" }, waits: [{ open: { ...signal, due: null } }] }),
        );
      }
      const lost = [
        "timeout missing",
        "timer missing",
        "deadline missing",
        "timeout late",
        "timer late",
        "deadline late",
      ];
      const why = "its alarm is missing or too late";
      assert.deepEqual(
        (await store.orphans()).map(({ run, why }) => [run, why]),
        lost.map((run) => [run, why]),
      );
      assert.equal(await store.adopt([...lost, "timer exact", "timer early"]), lost.length);
      assert.deepEqual(await store.orphans(), []);
      assert.deepEqual((await claimIds(store, { limit: 99 })).toSorted(), lost.toSorted());
    },
  ),

  storeCase("I10 P31 a child is a wake source while it is unfinished or its message is unread", async ({ store }) => {
    const parent = { run: "p", key: "k", generation: 0, detached: false };
    await apply(store, {
      ...creation("p", { claimed: true }),
      children: [{ run: "c", create: newRun({ parent, claimed: true }), entry: entry(0, "run.started") }],
    });
    const wait = { open: { key: "child:k", kind: "child" as const, name: "c", due: null, detail: null } };
    await apply(store, suspending("p", 1, { waits: [wait] }));
    assert.deepEqual(await store.orphans(), []);
    await apply(store, { ...ending("c", 1), messages: [signal("p", "child:c", { kind: "child" })] });
    assert.deepEqual(await store.orphans(), []);
    assert.deepEqual(await claimIds(store), ["p"]);
    await apply(store, suspending("p", 1));
    assert.deepEqual(await store.orphans(), []);
    await store.take("w1", "p");
    await apply(store, suspending("p", 1, { consumes: ["child:c"] }));
    assert.deepEqual(await orphanIds(store), ["p"]);
  }),

  storeCase("I10 a run whose child never was is an orphan", async ({ store }) => {
    await waitingFor(store, "p", "child", "never was");
    assert.deepEqual(await orphanIds(store), ["p"]);
  }),

  storeCase("B18 only what is still an orphan is adopted", async ({ store, clock }) => {
    for (const run of ["a", "b", "c", "d"]) await waitingFor(store, run, "timer");
    const list = await orphanIds(store);
    await store.deliver(signal("b", "m"));
    await store.take("w1", "c");
    await store.take("w1", "d");
    await apply(store, ending("d", 1));
    clock.advance(5);
    assert.equal(await store.adopt([...list, "nobody"]), 1);
    assert.deepEqual((await rowOf(store, "a")).readyAt, clock.now());
    assert.deepEqual((await rowOf(store, "b")).readyAt, clock.now() - 5);
    assert.equal((await rowOf(store, "c")).owner, "w1");
    assert.equal((await rowOf(store, "d")).state, "succeeded");
    assert.equal(await store.adopt(list), 0);
  }),

  storeCase(
    "P32 P36 purge takes finished runs by age, the oldest first, and at most so many",
    async ({ store, clock }) => {
      const start = clock.now();
      for (const [run, state] of [
        ["s1", "succeeded"],
        ["f1", "failed"],
        ["s2", "succeeded"],
        ["c1", "cancelled"],
      ] as const) {
        clock.advance(10);
        await apply(store, creation(run, { claimed: true }));
        await apply(store, ending(run, 1, state));
      }
      await apply(store, creation("open", { claimed: true }));
      const ids = async () => (await store.runs({ limit: 9 })).map(({ id }) => id);
      const purge = (succeeded: number, failed: number, limit: number) =>
        store.purge({ succeededBefore: start + succeeded, failedBefore: start + failed, limit });
      assert.equal(await purge(10, 10, 9), 0);
      assert.equal((await purge(0, 20, 9)) + (await purge(10, 1e9, 0)), 0);
      assert.equal(await purge(31, 0, 1), 1);
      assert.deepEqual(await ids(), ["open", "c1", "s2", "f1"]);
      assert.equal(await purge(0, 41, 1), 1);
      assert.deepEqual(await ids(), ["open", "c1", "s2"]);
      assert.equal(await purge(1e9, 40, 9), 1);
      assert.deepEqual(await ids(), ["open", "c1"]);
      assert.equal(await purge(1e9, 1e9, 9), 1);
      assert.deepEqual(await ids(), ["open"]);
    },
  ),

  storeCase(
    "P32 purge takes everything that belongs to a run, so that its id is free again",
    async ({ store, clock }) => {
      const first = creation("r", { claimed: true, tags: ["t"] });
      await apply(store, { ...first, state: [{ key: "s", data: "1" }], keys: [{ space: "a", key: "k", digest: "d" }] });
      await store.deliver(signal("r", "m"));
      await apply(store, ending("r", 1));
      clock.advance(1);
      assert.equal(await store.purge({ succeededBefore: clock.now(), failedBefore: 0, limit: 1 }), 1);
      assert.deepEqual([await store.run("r"), await store.journal("r"), await store.state("r")], [null, [], []]);
      assert.equal(await store.key("a", "k"), null);
      assert.deepEqual(await store.runs({ tag: "t", limit: 9 }), []);
      await apply(store, creation("r", { claimed: true }));
      assert.deepEqual(
        [(await store.journal("r")).length, await store.state("r"), await store.inbox("r")],
        [1, [], []],
      );
      assert.equal(await store.key("a", "k"), null);
      assert.equal(await store.deliver(signal("r", "m")), "delivered");
    },
  ),

  storeCase("I28 runs are listed newest first, page by page, without a gap or a repetition", async ({ store }) => {
    for (let i = 0; i < 7; i++) await apply(store, creation(`r${i}`));
    const pages: string[][] = [];
    let before: string | undefined;
    do {
      const page = await store.runs(before === undefined ? { limit: 3 } : { limit: 3, before });
      pages.push(page.map(({ id }) => id));
      before = page.length === 3 ? page.at(-1)?.id : undefined;
      await apply(store, creation(`new${pages.length}`));
    } while (before !== undefined);
    assert.deepEqual(pages, [["r6", "r5", "r4"], ["r3", "r2", "r1"], ["r0"]]);
    await assert.rejects(store.runs({ limit: 3, before: "nobody" }), { code: "run_not_found" });
  }),

  storeCase(
    "runs are found by workflow, state, tag, parent and time, and by all of them together",
    async ({ store, clock }) => {
      const t0 = clock.now();
      const parent = { run: "p", key: "k", generation: 0, detached: true };
      const runs = {
        a: { tags: ["x", "y"] },
        b: { workflow: "invoice", tags: ["x"] },
        c: { parent },
        d: { tags: ["x"], parent },
      };
      for (const [run, changes] of Object.entries(runs)) {
        clock.advance(10);
        await apply(store, creation(run, { claimed: true, ...changes }));
      }
      await apply(store, ending("a", 1), ending("b", 1, "failed"), suspending("c", 1));
      const find = async (query: Omit<Parameters<Store["runs"]>[0], "limit">) =>
        (await store.runs({ limit: 9, ...query })).map(({ id }) => id).join("");
      assert.equal(await find({}), "dcba");
      assert.equal(await find({ workflow: "order" }), "dca");
      assert.equal(await find({ states: ["succeeded"] }), "a");
      assert.equal(await find({ states: ["succeeded", "running", "failed", "failed"] }), "dba");
      assert.equal(await find({ states: [] }), "");
      assert.equal(await find({ tag: "x" }), "dba");
      assert.equal(await find({ tag: "none" }), "");
      assert.equal(await find({ parent: "p" }), "dc");
      assert.equal(await find({ createdAfter: t0 + 10 }), "dcb");
      assert.equal(await find({ createdBefore: t0 + 30 }), "ba");
      assert.equal(await find({ workflow: "order", states: ["running", "waiting"], parent: "p", tag: "x" }), "d");
      assert.equal(await find({ before: "c", states: ["failed", "succeeded"] }), "ba");
    },
  ),

  storeCase("P32 waits are listed by run, kind and name", async ({ store }) => {
    for (const kind of ["signal", "approval", "decision"] as const) await waitingFor(store, kind, kind);
    const kinds = async (query: Parameters<Store["waits"]>[0]) => (await store.waits(query)).map(({ kind }) => kind);
    assert.deepEqual(await kinds({}), ["signal", "approval", "decision"]);
    assert.deepEqual(await kinds({ kind: "approval" }), ["approval"]);
    assert.deepEqual(await kinds({ kind: "signal" }), ["signal"]);
    assert.deepEqual(await kinds({ run: "decision" }), ["decision"]);
    assert.deepEqual(await kinds({ run: "decision", kind: "signal" }), []);
    assert.deepEqual(await kinds({ limit: 2 }), ["signal", "approval"]);
    await waitingFor(store, "named", "signal", "go");
    assert.deepEqual(await kinds({ name: "go" }), ["signal"]);
    assert.deepEqual(await kinds({ name: "nobody's" }), []);
  }),

  storeCase("P32 waits are read page by page, whatever is opened and closed meanwhile", async ({ store }) => {
    for (const id of ["b", "a", "c"]) await waitingFor(store, id, "approval");
    const [first] = await store.waits({ limit: 1 });
    assert.equal(first?.run, "b");
    const rest = async () =>
      (await store.waits({ kind: "approval", ...(first && { after: first }) })).map(({ run }) => run);
    assert.deepEqual(await rest(), ["a", "c"]);
    await waitingFor(store, "d", "approval");
    assert.deepEqual(await rest(), ["a", "c", "d"]);
    assert.deepEqual(await store.waits({ after: { run: "gone", key: "x" } }), []);
  }),

  storeCase("what is not there reads as absent", async ({ store }) => {
    assert.deepEqual([await store.run("x"), await store.inbox("x"), await store.nextWake()], [null, [], null]);
    assert.deepEqual([await store.runs({ limit: 9 }), await store.waits({}), await store.orphans()], [[], [], []]);
    assert.deepEqual([await store.adopt([]), await store.counters("")], [0, []]);
  }),

  storeCase("P32 a store describes itself, and a listener can be taken away", async ({ store }) => {
    const report = await store.inspect();
    assert.ok(report.store.length > 0 && report.schema >= 1);
    assert.deepEqual(report.faults, []);
    const forget = store.hints(() => {});
    forget();
    forget();
  }),

  storeCase("I10 I8 a cancelled run whose owner dies is claimable again, and only by one", async ({ store }) => {
    await waitingFor(store, "r", "signal");
    await store.deliver(cancel("r"));
    await store.deliver(signal("r", "m"));
    await claimIds(store);
    await store.fence({ workers: ["w1"] });
    assert.deepEqual(await store.orphans(), []);
    assert.ok((await rowOf(store, "r")).readyAt !== null);
    await store.register(newWorker("w2"));
    await store.register(newWorker("w1"));
    assert.deepEqual(await claimIds(store, { worker: "w2", suspect: true }), ["r"]);
    assert.deepEqual(
      (await store.commit({ worker: "w1", runs: [appending("r", 1)] })).map(({ kind }) => kind),
      ["conflict"],
    );
  }),
];
