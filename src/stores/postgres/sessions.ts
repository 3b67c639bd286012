// Connections for transactions that hold a user's SQL. Each is one transaction's alone, from its begin to its end.
import { unavailable } from "./database-error.ts";
import { type Driver, loadDriver, type PgClient } from "./driver.ts";

export interface SessionsOptions {
  readonly where: string;
  /** More transactions than that wait for each other: a database has few connections, and they are for commits as well. */
  readonly most: number;
  /** How many are kept for the next transactions. */
  readonly kept: number;
  client(driver: Driver): PgClient;
}

export class Session {
  readonly client: PgClient;
  /** Told when the connection is gone. */
  lost: (error?: unknown) => void = () => {};

  constructor(client: PgClient) {
    this.client = client;
  }
}

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #idle: Session[] = [];
  readonly #waiting: (() => void)[] = [];
  #taken = 0;
  #isClosed = false;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  get where(): string {
    return this.#options.where;
  }

  async take(): Promise<Session> {
    this.#isClosed = false;
    if (this.#taken >= this.#options.most) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#taken++;
    return this.#idle.pop() ?? this.#connect();
  }

  async #connect(): Promise<Session> {
    let client: PgClient | null = null;
    try {
      client = this.#options.client(await loadDriver());
      const session = new Session(client);
      for (const event of ["error", "end"] as const) client.on(event, (error) => this.#lost(session, error));
      await client.connect();
      return session;
    } catch (error) {
      this.#free();
      if (client === null) throw error;
      leave(client);
      throw unavailable(error, this.where);
    }
  }

  #lost(session: Session, error: unknown): void {
    const at = this.#idle.indexOf(session);
    if (at >= 0) this.#idle.splice(at, 1);
    session.lost(error);
  }

  /** Its transaction is over. */
  giveBack(session: Session): void {
    session.lost = () => {};
    if (this.#isClosed || this.#idle.length >= this.#options.kept) leave(session.client);
    else this.#idle.push(session);
    this.#free();
  }

  /** Whatever its transaction has done is rolled back with the connection. */
  discard({ client }: Session): void {
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
    await Promise.all(this.#idle.splice(0).map(({ client }) => client.end().catch(() => {})));
  }
}

function leave(client: PgClient): void {
  client.end().catch(() => {});
}
