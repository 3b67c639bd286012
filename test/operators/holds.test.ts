// Holds and retention: what is held stays, and workflows that say how long their runs are kept are kept to that by every worker.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { workflow } from "../../src/core/workflow.ts";
import { DAY, MINUTE, openWorld, STORES, type StoreKind, type Workflows } from "../behaviour/harness.ts";

const ADA = { by: "ada", from: "a test" };
const good = workflow("good", async (ctx) => ctx.step("s", () => 1));

/** A world whose housekeeping follows a clock that the test moves. */
async function openKept(store: StoreKind) {
  const leaseClock = manualClock();
  const world = await openWorld(store, { leaseClock });
  const pass = async (days: number) => {
    await world.advance(days * DAY);
    for (let ms = 0; ms < MINUTE; ms += 5000) {
      leaseClock.advance(5000);
      await world.settle();
    }
  };
  return { world, pass };
}

describe.each(STORES)("holds on %s", (store) => {
  it("C-20 Q20 a held run outlives its retention until it is released; who, why and when are in the audit log", async () => {
    const { world, pass } = await openKept(store);
    const pawl = await world.open([good]);
    for (const id of ["a", "b"]) await pawl.run(good, undefined, { id });
    await pawl.operations.hold("b", { ...ADA, reason: "complaint 4711" });
    await pass(400);
    expect((await pawl.list()).runs.map(({ id }) => id)).toEqual(["b"]);
    expect(await pawl.operations.holds()).toMatchObject([{ run: "b", by: "ada", reason: "complaint 4711" }]);
    expect(await pawl.get("b").journal()).not.toEqual([]);
    expect(await pawl.operations.purge({ ...ADA, succeeded: 0, failed: 0 })).toBe(0);
    await pawl.operations.release("b", { by: "bob" });
    expect(await pawl.operations.purge({ ...ADA, dryRun: true })).toBe(1);
    await pass(1);
    expect((await pawl.list()).runs).toEqual([]);
    const { records } = await pawl.operations.audit();
    expect(records.map(({ who, action, subject, outcome }) => [who, action, subject, outcome])).toEqual([
      ["ada", "run.hold", "b", "begun"],
      ["ada", "run.hold", "b", "done"],
      ["ada", "runs.purge", null, "begun"],
      ["ada", "runs.purge", null, "done"],
      ["bob", "run.release", "b", "begun"],
      ["bob", "run.release", "b", "done"],
    ]);
    expect(records.map(({ detail }) => JSON.parse(detail ?? ""))).toMatchObject([
      { reason: "complaint 4711" },
      { reason: "complaint 4711", begun: 1 },
      {},
      {},
      { held: "ada", reason: "complaint 4711" },
      { held: "ada", reason: "complaint 4711", begun: 5 },
    ]);
    expect(await pawl.operations.checkAudit()).toEqual({ records: 6, fault: null });
  });
});

describe("holds and the audit log", () => {
  it("Q20 a hold or a release that cannot be recorded is not done; one whose end cannot be recorded is done, and told", async () => {
    const { world } = await openKept("memory");
    const pawl = await world.open([good]);
    await pawl.run(good, undefined, { id: "a" });
    const { store } = pawl;
    const { record } = store;
    let left = 0;
    store.record = (entry) => (left-- > 0 ? record.call(store, entry) : Promise.reject(new Error("the disk is full")));
    const hold = () => pawl.operations.hold("a", { ...ADA, reason: "complaint 4711" });
    await expect(hold()).rejects.toMatchObject({ code: "storage_unavailable" });
    expect(await pawl.operations.holds()).toEqual([]);
    left = 1;
    expect(await hold()).toMatchObject({ run: "a" });
    expect(JSON.stringify(world.lines)).toContain("Record 1 of the audit log has no end");
    left = 0;
    await expect(pawl.operations.release("a", ADA)).rejects.toMatchObject({ code: "storage_unavailable" });
    expect(await pawl.operations.holds()).toMatchObject([{ run: "a" }]);
    store.record = record;
    expect(await pawl.operations.release("nobody", ADA)).toBe(null);
    const { records } = await pawl.operations.audit();
    expect(records.map(({ action, outcome }) => [action, outcome])).toEqual([["run.hold", "begun"]]);
  });
});

describe("retention by workflow", () => {
  const short = workflow({ name: "short", retention: { succeeded: "1 day" } }, async () => 1);
  const long = workflow({ name: "long", retention: { succeeded: "1000 days", failed: "1000 days" } }, async () => 1);
  const forever = workflow({ name: "forever", retention: false }, async () => 1);

  it("C-20 every worker keeps to what the workflows say, also one that does not have them", async () => {
    const { world, pass } = await openKept("memory");
    const all: Workflows = [good, short, long, forever];
    const first = await world.open(all);
    for (const { name } of all) await (await first.start(name, undefined, { id: name })).result();
    await first.close();
    const other = await world.open([good]);
    const left = async () => (await other.list()).runs.map(({ id }) => id).toSorted();
    await pass(2);
    expect(await left()).toEqual(["forever", "good", "long"]);
    await pass(90);
    expect(await left()).toEqual(["forever", "long"]);
    expect(await other.operations.purge({ ...ADA, dryRun: true })).toBe(0);
    expect(await other.operations.purge({ ...ADA, workflow: "forever" })).toBe(0);
    expect(await other.operations.purge({ ...ADA, workflow: "long", succeeded: "1 day", dryRun: true })).toBe(1);
    await pass(1000);
    expect(await left()).toEqual(["forever"]);
  });

  it("C-20 the newest version of a workflow says how long its runs are kept", async () => {
    const { world, pass } = await openKept("memory");
    const named = (version: string, succeeded: string) =>
      workflow({ name: "w", version, retention: { succeeded } }, async () => 1);
    const [older, newer] = [named("1.9.0", "1 day"), named("1.10.0", "100 days")];
    await (await world.open([newer])).close();
    const pawl = await world.open([older]);
    await pawl.run(older, undefined, { id: "a" });
    await pass(50);
    expect((await pawl.list()).runs).toHaveLength(1);
  });

  it("a hold, a release and a purge say who they are by, and a hold why", async () => {
    const { world } = await openKept("memory");
    const pawl = await world.open([good]);
    await pawl.run(good, undefined, { id: "a" });
    const code = "invalid_argument";
    await expect(pawl.operations.hold("a", { by: "", reason: "x" })).rejects.toMatchObject({ code });
    await expect(pawl.operations.hold("a", { by: "ada", reason: " " })).rejects.toMatchObject({ code });
    await expect(pawl.operations.purge({ by: " " })).rejects.toMatchObject({ code });
    await expect(pawl.operations.hold("nobody", { by: "ada", reason: "x" })).rejects.toMatchObject({
      code: "run_not_found",
    });
    expect((await pawl.operations.audit()).records).toEqual([]);
  });
});
