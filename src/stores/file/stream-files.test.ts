import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import type { StreamChunk } from "../../core/streams.ts";
import { apply, creation, newWorker } from "../../testing/store-cases/case.ts";
import type { FaultPoint } from "./disk.ts";
import { type FileStore, fileStore } from "./file-store.ts";

const OF = { of: [{ start: "a", n: 0 }], limit: 99 };

let store: FileStore;
let file: string;
let points: [FaultPoint, string][];
let failing: FaultPoint | null;

beforeEach(async () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-streams-"));
  points = [];
  failing = null;
  const fault = (point: FaultPoint, path: string) => {
    points.push([point, path]);
    if (point === failing) throw Object.assign(new Error(), { code: "ENOSPC", path });
  };
  store = fileStore(join(folder, "state"), { fault });
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  await store.open();
  await store.register(newWorker("w1"));
  await apply(store, creation("r1", { claimed: true }));
  file = join(store.folderOf("r1"), "streams.jsonl");
});

function chunk(n: number, data: string | null = `"${n}"`): StreamChunk {
  return { run: "r1", start: "a", n, data };
}

async function numbers(from: FileStore = store): Promise<number[]> {
  return (await from.chunks("r1", OF)).map(({ n }) => n);
}

it("SF1 a line that was cut off, wherever, is ignored by readers and gone when the next one is written", async () => {
  await store.emit([chunk(0), chunk(1)]);
  const whole = statSync(file).size;
  await store.emit([chunk(2)]);
  const { size } = statSync(file);
  for (let cut = whole + 1; cut < size; cut++) {
    truncateSync(file, cut);
    expect(await numbers(), `cut at ${cut}`).toEqual([0, 1]);
    await store.emit([chunk(2)]);
    expect(await numbers()).toEqual([0, 1, 2]);
    expect(statSync(file).size).toBe(size);
  }
});

it("SF1 what is cut off and longer than one look back is gone as well, also if nothing else is there", async () => {
  writeFileSync(file, `{"start":"a","n":0,"data":{"text":"${"x".repeat(200_000)}`);
  await store.emit([chunk(0)]);
  expect(readFileSync(file, "utf8")).toBe('{"start":"a","n":0,"data":{"json":"0"}}\n');
  appendFileSync(file, "y".repeat(200_000));
  await store.emit([chunk(1)]);
  expect(await numbers()).toEqual([0, 1]);
});

it("SF2 a line that comes twice counts once, and what is no chunk not at all", async () => {
  await store.emit([chunk(0)]);
  appendFileSync(file, 'nonsense\n{"start":1}\n[]\n');
  await store.emit([chunk(0, '"other"'), chunk(1)]);
  expect(await store.chunks("r1", OF)).toEqual([chunk(0), chunk(1)]);
});

it("SF3 the file is synced where a stream closes, and not before", async () => {
  const syncs = () => points.splice(0).filter(([point, path]) => point === "sync-folder" || path === file);
  syncs();
  await store.emit([chunk(0), chunk(1)]);
  expect(syncs()).toEqual([["append", file]]);
  await store.emit([chunk(2, null)]);
  expect(syncs().map(([point]) => point)).toEqual(["append", "sync", "sync-folder"]);
});

it("SW3 a full disk is an error that says so, and the same chunks can be written again", async () => {
  failing = "append";
  await expect(store.emit([chunk(0)])).rejects.toMatchObject({ code: "storage_unavailable" });
  failing = null;
  await store.emit([chunk(0)]);
  expect(await numbers()).toEqual([0]);
});

it("a reader in another process reads on from where it was, and anew if the file is another one", async () => {
  const other = fileStore(store.path);
  await other.open();
  expect(await numbers(other)).toEqual([]);
  await store.emit([chunk(0)]);
  expect(await numbers(other)).toEqual([0]);
  await store.emit([chunk(1)]);
  expect(await numbers(other)).toEqual([0, 1]);
  await expect(other.emit([chunk(2)])).rejects.toMatchObject({ code: "storage_unavailable" });
  rmSync(file);
  expect(await numbers(other)).toEqual([]);
  expect(existsSync(file)).toBe(false);
  await store.emit([chunk(5)]);
  expect(await numbers(other)).toEqual([5]);
  await other.close();
});
