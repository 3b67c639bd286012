import assert from "node:assert/strict";
import type { Message, RunCommit } from "../../core/store.ts";
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
  entry,
  headOf,
  newWorker,
  rowOf,
  type StoreCase,
  signal,
  storeCase,
  suspending,
} from "./case.ts";

const parked = (run: string, head: number): RunCommit => ({
  run,
  head,
  entries: [entry(head, "run.parked")],
  row: { state: "parked", release: true, claims: 0 },
});

export const mailCases: readonly StoreCase[] = [
  storeCase("I14 P18 a message is an inbox row and a raised counter", async ({ store, clock }) => {
    await apply(store, creation("r", { claimed: true }));
    assert.equal(await store.deliver(signal("r", "m1", { name: "a", data: "1" })), "delivered");
    clock.advance(5);
    assert.equal(await store.deliver(signal("r", "m2", { data: new Uint8Array([7]) })), "delivered");
    const [first, second, ...rest] = await store.inbox("r");
    assert.deepEqual({ ...first, n: 0 }, { n: 0, id: "m1", kind: "signal", name: "a", data: "1", at: clock.now() - 5 });
    assert.deepEqual(
      { ...second, n: 0 },
      { n: 0, id: "m2", kind: "signal", name: "paid", data: new Uint8Array([7]), at: clock.now() },
    );
    assert.ok((first?.n ?? 0) < (second?.n ?? 0));
    assert.deepEqual(rest, []);
    assert.equal((await rowOf(store, "r")).wake, 2);
    assert.equal((await rowOf(store, "r")).readyAt, null);
  }),

  storeCase("I14 a message to a run that does not exist or has ended is not taken", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    await store.deliver(signal("r", "m"));
    await apply(store, ending("r", 1));
    assert.equal(await store.deliver(signal("r", "m")), "ended");
    assert.equal(await store.deliver(signal("nobody", "m")), "missing");
    assert.equal(await store.deliver(cancel("r")), "ended");
    assert.equal(await store.deliver(cancel("nobody")), "missing");
    assert.equal((await rowOf(store, "r")).cancel, null);
  }),

  storeCase("P5 a message is known by its id, also after it was consumed", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }), creation("other", { claimed: true }));
    await store.deliver(signal("r", "m"));
    assert.equal(await store.deliver(signal("r", "m", { data: "other" })), "duplicate");
    assert.equal((await rowOf(store, "r")).wake, 1);
    await apply(store, { ...appending("r", 1), consumes: ["m"] });
    assert.deepEqual(await store.inbox("r"), []);
    assert.equal(await store.deliver(signal("r", "m")), "duplicate");
    assert.deepEqual(await store.inbox("r"), []);
    assert.equal((await rowOf(store, "r")).wake, 1);
    assert.equal(await store.deliver(signal("other", "m")), "delivered");
  }),

  storeCase("P5 a row is consumed once, with the entries of the same commit or not at all", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    await store.deliver(signal("r", "m1"));
    await store.deliver(signal("r", "m2"));
    await apply(store, { ...appending("r", 1), consumes: ["m1"] });
    const refused = [{ run: "r", kind: "refused", why: "consumed" }];
    for (const consumes of [["m1"], ["m2", "m1"], ["m2", "m2"], ["never sent"]]) {
      assert.deepEqual(await commitAll(store, { ...appending("r", 2), consumes }), refused);
    }
    assert.equal(await headOf(store, "r"), 2);
    assert.deepEqual(
      (await store.inbox("r")).map(({ id }) => id),
      ["m2"],
    );
  }),

  storeCase("P18 a suspension is refused if anything came since the counter was read", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    await store.deliver(signal("r", "m"));
    const suspend = (ifWake: number): RunCommit => ({
      ...suspending("r", 1, { ifWake }),
      entries: [entry(1, "signal.awaited")],
    });
    assert.deepEqual(await commitAll(store, suspend(0)), [{ run: "r", kind: "refused", why: "wake" }]);
    assert.equal(await headOf(store, "r"), 1);
    assert.equal((await rowOf(store, "r")).owner, "w1");
    await apply(store, suspend(1));
    assert.equal((await rowOf(store, "r")).owner, null);
  }),

  storeCase("P18 a message makes a suspended run claimable, and an owned one not", async ({ store, clock }) => {
    await apply(store, creation("r", { claimed: true }));
    await apply(
      store,
      suspending("r", 1, { row: { state: "waiting", release: true, claims: 0, wakeAt: clock.now() + 1000 } }),
    );
    assert.deepEqual(await claimIds(store), []);
    await store.deliver(signal("r", "m"));
    assert.equal((await rowOf(store, "r")).readyAt, clock.now());
    clock.advance(5);
    await store.deliver(signal("r", "m2"));
    assert.equal((await rowOf(store, "r")).readyAt, clock.now() - 5);
    const claimed = await claimOne(store);
    assert.deepEqual([claimed.wake, claimed.inbox.map(({ id }) => id)], [2, ["m", "m2"]]);
    assert.deepEqual([claimed.row.readyAt, claimed.row.wakeAt, await store.nextWake()], [null, null, null]);
    await store.deliver(signal("r", "m3"));
    assert.equal((await rowOf(store, "r")).readyAt, null);
  }),

  storeCase(
    "P24 B18 a run that lets go and gets a message in one batch is woken, in either order",
    async ({ store }) => {
      await apply(store, creation("p", { claimed: true }), creation("c", { claimed: true }));
      const send: RunCommit = { ...appending("c", 1), messages: [signal("p", "m1", { kind: "child" })] };
      await apply(store, suspending("p", 1, { ifWake: 0 }), send);
      assert.deepEqual(await claimIds(store), ["p"]);
      const again: RunCommit = { ...ending("c", 2), messages: [signal("p", "m2", { kind: "child" })] };
      const verdicts = await commitAll(store, again, suspending("p", 1, { ifWake: 1 }));
      assert.deepEqual(verdicts, [
        { run: "c", kind: "applied" },
        { run: "p", kind: "refused", why: "wake" },
      ]);
      assert.deepEqual(await store.orphans(), []);
    },
  ),

  storeCase("P24 a run may write to itself and let go in one commit", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    await apply(store, suspending("r", 1, { ifWake: 0, messages: [signal("r", "m")] }));
    assert.deepEqual(await claimIds(store), ["r"]);
  }),

  storeCase("P24 P19 a message and what it meets count in the order of their batch", async ({ store }) => {
    await apply(store, ...["a", "b", "c"].map((run) => creation(run, { claimed: true })));
    const end = (run: string) => ({ ...endingWhole(run, 1), ifNotCancelled: true });
    const send = (head: number, ...messages: Message[]) => ({ ...appending("a", head), messages });
    const batch = [send(1, cancel("b"), signal("new", "m")), end("b"), creation("new")];
    assert.deepEqual(await commitAll(store, ...batch), [
      { run: "a", kind: "applied" },
      { run: "b", kind: "refused", why: "cancel" },
      { run: "new", kind: "applied" },
    ]);
    assert.deepEqual(await store.inbox("new"), []);
    await apply(store, end("c"), creation("newer"), send(2, cancel("c"), signal("newer", "m")));
    assert.deepEqual([(await rowOf(store, "c")).cancel, (await store.inbox("newer")).length], [null, 1]);
  }),

  storeCase("P31 a message of a commit is delivered once, and none of a refused one", async ({ store }) => {
    await apply(store, creation("a", { claimed: true }), creation("b", { claimed: true }));
    await apply(store, { ...appending("a", 1), messages: [signal("b", "m"), signal("nobody", "m")] });
    await apply(store, { ...appending("a", 2), messages: [signal("b", "m")] });
    await commitAll(store, { ...appending("a", 9), messages: [signal("b", "m2")] });
    assert.deepEqual(
      (await store.inbox("b")).map(({ id }) => id),
      ["m"],
    );
    assert.equal((await rowOf(store, "b")).wake, 1);
  }),

  storeCase("P19 the first cancel sets the mark, raises the counter and is no inbox row", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    assert.equal(await store.deliver(cancel("r", "first")), "delivered");
    assert.equal(await store.deliver(cancel("r", "second")), "duplicate");
    const { cancel: mark, wake } = await rowOf(store, "r");
    assert.deepEqual([mark, wake, await store.inbox("r")], ["first", 1, []]);
  }),

  storeCase("P19 I16 of a racing cancel and end exactly one is recorded", async ({ store }) => {
    await apply(store, creation("a", { claimed: true }), creation("b", { claimed: true }));
    await store.deliver(cancel("a"));
    const end = { ...ending("a", 1), ifNotCancelled: true };
    assert.deepEqual(await commitAll(store, end), [{ run: "a", kind: "refused", why: "cancel" }]);
    assert.deepEqual([(await rowOf(store, "a")).state, await headOf(store, "a")], ["running", 1]);
    await apply(store, { ...ending("b", 1), ifNotCancelled: true });
    assert.equal(await store.deliver(cancel("b")), "ended");
    assert.equal((await rowOf(store, "b")).cancel, null);
  }),

  storeCase(
    "P19 I16 an end that names its whole row is refused after a cancel, and not after a signal",
    async ({ store }) => {
      await apply(store, creation("a", { claimed: true }), creation("b", { claimed: true }));
      await store.deliver(cancel("a"));
      await store.deliver(signal("b", "m"));
      const ends = ["a", "b"].map((run) => ({ ...endingWhole(run, 1), ifNotCancelled: true }));
      assert.deepEqual(await commitAll(store, ...ends), [
        { run: "a", kind: "refused", why: "cancel" },
        { run: "b", kind: "applied" },
      ]);
      assert.deepEqual([(await rowOf(store, "a")).state, await headOf(store, "a")], ["running", 1]);
      assert.deepEqual([(await rowOf(store, "b")).state, await headOf(store, "b")], ["succeeded", 2]);
    },
  ),

  storeCase("P19 a cancel is news to the owner until run.cancelling is recorded", async ({ store }) => {
    await apply(store, creation("r", { claimed: true }));
    assert.deepEqual(await store.owned("w1", { news: true }), []);
    await store.deliver(cancel("r", "stop"));
    assert.deepEqual(await store.owned("w1", { news: true }), [
      { run: "r", head: 1, wake: 1, cancel: "stop", inbox: [] },
    ]);
    await apply(store, { run: "r", head: 1, entries: [entry(1, "run.cancelling")] });
    assert.deepEqual(await store.owned("w1", { news: true }), []);
    assert.equal((await store.owned("w1", { news: false }))[0]?.cancel, "stop");
  }),

  storeCase("P18 mail is news until it is consumed, with counter and rows of one moment", async ({ store }) => {
    await apply(store, creation("a", { claimed: true }), creation("b", { claimed: true }));
    await store.deliver(signal("b", "m"));
    const [mail, ...rest] = await store.owned("w1", { news: true });
    assert.deepEqual([mail?.run, mail?.wake, mail?.inbox.map(({ id }) => id), rest], ["b", 1, ["m"], []]);
    await apply(store, { ...appending("b", 1), consumes: ["m"] });
    assert.deepEqual(await store.owned("w1", { news: true }), []);
    const all = await store.owned("w1", { news: false });
    assert.deepEqual(
      all.map(({ run, head, wake }) => [run, head, wake]),
      [
        ["a", 1, 0],
        ["b", 2, 1],
      ],
    );
    assert.deepEqual(await store.owned("nobody", { news: false }), []);
  }),

  storeCase("a parked run is woken by a decision or a cancel and by nothing else", async ({ store, clock }) => {
    for (const run of ["a", "b"]) {
      await apply(store, creation(run, { claimed: true }));
      await apply(store, {
        ...parked(run, 1),
        row: { state: "parked", release: true, claims: 0, wakeAt: clock.now() + 5 },
      });
    }
    assert.equal(await store.deliver(signal("a", "m")), "delivered");
    assert.equal(await store.deliver(signal("a", "v", { kind: "approval" })), "delivered");
    assert.equal(await store.deliver(signal("a", "v", { kind: "approval" })), "duplicate");
    assert.deepEqual(
      (await store.inbox("a")).map(({ kind }) => kind),
      ["signal", "approval"],
    );
    clock.advance(10);
    assert.equal(await store.nextWake(), null);
    assert.deepEqual(await claimIds(store), []);
    await store.deliver(signal("a", "d", { kind: "decision" }));
    assert.deepEqual(await claimIds(store), ["a"]);
    assert.equal((await rowOf(store, "a")).state, "running");
    await store.deliver(cancel("b"));
    assert.deepEqual(await claimIds(store), ["b"]);
  }),

  storeCase(
    "a parked run that its taker gives back stays parked, unless a decision or cancel came",
    async ({ store }) => {
      for (const run of ["still", "decided", "cancelled", "seen"]) {
        await apply(store, creation(run, { claimed: true }));
        if (run === "seen") {
          await store.deliver(cancel(run));
          await apply(store, { run, head: 1, entries: [entry(1, "run.cancelling")] });
        }
        await apply(store, parked(run, await headOf(store, run)));
        assert.ok(await store.take("w1", run));
      }
      await store.deliver(signal("decided", "d", { kind: "decision" }));
      await store.deliver(cancel("cancelled"));
      assert.deepEqual(await store.fence({ workers: ["w1"] }), { moved: [], released: 2 });
      await store.register(newWorker("w2"));
      assert.deepEqual(await claimIds(store, { worker: "w2" }), ["decided", "cancelled"]);
      assert.deepEqual(await store.orphans(), []);
    },
  ),

  storeCase(
    "B12 a run that starts later keeps its time when it gets mail, but not when it is cancelled",
    async ({ store, clock }) => {
      await apply(store, creation("r", { readyAt: clock.now() + 1000 }));
      await store.deliver(signal("r", "m"));
      assert.deepEqual(await claimIds(store), []);
      await store.deliver(cancel("r"));
      assert.deepEqual(await claimIds(store), ["r"]);
    },
  ),
];
