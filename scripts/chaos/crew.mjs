// The crew: processes that are killed, frozen and replaced all the time. A place never stays empty for longer than a start takes.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("./member.mjs", import.meta.url));
// A death by lack of memory must not leave a core file of a gigabyte behind.
const WITHOUT_CORE = ["-c", 'ulimit -c 0; exec "$0" "$@"', process.execPath];

/** What a question ends with whose member died before it answered: nobody knows what became of it. */
export const GONE = { gone: true };

class Member {
  #process;
  #questions = new Map();
  #next = 1;
  isUp = false;
  isStopped = false;
  /** Resolves with how it ended. */
  exited;

  constructor(task, folder, heapMb, heard) {
    const flags = [
      `--max-old-space-size=${heapMb}`,
      "--no-warnings",
      "--report-on-signal",
      "--report-signal=SIGUSR2",
      `--report-directory=${folder}`,
    ];
    this.#process = spawn("sh", [...WITHOUT_CORE, ...flags, PROGRAM, JSON.stringify(task)]);
    this.#process.stdin.on("error", () => {});
    this.#process.stderr.setEncoding("utf8").on("data", (text) => heard(this, { stderr: text }));
    createInterface({ input: this.#process.stdout }).on("line", (line) => this.#hear(JSON.parse(line), heard));
    this.exited = new Promise((resolve) => {
      this.#process.once("close", (code, signal) => {
        this.isUp = false;
        for (const answer of this.#questions.values()) answer(GONE);
        this.#questions.clear();
        resolve({ code, signal });
      });
    });
  }

  get pid() {
    return this.#process.pid;
  }

  /** Resolves with { value }, { error } or GONE. */
  ask(ask, facts) {
    if (!this.isUp) return Promise.resolve(GONE);
    const n = this.#next++;
    this.#process.stdin.write(`${JSON.stringify({ n, ask, ...facts })}\n`);
    return new Promise((resolve) => {
      this.#questions.set(n, resolve);
    });
  }

  signal(signal) {
    this.#process.kill(signal);
    this.isStopped = signal === "SIGSTOP";
  }

  #hear(said, heard) {
    if (said.up) this.isUp = true;
    if (said.n === undefined) return heard(this, said);
    this.#questions.get(said.n)?.(said);
    this.#questions.delete(said.n);
  }
}

export class Crew {
  #places;
  #folder;
  #events;
  #heapMb;
  #waiting = [];
  #isOver = false;

  /** `events`: taskOf(place) says how the next process there lives; heard(place, member, said); ended(how). */
  constructor(size, folder, events, { heapMb = 64 } = {}) {
    this.#places = Array.from({ length: size }, () => null);
    this.#folder = folder;
    this.#heapMb = heapMb;
    this.#events = events;
    for (const place of this.#places.keys()) this.#fill(place);
    // Whoever is frozen would stay for ever.
    process.once("exit", () => {
      for (const member of this.members) member.signal("SIGKILL");
    });
  }

  get members() {
    return this.#places.filter((member) => member !== null);
  }

  /** A member that can be asked, now or as soon as there is one. */
  async anyone(chance) {
    for (;;) {
      const up = this.members.filter((member) => member.isUp);
      if (up.length > 0) return chance.pick(up);
      await this.#oneMore();
    }
  }

  /** Resolves when every place has a member that is up. */
  async complete() {
    while (!this.#places.every((member) => member?.isUp)) await this.#oneMore();
  }

  #oneMore() {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Asks all to stop, and waits until they are gone; nobody comes after them. */
  async dismiss(signal) {
    this.#isOver = true;
    const members = this.members;
    for (const member of members) member.signal("SIGCONT");
    for (const member of members) member.signal(signal);
    return Promise.all(members.map((member) => member.exited));
  }

  #fill(place) {
    const heard = (who, said) => this.#heard(place, who, said);
    const member = new Member(this.#events.taskOf(place), this.#folder, this.#heapMb, heard);
    this.#places[place] = member;
    void member.exited.then((how) => {
      this.#places[place] = null;
      this.#events.ended(how);
      if (!this.#isOver) this.#fill(place);
    });
  }

  #heard(place, member, said) {
    this.#events.heard(place, member, said);
    if (said.up) for (const goOn of this.#waiting.splice(0)) goOn();
  }
}
