// Empty PostgreSQL stores for tests. A schema takes longer to create than to empty, so those of a process are used again; they go with the run
// of all tests (postgres-setup.ts).
import { inject } from "vitest";
import type { Store } from "../src/core/store.ts";
import { loadDriver, type PgClient } from "../src/stores/postgres/driver.ts";
import { type PostgresStoreOptions, postgresStore } from "../src/stores/postgres/postgres-store.ts";
import { keptAddress } from "./postgres-connections.ts";

const TABLES =
  "kept audits workflows chunks runs journal inbox waits state tags keys counters holds starts workers fences".split(
    " ",
  );

const free: string[] = [];
let created = 0;
let admin: PgClient | null = null;

/** Calls under way to the server. Whoever lets things settle waits for them. */
export class Calls {
  pending = 0;
  #wake = () => {};
  #answered: Promise<void> | null = null;

  /** Resolves with the next answer. To go round the event loop meanwhile would take from the server the core that it needs. */
  answered(): Promise<void> {
    this.#answered ??= new Promise((resolve) => (this.#wake = resolve));
    return this.#answered;
  }

  async count<T>(call: () => Promise<T>): Promise<T> {
    this.pending++;
    try {
      return await call();
    } finally {
      this.pending--;
      this.#answered = null;
      this.#wake();
    }
  }
}

export const database: Calls = new Calls();
const onServer = new WeakSet<Store>();

/** The calls that whoever works on this store waits for: those of files that share the process do not concern the others. */
export function serverOf(store: Store): Calls | null {
  return onServer.has(store) ? database : null;
}

/** A store in an empty schema, not opened yet; `leave` gives the schema back. */
export async function emptyPostgresStore(options: PostgresStoreOptions): Promise<{ store: Store; leave(): void }> {
  const url = inject("postgresUrl");
  const schema = free.pop() ?? `${inject("postgresSchemas")}${process.pid}_${++created}`;
  const client = await adminOf(url);
  const { rows } = await client.query({
    text: "select to_regclass($1) is not null as found",
    values: [`${schema}.runs`],
  });
  if (rows[0]?.["found"] === true) await client.query({ text: emptying(schema) });
  const store = counted(postgresStore(await keptAddress(url, schema), { ...options, schema }));
  onServer.add(store);
  return { store, leave: () => void free.push(schema) };
}

/** What it empties need not survive anything. Said for the transaction alone: behind a pooler, others have the session next. */
function emptying(schema: string): string {
  const deletions = TABLES.map((table) => `delete from ${schema}.${table}`);
  const beginning = `update ${schema}.audit_head set n = 0, hash = '' where n > 0`;
  return ["begin", "set local synchronous_commit = off", ...deletions, beginning, "commit"].join("; ");
}

function counted(store: Store): Store {
  const counting =
    (call: (...args: never[]) => Promise<unknown>) =>
    (...args: never[]) =>
      database.count(() => call(...args));
  // Without a pulse: a thread for each of a thousand engines is no part of what these tests are about.
  const { pulse: _pulse, ...rest } = store;
  const entries = Object.entries(rest).map(([name, value]) =>
    typeof value === "function" && name !== "hints"
      ? [name, counting(value as (...args: never[]) => Promise<unknown>)]
      : [name, value],
  );
  return Object.fromEntries(entries) as Store;
}

async function adminOf(url: string): Promise<PgClient> {
  if (admin !== null) return admin;
  const client = (await loadDriver()).client({ connectionString: url });
  await client.connect();
  admin = client;
  return client;
}
