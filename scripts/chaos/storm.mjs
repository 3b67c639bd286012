// The storm: what befalls the crew from outside. What a process brings with it (its clock, its disk, its build) is decided when it starts.

const pause = (ms) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

export class Storm {
  #crew;
  #chance;
  #leaseMs;
  #count;
  #isOver = false;
  #loops;

  /** `count(what)` is told of everything that was injected. */
  constructor(crew, chance, leaseMs, count) {
    this.#crew = crew;
    this.#chance = chance;
    this.#leaseMs = leaseMs;
    this.#count = count;
    this.#loops = [this.#kills(), this.#freezes()];
  }

  /** Whoever is frozen now stays so: nobody waits for it. */
  async stop() {
    this.#isOver = true;
    await Promise.all(this.#loops);
  }

  /** Every 0.2 to 3 s, rather sooner than later; one time in ten all at once. */
  async #kills() {
    while (!this.#isOver) {
      await pause(200 + 2800 * this.#chance.between(0, 1) ** 2);
      if (this.#isOver) return;
      for (const member of this.#victims()) {
        member.signal("SIGKILL");
        this.#count("SIGKILL");
      }
    }
  }

  /** Mostly one that is at work: if none is, a slow machine has to catch up first. Those that are frozen shall come back. */
  #victims() {
    const members = this.#crew.members;
    if (this.#chance.hits(0.1)) {
      this.#count("all at once");
      return members;
    }
    const awake = members.filter((member) => !member.isStopped && (member.isUp || this.#chance.hits(0.1)));
    return awake.length === 0 ? [] : [this.#chance.pick(awake)];
  }

  /** Zombies: frozen for 1.5 to 5 leases. Others have taken over when they come back. */
  async #freezes() {
    await pause(300);
    while (!this.#isOver) {
      const awake = this.#crew.members.filter((member) => member.isUp && !member.isStopped);
      // Somebody must be left to take over.
      const isPossible = awake.length > 1;
      if (isPossible) this.#freeze(this.#chance.pick(awake));
      await pause(isPossible ? this.#chance.between(2500, 8500) : 100);
    }
  }

  #freeze(member) {
    member.signal("SIGSTOP");
    this.#count("SIGSTOP");
    this.frozen(member);
  }

  /** This one has stopped, by whatever hand: it comes back after 1.5 to 5 leases. */
  frozen(member) {
    member.isStopped = true;
    void this.#thaw(member);
  }

  async #thaw(member) {
    await pause(this.#leaseMs * this.#chance.between(1.5, 5));
    if (member.isUp) this.#count("SIGCONT after 1.5 to 5 leases");
    member.signal("SIGCONT");
  }
}
