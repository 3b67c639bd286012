// What a failover has lost: everything that was acknowledged and is not in the database that goes on. To be asked while nobody can write to it.
import pg from "pg";

const ENDED = new Set(["succeeded", "failed", "cancelled"]);

export class Losses {
  #acks;
  /** By kind: when it was acknowledged. */
  #told = { starts: new Map(), signals: new Map(), results: new Map() };
  /** Of each failover: how many of each kind, and how long before the end of the old primary the first of them was acknowledged. */
  found = [];

  constructor(acks) {
    this.#acks = acks;
  }

  async examine(url, killedAt) {
    for (const line of this.#acks.news()) this.#note(line);
    const there = await read(url);
    const lost = {
      starts: this.#missing("starts", (run) => there.runs.has(run)),
      signals: this.#missing("signals", (signal) => there.signals.has(signal)),
      results: this.#missing("results", (run) => ENDED.has(there.runs.get(run))),
    };
    const times = Object.values(lost).flat();
    const counts = Object.fromEntries(Object.entries(lost).map(([kind, all]) => [kind, all.length]));
    const windowMs = times.length === 0 ? 0 : Math.max(0, killedAt - Math.min(...times));
    this.found.push({ ...counts, windowMs });
    return times.length;
  }

  #note({ what, run, id, mono }) {
    if (what === "started") this.#told.starts.set(run, mono);
    if (what === "signalled") this.#told.signals.set(`${run} ${id}`, mono);
    if (what === "result") this.#told.results.set(run, mono);
  }

  /** When each of those that are missing was acknowledged. They are not missed a second time. */
  #missing(kind, isThere) {
    const told = this.#told[kind];
    const missing = [...told].filter(([key]) => !isThere(key));
    for (const [key] of missing) told.delete(key);
    return missing.map(([, time]) => time);
  }
}

async function read(connectionString) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    const rows = async (text) => (await client.query(text)).rows;
    const runs = new Map((await rows("select id, state from pawl.runs")).map(({ id, state }) => [id, state]));
    const unread = await rows("select runs.id as run, inbox.id from pawl.inbox join pawl.runs on runs.n = inbox.run");
    const received = await rows(
      "select runs.id as run, journal.data from pawl.journal join pawl.runs on runs.n = journal.run where type = 'signal.received'",
    );
    const signals = new Set([
      ...unread.map(({ run, id }) => `${run} ${id}`),
      ...received.map(({ run, data }) => `${run} ${JSON.parse(data).id}`),
    ]);
    return { runs, signals };
  } finally {
    await client.end();
  }
}
