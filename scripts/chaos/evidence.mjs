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
        return this.starts.get(line.token).runs.add(line.run);
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
