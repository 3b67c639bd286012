// A trial: a crew on one file, a workload, a storm over both for a while, then fair weather until everything has ended, then the verdict.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { sqliteStore } from "../../dist/index.js";
import { chanceOf } from "./chance.mjs";
import { Crew } from "./crew.mjs";
import { crewTalk, pause } from "./crew-talk.mjs";
import { dump } from "./dump.mjs";
import { FILES, Judge } from "./judge.mjs";
import { Ledger } from "./ledger.mjs";
import { ANSWERS, TIMELESS } from "./programs.mjs";
import { Storm } from "./storm.mjs";
import { Watch } from "./watch.mjs";
import { Workload } from "./workload.mjs";

const LEASE_MS = 1000;
/** Few runs a process: one whose event loop stands still must not have most of the work. */
const CONCURRENCY = 12;
const BUILD = fileURLToPath(new URL("../../dist", import.meta.url));
const ALL = Object.keys(ANSWERS);
const HOUR = 3_600_000;
const SLOWEST_MS = 60_000;

/** What members log that tells which rare situations were reached, and what they must never log. */
const TELLING = [
  ["event loops that stood still", /stood still for/],
  ["times the store could not be written to", /cannot be written to/],
];

/** Runs one trial in `folder`. `options`: { seed, stormMs, workers, perSecond, otherBuild }. */
export class Trial {
  injected = new Map();
  reached = new Map();
  judge;
  #options;
  #folder;
  #chance;
  #isFair = false;
  #crew;
  #watch;
  #workload;
  #storm;
  #say;
  #talk;

  constructor(folder, options, say) {
    mkdirSync(folder, { recursive: true });
    this.#folder = folder;
    this.#options = options;
    this.#say = say;
    this.#chance = chanceOf(options.seed);
    this.#talk = crewTalk(folder, TELLING, {
      reached: (what) => this.#reach(what, 1),
      violation: (text) => this.judge.violation("no worker finds anything to report", text),
    });
    this.judge = new Judge(folder, sqliteStore(join(folder, FILES.store)));
  }

  async run() {
    const { stormMs, workers, perSecond, seed } = this.#options;
    await this.judge.store.open();
    const acks = new Ledger(join(this.#folder, FILES.acks));
    // One more than there are workers: a client that works on nothing.
    this.#crew = new Crew(workers + 1, this.#folder, {
      taskOf: (place) => this.#taskOf(place),
      heard: (place, member, said) => this.#heard(place, member, said),
      ended: (how) => this.#ended(how),
    });
    const problem = (text) => this.judge.violation("clients get answers that fit", text);
    this.#workload = new Workload(this.#crew, chanceOf(`${seed} workload`), acks, { perSecond, problem });
    this.#watch = new Watch(this.judge, acks, (...question) => this.#workload.ask(...question));
    void this.#watch.stuck.then(() =>
      this.judge.violation("something always moves", "nothing did for a minute; see stuck.txt"),
    );
    this.#storm = new Storm(this.#crew, chanceOf(`${seed} storm`), {
      file: join(this.#folder, FILES.store),
      leaseMs: LEASE_MS,
      count: (what) => this.#inject(what),
    });
    await this.#weather(stormMs);
    await this.#storm.stop();
    // What is stuck is left as it is, to be looked at.
    if (!this.#watch.isStuck) await this.#clearUp();
    await this.#finish();
  }

  /** On a slow machine, where processes take seconds to start, the shortest storm still has a few deaths and a freeze. */
  async #weather(ms) {
    const until = performance.now() + ms;
    const isOver = () => performance.now() >= until + SLOWEST_MS || (performance.now() >= until && this.#hasStruck);
    for (let n = 1; !isOver() && !this.#watch.isStuck; n++) {
      await pause(200);
      if (n % 50 === 0) this.#tell("storm");
    }
  }

  get #hasStruck() {
    return (this.injected.get("SIGKILL") ?? 0) >= 3 && (this.injected.get("SIGSTOP") ?? 0) >= 1;
  }

  /** From here on nobody is harmed: whoever has a broken disk, a wrong clock or an old build is replaced once more. */
  async #clearUp() {
    this.#isFair = true;
    for (const member of this.#crew.members) member.signal("SIGKILL");
    await this.#workload.stop();
    this.#tell("fair weather");
    const everything = this.#workload.settled().then(() => this.#watch.drained());
    await Promise.race([everything, this.#watch.stuck]);
  }

  async #finish() {
    await this.#watch.stop();
    if (this.#watch.isStuck) await this.#dump();
    else await this.#crew.complete();
    await this.#crew.dismiss(this.#watch.isStuck ? "SIGKILL" : "SIGTERM");
    // A client that had to end a run by itself may leave its row: it is no worker, and hears no SIGTERM.
    const left = (await this.judge.store.workers()).filter(({ handles }) => handles.length > 0);
    if (left.length > 0 && !this.#watch.isStuck)
      this.judge.violation(
        "workers that are asked to stop leave nothing behind",
        `${left.length} are still registered`,
      );
    await this.judge.judgeAll();
    await this.judge.store.close();
    for (const [kind, times] of this.judge.evidence.faults) this.#inject(kind, times);
    this.#reach("runs that a person let go on after too many deaths", this.#watch.resolved);
  }

  /** How the next process at this place lives. The first place is always of the newest build, so that every run has somebody to take it. */
  #taskOf(place) {
    const { workers, otherBuild, seed } = this.#options;
    const chance = this.#chance;
    const common = {
      build: otherBuild !== null && place % 2 === 1 ? otherBuild : BUILD,
      store: join(this.#folder, FILES.store),
      ledger: join(this.#folder, FILES.ledger),
      lease: LEASE_MS,
      concurrency: CONCURRENCY,
      seed: `${seed} ${chance.whole(0, 1e9)}`,
    };
    const plain = { ...common, works: place === workers ? [] : ALL, patch: 1, stall: null, skew: null, fault: null };
    if (this.#isFair || place === workers) return plain;
    const patch = place === 0 || chance.hits(0.5) ? 1 : 0;
    if (patch === 0) this.#inject("processes of the older build");
    return { ...plain, patch, ...this.#clockOf(place), ...this.#faultOf(), ...this.#stallOf() };
  }

  #clockOf(place) {
    const chance = this.#chance;
    const kind = chance.weighed([
      [4, "right"],
      [5, "skewed"],
      [place === 0 ? 0 : 1, "far"],
    ]);
    if (kind === "right") return {};
    this.#inject(kind === "far" ? "clocks an hour off" : "clocks off by up to 2 s, with steps");
    if (kind === "far")
      return { works: TIMELESS, skew: { offsetMs: chance.pick([-HOUR, HOUR]), steps: this.#steps(600_000) } };
    return { skew: { offsetMs: chance.whole(-2000, 2000), steps: this.#steps(1500) } };
  }

  #steps(most) {
    return Array.from({ length: 3 }, () => ({
      afterMs: this.#chance.whole(200, 6000),
      byMs: this.#chance.whole(-most, most),
    }));
  }

  #faultOf() {
    return {
      fault: this.#chance.weighed([
        [8, null],
        [3, "full"],
        [3, "eio"],
        [4, "freeze"],
        [2, "kill"],
      ]),
    };
  }

  /** Some give up their lease when their event loop stands still for as long as a spinner makes it. */
  #stallOf() {
    return { stall: this.#chance.hits(0.2) ? LEASE_MS / 2 : null };
  }

  #heard(place, member, said) {
    if (said.frozen) return this.#storm.frozen(member);
    this.#talk(place, member, said);
  }

  #ended({ code, signal }) {
    if (signal === "SIGKILL" || signal === "SIGTERM") return;
    this.#reach(
      signal === "SIGABRT"
        ? "processes that died of a run that takes all memory"
        : `processes that ended with ${signal ?? code}`,
      1,
    );
  }

  async #dump() {
    this.#tell("stuck");
    for (const member of this.#crew.members) member.signal("SIGUSR2");
    await dump(
      this.judge.store,
      join(this.#folder, FILES.store),
      this.#watch.unfinished,
      join(this.#folder, "stuck.txt"),
    );
  }

  #inject(what, times = 1) {
    this.injected.set(what, (this.injected.get(what) ?? 0) + times);
  }

  #reach(what, times) {
    this.reached.set(what, (this.reached.get(what) ?? 0) + times);
  }

  get figures() {
    const { started } = this.#workload;
    return { started, ended: this.#watch.finished, unfinished: this.#watch.unfinished.length };
  }

  #tell(phase) {
    const { started, ended, unfinished } = this.figures;
    const kills = this.injected.get("SIGKILL") ?? 0;
    const stops = this.injected.get("SIGSTOP") ?? 0;
    const wrong = this.judge.violations.length;
    this.#say(
      `${phase}: ${started} started, ${ended} ended, ${unfinished} open; ${kills} SIGKILL, ${stops} SIGSTOP; ${wrong} violations`,
    );
  }
}
