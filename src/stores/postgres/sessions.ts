// Connections for transactions that hold a user's SQL. Each is one transaction's alone, from its begin to its end.
import { unavailable } from "./database-error.ts";
import { type Driver, loadDriver, type PgClient } from "./driver.ts";

/** More transactions than that wait for each other: a database has few connections, and they are for commits as well. */
const MOST = 10;

export interface SessionsOptions {
  readonly where: string;
  client(driver: Driver): PgClient;
}

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #idle: PgClient[] = [];
  readonly #waiting: (() => void)[] = [];
  #taken = 0;
  #isClosed = false;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  get where(): string {
    return this.#options.where;
  }

  async take(): Promise<PgClient> {
    this.#isClosed = false;
    if (this.#taken >= MOST) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#taken++;
    return this.#idle.pop() ?? this.#connect();
  }

  async #connect(): Promise<PgClient> {
    let client: PgClient | null = null;
    try {
      client = this.#options.client(await loadDriver());
      const own = client;
      for (const event of ["error", "end"] as const) own.on(event, () => this.#forget(own));
      await own.connect();
      return own;
    } catch (error) {
      this.#free();
      if (client === null) throw error;
      leave(client);
      throw unavailable(error, this.where);
    }
  }

  #forget(client: PgClient): void {
    const at = this.#idle.indexOf(client);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  /** Its transaction is over. */
  giveBack(client: PgClient): void {
    if (this.#isClosed) leave(client);
    else this.#idle.push(client);
    this.#free();
  }

  /** Whatever its transaction has done is rolled back with the connection. */
  discard(client: PgClient): void {
    leave(client);
    this.#free();
  }

  #free(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#taken--;
    else next();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#idle.splice(0).map((client) => client.end().catch(() => {})));
  }
}

function leave(client: PgClient): void {
  client.end().catch(() => {});
}
