// One process at a time writes to a directory of documents; the others look, and leave letters.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { Pawl } from "../../src/client/pawl.ts";
import { fileStore } from "../../src/stores/file/file-store.ts";
import {
  appending,
  apply,
  cancel,
  claimIds,
  creation,
  ending,
  newWorker,
  rowOf,
  signal,
  suspending,
} from "../../src/testing/store-cases/case.ts";
import { clock, newFolder, open, working } from "./harness.ts";

describe("one owner", () => {
  it("S1-67 C-19 F-13 a second writer is refused with who has the directory, and changes nothing", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1"));
    const other = await open(path);
    const owner = { pid: process.pid, host: hostname(), since: new Date(clock.now()).toISOString(), number: 1 };
    for (const attempt of [
      () => other.register(newWorker("w2")),
      () => other.commit({ worker: null, runs: [creation("r2")] }),
      () => other.purge({ succeededBefore: 0, failedBefore: 0, limit: 1 }),
      () => other.backup?.(`${path}-copy`),
    ]) {
      const error = (await Promise.resolve(attempt()).catch((thrown: unknown) => thrown)) as Error;
      expect(error).toMatchObject({ code: "storage_unavailable", fields: { owner } });
      expect(error.message).toContain(`process ${process.pid} on ${hostname()}`);
    }
    expect(readdirSync(join(path, "runs"))).toEqual(["r1"]);
    expect(JSON.parse(readFileSync(join(path, "lease.json"), "utf8"))).toMatchObject({
      number: 1,
      workers: [{ id: "w1" }],
    });
    await store.close();
    await other.register(newWorker("w2"));
    expect(JSON.parse(readFileSync(join(path, "lease.json"), "utf8"))).toMatchObject({
      number: 2,
      workers: [{ id: "w2" }],
    });
  });

  it("S1-67 anybody may read, afresh each time, and sees who is at work", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1", { claimed: true }));
    const reader = await open(path);
    expect((await rowOf(reader, "r1")).owner).toBe("w1");
    expect(await reader.workers()).toMatchObject([{ id: "w1", leaseLeftMs: 15_000 }]);
    await apply(store, appending("r1", 1));
    expect((await reader.journal("r1")).length).toBe(2);
    expect(await reader.owners()).toEqual([{ worker: "w1", runs: 1 }]);
    await apply(store, ending("r1", 2));
    expect((await rowOf(reader, "r1")).state).toBe("succeeded");
  });

  it("looking creates nothing", async () => {
    const path = newFolder();
    const reader = await open(path);
    expect([await reader.runs({ limit: 9 }), await reader.workers(), await reader.run("r")]).toEqual([[], [], null]);
    expect((await reader.inspect()).settings).toMatchObject({ runs: 0, mail: 0 });
    expect(existsSync(path)).toBe(false);
  });

  it("a letter of another process is answered truly, and reaches the run once", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1", { claimed: true }), creation("over", { claimed: true }));
    await apply(store, ending("over", 1));
    const other = await open(path);
    const bytes = { data: Uint8Array.from([0, 200]) };
    expect(await other.deliver(signal("r1", "m1", bytes))).toBe("delivered");
    expect(await other.deliver(signal("r1", "m1"))).toBe("duplicate");
    expect(await other.deliver(signal("over", "m2"))).toBe("ended");
    expect(await other.deliver(signal("nobody", "m3"))).toBe("missing");
    expect(readdirSync(join(path, "mail"))).toHaveLength(1);
    expect((await other.inbox("r1")).map(({ id }) => id)).toEqual(["m1"]);
    const [letter = ""] = readdirSync(join(path, "mail"));
    const saved = readFileSync(join(path, "mail", letter), "utf8");
    expect((await store.owned("w1", { news: true }))[0]?.inbox).toMatchObject([{ id: "m1", ...bytes }]);
    expect(readdirSync(join(path, "mail"))).toEqual([]);
    // As if it had been killed before the letter was gone.
    writeFileSync(join(path, "mail", letter), saved);
    expect((await store.owned("w1", { news: true }))[0]).toMatchObject({ wake: 1, inbox: [{ id: "m1" }] });
    expect(await other.deliver(signal("r1", "m1"))).toBe("duplicate");
  });

  it("Q5 I15 a signal with the id of a vote, an answer, an end or a choice is refused before a letter is written", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1", { claimed: true }));
    const beside = await Pawl.open(await open(path), { handleSignals: false });
    onTestFinished(() => beside.close());
    for (const id of [
      "approval:a",
      "callback:c",
      "child:r2",
      "decision-3",
      "advance-1-9",
      "block-1-9",
      "manual-1-9-end",
    ])
      await expect(beside.signal("r1", "noise", null, { id })).rejects.toMatchObject({ code: "invalid_name" });
    expect(existsSync(join(path, "mail"))).toBe(false);
    await beside.signal("r1", "noise", null, { id: "mine" });
    expect(readdirSync(join(path, "mail"))).toHaveLength(1);
  });

  it("P5 P18 a letter that was acknowledged comes before whatever the owner does next", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1", { claimed: true }), creation("r2", { claimed: true }));
    const other = await open(path);
    await other.deliver(signal("r1", "m1"));
    await other.deliver(cancel("r2"));
    const verdicts = await store.commit({
      worker: "w1",
      runs: [
        { ...suspending("r1", 1), ifWake: 0 },
        { ...ending("r2", 1), ifNotCancelled: true },
      ],
    });
    expect(verdicts).toMatchObject([
      { kind: "refused", why: "wake" },
      { kind: "refused", why: "cancel" },
    ]);
  });

  it("a letter that nobody took waits for the next process, and one that cannot be read is kept", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1"));
    const other = await open(path);
    await other.deliver(signal("r1", "m1"));
    writeFileSync(join(path, "mail", "1-bad.json"), '{"at": 1, "message": {"to": 5}}');
    await store.close();
    expect(await other.deliver(signal("r1", "m2"))).toBe("delivered");
    expect((await other.inbox("r1")).map(({ id }) => id)).toEqual(["m1", "m2"]);
    expect(readdirSync(join(path, "mail"))).toEqual([]);
    const reason = readdirSync(join(path, "quarantine")).find((name) => name.endsWith(".txt")) ?? "";
    expect(readFileSync(join(path, "quarantine", reason), "utf8")).toContain("message.to is 5. Allowed: text");
  });

  it("F-13 whoever finds a higher number in the directory has lost it, whatever became of the lock", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1", { claimed: true }));
    rmSync(join(path, "lock"));
    const thief = await working(path);
    await expect(store.commit({ worker: "w1", runs: [appending("r1", 1)] })).rejects.toMatchObject({
      code: "storage_unavailable",
      fields: { owner: { number: 2 } },
    });
    expect((await thief.journal("r1")).length).toBe(1);
    expect(await store.heartbeat("w1")).toMatchObject({ alive: false });
  });

  it("a command that has the directory for a moment is waited for, a worker is not", async () => {
    const path = newFolder();
    const command = await open(path);
    await command.commit({ worker: null, runs: [creation("r1")] });
    const worker = await open(path);
    const registered = worker.register(newWorker("w1"));
    await command.close();
    await registered;
    expect(await claimIds(worker)).toEqual(["r1"]);
  });

  it("hints tell of letters", async () => {
    const leaseClock = manualClock();
    const path = newFolder();
    const store = await working(path, { leaseClock });
    await apply(store, creation("r1"));
    let told = 0;
    store.hints(() => void told++);
    await (await open(path)).deliver(signal("r1", "m1"));
    leaseClock.advance(100);
    await Promise.resolve();
    expect(told).toBe(1);
  });

  it("a file, or a folder with other things in it, is no store", async () => {
    const path = newFolder();
    mkdirSync(path);
    writeFileSync(join(path, "notes.txt"), "mine");
    await expect(open(path)).rejects.toMatchObject({ code: "not_a_store" });
    await expect(open(join(path, "notes.txt"))).rejects.toMatchObject({ code: "not_a_store" });
    expect(() => fileStore("")).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });
});
