// The committer
// Makes what all runs of this process have to write durable, with as few syncs as possible: everything that is there when a commit begins
// goes into it, however many runs it is (group commit), up to a number of entries.
//
//   C1. At most one commit per lane is under way, and so at most one of a run (P15).
//   C2. What waits for a commit happens only after the store has said that it applied.
//   C3. A refused run does not hurt its neighbours (P16).
//   C4. An unknown outcome stops the committer until the worker has fenced itself and knows (P17). Nothing is repeated before.
//   C5. Of the runs that commits have brought forward one slice goes on, and others as what it has done is written: a crash makes steps of
//       one slice run again, not one of every run.
import { hasCode, PawlError } from "../base/errors.ts";
import type { Host } from "../core/host.ts";
import { LIMITS } from "../core/limits.ts";
import type { ObservedRun } from "../core/observer.ts";
import type { Commit, RunCommit, Store, Verdict } from "../core/store.ts";
import { Turns } from "../core/turns.ts";
import type { CommitSource } from "./commit-source.ts";
import { type Done, Lane } from "./lane.ts";

export interface CommitterEvents {
  /** The store cannot be written to; the next try follows when the promise resolves. */
  unavailable(error: unknown, failures: number): Promise<void>;
  /** Nobody knows whether these were applied. The committer is paused. */
  unknown(error: unknown, sources: readonly CommitSource[]): void;
  /** The store no longer knows this worker. The committer is paused. */
  fenced(sources: readonly CommitSource[]): void;
  /** A commit of its own is durable; `run` where whoever wrote it knew the run. */
  written(commit: RunCommit, run: ObservedRun | null): void;
  /** The store has taken so many runs and entries in one commit, after so long. */
  took(size: CommitSize): void;
}

export interface CommitSize {
  readonly runs: number;
  readonly entries: number;
  readonly ms: number;
}

export interface CommitterOptions {
  readonly host: Host;
  readonly sliceRuns: number;
}

export class Committer {
  readonly #store: Store;
  readonly #events: CommitterEvents;
  readonly #lanes: Lane[];
  readonly #underWay = new Set<readonly CommitSource[]>();
  readonly #giveUps = new Set<(error: unknown) => void>();
  #failures = 0;
  #epoch = 0;
  #isPaused = false;
  /** Passes take their turns here, because their end is when to commit. */
  readonly turns: Turns;
  worker: string | null = null;

  constructor(store: Store, { host, sliceRuns }: CommitterOptions, events: CommitterEvents) {
    this.#store = store;
    this.#events = events;
    this.turns = new Turns(host, () => {
      for (const lane of this.#lanes) lane.turnsClosed();
    });
    const owner = {
      isPaused: () => this.#isPaused,
      isGathering: () => this.turns.isOpen,
      areTurnsWanted: () => this.turns.isWanted,
      broken: (error: unknown, source: CommitSource) => this.#stop(error, [source]),
    };
    this.#lanes = Array.from({ length: store.lanes }, (_, lane) => {
      const commit = (sources: Iterable<CommitSource>, done: Done) => this.#commit(lane, sources, done);
      return new Lane(host, { ...owner, commit }, sliceRuns);
    });
  }

  /** `source` has something to write. */
  dirty(source: CommitSource): void {
    this.#lanes[this.laneOf(source.id)]?.add(source);
  }

  /** Writes one run's commit by itself; resolves with the store's verdict, rejects only if it surely was not applied. */
  write(commit: RunCommit, run: ObservedRun | null = null): Promise<Verdict> {
    let giveUp!: (error: unknown) => void;
    const written = new Promise<Verdict>((resolve, reject) => {
      giveUp = reject;
      this.#giveUps.add(giveUp);
      let left: RunCommit | null = commit;
      let isInDoubt = false;
      const source: CommitSource = {
        id: commit.run,
        isPatient: false,
        isOver: true,
        take: () => {
          const taken = left;
          left = null;
          return taken === null
            ? null
            : {
                commit: taken,
                after: [],
                withoutEnd: null,
                withoutSuspension: null,
                from: { head: taken.head, hash: "", at: 0 },
              };
        },
        acknowledge: () => {},
        verdict: (verdict) => {
          if (verdict.kind === "applied") this.#events.written(commit, run);
          if (verdict.kind !== "failed") return resolve(verdict);
          if (!isInDoubt || !hasCode(verdict.error, "storage_unavailable")) return reject(verdict.error);
          left = commit;
          this.dirty(source);
        },
        offerAgain: () => {
          left = commit;
          isInDoubt = true;
        },
        // It may have been applied before: then nobody may be told that it was not (I2).
        givesUp: (error) => {
          if (!isInDoubt) reject(error);
          return !isInDoubt;
        },
      };
      this.dirty(source);
    });
    return written.finally(() => this.#giveUps.delete(giveUp));
  }

  /** Nobody will write any more: whoever still waits is told that nothing is known. */
  close(): void {
    for (const giveUp of this.#giveUps) {
      giveUp(
        new PawlError(
          "unknown_outcome",
          "This Pawl was closed before the store had answered: look before you try again.",
        ),
      );
    }
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Stops committing. Answers that are still to come no longer count; their sources are returned. */
  pause(): readonly CommitSource[] {
    this.#isPaused = true;
    this.#epoch++;
    const cutOff = [...this.#underWay].flat();
    this.#underWay.clear();
    for (const lane of this.#lanes) lane.forgetAnswers();
    return cutOff;
  }

  resume(): void {
    this.#isPaused = false;
    for (const lane of this.#lanes) lane.restart();
  }

  /** Something is left to write, or a commit is under way. */
  get isBusy(): boolean {
    return this.#lanes.some((lane) => lane.isBusy);
  }

  /** The lane that all commits of a run go through. */
  laneOf(run: string): number {
    return this.#lanes.length === 1 ? 0 : hashOf(run) % this.#lanes.length;
  }

  /** Commits what the sources offer. */
  #commit(lane: number, sources: Iterable<CommitSource>, done: Done): void {
    const taken: CommitSource[] = [];
    const runs: RunCommit[] = [];
    const later: CommitSource[] = [];
    let entries = 0;
    for (const source of sources) {
      if (entries >= LIMITS.commitEntries) {
        later.push(source);
        continue;
      }
      const batch = source.take();
      if (batch === null) continue;
      taken.push(source);
      runs.push(batch.commit);
      entries += batch.commit.entries.length;
    }
    if (runs.length === 0) return done(later, []);
    const begunAt = this.#store.leaseClock.monotonic();
    this.#write({ worker: this.worker, lane, runs }, taken, (sooner, answers) => {
      if (answers.length > 0)
        this.#events.took({ runs: runs.length, entries, ms: this.#store.leaseClock.monotonic() - begunAt });
      done(later.length === 0 ? sooner : [...sooner, ...later], answers);
    });
  }

  // With callbacks: a promise for each call on the way would cost a short run more than its steps.
  #write(commit: Commit, sources: readonly CommitSource[], done: Done): void {
    const epoch = this.#epoch;
    this.#underWay.add(sources);
    const failed = (error: unknown) => {
      if (epoch !== this.#epoch) return done([], []);
      this.#underWay.delete(sources);
      if (hasCode(error, "storage_unavailable"))
        return void this.#waitForStorage(sources, error).then((staying) => done(staying, []));
      this.#stop(error, sources);
      done([], []);
    };
    const answered = (verdicts: readonly Verdict[]) => {
      if (epoch !== this.#epoch) return done([], []);
      this.#failures = 0;
      this.#underWay.delete(sources);
      if (!verdicts.some(isFenced))
        return done(
          [],
          verdicts.map((verdict, i) => ({ source: sources[i] as CommitSource, verdict })),
        );
      this.#isPaused = true;
      this.#events.fenced(sources);
      done([], []);
    };
    try {
      this.#store.commit(commit).then(answered, failed);
    } catch (error) {
      failed(error);
    }
  }

  /** Surely nothing was applied: whoever can be told is told, the rest stays and is offered again. */
  async #waitForStorage(sources: readonly CommitSource[], error: unknown): Promise<readonly CommitSource[]> {
    const staying = sources.filter((source) => !source.givesUp(error));
    for (const source of staying) source.offerAgain();
    if (staying.length > 0) await this.#events.unavailable(error, ++this.#failures);
    return staying;
  }

  #stop(error: unknown, sources: readonly CommitSource[]): void {
    this.#isPaused = true;
    this.#events.unknown(error, sources);
  }
}

function isFenced(verdict: Verdict): boolean {
  return verdict.kind === "refused" && verdict.why === "fenced";
}

function hashOf(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) >>> 0;
  return hash;
}
