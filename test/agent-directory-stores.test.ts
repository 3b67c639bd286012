// Every checkpoint store keeps every promise of the port, whichever way checkpoints are written.
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { SaveOptions } from "../src/agent/checkpoint-store.ts";
import {
  type CheckpointPlace,
  checkpointOf,
  checkpointStoreCases,
  savedRequest,
} from "../src/agent/checkpoint-store-cases.ts";
import { type KeyValue, keyValueFolder, keyValueStore } from "../src/agent/key-value-store.ts";
import { directoryFolder, directoryStore } from "../src/agent/worker-directory.ts";
import { type ManualClock, manualClock } from "../src/base/clock.ts";
import { httpKeyValue, ObjectStore, sqliteKeyValue } from "./agent-key-values.ts";

const ways: Readonly<Record<string, SaveOptions>> = {
  whole: {},
  "S1-72 compressed": { compress: true },
  "S1-73 incremental": { incremental: { fullEvery: 3 } },
  "S1-72 S1-73 compressed and incremental": { compress: true, incremental: { fullEvery: 3 }, history: 0 },
};

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "pawl-agent-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Time that passes by itself whenever somebody waits for it. */
function passingClock(): ManualClock {
  const clock = manualClock();
  const pump = setInterval(() => clock.skip(), 1);
  onTestFinished(() => clearInterval(pump));
  return clock;
}

function onServer(server: KeyValue, prefix: string): CheckpointPlace {
  const clock = passingClock();
  return {
    store: (worker = "w1") => keyValueStore(server, { worker, prefix, clock }),
    folder: (worker = "w1") => keyValueFolder(server, { worker, prefix, clock }),
  };
}

const objects = new ObjectStore();
let address = "";
let places = 0;
beforeAll(async () => {
  address = await objects.listen();
});
afterAll(() => objects.close());

const stores: Readonly<Record<string, () => CheckpointPlace>> = {
  directory() {
    const root = newFolder();
    return {
      store: (worker = "w1") => directoryStore({ root, worker, durability: "process" }),
      folder: (worker = "w1") => directoryFolder({ root, worker, durability: "process" }),
    };
  },
  "S1-71 key-value, SQLite file"() {
    const server = sqliteKeyValue(join(newFolder(), "kv.db"));
    onTestFinished(() => server.close());
    return onServer(server, "workers/");
  },
  "S1-71 key-value, objects over HTTP": () => onServer(httpKeyValue(address), `place-${++places}/`),
};

for (const [kind, place] of Object.entries(stores)) {
  describe(kind, () => {
    // How checkpoints are written is the same everywhere; the ends of the list are enough for the others.
    const tried = Object.entries(ways).filter((_, n, all) => kind === "directory" || n === 0 || n === all.length - 1);
    for (const [way, how] of tried) {
      describe(way, () => {
        for (const one of checkpointStoreCases) it(one.name, () => one.run(place(), how));
      });
    }
  });
}

describe("a key-value store", () => {
  it("C-19 F-13 takes over from an owner that is silent for a lease, and refuses it when it comes back", async () => {
    const server = sqliteKeyValue(join(newFolder(), "kv.db"));
    onTestFinished(() => server.close());
    const options = { worker: "w1", prefix: "workers/" };
    const frozen = manualClock();
    const first = keyValueStore(server, { ...options, clock: frozen });
    await first.open();
    await first.saveRequest(savedRequest());
    await first.saveCheckpoint(checkpointOf(1));
    const second = keyValueStore(server, { ...options, clock: passingClock() });
    await second.open();
    // Its own clock says that its lease still runs.
    await expect(first.saveCheckpoint(checkpointOf(2), { history: 0 })).rejects.toMatchObject({
      code: "worker_directory_busy",
      fields: { owner: { pid: process.pid, number: 2 } },
    });
    await expect(first.clear()).rejects.toMatchObject({ code: "worker_directory_busy" });
    expect((await second.loadCheckpoint())?.sequence).toBe(1);
    await second.close();
  });

  it("C-19 stops writing when its lease has run out", async () => {
    const server = sqliteKeyValue(join(newFolder(), "kv.db"));
    onTestFinished(() => server.close());
    const clock = manualClock();
    const deaf: KeyValue = {
      ...server,
      put: (key, ...rest) =>
        key.endsWith("lease.json") && isDeaf ? Promise.reject(new Error("no answer")) : server.put(key, ...rest),
    };
    let isDeaf = false;
    const store = keyValueStore(deaf, { worker: "w1", clock, lease: "30s" });
    await store.open();
    isDeaf = true;
    clock.advance(30_000);
    await expect(store.saveRequest(savedRequest())).rejects.toMatchObject({ code: "worker_directory_busy" });
  });
});

describe("a key-value server whose answers are lost", () => {
  it("C-19 S1-71 what it has done all the same is known again, of documents, removals and the lease", async () => {
    const server = sqliteKeyValue(join(newFolder(), "kv.db"));
    onTestFinished(() => server.close());
    const clock = manualClock();
    let isLosing = false;
    const lost = async <T>(answer: Promise<T>): Promise<T> => {
      const value = await answer;
      if (isLosing) throw new Error("no answer");
      return value;
    };
    const lossy: KeyValue = {
      ...server,
      put: (...given) => lost(server.put(...given)),
      delete: (...given) => lost(server.delete(...given)),
    };
    const store = keyValueStore(lossy, { worker: "w1", clock, lease: "30s" });
    await store.open();
    await store.saveRequest(savedRequest());
    isLosing = true;
    await expect(store.saveCheckpoint(checkpointOf(1), { history: 0 })).rejects.toThrow("no answer");
    const leaseVersion = async () => (await server.get("workers/w1/lease.json"))?.version;
    clock.advance(10_000);
    await expect.poll(leaseVersion).toBe("2");
    isLosing = false;
    await store.saveCheckpoint(checkpointOf(1), { history: 0 });
    clock.advance(10_000);
    await expect.poll(leaseVersion).toBe("3");
    clock.advance(10_000);
    await expect.poll(leaseVersion).toBe("4");
    isLosing = true;
    await expect(store.quarantine("checkpoint", "a test")).rejects.toThrow("no answer");
    isLosing = false;
    await store.clear();
    expect(await store.state()).toBe("empty");
    await store.close();
  });

  it("S1-48 a name that could be a part of another worker's documents is refused", () => {
    const server = sqliteKeyValue(join(newFolder(), "kv.db"));
    onTestFinished(() => server.close());
    for (const worker of ["", "w1/archive", "..", "w1/../w2"])
      expect(() => keyValueStore(server, { worker })).toThrow(expect.objectContaining({ code: "invalid_name" }));
  });
});

describe("a directory", () => {
  it("T-14 S1-50 S1-51 every document is written under another name, synced, renamed, and synced with its folder", async () => {
    const root = newFolder();
    const accesses: string[] = [];
    const fault = (point: string, path: string) => void accesses.push(`${point} ${path.split("/").at(-1)}`);
    const store = directoryStore({ root, worker: "w1", fault });
    await store.open();
    await store.saveRequest(savedRequest());
    await store.saveCheckpoint(checkpointOf(1, { result: { value: 1 } }), { history: 0 });
    await store.markCompleted();
    await store.close();
    const names = ["request.json", "checkpoint.json", "completed"];
    expect(accesses).toEqual(
      names.flatMap((name) => ["write", "sync", "rename", "sync-folder"].map((point) => `${point} ${name}`)),
    );
  });

  it.each(["archive", "delete"] as const)(
    "S1-53 T-14 C-20 is cleared with other folders in it, and they stay (%s)",
    async (onClear) => {
      const root = newFolder();
      const store = directoryStore({ root, worker: "w1", onClear });
      await store.open();
      await store.saveRequest(savedRequest());
      await store.saveCheckpoint(checkpointOf(1), { history: 0 });
      mkdirSync(join(root, "w1", "workspace", "deep"), { recursive: true });
      await store.clear();
      await store.close();
      const left = readdirSync(join(root, "w1")).filter((name) => !/^(lock|lease)/.test(name));
      expect(left).toEqual(onClear === "archive" ? ["archive", "workspace"] : ["workspace"]);
    },
  );
});
