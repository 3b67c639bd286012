// The connections of one store
// A lane of commits has its own, as it waits for the disk; so have heartbeats, which must not wait behind anything; the rest shares a few.
import { shownUrl } from "../../base/shown-url.ts";
import { type Driver, loadDriver, type PgClient } from "./driver.ts";
import { Hints } from "./hints.ts";
import { Link, type LinkOptions } from "./link.ts";
import { assertPoolSize, type PgPool, PooledClient } from "./pooled-client.ts";
import { Sessions } from "./sessions.ts";

/** A commit, a heartbeat or a new connection that takes longer has no answer any more. */
const ANSWER_LIMIT_MS = 10_000;
const QUERY_LIMIT_MS = 60_000;
const SHARED = 2;
/** Heartbeats, hints, and at least one for transactions with a user's SQL. */
const OWN = 3;
const MOST_SESSIONS = 10;

export class Links {
  /** Says which database it is, without a password. */
  readonly where: string;
  readonly hints: Hints;
  readonly presence: Link;
  readonly sessions: Sessions;
  readonly #database: string | PgPool;
  readonly #lanes: readonly Link[];
  readonly #shared: readonly Link[];

  constructor(database: string | PgPool, schema: string, lanes: number) {
    this.#database = database;
    this.where = whereOf(database);
    const needed = lanes + SHARED + OWN;
    if (typeof database !== "string") assertPoolSize(database, needed);
    const several = (count: number, limitMs: number) =>
      Array.from({ length: count }, () => new Link(this.#options(limitMs)));
    this.#lanes = several(lanes, ANSWER_LIMIT_MS);
    this.#shared = several(SHARED, QUERY_LIMIT_MS);
    this.presence = new Link(this.#options(ANSWER_LIMIT_MS));
    // Of a pool, what the others need is left to them: a transaction waits for commits, and must not keep them from a connection.
    const room = typeof database === "string" ? MOST_SESSIONS : (database.options?.max ?? MOST_SESSIONS) - needed + 1;
    const most = Math.max(1, Math.min(MOST_SESSIONS, room));
    const kept = typeof database === "string" ? MOST_SESSIONS : 1;
    this.sessions = new Sessions({ ...this.#options(QUERY_LIMIT_MS), most, kept });
    this.hints = new Hints(schema, () => this.shared(), this.#options(ANSWER_LIMIT_MS));
  }

  /** A pool stays where it is; a URL can go to another thread. */
  get url(): string | null {
    return typeof this.#database === "string" ? this.#database : null;
  }

  #options(limitMs: number): LinkOptions {
    return optionsOf(this.#database, limitMs);
  }

  lane(lane: number): Link {
    return this.#lanes[lane] as Link;
  }

  /** The one with the shortest queue; one more is opened only when the others are busy. */
  shared(): Link {
    const open = this.#shared.filter((link) => link.isOpen);
    const [best] = open.toSorted((a, b) => a.pending - b.pending);
    if (best?.pending === 0) return best;
    return this.#shared.find((link) => !link.isOpen) ?? (best as Link);
  }

  async close(): Promise<void> {
    await this.hints.close();
    await this.sessions.close();
    await Promise.all([...this.#lanes, ...this.#shared, this.presence].map((link) => link.close()));
  }
}

/** One connection of its own. */
export function linkTo(url: string, limitMs: number): Link {
  return new Link(optionsOf(url, limitMs));
}

function optionsOf(database: string | PgPool, limitMs: number): LinkOptions {
  const client = (driver: Driver) => clientOf(driver, database, limitMs);
  return { where: whereOf(database), limitMs, driver: loadDriver, client };
}

function clientOf(driver: Driver, database: string | PgPool, limitMs: number): PgClient {
  if (typeof database !== "string") return new PooledClient(database);
  return driver.client({
    connectionString: database,
    pipeline: true,
    application_name: "pawl",
    keepAlive: true,
    connectionTimeoutMillis: ANSWER_LIMIT_MS,
    query_timeout: limitMs,
  });
}

function whereOf(database: string | PgPool): string {
  return typeof database === "string" ? shownUrl(database) : "of the given pool";
}
