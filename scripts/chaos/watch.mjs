// The watch: reads along while the storm goes on. It writes down how far each journal was seen, judges each run as soon as it has ended, lets
// parked ones go on, and notices when nothing moves any more.
import { monotonic } from "./ledger.mjs";

const EVERY_MS = 700;
/** Nothing has moved for so long: something is stuck. Longer than anything here sleeps, spins or is frozen, on a machine that is busy. */
const STUCK_MS = 60_000;

const UNFINISHED = ["accepted", "running", "retrying", "waiting", "compensating", "parked"];

export class Watch {
  #judge;
  #acks;
  #ask;
  #heads = new Map();
  #finished = 0;
  #movedAt = monotonic();
  #parked = new Map();
  #nexts = [];
  #isOver = false;
  #loop;
  #tellStuck;
  resolved = 0;
  isStuck = false;
  /** Resolves when nothing has moved for too long, no entry and no end, though the trial is not over. */
  stuck = new Promise((resolve) => {
    this.#tellStuck = resolve;
  });

  /** `ask` puts a question to the crew, as the workload does. */
  constructor(judge, acks, ask) {
    this.#judge = judge;
    this.#acks = acks;
    this.#ask = ask;
    this.#loop = this.#run();
  }

  get unfinished() {
    return [...this.#heads.keys()];
  }

  get finished() {
    return this.#finished;
  }

  async stop() {
    this.#isOver = true;
    await this.#loop;
  }

  /** Resolves when every run there is has ended. */
  async drained() {
    do await new Promise((resolve) => this.#nexts.push(resolve));
    while (this.#heads.size > 0);
  }

  async #run() {
    while (!this.#isOver) {
      try {
        await this.#look();
      } catch (error) {
        this.#judge.violation("the store can be read at any time", error.stack);
      }
      for (const goOn of this.#nexts.splice(0)) goOn();
      await new Promise((resolve) => {
        setTimeout(resolve, EVERY_MS);
      });
    }
  }

  async #look() {
    this.#judge.readLedgers();
    await this.#judge.judgeOrphans();
    const rows = await this.#judge.allRuns(UNFINISHED);
    const there = new Set(rows.map(({ id }) => id));
    const ended = [...this.#heads.keys()].filter((id) => !there.has(id));
    for (const { id, state, workflow } of rows) {
      await this.#follow(id);
      if (state === "parked" && !this.#parked.has(id)) this.#settle(id, workflow);
    }
    for (const id of ended) await this.#close(id);
    if (ended.length > 0) this.#movedAt = monotonic();
    if (monotonic() - this.#movedAt < STUCK_MS) return;
    this.isStuck = true;
    this.#tellStuck();
  }

  async #follow(id) {
    const from = this.#heads.get(id) ?? 0;
    const last = (await this.#judge.store.journal(id, { from })).at(-1);
    if (!this.#heads.has(id)) this.#heads.set(id, 0);
    if (last === undefined) return;
    this.#movedAt = monotonic();
    this.#heads.set(id, last.seq + 1);
    this.#acks.book("seen", { run: id, seq: last.seq, hash: last.hash });
  }

  async #close(id) {
    await this.#follow(id);
    this.#heads.delete(id);
    this.#finished += 1;
    this.#judge.readLedgers();
    await this.#judge.judgeRun(id);
  }

  /** A run that was there at many deaths looks like their cause: a person lets it go on. The one that is the cause is put away. */
  #settle(id, workflow) {
    const settled = workflow === "hog" ? this.#putAway(id) : this.#retry(id);
    this.#parked.set(id, settled);
    void settled.finally(() => this.#parked.delete(id));
  }

  async #putAway(id) {
    this.#acks.book("cancelling", { run: id });
    this.#acks.book("cancelled", { run: id, outcome: await this.#ask("cancel", { run: id }) });
  }

  async #retry(id) {
    this.resolved += 1;
    // Another one of these may have come first, with its answer lost.
    await this.#ask("resolve", { run: id, choice: "retry" }, { mayHave: "invalid_argument" });
  }
}
