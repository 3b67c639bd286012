// Journals that demand to be understood (DM1 to DM3): what older builds do with what newer ones have written.
import { describe, expect, it } from "vitest";
import { jsonCodec } from "../../src/base/envelope.ts";
import { doctor } from "../../src/client/doctor.ts";
import { exportRun } from "../../src/client/export.ts";
import { Draft } from "../../src/core/draft.ts";
import { writePark } from "../../src/core/endings.ts";
import type { EntryType, Parked } from "../../src/core/journal.ts";
import type { ClaimedRun, Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { replay } from "../../src/testing/replay.ts";
import { newRun, newWorker } from "../../src/testing/store-cases/case.ts";
import { nodeHost } from "../../src/worker/node-host.ts";
import { withoutColdStart } from "../cold-start.ts";
import { errorOf, MINUTE, openWorld, STORES } from "./harness.ts";

const LATER = "later.kept" as EntryType;

/** A payment, with a run below it that acts as well; what was done is in `did`. */
function shop(did: string[], version = "1.0.0") {
  const parcel = workflow("parcel", (ctx) => ctx.effect("send", { do: () => did.push("send"), idempotent: true }));
  const order = workflow({ name: "order", version, retry: false }, async (ctx) => {
    await ctx.effect("charge", { do: () => did.push("charge"), idempotent: true });
    await ctx.waitFor("go", { timeout: "1 min", default: null });
    await ctx.call(parcel, undefined).catch(() => {});
    return "done";
  });
  return [order, parcel] as const;
}

/** A run that a newer build has begun, and left. */
async function leaveRun(store: Store, run: string, key: string): Promise<void> {
  const draft = new Draft(run, { head: 0, hash: run, at: 0 }, nodeHost, jsonCodec);
  draft.create(newRun({ readyAt: store.clock.now() }));
  const started = { workflow: "order", version: "1.0.0", input: null, seed: run, deadline: null };
  draft.append(store.clock.now(), "run.started", null, started);
  draft.append(store.clock.now(), LATER, key, { anything: 1 });
  await store.commit({ worker: null, runs: [draft.take().commit] });
}

let workers = 0;

/** What a build from before demands does with a run that it has claimed: it takes the entry with the demand for a damaged one. */
async function parkAsOlder(store: Store, run: string, seq: number): Promise<void> {
  const worker = newWorker(`older-${++workers}`);
  await store.register(worker);
  const { row, head, journal } = (await store.take(worker.id, run)) as ClaimedRun;
  const draft = new Draft(run, { head, hash: journal.at(-1)?.hash ?? run, at: 0 }, nodeHost, jsonCodec);
  const message = `Run ${run} cannot be replayed.`;
  const park: Parked = { reason: "corrupted_journal", message, choices: ["retry", "cancel"], detail: { seq } };
  writePark(draft, { ...row, state: "running" }, store.clock.now(), park);
  await store.commit({ worker: worker.id, runs: [draft.take().commit] });
  await store.fence({ workers: [worker.id] });
}

const parksOf = async (store: Store, run: string) =>
  (await store.journal(run)).filter(({ type }) => type === "run.parked").length;

describe.each(STORES)("on %s", (kind) => {
  it("I23 DM1 a run that demands what this build does not know is not begun: it is left to newer workers, told of once, and what to do is said", async () => {
    withoutColdStart("no code of this build may follow the journal");
    const world = await openWorld(kind);
    const did: string[] = [];
    await leaveRun(world.store, "known", "plain");
    await leaveRun(world.store, "beyond", "#later");
    const pawl = await world.open(shop(did));
    await world.advance(3 * MINUTE);
    expect(await pawl.get("known").result()).toBe("done");
    expect(did).toEqual(["charge", "send"]);
    const { state, parked } = await pawl.get("beyond").status();
    expect([state, parked?.reason, parked?.detail]).toEqual(["parked", "newer_journal", { demand: "#later", seq: 1 }]);
    expect(parked?.message).toContain("Upgrade Pawl here");
    expect(await parksOf(world.store, "beyond")).toBe(1);
    expect(world.lines.filter(({ message }) => message.includes("a newer one has written it"))).toHaveLength(1);
    const findings = (await doctor(world.store)).findings.filter(({ about }) => about === "workers");
    expect(findings.map(({ message }) => message)).toContainEqual(
      "1 run (for example beyond): a newer Pawl has written what workers here do not know. Upgrade them; the runs then go on by themselves.",
    );
    expect(await errorOf(pawl.fork("beyond", { at: 1 }))).toMatchObject({ code: "newer_journal" });
    await pawl.cancel("beyond");
    expect((await pawl.get("beyond").status()).state).toBe("cancelled");
  });

  it("I23 X-25 DM3 a dry run that an older worker took for damaged is taken up by one that knows, and is dry; however often that happens", async () => {
    const world = await openWorld(kind);
    const did: string[] = [];
    const first = await world.open(shop(did));
    const run = await first.start("order", undefined);
    await world.advance(3 * MINUTE);
    expect([await run.result(), did.splice(0)]).toEqual(["done", ["charge", "send"]]);
    world.kill(first);
    await world.fence();
    const client = await world.open();
    await client.fork(run.id, { at: 1, effects: "replay", id: "dry" });
    await parkAsOlder(world.store, "dry", 1);
    // Somebody has it tried again, and the older worker is first: that decision is never read.
    await client.resolve("dry", "retry");
    await parkAsOlder(world.store, "dry", 1);
    world.kill(client);
    const pawl = await world.open(shop(did));
    await world.settle();
    expect((await pawl.get("dry").status()).waits).toMatchObject([{ kind: "signal", name: "go" }]);
    expect(await world.store.inbox("dry")).toEqual([]);
    await world.advance(3 * MINUTE);
    expect(await pawl.get("dry").result()).toBe("done");
    expect(did).toEqual([]);
    const journal = await world.journal("dry");
    expect(journal.slice(0, 2)).toEqual(["run.started", "run.forked #dry"]);
    expect(journal.filter((line) => line === "run.resolved")).toHaveLength(1);
    const [below] = (await pawl.list({ parent: "dry" })).runs;
    expect((await world.journal(below?.id ?? ""))[0]).toBe("run.started #dry");
  });
});

it("I23 X-25 DM2 a run that is started afresh in the place of a dry one demands the same", async () => {
  const world = await openWorld("memory");
  const did: string[] = [];
  const pawl = await world.open(shop(did));
  const run = await pawl.start("order", undefined);
  await world.advance(3 * MINUTE);
  await run.result();
  const dry = await pawl.fork(run.id, { at: 1, effects: "replay" });
  await world.settle();
  const next = await world.restart(shop(did, "2.0.0"), { versionGrace: 0 });
  await world.advance(3 * MINUTE);
  await next.resolve(dry.id, { choice: "fresh", value: { force: true } });
  await world.settle();
  const [fresh] = (await next.list({})).runs;
  expect([fresh?.version, (await world.journal(fresh?.id ?? ""))[0]]).toEqual(["2.0.0", "run.started #dry"]);
  await next.cancel(fresh?.id ?? "");
});

it("I23 DM3 one whose demand is damaged indeed stays parked, and is looked at once", async () => {
  const world = await openWorld("memory");
  const did: string[] = [];
  const first = await world.open(shop(did));
  const run = await first.start("order", undefined);
  await world.advance(3 * MINUTE);
  await run.result();
  world.kill(first);
  await world.fence();
  const client = await world.open();
  const dry = await client.fork(run.id, { at: 1, effects: "replay", id: "dry" });
  const { journal } = world.store;
  const edited: Store["journal"] = async (id, range) =>
    (await journal.call(world.store, id, range)).map((entry) =>
      id === "dry" && entry.seq === 1 ? { ...entry, data: '{"from":"x","seed":"y"}' } : entry,
    );
  await parkAsOlder(world.store, dry.id, 1);
  let reads = 0;
  Object.assign(world.store, {
    journal: (id: string, range?: { from?: number }) => {
      if (id === "dry" && range?.from === 0) reads++;
      return edited(id, range);
    },
  });
  const pawl = await world.open(shop(did));
  await world.advance(10 * MINUTE);
  Object.assign(world.store, { journal });
  expect([(await pawl.get("dry").status()).state, await parksOf(world.store, "dry"), reads]).toEqual(["parked", 1, 1]);
  await pawl.cancel("dry");
});

it("I23 DM1 an export that demands what this build does not know is not replayed", async () => {
  const world = await openWorld("memory");
  const did: string[] = [];
  await leaveRun(world.store, "beyond", "#later");
  const exported = await exportRun(await world.open(), "beyond");
  const error = await errorOf(replay(shop(did)[0], exported));
  expect([error.code, did]).toEqual(["newer_journal", []]);
});
