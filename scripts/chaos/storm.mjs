// The storm: what befalls the crew from outside. What a process brings with it (its clock, its disk, its build) is decided when it starts.
import { lockHolders } from "../../dist/stores/sqlite/lock-holder.js";

const pause = (ms) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

export class Storm {
  #crew;
  #chance;
  #file;
  #leaseMs;
  #count;
  #isOver = false;
  #loops;

  /** `file` is the store's; `count(what)` is told of everything that was injected. */
  constructor(crew, chance, { file, leaseMs, count }) {
    this.#crew = crew;
    this.#chance = chance;
    this.#file = file;
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
    const isAll = this.#chance.hits(0.1);
    if (!members.some((member) => member.isUp && !member.isStopped)) return [];
    if (isAll) this.#count("all at once");
    if (isAll) return members;
    return [this.#chance.pick(members.filter((one) => !one.isStopped && (one.isUp || this.#chance.hits(0.1))))];
  }

  /** Zombies: frozen for 1.5 to 5 leases. Others have taken over when they come back. */
  async #freezes() {
    await pause(300);
    while (!this.#isOver) {
      const awake = this.#crew.members.filter((member) => member.isUp && !member.isStopped);
      // Somebody must be left to take over.
      const victim = awake.length > 1 ? this.#chance.pick(awake) : null;
      if (victim !== null) this.#freeze(victim);
      await pause(victim?.isStopped ? this.#chance.between(2500, 8500) : 100);
    }
  }

  /** One that is hit in the middle of a transaction keeps everybody else from writing; that is tried now and then, too. */
  #freeze(member) {
    member.signal("SIGSTOP");
    if (this.#locks(member) && this.#chance.hits(0.8)) return member.signal("SIGCONT");
    this.#count("SIGSTOP");
    this.frozen(member);
  }

  #locks({ pid }) {
    return lockHolders(this.#file).some((holder) => holder.pid === pid);
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
