// The PostgreSQL store
// One schema of one database, any number of processes on any number of machines. What changes anything is one call of a function of that
// schema, and so one transaction.
import { randomUUID } from "node:crypto";
import { type Clock, systemClock } from "../../base/clock.ts";
import { PawlError } from "../../base/errors.ts";
import type { Delivery, Message, RunCommit, Store } from "../../core/store.ts";
import { checkMessage } from "../commit-fault.ts";
import { concernsOthers } from "../concerns-others.ts";
import { OwnedRuns } from "../owned-runs.ts";
import { claim, take } from "./claim.ts";
import { commit } from "./commit.ts";
import { unavailable } from "./database-error.ts";
import type { PgClient } from "./driver.ts";
import { enlist } from "./enlist.ts";
import { Links } from "./links.ts";
import { migrate } from "./migrate.ts";
import { addAudit, addFacts, addHold, auditHead, listAudits, listFacts, listHolds, removeHold } from "./operators.ts";
import { Partitions } from "./partitions.ts";
import type { PgPool } from "./pooled-client.ts";
import { Queries } from "./queries.ts";
import { countRuns, listRuns } from "./run-queries.ts";
import { StoreClock } from "./store-clock.ts";
import { emit, readChunks } from "./streams.ts";
import { transact } from "./transact.ts";
import { adopt, inspect, orphans, purge, unclaimed } from "./upkeep.ts";
import { Workers } from "./workers.ts";

export interface PostgresStoreOptions {
  /** Where the tables are; created if it is not there (default `pawl`). */
  readonly schema?: string;
  /** How many commits may be under way at once, each on a connection of its own (default 1). */
  readonly lanes?: number;
  /** For tests: what this store takes for the database's time. */
  readonly clock?: Clock;
  readonly leaseClock?: Clock;
}

const MOST_LANES = 16;
/** PostgreSQL has room for 63; the channel of the hints is called after it. */
const SCHEMA_BYTES = 58;
/** The name stands in the texts of functions, in strings inside them, and in texts whose values are marked with `?`. */
const UNUSABLE = /['"$%?\\\p{Cc}]/u;

/** A store in a PostgreSQL database, by its URL or through a pool of `pg`. Engines of one process may share it: the last one closes it. */
export function postgresStore(database: string | PgPool, options: PostgresStoreOptions = {}): Store {
  const { schema = "pawl", lanes = 1, clock = new StoreClock(), leaseClock = systemClock } = options;
  assertOptions(schema, lanes);
  const s = `"${schema.replaceAll('"', '""')}"`;
  const links = new Links(database, schema, lanes);
  const { hints, presence, where, url } = links;
  const shared = () => links.shared();
  const now = () => (clock instanceof StoreClock ? null : clock.now());
  const leaseNow = () => (leaseClock === systemClock ? null : leaseClock.monotonic());
  const owned = new OwnedRuns();
  const queries = new Queries(s, shared);
  // A measurement that fails is made with the next beat.
  const beaten = () => void measureTime().catch(() => {});
  const workers = new Workers({ schema: s, lanes, owned, link: () => presence, now, leaseNow, beaten });
  const partitions = new Partitions(s, shared);
  const created = (n: number) => partitions.created(n);
  const committing = { schema: s, owned, link: (lane: number) => links.lane(lane), now, created };
  const claiming = { schema: s, owned, link: shared, now, cursor: { slot: "", rate: "" } };
  const enlisting = { schema: s, channel: hints.channel, token: randomUUID(), now, created };
  let users = 0;
  let opening: Promise<void> | null = null;

  /** How far the database's clock is away from ours. */
  async function measureTime(): Promise<void> {
    if (!(clock instanceof StoreClock)) return;
    const sentAt = systemClock.now();
    const [row] = await presence.read(`select ${s}.time_1(null) as time`);
    clock.measured(row?.["time"] as number, sentAt);
  }

  async function bringUpToDate(client: PgClient): Promise<void> {
    try {
      await migrate(client, s);
    } catch (error) {
      throw error instanceof PawlError ? error : unavailable(error, where);
    }
  }

  async function prepare(): Promise<void> {
    const { client } = await presence.connect();
    await assertSettings(client, where);
    await bringUpToDate(client);
    await measureTime();
  }

  async function close(): Promise<void> {
    users = Math.max(0, users - 1);
    if (users > 0) return;
    opening = null;
    await workers.stopPulses();
    await links.close();
  }

  async function deliver(message: Message): Promise<Delivery> {
    checkMessage(message);
    const { to, id, kind, name, data } = message;
    const isText = typeof data === "string";
    const values = [to, id, kind, name, isText ? data : null, isText ? null : data, now()];
    const [row] = await shared().query(
      `select ${s}.deliver_1($1, $2, $3, $4, $5, $6, ${s}.time_1($7)) as delivery`,
      values,
    );
    hints.announceWork();
    return row?.["delivery"] as Delivery;
  }

  function tell(runs: readonly RunCommit[]): void {
    if (runs.some(concernsOthers)) hints.announceWork();
    for (const { run, row } of runs) if (row?.ended === true) hints.announceChanged(run);
  }

  return {
    kind: "postgres",
    clock,
    leaseClock,
    lanes,

    async open() {
      users += 1;
      opening ??= prepare();
      try {
        await opening;
      } catch (error) {
        await close();
        throw error;
      }
    },
    close,

    async register(worker) {
      await workers.register(worker);
    },
    heartbeat(worker) {
      beaten();
      return workers.heartbeat(worker);
    },
    ...(url !== null &&
      leaseClock === systemClock && {
        pulse: (worker: string, everyMs: number, stallMs: number) => workers.pulse(url, worker, everyMs, stallMs),
      }),
    workers: () => workers.list(),
    owners: () => workers.owners(),
    async fence(request) {
      const reply = await workers.fence(request);
      if (reply.released > 0) hints.announceWork();
      return reply;
    },
    async retire(worker) {
      await workers.retire(worker);
      hints.announceWork();
    },

    claim: (request) => claim(claiming, request),
    async nextWake() {
      const [row] = await shared().read(`select ${s}.next_wake_1($1) as time`, [now()]);
      return (row?.["time"] ?? null) as number | null;
    },
    take: (worker, run, { slotless } = {}) => take(claiming, worker, run, slotless),
    owned: (worker, { news }) => (news ? workers.news(worker) : workers.mail(worker)),

    async commit(request) {
      const verdicts = await commit(committing, request);
      tell(request.runs);
      return verdicts;
    },
    deliver,

    async emit(chunks) {
      await emit(shared(), s, chunks);
      for (const run of new Set(chunks.map((chunk) => chunk.run))) hints.announceChanged(run);
    },
    chunks: (run, query) => readChunks(shared(), s, run, query),

    transactions: "asynchronous",
    async transact(request, work) {
      let sealed: RunCommit | null = null;
      const verdict = await transact({ ...committing, sessions: links.sessions }, request, async (sql) => {
        const { worker, commit } = await work(sql);
        sealed = commit;
        return { worker, commit };
      });
      if (verdict.kind === "applied" && sealed !== null) tell([sealed]);
      return verdict;
    },
    enlist: (transaction, part) => enlist(enlisting, transaction, part),

    run: (id) => queries.run(id),
    runs: (query) => listRuns(shared(), s, query),
    counts: (filter, bound) => countRuns(shared(), s, filter, bound),
    journal: (run, { from, limit } = {}) => queries.journal(run, from, limit),
    inbox: (run) => queries.inbox(run),
    waits: (query) => queries.waits(query),
    state: (run) => queries.state(run),
    key: (space, key) => queries.key(space, key),
    counters: (prefix) => queries.counters(prefix),

    unclaimed: (query) => unclaimed(shared(), s, query),
    orphans: () => orphans(shared(), s),
    async adopt(runs) {
      const adopted = await adopt(shared(), s, runs, now());
      if (adopted > 0) hints.announceWork();
      return adopted;
    },
    purge: (request) => purge(shared(), s, request, now()),

    hold: (run, hold) => addHold(shared(), s, run, hold, now()),
    releaseHold: (run) => removeHold(shared(), s, run),
    holds: (query) => listHolds(shared(), s, query),
    record: (entry) => addAudit(shared(), s, entry, clock.now()),
    audits: (query) => listAudits(shared(), s, query),
    auditHead: () => auditHead(shared(), s),
    describe: (workflows) => addFacts(shared(), s, workflows, now()),
    workflows: () => listFacts(shared(), s),

    hints: (listener) => hints.listen(listener),
    inspect: () => inspect(shared(), s, where),
  };
}

/** The functions rely on a new snapshot for each of their statements, and what is stored on every letter. */
async function assertSettings(client: PgClient, where: string): Promise<void> {
  const { rows } = await client.query({
    text: "select current_setting('transaction_isolation') as isolation, current_setting('server_encoding') as encoding",
  });
  const { isolation, encoding } = rows[0] ?? {};
  if (encoding !== "UTF8")
    throw new PawlError(
      "invalid_argument",
      `The encoding of ${where} is ${encoding}, which does not hold every text. Pawl needs UTF8: create database … encoding 'UTF8' template template0.`,
      { fields: { encoding } },
    );
  if (isolation === "read committed") return;
  throw new PawlError(
    "invalid_argument",
    `The default isolation of ${where} is "${isolation}". Pawl needs "read committed": set default_transaction_isolation for its user (alter role … set …).`,
    { fields: { isolation } },
  );
}

function assertOptions(schema: string, lanes: number): void {
  if (schema === "" || UNUSABLE.test(schema) || Buffer.byteLength(schema) > SCHEMA_BYTES) {
    const shown = JSON.stringify(schema);
    const rule = `a name of 1 to ${SCHEMA_BYTES} bytes, without quotes, $, %, ?, backslashes and control characters`;
    throw new PawlError("invalid_argument", `schema is ${shown}. Give ${rule}.`, { fields: { schema } });
  }
  if (Number.isInteger(lanes) && lanes >= 1 && lanes <= MOST_LANES) return;
  throw new PawlError("invalid_argument", `lanes is ${lanes}. Give a whole number from 1 to ${MOST_LANES}.`, {
    fields: { lanes },
  });
}
