// Connections that outlive the stores of tests
// A new connection is a new process of the server, which reads the catalogue and compiles the functions of the schema again: that takes longer than
// most tests. So those of a schema are kept for the store that is opened on it next.
//
//   KC1. A connection is kept only if it has answered everything and is in no transaction; any other ends, as its store wants it.
//   KC2. Nobody hears anything of a connection that he has left; it listens to nothing and has no settings of his.
//   KC3. Statements are planned once for each connection, which stores do not ask for: behind a pooler that could not be had.
//   KC4. Only addresses that were made here are served so: tests of connections have the driver's own.
import { Driver, loadDriver, type PgClient, type PgQuery, type PgResult } from "../src/stores/postgres/driver.ts";

/** Of all schemas of a process. The server has room for 300 connections of all processes. */
const MOST_KEPT = 40;
const IN_NO_TRANSACTION = "I";
const GONE = ["error", "end"] as const;
const CLEANING = "unlisten *; reset all; discard temp; select pg_advisory_unlock_all()";

type Listener = (...args: never[]) => void;

interface Connection extends PgClient {
  getTransactionStatus(): string | null;
  removeListener(event: string, listener: Listener): unknown;
}

interface Kept {
  /** Which connections it may stand for. */
  readonly like: string;
  readonly connection: Connection;
  readonly lost: () => void;
}

const kept = new Set<Kept>();
const served = new Set<string>();
let serving: Promise<void> | null = null;

/** An address of the server whose connections are kept for those who come with the same name. */
export async function keptAddress(url: string, name: string): Promise<string> {
  serving ??= serve();
  await serving;
  const address = new URL(url);
  address.searchParams.set("application_name", name);
  served.add(address.href);
  return address.href;
}

async function serve(): Promise<void> {
  const driver = await loadDriver();
  driver.client = (options: { readonly connectionString?: string }) => {
    const create = () => Driver.prototype.client.call(driver, options) as Connection;
    return served.has(options.connectionString ?? "") ? new LentClient(JSON.stringify(options), create) : create();
  };
}

class LentClient implements PgClient {
  readonly #like: string;
  readonly #connection: Connection;
  readonly #listeners: (readonly [event: string, listener: Listener])[] = [];
  #isConnected: boolean;
  #isLeft = false;
  #pending = 0;

  constructor(like: string, create: () => Connection) {
    this.#like = like;
    const found = take(like);
    this.#isConnected = found !== null;
    this.#connection = found ?? create();
    for (const event of GONE) this.on(event, () => this.#lost());
  }

  #lost(): void {
    this.#isConnected = false;
  }

  async connect(): Promise<void> {
    if (this.#isConnected) return;
    await this.#connection.connect();
    this.#isConnected = true;
  }

  on(event: string, listener: Listener): void {
    this.#listeners.push([event, listener]);
    this.#connection.on(event as "error", listener as () => void);
  }

  async query(query: PgQuery): Promise<PgResult> {
    if (this.#isLeft) throw new Error("The connection was left.");
    return this.#ask(query);
  }

  async #ask(query: PgQuery): Promise<PgResult> {
    this.#pending++;
    try {
      return await this.#connection.query(query.values === undefined ? query : named(query));
    } catch (error) {
      // The server did not say so: nobody knows what becomes of the statement.
      if (!("severity" in (error as object))) this.#lost();
      throw error;
    } finally {
      this.#pending--;
    }
  }

  async end(): Promise<void> {
    if (this.#isLeft) return;
    this.#isLeft = true;
    if (!this.#isFree() || !(await this.#clean())) return void (await this.#connection.end());
    for (const [event, listener] of this.#listeners) this.#connection.removeListener(event, listener);
    keep(this.#like, this.#connection);
  }

  #isFree(): boolean {
    return this.#isConnected && this.#pending === 0 && this.#connection.getTransactionStatus() === IN_NO_TRANSACTION;
  }

  async #clean(): Promise<boolean> {
    for (const [event, listener] of this.#listeners)
      if (event === "notification") this.#connection.removeListener(event, listener);
    await this.#ask({ text: CLEANING }).catch(() => this.#lost());
    return this.#isConnected;
  }
}

function keep(like: string, connection: Connection): void {
  const one: Kept = { like, connection, lost: () => void kept.delete(one) };
  kept.add(one);
  for (const event of GONE) connection.on(event, one.lost);
  const [oldest] = kept;
  if (oldest !== undefined && kept.size > MOST_KEPT) end(release(oldest));
}

function take(like: string): Connection | null {
  const found = [...kept].findLast((one) => one.like === like);
  return found === undefined ? null : release(found);
}

function release(one: Kept): Connection {
  const { connection, lost } = one;
  kept.delete(one);
  for (const event of GONE) connection.removeListener(event, lost);
  return connection;
}

/** Whatever it still says, nobody waits for it. */
function end(connection: Connection): void {
  connection.on("error", () => {});
  connection.end().catch(() => {});
}

const names = new Map<string, string>();

/** Has a statement planned once for each connection. Here they are few and come again, and to plan them takes longer than to carry them out. */
function named(query: PgQuery): PgQuery & { readonly name: string } {
  const name = names.get(query.text) ?? `s${names.size}`;
  names.set(query.text, name);
  return { ...query, name };
}
