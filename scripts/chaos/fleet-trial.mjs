// A trial on PostgreSQL: a fleet of workers, thousands of runs, and mishaps that befall workers and database while they are under way; then everything
// is judged. What befalls the database is the caller's: `database` is { url, mishaps: { kind: () => Promise } }.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chanceOf } from "./chance.mjs";
import { Crew } from "./crew.mjs";
import { crewTalk, pause } from "./crew-talk.mjs";
import { Evidence } from "./evidence.mjs";
import { FILES } from "./judge.mjs";
import { Ledger } from "./ledger.mjs";
import { Mishaps } from "./mishaps.mjs";
import { Patrol, UNFINISHED } from "./patrol.mjs";
import { ANSWERS } from "./programs.mjs";
import { GENTLE_MIX, Workload } from "./workload.mjs";

export const LEASE_MS = 2000;
const CONCURRENCY = 48;
const HEAP_MB = 256;
/** Of the runs that are open at a time, some wait to be claimed. */
const OPEN_PER_WORKER = 64;
const OTHERS_PER_SECOND = 4;
const BUILD = fileURLToPath(new URL("../../dist", import.meta.url));
const WORKS = Object.keys(ANSWERS).filter((name) => name !== "hog" && name !== "spinner");
const TELL_EVERY_MS = 10_000;
/** So often, while a mishap is due, it is looked for a worker in the middle of a step. */
const LOOKS = 500;

const TELLING = [
  ["times a worker could not reach the database", /cannot be (written to|used|reached)|outcome .* unknown/],
];

export class FleetTrial {
  injected = new Map();
  reached = new Map();
  judge;
  workload;
  #folder;
  #database;
  #options;
  #chance;
  #say;
  #talk;
  #crew;
  #patrol;
  #killed = [];
  #ledger;
  #booked = new Evidence();

  /** `options`: { seed, runs, workers, kills, freezes, strikes: { kind: count }, mayLose }; the judge's store is not open yet. */
  constructor(folder, { judge, database, options, say }) {
    this.#folder = folder;
    this.#ledger = new Ledger(join(folder, FILES.ledger));
    this.judge = judge;
    this.#database = database;
    this.#options = options;
    this.#say = say;
    this.#chance = chanceOf(options.seed);
    this.#talk = crewTalk(folder, TELLING, {
      reached: (what) => this.#reach(what, 1),
      violation: (text) => this.judge.violation("no worker finds anything to report", text),
    });
  }

  async run() {
    const { workers, seed, mayLose = false } = this.#options;
    const acks = new Ledger(join(this.#folder, FILES.acks));
    this.#crew = new Crew(
      workers,
      this.#folder,
      {
        taskOf: () => this.#task(),
        heard: (place, member, said) => this.#heard(place, member, said),
        ended: (how) => this.#ended(how),
      },
      { heapMb: HEAP_MB },
    );
    const problem = (text) => this.judge.violation("clients get answers that fit", text);
    const options = { perSecond: OTHERS_PER_SECOND, problem, mix: GENTLE_MIX, mayLose };
    this.workload = new Workload(this.#crew, chanceOf(`${seed} workload`), acks, options);
    this.#patrol = new Patrol(this.judge, acks, {
      ask: (...question) => this.workload.ask(...question),
      progress: () => this.workload.ended,
      oldestMs: () => this.workload.oldestMs,
    });
    const telling = setInterval(() => this.#tell(), TELL_EVERY_MS);
    await Promise.race([this.#work(), this.#patrol.stuck]);
    clearInterval(telling);
    this.#tell();
    await this.#finish();
  }

  /** Everything that is asked for, with everything that befalls it. */
  async #work() {
    const { runs, workers } = this.#options;
    await this.#crew.complete();
    const mishaps = this.#mishaps();
    await this.workload.bulk("ten", runs, workers * OPEN_PER_WORKER);
    await mishaps.over;
    await this.workload.stop();
    await this.workload.settled();
    await this.#patrol.drained();
  }

  #mishaps() {
    const { runs, kills, freezes, strikes, seed } = this.#options;
    const counts = { kill: kills, freeze: freezes, ...strikes };
    const actions = { kill: () => this.#kill(), freeze: () => this.#freeze() };
    for (const [kind, strike] of Object.entries(this.#database.mishaps))
      actions[kind] = () => this.#strike(kind, strike);
    return new Mishaps(chanceOf(`${seed} mishaps`), { counts, actions, progress: () => this.workload.ended / runs });
  }

  async #strike(kind, strike) {
    this.#inject(kind);
    await strike(this);
  }

  /** Every second one in the middle of a step. */
  async #kill() {
    const member = await (this.#killed.length % 2 === 0 ? this.#anyInAStep() : this.#anyAtWork());
    this.#killed.push(member.pid);
    this.#inject("SIGKILL of a worker");
    member.signal("SIGKILL");
    await member.exited;
  }

  /** Past its lease: others have taken over when it comes back. */
  async #freeze() {
    const member = await this.#anyAtWork();
    member.signal("SIGSTOP");
    this.#inject("SIGSTOP of a worker for 1.5 to 3 leases");
    await pause(LEASE_MS * this.#chance.between(1.5, 3));
    if (member.isUp) member.signal("SIGCONT");
  }

  /** One that has runs at this moment; while the database is away nobody can tell who has any. */
  async #anyAtWork() {
    for (;;) {
      const owners = await this.#owners();
      const awake = this.#crew.members.filter((member) => member.isUp && !member.isStopped);
      const busy = owners === null ? awake : awake.filter(({ pid }) => owners.has(pid));
      if (busy.length > 0) return this.#chance.pick(busy);
      await pause(20);
    }
  }

  /** One that has begun a step and not finished it, by what it has booked; any that has runs, if none is seen to for long. */
  async #anyInAStep() {
    for (let looks = 0; looks < LOOKS; looks++) {
      const member = await this.#anyAtWork();
      this.#booked.take(this.#ledger.news());
      if (this.#booked.cutOff((pid) => pid === member.pid).steps > 0) return member;
    }
    return this.#anyAtWork();
  }

  async #owners() {
    const { store } = this.judge;
    const [workers, owners] = await Promise.all([store.workers(), store.owners()]).catch(() => [null, null]);
    return (
      workers &&
      new Set(workers.filter(({ id }) => owners.some(({ worker }) => worker === id)).map(({ process }) => process.pid))
    );
  }

  async #finish() {
    await this.#patrol.stop();
    const { isStuck, looks, blindLooks, resolved } = this.#patrol;
    if (isStuck) await this.#tellStuck();
    // Whoever has just been started hears a SIGTERM only when it is up.
    if (!isStuck) await this.#crew.complete();
    await this.#crew.dismiss(isStuck ? "SIGKILL" : "SIGTERM");
    const left = isStuck ? [] : await this.judge.store.workers();
    if (left.length > 0)
      this.judge.violation(
        "workers that are asked to stop leave nothing behind",
        `${left.length} are still registered`,
      );
    this.#say("judging");
    await this.judge.judgeAll();
    this.#reach("looks for orphans", looks);
    this.#reach("looks that found no database", blindLooks);
    this.#reach("runs that a person let go on after too many deaths", resolved);
    this.#countCutOff();
  }

  /** Steps that were under way in a process when it was killed: begun in it, and without an effect. */
  #countCutOff() {
    const killed = new Set(this.#killed);
    const cut = this.judge.evidence.cutOff((pid) => killed.has(pid));
    this.#reach("steps that a SIGKILL cut off", cut.steps);
    this.#reach("SIGKILLs that cut off steps", cut.processes);
    this.#reach("step bodies that started", cut.starts);
  }

  async #tellStuck() {
    const rows = await this.judge.allRuns(UNFINISHED).catch((error) => [{ id: error.message }]);
    writeFileSync(join(this.#folder, "stuck.txt"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    this.judge.violation(
      "everything moves",
      `nothing did for a minute, or a run did not; ${rows.length} of them are in stuck.txt`,
    );
  }

  #task() {
    return {
      build: BUILD,
      store: this.#database.url,
      ledger: join(this.#folder, FILES.ledger),
      works: WORKS,
      patch: 1,
      lease: LEASE_MS,
      stall: null,
      concurrency: CONCURRENCY,
      skew: null,
      fault: null,
      seed: "",
    };
  }

  #heard(place, member, said) {
    this.#talk(place, member, said);
  }

  #ended({ code, signal }) {
    if (signal === "SIGKILL" || signal === "SIGTERM" || code === 0) return;
    this.#reach(`processes that ended with ${signal ?? code}`, 1);
  }

  #inject(what) {
    this.injected.set(what, (this.injected.get(what) ?? 0) + 1);
  }

  #reach(what, times) {
    this.reached.set(what, (this.reached.get(what) ?? 0) + times);
  }

  get figures() {
    const { started, ended } = this.workload;
    return { started, ended };
  }

  #tell() {
    const { started, ended } = this.figures;
    const injected = [...this.injected].map(([what, times]) => `${times} ${what}`).join(", ");
    this.#say(
      `${started} started, ${ended} ended; ${injected || "nothing yet"}; ${this.judge.violations.length} violations`,
    );
  }
}
