// What operators say is sealed as well: reasons of holds, and what the audit log has beside who did what.
import { describe, expect, it } from "vitest";
import { keyOf as keyIn } from "../../src/base/sealed-text.ts";
import { keysInUse } from "../../src/client/key-usage.ts";
import { workflow } from "../../src/core/workflow.ts";
import { openWorld, STORES } from "../behaviour/harness.ts";
import { ENCRYPTION, keyOf } from "./keys.ts";

const CANARY = "canary-of-a-complaint";
const ADA = { by: "ada", from: "a test" };
const ROTATED = { keys: [keyOf("k2"), keyOf("k1")] };
const good = workflow("good", async (ctx) => ctx.step("s", () => 1));

describe.each(STORES)("what operators say, sealed on %s", (kind) => {
  it("Q14 Q20 reasons and details are read as they were given, and kept as nobody can read; the log is still whole", async () => {
    const world = await openWorld(kind);
    const pawl = await world.open([good], { encryption: ENCRYPTION });
    await pawl.run(good, undefined, { id: "a" });
    const reason = `${CANARY} ${"é".repeat(900)}`;
    expect(await pawl.operations.hold("a", { ...ADA, reason })).toMatchObject({ by: "ada", reason });
    const payload = "0".repeat(64);
    await pawl.store.record({ ...RECORD, payload, detail: JSON.stringify({ text: "x".repeat(65_000) }) });
    await expect(pawl.store.record({ ...RECORD, detail: "x".repeat(65_537) })).rejects.toThrow("detail");
    await expect(pawl.operations.hold("a", { ...ADA, reason: "x".repeat(1001) })).rejects.toThrow("why");
    const { store } = world;
    const kept = JSON.stringify([await store.holds({ limit: 9 }), await store.audits({ after: 0, limit: 9 })]);
    expect(kept).not.toContain(CANARY);
    expect(kept).not.toContain(payload);
    expect(await pawl.operations.holds()).toMatchObject([{ run: "a", by: "ada", reason }]);
    const { records } = await pawl.operations.audit();
    expect(records.map(({ outcome, detail }) => [outcome, JSON.parse(detail ?? "").reason])).toEqual([
      ["begun", reason],
      ["done", reason],
      ["done", undefined],
    ]);
    expect(records[2]).toMatchObject({ who: "ada", action: "look", payload });
    expect(await pawl.operations.checkAudit()).toEqual({ records: 3, fault: null });
    expect(await pawl.operations.release("a", ADA)).toMatchObject({ by: "ada", reason });
  });
});

const RECORD = { who: "ada", action: "look", subject: null, from: null, outcome: "done", payload: null } as const;

describe("records of operators and keys", () => {
  it("Q14 what is older than the encryption is read, unless plain values are refused; what is sealed for another place always is", async () => {
    const world = await openWorld("memory");
    const plain = await world.open([good]);
    await plain.run(good, undefined, { id: "a" });
    await plain.operations.hold("a", { ...ADA, reason: "complaint" });
    await plain.close();
    const reading = await world.open([good], { encryption: ENCRYPTION });
    expect(await reading.operations.holds()).toMatchObject([{ reason: "complaint" }]);
    expect((await reading.operations.audit()).records[1]?.detail).toContain("complaint");
    await reading.store.record({ ...RECORD, detail: JSON.stringify({ said: "yes" }) });
    const [sealed] = (await world.store.audits({ after: 2, limit: 1 })).map(({ detail }) => detail);
    // Somebody who can write to the store: what was said of a look is to be what was said of a purge.
    await world.store.record({ ...RECORD, action: "runs.purge", detail: sealed ?? null });
    expect((await reading.operations.audit({ after: 3 })).records[0]?.detail).toBe(`refused: ${sealed}`);
    await reading.close();
    const refusing = await world.open([good], { encryption: { ...ENCRYPTION, plain: "refuse" } });
    expect(await refusing.operations.holds()).toMatchObject([{ reason: "refused: complaint" }]);
    expect((await refusing.operations.audit()).records[0]?.detail).toMatch(/^refused: \{/);
  });

  it("Q14 a key that a hold or the audit log needs is counted, and without it the rest of a record can be read", async () => {
    const world = await openWorld("memory");
    const first = await world.open([good], { encryption: ENCRYPTION });
    await first.run(good, undefined, { id: "a" });
    await first.close();
    const second = await world.open([good], { encryption: ROTATED });
    await second.operations.hold("a", { ...ADA, reason: "complaint" });
    expect((await keysInUse(second.store)).keys).toEqual([
      { key: "k1", runs: 1, unfinished: 0, audits: 0 },
      { key: "k2", runs: 1, unfinished: 0, audits: 2 },
    ]);
    await second.close();
    const third = await world.open([good], { encryption: ENCRYPTION });
    const [record] = (await third.operations.audit()).records;
    expect([record?.who, record?.action, keyIn(record?.detail ?? null)]).toEqual(["ada", "run.hold", "k2"]);
    expect(await third.operations.checkAudit()).toEqual({ records: 2, fault: null });
  });
});
