// The patrol: what the watch is for a handful of runs, for thousands of them. Every other second it looks for orphans, writes down how far some
// journals were seen, lets parked runs go on, and notices when nothing moves any more. While the database is away it sees nothing, and says so.
import { monotonic } from "./ledger.mjs";

const EVERY_MS = 2000;
const STUCK_MS = 60_000;
/** No run here has so much to do: it is stuck, though others go on. */
const OLDEST_MS = 120_000;
/** How many of the runs under way are followed at each look. */
const FOLLOWED = 40;
export const UNFINISHED = ["accepted", "running", "retrying", "waiting", "compensating", "parked"];
/** Workflows of the engine's own, whose runs need not end. */
const OWN = ["pawl.alerts", "pawl.link", "pawl.notify", "pawl.schedule"];

const pause = (ms) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

export class Patrol {
  #judge;
  #acks;
  #ask;
  #progress;
  #oldestMs;
  #last = 0;
  #movedAt = monotonic();
  #settling = new Set();
  #isOver = false;
  #loop;
  #tellStuck;
  /** Looks that found the database there, and those that did not. */
  looks = 0;
  blindLooks = 0;
  resolved = 0;
  isStuck = false;
  stuck = new Promise((resolve) => {
    this.#tellStuck = resolve;
  });

  /** `ask` puts a question to the crew; `progress` is a number that grows while things move; `oldestMs` is the age of the oldest run under way. */
  constructor(judge, acks, { ask, progress, oldestMs }) {
    this.#judge = judge;
    this.#acks = acks;
    this.#ask = ask;
    this.#progress = progress;
    this.#oldestMs = oldestMs;
    this.#loop = this.#run();
  }

  async stop() {
    this.#isOver = true;
    await this.#loop;
  }

  /** Resolves when no run is left that has not ended. */
  async drained() {
    while (!this.isStuck && (await this.#unfinished()) !== 0) await pause(200);
  }

  async #unfinished() {
    const rows = await this.#there(() => this.#judge.store.runs({ states: UNFINISHED, limit: 1, except: OWN }));
    return rows?.length ?? null;
  }

  async #run() {
    for (; !this.#isOver; await pause(EVERY_MS)) {
      const seen = await this.#there(() => this.#look());
      if (seen === null) this.blindLooks += 1;
      else this.looks += 1;
      this.#mind();
    }
  }

  /** `null` if the database is away. */
  async #there(work) {
    try {
      return await work();
    } catch (error) {
      if (error.code === "storage_unavailable") return null;
      this.#judge.violation("the store can be read whenever it is there", error.stack);
      return null;
    }
  }

  async #look() {
    await this.#judge.judgeOrphans();
    const { store } = this.#judge;
    for (const { id } of await store.runs({ states: ["running"], limit: FOLLOWED })) {
      const last = (await store.journal(id)).at(-1);
      if (last !== undefined) this.#acks.book("seen", { run: id, seq: last.seq, hash: last.hash });
    }
    for (const { id } of await store.runs({ states: ["parked"], limit: FOLLOWED })) this.#settle(id);
    return true;
  }

  /** A run that was there at many deaths looks like their cause: a person lets it go on. */
  #settle(run) {
    if (this.#settling.has(run)) return;
    this.#settling.add(run);
    this.resolved += 1;
    const asked = this.#ask("resolve", { run, choice: "retry" }, { mayHave: "invalid_argument" });
    void asked.finally(() => this.#settling.delete(run));
  }

  #mind() {
    const progress = this.#progress();
    if (progress !== this.#last) this.#movedAt = monotonic();
    this.#last = progress;
    if (monotonic() - this.#movedAt < STUCK_MS && this.#oldestMs() < OLDEST_MS) return;
    this.isStuck = true;
    this.#tellStuck();
  }
}
