// A directory of documents
// Owns the right to write to it, what is in memory of it, and the one way by which memory and documents change together.
//
//   F1. Nothing is in memory that is not in the documents, or follows from them: what a call has changed is forgotten when it cannot be written,
//       and read again from the disk before anything else happens (ST5).
//   F2. One process at a time writes: the owner of the lock. All others read from the disk, afresh each time, and leave letters.
//   F3. Letters are taken in before whatever comes next, so that what was acknowledged to their senders counts from then on (P5).
//   F4. No document is ever overwritten that was not written by the owner itself, nor one that cannot be believed; what is in the way is kept.
//   F5. Everything between taking the right and giving the answer is synchronous: nobody sees half of it.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { hasCode, PawlError } from "../../base/errors.ts";
import { folderName } from "../../files/folder-name.ts";
import { deliver } from "../memory/deliver.ts";
import type { MemoryWorker, Tables } from "../memory/tables.ts";
import { Batch } from "./batch.ts";
import { Disk, type DiskOptions, DRAFT_SUFFIX, type NewContent, quietly } from "./disk.ts";
import { FORMAT } from "./document-shape.ts";
import { blockedRun, deliverOutboxes, type Holdings, holdingsOf, releaseAbandoned, viewOf } from "./holdings.ts";
import { emptyLeftovers, type Leftovers, leftoversText, readLeftovers } from "./leftovers.ts";
import { DirectoryLock, isTaken, type Owner, readOwner, takenByOther } from "./lock.ts";
import { Mail } from "./mail.ts";
import { Quarantine } from "./quarantine.ts";
import { DOCUMENT, type FoundDocument, readDocument, stampOf } from "./read-document.ts";

const PATIENCE_TRIES = 20;
const PATIENCE_MS = 50;

// Captured at load: the determinism guard replaces the globals later.
const { setTimeout: startTimer } = globalThis;
const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    startTimer(resolve, ms);
  });

export class Directory {
  readonly path: string;
  readonly disk: Disk;
  readonly lock: DirectoryLock;
  readonly mail: Mail;
  readonly quarantine: Quarantine;
  /** What was found that needs somebody to look, beside the documents themselves. */
  readonly troubles: string[] = [];
  readonly #now: () => number;
  #holdings: Holdings | null = null;
  #workers = new Map<string, MemoryWorker>();
  /** Of each document as this process has read or written it last. */
  readonly #stamps = new Map<string, string>();

  constructor(path: string, options: DiskOptions, now: () => number) {
    this.path = path;
    this.disk = new Disk(options);
    this.lock = new DirectoryLock(path, this.disk);
    this.mail = new Mail(join(path, "mail"), this.disk);
    this.quarantine = new Quarantine(join(path, "quarantine"), this.disk);
    this.#now = now;
  }

  get runs(): string {
    return join(this.path, "runs");
  }

  get archive(): string {
    return join(this.path, "archive");
  }

  folderOf(run: string): string {
    return join(this.runs, folderName(run));
  }

  /** Says at once if there can be no store here. */
  check(): void {
    const found = statSync(this.path, { throwIfNoEntry: false });
    if (found === undefined) return;
    if (!found.isDirectory()) throw noStore(this.path, "is a file");
    const names = readdirSync(this.path);
    const isOurs =
      names.length === 0 || names.some((name) => ["runs", "store.json", "lock", "mail", "operators"].includes(name));
    if (!isOurs) throw noStore(this.path, "has files in it that are not those of a store");
  }

  /** Of this process. */
  get workers(): Map<string, MemoryWorker> {
    return this.#workers;
  }

  /** Lets go of the directory. */
  close(): void {
    quietly(() => this.lock.release(this.#now()));
    this.lock.abandon();
    this.#holdings = null;
    this.#workers = new Map();
    this.#stamps.clear();
  }

  // Reading

  /** What can be read: from memory if it is ours, otherwise from the disk; with `only`, at least this run. */
  look(only?: string): Holdings {
    if (this.#holdings !== null) return this.#holdings;
    const leftovers = this.#readableLeftovers();
    const found = only === undefined ? this.documents() : [this.#document(folderName(only))];
    const holdings = holdingsOf(
      [...found].filter((one) => one !== null && !isAbsorbed(leftovers, one)) as FoundDocument[],
      leftovers,
      this.lock.isHeld ? this.#workers : this.#othersWorkers(),
    );
    // What is on its way counts as there.
    deliverOutboxes(holdings);
    for (const { message, at } of this.mail.read().letters) deliver(holdings.tables, message, at);
    return holdings;
  }

  /** Those of the process that has the directory, or had it last: their runs are not lost as long as nobody has looked. */
  #othersWorkers(): Map<string, MemoryWorker> {
    const workers = readOwner(this.path)?.workers ?? [];
    return new Map(workers.map(({ startedAt, ...worker }) => [worker.id, { worker, startedAt, renewedAt: 0 }]));
  }

  view(only?: string): Tables {
    return viewOf(this.look(only));
  }

  /** Who has the directory, or had it last, and whether it is still there. */
  owner(): { readonly owner: Owner; readonly isThere: boolean } | null {
    const owner = readOwner(this.path);
    return owner === null ? null : { owner, isThere: this.lock.isHeld || isTaken(this.path) };
  }

  *documents(): Generator<FoundDocument> {
    for (const folder of this.folders()) {
      const found = this.#document(folder);
      if (found !== null) yield found;
    }
  }

  folders(): string[] {
    return existsSync(this.runs)
      ? readdirSync(this.runs, { withFileTypes: true })
          .filter((entry) => entry.isDirectory() || (entry.isSymbolicLink() && isFolder(join(this.runs, entry.name))))
          .map(({ name }) => name)
      : [];
  }

  #document(folder: string): FoundDocument | null {
    return readDocument(this.runs, folder);
  }

  // Writing

  /** The right to write, and what is there, up to date; refused if another process has it. */
  own(what: string): Holdings {
    if (!this.tryToOwn()) throw takenByOther(this.path, what);
    const holdings = this.#current();
    return this.#takeMail(holdings);
  }

  /** Waits for a command that has the directory for a moment; a worker is not waited for. */
  async patience(): Promise<void> {
    for (let left = PATIENCE_TRIES; left > 0 && !this.tryToOwn(); left--) {
      if ((readOwner(this.path)?.workers.length ?? 0) > 0) return;
      await pause(PATIENCE_MS);
    }
  }

  tryToOwn(): boolean {
    if (this.lock.isHeld) return true;
    this.check();
    this.disk.makeFolder(this.path);
    return this.lock.take(this.#now());
  }

  /** Changes what is in memory and writes the documents that `change` has put into the batch: both or neither (F1). */
  write<T>(what: string, change: (holdings: Holdings, batch: Batch) => T): T {
    const holdings = this.own(what);
    const workers = new Map(this.#workers);
    try {
      const batch = new Batch(holdings, (run) => this.#file(run));
      const result = change(holdings, batch);
      this.#publish(batch);
      return result;
    } catch (error) {
      // Without the directory there are no workers either.
      this.#workers = this.lock.isHeld ? workers : new Map();
      this.forget();
      throw error;
    }
  }

  /** What is in memory no longer counts: it is read again before anything else. */
  forget(): void {
    this.#holdings = null;
  }

  /** A document is gone from where it was. */
  forgetStamp(run: string): void {
    this.#stamps.delete(this.#file(run));
  }

  /** The checksum of a run's document as it is on the disk. */
  checksumOf(run: string): string {
    const found = this.#document(folderName(run));
    return found?.kind === "sound" ? found.checksum : "";
  }

  /** Takes the place of documents that were not believed; everything is read again after it. */
  overwrite(contents: readonly NewContent[]): void {
    this.#assertOurs();
    this.forget();
    this.disk.replace(contents);
  }

  writeLeftovers(leftovers: Leftovers): void {
    this.disk.replace([{ path: this.#storeFile, text: leftoversText(leftovers) }]);
  }

  /** Tells those who only read who works here. */
  showWorkers(): void {
    this.lock.show([...this.#workers.values()].map(({ worker, startedAt }) => ({ ...worker, startedAt })));
  }

  #publish(batch: Batch): void {
    const contents = batch.contents();
    if (contents.length === 0) return;
    this.#assertOurs();
    for (const path of new Set(contents.map((one) => one.path))) this.#keepEdits(path);
    this.disk.replace(contents);
    for (const { path } of contents) this.#stamps.set(path, stampOf(path) ?? "");
    batch.published();
  }

  /** The last line of defence: the lock's file may have been deleted, or its disk may not keep locks. */
  #assertOurs(): void {
    if (this.lock.isStillOurs) return;
    this.lock.abandon();
    throw takenByOther(this.path, "Writing");
  }

  /** Somebody has changed a document that this process has in memory: memory goes on, and what was written is kept aside (F4). */
  #keepEdits(path: string): void {
    const stamp = stampOf(path);
    if (stamp === null || stamp === this.#stamps.get(path)) return;
    const reason =
      `It was changed while process ${process.pid} was at work on the directory, which has gone on from what it knew. ` +
      "Stop that process, change the document again, and take it over with pawl state accept.";
    this.quarantine.keep(path, readFileSync(path, "utf8"), reason);
    this.troubles.push(`${path}: ${reason} What was written is in quarantine/.`);
  }

  /** What is in memory, or what is on the disk if nothing is. */
  #current(): Holdings {
    if (this.#holdings !== null) return this.#holdings;
    this.#cleanUp();
    const leftovers = this.#leftovers();
    this.#finishPurges(leftovers);
    this.#stamps.clear();
    const found = [...this.documents()];
    for (const one of found) {
      if (one.kind === "sound") this.#stamps.set(one.file, one.stamp);
      if (one.kind === "damaged" && one.text !== null) this.quarantine.keep(one.file, one.text, one.error.message);
    }
    const holdings = holdingsOf(found, leftovers, this.#workers);
    this.#bringUpToDate(holdings);
    this.#holdings = holdings;
    return holdings;
  }

  /** Ends what a former owner has begun: its claims, and the messages that it had no time to deliver (P31). */
  #bringUpToDate(holdings: Holdings): void {
    const released = releaseAbandoned(holdings, this.#now());
    const { receivers, settle } = deliverOutboxes(holdings);
    this.#rewrite(holdings, receivers);
    this.#rewrite(holdings, [...released, ...settle(), ...holdings.outdated]);
    holdings.outdated.clear();
  }

  #rewrite(holdings: Holdings, runs: readonly string[]): void {
    const batch = new Batch(holdings, (run) => this.#file(run));
    for (const run of runs) batch.later(run);
    this.#publish(batch);
  }

  #takeMail(holdings: Holdings): Holdings {
    if (this.mail.isEmpty) return holdings;
    const { letters, bad } = this.mail.read();
    for (const { file, error } of bad) {
      this.quarantine.keep(file, readFileSync(file, "utf8"), (error as Error).message);
      this.mail.drop([{ file }]);
    }
    // A run whose document cannot be believed gets its mail when it can.
    const due = letters.filter(({ message }) => blockedRun(holdings, message.to) === null);
    try {
      const reached = due.filter(({ message, at }) => deliver(holdings.tables, message, at) === "delivered");
      this.#rewrite(
        holdings,
        reached.map(({ message }) => message.to),
      );
    } catch (error) {
      this.forget();
      throw error;
    }
    this.mail.drop(due);
    return holdings;
  }

  /** Removes what was being written when a process died, and folders in which nothing was written yet (F-9). */
  #cleanUp(): void {
    this.mail.clean();
    for (const folder of this.folders()) {
      const path = join(this.runs, folder);
      for (const name of readdirSync(path))
        if (name.endsWith(DRAFT_SUFFIX)) quietly(() => this.disk.remove(join(path, name)));
      if (readdirSync(path).length === 0) quietly(() => this.disk.remove(path));
    }
    for (const name of readdirSync(this.path))
      if (name.endsWith(DRAFT_SUFFIX)) quietly(() => this.disk.remove(join(this.path, name)));
  }

  #leftovers(): Leftovers {
    const found = this.#soundLeftovers();
    if (found !== null) return found;
    const leftovers = emptyLeftovers();
    this.writeLeftovers(leftovers);
    return leftovers;
  }

  /** One small file must not keep all runs from going on; what it held is lost to counters and rates, and somebody is told. */
  #soundLeftovers(): Leftovers | null {
    try {
      return readLeftovers(this.#storeFile);
    } catch (error) {
      if (!hasCode(error, "invalid_state_document") || isOfLaterVersion(error as PawlError)) throw error;
      this.quarantine.keep(this.#storeFile, readFileSync(this.#storeFile, "utf8"), (error as PawlError).message);
      this.troubles.push(
        `${(error as PawlError).message} It is in quarantine/, and begins anew without what purged runs had used.`,
      );
      return null;
    }
  }

  #readableLeftovers(): Leftovers {
    try {
      return readLeftovers(this.#storeFile) ?? emptyLeftovers();
    } catch {
      return emptyLeftovers();
    }
  }

  /** A run whose part is in the leftovers already was about to leave. */
  #finishPurges(leftovers: Leftovers): void {
    if (leftovers.absorbed.length === 0) return;
    for (const found of [...this.documents()]) if (isAbsorbed(leftovers, found)) this.moveToArchive(found.run);
  }

  /** Never deletes: whatever has the same name there stays as well. */
  moveToArchive(run: string): void {
    this.disk.makeFolder(this.archive);
    const name = folderName(run);
    const isFree = (candidate: string) => !existsSync(join(this.archive, candidate));
    let place = name;
    for (let n = 2; !isFree(place); n++) place = `${name}.${n}`;
    this.disk.move(this.folderOf(run), join(this.archive, place));
    this.forgetStamp(run);
  }

  #file(run: string): string {
    return join(this.folderOf(run), DOCUMENT);
  }

  get #storeFile(): string {
    return join(this.path, "store.json");
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function isAbsorbed({ absorbed }: Leftovers, found: FoundDocument): boolean {
  return found.kind === "sound" && absorbed.includes(found.checksum);
}

function isOfLaterVersion({ fields }: PawlError): boolean {
  return fields["path"] === "format" && Number(fields["found"]) > FORMAT;
}

function noStore(path: string, what: string): PawlError {
  return new PawlError(
    "not_a_store",
    `${path} ${what}. Give a folder that is empty, or does not exist yet, or is a store already.`,
    { fields: { path } },
  );
}
