// For operators: holds, the audit log, the catalogue of workflows, counts and searches.
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { auditFault, type NewAudit, NO_AUDITS } from "../../core/audit.ts";
import type { PurgeRequest, RunFilter } from "../../core/run-query.ts";
import type { Store } from "../../core/store.ts";
import type { RunState } from "../../core/transition.ts";
import { apply, creation, ending, newWorker, type StoreCase, storeCase, suspending } from "./case.ts";

const sha256 = (text: string) => hash("sha256", text, "hex");

function audit(changes: Partial<NewAudit> = {}): NewAudit {
  return {
    who: "ada",
    action: "run.cancel",
    subject: "r1",
    from: "127.0.0.1",
    outcome: "done",
    payload: null,
    detail: null,
    ...changes,
  };
}

async function ended(store: Store, ...runs: readonly string[]): Promise<void> {
  await apply(store, ...runs.map((run) => creation(run, { claimed: true })));
  await apply(store, ...runs.map((run) => ending(run, 1)));
}

/** What a purge leaves of all that have ended. */
async function purged(store: Store, changes: Partial<PurgeRequest> = {}): Promise<string> {
  const before = store.clock.now() + 1;
  await store.purge({ succeededBefore: before, failedBefore: before, limit: 9, ...changes });
  return idsOf(store);
}

async function idsOf(store: Store, filter: RunFilter = {}): Promise<string> {
  return (await store.runs({ ...filter, limit: 99 }))
    .map(({ id }) => id)
    .reverse()
    .join(" ");
}

async function countsOf(
  store: Store,
  filter: RunFilter,
  bound = 99,
): Promise<[Partial<Record<RunState, number>>, boolean]> {
  const { counts, atLeast } = await store.counts(filter, bound);
  return [Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0)), atLeast];
}

export const operatorCases: readonly StoreCase[] = [
  storeCase(
    "C-20 a run that is held is not purged, whatever its age, until it is released",
    async ({ store, clock }) => {
      await ended(store, "a", "b", "c");
      const at = clock.now();
      const hold = { run: "b", who: "ada", why: "case 7", at };
      assert.deepEqual(await store.hold("b", { who: "ada", why: "case 7" }), hold);
      clock.advance(1000);
      assert.deepEqual(await store.hold("b", { who: "bob", why: "another" }), hold);
      assert.equal(await purged(store), "b");
      // It takes no place of another either, nor is it counted as gone.
      assert.equal(await store.purge({ succeededBefore: 9e15, failedBefore: 9e15, limit: 1 }), 0);
      assert.deepEqual(await store.holds({ limit: 9 }), [hold]);
      assert.deepEqual(await store.releaseHold("b"), hold);
      assert.equal(await store.releaseHold("b"), null);
      assert.equal(await purged(store), "");
    },
  ),

  storeCase("C-20 a run may be held before it has ended; one that is not there cannot", async ({ store }) => {
    await apply(store, creation("a", { claimed: true }), creation("b", { claimed: true }));
    await store.hold("a", { who: "ada", why: "w" });
    await apply(store, ending("a", 1, "failed"), ending("b", 1, "cancelled"));
    assert.equal(await purged(store), "a");
    assert.equal(await store.hold("b", { who: "ada", why: "w" }), null);
    assert.equal(await store.hold("nobody", { who: "ada", why: "w" }), null);
    assert.equal((await store.holds({ limit: 9 })).length, 1);
  }),

  storeCase("C-20 holds are listed by run, page by page", async ({ store }) => {
    await ended(store, "b", "a", "c");
    for (const run of ["c", "a", "b"]) await store.hold(run, { who: "ada", why: run });
    const runs = async (query: Parameters<Store["holds"]>[0]) =>
      (await store.holds(query)).map(({ run }) => run).join("");
    assert.equal(await runs({ limit: 2 }), "ab");
    assert.equal(await runs({ limit: 2, after: "b" }), "c");
    assert.equal(await runs({ limit: 2, run: "b" }), "b");
    assert.equal(await runs({ limit: 2, run: "b", after: "b" }), "");
    assert.equal(await runs({ limit: 2, run: "x" }), "");
  }),

  storeCase("C-20 a hold says whose it is and why", async ({ store }) => {
    await ended(store, "a");
    const bad = [
      { who: "", why: "w" },
      { who: "ada", why: " " },
      { who: "ada", why: "x".repeat(1001) },
      { who: "a\0b", why: "w" },
    ];
    for (const hold of bad) await assert.rejects(store.hold("a", hold), { code: "invalid_argument" });
    assert.deepEqual(await store.holds({ limit: 9 }), []);
  }),

  storeCase("C-20 purge takes runs of one workflow, or of all but some", async ({ store }) => {
    const workflows = { a: "order", b: "invoice", c: "order", d: "mail" };
    for (const [run, workflow] of Object.entries(workflows))
      await apply(store, creation(run, { workflow, claimed: true }));
    await apply(store, ...Object.keys(workflows).map((run) => ending(run, 1)));
    assert.equal(await purged(store, { workflow: "nothing" }), "a b c d");
    assert.equal(await purged(store, { workflow: "order", limit: 1 }), "b c d");
    assert.equal(await purged(store, { except: ["mail", "invoice", "x'y"] }), "b d");
    assert.equal(await purged(store, { workflow: "mail", except: ["mail"] }), "b d");
    const before = store.clock.now() + 1;
    const request = { succeededBefore: before, failedBefore: before, limit: 9, dryRun: true };
    assert.equal(await store.purge(request), 2);
    assert.equal(await store.purge({ ...request, limit: 1 }), 1);
    assert.equal(await purged(store, { except: [] }), "");
  }),

  storeCase("Q20 AU1 records of the audit log are numbered without a gap, and chained", async ({ store, clock }) => {
    assert.deepEqual([await store.auditHead(), await store.audits({ after: 0, limit: 9 })], [NO_AUDITS, []]);
    const entries = [
      audit(),
      audit({ who: "é\u{1f600}", subject: null, from: null, detail: '{"a":[1,"\\n"]}' }),
      audit({ outcome: "refused", payload: "abc" }),
    ];
    for (const [i, entry] of entries.entries()) {
      clock.advance(0.5);
      const record = await store.record(entry);
      assert.deepEqual(record, { ...entry, n: i + 1, at: clock.now(), hash: record.hash });
    }
    const all = await store.audits({ after: 0, limit: 9 });
    assert.deepEqual(
      all.map(({ n, who }) => [n, who]),
      [
        [1, "ada"],
        [2, "é\u{1f600}"],
        [3, "ada"],
      ],
    );
    assert.equal(auditFault(sha256, NO_AUDITS, all), null);
    assert.deepEqual(await store.auditHead(), { n: 3, hash: all[2]?.hash });
    assert.deepEqual(await store.audits({ after: 1, limit: 1 }), [all[1]]);
    assert.deepEqual(await store.audits({ after: 3, limit: 1 }), []);
  }),

  storeCase("Q20 AU1 records that come at the same time stand one after the other", async ({ store }) => {
    await Promise.all(Array.from({ length: 10 }, (_, i) => store.record(audit({ subject: `r${i}` }))));
    const all = await store.audits({ after: 0, limit: 99 });
    assert.equal(all.length, 10);
    assert.equal(auditFault(sha256, NO_AUDITS, all), null);
  }),

  storeCase("Q20 AU3 retention of runs leaves the audit log alone", async ({ store }) => {
    await ended(store, "r1");
    await store.record(audit());
    assert.equal(await purged(store), "");
    assert.equal((await store.audits({ after: 0, limit: 9 })).length, 1);
  }),

  storeCase("Q20 what no store could give back is not recorded", async ({ store }) => {
    const bad = [
      audit({ who: "" }),
      audit({ action: "" }),
      audit({ detail: "x".repeat(65_537) }),
      audit({ from: "x".repeat(1001) }),
      audit({ subject: "a\0" }),
      audit({ outcome: "perhaps" as "done" }),
    ];
    for (const entry of bad) await assert.rejects(store.record(entry), { code: "invalid_argument" });
    assert.equal((await store.auditHead()).n, 0);
  }),

  storeCase("S2-107 what workers say of workflows is kept, version by version", async ({ store, clock }) => {
    assert.deepEqual(await store.workflows(), []);
    const first = clock.now();
    const facts = (name: string, version: string, text: string) => ({ name, version, facts: text });
    await store.describe([facts("order", "1.0.0", "{}"), facts("mail", "1.0.0", '"é{\\"}"')]);
    clock.advance(5);
    await store.describe([facts("order", "1.1.0", "1"), facts("order", "1.0.0", "2"), facts("order", "1.0.0", "3")]);
    await store.describe([]);
    await store.retire(newWorker("w1").id);
    assert.deepEqual(await store.workflows(), [
      { ...facts("mail", "1.0.0", '"é{\\"}"'), at: first },
      { ...facts("order", "1.0.0", "3"), at: first + 5 },
      { ...facts("order", "1.1.0", "1"), at: first + 5 },
    ]);
  }),

  storeCase("S2-10 runs are counted by state, with the filters of lists", async ({ store, clock }) => {
    assert.deepEqual(await countsOf(store, {}), [{}, false]);
    const runs = { a: "order", b: "order", c: "mail", d: "mail", e: "order" };
    for (const [run, workflow] of Object.entries(runs)) {
      clock.advance(10);
      await apply(store, creation(run, { workflow, claimed: true, tags: run < "c" ? ["x"] : [] }));
    }
    await apply(store, ending("a", 1), ending("b", 1, "failed"), ending("c", 1), suspending("d", 1));
    assert.deepEqual(await countsOf(store, {}), [{ succeeded: 2, failed: 1, waiting: 1, running: 1 }, false]);
    assert.deepEqual(await countsOf(store, { workflow: "order" }), [{ succeeded: 1, failed: 1, running: 1 }, false]);
    assert.deepEqual(await countsOf(store, { except: ["order"] }), [{ succeeded: 1, waiting: 1 }, false]);
    assert.deepEqual(await countsOf(store, { tag: "x" }), [{ succeeded: 1, failed: 1 }, false]);
    assert.deepEqual(await countsOf(store, { states: ["failed", "waiting"] }), [{ failed: 1, waiting: 1 }, false]);
    assert.deepEqual(await countsOf(store, { createdAfter: clock.now() - 15 }), [{ waiting: 1, running: 1 }, false]);
    assert.deepEqual(await countsOf(store, { search: "or" }), [{ succeeded: 1, failed: 1, running: 1 }, false]);
    assert.deepEqual(await countsOf(store, { states: [] }), [{}, false]);
  }),

  storeCase("S2-10 counts end at their bound, and say so", async ({ store }) => {
    await ended(store, "a", "b", "c");
    await apply(store, creation("d"), creation("e"));
    assert.deepEqual(await countsOf(store, {}, 3), [{ succeeded: 3, accepted: 2 }, false]);
    assert.deepEqual(await countsOf(store, {}, 2), [{ succeeded: 2, accepted: 2 }, true]);
    assert.deepEqual(await countsOf(store, { states: ["accepted"] }, 2), [{ accepted: 2 }, false]);
    assert.deepEqual(await countsOf(store, { search: "order" }, 2), [{ succeeded: 2, accepted: 2 }, true]);
  }),

  storeCase("S2-10 a search finds what the id, the workflow, the key or a tag begins with", async ({ store }) => {
    await apply(
      store,
      creation("ab-1", { workflow: "order", key: "k:ab", tags: ["red"] }),
      creation("ab-2", { workflow: "abacus" }),
      creation("x-3", { workflow: "order", key: "abc" }),
      creation("x-4", { workflow: "order", tags: ["red", "abroad", "absent"] }),
      creation("x-5", { workflow: "mail", key: "b", tags: ["Ab"] }),
    );
    assert.equal(await idsOf(store, { search: "ab" }), "ab-1 ab-2 x-3 x-4");
    assert.equal(await idsOf(store, { search: "red" }), "ab-1 x-4");
    assert.equal(await idsOf(store, { search: "k:" }), "ab-1");
    assert.equal(await idsOf(store, { search: "b" }), "x-5");
    assert.equal(await idsOf(store, { search: "" }), "ab-1 ab-2 x-3 x-4 x-5");
    assert.equal(await idsOf(store, { search: "ab", workflow: "order" }), "ab-1 x-3 x-4");
    assert.equal(await idsOf(store, { search: "ab", tag: "red" }), "ab-1 x-4");
    assert.equal(await idsOf(store, { search: "ab", states: ["running"] }), "");
    const page = async (before: string) =>
      (await store.runs({ search: "ab", before, limit: 2 })).map(({ id }) => id).join(" ");
    assert.equal(await page("x-4"), "x-3 ab-2");
    assert.equal(await page("ab-2"), "ab-1");
  }),

  storeCase("Q10 a search is text and no pattern, in every filter", async ({ store }) => {
    const odd = ["%", "_", "a%b", "a_b", "a\\b", "a'b", 'a"b', "a;--", "$1", "?", "a\u{10ffff}b", "[ab]*"];
    for (const text of odd) await apply(store, creation(`r${text}`, { workflow: "w", key: text, tags: [text] }));
    await apply(store, creation("plain", { workflow: "axb", key: "axb", tags: ["axb"] }));
    for (const text of odd) {
      assert.equal(await idsOf(store, { search: text }), `r${text}`);
      assert.equal(await idsOf(store, { tag: text }), `r${text}`);
      assert.equal(await idsOf(store, { except: ["w", text] }), "plain");
      assert.deepEqual(await countsOf(store, { workflow: text, parent: text }), [{}, false]);
      assert.deepEqual(await countsOf(store, { among: [{ workflow: text, states: ["accepted"] }] }), [{}, false]);
    }
    for (const query of [
      { search: "a\0" },
      { except: ["a\0"] },
      { among: [{ workflow: "\ud800", states: ["failed"] }] },
    ]) {
      const filter = query as RunFilter;
      await assert.rejects(store.runs({ ...filter, limit: 1 }), { code: "invalid_argument" });
      await assert.rejects(store.counts(filter, 1), { code: "invalid_argument" });
    }
  }),

  storeCase("S2-107 runs are asked for by workflow and state together", async ({ store }) => {
    const runs = { a: "order", b: "order", c: "mail", d: "mail", e: "other" };
    for (const [run, workflow] of Object.entries(runs))
      await apply(store, creation(run, { workflow, claimed: true, tags: ["t"] }));
    await apply(store, ending("a", 1, "failed"), ending("c", 1, "failed"), ending("e", 1, "failed"));
    const among = [
      { workflow: "order", states: ["failed"] },
      { workflow: "mail", states: ["running", "waiting", "running"] },
      { workflow: "mail", states: ["running"] },
    ] as const;
    assert.equal(await idsOf(store, { among }), "a d");
    assert.equal(await idsOf(store, { among, workflow: "mail" }), "d");
    assert.equal(await idsOf(store, { among, states: ["failed"] }), "a");
    assert.equal(await idsOf(store, { among: [] }), "");
    assert.deepEqual(await countsOf(store, { among, tag: "t" }), [{ failed: 1, running: 1 }, false]);
  }),
];
