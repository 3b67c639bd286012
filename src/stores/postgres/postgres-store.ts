// The PostgreSQL store
// One schema of one database, any number of processes on any number of machines. Every method is one call of a function of that schema, and
// so one transaction. Commits have a connection for each lane; everything else shares a few.
import { type Clock, systemClock } from "../../base/clock.ts";
import { PawlError } from "../../base/errors.ts";
import type { Commit, Store, Verdict } from "../../core/store.ts";
import { checkMessage } from "../commit-fault.ts";
import { OwnedRuns } from "../owned-runs.ts";
import { claim, take } from "./claim.ts";
import { commit } from "./commit.ts";
import { type Driver, loadDriver, type PgClient } from "./driver.ts";
import { Hints } from "./hints.ts";
import { Link } from "./link.ts";
import { migrate } from "./migrate.ts";
import { Queries } from "./queries.ts";
import { LATEST_SCHEMA } from "./schema.ts";
import { StoreClock } from "./store-clock.ts";
import { Workers } from "./workers.ts";

export interface PostgresStoreOptions {
  /** Where the tables are; created if it is not there (default `pawl`). */
  readonly schema?: string;
  /** For tests: the time that this store takes for the database's. */
  readonly clock?: Clock;
  readonly leaseClock?: Clock;
  /** How many commits may be under way at once (default 1). */
  readonly lanes?: number;
}

const COMMIT_LIMIT_MS = 10_000;
const QUERY_LIMIT_MS = 60_000;
const LANES_MOST = 16;

/** A store in a PostgreSQL database, by its URL. */
export function postgresStore(url: string, options: PostgresStoreOptions = {}): Store {
  const { schema = "pawl", lanes = 1, clock = new StoreClock(), leaseClock = systemClock } = options;
  assertOptions(schema, lanes);
  const s = `"${schema.replaceAll('"', '""')}"`;
  const where = shownUrl(url);
  const link = (limitMs: number) =>
    new Link({
      where,
      driver: loadDriver,
      client: (driver: Driver): PgClient =>
        driver.client({
          connectionString: url,
          pipeline: true,
          application_name: "pawl",
          keepAlive: true,
          connectionTimeoutMillis: COMMIT_LIMIT_MS,
          query_timeout: limitMs,
        }),
    });
  const laneLinks = Array.from({ length: lanes }, () => link(COMMIT_LIMIT_MS));
  const presence = link(COMMIT_LIMIT_MS);
  const shared = [link(QUERY_LIMIT_MS), link(QUERY_LIMIT_MS)];
  const leastBusy = () => shared.reduce((a, b) => (b.isOpen && b.pending < a.pending ? b : a));
  const receiver = link(COMMIT_LIMIT_MS);
  void receiver;
  const owned = new OwnedRuns();
  const isOurs = clock instanceof StoreClock;
  const now = () => (isOurs ? null : clock.now());
  const leaseNow = () => (leaseClock === systemClock ? null : leaseClock.monotonic());
  const hints = new Hints(schema, leastBusy, {
    where,
    driver: loadDriver,
    client: (driver) =>
      driver.client({
        connectionString: url,
        application_name: "pawl hints",
        keepAlive: true,
        connectionTimeoutMillis: COMMIT_LIMIT_MS,
        query_timeout: COMMIT_LIMIT_MS,
      }),
  });
  const queries = new Queries(s, leastBusy);
  const workers = new Workers({ schema: s, lanes, owned, link: () => presence, now, leaseNow });
  const laneOf = (run: string) => (lanes === 1 ? 0 : hashOf(run) % lanes);
  const committing = { schema: s, owned, laneOf, link: (lane: number) => laneLinks[lane] as Link, now };
  const claiming = { schema: s, owned, link: leastBusy, now };
  let users = 0;

  const measure = async () => {
    if (!isOurs) return;
    const sentAt = systemClock.now();
    const [row] = await presence.query(`select ${s}.time_1(null) as time`);
    (clock as StoreClock).measured(row?.["time"] as number, sentAt);
  };

  return {
    kind: "postgres",
    clock,
    leaseClock,
    lanes,

    async open() {
      const { client } = await presence.connect();
      if (users === 0) {
        await migrate(client, s);
        await measure();
      }
      users += 1;
    },
    async close() {
      users = Math.max(0, users - 1);
      if (users > 0) return;
      await hints.close();
      await Promise.all([...laneLinks, presence, ...shared].map((one) => one.close()));
    },

    register: (worker) => workers.register(worker),
    async heartbeat(worker) {
      const [reply] = await Promise.all([workers.heartbeat(worker), measure()]);
      return reply;
    },
    workers: () => workers.list(),
    fence: (request) => workers.fence(request),
    retire: (worker) => workers.retire(worker),

    claim: (request) => claim(claiming, request),
    async nextWake() {
      const [row] = await leastBusy().query(`select ${s}.next_wake_1() as time`);
      return (row?.["time"] ?? null) as number | null;
    },
    take: (worker, run) => take(claiming, worker, run),
    owned: (worker, { news }) => (news ? workers.news(worker) : workers.mail(worker)),

    async commit(request) {
      const verdicts = await commit(committing, request);
      if (concernsOthers(request, verdicts)) hints.announce();
      return verdicts;
    },
    async deliver(message) {
      checkMessage(message);
      const { to, id, kind, name, data } = message;
      const isText = typeof data === "string";
      const [row] = await leastBusy().query(
        `select ${s}.deliver_1($1, $2, $3, $4, $5, $6, ${s}.time_1($7)) as delivery`,
        [to, id, kind, name, isText ? data : null, isText ? null : data, now()],
      );
      hints.announce();
      return row?.["delivery"] as Awaited<ReturnType<Store["deliver"]>>;
    },

    run: (id) => queries.run(id),
    runs: (query) => queries.runs(query),
    journal: (run, { from, limit } = {}) => queries.journal(run, from, limit),
    inbox: (run) => queries.inbox(run),
    waits: (query) => queries.waits(query),
    state: (run) => queries.state(run),
    key: (space, key) => queries.key(space, key),
    counters: (prefix) => queries.counters(prefix),

    async orphans() {
      const rows = await leastBusy().query(`select run, state, why from ${s}.orphans_1()`);
      return rows as never;
    },
    async adopt(runs) {
      const [row] = await leastBusy().query(`select ${s}.adopt_1($1, $2) as adopted`, [runs, now()]);
      return row?.["adopted"] as number;
    },
    async purge({ succeededBefore, failedBefore, limit }) {
      const [row] = await leastBusy().query(`select ${s}.purge_1($1, $2, $3) as purged`, [
        succeededBefore,
        failedBefore,
        limit,
      ]);
      await leastBusy().query(`select ${s}.partition_1()`);
      return row?.["purged"] as number;
    },

    hints: (listener) => hints.listen(listener),
    async inspect() {
      const [row] = await leastBusy().query(
        `select version(), current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit`,
      );
      const faults: string[] = [];
      if (row?.["fsync"] === "off") faults.push("The server does not sync to its disk (fsync is off): a crash of its machine can lose everything. Turn it on.");
      if (row?.["synchronous_commit"] === "off")
        faults.push("The server acknowledges before it has synced (synchronous_commit is off): a crash can lose what was acknowledged. Turn it on.");
      const { version, ...settings } = row as Record<string, string>;
      return { store: "postgres", version: String(version), schema: LATEST_SCHEMA, settings: { url: where, name: schema, ...settings }, faults };
    },
  };
}

function concernsOthers({ runs }: Commit, verdicts: readonly Verdict[]): boolean {
  return runs.some(
    ({ create, row, messages, children }, i) =>
      verdicts[i]?.kind === "applied" &&
      (create?.claimed === false ||
        row?.ended === true ||
        messages !== undefined ||
        children?.some((child) => !child.create.claimed) === true),
  );
}

function assertOptions(schema: string, lanes: number): void {
  if (schema === "" || schema.includes("\0") || Buffer.byteLength(schema) > 63) {
    throw new PawlError("invalid_argument", `"${schema}" is no name of a schema. Give one of 1 to 63 bytes.`, {
      fields: { schema },
    });
  }
  if (Number.isInteger(lanes) && lanes >= 1 && lanes <= LANES_MOST) return;
  throw new PawlError("invalid_argument", `lanes is ${lanes}. Give a whole number from 1 to ${LANES_MOST}.`, {
    fields: { lanes },
  });
}

/** Without its password. */
function shownUrl(url: string): string {
  return url.replace(/\/\/[^@/]*@/, "//…@").replace(/\?.*$/, "");
}

function hashOf(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) >>> 0;
  return hash;
}
