// Evidence: what the ledger of effects and the driver's own book say, sorted by run.

const nothing = () => ({
  starts: [],
  effects: [],
  seen: [],
  signalled: [],
  results: [],
  cancels: [],
  isCancelAsked: false,
});

export class Evidence {
  /** By token: what was asked for, and the ids that starts were answered with. */
  starts = new Map();
  faults = new Map();
  #runs = new Map();
  #lines = 0;

  of(run) {
    if (!this.#runs.has(run)) this.#runs.set(run, nothing());
    return this.#runs.get(run);
  }

  take(lines) {
    for (const line of lines) this.#take({ ...line, line: this.#lines++ });
  }

  #started(asked, { run, mono }) {
    asked.runs.add(run);
    asked.ackedAt = mono;
  }

  /** What processes have begun and not finished, by what they booked. */
  cutOff(isOne) {
    const cut = { starts: 0, steps: 0, processes: 0 };
    const cutPids = new Set();
    for (const { starts, effects } of this.#runs.values()) {
      const done = new Set(effects.map(({ key, attempt }) => `${key} ${attempt}`));
      cut.starts += starts.length;
      for (const { key, attempt, pid } of starts) {
        if (!isOne(pid) || done.has(`${key} ${attempt}`)) continue;
        cut.steps += 1;
        cutPids.add(pid);
      }
    }
    cut.processes = cutPids.size;
    return cut;
  }

  #take(line) {
    switch (line.what) {
      case "start":
        return this.of(line.run).starts.push(line);
      case "effect":
        return this.of(line.run).effects.push(line);
      case "fault":
        return this.faults.set(line.kind, (this.faults.get(line.kind) ?? 0) + 1);
      case "asked":
        return this.starts.set(line.token, { ...line, runs: new Set() });
      case "started":
        return this.#started(this.starts.get(line.token), line);
      case "signalled":
        return this.of(line.run).signalled.push(line.id);
      case "cancelling":
        this.of(line.run).isCancelAsked = true;
        return;
      case "cancelled":
        return this.of(line.run).cancels.push(line.outcome);
      case "result":
        return this.of(line.run).results.push(line);
      case "seen":
        return this.of(line.run).seen.push(line);
      default:
        return undefined;
    }
  }
}
