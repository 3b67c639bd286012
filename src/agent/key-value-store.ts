// A worker's documents on a server
// Anything that keeps values under keys, and replaces one only if it is still the version that was seen, can hold them: Redis, a table, an object store.
//
//   KV1. The lease is a document. Each renewal gives it a new version, so whether an owner lives is seen by watching it, and no two clocks are compared.
//   KV2. Whoever takes over writes every document of the execution again. A former owner that comes back knows versions that are gone, and is refused.
//   KV3. Every write and removal names the version that it replaces. One whose answer was lost is known again.
import { hostname } from "node:os";
import { type Clock, systemClock } from "../base/clock.ts";
import { type Duration, toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import type { ProcessIdentity } from "../core/store.ts";
import { isPlainlyDead, processIdentity } from "../worker/process-identity.ts";
import {
  type CheckpointStore,
  type CheckpointStoreOptions,
  checkpointStore,
  type WorkerFolder,
} from "./checkpoint-store.ts";
import { checkedWorkerName } from "./worker-directory.ts";

/** A value with the version of it: an ETag, a row's number. */
export interface Versioned {
  readonly value: Uint8Array;
  readonly version: string;
}

/** What a key-value server, a table or an object store must be able to do. */
export interface KeyValue {
  get(key: string): Promise<Versioned | null>;
  /** Durable when it resolves. Gives the new version; `null`: what is there is not `expected` (`null`: nothing), and nothing was written. */
  put(key: string, value: Uint8Array, expected: string | null): Promise<string | null>;
  /** False: what is there is not `expected`, and stays. */
  delete(key: string, expected: string): Promise<boolean>;
  /** All keys that begin with this. */
  list(prefix: string): Promise<readonly string[]>;
}

export interface KeyValueStoreOptions extends CheckpointStoreOptions {
  /** Stays the same over restarts. */
  readonly worker: string;
  /** What all keys begin with. Default "workers/". */
  readonly prefix?: string;
  /** How long an owner that is not heard of keeps the worker's documents. Default 30 s. */
  readonly lease?: Duration;
  /** What leases are counted on. */
  readonly clock?: Clock;
}

/** Keeps a worker's execution on a server, with a lease. Each document takes one call. */
export function keyValueStore(server: KeyValue, options: KeyValueStoreOptions): CheckpointStore {
  return checkpointStore(keyValueFolder(server, options), options);
}

/** The same without the rules of executions: for those who look at the documents. */
export function keyValueFolder(server: KeyValue, options: KeyValueStoreOptions): WorkerFolder {
  return new KeyValueFolder(server, options);
}

interface Lease {
  /** Rises each time the documents change hands. */
  readonly number: number;
  readonly pid: number;
  readonly host: string;
  readonly since: string;
  readonly process: ProcessIdentity;
  /** Rises with every renewal. */
  readonly beat: number;
  readonly released_at?: string;
}

const LEASE = "lease.json";
/** Of the lease: how often it is renewed, and looked at by others. */
const BEATS = 3;
const FENCED = ["request.json", "checkpoint.json", "checkpoint.delta.json", "completed", "effects"];

class KeyValueFolder implements WorkerFolder {
  readonly place: string;
  readonly #server: KeyValue;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #worker: string;
  /** The versions that this owner knows, by name. */
  readonly #versions = new Map<string, string>();
  #held: { readonly lease: Lease; readonly until: number } | null = null;
  #forget: () => void = () => {};
  #renewing: Promise<void> = Promise.resolve();

  constructor(
    server: KeyValue,
    { worker, prefix = "workers/", lease = "30s", clock = systemClock }: KeyValueStoreOptions,
  ) {
    this.#server = server;
    this.#clock = clock;
    this.#leaseMs = toMs(lease, "lease");
    this.#worker = checkedWorkerName(worker);
    this.place = prefix + worker;
  }

  async open(): Promise<void> {
    const found = await this.#server.get(this.#key(LEASE));
    const before = found === null ? null : readLease(found.value);
    if (found !== null && before !== null && isTaken(before)) await this.#seeItExpire(found.version, before);
    const begun = this.#clock.monotonic();
    const lease: Lease = {
      number: (before?.number ?? 0) + 1,
      pid: process.pid,
      host: hostname(),
      since: new Date(this.#clock.now()).toISOString(),
      process: processIdentity(),
      beat: 0,
    };
    const version = await this.#server.put(this.#key(LEASE), bytesOf(lease), found?.version ?? null);
    if (version === null) throw await this.#busy();
    this.#versions.clear();
    this.#versions.set(LEASE, version);
    this.#held = { lease, until: begun + this.#leaseMs };
    for (const name of FENCED) await this.#fence(name);
    this.#renewLater();
  }

  async close(): Promise<void> {
    this.#forget();
    await this.#renewing;
    const held = this.#held;
    this.#held = null;
    if (held === null) return;
    const released = { ...held.lease, released_at: new Date(this.#clock.now()).toISOString() };
    await this.#server.put(this.#key(LEASE), bytesOf(released), this.#versions.get(LEASE) ?? null);
  }

  async read(name: string): Promise<Uint8Array | null> {
    const found = await this.#server.get(this.#key(name));
    return found?.value ?? null;
  }

  async write(name: string, bytes: Uint8Array): Promise<void> {
    this.#check();
    const key = this.#key(name);
    const version =
      (await this.#server.put(key, bytes, await this.#versionOf(name))) ?? (await this.#versionIfOurs(name, bytes));
    if (version === null) throw await this.#busy();
    this.#versions.set(name, version);
  }

  /**
   * An answer may be lost, and what is tried again is there already. It is ours if nobody has taken the lease: whoever does writes the lease first, and
   * everything else again after that, so this order of looking cannot take their write for ours.
   */
  async #versionIfOurs(name: string, bytes: Uint8Array): Promise<string | null> {
    const found = await this.#server.get(this.#key(name));
    if (found === null || Buffer.compare(found.value, bytes) !== 0) return null;
    return (await this.#ownLease()) === null ? null : found.version;
  }

  /** The version of the lease, if it is still this owner's. */
  async #ownLease(): Promise<string | null> {
    const found = await this.#server.get(this.#key(LEASE));
    const lease = found === null ? null : readLease(found.value);
    const isOurs = lease !== null && isTaken(lease) && lease.number === this.#held?.lease.number;
    return found !== null && isOurs ? found.version : null;
  }

  async remove(name: string): Promise<void> {
    this.#check();
    const version = await this.#versionOf(name);
    if (version === null) return;
    const isGone =
      (await this.#server.delete(this.#key(name), version)) || (await this.#server.get(this.#key(name))) === null;
    if (!isGone) throw await this.#busy();
    this.#versions.delete(name);
  }

  async list(below: string): Promise<string[]> {
    const keys = await this.#server.list(this.#key(`${below}/`));
    return keys.map((key) => key.slice(this.place.length + 1)).sort();
  }

  /** What is not fenced (copies in the archive, which nobody reads to go on) is known by its version when it is first written. */
  async #versionOf(name: string): Promise<string | null> {
    const known = this.#versions.get(name);
    if (known !== undefined || FENCED.includes(name)) return known ?? null;
    return (await this.#server.get(this.#key(name)))?.version ?? null;
  }

  async #fence(name: string): Promise<void> {
    const found = await this.#server.get(this.#key(name));
    if (found === null) return;
    this.#versions.set(name, found.version);
    await this.write(name, found.value);
  }

  /** Waits until the owner has not been heard of for a whole lease. Throws if it is. */
  async #seeItExpire(version: string, lease: Lease): Promise<void> {
    if (isPlainlyDead(lease.process, processIdentity())) return;
    for (let beat = 0; beat < BEATS; beat++) {
      await new Promise<void>((resolve) => void this.#clock.after(this.#leaseMs / BEATS, resolve));
      const now = await this.#server.get(this.#key(LEASE));
      if (now?.version !== version) throw await this.#busy();
    }
  }

  #renewLater(): void {
    this.#forget = this.#clock.after(this.#leaseMs / BEATS, () => {
      this.#renewing = this.#renew().catch(() => {
        // Not renewed: it ends by itself unless a later beat gets through.
      });
      void this.#renewing.then(() => this.#held !== null && this.#renewLater());
    });
  }

  async #renew(): Promise<void> {
    if (this.#held === null) return;
    const begun = this.#clock.monotonic();
    const lease = { ...this.#held.lease, beat: this.#held.lease.beat + 1 };
    const put = () => this.#server.put(this.#key(LEASE), bytesOf(lease), this.#versions.get(LEASE) ?? null);
    let version = await put();
    const own = version === null ? await this.#ownLease() : null;
    if (own !== null) {
      // The answer to the last renewal was lost.
      this.#versions.set(LEASE, own);
      version = await put();
    }
    if (version === null) {
      this.#held = null;
      return;
    }
    this.#versions.set(LEASE, version);
    if (this.#held !== null) this.#held = { lease, until: begun + this.#leaseMs };
  }

  #check(): void {
    if (this.#held === null || this.#clock.monotonic() >= this.#held.until) throw this.#refusal(null);
  }

  async #busy(): Promise<PawlError> {
    const found = await this.#server.get(this.#key(LEASE));
    return this.#refusal(found === null ? null : readLease(found.value));
  }

  #refusal(lease: Lease | null): PawlError {
    const owner = lease !== null && isTaken(lease) ? lease : null;
    const who =
      owner === null
        ? "another process, or its lease has run out"
        : `process ${owner.pid} on ${owner.host}, since ${owner.since}`;
    const { pid, host, since, number } = owner ?? {};
    return new PawlError(
      "worker_directory_busy",
      `The documents ${this.place} of worker "${this.#worker}" belong to ${who}, and one process at a time may work on them. Stop that process, or use another worker's name.`,
      {
        fields: { path: this.place, worker: this.#worker, owner: owner === null ? null : { pid, host, since, number } },
      },
    );
  }

  #key(name: string): string {
    return `${this.place}/${name}`;
  }
}

function isTaken(lease: Lease): boolean {
  return lease.released_at === undefined;
}

function bytesOf(lease: Lease): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(lease, null, 2)}\n`);
}

/** A lease that nobody can read has no owner that could be asked. */
function readLease(bytes: Uint8Array): Lease | null {
  try {
    const lease = JSON.parse(new TextDecoder().decode(bytes)) as Lease;
    return typeof lease.number === "number" ? lease : null;
  } catch {
    return null;
  }
}
