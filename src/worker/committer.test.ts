import { expect, it } from "vitest";
import { PawlError } from "../base/errors.ts";
import type { Commit, Verdict } from "../core/store.ts";
import { memoryStore } from "../stores/memory/memory-store.ts";
import type { CommitSource } from "./commit-source.ts";
import { Committer } from "./committer.ts";
import { nodeHost } from "./node-host.ts";

/** A run that always has something to write, one thing at a time, and keeps what it was told. */
class Source implements CommitSource {
  readonly id: string;
  readonly isPatient: boolean;
  readonly isOver = false;
  readonly told: Verdict[] = [];
  #isInFlight = false;
  /** What it does with an answer. */
  onTold: () => void = () => {};

  constructor(id: string, isPatient = true) {
    this.id = id;
    this.isPatient = isPatient;
  }

  take() {
    if (this.#isInFlight) return null;
    this.#isInFlight = true;
    const commit = { run: this.id, head: 0, entries: [] };
    return { commit, after: [], withoutEnd: null, withoutSuspension: null, from: { head: 0, hash: "", at: 0 } };
  }

  verdict(verdict: Verdict): void {
    this.told.push(verdict);
    this.#isInFlight = false;
    this.onTold();
  }

  acknowledge(): void {}

  offerAgain(): void {
    this.#isInFlight = false;
  }

  givesUp(): boolean {
    return false;
  }
}

const nextRound = () => new Promise<void>((resolve) => setImmediate(resolve));

it("P17 an answer that was not handed on when the committer was paused is never handed on", async () => {
  const answers: ((verdicts: Verdict[]) => void)[] = [];
  const store = { ...memoryStore(), commit: () => new Promise<Verdict[]>((resolve) => answers.push(resolve)) };
  const events = {
    unavailable: async () => {},
    unknown: () => {},
    fenced: () => {},
    written: () => {},
    took: () => {},
  };
  const committer = new Committer(store, { host: nodeHost, sliceRuns: 1 }, events);
  const [first, second] = [new Source("first"), new Source("second")];
  committer.dirty(first);
  committer.dirty(second);
  await nextRound();
  answers[0]?.([applied(first), applied(second)]);
  await Promise.resolve();
  expect([first.told, second.told]).toEqual([[applied(first)], []]);
  committer.pause();
  second.offerAgain();
  committer.resume();
  committer.dirty(second);
  await nextRound();
  answers[1]?.([{ run: "second", kind: "refused", why: "cancel" }]);
  await nextRound();
  expect(second.told).toEqual([{ run: "second", kind: "refused", why: "cancel" }]);
});

it("I10 what a source has to write while its answer is not handed on is taken afterwards", async () => {
  const commits: string[][] = [];
  let answer = () => {};
  const store = {
    ...memoryStore(),
    async commit({ runs }: Commit): Promise<Verdict[]> {
      commits.push(runs.map(({ run }) => run));
      if (commits.length === 1) await new Promise<void>((resolve) => (answer = resolve));
      return runs.map(({ run }) => ({ run, kind: "applied" }));
    },
  };
  const events = {
    unavailable: async () => {},
    unknown: () => {},
    fenced: () => {},
    written: () => {},
    took: () => {},
  };
  const committer = new Committer(store, { host: nodeHost, sliceRuns: 1 }, events);
  const sources = ["first", "second", "third"].map((id) => new Source(id));
  for (const source of sources) committer.dirty(source);
  await nextRound();
  const [first, second, third] = sources as [Source, Source, Source];
  committer.dirty(second);
  answer();
  while (first.told.length === 0) await Promise.resolve();
  expect([second.told, third.told]).toEqual([[], []]);
  committer.dirty(third);
  while (committer.isBusy) await nextRound();
  expect(commits.slice(1).flat().toSorted()).toEqual(["second", "third"]);
  expect(sources.map(({ told }) => told.length)).toEqual([1, 2, 2]);
});

it("P17 P37 an answer that finds the lease over is the last that is handed on", async () => {
  const { committer, runs } = open(["first", "urgent", "third"]);
  runs[1].onTold = () => void committer.pause();
  for (const run of runs) committer.dirty(run);
  await rounds(3);
  expect(runs.map(({ told }) => told.length)).toEqual([0, 1, 0]);
  committer.resume();
  await rounds(3);
  expect(runs.map(({ told }) => told.length)).toEqual([0, 1, 0]);
});

it("I2 P17 a write in doubt is not reported as failed because the store could not take it the next time", async () => {
  const failed = new PawlError("storage_unavailable", "Somebody else has locked what it needs.");
  const verdicts: Verdict[] = [
    { run: "r", kind: "failed", error: failed },
    { run: "r", kind: "applied" },
  ];
  let commits = 0;
  const store = {
    ...memoryStore(),
    async commit(): Promise<Verdict[]> {
      if (++commits === 1) throw new PawlError("unknown_outcome", "The answer was lost.");
      return [verdicts.shift() as Verdict];
    },
  };
  const unknown = (_error: unknown, sources: readonly CommitSource[]) => {
    committer.pause();
    for (const source of sources) source.offerAgain();
    committer.resume();
    for (const source of sources) committer.dirty(source);
  };
  const events = { unavailable: async () => {}, unknown, fenced: () => {}, written: () => {}, took: () => {} };
  const committer = new Committer(store, { host: nodeHost, sliceRuns: 1 }, events);
  expect(await committer.write({ run: "r", head: 0, entries: [] })).toEqual({ run: "r", kind: "applied" });
  expect(commits).toBe(3);
});

it("I11 somebody who writes without a break holds up nobody's answer", async () => {
  const { committer, runs } = open(["first", "urgent", "third"]);
  runs[1].onTold = () => committer.dirty(runs[1]);
  for (const run of runs) committer.dirty(run);
  await rounds(8);
  expect(runs[1].told.length).toBeGreaterThan(3);
  expect(runs[2].told).toEqual([applied(runs[2])]);
});

it("I11 somebody who takes turns without a break holds up nobody's answer", async () => {
  const { committer, runs } = open(["first", "urgent", "third"]);
  const taker = {
    openTurn: () => committer.dirty(runs[1]),
    closeTurn: () => committer.turns.request(taker),
  };
  committer.turns.request(taker);
  for (const run of runs) committer.dirty(run);
  await rounds(8);
  expect(runs[1].told.length).toBeGreaterThan(3);
  expect(runs[2].told).toEqual([applied(runs[2])]);
});

/** A committer with slices of one, on a store that applies everything. */
function open(ids: readonly [string, string, string]) {
  const commit = async ({ runs }: Commit) => runs.map(({ run }): Verdict => ({ run, kind: "applied" }));
  const events = {
    unavailable: async () => {},
    unknown: () => {},
    fenced: () => {},
    written: () => {},
    took: () => {},
  };
  const committer = new Committer({ ...memoryStore(), commit }, { host: nodeHost, sliceRuns: 1 }, events);
  const [a, b, c] = ids.map((id) => new Source(id, id !== "urgent"));
  return { committer, runs: [a, b, c] as [Source, Source, Source] };
}

async function rounds(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await nextRound();
}

function applied({ id }: Source): Verdict {
  return { run: id, kind: "applied" };
}
