// Mishaps by progress: each befalls the crew when a share of the work is done that was drawn beforehand. So all of them happen while work is under
// way, on a fast machine and on a slow one, and none while everybody is still getting up from the last ones.

const pause = (ms) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

/** When half of the work is left nobody knows how long it takes; when all is done nothing can befall it. */
const FROM = 0.02;
const TO = 0.94;

/** How far apart those are that must not run into each other, as a share of the work. */
function spread(chance, count) {
  const width = (TO - FROM) / count;
  return Array.from({ length: count }, (_, i) => FROM + width * (i + chance.between(0.1, 0.9)));
}

export class Mishaps {
  #chance;
  #plan;
  #actions;
  #progress;
  #isOver = false;
  #loop;

  /** `counts` and `actions` are by kind; `progress` says which share of the work is done. An action that takes its time holds up its own kind only. */
  constructor(chance, { counts, actions, progress }) {
    this.#chance = chance;
    this.#actions = actions;
    this.#progress = progress;
    this.#plan = Object.entries(counts).map(([kind, count]) => ({ kind, moments: spread(chance, count) }));
    this.#loop = Promise.all(this.#plan.map((kind) => this.#run(kind)));
  }

  /** Resolves when all of them have happened, or after `stop`. */
  get over() {
    return this.#loop;
  }

  stop() {
    this.#isOver = true;
  }

  async #run({ kind, moments }) {
    for (const moment of moments) {
      while (!this.#isOver && this.#progress() < moment) await pause(20);
      // Not all at the very moment at which a run was seen to end.
      await pause(this.#chance.between(0, 60));
      if (this.#isOver) return;
      await this.#actions[kind]();
    }
  }
}
