// Random histories of a committer whose runs, store and self-fence are played by the test (C2, C4, C5).
import { expect, it } from "vitest";
import { PawlError } from "../base/errors.ts";
import { seededRandom } from "../base/random.ts";
import type { Commit, Verdict } from "../core/store.ts";
import type { TurnTaker } from "../core/turns.ts";
import { memoryStore } from "../stores/memory/memory-store.ts";
import type { CommitSource } from "./commit-source.ts";
import { Committer } from "./committer.ts";
import { nodeHost } from "./node-host.ts";

const HISTORIES = 400;
const ROUNDS = 5000;

it("P13 P15 P17 I11 in random histories every answer is told once and in time, one slice at most is ahead of the disk, and nothing is left over", async () => {
  const found: string[] = [];
  for (let seed = 0; seed < HISTORIES; seed++) {
    const history = new History(seed);
    await history.play();
    if (history.faults.length > 0) found.push(`${seed}: ${history.faults[0]}`);
  }
  expect(found).toEqual([]);
});

const nextRound = () => new Promise<void>((resolve) => setImmediate(resolve));

class History {
  readonly faults: string[] = [];
  readonly committer: Committer;
  readonly #runs: PlayedRun[];
  readonly #chance: ReturnType<typeof seededRandom>;
  readonly #limit: number;
  readonly #trouble: number;
  readonly #slowness: number;
  /** Runs with a quick step that was begun and is not recorded. */
  readonly #ahead = new Set<PlayedRun>();
  readonly #atTurn: (() => void)[] = [];
  #isCutOff = false;

  constructor(seed: number) {
    this.#chance = seededRandom(`slices ${seed}`);
    const sliceRuns = 1 + this.below(3);
    const lanes = this.#is(0.7) ? 1 : 1 + this.below(3);
    this.#limit = sliceRuns * lanes;
    this.#trouble = [0, 0, 0.1, 0.3][this.below(4)] as number;
    this.#slowness = [0, 0.3, 0.8][this.below(3)] as number;
    const store = { ...memoryStore(), lanes, commit: (commit: Commit) => this.#commit(commit) };
    this.committer = new Committer(
      store,
      { host: nodeHost, sliceRuns },
      {
        unavailable: () => this.rounds(this.below(4)),
        unknown: () => void this.#fence(),
        fenced: () => void this.#fence(),
        written: () => {},
        took: () => {},
      },
    );
    this.#runs = Array.from({ length: 1 + this.below(12) }, (_, i) => new PlayedRun(`run ${i}`, this, this.below(8)));
  }

  async play(): Promise<void> {
    for (const run of this.#runs) {
      run.write();
      if (this.#is(0.3)) await this.rounds(this.below(5));
    }
    for (let round = 0; round < ROUNDS; round++) {
      if (!this.committer.isBusy && !this.#isCutOff && this.#runs.every((run) => run.isOver)) return this.#checkAsked();
      if (this.#is(0.3)) this.#runs[this.below(this.#runs.length)]?.ask();
      await nextRound();
    }
    this.faults.push(`it stands still: ${this.#runs.filter((run) => !run.isOver).map(({ id }) => id)}`);
  }

  #checkAsked(): void {
    for (const { id } of this.#runs.filter((run) => run.hasAsked))
      this.faults.push(`nobody came to ${id}, who had asked`);
  }

  below(limit: number): number {
    return Math.floor(this.#chance.next() * limit);
  }

  #is(likely: number): boolean {
    return this.#chance.next() < likely;
  }

  async rounds(count: number): Promise<void> {
    for (let i = 0; i < count; i++) await nextRound();
  }

  /** None, some rounds of the event loop, or until somebody is in the middle of a turn. */
  #someTime(): Promise<void> {
    const longest = this.#is(0.9) ? 4 : 20;
    const rounds = this.rounds(this.#is(0.6) ? 1 + this.below(longest) : 0);
    if (this.#is(0.7)) return rounds;
    return Promise.race([this.rounds(8), new Promise<void>((resolve) => this.#atTurn.push(resolve))]);
  }

  turnOpens(): void {
    for (const resolve of this.#atTurn.splice(0)) resolve();
  }

  told(run: PlayedRun): void {
    if (this.#isCutOff && run.isPatient) this.faults.push(`${run.id} was told something while the worker was cut off`);
    // It finds that the lease is over when it wants to begin a step.
    if (this.#is(this.#trouble / 3)) void this.#fence();
  }

  /** What a run does next: a quick step, one that takes its time, or a write without a turn. */
  goOn(run: PlayedRun, isSliced: boolean): void {
    if (this.#is(this.#slowness))
      return void this.rounds(1 + this.below(6)).then(() => this.committer.turns.request(run));
    if (isSliced) this.#ahead.add(run);
    if (this.#ahead.size > this.#limit) this.faults.push(`${this.#ahead.size} runs are ahead, not ${this.#limit}`);
    if (this.#is(0.2)) return void Promise.resolve().then(() => run.write());
    void Promise.resolve().then(() => this.committer.turns.request(run));
  }

  #commit({ runs }: Commit): Promise<Verdict[]> {
    const kind = this.#is(this.#trouble) ? this.below(5) : -1;
    if (kind === 0 && this.#is(0.5)) throw unavailable();
    const answer = () =>
      this.#answer(
        runs.map(({ run }) => this.#runOf(run)),
        kind,
      );
    return this.#someTime().then(answer);
  }

  #answer(runs: readonly PlayedRun[], kind: number): Verdict[] {
    if (kind === 0) throw unavailable();
    if (kind === 1) throw new Error("lost before it was applied");
    if (kind === 2) return runs.map(({ id }) => ({ run: id, kind: "refused", why: "fenced" }));
    const verdicts = runs.map((run): Verdict => {
      this.#ahead.delete(run);
      return kind === 3 && this.#is(0.5) ? run.refuse() : run.apply();
    });
    if (kind === 4) throw new Error("lost after it was applied");
    return verdicts;
  }

  #runOf(id: string): PlayedRun {
    return this.#runs.find((run) => run.id === id) as PlayedRun;
  }

  /** What `SelfFence` does. */
  async #fence(): Promise<void> {
    if (this.#isCutOff) return;
    this.#isCutOff = true;
    this.committer.pause();
    await this.rounds(this.below(4));
    this.#isCutOff = false;
    for (const run of this.#runs) run.settle();
    this.committer.resume();
  }
}

type Numbered = Verdict & { readonly batch: number };

/** A run that writes so many batches, one after the other. */
class PlayedRun implements CommitSource, TurnTaker {
  readonly id: string;
  readonly isPatient: boolean;
  readonly #history: History;
  #left: number;
  #hasMore = false;
  #batch = 0;
  #isInFlight = false;
  /** It has asked the committer to come, though it may turn out to have nothing. */
  hasAsked = false;
  /** The last batch that the store has. */
  #stored = 0;

  constructor(id: string, history: History, left: number) {
    this.id = id;
    this.isPatient = history.below(8) > 0;
    this.#history = history;
    this.#left = left;
  }

  get isOver(): boolean {
    return this.#left < 0;
  }

  write(): void {
    this.#hasMore = true;
    this.#history.committer.dirty(this);
  }

  ask(): void {
    this.hasAsked = true;
    this.#history.committer.dirty(this);
  }

  openTurn(): void {
    this.#history.turnOpens();
    this.write();
  }

  closeTurn(): void {}

  take() {
    if (this.#isInFlight) return null;
    this.hasAsked = false;
    if (!this.#hasMore) return null;
    this.#hasMore = false;
    this.#isInFlight = true;
    this.#batch++;
    const commit = { run: this.id, head: 0, entries: [] };
    return { commit, after: [], withoutEnd: null, withoutSuspension: null, from: { head: 0, hash: "", at: 0 } };
  }

  apply(): Numbered {
    this.#stored = this.#batch;
    return { run: this.id, kind: "applied", batch: this.#batch };
  }

  refuse(): Numbered {
    return { run: this.id, kind: "refused", why: "wake", batch: this.#batch } as Numbered;
  }

  verdict(verdict: Verdict): void {
    this.#history.told(this);
    const { batch } = verdict as Numbered;
    if (!this.#isInFlight || batch !== this.#batch)
      this.#history.faults.push(`${this.id} was told of batch ${batch}, not ${this.#isInFlight ? this.#batch : "any"}`);
    if (verdict.kind === "applied") this.#land(this.isPatient);
    else this.offerAgain();
  }

  acknowledge(): void {}

  settle(): void {
    if (!this.#isInFlight) return;
    if (this.#stored === this.#batch) this.#land(false);
    else this.offerAgain();
  }

  #land(isSliced: boolean): void {
    this.#isInFlight = false;
    if (--this.#left >= 0) this.#history.goOn(this, isSliced);
  }

  offerAgain(): void {
    this.#isInFlight = false;
    this.write();
  }

  givesUp(): boolean {
    return false;
  }
}

function unavailable(): PawlError {
  return new PawlError("storage_unavailable", "The disk is full.");
}
