// A directory of documents under test, closed and removed with its test.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { checksum } from "../../src/core/checksum.ts";
import type { StoredEntry } from "../../src/core/journal.ts";
import type { RunCommit } from "../../src/core/store.ts";
import { checksumOf } from "../../src/stores/file/canonical.ts";
import type { FaultPoint } from "../../src/stores/file/disk.ts";
import { type FileStore, type FileStoreOptions, fileStore } from "../../src/stores/file/file-store.ts";
import { entry, newRun, newWorker } from "../../src/testing/store-cases/case.ts";
import { nodeHost } from "../../src/worker/node-host.ts";

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "pawl-file-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "state");
}

export const clock = manualClock();

export async function open(path: string, options: FileStoreOptions = {}): Promise<FileStore> {
  const store = fileStore(path, { clock, durability: "process", ...options });
  await store.open();
  onTestFinished(() => store.close());
  return store;
}

/** Opened to write, with the worker "w1". */
export async function working(path: string, options: FileStoreOptions = {}): Promise<FileStore> {
  const store = await open(path, options);
  await store.register(newWorker("w1"));
  return store;
}

/** As another process would find it: the first one was killed. */
export async function afterKill(store: FileStore, path: string): Promise<FileStore> {
  await store.close();
  return working(path);
}

export function fileOf(path: string, run: string): string {
  return join(path, "runs", run, "state.json");
}

export type Document = Record<string, unknown> & { engine: Record<string, unknown>; checksum: string };

export function documentOf(path: string, run: string): Document {
  return JSON.parse(readFileSync(fileOf(path, run), "utf8")) as Document;
}

export function edit(path: string, run: string, change: (document: Document) => void, isSigned = false): void {
  const document = documentOf(path, run);
  change(document);
  if (isSigned) document.checksum = checksumOf(document);
  writeFileSync(fileOf(path, run), JSON.stringify(document));
}

/** An error of the system at a point, while it is switched on. */
export function faults() {
  const fault = {
    points: [] as string[],
    code: null as string | null,
    when: (_point: FaultPoint, _path: string): boolean => true,
    hook(point: FaultPoint, path: string): void {
      fault.points.push(point);
      if (fault.code !== null && fault.when(point, path))
        throw Object.assign(new Error(`${fault.code}: injected`), { code: fault.code, path });
    },
  };
  return fault;
}

/** Entries whose checksums are in order. */
export function chained(run: string, count: number): StoredEntry[] {
  const entries: StoredEntry[] = [];
  let previous = run;
  for (let seq = 0; seq < count; seq++) {
    const unsigned = entry(seq, seq === 0 ? "run.started" : "step.started", { key: seq === 0 ? null : `s${seq}` });
    const one = { ...unsigned, hash: checksum(nodeHost, previous, unsigned) };
    entries.push(one);
    previous = one.hash;
  }
  return entries;
}

export function chainedRun(run: string, count: number): RunCommit {
  return { run, head: 0, entries: chained(run, count), create: newRun() };
}
