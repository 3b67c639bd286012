// The workload: starts runs at a steady rate through whichever process is there, as a client would, and writes down what was asked for and
// what was acknowledged. A question whose answer is lost is put again, with the same id, to another process.

const pause = (ms) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

/** Answers that say: not now. Whoever asks tries again. */
const NOT_NOW = new Set(["storage_unavailable", "unknown_outcome", "closed"]);
/** The rate is kept up to this many runs that have not ended: a slow machine gets less, not a backlog without end. */
const MOST_OPEN = 120;

export class Workload {
  #crew;
  #chance;
  #acks;
  #perSecond;
  #problem;
  #mix;
  #mayLose;
  /** Lives that have not ended, in the order of their beginnings, with the times of these. */
  #open = new Map();
  #ofMix = 0;
  #talks = new Set();
  #isOver = false;
  #loop;
  started = 0;
  ended = 0;

  /**
   * `acks` is the driver's own ledger; `problem(text)` hears of answers that nobody should get. `mix`: [weight, program] pairs. With `mayLose`, an
   * acknowledged start may turn out to be gone.
   */
  constructor(crew, chance, acks, { perSecond, problem, mix = MIX, mayLose = false }) {
    this.#crew = crew;
    this.#chance = chance;
    this.#acks = acks;
    this.#perSecond = perSecond;
    this.#problem = problem;
    this.#mix = mix;
    this.#mayLose = mayLose;
    this.#loop = this.#run();
  }

  /** No more starts. */
  async stop() {
    this.#isOver = true;
    await this.#loop;
  }

  /** Resolves when every run that was started has been seen to its end. */
  async settled() {
    while (this.#open.size > 0) await Promise.race(this.#open.keys());
  }

  /** How long ago that run was asked for that has been under way for longest. */
  get oldestMs() {
    const [first = performance.now()] = this.#open.values();
    return performance.now() - first;
  }

  async #run() {
    // One of each, so that a short storm has all of them.
    for (const [, program] of this.#mix) void this.begin(program, "id");
    while (!this.#isOver) {
      if (this.#ofMix < MOST_OPEN) void this.#beginOfMix();
      await pause(1000 / this.#perSecond);
    }
  }

  async #beginOfMix() {
    this.#ofMix += 1;
    await this.begin(this.#chance.weighed(this.#mix));
    this.#ofMix -= 1;
  }

  /** Many runs of one program, so many of them open at a time. */
  async bulk(program, runs, open) {
    let left = runs;
    const oneByOne = async () => {
      while (left-- > 0 && !this.#isOver) await this.begin(program);
    };
    await Promise.all(Array.from({ length: open }, oneByOne));
  }

  /** Resolves when the run has been seen to its end. */
  begin(program, how = this.#chance.weighed(HOW[program] ?? [[1, "id"]])) {
    this.started += 1;
    const life = this.#live(program, INPUTS[program](this.#chance), how).finally(() => {
      this.#open.delete(life);
      this.ended += 1;
    });
    this.#open.set(life, performance.now());
    return life;
  }

  /** What clients do who hear that the newest past may be lost: they say once more what they have said to runs that they still wait for. */
  sayAgain() {
    for (const talk of this.#talks) void talk();
  }

  async #live(program, input, how) {
    const token = `${program}-${this.started}`;
    const workflow = program === "raced" ? "short" : program;
    this.#acks.book("asked", { token, how, workflow, input });
    const { run, member } = await this.#start(workflow, input, token, how);
    if (run === null) return;
    this.#acks.book("started", { token, run });
    const talk = async () => TALKS[program]?.(this, run, input);
    this.#talks.add(talk);
    await talk();
    if (program !== "hog") await this.#hearResult(run, member);
    this.#talks.delete(talk);
  }

  /** Asked first is who has started it: most probably it is there. */
  async #hearResult(run, member) {
    const result = await this.ask("result", { run }, { first: member });
    if (result !== undefined) this.#acks.book("result", { run, ...result });
  }

  /** A start without id or key may be asked for once only: a second one would be another run. `null`: nobody knows. */
  async #start(workflow, input, token, how) {
    const options = { version: "1.0.0", tags: [token], ...(how === "plain" ? {} : { [how]: token }) };
    const facts = { workflow, input, options };
    const member = await this.#crew.anyone(this.#chance);
    if (how !== "plain") return { run: await this.ask("start", facts, { first: member }), member };
    const { value = null } = await member.ask("start", facts);
    return { run: value, member };
  }

  /**
   * Asks until there is an answer, `first` this member, then anybody. With `mayHave`, that error is an answer as well, and `undefined` is what is
   * returned.
   */
  async ask(ask, facts, { first = null, mayHave = null } = {}) {
    for (let member = first; ; member = null) {
      member ??= await this.#crew.anyone(this.#chance);
      const { value, error, gone } = await member.ask(ask, facts);
      if (!gone && error === undefined) return value;
      if (!gone && !NOT_NOW.has(error.code)) {
        const isLost = this.#mayLose && error.code === "run_not_found";
        if (error.code !== mayHave && !isLost)
          this.#problem(`"${ask}" of ${JSON.stringify(facts)} was answered by ${error.code}: ${error.message}`);
        return undefined;
      }
      await pause(20);
    }
  }

  async signals(run, words) {
    for (let n = 0; n < words; n++) {
      const signal = { run, name: "word", payload: n, id: `word-${n}` };
      this.#acks.book("signalling", { run, id: signal.id });
      // If the first answer was lost, the run may have taken the last one and ended before it is sent again.
      const answer = await this.ask("signal", signal, {
        mayHave: n === words - 1 || this.#mayLose ? "run_ended" : null,
      });
      if (answer === null) this.#acks.book("signalled", { run, id: signal.id });
      // What was sent twice is still delivered once, unless the last one has ended the run already.
      if (n < words - 1 && !this.#mayLose && this.#chance.hits(0.3)) await this.ask("signal", signal);
    }
  }

  async cancel(run, afterMs) {
    await pause(this.#chance.between(0, afterMs));
    this.#acks.book("cancelling", { run });
    this.#acks.book("cancelled", { run, outcome: await this.ask("cancel", { run }) });
  }
}

const MIX = [
  [30, "short"],
  [10, "long"],
  [14, "sleeper"],
  [12, "listener"],
  [10, "parent"],
  [8, "endless"],
  [8, "flaky"],
  [3, "failing"],
  [6, "rounds"],
  [4, "careful"],
  [4, "raced"],
  [0.8, "spinner"],
  [0.4, "hog"],
];

/** Without those that keep their process busy or bring it down. */
export const GENTLE_MIX = MIX.filter(([, program]) => program !== "spinner" && program !== "hog");

const INPUTS = {
  short: (chance) => ({ n: chance.whole(0, 1000) }),
  raced: (chance) => ({ n: chance.whole(0, 1000) }),
  long: (chance) => ({ steps: chance.whole(20, 60), wide: chance.whole(4, 16) }),
  sleeper: (chance) => ({ n: chance.whole(0, 1000), ms: chance.whole(50, 1500) }),
  listener: (chance) => ({ words: chance.whole(1, 6) }),
  parent: (chance) => ({ n: chance.whole(0, 1000) }),
  endless: (chance) => ({ depth: chance.whole(0, 2) }),
  flaky: (chance) => ({ n: chance.whole(0, 1000), failures: chance.whole(1, 3) }),
  failing: (chance) => ({ n: chance.whole(0, 1000) }),
  rounds: (chance) => ({ left: chance.whole(1, 6), sum: 0 }),
  careful: (chance) => ({ n: chance.whole(0, 1000) }),
  spinner: (chance) => ({ n: chance.whole(0, 1000), ms: 2000 }),
  hog: () => null,
  ten: (chance) => ({ n: chance.whole(0, 1000) }),
};

/** How a run is started: by its id, by a key, or without either, which is the fast way. */
const ANY_WAY = [
  [2, "id"],
  [1, "key"],
  [2, "plain"],
];
const HOW = { short: ANY_WAY, long: ANY_WAY, parent: ANY_WAY, sleeper: ANY_WAY, ten: ANY_WAY };

/** What the client does while the run is under way. */
const TALKS = {
  listener: (client, run, { words }) => client.signals(run, words),
  endless: (client, run) => client.cancel(run, 800),
  raced: (client, run) => client.cancel(run, 60),
};
