import assert from "node:assert/strict";
import {
  appending,
  apply,
  cancel,
  claimIds,
  creation,
  ending,
  headOf,
  newWorker,
  oneMachineCase,
  rowOf,
  type StoreCase,
  signal,
  storeCase,
  suspending,
} from "./case.ts";

const rebooted = { ...newWorker("w").process, boot: "boot-2" };

export const workerCases: readonly StoreCase[] = [
  storeCase("P32 workers are listed as they registered, with what is left of their lease", async (opened) => {
    const { store, clock, leaseClock } = opened;
    const handles = [{ workflow: "a", version: "1.0.0" }];
    clock.advance(5);
    await store.register(newWorker("w2", { leaseMs: 7000, handles }));
    leaseClock.advance(1000);
    assert.deepEqual(await store.workers(), [
      { ...newWorker("w1"), startedAt: clock.now() - 5, leaseLeftMs: 14_000 },
      { ...newWorker("w2", { leaseMs: 7000, handles }), startedAt: clock.now(), leaseLeftMs: 6000 },
    ]);
  }),

  storeCase(
    "P32 owners are listed by id with how many runs each has, whoever has none or is gone left out",
    async ({ store }) => {
      assert.deepEqual(await store.owners(), []);
      for (const id of ["w3", "w2", "W4"]) await store.register(newWorker(id));
      for (const id of ["a", "b", "c"]) await apply(store, creation(id, { claimed: true }));
      await apply(store, creation("free"));
      assert.deepEqual(await store.owners(), [{ worker: "w1", runs: 3 }]);
      await claimIds(store, { worker: "w3" });
      await apply(store, suspending("a", 1));
      await apply(store, ending("b", 1));
      await apply(store, creation("d"));
      await claimIds(store, { worker: "W4" });
      assert.deepEqual(await store.owners(), [
        { worker: "W4", runs: 1 },
        { worker: "w1", runs: 1 },
        { worker: "w3", runs: 1 },
      ]);
      await store.fence({ workers: ["w3"], successor: newWorker("w5") });
      await store.fence({ workers: ["w1"] });
      assert.deepEqual(await store.owners(), [
        { worker: "W4", runs: 1 },
        { worker: "w5", runs: 1 },
      ]);
    },
  ),

  storeCase(
    "P29 B33 a heartbeat renews the lease, counted on the lease clock alone",
    async ({ store, clock, leaseClock }) => {
      await store.register(newWorker("w2"));
      leaseClock.advance(20_000);
      clock.step(-86_400_000);
      assert.deepEqual(await store.heartbeat("w1"), { alive: true, others: 1 });
      const left = (await store.workers()).map(({ id, leaseLeftMs }) => [id, leaseLeftMs]);
      assert.deepEqual(left.sort(), [
        ["w1", 15_000],
        ["w2", -5000],
      ]);
    },
  ),

  oneMachineCase("P29 a worker of another boot is dead, whatever its lease says", async ({ store }) => {
    await store.register(newWorker("w2", { process: rebooted }));
    const [first, second] = await store.workers();
    assert.ok((first?.leaseLeftMs ?? 0) < -1e12);
    assert.equal(second?.leaseLeftMs, 15_000);
  }),

  oneMachineCase("P29 boot times that differ by a set clock are one boot", async ({ store }) => {
    const process = (boot: string) => ({ ...rebooted, boot });
    await store.register(newWorker("w2", { process: process("t:1000000") }));
    await store.register(newWorker("w3", { process: process("t:1000090") }));
    const left = new Map((await store.workers()).map(({ id, leaseLeftMs }) => [id, leaseLeftMs]));
    assert.equal(left.get("w2"), 15_000);
    await store.register(newWorker("w4", { process: process("t:1000300") }));
    const later = new Map((await store.workers()).map(({ id, leaseLeftMs }) => [id, leaseLeftMs]));
    assert.ok((later.get("w2") ?? 0) < -1e12);
  }),

  storeCase(
    "I8 P21 ST1 a fenced worker writes nothing: commit, heartbeat, claim, take and retire all fail",
    async ({ store }) => {
      await store.register(newWorker("w2"));
      await apply(store, creation("r", { claimed: true }), creation("s", { claimed: true }));
      await apply(store, appending("r", 1));
      await store.fence({ workers: ["w1"] });
      assert.deepEqual(await claimIds(store, { worker: "w2", limit: 1, suspect: true }), ["r"]);
      const verdicts = await store.commit({ worker: "w1", runs: [appending("r", 2), ending("s", 1), creation("new")] });
      assert.deepEqual(
        verdicts,
        ["r", "s", "new"].map((run) => ({ run, kind: "refused", why: "fenced" })),
      );
      assert.deepEqual(await store.heartbeat("w1"), { alive: false, others: 1 });
      assert.deepEqual(await claimIds(store), []);
      assert.equal(await store.take("w1", "s"), null);
      await store.retire("w1");
      assert.equal((await rowOf(store, "r")).owner, "w2");
      assert.deepEqual([await headOf(store, "r"), await headOf(store, "s"), await store.run("new")], [2, 1, null]);
    },
  ),

  storeCase("B20 nothing a stalled worker does touches what its replacement owns", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    await store.fence({ workers: ["w1"] });
    await store.register(newWorker("w2", { name: newWorker("w1").name }));
    await claimIds(store, { worker: "w2", suspect: true });
    const before = await rowOf(store, "r");
    await store.heartbeat("w1");
    await store.retire("w1");
    await store.fence({ workers: ["w1"] });
    await store.commit({ worker: "w1", runs: [suspending("r", 1)] });
    assert.deepEqual(await store.run("r"), before);
    assert.deepEqual(
      (await store.workers()).map(({ id }) => id),
      ["w2"],
    );
  }),

  storeCase("I8 an id that was fenced and comes back owns nothing of what it had", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    await apply(store, appending("r", 1));
    await store.fence({ workers: ["w1"] });
    await store.register(newWorker("w1"));
    const verdicts = await store.commit({ worker: "w1", runs: [appending("r", 2)] });
    assert.deepEqual(verdicts, [{ run: "r", kind: "conflict", head: 2 }]);
  }),

  storeCase("P20 B15 fencing releases the runs of exactly the named incarnations", async ({ store, clock }) => {
    await store.register(newWorker("w2", { name: newWorker("w1").name }));
    await apply(
      store,
      creation("a", { claimed: true }),
      creation("b", { claimed: true }),
      creation("free", { readyAt: 7 }),
    );
    await store.commit({ worker: "w2", runs: [creation("c", { claimed: true })] });
    clock.advance(5);
    assert.deepEqual(await store.fence({ workers: ["w1", "w1", "never was"] }), { moved: [], released: 2 });
    const rows = await store.runs({ limit: 9 });
    assert.deepEqual(
      rows.map(({ id, owner, readyAt, state }) => [id, owner, readyAt, state]),
      [
        ["c", "w2", null, "running"],
        ["free", null, 7, "accepted"],
        ["b", null, clock.now(), "running"],
        ["a", null, clock.now(), "running"],
      ],
    );
    assert.deepEqual(
      (await store.workers()).map(({ id }) => id),
      ["w2"],
    );
  }),

  storeCase("B2 I8 of two who fence by the same list, the second releases nothing", async ({ store }) => {
    for (const id of ["w2", "w3"]) await store.register(newWorker(id));
    await apply(store, creation("r", { claimed: true }), creation("s", { claimed: true }));
    const list = (await store.workers()).filter(({ id }) => id === "w1").map(({ id }) => id);
    assert.deepEqual(await store.fence({ workers: list }), { moved: [], released: 2 });
    assert.deepEqual(await claimIds(store, { worker: "w2", limit: 1, suspect: true }), ["r"]);
    const [first, free] = [await rowOf(store, "r"), await rowOf(store, "s")];
    assert.deepEqual(await store.fence({ workers: list }), { moved: [], released: 0 });
    assert.deepEqual([await rowOf(store, "r"), await rowOf(store, "s")], [first, free]);
    assert.equal(await store.take("w3", "r"), null);
    assert.deepEqual(await store.fence({ workers: list, successor: newWorker("w4") }), { moved: [], released: 0 });
    assert.deepEqual(await store.commit({ worker: "w2", runs: [appending("r", 1)] }), [{ run: "r", kind: "applied" }]);
  }),

  storeCase(
    "I9 B18 who was found silent and has renewed its lease since is not fenced",
    async ({ store, leaseClock }) => {
      await store.register(newWorker("w2"));
      await apply(store, creation("r", { claimed: true }));
      leaseClock.advance(15_001);
      assert.deepEqual(
        (await store.workers()).map(({ leaseLeftMs }) => leaseLeftMs),
        [-1, -1],
      );
      await store.heartbeat("w1");
      const workers = ["w1", "w2", "never was"];
      assert.deepEqual(await store.fence({ workers, ifExpired: true }), { moved: [], released: 0 });
      assert.deepEqual(
        (await store.workers()).map(({ id }) => id),
        ["w1"],
      );
      await apply(store, appending("r", 1));
      leaseClock.advance(15_001);
      assert.deepEqual(await store.fence({ workers, ifExpired: true }), { moved: [], released: 1 });
    },
  ),

  storeCase("P17 fencing oneself moves the runs, with what replaces the memory of them", async ({ store }) => {
    await store.register(newWorker("w0"));
    await store.commit({ worker: "w0", runs: [creation("a", { claimed: true })] });
    await apply(store, creation("b", { claimed: true }), creation("c", { claimed: true }));
    await apply(store, appending("b", 1), ending("c", 1));
    await store.deliver(signal("b", "m"));
    await store.deliver(cancel("a", "stop"));
    const reply = await store.fence({ workers: ["w0", "w1"], successor: newWorker("w2") });
    assert.equal(reply.released, 0);
    assert.deepEqual(
      reply.moved.map(({ run, head, wake, cancel, inbox }) => [run, head, wake, cancel, inbox.map(({ id }) => id)]),
      [
        ["a", 1, 1, "stop", []],
        ["b", 2, 1, null, ["m"]],
      ],
    );
    const { owner, claims, state } = await rowOf(store, "b");
    assert.deepEqual([owner, claims, state], ["w2", 1, "running"]);
    assert.deepEqual(
      (await store.workers()).map(({ id }) => id),
      ["w2"],
    );
    assert.deepEqual(await store.commit({ worker: "w2", runs: [appending("b", 2)] }), [{ run: "b", kind: "applied" }]);
    assert.deepEqual(await store.commit({ worker: "w1", runs: [appending("b", 3)] }), [
      { run: "b", kind: "refused", why: "fenced" },
    ]);
  }),

  storeCase("P17 a fence sent again after a lost answer finds the runs at the first successor", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    await store.fence({ workers: ["w1"], successor: newWorker("w2") });
    const reply = await store.fence({ workers: ["w1", "w2"], successor: newWorker("w3") });
    assert.deepEqual(
      reply.moved.map(({ run }) => run),
      ["r"],
    );
    assert.deepEqual(
      (await store.workers()).map(({ id }) => id),
      ["w3"],
    );
  }),

  storeCase("retiring hands the runs back at once", async ({ store, clock }) => {
    await store.register(newWorker("w2"));
    await apply(store, creation("r", { claimed: true }));
    await store.retire("w1");
    const { owner, readyAt, claims } = await rowOf(store, "r");
    assert.deepEqual([owner, readyAt, claims], [null, clock.now(), 0]);
    assert.deepEqual(
      (await store.workers()).map(({ id }) => id),
      ["w2"],
    );
    assert.deepEqual(await claimIds(store, { worker: "w2" }), ["r"]);
  }),

  storeCase("a worker that registers twice is one worker", async ({ store, leaseClock }) => {
    await apply(store, creation("r", { claimed: true }));
    leaseClock.advance(100);
    await store.register(newWorker("w1", { name: "new" }));
    const [only, ...rest] = await store.workers();
    assert.deepEqual([only?.name, only?.leaseLeftMs, rest], ["new", 15_000, []]);
    assert.deepEqual(await store.owners(), [{ worker: "w1", runs: 1 }]);
    await apply(store, appending("r", 1));
  }),
];
