import assert from "node:assert/strict";
import type { RunCommit, Verdict } from "../../core/store.ts";
import {
  appending,
  apply,
  commitAll,
  creation,
  ending,
  endingWhole,
  entry,
  headOf,
  newRun,
  newWorker,
  rowOf,
  type StoreCase,
  signal,
  storeCase,
  suspending,
} from "./case.ts";

const kinds = (verdicts: readonly Verdict[]) => verdicts.map(({ kind }) => kind);

export const commitCases: readonly StoreCase[] = [
  storeCase("I3 entries come back as they were written, in order", async ({ store }) => {
    const bytes = new Uint8Array([0, 1, 255]);
    const entries = [
      entry(0, "run.started", { data: '{"input":"ünï\\u0000 \u{1f600}"}', key: null }),
      entry(1, "step.started", { key: "a#2" }),
      entry(2, "step.completed", { key: "a#2", data: bytes }),
    ];
    await apply(store, { run: "r", head: 0, entries, create: newRun({ claimed: true }) });
    assert.deepEqual(await store.journal("r"), entries);
    assert.deepEqual(await store.journal("r", { from: 1, limit: 1 }), [entries[1]]);
    assert.deepEqual(await store.journal("r", { from: 3 }), []);
    assert.deepEqual(await store.journal("nobody"), []);
  }),

  storeCase("I3 what a store holds cannot be changed through what it was given or gave", async ({ store }) => {
    const data = new Uint8Array([1]);
    const tags = ["a"];
    await apply(store, { ...creation("r", { tags, claimed: true }), entries: [entry(0, "run.started", { data })] });
    data[0] = 9;
    tags.push("b");
    ((await store.journal("r"))[0]?.data as Uint8Array)[0] = 9;
    assert.deepEqual((await store.journal("r"))[0]?.data, new Uint8Array([1]));
    assert.deepEqual((await rowOf(store, "r")).tags, ["a"]);
  }),

  storeCase("a new run that nobody took is accepted and claimable", async ({ store, clock }) => {
    const create = newRun({
      key: "k",
      tags: ["t2", "t1"],
      priority: 3,
      parent: { run: "p", key: "c", generation: 2, detached: true },
      origin: "o",
      deadline: 99,
      readyAt: clock.now() - 5,
    });
    const verdicts = await store.commit({ worker: null, runs: [{ ...creation("r"), create }] });
    assert.deepEqual(verdicts, [{ run: "r", kind: "applied" }]);
    const { claimed: _claimed, ...kept } = create;
    assert.deepEqual(await store.run("r"), {
      ...kept,
      slot: null,
      rate: null,
      id: "r",
      state: "accepted",
      createdAt: clock.now(),
      endedAt: null,
      head: 1,
      headHash: "hash-0",
      owner: null,
      wakeAt: null,
      wake: 0,
      cancel: null,
      claims: 0,
      stopReason: null,
      progress: null,
      cost: null,
    });
  }),

  storeCase("a run taken on the spot belongs to its creator from its first entry on", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    const { state, owner, readyAt, wakeAt, claims } = await rowOf(store, "r");
    assert.deepEqual(
      { state, owner, readyAt, wakeAt, claims },
      { state: "running", owner: "w1", readyAt: null, wakeAt: null, claims: 1 },
    );
    await apply(store, appending("r", 1, 2));
    assert.equal(await headOf(store, "r"), 3);
  }),

  storeCase("without a worker nothing but new runs can be written", async ({ store }) => {
    await apply(store, creation("mine", { claimed: true }));
    const verdicts = await store.commit({
      worker: null,
      runs: [appending("mine", 1), creation("new", { claimed: true })],
    });
    assert.deepEqual(verdicts, [
      { run: "mine", kind: "conflict", head: 1 },
      { run: "new", kind: "applied" },
    ]);
    assert.equal((await rowOf(store, "new")).owner, null);
  }),

  storeCase(
    "P15 ST2 a position is written once: an old head, a gap and a repeated commit conflict",
    async ({ store }) => {
      await apply(store, creation("r", { claimed: true }));
      await apply(store, appending("r", 1, 2));
      const conflict = { run: "r", kind: "conflict", head: 3 };
      for (const head of [0, 1, 2, 4]) assert.deepEqual(await commitAll(store, appending("r", head)), [conflict]);
      assert.deepEqual(await commitAll(store, { run: "r", head: 2, entries: [], row: { state: "retrying" } }), [
        conflict,
      ]);
      assert.equal((await rowOf(store, "r")).state, "running");
      assert.equal(await headOf(store, "r"), 3);
    },
  ),

  storeCase(
    "I2 B30 a commit sent again after a lost answer conflicts at the head it had reached",
    async ({ store }) => {
      await apply(store, creation("r", { claimed: true }));
      const part = appending("r", 1, 2);
      await apply(store, part);
      assert.deepEqual(await commitAll(store, part), [{ run: "r", kind: "conflict", head: 3 }]);
      assert.equal(await headOf(store, "r"), 3);
    },
  ),

  storeCase("a run that is not this worker's conflicts", async ({ store }) => {
    await store.register(newWorker("w2"));
    await apply(store, creation("free"), creation("r", { claimed: true }));
    assert.deepEqual(await commitAll(store, appending("free", 1), appending("nobody", 0)), [
      { run: "free", kind: "conflict", head: 1 },
      { run: "nobody", kind: "conflict", head: 0 },
    ]);
    const verdicts = await store.commit({ worker: "w2", runs: [appending("r", 1)] });
    assert.deepEqual(verdicts, [{ run: "r", kind: "conflict", head: 1 }]);
  }),

  storeCase("two commits of one run in one batch follow each other", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }), appending("r", 1), appending("r", 2));
    assert.deepEqual(kinds(await commitAll(store, appending("r", 3), appending("r", 3))), ["applied", "conflict"]);
    assert.equal(await headOf(store, "r"), 4);
  }),

  storeCase("P16 ST3 a refused run leaves no trace, and its neighbours are applied", async ({ store }) => {
    await apply(
      store,
      creation("a", { claimed: true }),
      creation("b", { claimed: true }),
      creation("c", { claimed: true }),
    );
    const bad: RunCommit = {
      ...appending("b", 7),
      row: { state: "retrying", progress: "half" },
      waits: [{ open: { key: "k", kind: "signal", name: "paid", due: null, detail: null } }],
      state: [{ key: "s", data: "1" }],
      keys: [{ space: "start", key: "k", digest: "d" }],
      counters: [{ key: "slots", by: 1, max: null, held: true }],
      children: [{ run: "child", create: newRun(), entry: entry(0, "run.started") }],
      messages: [signal("a", "m")],
    };
    assert.deepEqual(kinds(await commitAll(store, appending("a", 1), bad, appending("c", 1))), [
      "applied",
      "conflict",
      "applied",
    ]);
    assert.deepEqual([await headOf(store, "a"), await headOf(store, "b"), await headOf(store, "c")], [2, 1, 2]);
    assert.deepEqual(await store.waits({}), []);
    assert.deepEqual(await store.state("b"), []);
    assert.equal(await store.key("start", "k"), null);
    assert.deepEqual(await store.counters(""), []);
    assert.equal(await store.run("child"), null);
    assert.deepEqual(await store.inbox("a"), []);
    assert.equal((await rowOf(store, "b")).progress, null);
  }),

  storeCase("P16 a part that no store can keep fails alone, with its error", async ({ store }) => {
    await apply(store, creation("a", { claimed: true }), creation("b", { claimed: true }));
    const parts: RunCommit[] = [
      { run: "b", head: 1, entries: [entry(2)] },
      { run: "b", head: 1, entries: [entry(1, "step.started", { key: "nul\0" })] },
      { run: "b", head: 1, entries: [entry(1, "step.completed", { data: "half \ud800" })] },
      { ...appending("b", 1), counters: [{ key: "c", by: Number.NaN, max: null, held: false }] },
      { ...appending("b", 1), messages: [signal("a", "nul\0")] },
      creation("nul\0"),
      { ...creation("late"), head: 1, entries: [entry(1, "run.started")] },
      creation("odd", { version: "one" }),
    ];
    let head = 1;
    for (const part of parts) {
      const [before, failed, after] = await commitAll(store, appending("a", head), part, appending("a", head + 1));
      assert.deepEqual([before?.kind, failed?.kind, after?.kind], ["applied", "failed", "applied"]);
      assert.ok(failed?.kind === "failed" && failed.error instanceof Error);
      head += 2;
    }
    assert.equal(await headOf(store, "b"), 1);
    assert.equal(await headOf(store, "a"), head);
    assert.deepEqual(await store.inbox("a"), []);
    assert.deepEqual(
      (await store.runs({ limit: 9 })).map(({ id }) => id),
      ["b", "a"],
    );
  }),

  storeCase("B64 ids that one driver would cut off or change are refused everywhere", async ({ store }) => {
    await apply(store, creation("r"));
    const refused = { code: "invalid_argument" };
    await assert.rejects(store.run("r\0x"), refused);
    await assert.rejects(store.deliver(signal("r", "id\0x")), refused);
    await assert.rejects(store.deliver(signal("r", "id", { data: "\udc00" })), refused);
    await assert.rejects(store.journal("r\0"), refused);
    await assert.rejects(store.key("start", "k\0"), refused);
    assert.deepEqual(await store.inbox("r"), []);
  }),

  storeCase("a patch changes the columns it names and no others", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    const before = await rowOf(store, "r");
    const patch = {
      state: "waiting",
      version: "1.0.3",
      head: 5,
      headHash: "h",
      wakeAt: 77,
      claims: 4,
      progress: "p",
      cost: "c",
    } as const;
    await apply(store, appending("r", 1, 1, { row: patch }));
    assert.deepEqual(await store.run("r"), { ...before, ...patch });
    await apply(store, {
      run: "r",
      head: 2,
      entries: [],
      row: { release: true, readyAt: 5, wakeAt: null, stopReason: "s" },
    });
    assert.deepEqual(await store.run("r"), {
      ...before,
      ...patch,
      owner: null,
      readyAt: 5,
      wakeAt: null,
      stopReason: "s",
    });
  }),

  storeCase(
    "I16 a finished run never changes: no commit, no claim, no message reaches it",
    async ({ store, clock }) => {
      await apply(store, creation("r", { claimed: true }));
      clock.advance(10);
      await apply(store, ending("r", 1));
      const before = await rowOf(store, "r");
      assert.deepEqual([before.state, before.owner, before.endedAt], ["succeeded", null, clock.now()]);
      assert.deepEqual(await commitAll(store, appending("r", 2)), [{ run: "r", kind: "conflict", head: 2 }]);
      assert.deepEqual(kinds(await commitAll(store, ending("r", 2, "failed"))), ["conflict"]);
      assert.equal(await store.take("w1", "r"), null);
      assert.equal(await store.deliver(signal("r", "m")), "ended");
      assert.equal(await store.adopt(["r"]), 0);
      assert.deepEqual(await store.run("r"), before);
    },
  ),

  storeCase("B13 the end closes what only an unfinished run has", async ({ store, clock }) => {
    await apply(store, {
      ...creation("r", { claimed: true }),
      waits: [{ open: { key: "k", kind: "signal", name: "paid", due: null, detail: null } }],
      state: [{ key: "s", data: "1" }],
    });
    await store.deliver(signal("r", "m"));
    await apply(store, { run: "r", head: 1, entries: [], row: { readyAt: 3, wakeAt: 4 } });
    await apply(store, {
      ...ending("r", 1, "failed"),
      row: { state: "failed", ended: true, endedAt: 55, stopReason: "boom" },
    });
    const { owner, readyAt, wakeAt, endedAt, stopReason } = await rowOf(store, "r");
    assert.deepEqual([owner, readyAt, wakeAt, endedAt, stopReason], [null, null, null, 55, "boom"]);
    assert.deepEqual(await store.waits({}), []);
    assert.deepEqual(await store.inbox("r"), []);
    assert.equal((await store.state("r")).length, 1);
    clock.advance(1e9);
    assert.deepEqual(
      await store.claim({ worker: "w1", handles: newWorker("w1").handles, limit: 9, suspect: true }),
      [],
    );
  }),

  storeCase("B13 I18 an end that names its whole row closes as much, whatever the run had before", async (opened) => {
    const { store, clock } = opened;
    const had: Readonly<Record<string, Partial<RunCommit>>> = {
      nothing: {},
      times: { row: { readyAt: 3, wakeAt: 4 } },
      waits: { waits: [{ open: { key: "k", kind: "signal", name: "paid", due: null, detail: null } }] },
      slots: { counters: [{ key: "slot", by: 1, max: 9, held: true }] },
      mail: { messages: [signal("mail", "m")] },
    };
    for (const [run, parts] of Object.entries(had)) {
      await apply(store, creation(run, { claimed: true }));
      await apply(store, { ...appending(run, 1), ...parts });
      await apply(store, { ...endingWhole(run, 2), ifNotCancelled: true });
      const { state, owner, head, readyAt, wakeAt, endedAt, stopReason } = await rowOf(store, run);
      assert.deepEqual([state, owner, head, endedAt, stopReason], ["succeeded", null, 3, 55, "completed"], run);
      assert.deepEqual([readyAt, wakeAt, await store.inbox(run)], [null, null, []], run);
    }
    assert.deepEqual([await store.waits({}), await store.counters(""), await store.nextWake()], [[], [], null]);
    clock.advance(1e9);
    assert.deepEqual(
      await store.claim({ worker: "w1", handles: newWorker("w1").handles, limit: 9, suspect: true }),
      [],
    );
  }),

  storeCase("B12 a run may be started, cancelled and ended in one batch, in this order", async ({ store }) => {
    await apply(store, creation("p", { claimed: true }));
    const sends: RunCommit = {
      ...appending("p", 1),
      messages: [{ to: "r", id: "c", kind: "cancel", name: "", data: "stop" }],
    };
    const verdicts = await commitAll(store, creation("r", { claimed: true }), sends, {
      ...ending("r", 1),
      ifNotCancelled: true,
    });
    assert.deepEqual(
      verdicts.map((verdict) => (verdict.kind === "refused" ? verdict.why : verdict.kind)),
      ["applied", "applied", "cancel"],
    );
    assert.equal((await rowOf(store, "r")).cancel, "stop");
    assert.deepEqual(await store.orphans(), []);
  }),

  storeCase("waits open, are replaced and close by key", async ({ store }) => {
    const open = (key: string, due: number | null = null) => ({
      open: { key, kind: "timer" as const, name: "n", due, detail: "d" },
    });
    await apply(store, { ...creation("r", { claimed: true }), waits: [open("a"), open("b"), open("a", 7)] });
    const rows = await store.waits({ run: "r" });
    assert.deepEqual(
      rows.map(({ key, due }) => [key, due]),
      [
        ["a", 7],
        ["b", null],
      ],
    );
    assert.deepEqual(rows[0], { run: "r", workflow: "order", key: "a", kind: "timer", name: "n", due: 7, detail: "d" });
    await apply(store, { ...appending("r", 1), waits: [{ close: "a" }, { close: "nothing" }] });
    assert.deepEqual(
      (await store.waits({})).map(({ key }) => key),
      ["b"],
    );
    await apply(store, { ...appending("r", 2), waits: [{ closeAll: true }, open("c")] });
    assert.deepEqual(
      (await store.waits({})).map(({ key }) => key),
      ["c"],
    );
  }),

  storeCase("P32 state rows are set by key and listed in order", async ({ store }) => {
    await apply(store, {
      ...creation("r", { claimed: true }),
      state: [
        { key: "b", data: "1" },
        { key: "a", data: "2" },
      ],
    });
    await apply(store, { ...appending("r", 1), state: [{ key: "b", data: new Uint8Array([3]) }] });
    assert.deepEqual(await store.state("r"), [
      { key: "a", data: "2" },
      { key: "b", data: new Uint8Array([3]) },
    ]);
    assert.deepEqual(await store.state("nobody"), []);
  }),

  storeCase(
    "P31 a child is created with its parent's commit, once, and may be taken on the spot",
    async ({ store }) => {
      const parent = { run: "p", key: "k", generation: 0, detached: false };
      const child = (run: string, claimed: boolean) => ({
        run,
        create: newRun({ parent, claimed }),
        entry: entry(0, "run.started", { data: "1" }),
      });
      await apply(store, { ...creation("p", { claimed: true }), children: [child("c1", false), child("c2", true)] });
      assert.deepEqual((await rowOf(store, "c1")).owner, null);
      assert.deepEqual((await rowOf(store, "c2")).parent, parent);
      await apply(store, appending("c2", 1));
      await apply(store, { ...appending("p", 1), children: [child("c2", true)] });
      assert.equal(await headOf(store, "c2"), 2);
      assert.deepEqual(
        (await store.runs({ parent: "p", limit: 9 })).map(({ id }) => id),
        ["c2", "c1"],
      );
    },
  ),

  storeCase("a child and a message to it fit into one commit", async ({ store }) => {
    const child = { run: "c", create: newRun(), entry: entry(0, "run.started") };
    await apply(store, { ...creation("p", { claimed: true }), children: [child], messages: [signal("c", "m")] });
    assert.deepEqual(
      (await store.inbox("c")).map(({ id }) => id),
      ["m"],
    );
  }),

  storeCase("B6 suspension and its wait are one write", async ({ store }) => {
    const wait = { open: { key: "k", kind: "signal" as const, name: "paid", due: null, detail: null } };
    await apply(store, creation("r", { claimed: true }));
    await apply(store, { ...suspending("r", 1), entries: [entry(1, "signal.awaited")], waits: [wait] });
    const { state, owner, claims } = await rowOf(store, "r");
    assert.deepEqual([state, owner, claims, await headOf(store, "r")], ["waiting", null, 0, 2]);
    assert.deepEqual(await store.orphans(), []);
  }),
];
