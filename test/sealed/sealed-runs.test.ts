// Runs whose values are sealed: what a missing key, another key and an edited store lead to.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { jsonCodec } from "../../src/base/envelope.ts";
import { keyOf as keyIn } from "../../src/base/sealed-text.ts";
import { keysInUse } from "../../src/client/key-usage.ts";
import { Keyring } from "../../src/client/keyring.ts";
import type { PawlOptions } from "../../src/client/pawl-options.ts";
import { startSpace } from "../../src/client/start.ts";
import { checksum } from "../../src/core/checksum.ts";
import type { StoredEntry } from "../../src/core/journal.ts";
import { workflow } from "../../src/core/workflow.ts";
import { loadDriver } from "../../src/stores/sqlite/driver.ts";
import { nodeHost } from "../../src/worker/node-host.ts";
import { errorOf, MINUTE, openWorld, STORES, type StoreKind } from "../behaviour/harness.ts";
import { withoutColdStart } from "../cold-start.ts";
import { ENCRYPTION, keyOf } from "./keys.ts";

const ROTATED = { keys: [keyOf("k2"), keyOf("k1")] };
const LATER = { keys: [keyOf("k2")] };

const parcel = workflow("parcel", async (ctx, { to }: { to: string }) => {
  const label = await ctx.step("label", () => `to ${to}`);
  ctx.set("label", label);
  ctx.progress({ label });
  ctx.cost({ usd: 1 });
  const { by } = (await ctx.waitFor("handed-over")) as { by: string };
  await ctx.step("note", () => by.length);
  return `${label} by ${by}`;
});

describe.each(STORES)("sealed runs on %s", (kind) => {
  it("Q14 a run goes on after a crash, and its status, progress, cost and start key are as without", async () => {
    const world = await openWorld(kind);
    const encryption = { ...ENCRYPTION, names: "k1" };
    const first = await world.open([parcel], { encryption });
    const run = await first.start(parcel, { to: "ann" }, { key: "order-1", tags: ["express"] });
    await world.settle();
    expect(await run.status()).toMatchObject({
      key: "order-1",
      tags: ["express"],
      data: { label: "to ann" },
      progress: { label: "to ann" },
      cost: { usd: 1 },
      waits: [{ kind: "signal", name: "handed-over" }],
    });
    const second = await world.restart([parcel], { encryption });
    expect((await second.start(parcel, { to: "ann" }, { key: "order-1" })).id).toBe(run.id);
    expect(await errorOf(second.start(parcel, { to: "eve" }, { key: "order-1" }))).toMatchObject({
      code: "idempotency_conflict",
    });
    expect((await second.list({ tag: "express" })).runs.map(({ id }) => id)).toEqual([run.id]);
    expect((await second.find(parcel, "order-1"))?.id).toBe(run.id);
    await second.signal(run.id, "handed-over", { by: "bob" });
    expect(await second.get(run.id).result()).toBe("to ann by bob");
    const names = new Keyring(encryption).names;
    const held = await world.store.key(startSpace("parcel"), names?.seal("order-1") ?? "");
    expect(keyIn(held?.digest ?? null)).toBe("k1");
    const kept = JSON.stringify([
      await world.store.run(run.id),
      await world.store.journal(run.id),
      await world.store.state(run.id),
    ]);
    // Sealed texts and checksums are random: three letters of theirs may be any word.
    const readable = kept.replaceAll(/v1\.k1\.[\w.-]+|"(hash|headHash)":"[^"]*"/g, "");
    for (const word of ["ann", "bob", "label", "order-1", "express", "usd"]) expect(readable).not.toContain(word);
  });

  it("Q14 a run whose key is missing is parked, not failed; it names the key, and goes on by itself when that is back", async () => {
    await parksWithout(kind, { encryption: LATER });
  });
});

it("Q14 so is one that comes to a process without any key", () => parksWithout("memory", {}));

async function parksWithout(kind: StoreKind, options: PawlOptions): Promise<void> {
  const world = await openWorld(kind);
  const first = await world.open([parcel], { encryption: ENCRYPTION });
  const run = await first.start(parcel, { to: "ann" });
  await world.settle();
  await first.signal(run.id, "handed-over", { by: "bob" });
  const without = await world.restart([parcel], options);
  await world.settle();
  expect(await world.store.run(run.id)).toMatchObject({ state: "parked", endedAt: null });
  const missing = { code: "key_missing", fields: { key: "k1" } };
  expect(await errorOf(without.get(run.id).journal())).toMatchObject(missing);
  expect(await errorOf(without.get(run.id).status())).toMatchObject(missing);
  const [wait] = await without.store.waits({ run: run.id, kind: "decision" });
  expect(wait).toMatchObject({ name: "key_missing" });
  expect(JSON.parse(wait?.detail ?? "")).toMatchObject({ choices: ["retry", "cancel"], detail: { key: "k1" } });
  const back = await world.restart([parcel], { encryption: ROTATED });
  await world.advance(3 * MINUTE);
  expect(await back.get(run.id).result()).toBe("to ann by bob");
}

describe("keys that rotate", () => {
  it("Q14 100 runs in flight finish while the key is replaced, and only then the old one may go", async () => {
    const world = await openWorld("sqlite");
    const before = await world.open([parcel], { encryption: ENCRYPTION });
    const ids = Array.from({ length: 100 }, (_, i) => `r${i}`);
    await Promise.all(ids.map((id) => before.start(parcel, { to: id }, { id })));
    await world.settle();
    const added = await world.restart([parcel], { encryption: { keys: [keyOf("k1"), keyOf("k2")] } });
    const half = ids.slice(0, 50);
    await Promise.all(half.map((id) => added.signal(id, "handed-over", { by: "bob" })));
    await world.settle();
    const promoted = await world.restart([parcel], { encryption: ROTATED });
    await Promise.all(ids.slice(50).map((id) => promoted.signal(id, "handed-over", { by: "eve" })));
    await world.settle();
    expect(await Promise.all(ids.map((id) => promoted.get(id).result()))).toEqual(
      ids.map((id, i) => `to ${id} by ${i < 50 ? "bob" : "eve"}`),
    );
    const { keys, plainRuns } = await keysInUse(promoted.store);
    expect({ keys, plainRuns }).toEqual({
      keys: [
        { key: "k1", runs: 100, unfinished: 0, audits: 0 },
        { key: "k2", runs: 50, unfinished: 0, audits: 0 },
      ],
      plainRuns: 0,
    });
  });

  it("Q14 a run from before the encryption goes on, and what it writes from then on is sealed", async () => {
    const world = await openWorld("memory");
    const plain = await world.open([parcel]);
    const run = await plain.start(parcel, { to: "ann" });
    await world.settle();
    const sealing = await world.restart([parcel], { encryption: ENCRYPTION });
    await sealing.signal(run.id, "handed-over", { by: "bob" });
    expect(await sealing.get(run.id).result()).toBe("to ann by bob");
    const journal = await world.store.journal(run.id);
    expect(keyIn(journal[0]?.data ?? null)).toBeNull();
    expect(keyIn(journal.at(-1)?.data ?? null)).toBe("k1");
    expect((await keysInUse(sealing.store)).plainRuns).toBe(1);
    const strict = await world.open([], { encryption: { ...ENCRYPTION, plain: "refuse" } });
    expect(await errorOf(strict.get(run.id).journal())).toMatchObject({ code: "corrupt_value" });
  });
});

describe("an edited store", () => {
  type Edit = (entries: StoredEntry[], other: readonly StoredEntry[]) => void;
  const edits: readonly (readonly [string, number, Edit])[] = [
    ["two entries swapped", 2, (own) => swap(own, 2, 3)],
    ["an entry moved from another run", 2, (own, other) => put(own, 2, other[2]?.data ?? null)],
    ["an entry cut short", 2, (own) => put(own, 2, cut(String(own[2]?.data)))],
    ["an entry with one bit flipped", 2, (own) => put(own, 2, flip(String(own[2]?.data)))],
    ["an entry put back in plain words that no such entry has", 2, (own) => put(own, 2, "not json")],
  ];

  it.each(edits)("Q14 Q15 I25 %s is refused and named, also with checksums made to fit", async (_what, seq, edit) => {
    withoutColdStart("its journal was edited");
    const world = await openWorld("sqlite");
    const first = await world.open([parcel], { encryption: ENCRYPTION });
    for (const id of ["own", "other"]) await first.start(parcel, { to: id }, { id });
    await world.settle();
    world.killAll();
    await world.fence();
    const [own, other] = [await world.store.journal("own"), await world.store.journal("other")];
    const edited = own.map((entry) => ({ ...entry }));
    edit(edited, other);
    rewriteJournal(join(world.folder ?? "", "pawl.db"), "own", edited);
    const second = await world.open([parcel], { encryption: ENCRYPTION });
    await second.signal("own", "handed-over", { by: "bob" });
    await second.signal("other", "handed-over", { by: "bob" });
    expect(await second.get("other").result()).toBe("to other by bob");
    await world.settle();
    const { state, parked } = await second.get("own").status();
    expect(state).toBe("parked");
    expect(parked).toMatchObject({ reason: "corrupted_journal", detail: { seq } });
  });

  it("Q15 I25 an entry edited in SQL, with nothing else made to fit, quarantines the run and names the position", async () => {
    withoutColdStart("its journal was edited");
    const world = await openWorld("sqlite");
    const first = await world.open([parcel], { encryption: ENCRYPTION });
    await first.start(parcel, { to: "ann" }, { id: "own" });
    await world.settle();
    world.killAll();
    await world.fence();
    const edit = (sql: string) => {
      const db = loadDriver().open(join(world.folder ?? "", "pawl.db"));
      db.exec(sql);
      db.close();
    };
    edit("update journal set at = at + 1 where seq = 1");
    const second = await world.open([parcel], { encryption: ENCRYPTION });
    await second.signal("own", "handed-over", { by: "bob" });
    await world.settle();
    expect((await second.get("own").status()).parked).toMatchObject({
      reason: "corrupted_journal",
      detail: { seq: 1 },
    });
    edit("update journal set at = at - 1 where seq = 1");
  });

  it("Q14 progress, cost and the detail of a wait from another row are refused and named, and keep nobody from cancelling the run", async () => {
    const world = await openWorld("sqlite");
    const pawl = await world.open([parcel], { encryption: ENCRYPTION });
    for (const id of ["own", "other"]) await pawl.start(parcel, { to: id }, { id });
    await world.settle();
    const db = loadDriver().open(join(world.folder ?? "", "pawl.db"));
    db.exec("update runs set progress = (select progress from runs where id = 'other') where id = 'own'");
    db.close();
    expect(await errorOf(pawl.get("own").status())).toMatchObject({ code: "corrupt_value", fields: { run: "own" } });
    expect(await pawl.cancel("own", { reason: "it was edited" })).toEqual({ outcome: "cancelled" });
    await pawl.cancel("other");
  });

  it("Q14 the document of a file: store shows sealed values as sealed, and is none that was edited", async () => {
    const world = await openWorld("file");
    const first = await world.open([parcel], { encryption: ENCRYPTION });
    await first.start(parcel, { to: "ann" }, { id: "own" });
    await world.settle();
    const file = join(world.folder ?? "", "state", "runs", "own", "state.json");
    const text = readFileSync(file, "utf8");
    expect(text).toContain("v1.k1.");
    expect(text).not.toContain("ann");
    expect(await first.documents.held()).toEqual([]);
  });

  it("Q14 the key of a run is derived for it alone", () => {
    const keyring = new Keyring(ENCRYPTION);
    const sealed = keyring.seal(jsonCodec.seal('"x"', at("a")) as string, at("a"));
    expect(() => keyring.open(sealed, at("b"))).toThrow(/refused/);
  });
});

const at = (run: string) => ({ run, seq: 0, field: "data" });

function put(entries: StoredEntry[], seq: number, data: StoredEntry["data"]): void {
  entries[seq] = { ...(entries[seq] as StoredEntry), data };
}

function swap(entries: StoredEntry[], a: number, b: number): void {
  const [one, other] = [entries[a]?.data ?? null, entries[b]?.data ?? null];
  put(entries, a, other);
  put(entries, b, one);
}

function cut(text: string): string {
  const [version, key, nonce, ciphertext, tag] = text.split(".") as [string, string, string, string, string];
  return [version, key, nonce, ciphertext.slice(0, -4), tag].join(".");
}

function flip(text: string): string {
  const parts = text.split(".");
  const bytes = Buffer.from(parts[3] ?? "", "base64url");
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  parts[3] = bytes.toString("base64url");
  return parts.join(".");
}

/** As somebody would who may write to the file and knows how checksums are made. */
function rewriteJournal(file: string, run: string, entries: readonly StoredEntry[]): void {
  const db = loadDriver().open(file);
  const { n } = db.prepare("select n from runs where id = ?").get(run) as { n: number };
  const update = db.prepare("update journal set data = ?, hash = ? where run = ? and seq = ?");
  let previous = run;
  for (const entry of entries) {
    previous = checksum(nodeHost, previous, entry);
    update.run(entry.data, previous, n, entry.seq);
  }
  db.prepare("update runs set head = ?, head_hash = ? where n = ?").run(entries.length, previous, n);
  db.close();
}
